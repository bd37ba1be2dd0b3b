"""vector-quantize-pytorch: vectors from a list."""

# SPDX-License-Identifier: Apache-2.0

from uses import draw, main, settle, use
from vector_quantize_pytorch import FSQ, LFQ, ResidualVQ, VectorQuantize


@use("finite scalar and lookup-free quantisation")
def scalar():
    fsq, lfq = FSQ(levels=[8, 5, 5]), LFQ(codebook_size=16, dim=4).eval()
    return [*fsq(draw(2, 6, 3)), *lfq(draw(2, 6, 4))[:2]]


@use("train a codebook by moving averages, and residual codebooks")
def codes():
    one = VectorQuantize(dim=4, codebook_size=8, decay=0.8)
    one._codebook.embed.copy_(draw(1, 8, 4))
    x = draw(2, 6, 4).requires_grad_()
    found, index, loss = one(x)
    (found.sum() + loss).backward()
    many = settle(ResidualVQ(dim=4, num_quantizers=2, codebook_size=8)).eval()
    return [found, index, loss, x.grad, *(part.shape for part in many(x)[:2])]


if __name__ == "__main__":
    main("vector-quantize-pytorch")

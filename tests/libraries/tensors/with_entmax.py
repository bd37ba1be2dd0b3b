"""entmax: sparse relatives of softmax."""

# SPDX-License-Identifier: Apache-2.0

import entmax
import torch
from uses import draw, main, use


@use("sparse alternatives to softmax and their losses, with gradients")
def maps():
    x = draw(3, 5).requires_grad_()
    y = entmax.entmax15(x)
    (y * draw(3, 5)).sum().backward()
    target = torch.tensor([1, 2, 0])
    return [
        y,
        x.grad,
        entmax.sparsemax(x),
        entmax.entmax_bisect(x, 1.3),
        entmax.sparsemax_loss(x, target),
        entmax.Entmax15Loss()(x, target),
    ]


if __name__ == "__main__":
    main("entmax")

"""tensorly: tensors as sums and products of smaller ones."""

# SPDX-License-Identifier: Apache-2.0

import tensorly
from tensorly import decomposition
from uses import draw, main, use


@use("decompose a tensor, reconstruct it")
def decompose():
    tensorly.set_backend("pytorch")
    x = draw(4, 5, 6)
    weights, factors = decomposition.parafac(x, 2, n_iter_max=20, init="svd")
    core = decomposition.tucker(x, [2, 2, 2])
    train = decomposition.tensor_train(x, [1, 2, 2, 1])
    return [
        tensorly.cp_to_tensor((weights, factors)),
        tensorly.tucker_to_tensor(core),
        tensorly.tt_to_tensor(train),
        tensorly.norm(x),
        tensorly.unfold(x, 1),
    ]


if __name__ == "__main__":
    main("tensorly")

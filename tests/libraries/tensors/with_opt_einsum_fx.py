"""opt_einsum_fx: better orders of products in a traced graph."""

# SPDX-License-Identifier: Apache-2.0

import torch
from opt_einsum_fx import fuse_einsums, optimize_einsums_full
from uses import draw, main, use


def product(x, y, z):
    first = torch.einsum("ij,jk->ik", x, y)
    return torch.einsum("ik,kl->il", first, z) * 2


@use("fuse and reorder the einsums of a traced function")
def reorder():
    given = draw(8, 3), draw(3, 9), draw(9, 2)
    graph = torch.fx.symbolic_trace(product)
    fused = fuse_einsums(graph.graph)
    better = optimize_einsums_full(product, given)
    count = [node.target is torch.functional.einsum for node in fused.nodes].count(True)
    return [better(*given), count]


if __name__ == "__main__":
    main("opt-einsum-fx")

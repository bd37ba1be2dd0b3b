"""Sums of a table's rows, each by a weight: what sampling an image between its pixels is.

    weighted_rows(table, index, weight)[i] == sum(weight[i, j] * table[index[i, j]] for j)

An image of shape (N, C, H, W) is a table of N * H * W rows with C numbers each, so that the numbers
that are read for one point lie together.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional, Tuple

from treadle import _C, autograd
from treadle._C import Tensor
from treadle.nn.functional import embedding_bag


def rows_of(image: Tensor) -> Tensor:
    """The table of an image."""
    return image.permute(0, 2, 3, 1).reshape(-1, image.shape[1])


class _WeightedRows(autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, index: Tensor, weight: Tensor) -> Tensor:
        needs_table = ctx.needs_input_grad[2]
        ctx.save_for_backward(index, weight, table if needs_table else None)
        ctx.rows = table.shape[0]
        return embedding_bag(index, table, mode="sum", per_sample_weights=weight)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Optional[Tensor], ...]:
        index, weight, table = ctx.saved_tensors
        grad = grad.contiguous()
        for_table = for_weight = None
        if ctx.needs_input_grad[0]:
            # The sum over a row's uses is a bag as well, once the uses are sorted by row.
            uses, order = index.reshape(-1).sort(stable=True)
            starts = _C.searchsorted(uses, _C.arange(ctx.rows, device=uses.device))
            bag = _C.div(order, index.shape[1], rounding_mode="floor")
            weights = weight.reshape(-1)[order]
            for_table = embedding_bag(bag, grad, starts, mode="sum", per_sample_weights=weights)
        if ctx.needs_input_grad[2]:
            for_weight = (table[index] @ grad.unsqueeze(2)).squeeze(2)
        return for_table, None, for_weight


def weighted_rows(table: Tensor, index: Tensor, weight: Tensor) -> Tensor:
    """Rows of shape (index.shape[0], table.shape[1])."""
    if index.numel() == 0:
        return table.sum() * 0 + table.new_zeros(index.shape[0], table.shape[1])
    return _WeightedRows.apply(table, index, weight)

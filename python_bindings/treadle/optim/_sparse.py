"""Sparse gradients: where their entries are, and rows of strided tensors there."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle._C import Tensor

Places = tuple[Tensor, ...]


def entries(grad: Any) -> tuple[Places, Tensor]:
    """The different places of a sparse gradient along its first dimensions, and what is there.

    A strided gradient has those that are not all zero along the others.
    """
    if grad.is_sparse:
        grad = grad.coalesce()
        return grad.indices().unbind(), grad.values()
    rows = grad if grad.dim() < 2 else grad.flatten(1).ne(0).any(1)
    at = rows.nonzero(as_tuple=True)
    return at, grad[at]


def rows_at(tensor: Tensor, at: Places) -> Tensor:
    """A copy of what `tensor` has at the places."""
    return tensor.index_select(0, at[0]) if len(at) == 1 else tensor[at]


def write_rows(tensor: Tensor, at: Places, rows: Tensor) -> None:
    """Writes it, where no place comes twice."""
    if len(at) == 1:
        tensor.index_copy_(0, at[0], rows)
    else:
        tensor[at] = rows


def add_rows(tensor: Tensor, at: Places, rows: Tensor, factor: float) -> None:
    """Adds rows * factor."""
    if len(at) == 1:
        tensor.index_add_(0, at[0], rows, alpha=factor)
    else:
        tensor.index_put_(at, rows * factor, accumulate=True)

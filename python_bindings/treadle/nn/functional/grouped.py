"""Products of several matrices at once, and a loss that takes the last layer with it."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List, Optional

from treadle import _C
from treadle._C import Tensor
from treadle.nn.functional.loss import cross_entropy


def _parts(offs: Optional[Tensor], size: int) -> List[int]:
    """How long each group is, by where it ends."""
    if offs is None:
        raise ValueError("grouped_mm: expected offs for an operand of two dimensions, got None")
    ends = [0, *offs.tolist()]
    if any(a > b for a, b in zip(ends, ends[1:])) or ends[-1] > size:
        raise ValueError(f"grouped_mm: expected offs that grow to at most {size}, got {ends[1:]}")
    return [b - a for a, b in zip(ends, ends[1:])]


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    out_dtype: Any = None,
) -> Tensor:
    """The product of each group of `mat_a` with its group of `mat_b`. An operand of three
    dimensions has a matrix for each group. For one of two, the integers `offs` say where the groups
    end: of rows of `mat_a`, of columns of `mat_b`, and of what is summed over where both have two;
    what comes after the last group gives zeros. ValueError where they do not fit."""
    if mat_a.dim() not in (2, 3) or mat_b.dim() not in (2, 3):
        raise ValueError(
            f"grouped_mm: expected matrices or stacks of them, got shapes {tuple(mat_a.shape)} and "
            f"{tuple(mat_b.shape)}"
        )
    if mat_a.dim() == 3 and mat_b.dim() == 3:
        result = mat_a @ mat_b
    elif mat_a.dim() == 2 and mat_b.dim() == 2:
        parts = _parts(offs, mat_a.shape[1])
        left = mat_a[:, : sum(parts)].split(parts, 1)
        right = mat_b[: sum(parts)].split(parts, 0)
        result = _C.stack([a @ b for a, b in zip(left, right)])
    elif mat_a.dim() == 2:
        parts = _parts(offs, mat_a.shape[0])
        rest = mat_a.shape[0] - sum(parts)
        pieces = [a @ b for a, b in zip(mat_a.split([*parts, rest], 0), mat_b)]
        result = _C.cat([*pieces, mat_a.new_zeros(rest, mat_b.shape[2])], 0)
    else:
        parts = _parts(offs, mat_b.shape[1])
        rest = mat_b.shape[1] - sum(parts)
        pieces = [a @ b for a, b in zip(mat_a, mat_b.split([*parts, rest], 1))]
        result = _C.cat([*pieces, mat_b.new_zeros(mat_a.shape[1], rest)], 1)
    if bias is not None:
        result = result + bias
    return result if out_dtype is None else result.to(out_dtype)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Optional[Tensor] = None,
    weight: Optional[Tensor] = None,
    reduction: str = "mean",
    ignore_index: Optional[int] = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """cross_entropy() of a linear layer's result: of `input` (..., in) by `linear_weight`
    (C, ..., in). `options` steer how PyTorch saves memory, and change nothing."""
    from treadle import nn

    name = "linear_cross_entropy"
    if input.dim() not in (1, 2):
        raise RuntimeError(f"{name}: expected input (in) or (N, in), got {tuple(input.shape)}")
    if linear_weight.dim() < 2 or linear_weight.shape[-1] != input.shape[-1]:
        raise RuntimeError(
            f"{name}: expected linear_weight (C, ..., {input.shape[-1]}), got "
            f"{tuple(linear_weight.shape)}"
        )
    classes, *out, width = linear_weight.shape
    if out and input.dim() == 1:
        raise RuntimeError(
            f"{name}: expected a batch of inputs for linear_weight of shape "
            f"{tuple(linear_weight.shape)}, got input of shape {tuple(input.shape)}"
        )
    if linear_bias is not None and linear_bias.shape != linear_weight.shape[:-1]:
        raise RuntimeError(
            f"{name}: expected linear_bias of shape {tuple(linear_weight.shape[:-1])}, got "
            f"{tuple(linear_bias.shape)}"
        )
    if ignore_index is not None and target.is_floating_point():
        raise RuntimeError(
            f"{name}: expected no ignore_index for a target of probabilities, got {ignore_index}"
        )
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    scores = nn.functional.linear(input, linear_weight.reshape(-1, width), bias)
    scores = scores.reshape(*input.shape[:-1], classes, *out)
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(
        scores,
        target,
        weight=weight,
        ignore_index=ignored,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )

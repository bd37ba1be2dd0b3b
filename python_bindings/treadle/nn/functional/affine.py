"""Layers that multiply by a weight matrix: linear, bilinear, and the look-up in a table of
vectors."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Optional

from treadle import _C
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad

from .._operators import ops

# The operators themselves.
linear = ops.linear
bilinear = ops.bilinear


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: Optional[int] = None,
    max_norm: Optional[float] = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` that the integers of `input` name. RuntimeError where `weight` is no
    matrix."""
    if weight.dim() != 2:
        raise RuntimeError(
            f"embedding: expected a weight of two dimensions, got shape {tuple(weight.shape)}"
        )
    rows = weight.shape[0]
    if padding_idx is None:
        padding_idx = -1
    else:
        if not -rows <= padding_idx < rows:
            raise AssertionError(
                f"embedding: expected padding_idx within {rows} rows, got {padding_idx}"
            )
        padding_idx %= rows
    if max_norm is not None:
        _renormalise_rows(weight, input, max_norm, norm_type)
    return ops.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def _renormalise_rows(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale, in place, the rows about to be used so that none has a norm above max_norm."""
    with no_grad():
        used = indices.reshape((-1,))
        rows = weight.index_select(0, used)
        norms = rows.abs().pow(norm_type).sum(1, keepdim=True).pow(1.0 / norm_type)
        scale = _C.where(norms > max_norm, max_norm / (norms + 1e-7), _C.ones_like(norms))
        weight[used] = rows * scale


_BAG_MODES = {"sum": 0, "mean": 1, "max": 2}


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Optional[Tensor] = None,
    max_norm: Optional[float] = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Optional[Tensor] = None,
    include_last_offset: bool = False,
    padding_idx: Optional[int] = None,
) -> Tensor:
    """The sum, mean or maximum of the rows that each bag names: each row of a 2-dim `input` is a
    bag, or `offsets` says where in a 1-dim one they begin."""
    if weight.dtype in (_C.int32, _C.int64) and input.is_floating_point():
        input, weight = weight, input  # an old order of the arguments
    if per_sample_weights is not None and tuple(input.shape) != tuple(per_sample_weights.shape):
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({tuple(per_sample_weights.shape)}) is not "
            f"None, then it must have the same shape as the input ({tuple(input.shape)})"
        )
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch "
                f"of fixed length sequences. However, found offsets of type {type(offsets)}"
            )
        rows, length = input.shape
        offsets = _C.arange(rows, dtype=input.dtype, device=input.device) * length
        if include_last_offset:
            offsets = _C.cat([offsets, offsets.new_full((1,), input.numel())])
        input = input.reshape((-1,))
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape((-1,))
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}"
        )
    if mode not in _BAG_MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}')."
        )
    if max_norm is not None:
        _renormalise_rows(weight, input, max_norm, norm_type)
    return ops.embedding_bag(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        _BAG_MODES[mode],
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )[0]

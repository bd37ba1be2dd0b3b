"""Activation functions: applied to each element, or along one dimension (the softmax family)."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
from typing import Optional

from treadle import _C
from treadle._C import Tensor

from .._operators import ops

# The operators themselves.
relu_ = ops.relu_
leaky_relu_ = ops.leaky_relu_
gelu = ops.gelu


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(0, x)."""
    return ops.relu_(input) if inplace else ops.relu(input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where positive, else negative_slope * x."""
    if inplace:
        return ops.leaky_relu_(input, negative_slope)
    return ops.leaky_relu(input, negative_slope)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)."""
    return ops.silu_(input) if inplace else ops.silu(input)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return ops.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return ops.tanh(input)


def _softmax_dim(name: str, input: Tensor, dim: Optional[int]) -> int:
    """The dimension to use where the caller named none: an old rule, with a warning."""
    if dim is not None:
        return dim
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        stacklevel=3,
    )
    return 0 if input.dim() in (0, 1, 3) else 1


def softmax(
    input: Tensor,
    dim: Optional[int] = None,
    _stacklevel: int = 3,
    dtype: Optional[_C.dtype] = None,
) -> Tensor:
    """exp(x), scaled to sum to 1 along `dim`; computed in `dtype` if one is given."""
    dim = _softmax_dim("softmax", input, dim)
    return ops.softmax(input, dim) if dtype is None else ops.softmax(input, dim, dtype=dtype)


def softmin(
    input: Tensor,
    dim: Optional[int] = None,
    _stacklevel: int = 3,
    dtype: Optional[_C.dtype] = None,
) -> Tensor:
    """softmax of -x."""
    return softmax(-input, _softmax_dim("softmin", input, dim), _stacklevel, dtype)


def log_softmax(
    input: Tensor,
    dim: Optional[int] = None,
    _stacklevel: int = 3,
    dtype: Optional[_C.dtype] = None,
) -> Tensor:
    """log(softmax(x)), computed so that it neither overflows nor loses small probabilities."""
    dim = _softmax_dim("log_softmax", input, dim)
    return (
        ops.log_softmax(input, dim) if dtype is None else ops.log_softmax(input, dim, dtype=dtype)
    )

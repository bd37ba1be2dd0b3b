"""Sums, means, extremes, logical and running reductions.

The operators take an empty list of dimensions for all of them; in the standard it is none of them.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import builtins
import math
from typing import Callable, Optional, Tuple, Union

from treadle import _C
from treadle._C import Tensor
from treadle.array_api._dtypes import Dtype, isdtype
from treadle.array_api._manipulation import Axes, _tuple

__all__ = [
    "all", "any", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "max", "mean",
    "min", "prod", "std", "sum", "var",
]  # fmt: skip


def _reduce(
    apply: Callable[..., Tensor], x: Tensor, axis: Optional[Axes], keepdims: builtins.bool
) -> Tensor:
    """apply(x, dims, keepdim) over the axes."""
    if axis is None:
        return apply(x, tuple(range(x.ndim)), keepdims)
    axes = _tuple(axis)
    # Each element by itself: reduced over a dimension made for it.
    return apply(x, axes, keepdims) if axes else apply(_C.unsqueeze(x, -1), (-1,), False)


def _total_dtype(x: Tensor, dtype: Optional[Dtype]) -> Dtype:
    """The dtype of sums and products: the widest integer of the same kind."""
    if dtype is not None:
        return dtype
    if isdtype(x.dtype, "unsigned integer"):
        return _C.uint64
    return _C.int64 if isdtype(x.dtype, ("bool", "signed integer")) else x.dtype


def _one_axis(x: Tensor, axes: Tuple[int, ...]) -> Tensor:
    """`x` with its dimensions `axes` joined into a last one."""
    reduced = [a % x.ndim if -x.ndim <= a < x.ndim else a for a in axes]
    kept = [d for d in range(x.ndim) if d not in reduced]
    order = _C.permute(x, kept + reduced)
    sizes = tuple(order.shape)
    return _C.reshape(order, sizes[: len(kept)] + (math.prod(sizes[len(kept) :]),))


def _along_joined(apply: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """A reduction over several dimensions from one along the last."""

    def reduction(x: Tensor, axes: Tuple[int, ...], keepdims: bool) -> Tensor:
        result = apply(_one_axis(x, axes))
        for a in sorted(a % x.ndim for a in axes) if keepdims and x.ndim else ():
            result = _C.unsqueeze(result, a)
        return result

    return reduction


def sum(
    x: Tensor,
    /,
    *,
    axis: Optional[Axes] = None,
    dtype: Optional[Dtype] = None,
    keepdims: builtins.bool = False,
) -> Tensor:
    """The sum of the elements."""
    total = _total_dtype(x, dtype)
    return _reduce(lambda x, d, k: _C.sum(x, d, k, dtype=total), x, axis, keepdims)


def prod(
    x: Tensor,
    /,
    *,
    axis: Optional[Axes] = None,
    dtype: Optional[Dtype] = None,
    keepdims: builtins.bool = False,
) -> Tensor:
    """The product of the elements."""
    total = _total_dtype(x, dtype)
    product = _along_joined(lambda x: _C.prod(x, -1, dtype=total))
    return _reduce(product, x, axis, keepdims)


def mean(x: Tensor, /, *, axis: Optional[Axes] = None, keepdims: builtins.bool = False) -> Tensor:
    """The mean of the elements."""
    return _reduce(_C.mean, x, axis, keepdims)


def var(
    x: Tensor,
    /,
    *,
    axis: Optional[Axes] = None,
    correction: Union[int, float] = 0.0,
    keepdims: builtins.bool = False,
) -> Tensor:
    """The sum of squared deviations from the mean, over the count less `correction`; NaN where that
    leaves nothing.
    """

    def apply(x: Tensor, d: Tuple[int, ...], k: builtins.bool) -> Tensor:
        if math.prod(x.shape[a] for a in d) > correction:
            return _C.var(x, d, correction=correction, keepdim=k)
        return _C.full_like(_C.sum(x, d, k), math.nan)

    return _reduce(apply, x, axis, keepdims)


def std(
    x: Tensor,
    /,
    *,
    axis: Optional[Axes] = None,
    correction: Union[int, float] = 0.0,
    keepdims: builtins.bool = False,
) -> Tensor:
    """The root of `var`."""
    return _C.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def max(x: Tensor, /, *, axis: Optional[Axes] = None, keepdims: builtins.bool = False) -> Tensor:
    """The largest element."""
    return _reduce(_C.amax, x, axis, keepdims)


def min(x: Tensor, /, *, axis: Optional[Axes] = None, keepdims: builtins.bool = False) -> Tensor:
    """The smallest element."""
    return _reduce(_C.amin, x, axis, keepdims)


def all(x: Tensor, /, *, axis: Optional[Axes] = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether no element is zero."""
    joined = _along_joined(lambda x: _C.all(x, -1))
    return _reduce(joined, x if x.dtype == _C.bool else x != 0, axis, keepdims)


def any(x: Tensor, /, *, axis: Optional[Axes] = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether some element is not zero."""
    joined = _along_joined(lambda x: _C.any(x, -1))
    return _reduce(joined, x if x.dtype == _C.bool else x != 0, axis, keepdims)


def count_nonzero(
    x: Tensor, /, *, axis: Optional[Axes] = None, keepdims: builtins.bool = False
) -> Tensor:
    """How many elements are not zero."""
    return sum(x if x.dtype == _C.bool else x != 0, axis=axis, keepdims=keepdims)


def _cumulative(
    name: str,
    operator: Callable[..., Tensor],
    initial: int,
    x: Tensor,
    axis: Optional[int],
    dtype: Optional[Dtype],
    include_initial: builtins.bool,
) -> Tensor:
    if x.ndim == 0 or (axis is None and x.ndim != 1):
        raise ValueError(
            f"{name}: expected an axis of an array, got axis = {axis}, shape {tuple(x.shape)}"
        )
    axis = 0 if axis is None else axis
    result = operator(x, axis, dtype=_total_dtype(x, dtype))
    if not include_initial:
        return result
    sizes = list(x.shape)
    sizes[axis] = 1
    first = _C.full(sizes, initial, dtype=result.dtype, device=x.device)
    return _C.cat([first, result], axis)


def cumulative_sum(
    x: Tensor,
    /,
    *,
    axis: Optional[int] = None,
    dtype: Optional[Dtype] = None,
    include_initial: builtins.bool = False,
) -> Tensor:
    """Running sums, from 0 on if asked for."""
    return _cumulative("cumulative_sum", _C.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor,
    /,
    *,
    axis: Optional[int] = None,
    dtype: Optional[Dtype] = None,
    include_initial: builtins.bool = False,
) -> Tensor:
    """Running products, from 1 on if asked for."""
    return _cumulative("cumulative_prod", _C.cumprod, 1, x, axis, dtype, include_initial)


def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Optional[Tensor] = None,
    append: Optional[Tensor] = None,
) -> Tensor:
    """Differences of neighbours, `n` times over."""
    return _C.diff(x, n, axis, prepend, append)

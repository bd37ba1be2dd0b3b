"""Reductions and normalisations of the elements where a mask is true.

Each is given a `mask`, bool, that goes with the shape of the input; without one every element
counts. Where nothing counts the result is that of no elements: 0 for a sum, NaN for a mean.
A reduction without `dim`, or with an empty one, takes all dimensions; `dtype` is the result's.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Optional, Tuple, Union

from treadle import _C, linalg
from treadle._C import Tensor
from treadle._tensor.type_info import iinfo

_Dim = Union[int, Tuple[int, ...], None]


def _parts(input: Any, mask: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
    """The numbers, and a mask of their shape."""
    own = getattr(input, "_mask", None)
    if own is not None:
        input, mask = input.get_data(), own if mask is None else own & mask
    if mask is None:
        return input, _C.ones_like(input, dtype=_C.bool)
    if mask.dtype != _C.bool:
        raise TypeError(f"masked: expected a mask of bools, got {mask.dtype}")
    return input, mask.broadcast_to(input.shape)


def _dims(input: Tensor, dim: _Dim) -> Tuple[int, ...]:
    if dim is None or dim == ():
        return tuple(range(input.dim()))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    found = tuple(d % max(input.dim(), 1) for d in dims)
    if len(set(found)) < len(found):
        raise RuntimeError(f"masked: expected each dimension once, got {dims}")
    return found


def _last(dtype: Any) -> Tuple[Any, Any]:
    """The least and the greatest value of a dtype."""
    if dtype.is_floating_point:
        return -math.inf, math.inf
    limits = iinfo(dtype)
    return limits.min, limits.max


def _filled(input: Any, mask: Optional[Tensor], value: Any, dtype: Any) -> Tuple[Tensor, Tensor]:
    input, mask = _parts(input, mask)
    input = input if dtype is None else input.to(dtype)
    return _C.where(mask, input, value), mask


def _running(input: Any, dtype: Any) -> Any:
    """The dtype of running sums and products: that of the elements."""
    return input.dtype if dtype is None else dtype


def _accumulated(input: Any, dtype: Any) -> Any:
    """The dtype of sums and products: int64 for integers."""
    wide = dtype is None and not (input.is_floating_point() or input.is_complex())
    return _C.int64 if wide else dtype


def _floating(input: Any, dtype: Any) -> Any:
    wide = dtype is None and not (input.is_floating_point() or input.is_complex())
    return _C.get_default_dtype() if wide else dtype


def sum(  # noqa: A001
    input: Any,
    dim: _Dim = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Optional[Tensor] = None,
) -> Tensor:
    """The sum."""
    values, _ = _filled(input, mask, 0, _accumulated(input, dtype))
    return values.sum(_dims(values, dim), keepdim=keepdim)


def prod(
    input: Any,
    dim: _Dim = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Optional[Tensor] = None,
) -> Tensor:
    """The product."""
    values, _ = _filled(input, mask, 1, _accumulated(input, dtype))
    for d in sorted(_dims(values, dim), reverse=True):
        values = values.prod(d, keepdim=keepdim)
    return values


def cumsum(input: Any, dim: int, *, dtype: Any = None, mask: Optional[Tensor] = None) -> Tensor:
    """The sum of what comes before, and the element."""
    values, _ = _filled(input, mask, 0, dtype)
    return values.cumsum(dim, dtype=_running(input, dtype))


def cumprod(input: Any, dim: int, *, dtype: Any = None, mask: Optional[Tensor] = None) -> Tensor:
    """The product of what comes before, and the element."""
    values, _ = _filled(input, mask, 1, dtype)
    return values.cumprod(dim, dtype=_running(input, dtype))


def amax(
    input: Any,
    dim: _Dim = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Optional[Tensor] = None,
) -> Tensor:
    """The greatest; the least value of the dtype where nothing counts."""
    least, _ = _last(dtype or input.dtype)
    values, _ = _filled(input, mask, least, dtype)
    return values.amax(_dims(values, dim), keepdim=keepdim)


def amin(
    input: Any,
    dim: _Dim = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Optional[Tensor] = None,
) -> Tensor:
    """The smallest; the greatest value of the dtype where nothing counts."""
    _, greatest = _last(dtype or input.dtype)
    values, _ = _filled(input, mask, greatest, dtype)
    return values.amin(_dims(values, dim), keepdim=keepdim)


def argmax(
    input: Any,
    dim: Optional[int] = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Optional[Tensor] = None,
) -> Tensor:
    """Where the greatest is, as a number of the result's dtype."""
    least, _ = _last(dtype or input.dtype)
    values, _ = _filled(input, mask, least, dtype)
    return values.argmax(dim, keepdim=keepdim).to(values.dtype)


def argmin(
    input: Any,
    dim: Optional[int] = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Optional[Tensor] = None,
) -> Tensor:
    """Where the smallest is, as a number of the result's dtype."""
    _, greatest = _last(dtype or input.dtype)
    values, _ = _filled(input, mask, greatest, dtype)
    return values.argmin(dim, keepdim=keepdim).to(values.dtype)


def mean(
    input: Any,
    dim: _Dim = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Optional[Tensor] = None,
) -> Tensor:
    """The mean."""
    values, counts = _filled(input, mask, 0, _floating(input, dtype))
    dims = _dims(values, dim)
    return values.sum(dims, keepdim=keepdim) / counts.sum(dims, keepdim=keepdim)


def median(
    input: Any,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Optional[Tensor] = None,
) -> Tensor:
    """The lower of the middle values. ValueError for integers of which some do not count."""
    values, counts = _parts(input, mask)
    values = values if dtype is None else values.to(dtype)
    if not values.is_floating_point():
        if not counts.all():
            raise ValueError(f"masked.median: expected a floating dtype, got {values.dtype}")
        return values.median(dim, keepdim=keepdim).values
    hidden = _C.where(counts, values, math.nan)
    return hidden.nanmedian(dim, keepdim=keepdim).values


def logsumexp(
    input: Any,
    dim: _Dim = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Optional[Tensor] = None,
) -> Tensor:
    """The logarithm of the sum of exponentials, in the dtype of the elements: that of integers is
    cut off."""
    values, _ = _filled(input, mask, -math.inf, _floating(input, dtype))
    return values.logsumexp(_dims(values, dim), keepdim=keepdim).to(_running(input, dtype))


def logaddexp(
    input: Any,
    other: Any,
    *,
    dtype: Any = None,
    input_mask: Optional[Tensor] = None,
    other_mask: Optional[Tensor] = None,
) -> Tensor:
    """The logarithm of the sum of two exponentials, of those that count."""
    first, _ = _filled(input, input_mask, -math.inf, _floating(input, dtype))
    second, _ = _filled(other, other_mask, -math.inf, _floating(other, dtype))
    return _C.logaddexp(first, second)


def norm(
    input: Any,
    ord: Optional[float] = 2.0,  # noqa: A002
    dim: _Dim = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Optional[Tensor] = None,
) -> Tensor:
    """The norm as of a vector."""
    order = 2.0 if ord is None else ord
    fill = math.inf if order < 0 else 0
    values, _ = _filled(input, mask, fill, _floating(input, dtype))
    return linalg.vector_norm(values, order, _dims(values, dim), keepdim=keepdim)


def _spread(
    input: Any,
    dim: _Dim,
    unbiased: Optional[bool],
    correction: Any,
    keepdim: bool,
    dtype: Any,
    mask: Optional[Tensor],
) -> Tensor:
    if unbiased is not None and correction is not None:
        raise ValueError("masked: expected unbiased or correction, got both")
    if correction is None:
        correction = 0 if unbiased is False else 1
    values, counts = _filled(input, mask, 0, _floating(input, dtype))
    dims = _dims(values, dim)
    count = counts.sum(dims, keepdim=True)
    centre = values.sum(dims, keepdim=True) / count
    far = _C.where(counts, values - centre, 0)
    squares = far * far.conj() if far.is_complex() else far * far
    count = count if keepdim else counts.sum(dims)
    return squares.sum(dims, keepdim=keepdim) / (count - correction).clamp(min=0)


def var(
    input: Any,
    dim: _Dim = None,
    unbiased: Optional[bool] = None,
    *,
    correction: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Optional[Tensor] = None,
) -> Tensor:
    """The variance; of a sample unless `unbiased` is False."""
    return _spread(input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Any,
    dim: _Dim = None,
    unbiased: Optional[bool] = None,
    *,
    correction: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Optional[Tensor] = None,
) -> Tensor:
    """The deviation: the root of var()."""
    return _spread(input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()


def softmax(input: Any, dim: int, *, dtype: Any = None, mask: Optional[Tensor] = None) -> Tensor:
    """softmax() of what counts, 0 elsewhere; NaN where nothing counts."""
    values, _ = _filled(input, mask, -math.inf, _floating(input, dtype))
    return values.softmax(dim)


def log_softmax(
    input: Any, dim: int, *, dtype: Any = None, mask: Optional[Tensor] = None
) -> Tensor:
    """log_softmax() of what counts, -inf elsewhere."""
    values, _ = _filled(input, mask, -math.inf, _floating(input, dtype))
    return values.log_softmax(dim)


def softmin(input: Any, dim: int, *, dtype: Any = None, mask: Optional[Tensor] = None) -> Tensor:
    """softmax() of the negative."""
    values, _ = _filled(input, mask, math.inf, _floating(input, dtype))
    return (-values).softmax(dim)


def normalize(
    input: Any,
    ord: float,  # noqa: A002
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: Any = None,
    mask: Optional[Tensor] = None,
) -> Tensor:
    """Divided by the norm along a dimension, or by `eps` where that is more; 0 elsewhere."""
    values, counts = _filled(input, mask, 0, _floating(input, dtype))
    size = norm(values, ord, dim, keepdim=True, mask=counts)
    return values / size.clamp(min=eps)

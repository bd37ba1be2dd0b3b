"""Scans, extremes with their positions, variance, softmax, norms, counting."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Callable, Iterator

import numpy as np

import treadle

from ..sample import NUMPY_TYPES, Maker, Sample, samples


def _scan(reference: Callable[..., Any]) -> Callable[[Maker], Iterator[Sample]]:
    def wide(x: Any, dim: int, **_: Any) -> Any:
        x = x.astype(np.int64) if x.dtype.kind in "biu" else x
        return reference(x, axis=dim) if x.ndim else x

    def make_samples(make: Maker) -> Iterator[Sample]:
        for shape, dim in [
            ((3, 4), 0),
            ((3, 4), -1),
            ((2, 3, 4), 1),
            ((40,), 0),
            ((), 0),
            ((0, 3), 0),
            ((3, 0), 1),
        ]:
            # A long product of complex numbers grows past what finite differences can tell apart.
            x = make(shape, 0.5, 1.5) if reference is np.cumprod else make(shape)
            yield Sample(x, dim, expect=wide, loose=8, grad=x.size < 30)
        for zeros in ([1], [0, 2]):
            x = make((4,), 0.5, 1.5)
            x[zeros] = 0
            yield Sample(x, 0, expect=wide)
        if make.dtype == "int32":
            yield Sample(
                make((3, 4)),
                1,
                dtype=treadle.float64,
                expect=lambda x, d, dtype: reference(x.astype(np.float64), axis=d),
            )

    return make_samples


samples("cumsum")(_scan(np.cumsum))
samples("cumprod")(_scan(np.cumprod))


def _extreme(
    value: Callable[..., Any], position: Callable[..., Any]
) -> Callable[[Maker], Iterator[Sample]]:
    def expect(x: Any, dim: int, keepdim: bool = False) -> Any:
        if x.ndim == 0:
            return x, np.zeros((), dtype=np.int64)
        return value(x, axis=dim, keepdims=keepdim), position(x, axis=dim, keepdims=keepdim)

    def make_samples(make: Maker) -> Iterator[Sample]:
        for shape, dim, keepdim in [
            ((3, 4), 0, False),
            ((3, 4), -1, True),
            ((2, 3, 4), 1, False),
            ((41,), 0, False),
            ((0, 3), 1, False),
            ((), 0, False),
        ]:
            yield Sample(make.distinct(shape), dim, keepdim, expect=expect)
        # The first of equal ones.
        yield Sample(
            make((3, 20)) if not make.is_floating else np.round(make((3, 20))),
            1,
            grad=False,
            expect=expect,
        )
        if make.dtype in ("float32", "float64"):
            x = make.distinct((5,))
            x[2] = np.nan
            yield Sample(x, 0, grad=False, expect=expect)

    return make_samples


samples("max.dim")(_extreme(np.max, np.argmax))
samples("min.dim")(_extreme(np.min, np.argmin))


def _position(reference: Callable[..., Any]) -> Callable[[Maker], Iterator[Sample]]:
    def make_samples(make: Maker) -> Iterator[Sample]:
        for shape in [(3, 4), (), (67,)]:
            yield Sample(make.distinct(shape), expect=lambda x: np.asarray(reference(x)))
        for shape, dim, keepdim in [
            ((3, 4), 0, False),
            ((3, 4), -1, True),
            ((2, 3, 4), 1, False),
            ((0, 3), 1, False),
        ]:
            yield Sample(
                make.distinct(shape),
                dim,
                keepdim,
                expect=lambda x, d, k: reference(x, axis=d, keepdims=k),
            )
        yield Sample(
            make.distinct((3, 4)), None, True, expect=lambda x, d, k: reference(x).reshape(1, 1)
        )

    return make_samples


samples("argmax")(_position(np.argmax))
samples("argmin")(_position(np.argmin))


def _spread(root: bool, mean: bool) -> Callable[..., Any]:
    """A reference of var, std, var_mean and std_mean."""

    def expect(x: Any, dim: Any, keepdim: bool, divisor_less: float) -> Any:
        axis = tuple(dim) if dim else None
        centre = x.mean(axis=axis, keepdims=True)
        count = x.size / centre.size
        value = (abs(x - centre) ** 2).sum(axis=axis, keepdims=keepdim) / max(
            count - divisor_less, 0
        )
        value = np.sqrt(value) if root else value
        return (value, x.mean(axis=axis, keepdims=keepdim)) if mean else value

    return expect


def _spreads(name: str, root: bool, mean: bool, **options: Any) -> None:
    expect = _spread(root, mean)

    @samples(name)
    def whole(make: Maker) -> Iterator[Sample]:
        for unbiased in (True, False):
            yield Sample(
                make((3, 4)), unbiased, expect=lambda x, u: expect(x, None, False, int(u)), loose=4
            )
        yield Sample(make((5,)), expect=lambda x: expect(x, None, False, 1), loose=4)

    @samples(name + ".dim")
    def over_dims(make: Maker) -> Iterator[Sample]:
        for shape, dim, unbiased, keepdim in [
            ((3, 4), [0], True, False),
            ((3, 4), [-1], False, True),
            ((2, 3, 4), [0, 2], True, False),
            ((3, 4), None, True, True),
        ]:
            yield Sample(
                make(shape),
                dim,
                unbiased,
                keepdim,
                expect=lambda x, d, u, k: expect(x, d, k, int(u)),
                loose=4,
            )

    @samples(name + ".correction")
    def corrected(make: Maker) -> Iterator[Sample]:
        for shape, dim, correction, keepdim in [
            ((3, 4), [0], 1, False),
            ((3, 4), [1], 0, True),
            ((2, 3, 4), [-1, 0], 1.5, False),
            ((3, 4), None, None, False),
            ((40, 3), [0], 2, False),
        ]:
            less = 1 if correction is None else correction
            yield Sample(
                make(shape),
                dim,
                correction=correction,
                keepdim=keepdim,
                loose=8,
                expect=lambda x, d, correction, keepdim, less=less: expect(x, d, keepdim, less),
            )


_spreads("var", root=False, mean=False)
_spreads("std", root=True, mean=False)
_spreads("var_mean", root=False, mean=True)
_spreads("std_mean", root=True, mean=True)


def _logsumexp(x: Any, dim: Any, keepdim: bool = False) -> Any:
    axis = (tuple(dim) if isinstance(dim, (list, tuple)) else dim) if x.ndim else None
    x = x.astype(np.float64) if x.dtype.kind in "biu" else x
    top = x.max(axis=axis, keepdims=True)
    out = np.log(np.exp(x - top).sum(axis=axis, keepdims=True)) + top
    return out if keepdim else out.squeeze(axis)


@samples("logsumexp")
def logsumexp(make: Maker) -> Iterator[Sample]:
    for shape, dim, keepdim in [
        ((3, 4), [0], False),
        ((3, 4), [-1], True),
        ((2, 3, 4), [0, 2], False),
        ((), [0], False),
    ]:
        yield Sample(make(shape), dim, keepdim, expect=_logsumexp, loose=4)
    if make.dtype != "bool":
        far = {"float16": 100, "uint8": 20, "int8": 20}.get(make.dtype, 1000)
        x = (make((3, 4)) + far).astype(NUMPY_TYPES[make.dtype])
        yield Sample(x, [1], expect=_logsumexp, loose=4)


def _softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    return np.exp(_log_softmax(x, dim))


def _log_softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    return x - _logsumexp(x, dim, True) if x.ndim else x * 0.0


def _softmaxes(reference: Callable[..., Any]) -> Callable[[Maker], Iterator[Sample]]:
    def make_samples(make: Maker) -> Iterator[Sample]:
        for shape, dim in [((3, 4), 0), ((3, 4), -1), ((2, 3, 4), 1), ((), 0), ((3, 70), 1)]:
            yield Sample(make(shape), dim, expect=reference, loose=4)
        yield Sample(make((0, 3)), 1, expect=lambda x, d: x)
        yield Sample(make((3, 4)), 1, treadle.float64, expect=reference, loose=4)
        # The dtype that is asked for is the one that counts.
        integers = np.arange(12).reshape(3, 4)
        yield Sample(integers, 1, treadle.float64, grad=False, expect=reference)

    return make_samples


samples("softmax.int")(_softmaxes(_softmax))
samples("log_softmax.int")(_softmaxes(_log_softmax))


@samples("_safe_softmax")
def safe_softmax(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, dim: int, dtype: Any = None) -> Any:
        none = (x == -np.inf).all(dim, keepdims=True)
        return np.where(none, 0, _softmax(np.where(none, 0, x), dim))

    yield from _softmaxes(_softmax)(make)
    x = make((3, 4))
    x[1] = -np.inf
    x[2, 1:3] = -np.inf
    yield Sample(x, 1, expect=expect, loose=4, grad=False)


@samples("hash_tensor")
def hash_tensor(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, dim: Any = (), keepdim: bool = False) -> Any:
        wide = x.astype(np.float64 if x.dtype.kind == "f" else np.int64)
        axes = tuple(dim) if isinstance(dim, (list, tuple)) else (dim,)
        return np.bitwise_xor.reduce(
            wide.view(np.uint64), axis=axes or tuple(range(x.ndim)), keepdims=keepdim
        )

    for shape, *rest in [((3, 4),), ((3, 5), 1), ((2, 3, 4), [0, 2]), ((0, 3), 0), ((1,),)]:
        yield Sample(make(shape), *rest, grad=False, expect=expect, exact=True)
    yield Sample(make((3, 4)), [1], keepdim=True, grad=False, expect=expect, exact=True)


def _norm(x: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, **_: Any) -> Any:
    p = 2 if p is None else p
    axis, x = tuple(dim) if dim is not None else None, abs(x)
    if p == math.inf:
        return x.max(axis=axis, keepdims=keepdim)
    if p == -math.inf:
        return x.min(axis=axis, keepdims=keepdim)
    if p == 0:
        return (x != 0).sum(axis=axis, keepdims=keepdim).astype(np.float64)
    return (x**p).sum(axis=axis, keepdims=keepdim) ** (1 / p)


POWERS = (2, 1, 3.5, math.inf, -math.inf, 0)


@samples("linalg_vector_norm")
def vector_norm(make: Maker) -> Iterator[Sample]:
    yield Sample(make.distinct((3, 4)), expect=_norm)
    for p in POWERS:
        # The count of nonzero elements has steps, which finite differences see.
        yield Sample(make((3, 4), 0.5, 2), p, [1], True, expect=_norm, loose=8, grad=p != 0)
        yield Sample(make((2, 3, 4), 0.5, 2), p, [0, 2], expect=_norm, loose=8, grad=p != 0)


@samples("linalg__powsum")
def powsum(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, p: float = 2, dim: Any = None, keepdim: bool = False) -> Any:
        axes = None if dim is None else tuple(dim)
        return np.sum(np.abs(x) ** p, axis=axes, keepdims=keepdim)

    yield Sample(make((5,)), expect=expect, loose=8)
    for p in (1, 2, 3.5):
        yield Sample(make((3, 4), 0.5, 2), p, expect=expect, loose=8)
        yield Sample(make((2, 3, 4), 0.5, 2), p, [0, 2], True, expect=expect, loose=8)


@samples("norm.Scalar")
def norm(make: Maker) -> Iterator[Sample]:
    for p in POWERS:
        yield Sample(make((3, 4), 0.5, 2), p, expect=_norm, loose=8, grad=p != 0)
    yield Sample(make((5,)), expect=_norm, loose=8)


@samples("diff")
def diff(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
        ends = {k: v for k, v in (("prepend", prepend), ("append", append)) if v is not None}
        return np.diff(x, n, dim, **ends)  # of order 0: x alone, without the ends

    yield Sample(make((3, 4)), expect=expect)
    for n, dim in [(2, 0), (0, 1), (1, 0), (3, 0)]:
        yield Sample(make((3, 4)), n, dim, expect=expect, loose=4)
    for n in (1, 0):
        yield Sample(make((3, 4)), n, 1, make((3, 1)), make((3, 2)), expect=expect)


@samples("bincount")
def bincount(make: Maker) -> Iterator[Sample]:
    for n in (7, 0):
        yield Sample(abs(make((n,))), expect=lambda x: np.bincount(x.astype(np.int64)))
        yield Sample(
            abs(make((n,))),
            None,
            9,
            expect=lambda x, w, m: np.bincount(x.astype(np.int64), minlength=m),
        )
    yield Sample(
        abs(make((7,))),
        Maker("float64")((7,)),
        expect=lambda x, w: np.bincount(x.astype(np.int64), w),
    )

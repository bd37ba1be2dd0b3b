"""Pointwise operators that are composed of others, and the other names of operators."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Callable, Iterator

import numpy as np

from ..catalogue import by_id
from ..expression import pointwise_samples
from ..sample import Maker, Sample, samples

# Operators whose other name is an entry of its own: the samples are those of the operator.
OTHER_NAMES = {
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "not_equal": "ne",
    "absolute": "abs",
    "negative": "neg",
    "arccos": "acos",
    "arcsin": "asin",
    "arctan": "atan",
    "arccosh": "acosh",
    "arcsinh": "asinh",
    "arctanh": "atanh",
    "fix": "trunc",
    "arctan2": "atan2",
}
ORDERED = {"greater", "greater_equal", "less", "less_equal", "fix", "arctan2"}


def _same_as(target: str) -> Callable[[Maker], Iterator[Sample]]:
    return lambda make: pointwise_samples(by_id()[target], make)


for _name, _target in OTHER_NAMES.items():
    _binary = _target in ("sub", "mul", "div", "gt", "ge", "lt", "le", "ne")
    for _overload in (".Tensor", ".Scalar") if _binary else ("",):
        samples(_name + _overload)(_same_as(_target + _overload))


def _quotient(x: Any, y: Any, rounding_mode: Any) -> Any:
    if rounding_mode is None:
        return x / y
    whole = np.asarray(x).dtype.kind in "iu"
    return (
        np.floor_divide(x, y)
        if rounding_mode == "floor"
        else np.trunc(x / y).astype(np.int64 if whole else np.float64)
    )


def _divisions(second: Callable[[Maker], Any]) -> Callable[[Maker], Iterator[Sample]]:
    def make_samples(make: Maker) -> Iterator[Sample]:
        for mode in (None, "floor", "trunc"):
            for shape in [(3, 4), (), (0, 4)]:
                yield Sample(make(shape, -9, 9), second(make), rounding_mode=mode, expect=_quotient)

    return make_samples


for _name in ("div", "divide"):
    samples(_name + ".Tensor_mode")(_divisions(lambda make: make((4,), 0.3, 3)))
    samples(_name + ".Scalar_mode")(_divisions(lambda make: make.scalar()))


def _power(x: Any, y: Any) -> Any:
    wide = np.complex128 if np.iscomplexobj(x) or np.iscomplexobj(y) else np.float64
    return np.power(np.asarray(x, dtype=wide), np.asarray(y, dtype=wide))


@samples("float_power.Tensor_Tensor")
def float_power(make: Maker) -> Iterator[Sample]:
    for a, b in [((3, 4), (4,)), ((), ()), ((0, 2), (2,))]:
        yield Sample(make(a, 0.3, 2), make(b, 0.3, 2), expect=_power, loose=4)


@samples("float_power.Tensor_Scalar")
def float_power_scalar(make: Maker) -> Iterator[Sample]:
    yield Sample(make((3, 4), 0.3, 2), 2.5, expect=_power, loose=4)


def logaddexp(a: Any, b: Any) -> Any:
    """log(exp(a) + exp(b)), of complex numbers with the larger factor taken out."""
    if not np.iscomplexobj(a) and not np.iscomplexobj(b):
        return np.logaddexp(a, b)
    low, high = np.where(a.real < b.real, a, b), np.where(a.real < b.real, b, a)
    return high + np.log1p(np.exp(low - high))


def _pairs(low: float, high: float, expect: Any, **options: Any) -> Any:
    def make_samples(make: Maker) -> Iterator[Sample]:
        if not (make.is_floating or make.is_complex):
            make = Maker("float32")  # which the operator has
        for a, b in [((3, 4), (4,)), ((), ()), ((0, 2), (2,)), ((67,), (67,))]:
            yield Sample(make(a, low, high), make(b, low, high), expect=expect, **options)

    return make_samples


samples("logaddexp")(_pairs(-2, 2, logaddexp, loose=2))


def _next(a: Any, b: Any) -> Any:
    return np.nextafter(*np.broadcast_arrays(a, b))


@samples("nextafter")
def nextafter(make: Maker) -> Iterator[Sample]:
    known = make.dtype in ("float16", "float32", "float64")
    yield from _pairs(-2, 2, _next, grad=False)(make if known else Maker("float32"))


@samples("_nextafter_of_narrow")
def nextafter_of_narrow(make: Maker) -> Iterator[Sample]:
    if make.dtype == "float16":
        settings = (2.0**13, 2.0**-24, 65504.0)
        for a, b in [((3, 4), (4,)), ((0, 2), (2,))]:
            expect = lambda x, y, *_: _next(x, y)  # noqa: E731
            yield Sample(make(a), make(b), *settings, expect=expect, grad=False)


def _unary(
    reference: Callable[..., Any], low: float = -2.0, high: float = 2.0, **options: Any
) -> Callable[[Maker], Iterator[Sample]]:
    def make_samples(make: Maker) -> Iterator[Sample]:
        for shape in [(3, 4), (), (0, 4), (67,)]:
            yield Sample(make(shape, low, high), expect=reference, **options)

    return make_samples


samples("conj", "conj_physical")(_unary(lambda x: np.conj(x) if np.iscomplexobj(x) else x))
samples("_conj")(_unary(np.conj))
samples("_neg_view")(_unary(lambda x: -x))
samples("positive", "resolve_conj", "resolve_neg")(_unary(lambda x: x))
samples("is_conj", "is_neg")(_unary(lambda x: np.asarray(False), grad=False))
samples("deg2rad")(_unary(lambda x: x * (math.pi / 180)))
samples("rad2deg")(_unary(lambda x: x * (180 / math.pi)))

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _elu(x: Any, alpha: float = 1.0, scale: float = 1.0) -> Any:
    return scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / 1.0))


samples("selu")(_unary(lambda x: _elu(x, 1.6732632423543772, 1.0507009873554805)))
samples("relu6")(_unary(lambda x: np.clip(x, 0, 6), -4, 9))
samples("log_sigmoid")(_unary(lambda x: -np.log1p(np.exp(-x)), -20, 20))
samples("mish")(_unary(lambda x: x * np.tanh(np.log1p(np.exp(x)))))


@samples("celu")
def celu(make: Maker) -> Iterator[Sample]:
    for alpha in (1.0, 0.5, 2.0):
        yield Sample(
            make((3, 4)),
            alpha,
            expect=lambda x, a: np.where(x > 0, x, a * np.expm1(np.minimum(x, 0) / a)),
        )
    yield Sample(make(()), expect=lambda x: np.where(x > 0, x, np.expm1(x)))


@samples("gelu")
def gelu(make: Maker) -> Iterator[Sample]:
    def tanh(x: Any, approximate: str) -> Any:
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    yield Sample(make((3, 4)), expect=lambda x: 0.5 * x * (1 + _erf(x / np.sqrt(2))))
    yield Sample(
        make((3, 4)),
        approximate="none",
        expect=lambda x, approximate: 0.5 * x * (1 + _erf(x / np.sqrt(2))),
    )
    yield Sample(make((3, 4)), approximate="tanh", expect=tanh)


@samples("logit")
def logit(make: Maker) -> Iterator[Sample]:
    yield Sample(make((3, 4), 0.1, 0.9), expect=lambda x: np.log(x / (1 - x)), loose=4)

    def clipped(x: Any, eps: float) -> Any:
        x = np.clip(x, eps, 1 - eps)
        return np.log(x / (1 - x))

    yield Sample(np.linspace(0.01, 0.99, 7).astype(make(()).dtype), 0.1, expect=clipped, loose=4)


def _with_specials(make: Maker) -> Any:
    x = make((3, 4))
    if make.is_floating:
        x[0, :3] = np.nan, np.inf, -np.inf
    return x


for _name, _reference in {
    "isposinf": lambda x: np.asarray(x == math.inf),
    "isneginf": lambda x: np.asarray(x == -math.inf),
}.items():

    @samples(_name)
    def is_infinite(make: Maker, reference: Any = _reference) -> Iterator[Sample]:
        yield Sample(_with_specials(make), grad=False, expect=reference)
        yield Sample(make(()), grad=False, expect=reference)


@samples("isclose")
def isclose(make: Maker) -> Iterator[Sample]:
    yield Sample(make((3, 4)), make((4,)), grad=False, expect=np.isclose)
    x = make((3, 4))
    yield Sample(
        x,
        (x + np.where(make.mask((3, 4)), 0, 2)).astype(x.dtype),
        1e-3,
        1e-3,
        grad=False,
        expect=lambda x, y, r, a: np.isclose(x, y, r, a),
    )
    specials = _with_specials(make)
    for equal_nan in (False, True):
        yield Sample(
            specials,
            specials,
            equal_nan=equal_nan,
            grad=False,
            expect=lambda x, y, equal_nan: np.isclose(x, y, equal_nan=equal_nan),
        )


@samples("allclose")
def allclose(make: Maker) -> Iterator[Sample]:
    x = make((3, 4))
    yield Sample(x, x, grad=False, expect=lambda x, y: np.asarray(True))
    yield Sample(x, x + make.scalar(), grad=False, expect=lambda x, y: np.asarray(False))
    yield Sample(make((0, 4)), make((4,)), grad=False, expect=lambda x, y: np.asarray(True))


@samples("equal")
def equal(make: Maker) -> Iterator[Sample]:
    x = make((3, 4))
    yield Sample(x, x, grad=False, expect=lambda x, y: np.asarray(True))
    yield Sample(x, x[:2], grad=False, expect=lambda x, y: np.asarray(False))
    other = x.copy()
    other[2, 3] = not other[2, 3] if make.dtype == "bool" else other[2, 3] + 1
    yield Sample(x, other, grad=False, expect=lambda x, y: np.asarray(False))
    yield Sample(make((0,)), make((0,)), grad=False, expect=lambda x, y: np.asarray(True))


def _clamped(x: Any, low: Any = None, high: Any = None, min: Any = None, max: Any = None) -> Any:
    low, high = (min if low is None else low), (max if high is None else high)
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


for _name in ("clamp", "clip"):

    @samples(_name)
    def clamp(make: Maker) -> Iterator[Sample]:
        for shape in [(3, 4), (), (0, 4)]:
            yield Sample(make(shape), 0 if make.is_unsigned else -1, 1, expect=_clamped)
        yield Sample(make((3, 4)), min=0, expect=_clamped)
        yield Sample(make((3, 4)), max=1, expect=_clamped)
        yield Sample(make((3, 4)), 1, 0 if make.is_unsigned else -1, expect=_clamped)
        if make.is_floating:
            yield Sample(make((3, 4)), None, 0.5, expect=_clamped)

    @samples(_name + ".Tensor")
    def clamp_tensor(make: Maker) -> Iterator[Sample]:
        yield Sample(make((3, 4)), make((3, 4), -2, 0), make((4,), 0, 2), expect=_clamped)
        yield Sample(make((3, 4)), None, make((4,)), expect=_clamped)
        yield Sample(make((3, 4)), make(()), expect=_clamped)


def _masked_fill(value: Callable[[Maker], Any]) -> Callable[[Maker], Iterator[Sample]]:
    def make_samples(make: Maker) -> Iterator[Sample]:
        for a, b in [((3, 4), (3, 4)), ((3, 4), (4,)), ((), ()), ((0, 4), (4,))]:
            yield Sample(
                make(a),
                make.mask(b),
                value(make),
                expect=lambda x, m, v: np.where(m, np.asarray(v, dtype=x.dtype), x),
            )

    return make_samples


samples("masked_fill.Scalar")(_masked_fill(lambda make: make.scalar()))
samples("masked_fill.Tensor")(_masked_fill(lambda make: make(())))


LARGEST = {
    **{
        d: float(np.finfo(d).max)
        for d in ("float16", "float32", "float64", "complex64", "complex128")
    },
    "bfloat16": 3.3895313892515355e38,
}


@samples("nan_to_num")
def nan_to_num(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
        if x.dtype.kind in "biu":
            return x
        most = LARGEST[make.dtype]
        high, low = most if posinf is None else posinf, -most if neginf is None else neginf
        return np.nan_to_num(x, nan=nan or 0.0, posinf=high, neginf=low)

    yield Sample(_with_specials(make), grad=False, expect=expect)
    yield Sample(_with_specials(make), 1.5, 2.5, -3.5, grad=False, expect=expect)
    yield Sample(make((3, 4)), nan=2.0, expect=expect)

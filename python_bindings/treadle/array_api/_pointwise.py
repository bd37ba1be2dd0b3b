"""Functions of one element, or of one element each of two arrays.

Most are the operator of the same name under the standard's signature.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Optional

from treadle import _C
from treadle._C import Tensor
from treadle.array_api._dtypes import Array, together

__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "ceil", "clip", "conj", "copysign", "cos", "cosh", "divide", "equal", "exp", "expm1", "floor",
    "floor_divide", "greater", "greater_equal", "hypot", "imag", "isfinite", "isinf", "isnan",
    "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logical_and",
    "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative",
    "nextafter", "not_equal", "positive", "pow", "real", "reciprocal", "remainder", "round",
    "sign", "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc",
]  # fmt: skip


def _named(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}` of every element."
    return function


def _unary(name: str, operator: Optional[Callable[[Tensor], Tensor]] = None) -> Any:
    apply = operator or getattr(_C, name)

    def function(x: Tensor, /) -> Tensor:
        return apply(x)

    return _named(function, name)


def _binary(name: str, operator: Optional[Callable[[Tensor, Tensor], Tensor]] = None) -> Any:
    apply = operator or getattr(_C, name)

    def function(x1: Array, x2: Array, /) -> Tensor:
        return apply(*together(name, x1, x2))

    return _named(function, name)


def _round(x: Tensor) -> Tensor:
    return _C.complex(_C.round(x.real), _C.round(x.imag)) if x.dtype.is_complex else _C.round(x)


def _parts(a: Tensor) -> Tensor:
    return _C.view_as_real(_C.resolve_conj(a))


def _by_parts(operator: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """Complex numbers part by part.

    The operator multiplies by `alpha` first, and of an infinity and a zero that makes NaN.
    """

    def apply(a: Tensor, b: Tensor) -> Tensor:
        if not a.dtype.is_complex:
            return operator(a, b)
        return _C.view_as_complex(operator(_parts(a), _parts(b)))

    return apply


def _floor_divide(a: Tensor, b: Tensor) -> Tensor:
    """With an infinity, the quotient itself: the operator takes the rest off first, which is
    NaN.
    """
    whole = _C.floor_divide(a, b)
    if not a.dtype.is_floating_point:
        return whole
    return _C.where(_C.isinf(a) | _C.isinf(b), a / b, whole)


def _expm1(x: Tensor) -> Tensor:
    """A complex zero has a real part without a sign."""
    y = _C.expm1(x)
    return _C.complex(y.real + 0, y.imag) if x.dtype.is_complex else y


def _tanh(x: Tensor) -> Tensor:
    """At an infinite real part the imaginary one is a zero with the sign of that of `x`."""
    y = _C.tanh(x)
    if not x.dtype.is_complex:
        return y
    far = _C.isinf(x.real) & _C.isfinite(x.imag)
    return _C.complex(y.real, _C.where(far, _C.copysign(_C.zeros_like(y.imag), x.imag), y.imag))


abs = _unary("abs")
acos = _unary("acos")
acosh = _unary("acosh")
add = _binary("add", _by_parts(_C.add))
asin = _unary("asin")
asinh = _unary("asinh")
atan = _unary("atan")
atan2 = _binary("atan2")
atanh = _unary("atanh")
bitwise_and = _binary("bitwise_and")
bitwise_invert = _unary("bitwise_invert", _C.bitwise_not)
bitwise_left_shift = _binary("bitwise_left_shift")
bitwise_or = _binary("bitwise_or")
bitwise_right_shift = _binary("bitwise_right_shift")
bitwise_xor = _binary("bitwise_xor")
ceil = _unary("ceil")
conj = _unary("conj", _C.conj_physical)  # other libraries read the bytes
copysign = _binary("copysign")
cos = _unary("cos")
cosh = _unary("cosh")
divide = _binary("divide")
equal = _binary("equal", _C.eq)
exp = _unary("exp")
expm1 = _unary("expm1", _expm1)
floor = _unary("floor")
floor_divide = _binary("floor_divide", _floor_divide)
greater = _binary("greater")
greater_equal = _binary("greater_equal")
hypot = _binary("hypot")
imag = _unary("imag")
isfinite = _unary("isfinite")
isinf = _unary("isinf")
isnan = _unary("isnan")
less = _binary("less")
less_equal = _binary("less_equal")
log = _unary("log")
log10 = _unary("log10")
log1p = _unary("log1p")
log2 = _unary("log2")
logaddexp = _binary("logaddexp")
logical_and = _binary("logical_and")
logical_not = _unary("logical_not")
logical_or = _binary("logical_or")
logical_xor = _binary("logical_xor")
maximum = _binary("maximum")
minimum = _binary("minimum")
multiply = _binary("multiply")
negative = _unary("negative")
nextafter = _binary("nextafter")
not_equal = _binary("not_equal")
positive = _unary("positive")
pow = _binary("pow")
real = _unary("real")
reciprocal = _unary("reciprocal")
remainder = _binary("remainder")
round = _unary("round", _round)
sign = _unary("sign", _C.sgn)
signbit = _unary("signbit")
sin = _unary("sin")
sinh = _unary("sinh")
sqrt = _unary("sqrt")
square = _unary("square")
subtract = _binary("subtract", _by_parts(_C.subtract))
tan = _unary("tan")
tanh = _unary("tanh", _tanh)
trunc = _unary("trunc")


def clip(x: Tensor, /, min: Optional[Array] = None, max: Optional[Array] = None) -> Tensor:
    """`x` where it lies between the limits, else the limit; of the dtype of `x`."""

    def limit(value: Optional[Array]) -> Optional[Tensor]:
        if value is None or isinstance(value, Tensor):
            return None if value is None else value.to(x.dtype)
        return _C.tensor(value, dtype=x.dtype, device=x.device)

    if min is None and max is None:
        return x.clone()
    return _C.clip(x, limit(min), limit(max))

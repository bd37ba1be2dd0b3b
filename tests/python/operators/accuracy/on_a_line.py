"""References of the functions of one number."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Mapping

import numpy as np
from scipy import special as sp

from treadle_testing.ulps import Wide

from .references import INF, NAN, PI, Reference, by_mpmath, mp, wide


def sigmoid(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def _sinc(x: Any) -> Any:
    whole = np.round(x)
    sine = np.sin(PI * (x - whole)) * np.where(np.fmod(whole, 2) == 0, 1, -1)
    return np.where(x == 0, 1, np.where(np.isinf(x), 0, sine / (PI * x)))


def softplus(x: Any) -> Any:
    return np.where(x > 20, x, np.log1p(np.exp(x)))


def _log_sigmoid(x: Any) -> Any:
    rest = -np.log1p(np.exp(-np.abs(x)))
    return np.where(x > 0, rest, x + rest)


def _selu(x: Any) -> Any:
    alpha, scale = Wide("1.6732632423543772848"), Wide("1.0507009873554804934")
    return np.where(x > 0, x * scale, np.expm1(x) * alpha * scale)


def _entr(x: Any) -> Any:
    inner = np.where(x > 0, -x * np.log(np.abs(x)), np.where(x == 0, 0, -np.inf))
    return np.where(np.isnan(x), x, inner)


def _gelu_tanh(x: Any) -> Any:
    return x * sigmoid(2 * np.sqrt(2 / PI) * (x + Wide("0.044715") * x * x * x))


def _lgamma_ends(x: float) -> float:
    return x if np.isnan(x) else 0 if x in (1, 2) else INF


def _digamma_ends(x: float) -> float:
    if x == 0:
        return -np.copysign(INF, x)
    return INF if x == INF else NAN


def _erfinv(y: Any) -> Any:
    if y < 0:
        return -_erfinv(-y)
    x = mp.mpf(float(sp.erfinv(float(y))))
    for _ in range(3):
        off = (1 - y) - mp.erfc(x) if y > 0.5 else mp.erf(x) - y
        x -= off * mp.sqrt(mp.pi) / 2 * mp.exp(x * x)
    return x


def _ndtr(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _log_ndtr(x: Any) -> Any:
    if x > 0:
        return mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2)
    if x < -1e4:  # the asymptotic series
        z = 1 / (x * x)
        return -x * x / 2 - mp.log(-x * mp.sqrt(2 * mp.pi)) + mp.log1p(-z + 3 * z * z - 15 * z**3)
    return mp.log(_ndtr(x))


def _ndtri(p: Any) -> Any:
    x = mp.mpf(float(sp.ndtri(float(p))))
    for _ in range(3):
        x -= (_ndtr(x) - p) * mp.exp(x * x / 2) * mp.sqrt(2 * mp.pi)
    return x


def _erfcx(x: Any) -> Any:
    if x > 1e4:  # the asymptotic series
        z = 1 / (2 * x * x)
        return (1 - z + 3 * z * z - 15 * z**3) / (x * mp.sqrt(mp.pi))
    return mp.exp(x * x) * mp.erfc(x)


def _i(order: int, scaled: bool = False) -> Callable[[Any], Any]:
    return lambda x: mp.besseli(order, x) * (mp.exp(-abs(x)) if scaled else 1)


def _i_ends(order: int) -> Callable[[float], float]:
    """Zero, and where it overflows."""

    def ends(x: float) -> float:
        if x == 0 or np.isnan(x):
            return x if order else 1 + x
        return np.copysign(INF, x) if order else INF

    return ends


def _k(order: int, scaled: bool) -> Callable[[Any], Any]:
    return lambda x: mp.besselk(order, x) * (mp.exp(x) if scaled else 1)


def _jy(order: int, second: bool) -> Callable[[Any], Any]:
    """Bessel's functions; beyond 100 by Hankel's asymptotic series, whose sines have any number of
    digits.
    """

    def f(x: Any) -> Any:
        if abs(x) < 100:
            return (mp.bessely if second else mp.besselj)(order, x)
        size, sums, term, k = abs(x), [mp.mpf(0), mp.mpf(0)], mp.mpf(1), 0
        while abs(term) > 1e-36:
            sums[k % 2] += term if k % 4 < 2 else -term
            k += 1
            term *= (4 * order**2 - (2 * k - 1) ** 2) / (8 * k * size)
        late = mp.pi * (2 * order + 1) / 4
        s = mp.sin(size) * mp.cos(late) - mp.cos(size) * mp.sin(late)
        c = mp.cos(size) * mp.cos(late) + mp.sin(size) * mp.sin(late)
        sum_ = sums[0] * s + sums[1] * c if second else sums[0] * c - sums[1] * s
        value = mp.sqrt(2 / (mp.pi * size)) * sum_
        return -value if x < 0 and order else value

    return f


def _y_ends(x: float) -> float:
    return -INF if x == 0 else 0 if x == INF else NAN


def _positive(x: float) -> bool:
    return x > 0


def _airy(x: Any) -> Any:
    with mp.workdps(60):
        return mp.airyai(x)


def _below(limit: float) -> Callable[[float], bool]:
    return lambda x: abs(x) < limit


def _special(
    f: Callable, quick: Callable, inside: Callable[[float], bool] | None = None, **settings: Any
) -> Reference:
    def ends(x: float) -> float:
        y = quick(x)
        return x if x == 0 and y == 0 else y  # the zero of an odd function has its sign

    return Reference(by_mpmath(f, ends, inside or _below(1e300)), quick, **settings)


def _c_library(f: Callable, *places: float) -> Reference:
    return Reference(wide(f), by_c_library=True, places=(0.0, 1.0, -1.0, *places))


HALF_TURNS = tuple(float(np.pi) / 2 * k for k in (1, 2, 3, 4, 100, 6000, 7000, 70000))
I_PLACES = (0.0, 8.0, -8.0, 91.0, 713.0)
J_ZEROS = (*sp.jn_zeros(0, 3), *sp.jn_zeros(1, 3), 50.0, 1e5)
Y_ZEROS = (*sp.yn_zeros(0, 3), *sp.yn_zeros(1, 3), 50.0, 1e5)
LGAMMA_PLACES = (0.0, 1.0, 2.0, -1.0, -2.0, -3.0, -10.0, -2.4570247382208006, -2.7476826467274127)
PSI_PLACES = (0.0, 1.0, -1.0, -2.0, -10.0, 1.4616321449683623, -0.504083008264455)

_FUNCTIONS: Mapping[str, Reference] = {
    "sqrt": _c_library(np.sqrt),
    "reciprocal": _c_library(lambda x: 1 / x),
    "rsqrt": _c_library(lambda x: 1 / np.sqrt(x)),
    "exp": _c_library(np.exp, 88.72, 709.78, -87.33, -708.39, -103.97, -745.13),
    "exp2": _c_library(np.exp2, 128, 1024, -126, -1022, -149, -1074),
    "expm1": _c_library(np.expm1, 88.72, 709.78, -17.5, -37.5),
    "log": _c_library(np.log),
    "log2": _c_library(np.log2, 2, 4),
    "log10": _c_library(np.log10, 10, 1000),
    "log1p": _c_library(np.log1p),
    "sin": _c_library(np.sin, *HALF_TURNS),
    "cos": _c_library(np.cos, *HALF_TURNS),
    "tan": _c_library(np.tan, *HALF_TURNS),
    "asin": _c_library(np.arcsin, 0.5, -0.5),
    "acos": _c_library(np.arccos, 0.5, -0.5),
    "atan": _c_library(np.arctan),
    "sinh": _c_library(np.sinh, 89.4, 710.4),
    "cosh": _c_library(np.cosh, 89.4, 710.4),
    "tanh": _c_library(np.tanh, 0.625, -0.625, 9, 19),
    "asinh": _c_library(np.arcsinh),
    "acosh": _c_library(np.arccosh),
    "atanh": _c_library(np.arctanh),
    "sigmoid": _c_library(sigmoid, -88, -104, -709, -745),
    "silu": _c_library(lambda x: x * sigmoid(x), -88, -104, -709, -745),
    "elu": _c_library(lambda x: np.where(x > 0, x, np.expm1(x))),
    "softplus": _c_library(softplus, 20, -88, -745),
    "_gelu_tanh": _c_library(_gelu_tanh, -3, -5, -10),
    "sinc": _c_library(_sinc, 2, 100, -3.5),
    "special_entr": _c_library(_entr),
    "_angle": _c_library(lambda x: np.where(np.isnan(x), x, np.where(x < 0, PI, 0))),
    "log_sigmoid": _c_library(_log_sigmoid, -20, -40),
    "mish": _c_library(lambda x: x * np.tanh(softplus(x)), -1.19, 20, -88, -745),
    "selu": _c_library(_selu),
    "celu": _c_library(lambda x: np.where(x > 0, x, np.expm1(x))),
    "logit": _c_library(lambda x: np.log(x / (1 - x)), 0.5),
    "erf": _special(mp.erf, sp.erf, _below(1e3)),
    "erfc": _special(mp.erfc, sp.erfc, _below(1e3), places=(0.0, 9.2, 10.05, 26.5, 27.2)),
    "erfinv": _special(_erfinv, sp.erfinv, lambda y: abs(y) < 1, slow=2, reaches=(1.0,)),
    "lgamma": Reference(
        by_mpmath(lambda x: mp.re(mp.loggamma(x)), _lgamma_ends), sp.gammaln, places=LGAMMA_PLACES
    ),
    "digamma": Reference(by_mpmath(mp.digamma, _digamma_ends), sp.digamma, places=PSI_PLACES),
    "_gelu": _special(
        lambda x: x * _ndtr(x), lambda x: x * sp.ndtr(x), _below(1e3), places=(0.0, -5.0, -12.0)
    ),
    "i0": Reference(by_mpmath(_i(0), _i_ends(0), _below(800)), sp.i0, 3, places=I_PLACES),
    "special_i1": Reference(by_mpmath(_i(1), _i_ends(1), _below(800)), sp.i1, 3, places=I_PLACES),
    "special_i0e": _special(_i(0, True), sp.i0e, places=(0.0, 8.0), slow=6),
    "special_i1e": _special(_i(1, True), sp.i1e, places=(0.0, 8.0), slow=2),
    "special_bessel_j0": Reference(
        by_mpmath(_jy(0, False), lambda x: 0 if np.isinf(x) else 1 + x), slow=2, places=J_ZEROS
    ),
    "special_bessel_j1": Reference(
        by_mpmath(_jy(1, False), lambda x: np.copysign(0, x) if np.isinf(x) else x),
        slow=2,
        places=J_ZEROS,
    ),
    "special_bessel_y0": Reference(
        by_mpmath(_jy(0, True), _y_ends, _positive), slow=4, places=Y_ZEROS
    ),
    "special_bessel_y1": Reference(
        by_mpmath(_jy(1, True), _y_ends, _positive), slow=4, places=Y_ZEROS
    ),
    **{
        f"special_{'scaled_' if scaled else ''}modified_bessel_k{order}": _special(
            _k(order, scaled),
            quick,
            lambda x, scaled=scaled: 0 < x < (1e300 if scaled else 800),
            slow=8,
            places=(0.0, 1.0, 2.0),
        )
        for order, scaled, quick in ((0, 0, sp.k0), (1, 0, sp.k1), (0, 1, sp.k0e), (1, 1, sp.k1e))
    },
    "special_spherical_bessel_j0": _special(
        lambda x: mp.sin(x) / x, lambda x: sp.spherical_jn(0, x), places=HALF_TURNS
    ),
    "special_airy_ai": Reference(
        by_mpmath(_airy, lambda x: x if np.isnan(x) else 0, lambda x: -1e10 < x < 120),
        slow=2,
        places=(*sp.ai_zeros(3)[0], -11.0, 10.0),
    ),
    "special_erfcx": _special(_erfcx, sp.erfcx, lambda x: -30 < x < 1e300),
    "special_ndtr": _special(_ndtr, sp.ndtr, _below(1e3)),
    "special_log_ndtr": _special(_log_ndtr, sp.log_ndtr, lambda x: -1e150 < x < 1e3),
    "special_ndtri": _special(
        _ndtri, sp.ndtri, lambda p: 0 < p < 1, slow=2, places=(0.0, 0.2, 0.5, 1.0), reaches=(1.0,)
    ),
}

ON_A_LINE: Mapping[str, Reference] = {
    **_FUNCTIONS,
    "special_modified_bessel_i0": _FUNCTIONS["i0"],
    "special_modified_bessel_i1": _FUNCTIONS["special_i1"],
}

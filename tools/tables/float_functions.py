"""The coefficients in aten/scalar/float_tables.h: polynomials for functions of floats, computed
with 30 digits and rounded once. Most of them are evaluated in double.

    .venv/bin/python tools/tables/float_functions.py > aten/scalar/float_tables.h

Each polynomial is given for Horner's rule, the highest power first. Most agree with their function
at Chebyshev's points of the range, so their error is nearly the smallest of their degree. Those of
functions that decay have the smallest relative error of their degree.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from itertools import groupby
from typing import Callable

import mpmath as mp

mp.mp.dps = 30
Function = Callable[[mp.mpf], mp.mpf]


def fit(f: Function, low: float, high: float, degree: int) -> list[mp.mpf]:
    """The polynomial's coefficients, the highest power first."""
    count = degree + 1
    middle, half = (mp.mpf(high) + mp.mpf(low)) / 2, (mp.mpf(high) - mp.mpf(low)) / 2
    xs = [middle + half * mp.cos(mp.pi * (2 * k + 1) / (2 * count)) for k in range(count)]
    table = [f(x) for x in xs]
    for level in range(1, count):  # divided differences
        for k in range(count - 1, level - 1, -1):
            table[k] = (table[k] - table[k - 1]) / (xs[k] - xs[k - level])
    powers = [mp.mpf(0)]
    for x, value in zip(reversed(xs), reversed(table)):
        shifted = powers + [mp.mpf(0)]
        for k, c in enumerate(powers):
            shifted[k + 1] -= x * c
        shifted[-1] += value
        powers = shifted
    return powers[-count:]


def fit_relative(f: Function, low: float, high: float, degree: int) -> list[mp.mpf]:
    """The coefficients, by Remez's exchange, of the polynomial with the smallest relative error."""
    count, last = degree + 2, 1500
    middle, half = (mp.mpf(high) + mp.mpf(low)) / 2, (mp.mpf(high) - mp.mpf(low)) / 2
    ts = [-mp.cos(mp.pi * i / last) for i in range(last + 1)]
    values = [f(middle + half * t) for t in ts]
    chosen = [round(i * last / (count - 1)) for i in range(count)]
    for _ in range(12):
        # The error has one size and its sign changes from point to point.
        rows = [
            [ts[k] ** p / values[k] for p in range(degree + 1)] + [(-1) ** i]
            for i, k in enumerate(chosen)
        ]
        *powers, size = mp.lu_solve(mp.matrix(rows), mp.ones(count, 1))
        powers.reverse()
        errors = [mp.polyval(powers, t) / y - 1 for t, y in zip(ts, values)]
        runs = groupby(range(last + 1), key=lambda k: errors[k] > 0)
        chosen = [max(run, key=lambda k: abs(errors[k])) for _, run in runs]
        while len(chosen) > count:
            ends = chosen[0], chosen[-1]
            chosen.pop(0 if abs(errors[ends[0]]) < abs(errors[ends[1]]) else -1)
        if max(map(abs, errors)) < 1.01 * abs(size):
            return shifted(powers, -middle / half, 1 / half)
    raise ValueError("Remez's exchange does not converge")


def shifted(powers: list[mp.mpf], offset: mp.mpf, scale: mp.mpf = mp.mpf(1)) -> list[mp.mpf]:
    """The coefficients of p(scale x + offset)."""
    result: list[mp.mpf] = []
    for c in powers:
        above = [scale * v for v in result] + [mp.mpf(0)]
        for k, v in enumerate(result):
            above[k + 1] += offset * v
        above[-1] += c
        result = above
    return result


def show(
    name: str,
    comment: str,
    f: Function,
    low: float,
    high: float,
    degree: int,
    of: str = "double",
) -> None:
    with mp.workdps(60):
        values = fit(f, low, high, degree)
    write(name, comment, values, of)


def write(name: str, comment: str, values: list[mp.mpf], of: str = "double") -> None:
    digits, end = (17, "") if of == "double" else (9, "f")
    print(f"\n// {comment}")
    print(f"inline constexpr {of} {name}[] = {{")
    line = "   "
    for i, v in enumerate(values):
        word = " " + mp.nstr(v, digits, strip_zeros=False, min_fixed=0, max_fixed=0)
        word += end + ("," if i + 1 < len(values) else "")
        if len(line) + len(word) > 98:
            print(line)
            line = "   "
        line += word
    print(line + "};")


def elementary() -> None:
    show(
        "kExp2",
        "(2^x - 1) / x by x, |x| <= 1/2",
        lambda x: (mp.power(2, x) - 1) / x,
        -0.5,
        0.5,
        5,
        "float",
    )
    quarter = float(mp.pi / 4) ** 2 * 1.0001
    show(
        "kSine",
        "sin(x) / x by x^2, |x| <= pi / 4",
        lambda z: mp.sin(mp.sqrt(z)) / mp.sqrt(z),
        0,
        quarter,
        4,
    )
    show("kCosine", "cos(x) by x^2, |x| <= pi / 4", lambda z: mp.cos(mp.sqrt(z)), 0, quarter, 4)
    show(
        "kArctangent",
        "atan(x) / x by x^2, |x| <= 1",
        lambda z: mp.atan(mp.sqrt(z)) / mp.sqrt(z),
        0,
        1,
        11,
    )
    show(
        "kLog2",
        "log2((1 + x) / (1 - x)) / x by x^2, |x| <= 3 - sqrt(8)",
        lambda z: 2 * mp.atanh(mp.sqrt(z)) / (mp.sqrt(z) * mp.log(2)),
        0,
        float(3 - mp.sqrt(8)) ** 2,
        5,
    )


def error_function() -> None:
    show(
        "kErfSmallFloat",
        "erf(x) / x - 1 by x^2 - 25 / 32, |x| <= 5 / 4",
        lambda t: mp.erf(mp.sqrt(t + 0.78125)) / mp.sqrt(t + 0.78125) - 1,
        -0.78125,
        0.78125,
        7,
        "float",
    )
    show(
        "kErfcLog2",
        "log2(erfc(x)) by x, 5 / 4 <= x <= 4",
        lambda x: mp.log(mp.erfc(x), 2),
        1.25,
        4,
        8,
        "float",
    )

    def inverse(w: mp.mpf) -> mp.mpf:  # w = -log(1 - x^2)
        x = mp.sqrt(-mp.expm1(-w))
        return mp.erfinv(x) / x

    def scaled(t: mp.mpf) -> mp.mpf:  # t = (x - 3) / (x + 3)
        x = 3 * (1 + t) / (1 - t)
        return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)

    show(
        "kErfcxFloat",
        "(1 + 2x) exp(x^2) erfc(x) by (x - 3) / (x + 3), x >= 0",
        scaled,
        -1,
        1,
        13,
    )
    with mp.workdps(60):
        central = fit(inverse, 0, 6, 13)
    what = "erfinv(x) / x by w = -log(1 - x^2), w <= 6: the even powers"
    write("kErfinvEven", what, central[1::2])
    write("kErfinvOdd", "The odd powers", central[::2])
    show(
        "kErfinvTail",
        "erfinv(x) / x by sqrt(w) - 3, 6 <= w <= 18",
        lambda v: inverse((v + 3) ** 2),
        float(mp.sqrt(6)) - 3,
        float(mp.sqrt(18)) - 3,
        12,
    )


def normal_distribution() -> None:
    def tail(x: mp.mpf) -> mp.mpf:
        return mp.erfc(x / mp.sqrt(2)) / 2

    def density(square: mp.mpf) -> mp.mpf:
        return mp.exp(-square / 2) / mp.sqrt(2 * mp.pi)

    # About a point near the end, where the value is smallest, so that no large terms cancel there.
    root = fit_relative(lambda x: mp.sqrt(tail(x)), 0, 3.125, 11)
    what = "The square root of ndtr(-x) by x - 11 / 4, 0 <= x <= 25 / 8"
    write("kNormalTailRootFloat", what, shifted(root, mp.mpf(2.75)), "float")
    # Where the density is added, the digits near 0 matter more.
    near = shifted(fit_relative(tail, 0, 3, 13), mp.mpf(1.5))
    write("kNormalTailFloat", "ndtr(-x) by x - 3 / 2, 0 <= x <= 3", near, "float")
    root = fit_relative(lambda z: mp.sqrt(density(z)), 0, 9, 8)
    what = "The square root of the normal density at x by x^2 - 9 / 2, 0 <= x <= 3"
    write("kNormalDensityRoot", what, shifted(root, mp.mpf(4.5)), "float")
    what = "x exp(x^2 / 2) ndtr(-x) by 1 / x, 3 <= x <= 15"

    def ratio(v: mp.mpf) -> mp.mpf:
        return tail(1 / v) / v * mp.exp(1 / (2 * v * v))

    write("kNormalRatio", what, fit_relative(ratio, 1 / 15, 1 / 3, 7), "float")
    root = fit_relative(lambda x: mp.root(tail(x), 8), 0, 5, 14)
    write("kNormalTailRoot", "The eighth root of ndtr(-x) by x, 0 <= x <= 5", root)


def gamma() -> None:
    show(
        "kLogGamma",
        "log(gamma(x + 2)) / (x (x + 1)) by x, |x| <= 1",
        lambda x: mp.loggamma(x + 2) / (x * (x + 1)),
        -1,
        1,
        15,
    )

    def rest(z: mp.mpf) -> mp.mpf:  # z = 1 / x^2
        x = 1 / mp.sqrt(z)
        return (mp.loggamma(x) - (x - 0.5) * mp.log(x) + x - mp.log(2 * mp.pi) / 2) * x

    show(
        "kStirling",
        "x (log(gamma(x)) - (x - 1/2) log(x) + x - log(2 pi) / 2) by 1 / x^2, x >= 3",
        rest,
        0,
        1 / 9,
        6,
    )

    show(
        "kSinePi",
        "sin(pi x) / x by x^2, |x| <= 1 / 2",
        lambda z: mp.sin(mp.pi * mp.sqrt(z)) / mp.sqrt(z),
        0,
        0.25,
        5,
    )

    def slope(z: mp.mpf) -> mp.mpf:
        x = 1 / mp.sqrt(z)
        return (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) / z

    show(
        "kDigamma",
        "x^2 (log(x) - 1 / (2 x) - digamma(x)) by 1 / x^2, x >= 6",
        slope,
        0,
        1 / 36,
        4,
    )


def bessel() -> None:
    def root(f: Function) -> Function:  # f of x by t = x^2 / 32 - 1
        return lambda t: f(mp.sqrt(32 * (t + 1)))

    for n in (0, 1):
        over = "" if n == 0 else " / x"

        def j(x: mp.mpf, n: int = n) -> mp.mpf:
            return mp.besselj(n, x) / x**n

        def y(x: mp.mpf, n: int = n) -> mp.mpf:
            part = mp.bessely(n, x) - 2 / mp.pi * mp.log(x) * mp.besselj(n, x)
            return part if n == 0 else (part + 2 / (mp.pi * x)) / x

        def modulus(z: mp.mpf, part: int, n: int = n) -> mp.mpf:  # z = 64 / x^2
            x = 8 / mp.sqrt(z)
            angle = x - mp.pi * (2 * n + 1) / 4
            c, s = mp.cos(angle), mp.sin(angle)
            first, second = mp.besselj(n, x), mp.bessely(n, x)
            scale = mp.sqrt(mp.pi * x / 2)
            return scale * (first * c + second * s if part == 0 else (second * c - first * s) * x)

        rest = "(Y1(x) - 2 / pi (log(x) J1(x) - 1 / x)) / x"
        if n == 0:
            rest = "Y0(x) - 2 / pi log(x) J0(x)"
        show(f"kJ{n}Small", f"J{n}(x){over} by x^2 / 32 - 1, |x| <= 8", root(j), -1, 1, 12)
        show(
            f"kY{n}Small",
            f"{rest} by x^2 / 32 - 1, 0 < x <= 8",
            root(y),
            -1,
            1,
            12,
        )
        show(
            f"kP{n}Large",
            f"The part of J{n}(x) sqrt(pi x / 2) with the cosine of its phase, by 64 / x^2, x >= 8",
            lambda z, m=modulus: m(z, 0),
            0,
            1,
            5,
        )
        show(
            f"kQ{n}Large",
            "x times the part with the sine",
            lambda z, m=modulus: m(z, 1),
            0,
            1,
            5,
        )

    for n in (0, 1):
        over = "" if n == 0 else " / x"

        def i(z: mp.mpf, n: int = n) -> mp.mpf:  # z = x^2
            return mp.besseli(n, mp.sqrt(z)) / mp.sqrt(z) ** n

        def near(z: mp.mpf, n: int = n) -> mp.mpf:
            x = mp.sqrt(z)
            logarithm = mp.log(x / 2) * mp.besseli(n, x)
            value = mp.besselk(n, x)
            return value + logarithm if n == 0 else x * (value - logarithm)

        def far(t: mp.mpf, n: int = n) -> mp.mpf:  # t = 4 / x - 1
            x = 4 / (t + 1)
            return mp.exp(x) * mp.sqrt(x) * mp.besselk(n, x)

        what = "K0(x) + log(x / 2) I0(x)" if n == 0 else "x (K1(x) - log(x / 2) I1(x))"
        show(f"kI{n}Near", f"I{n}(x){over} by x^2, x <= 2", i, 0, 4, 6)
        show(f"kK{n}Near", f"{what} by x^2, x <= 2", near, 0, 4, 7)
        show(f"kK{n}Far", f"exp(x) sqrt(x) K{n}(x) by 4 / x - 1, x >= 2", far, -1, 1, 11)


def main() -> None:
    print("// Polynomials for functions of floats, which the headers *-inl.h evaluate.")
    print("//")
    print("// Generated by tools/tables/float_functions.py; do not edit.")
    print("//")
    print("// SPDX-License-Identifier: Apache-2.0")
    print("#pragma once\n")
    print("namespace treadle::simd::tables {")
    elementary()
    error_function()
    normal_distribution()
    gamma()
    bessel()
    print("\n}  // namespace treadle::simd::tables")


if __name__ == "__main__":
    main()

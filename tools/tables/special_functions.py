"""The coefficients in aten/scalar/special_tables.h: expansions of special functions, computed
with 50 digits and rounded once.

    .venv/bin/python tools/tables/special_functions.py > aten/scalar/special_tables.h

A Chebyshev series is given for Clenshaw's recurrence, the highest term first; what lies below 2^-56
of the function is cut off. A polynomial is given for Horner's rule, the highest power first.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Callable

import mpmath as mp

mp.mp.dps = 50
Function = Callable[[mp.mpf], mp.mpf]
CUT = mp.mpf(2) ** -57


def chebyshev(f: Function, nodes: int = 64) -> list[mp.mpf]:
    """The Chebyshev coefficients of f on [-1, 1], the first one halved, up to the cut."""
    xs = [mp.cos(mp.pi * (k + mp.mpf(1) / 2) / nodes) for k in range(nodes)]
    values = [f(x) for x in xs]
    found = [
        2
        * mp.fsum(v * mp.cos(mp.pi * j * (k + mp.mpf(1) / 2) / nodes) for k, v in enumerate(values))
        / nodes
        for j in range(nodes)
    ]
    found[0] /= 2
    smallest = min(abs(v) for v in values)
    while len(found) > 1 and abs(found[-1]) < CUT * smallest:
        found.pop()
    return found


def monomials(coefficients: list[mp.mpf]) -> list[mp.mpf]:
    """The same polynomial in powers, the lowest first."""
    previous, current = [mp.mpf(1)], [mp.mpf(0), mp.mpf(1)]
    total = [mp.mpf(0)] * max(2, len(coefficients))
    for n, c in enumerate(coefficients):
        t = previous if n == 0 else current
        for i, a in enumerate(t):
            total[i] += c * a
        if n > 0:
            following = [mp.mpf(0)] + [2 * a for a in current]
            for i, a in enumerate(previous):
                following[i] -= a
            previous, current = current, following
    return total


def on(low: float, high: float, f: Function) -> Function:
    """f over [low, high], as a function of [-1, 1]."""
    return lambda y: f(low + (high - low) * (y + 1) / 2)


def show(name: str, comment: str, values: list[mp.mpf]) -> None:
    print(f"\n// {comment}")
    print(f"inline constexpr double {name}[] = {{")
    line = "   "
    for i, v in enumerate(values):
        word = " " + mp.nstr(v, 20, strip_zeros=False, min_fixed=0, max_fixed=0)
        word += "," if i + 1 < len(values) else ""
        if len(line) + len(word) > 100:
            print(line)
            line = "   "
        line += word
    print(line + "};")


def show_series(name: str, comment: str, f: Function) -> None:
    show(name, comment, chebyshev(f)[::-1])


def bessel() -> None:
    for order in (0, 1):

        def small(x: mp.mpf, order: int = order) -> mp.mpf:
            value = mp.exp(-x) * mp.besseli(order, x)
            return value if order == 0 else mp.mpf(1) / 2 if x == 0 else value / x

        def large(y: mp.mpf, order: int = order) -> mp.mpf:  # y = 16 / x - 1
            x = 16 / (y + 1)
            return mp.exp(-x) * mp.sqrt(x) * mp.besseli(order, x)

        over = "" if order == 0 else " / x"
        show_series(
            f"kI{order}Small",
            f"exp(-x) I{order}(x){over} by x / 4 - 1, x in [0, 8]",
            on(0, 8, small),
        )
        show_series(f"kI{order}Large", f"exp(-x) sqrt(x) I{order}(x) by 16 / x - 1, x >= 8", large)
    for order in (0, 1):

        def near(z: mp.mpf, order: int = order) -> mp.mpf:  # z = x * x
            if z == 0:
                return -mp.euler if order == 0 else mp.mpf(1)
            x = mp.sqrt(z)
            logarithm = mp.log(x / 2) * mp.besseli(order, x)
            value = mp.besselk(order, x)
            return value + logarithm if order == 0 else x * (value - logarithm)

        def far(y: mp.mpf, order: int = order) -> mp.mpf:  # y = 4 / x - 1
            x = 4 / (y + 1)
            return mp.exp(x) * mp.sqrt(x) * mp.besselk(order, x)

        what = "K0(x) + log(x / 2) I0(x)" if order == 0 else "x (K1(x) - log(x / 2) I1(x))"
        show_series(f"kK{order}Small", f"{what} by x^2 / 2 - 1, x in [0, 2]", on(0, 4, near))
        show_series(f"kK{order}Large", f"exp(x) sqrt(x) K{order}(x) by 4 / x - 1, x >= 2", far)


def error_function() -> None:
    middle = mp.mpf(4)

    def scaled(y: mp.mpf) -> mp.mpf:  # y = (x - 4) / (x + 4)
        x = middle * (1 + y) / (1 - y)
        return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)

    powers = monomials(chebyshev(scaled))
    show("kErfcx", "(1 + 2x) exp(x^2) erfc(x) by powers of (x - 4) / (x + 4), x >= 0", powers[::-1])

    series = [2 / mp.sqrt(mp.pi) * (-1) ** k / (mp.factorial(k) * (2 * k + 1)) for k in range(19)]
    show("kErfSmall", "erf(x) / x by powers of x^2, |x| <= 1", series[::-1])


def airy() -> None:
    print("\n// Ai and its derivative at -11, -10.5, ..., 10.")
    print("inline constexpr double kAiry[][2] = {")
    for i in range(43):
        x = mp.mpf(i - 22) / 2
        pair = [mp.nstr(mp.airyai(x, derivative=d), 20) for d in (0, 1)]
        print(f"    {{{pair[0]}, {pair[1]}}}" + ("," if i < 42 else "};"))
    u = [mp.mpf(1)]
    for k in range(1, 24):
        u.append(u[-1] * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216 * k * (2 * k - 1)))
    show(
        "kAiryAsymptotic",
        "Ai(x) for large x: by powers of 1 / zeta, signs left out, the lowest first",
        u,
    )


def gamma() -> None:
    bernoulli = [mp.bernoulli(2 * k) for k in range(1, 13)]
    factors = [b / mp.factorial(2 * k) for k, b in enumerate(bernoulli, 1)]
    show("kEulerMaclaurin", "B2 / 2!, B4 / 4!, ..., of Bernoulli's numbers", factors)
    series = [-mp.euler] + [(-1) ** k * mp.zeta(k) / k for k in range(2, 26)]
    show("kLogGamma1p", "log(gamma(1 + x)) / x by powers of x, |x| <= 0.2", series[::-1])
    # Temme's expansion of the incomplete gamma function in eta, by rows of powers of 1 / a.
    # eta^2 / 2 = mu - log(1 + mu); the coefficients of mu in powers of eta come from
    # mu mu' = eta (1 + mu).
    terms = 64
    alpha = [mp.mpf(0), mp.mpf(1), mp.mpf(1) / 3]
    for n in range(3, terms + 2):
        inner = mp.fsum(alpha[k] * (n + 1 - k) * alpha[n + 1 - k] for k in range(2, n))
        alpha.append((alpha[n - 1] - inner) / (n + 1))
    # c_0 = 1 / mu - 1 / eta; c_k = c_{k-1}' / eta + gamma_k / mu, the poles of which cancel.
    mu_over_eta = alpha[1 : terms + 1]
    inverse = [mp.mpf(1)]
    for n in range(1, terms):
        inverse.append(-mp.fsum(mu_over_eta[k] * inverse[n - k] for k in range(1, n + 1)))
    row = inverse[1:]
    rows = [row]
    for _ in range(9):
        derivative = [(i + 1) * row[i + 1] for i in range(len(row) - 1)]
        pole = -derivative[0]
        row = [
            derivative[i + 1] + pole * inverse[i + 1]
            for i in range(min(len(derivative), len(inverse)) - 1)
        ]
        rows.append(row)
    print(
        "\n// Temme's expansion of the incomplete gamma functions: the power of 1 / a is the row,"
    )
    print("// the columns go by powers of eta, the lowest first.")
    print("inline constexpr double kTemme[10][26] = {")
    for i, row in enumerate(rows):
        text = ", ".join(mp.nstr(v, 20) for v in row[:26])
        print("    {" + text + "}" + ("," if i < 9 else "};"))


def main() -> None:
    print("// Expansions of special functions, which special_*.h evaluate.")
    print("//")
    print("// Generated by tools/tables/special_functions.py; do not edit.")
    print("#pragma once\n")
    print("namespace treadle::simd::tables {")
    bessel()
    error_function()
    airy()
    gamma()
    print("\n}  // namespace treadle::simd::tables")


if __name__ == "__main__":
    main()

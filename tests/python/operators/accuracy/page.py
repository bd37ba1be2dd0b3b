"""docs/accuracy.md: the table of bounds and what was measured. After a change of either:

Usage:

    ./dev python tests/python/operators/accuracy/write_page.py
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re
from typing import Mapping

from source_tree import ROOT

from .bounds import BOUNDS, OF_16_BITS, Bound
from .measure import COMPLEX, measure
from .sums import BOUND, COUNTS, OTHERS, SUMS, error

PAGE = ROOT / "docs" / "accuracy.md"
REAL = ("float32", "float64")


def name(operator: str) -> str:
    """The operator's name in Python."""
    shown = {"_gelu": "gelu", "_gelu_tanh": "gelu(approximate='tanh')", "_angle": "angle"}
    return shown.get(operator, re.sub("^special_", "special.", operator))


def _rows(types: tuple[str, str], measured: dict[tuple[str, str], float]) -> str:
    lines = [
        f"| function | {types[0]} | measured | {types[1]} | measured | in ULP of | where |",
        "|---|---|---|---|---|---|---|",
    ]
    for operator, bound in BOUNDS.items():
        if bound.of(types[0]) is None:
            continue
        cells = [name(operator)]
        for dtype in types:
            cells += [f"{bound.of(dtype):g}", f"{measured[operator, dtype]:.2g}"]
        unit = bound.unit_of(types[0])
        cells += ["f" if unit is None else unit.text, bound.range]
        lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    return "\n".join(lines)


def _sum_rows(measured: dict[tuple[str, str], float]) -> str:
    lines = ["| kernel | 10⁶ terms | measured | 10⁷ terms | measured |", "|---|---|---|---|---|"]
    for kernel in SUMS:
        cells = [kernel]
        for count in COUNTS:
            cells += [f"{BOUND:.0e}", f"{measured[kernel, str(count)]:.1e}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def render(measured: dict[tuple[str, str], float]) -> str:
    return f"""# Accuracy: how far from the exact value a function may be

Errors are counted in units in the last place (ULP). One ULP is the spacing of the type's numbers at
the exact value f. The table names another size where f is no measure: at a zero that is not exact,
and far out, where the slope magnifies the rounding of an intermediate number. A correctly rounded
result is within 0.5.

The bounds hold for every number of the range. For most functions the range is the whole line or
plane: all exponents, denormal numbers, both zeros, infinities and NaN. Results at infinities, poles
and NaN are exact. The bounds hold with every set of vector instructions; `measured` is the largest
error that `tests/python/operators/test_accuracy.py` found with one of them. The references are
long doubles of the C library, and mpmath.

The test reads the bounds of functions from `aten/scalar/functions.yaml`, and those of operators
that are composed of several from `tests/python/operators/accuracy/bounds.py`. It fails if an
operator exceeds its bound or has none, or if this page differs from the bounds.
`./dev python tests/python/operators/accuracy/write_page.py` writes the page.

x is the first argument and y the second. For polynomials, y is the degree.

## float32 and float64

{_rows(REAL, measured)}

float16 and bfloat16 are computed in float32 and rounded once, also by composite functions.
Functions of one argument are within {OF_16_BITS} ULP over all of their numbers.

## complex64 and complex128

The error is the distance in the plane, in ULP of the modulus. So the real or imaginary part may
have a larger relative error where the other part is much larger.

{_rows(COMPLEX, measured)}

## Long sums

A kernel cuts a sum of many float32 numbers into short sums, and adds these in pairs or in double.
So the error does not grow with the number of terms. The order of additions depends on sizes
alone, not on threads. The bounds are for a million and for ten million terms in each value of the
result, or of a gradient. They bound the distance from float64's value, relative to the largest
value; where signs mix, relative to the sum of the magnitudes.
`tests/python/operators/test_long_sums.py` tests them for each kernel that adds or multiplies;
composite operators add by these kernels. Operators that add to indexed elements (`index_add`,
`scatter_add`, `index_put` with `accumulate`) keep these in double where there are at least four
times as many terms as elements.

{_sum_rows(measured)}

A matrix product with more than 16384 terms is cut into such pieces, too. Other kernels have
no long sums: {_others()}.
"""


def _others() -> str:
    return "; ".join(
        f"{', '.join(f'`{n}`' for n in names.split())} {why}" for why, names in OTHERS.items()
    )


def without_measurements(page: str) -> list[str]:
    """The page's lines but for the measured columns."""
    return [
        "|".join(c for i, c in enumerate(re.split(r"(?<!\\)\|", line)) if i not in (3, 5))
        for line in page.splitlines()
    ]


def largest(bounds: Mapping[str, Bound]) -> dict[tuple[str, str], float]:
    sums = {(kernel, str(count)): error(kernel, count) for kernel in SUMS for count in COUNTS}
    return sums | {
        (operator, dtype): measure(operator, dtype, bound.unit_of(dtype), bound.inside).ulps
        for operator, bound in bounds.items()
        for dtype in (*REAL, *COMPLEX)
        if bound.of(dtype) is not None
    }

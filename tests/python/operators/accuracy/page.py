"""docs/accuracy.md: the table of bounds and what was measured. After a change of either:

Usage:

    ./dev python tests/python/operators/accuracy/write_page.py
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re
import textwrap
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

This page lists the largest errors that results may have: those of transcendental
functions, then those of long sums.

Errors are counted in units in the last place (ULP). One ULP is the distance between neighbouring
numbers of the dtype at the exact value f. A correctly rounded result has an error of at most 0.5
ULP. For some functions the error is counted in ULP of another quantity, which the column `in ULP
of` names. The reasons are zeros of a function that no floating-point number hits exactly, and
places far from zero where a steep slope magnifies the rounding of an intermediate number.

The bounds hold for every number of the range, which the column `where` names. For most functions
the range is the whole line or plane: all exponents, denormal numbers, both zeros, infinities and
NaN. Results at infinities, poles and NaN are exact. The bounds hold with every vector instruction
set. The columns `measured` have the largest error that `tests/python/operators/test_accuracy.py`
found, with one instruction set. The reference values come from the C library's long double
functions and from mpmath.

The bounds of single functions are in `aten/scalar/functions.yaml`. The bounds of operators that
combine several functions are in `tests/python/operators/accuracy/bounds.py`. The test fails if an
operator exceeds its bound or has none, or if this page differs from the bounds.
`./dev python tests/python/operators/accuracy/write_page.py` writes the page.

In the tables, x is the first argument and y the second. For polynomials, y is the degree.

## float32 and float64

{_rows(REAL, measured)}

In float16 and bfloat16, functions and composite operators compute in float32 and round the result
once. For functions of one argument, the error is at most {OF_16_BITS} ULP at every number of these
dtypes.

## complex64 and complex128

The error is the distance from the exact value in the complex plane, in ULP of the modulus. So if
the real and the imaginary part differ much in size, the smaller one may have a larger relative
error.

{_rows(COMPLEX, measured)}

## Long sums

A kernel cuts a sum of many float32 numbers into short sums, and adds the short sums in pairs or in
double precision. So the error does not grow with the number of terms. The order of additions
depends on sizes alone, not on the number of threads.

The bounds are for results and gradients in which each value is a sum of a million, or of ten
million, terms. The error is the distance from the float64 result, divided by the largest value of
the result. If the terms have different signs, it is divided by the sum of their magnitudes.
`tests/python/operators/test_long_sums.py` tests the bounds for each kernel that adds or multiplies.
Composite operators add by means of these kernels. Operators that add to indexed elements
(`index_add`, `scatter_add`, `index_put` with `accumulate`) keep the elements in double precision if
there are at least four times as many terms as elements.

{_sum_rows(measured)}

A matrix product is also cut into short sums, if its values have more than 16384 terms each.

`cdist` takes Euclidean distances of float32 from a matrix product, if points have eight coordinates
or more. A pair whose squared distance is less than an eighth of the sum of the squared norms is
computed from its differences. So the relative error stays below 1e-6.

The other kernels have no long sums:

{_others()}
"""


def _others() -> str:
    lines = (
        f"* {why}: {', '.join(f'`{name}`' for name in names.split())}."
        for why, names in OTHERS.items()
    )
    return "\n".join(
        textwrap.fill(line, 98, subsequent_indent="  ", break_on_hyphens=False) for line in lines
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

"""Every transcendental operator is within its bound, wherever the table of bounds says, and every
such operator of the model has one.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re

import numpy as np
import pytest
from accuracy.bounds import BOUNDS, CANCELS, OF_16_BITS
from accuracy.in_the_complex_plane import IN_THE_COMPLEX_PLANE
from accuracy.in_the_plane import IN_THE_PLANE
from accuracy.measure import (
    COMPLEX,
    OF_TYPES_WITH_16_BITS,
    REFERENCES,
    function,
    measure,
    measure_16_bits,
    overloads,
)
from accuracy.on_a_line import ON_A_LINE
from accuracy.page import PAGE, REAL, name, render, without_measurements
from accuracy.sums import COUNTS, SUMS
from accuracy.transcendental import transcendental

import treadle
from source_tree import ROOT


def test_every_transcendental_operator_has_a_bound() -> None:
    missing = {
        o: sorted(f)
        for o, f in transcendental().items()
        if o not in BOUNDS and o.removeprefix("_") not in BOUNDS
    }
    assert not missing, f"no row in accuracy/bounds.py for {missing}"


def test_every_bound_has_a_reference_and_an_operator() -> None:
    assert set(BOUNDS) == set(REFERENCES)
    assert set(IN_THE_COMPLEX_PLANE) == {o for o, b in BOUNDS.items() if b.complex64 is not None}
    for operator in BOUNDS:
        dtypes = {d for o in overloads()[operator] for d in o.dtypes}
        stated = {d for d in (*REAL, *COMPLEX) if BOUNDS[operator].of(d) is not None}
        if operator in CANCELS:
            dtypes -= {*COMPLEX}
        assert not dtypes or stated == dtypes & {*REAL, *COMPLEX}, operator


@pytest.mark.parametrize("dtype", (*REAL, *COMPLEX))
@pytest.mark.parametrize("operator", BOUNDS)
def test_within_its_bound(operator: str, dtype: str) -> None:
    bound = BOUNDS[operator]
    if bound.of(dtype) is None:
        assert dtype in COMPLEX
        return
    worst = measure(operator, dtype, bound.unit_of(dtype), bound.inside)
    assert worst.ulps <= bound.of(dtype), f"{worst.ulps:.3g} ULP {worst.text}"


@pytest.mark.parametrize("dtype", OF_TYPES_WITH_16_BITS)
@pytest.mark.parametrize("operator", ON_A_LINE)
def test_of_16_bits_rounds_once(operator: str, dtype: str) -> None:
    worst = measure_16_bits(operator, dtype)
    assert worst.ulps <= OF_16_BITS, f"{worst.ulps:.3g} ULP {worst.text}"


@pytest.mark.parametrize("operator", [o for o in IN_THE_PLANE if len(overloads()[o]) > 1])
def test_a_number_is_as_good_as_a_tensor(operator: str) -> None:
    """Overloads with a number give the bits of the one with tensors."""
    points = np.concatenate([np.linspace(-3, 3, 61), np.geomspace(0.01, 50, 61)])
    values = treadle.from_numpy(points)
    for number in (-1.5, 0.5, 2.0, 7.0):
        full = treadle.full_like(values, number)
        for overload in overloads()[operator][1:]:
            first = overload.args[0]["type"]["base"] != "Tensor"
            given = overload.function(*((number, values) if first else (values, number)))
            wanted = function(operator)(*((full, values) if first else (values, full)))
            np.testing.assert_array_equal(given.numpy(), wanted.numpy(), err_msg=f"{overload}")


def test_the_page_shows_the_table() -> None:
    page = PAGE.read_text()
    none = {(o, d): 0.0 for o in BOUNDS for d in (*REAL, *COMPLEX)}
    none |= {(kernel, str(count)): 0.0 for kernel in SUMS for count in COUNTS}
    assert without_measurements(page) == without_measurements(render(none)), "run write_page.py"


def test_measurements_of_the_page_are_within_the_bounds() -> None:
    """And are there: a row of each operator for real numbers, and one for complex ones."""
    shown = {name(o): b for o, b in BOUNDS.items()}
    number = r" ([\d.e+]+) \|"
    rows = re.findall(rf"^\| (\S+) \|{number * 4}", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == len(BOUNDS) + len(IN_THE_COMPLEX_PLANE)
    for function_, bound32, measured32, bound64, measured64 in rows:
        assert function_ in shown
        assert float(measured32) <= float(bound32) and float(measured64) <= float(bound64)


def test_vector_functions_are_held_to_the_table() -> None:
    """math_test.cc runs on every set of instructions, with bounds that are no looser."""
    source = (ROOT / "aten" / "scalar" / "math_test.cc").read_text()
    stated = re.findall(r'make\(\s*"(\w+)", ([\d.]+)', source)
    assert len(stated) > 20
    for function_, ulp in stated:
        if function_ in BOUNDS:
            bound = BOUNDS[function_]
            assert float(ulp) <= min(bound.float32, bound.float64), function_

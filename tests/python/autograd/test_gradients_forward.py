"""Derivatives of every differentiable operator, seen from other sides than finite differences:
along directions, with the backward pass recorded, of real and complex arguments together, and of
numbers that are drawn.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

from treadle_testing import derivatives
from treadle_testing.cases import has_samples, in_suite, pairs
from treadle_testing.catalogue import Operator, operators

PAIRS = pairs("differentiable")
COMPLEX = [o for o in operators() if in_suite(o) and has_samples(o) and "complex128" in o.dtypes]
RANDOM = [o for o in operators() if in_suite(o) and has_samples(o) and o.random]


@pytest.mark.parametrize("op, dtype", PAIRS)
def test_the_derivative_along_a_direction(op: Operator, dtype: str) -> None:
    derivatives.forward_mode(op, dtype)


@pytest.mark.parametrize("op, dtype", PAIRS)
def test_recording_backward_does_not_change_it(op: Operator, dtype: str) -> None:
    derivatives.with_graph(op, dtype)


@pytest.mark.parametrize("op", COMPLEX, ids=repr)
def test_real_and_complex_arguments_together(op: Operator) -> None:
    derivatives.mixed_kinds(op)


@pytest.mark.parametrize("op", [o for o in RANDOM if "float64" in o.dtypes], ids=repr)
def test_gradients_of_random_operators(op: Operator) -> None:
    derivatives.random_gradients(op, "float64")

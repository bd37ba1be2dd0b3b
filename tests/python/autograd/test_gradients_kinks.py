"""Gradients of every differentiable operator where values are equal, zero or at an end of their
range: between the slopes on both sides, first order and second.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

from treadle_testing import derivatives
from treadle_testing.cases import pairs
from treadle_testing.catalogue import Operator

PAIRS = [p for p in pairs("differentiable") if p.values[1] == "float64"]


@pytest.mark.parametrize("op, dtype", PAIRS)
def test_gradients_between_slopes(op: Operator, dtype: str) -> None:
    derivatives.slopes(op, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("op, dtype", PAIRS)
def test_second_gradients_between_slopes(op: Operator, dtype: str) -> None:
    derivatives.second_slopes(op, dtype)

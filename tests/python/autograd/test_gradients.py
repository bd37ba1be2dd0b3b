"""Every differentiable operator: gradients against finite differences in float64 and complex128,
first and second order, and the same bits at every thread count.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

from treadle_testing import checks
from treadle_testing.cases import in_suite, pairs, samples_of
from treadle_testing.catalogue import Operator, operators

PAIRS = pairs("differentiable")


@pytest.mark.parametrize("op, dtype", PAIRS)
def test_gradcheck(op: Operator, dtype: str) -> None:
    checks.gradients(op, dtype)


@pytest.mark.parametrize("op, dtype", [p for p in PAIRS if p.id.endswith("-float64")])
def test_fused_gradients_agree(op: Operator, dtype: str) -> None:
    checks.fused_gradients_agree(op, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("op, dtype", PAIRS)
def test_gradgradcheck(op: Operator, dtype: str) -> None:
    checks.second_gradients(op, dtype)


@pytest.mark.parametrize(
    "op",
    [o for o in operators() if in_suite(o) and o.kind == "pointwise" and not o.json["derivative"]],
    ids=repr,
)
def test_a_missing_derivative_says_so(op: Operator) -> None:
    """Results that are not floating (comparisons) carry no gradient; others raise in backward,
    naming the operator.
    """
    if "float64" not in op.dtypes:
        return
    leaves, call = checks.leaves_and_call(next(samples_of(op, "float64")), "float64")
    for result in call(op, *leaves):
        with pytest.raises(
            NotImplementedError, match=f"^{op.name}: derivative is not implemented$"
        ):
            result.sum().backward()


@pytest.mark.parametrize("op, dtype", PAIRS)
def test_gradients_have_the_same_bits_at_any_thread_count(op: Operator, dtype: str) -> None:
    checks.gradients_have_the_same_bits(op, dtype)

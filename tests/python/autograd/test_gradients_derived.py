"""What the generator derives from every pointwise expression: the gradients are those of autograd,
where a formula by hand computes these, too; the tangent is that of finite differences.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

from treadle_testing import derivation
from treadle_testing.catalogue import Operator, operators

DERIVED = [o for o in operators() if (o.json["derivation"] or {}).get("gradients")]
PAIRS = [
    pytest.param(o, d, id=f"{o.id}-{d}")
    for o in DERIVED
    for d in ("float64", "complex128")
    if d in o.dtypes
]


def test_most_pointwise_operators_have_derived_formulas() -> None:
    formulas = [f for o in DERIVED for f in (o.json["derivative"] or {"formulas": []})["formulas"]]
    assert sum(f["derived"] for f in formulas) > 0.8 * len(formulas)


@pytest.mark.parametrize("op, dtype", PAIRS)
def test_derived_gradients(op: Operator, dtype: str) -> None:
    derivation.derived_gradients(op, dtype)


@pytest.mark.parametrize(
    "op, dtype", [p for p in PAIRS if p.values[0].json["derivation"]["tangent"]]
)
def test_derived_tangents(op: Operator, dtype: str) -> None:
    derivation.tangents(op, dtype)

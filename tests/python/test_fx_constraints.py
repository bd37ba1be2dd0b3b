"""fx.experimental.migrate_gradual_types: statements about sizes and types of tensors."""

from __future__ import annotations

import pytest
from treadle.fx.experimental.migrate_gradual_types import constraint as c
from treadle.fx.experimental.migrate_gradual_types import operation, util, z3_types
from treadle.fx.tensor_type import Dyn, TensorType

d1, d2, t1, t2 = c.DVar(1), c.DVar(2), c.TVar(1), c.TVar(2)


def made():
    return {
        "And([True, False])": c.Conj([c.T(), c.F()]),
        "Or([True, False])": c.Disj([c.T(), c.F()]),
        "Product([DV(1), DV(2)])": c.Prod([d1, d2]),
        "(DV(1) = 3)": c.BinConstraintD(d1, 3, operation.op_eq),
        "(TV(1) = TensorType[(1, 2)])": c.BinConstraintT(t1, TensorType((1, 2)), "="),
        "TV(1) = TV(2)\u2294*TV(3)": c.TGreatestUpperBound(t1, t2, c.TVar(3)),
        "DV(1) = DV(2)\u2294Dyn": c.DGreatestUpperBound(d1, d2, Dyn),
        "can-reshape(TV(1), TensorType[(1,)])": c.CanReshape(t1, TensorType((1,))),
        " TV(2) = IndexSelect(TV(1), tensor_size: 3, DV(1), 0)": c.IndexSelect(3, t1, d1, 0, t2),
        " TV(2) = Transpose(TV(1), tensor_size: 3, 0, 1)": c.Transpose(3, t1, 0, 1, t2),
        " DV(1) = GetItem(TV(1), tensor_size: 3, 1)": c.GetItem(3, 1, d1, t1),
        " TV(2) = GetItemT(TV(1), tensor_size: 3, (None,))": c.GetItemTensor(3, (None,), t2, t1),
        "TV(1) = calc-conv(TV(2), 5, 3, 0, 1, 1)": c.CalcConv(t1, t2, 5, 3, 0, 1, 1, [d1]),
        "TV(1) = calc-maxpool(TV(2),  3, 0, 1, 1)": c.CalcMaxPool(t1, t2, 3, 0, 1, 1, [d1]),
        "TV(1), TV(2) = apply-broadcasting(TV(2), TV(1))": c.ApplyBroadcasting(t1, t2, t2, t1),
        "TV(1) = CalcProduct(0, 1, [DV(1), DV(2)])": c.CalcProduct(0, 1, t1, [d1, d2]),
    }


def test_text_and_equality():
    again = made()
    for text, statement in made().items():
        assert repr(statement) == text and statement == again[text]
        assert hash(statement) == hash(again[text]) and isinstance(statement, c.Constraint)
    assert len(set(again.values())) == len(again) and c.T() != c.F() == c.F()
    assert c.Constraint() != c.Constraint() and c.Conj([]) != c.Disj([])
    assert c.BinConstraintD(d1, 3, "=") != c.BinConstraintD(d1, 3, "<")


def test_variables():
    assert d1 == c.DVar(1) != d2 and t1 == c.TVar(1) and c.BVar(1) == c.BVar(1) and d1 != 1
    assert [repr(v) for v in (d1, t1, c.BVar(1))] == ["DV(1)", "TV(1)", "BV(1)"]
    assert util.gen_tvar(3) == (c.TVar(4), 4) and util.gen_dvar(3) == (c.DVar(4), 4)
    assert util.gen_bvar(3) == (c.BVar(4), 4) and len({d1, c.DVar(1)}) == 1
    assert util.gen_tensor_dims(2, 5) == ([c.DVar(6), c.DVar(7)], 7)
    assert repr(util.gen_nat_constraints([d1])) == "[(0 \u2264 DV(1))]"
    assert z3_types.HAS_Z3 is False


def test_kinds_of_expressions():
    total, same = c.BinConstraintD(d1, 2, "+"), c.BinConstraintD(d1, 2, "=")
    assert c.is_algebraic_expression(total) and not c.is_bool_expr(total)
    assert c.is_bool_expr(same) and not c.is_algebraic_expression(same)
    assert c.is_algebraic_expression(c.Prod([d1])) and c.is_bool_expr(c.Conj([]))
    assert c.is_dim(1) and c.is_dim(Dyn) and c.is_dim(d1) and not c.is_dim(total)
    assert c.is_bool_expr(c.BVar(1)) and not c.is_bool_expr(c.T())
    assert repr(c.BinConstraintD(total, d2, "=")) == "((DV(1) + 2) = DV(2))"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: c.BinConstraintD("a", 1, "="),
            "BinConstraintD: expected a size or an expression of sizes, got a str",
        ),
        (
            lambda: c.BinConstraintT(t1, [1], "="),
            "BinConstraintT: expected a TVar, a type or Dyn, got a list",
        ),
        (
            lambda: c.DGreatestUpperBound("a", 1, 2),
            "DGreatestUpperBound: expected a size, a DVar, number or Dyn, got a str",
        ),
        (lambda: c.Transpose(3, t1, 0, 1, 2), "Transpose: expected a TVar, got a int"),
        (lambda: c.GetItem(3, 1, t1, t1), "GetItem: expected a DVar, got a TVar"),
    ],
)
def test_parts_of_the_wrong_kind(make, text):
    with pytest.raises(AssertionError) as caught:
        make()
    assert str(caught.value) == text

"""fx.experimental.migrate_gradual_types: statements about sizes and types of tensors."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

from treadle.fx.experimental.migrate_gradual_types import constraint as c
from treadle.fx.experimental.migrate_gradual_types import (
    constraint_transformation as transformation,
)
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


# ---- constraints in terms of simpler ones ----

D = [c.DVar(i) for i in range(10)]
V = [c.TVar(i) for i in range(6)]


def simpler(statement, counter=10):
    made, after = transformation.transform_constraint(statement, counter)
    return repr(made).replace("DV(", "d(").replace("TV(", "t(").replace("TensorType", ""), after


@pytest.mark.parametrize(
    ("statement", "text", "after"),
    [
        (
            c.Transpose(3, V[0], 0, 2, V[1]),
            "And([(t(0) = [[d(11), d(12), d(13)]]), (0 \u2264 d(11)), (0 \u2264 d(12)), "
            "(0 \u2264 d(13)), True, True, (t(1) = [[d(13), d(12), d(11)]])])",
            13,
        ),
        (
            c.Transpose(1, V[0], 0, 2, V[1]),
            "And([(t(0) = [[d(11)]]), (0 \u2264 d(11)), True, False, (t(1) = [[d(11)]])])",
            11,
        ),
        (
            c.IndexSelect(2, V[0], D[0], 1, V[1]),
            "And([(t(0) = [[d(11), d(12)]]), (0 \u2264 d(11)), (0 \u2264 d(12)), True, "
            "(t(1) = [[d(11), d(0)]])])",
            12,
        ),
        (
            c.GetItem(2, -1, D[0], V[0]),
            "And([(t(0) = [[d(11), d(12)]]), (0 \u2264 d(11)), (0 \u2264 d(12)), True, "
            "(d(0) = d(12))])",
            12,
        ),
        (c.GetItem(1, 1, D[0], V[0]), "And([(t(0) = [[d(11)]]), (0 \u2264 d(11)), False])", 11),
        (
            c.GetItemTensor(2, (slice(None), None), V[1], V[0]),
            "And([(t(0) = [[d(11), d(12)]]), (t(1) = [[d(11), 1, d(12)]]), (0 \u2264 d(11)), "
            "(0 \u2264 d(12)), True])",
            12,
        ),
        (
            c.BinConstraintT(TensorType((1, Dyn)), V[0], operation.op_precision),
            "And([(1 \u2291 d(11)), (Dyn \u2291 d(12)), (t(0) = [[d(11), d(12)]]), "
            "(1 \u2264 d(11)), (1 \u2264 d(12))])",
            12,
        ),
        (c.BinConstraintT(Dyn, V[0], operation.op_precision), "True", 10),
        (
            c.BinConstraintT(V[0], TensorType((D[0], D[1])), operation.op_matching),
            "Or([And([(t(0) = Dyn), (d(0) = Dyn), (d(1) = Dyn)]), (t(0) = [[d(0), d(1)]])])",
            10,
        ),
        (
            c.BinConstraintT(V[0], 2, operation.op_leq),
            "Or([(t(0) = Dyn), (t(0) = [[d(11)]]), (t(0) = [[d(12), d(13)]])])",
            13,
        ),
        (c.BinConstraintT(V[0], V[1], "="), "(t(0) = t(1))", 10),
        (c.BinConstraintD(3, D[0], operation.op_precision), "(3 = d(0))", 10),
        (c.BinConstraintD(Dyn, D[0], operation.op_precision), "True", 10),
        (
            c.BinConstraintD(D[0], D[1], "~"),
            "Or([(d(0) = d(1)), (d(1) = Dyn), (d(0) = Dyn)])",
            10,
        ),
        (
            c.DGreatestUpperBound(D[0], D[1], D[2]),
            "Or([And([(d(1) = Dyn), (d(0) = d(2))]), And([(d(2) = Dyn), (d(0) = d(1))]), "
            "And([(d(2) = d(1)), (d(0) = d(1))])])",
            10,
        ),
        (
            c.Conj([c.BinConstraintD(3, D[0], operation.op_precision), c.T()]),
            "And([(3 = d(0)), True])",
            10,
        ),
        (c.Disj([c.BinConstraintD(3, 3, operation.op_precision)]), "Or([(3 = 3)])", 10),
        (
            c.CalcProduct(0, 1, V[0], D[:2]),
            "And([Or([And([(t(0) = [[Dyn, d(1)]]), (d(0) = Dyn)]), And([(t(0) = [[d(11), d(1)]]), "
            "And([(d(11) = Product([d(0)])), (d(11) != Dyn)]), (d(0) != Dyn)])]), True])",
            11,
        ),
        (c.CalcProduct(2, 1, V[0], D[:3]), "And([Or([False]), False])", 11),
    ],
)
def test_one_step(statement, text, after):
    assert simpler(statement) == (text, after)


def test_sizes_of_convolutions():
    conv = c.CalcConv(V[0], V[1], 5, (3, 2), 1, (2, 1), 1, D[:4])
    text, after = simpler(conv)
    assert after == 14 and "And([(d(12) = 5), (d(12) != Dyn)]), (d(0) = d(11))" in text
    assert "(d(13) = (((((d(2) + (2 * 1)) - (1 * (3 - 1))) - 1) / 2) + 1))" in text
    assert "(d(14) = (((((d(3) + (2 * 1)) - (1 * (2 - 1))) - 1) / 1) + 1))" in text
    text, after = simpler(c.CalcMaxPool(V[0], V[1], 3, 0, 2, 1, D[:4]))
    assert after == 14 and "(d(1) = d(12)), (d(0) = d(11))" in text


def test_each_rank():
    consistent, after = simpler(c.BinConstraintT(V[0], V[1], "~"))
    assert after == 30 and consistent.startswith("Or([Or([(t(0) = Dyn), (t(1) = Dyn)]), And([(t(0)")
    assert consistent.count(" ~ ") == 10
    bound, after = simpler(c.TGreatestUpperBound(V[0], V[1], V[2]))
    assert after == 40 and bound.count("\u2294") == 10
    known, after = simpler(c.CanReshape(V[0], TensorType((2, 3))))
    assert after == 14 and known.count("Product([2, 3])") == 1 + 3 + 7 + 15
    unknown, _ = simpler(c.CanReshape(V[0], TensorType((2, Dyn))))
    assert unknown.count(" % Product([2])") == 4 and "(d(14) != Dyn)" in unknown


def test_broadcasting():
    made, after = transformation.transform_constraint(c.ApplyBroadcasting(*V[:4]), 10)
    choices = made.conjucts[0].disjuncts
    assert len(choices) == 2 + 1 + 3 * 3 and after > 58
    (one, other), counter = transformation.gen_lists_of_dims(2, 2, 5)
    assert one == [c.DVar(6), c.DVar(7)] and other == [c.DVar(8), c.DVar(9)] and counter == 9
    dim = transformation.broadcast_dim
    assert repr(dim(D[:1], D[1:2], D[2:3], D[3:4], 0)) == (
        "And([(DV(0) = 1), (DV(2) = DV(3)), (DV(3) = DV(1))])"
    )
    assert repr(dim(D[:1], D[1:2], D[2:3], D[3:4], 0, padding=True)) == (
        "And([(DV(2) = DV(3)), (DV(3) = DV(1))])"
    )
    padded, counter = transformation.apply_padding(
        V[0], c.T(), c.T(), c.T(), D[:2], D[2:4], D[4:6], 10
    )
    assert len(padded.disjuncts) == 1 and counter == 11
    assert repr(padded.disjuncts[0].conjucts[4]) == "And([(DV(2) = DV(4)), (DV(4) = DV(0))])"


def test_what_cannot_be_made_simpler():
    made = c.BVar(1)
    assert transformation.transform_constraint(made, 3) == (made, 3)
    with pytest.raises(NotImplementedError) as caught:
        transformation.transform_constraint(c.GetItemTensor(2, (1, None), V[1], V[0]), 1)
    assert str(caught.value) == (
        "getitem: expected an index of None and whole slices, got (1, None)"
    )
    with pytest.raises(RuntimeError) as caught:
        transformation.register_transformation_rule(c.Conj)(len)
    assert str(caught.value) == f"{c.Conj}: expected no transformation rule, got another"
    assert transformation.valid_index(2, D[:2]) == c.F()
    assert transformation.valid_index_tensor((slice(None), None), D[:1]) == c.T()
    possible = transformation.generate_all_int_dyn_dim_possibilities(D[:2])
    assert len(possible) == 4 and repr(possible[1]) == "((DV(0) = Dyn), (DV(1) != Dyn))"

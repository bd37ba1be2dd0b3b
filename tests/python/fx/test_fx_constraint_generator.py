"""fx.experimental.migrate_gradual_types.constraint_generator: what must be true of sizes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

import treadle
import treadle.nn.functional as F
from treadle import fx, nn
from treadle.fx.experimental.migrate_gradual_types import constraint as c
from treadle.fx.experimental.migrate_gradual_types import constraint_generator as generator
from treadle.fx.experimental.migrate_gradual_types.constraint_transformation import (
    transform_constraint,
)
from treadle.fx.tensor_type import Dyn, TensorType

LEQ, PRECISION, MATCHING = "\u2264", "\u2291", "\u22b3"
INPUT = f"(Dyn {PRECISION} t(1)), (t(1) {LEQ} 4)"
TWO = f"{INPUT}, (Dyn {PRECISION} t(2)), (t(2) {LEQ} 4)"
BROADCAST = "t(3) = t(4)\u2294*t(5), t(4), t(5) = apply-broadcasting(t(1), t(2)), (t(4) ~ t(5))"
FOUR = f"(t(1) {MATCHING} [[d(3), d(4), d(5), d(6)]])"
NAT = ", ".join(f"(0 {LEQ} d({i}))" for i in (3, 4, 5, 6))
SIZE = (
    "Or([And([(t(1) = Dyn), (d(2) = Dyn)]), And([Or(["
    + ", ".join(f" d(2) = GetItem(t(1), tensor_size: {i}, 0)" for i in (1, 2, 3, 4))
    + f"]), (0 {LEQ} d(2))])])"
)


class Of(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)


def shown(value):
    text = repr(value).replace("DV(", "d(").replace("TV(", "t(").replace("BV(", "b(")
    return text.replace("TensorType", "")


def constraints(program):
    gm = fx.symbolic_trace(program)
    made = generator.ConstraintGenerator(gm)
    found, counter = made.generate_constraints()
    return shown(found), counter, made.symbol_dict


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (Of(nn.ReLU()), f"{INPUT}, (t(1) = t(2))"),
        (lambda x: F.gelu(x), f"{INPUT}, (t(1) = t(2))"),
        (lambda x: x.detach(), f"{INPUT}, (t(1) = t(2))"),
        (lambda x: x.shape, f"{INPUT}, (t(1) = t(2))"),
        (lambda x: x + 1, f"{INPUT}, (t(2) = t(1))"),
        (lambda x: x > 1, f"{INPUT}, (t(2) = t(1))"),
        (lambda x, y: x + y, f"{TWO}, {BROADCAST}"),
        (lambda x, y: treadle.add(x, y), f"{TWO}, {BROADCAST}"),
        (lambda x, y: x == y, f"{TWO}, {BROADCAST}"),
        (lambda x, y: x.masked_fill_(y, 0.0), f"{TWO}, {BROADCAST}"),
        (lambda x, y: x.type_as(y), f"{TWO}, (t(1) ~ t(2)), (t(3) = t(2))"),
        (
            Of(nn.Conv2d(3, 5, 3)),
            f"{INPUT}, {FOUR}, (3 ~ d(4)), "
            f"t(2) = calc-conv(t(1), 5, (3, 3), (0, 0), (1, 1), (1, 1)), {NAT}",
        ),
        (Of(nn.MaxPool2d(2)), f"{INPUT}, {FOUR}, t(2) = calc-maxpool(t(1),  2, 0, 2, 1), {NAT}"),
        (Of(nn.BatchNorm2d(3)), f"{INPUT}, {FOUR}, (t(1) = t(2)), {NAT}"),
        (
            Of(nn.AdaptiveAvgPool2d((2, 3))),
            f"{INPUT}, {FOUR}, (t(2) = [[d(3), d(4), 2, 3]]), {NAT}",
        ),
        (
            lambda x: treadle.reshape(x, (2, -1)),
            f"{INPUT}, (t(2) = [[2, Dyn]]), can-reshape(t(1), [[2, Dyn]])",
        ),
        (
            lambda x: x.view(2, -1),
            f"{INPUT}, (t(2) = [[2, d(3)]]), can-reshape(t(1), [[2, d(3)]]), (2 != Dyn), "
            "(d(3) != Dyn)",
        ),
        (lambda x: x.size(0), f"{INPUT}, {SIZE}"),
        (lambda x: x.size(0) > 3, f"{INPUT}, {SIZE}, (b(3) = (d(2) > 3))"),
        (lambda x: x.size(0) != 3, f"{INPUT}, {SIZE}, (b(3) = (d(2) != 3))"),
        (lambda x: x.size(0) + 1, f"{INPUT}, {SIZE}, (d(3) = (d(2) + 1)), (0 {LEQ} d(3))"),
        (lambda x: treadle.full((x.size(0), 2), 0), f"{INPUT}, {SIZE}, (t(3) = [[d(2), 2]])"),
        (
            lambda x: treadle.arange(x.size(0)),
            f"{INPUT}, {SIZE}, (t(4) = [[d(3)]]), "
            "Or([And([Or([(d(2) = Dyn), (0 = Dyn), (1 = Dyn)]), (d(3) = Dyn)]), "
            "And([And([(d(2) != Dyn), (0 != Dyn), (1 != Dyn)]), (d(3) != Dyn), "
            "(d(3) = ((d(2) - 0) / 1))])])",
        ),
        (
            lambda x: x.expand(2, 3),
            f"{INPUT}, t(2) = t(4)\u2294*t(5), t(4), t(5) = apply-broadcasting(t(1), t(3)), "
            f"(t(4) ~ t(5)), (t(2) = [[d(6), d(7)]]), (0 {LEQ} d(6)), (0 {LEQ} d(7)), "
            "(t(3) = [[2, 3]])",
        ),
    ],
)
def test_constraints(program, text):
    assert constraints(program)[0] == f"And([{text}])"


@pytest.mark.parametrize(
    ("program", "counter", "parts"),
    [
        (Of(nn.Linear(3, 5)), 22, ["(d(3) ~ 3), (d(4) = 5)", "(d(18) ~ 3), (d(22) = 5)"]),
        (Of(nn.LayerNorm((3, 4))), 12, ["(t(2) = [[d(3)]]), False", "(d(12) ~ 4), (d(11) ~ 3)"]),
        (Of(nn.Embedding(5, 3)), 8, ["(t(2) = [[d(6), d(7), d(8), 3]])"]),
        (
            lambda x, w: F.linear(x, w),
            25,
            ["(t(2) = [[d(3), d(4)]])", "(d(6) ~ d(4)), (d(7) = d(3))"],
        ),
        (
            lambda x, w: F.embedding(x, w),
            11,
            ["(t(2) = [[d(3), d(4)]])", "(t(5) = [[d(6), d(4)]])"],
        ),
        (lambda x: F.layer_norm(x, (3,)), 12, ["(d(12) ~ 3)"]),
        (lambda x: treadle.flatten(x, 1), 12, ["CalcProduct(1, 1, [d(3)])", "CalcProduct(1, 4, ["]),
        (lambda x: treadle.flatten(x, -2), 12, ["CalcProduct(2, 4, ["]),
        (lambda x: treadle.cumsum(x, 1), 12, ["(t(2) = [[d(3)]]), False", "[[d(4), d(5)]]), True"]),
        (lambda x: x.transpose(0, 1), 2, ["Transpose(t(1), tensor_size: 4, 0, 1)"]),
        (lambda x: x[None, :], 2, ["GetItemT(t(1), tensor_size: 4, (None, slice(None, None"]),
        (lambda x: x.dim(), 12, ["(t(1) = [[d(9), d(10), d(11), d(12)]]), (d(2) = 4)"]),
        (lambda x: x.size()[1], 3, ["GetItem(t(2), tensor_size: 2, 1)"]),
        (
            lambda x, y: treadle.bmm(x, y),
            10,
            ["(t(3) = [[d(10), d(5), d(9)]]), (d(4) ~ d(7)), d(10) = d(4)\u2294d(7)"],
        ),
        (lambda x, y: x.index_select(0, y), 4, ["IndexSelect(t(1), tensor_size: 4, Dyn, 0)"]),
    ],
)
def test_constraints_of_each_rank(program, counter, parts):
    text, after, _ = constraints(program)
    assert after == counter and all(part in text for part in parts), text


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.act, self.w = nn.Conv2d(3, 5, 3), nn.ReLU(), nn.Parameter(treadle.ones(4))

    def forward(self, x):
        return self.act(self.conv(x)) * self.w


def test_a_module_until_nothing_is_left_to_do():
    gm = fx.symbolic_trace(Net())
    nodes = list(gm.graph.nodes)
    nodes[0].type = TensorType((2, 3, Dyn, 8))
    made = generator.ConstraintGenerator(gm)
    found, counter = made.generate_constraints()
    assert isinstance(found, c.Conj) and made.constraints == list(found.conjucts)
    assert all(isinstance(made.symbol_dict[n], c.TVar) for n in nodes[:-1])
    assert "[[4]]" in shown(found) and list(made.traced_params) == ["w", "conv.weight", "conv.bias"]
    for _ in range(4):
        found, counter = transform_constraint(found, counter)
    again, after = transform_constraint(found, counter)
    assert again == found and after == counter
    left = ("calc-conv", "apply-broadcasting", "\u2294", MATCHING, PRECISION)
    assert not any(sign in shown(found) for sign in left)


def test_what_has_no_rule():
    with pytest.raises(RuntimeError) as caught:
        constraints(lambda x: x - 1)
    assert str(caught.value).startswith("sub: expected a call that has an inference rule, got ")
    with pytest.raises(NotImplementedError) as caught:
        constraints(lambda x: x.dtype)
    assert str(caught.value) == "getattr_1: expected shape or device, got dtype"
    with pytest.raises(RuntimeError) as caught:
        constraints(lambda x: x[...])
    assert str(caught.value) == "getitem: expected a number or a tuple as index, got Ellipsis"
    with pytest.raises(RuntimeError) as caught:
        generator.register_inference_rule(nn.ReLU)(len)
    assert str(caught.value) == f"{nn.ReLU}: expected no inference rule, got another"
    assert generator.range_check(1, 1) == c.F() and generator.range_check(-1, 1) == c.T()
    assert generator.add_layer_norm_constraints([c.DVar(1)], [2, 3]) == [c.F()]

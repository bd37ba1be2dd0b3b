"""fx.experimental.graph_gradual_typechecker and unify_refinements: types of graphs by sizes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

import treadle
from treadle import fx, nn
from treadle.fx.experimental import graph_gradual_typechecker as typechecker
from treadle.fx.experimental import unify_refinements
from treadle.fx.experimental.refinement_types import Equality
from treadle.fx.experimental.unification import Var
from treadle.fx.tensor_type import Dyn, TensorType


def text_of(error, function, *args):
    with pytest.raises(error) as caught:
        function(*args)
    return str(caught.value)


def traced(program, *types, **known):
    gm = fx.symbolic_trace(program)
    places = [n for n in gm.graph.nodes if n.op == "placeholder"]
    for node, given in zip(places, types):
        node.type = given
    for node in gm.graph.nodes:
        node.type = known.get(node.name, node.type)
    return gm


def checked(program, *types, **known):
    """The sizes of the result, and those of the input after the check."""
    gm = traced(program, *types, **known)
    assert typechecker.GraphTypeChecker({}, gm).type_check() is True
    nodes = list(gm.graph.nodes)
    return nodes[-1].type, nodes[0].type


class Of(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)


LAYERS = [
    nn.Conv2d(3, 5, (3, 2), stride=(2, 1), padding=1, dilation=(2, 1)),
    nn.Conv2d(3, 5, 3, padding="same"),
    nn.Conv2d(3, 5, 3, padding="valid"),
    nn.MaxPool2d((3, 2), stride=(1, 2), padding=1),
    nn.MaxPool2d(3, stride=2, ceil_mode=True),
    nn.AdaptiveAvgPool2d((2, None)),
    nn.BatchNorm2d(3),
    nn.ReLU(),
    nn.Linear(12, 4),
]


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_sizes_of_layers(layer):
    x = treadle.zeros(2, 3, 10, 12)
    real = TensorType(tuple(layer.eval()(x).shape))
    assert checked(Of(layer), TensorType((2, 3, 10, 12)))[0] == real
    unknown = TensorType((Dyn, 3, 10, 12))
    assert checked(Of(layer), unknown)[0] == TensorType((Dyn, *real.__args__[1:]))


@pytest.mark.parametrize(
    "program",
    [
        lambda x: treadle.flatten(x, 1),
        lambda x: treadle.flatten(x, start_dim=1, end_dim=-2),
        treadle.flatten,
        lambda x: treadle.transpose(x, 0, -1),
        lambda x: treadle.reshape(x, (6, 120)),
        lambda x: treadle.add(x, 2),
        lambda x: 1 + x,
    ],
)
def test_sizes_of_functions(program):
    x = treadle.zeros(2, 3, 10, 12)
    real = TensorType(tuple(program(x).shape))
    assert checked(lambda x: program(x), TensorType((2, 3, 10, 12)))[0] == real


def test_unknown_sizes():
    flat = checked(lambda x: treadle.flatten(x, 1, 2), TensorType((2, Dyn, 4, 5)))[0]
    assert flat == TensorType((2, Dyn, 5))
    found, given = checked(Of(nn.Conv2d(3, 5, 3)), Dyn)
    assert found == TensorType((Dyn, 5, Dyn, Dyn)) and given == TensorType((Dyn,) * 4)
    known = TensorType((2, 3, 4, 5))
    assert checked(Of(nn.ReLU()), Dyn, layer=known) == (known, TensorType((Dyn,) * 4))
    sizes = TensorType((1, Dyn)), TensorType((3, 2))
    assert checked(lambda x, y: x + y, *sizes)[0] == TensorType((3, Dyn))
    assert checked(lambda x, y: x + y, TensorType((1, 2)), Dyn)[0] == Dyn
    assert checked(lambda x: treadle.reshape(x, [2, -1]), Dyn)[0] == TensorType((2, Dyn))
    assert checked(lambda x: x.shape, Dyn)[0] == Dyn
    assert checked(lambda x: (x, x), TensorType((1,)))[0] == (TensorType((1,)), TensorType((1,)))


class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(treadle.ones(2, 3))

    def forward(self, x):
        return x + self.w


def test_parameters_have_their_sizes():
    assert checked(Weighted(), TensorType((3,)))[0] == TensorType((2, 3))
    gm = traced(Weighted())
    assert typechecker.get_parameter(gm, "w") is gm.w
    with pytest.raises(AttributeError):
        typechecker.get_parameter(gm, "v")


@pytest.mark.parametrize(
    ("program", "types", "text"),
    [
        (
            lambda x, y: x + y,
            (TensorType((2, 1)), TensorType((3, 5))),
            "add: expected operands of types that broadcast, got TensorType[(2, 1)] and "
            "TensorType[(3, 5)]",
        ),
        (
            lambda x: treadle.transpose(x, 0, 9),
            (TensorType((1, 2)),),
            "transpose: expected dimensions 0 and 9, got TensorType[(1, 2)]",
        ),
        (
            lambda x: treadle.reshape(x, (5, 2)),
            (TensorType((3, 3)),),
            "reshape: expected as many elements as TensorType[(3, 3)] has, got TensorType[(5, 2)]",
        ),
        (
            lambda x: treadle.flatten(x, 1, 4),
            (TensorType((3, 3)),),
            "flatten: expected sizes 1 to 4, got TensorType[(3, 3)]",
        ),
        (
            Of(nn.Linear(3, 4)),
            (TensorType((3,)),),
            "Linear(in_features=3, out_features=4, bias=True): expected a type of at least 2 "
            "sizes, got TensorType[(3,)]",
        ),
        (
            Of(nn.Linear(3, 4)),
            (TensorType((3, 4)),),
            "Linear(in_features=3, out_features=4, bias=True): expected a last size of 3, "
            "got TensorType[(3, 4)]",
        ),
        (
            Of(nn.AdaptiveAvgPool2d(2)),
            (TensorType((3, 4)),),
            "AdaptiveAvgPool2d(output_size=2): expected a type of 3 or 4 sizes, "
            "got TensorType[(3, 4)]",
        ),
        (
            Of(nn.Conv2d(3, 4, 1)),
            (TensorType((1, 2, 3, 4)),),
            "layer: expected 3 channels, got TensorType[(1, 2, 3, 4)]",
        ),
        (
            Of(nn.BatchNorm2d(3)),
            (TensorType((1, 2)),),
            "expected a type of 4 sizes, got TensorType[(1, 2)]",
        ),
        (lambda x: x.dtype, (), "getattr_1: expected the attribute shape, got dtype"),
    ],
)
def test_types_that_do_not_fit(program, types, text):
    assert text_of(TypeError, checked, program, *types) == text


def test_what_is_known_of_a_result():
    known = TensorType((3, 1))
    found, _ = checked(lambda x: treadle.transpose(x, 0, 1), TensorType((1, Dyn)), transpose=known)
    assert found == known
    with pytest.raises(TypeError) as caught:
        checked(Of(nn.ReLU()), TensorType((1, 2)), layer=TensorType((1, 3)))
    assert str(caught.value) == (
        "expected types of the same sizes, got TensorType[(1, 2)] and TensorType[(1, 3)]"
    )
    with pytest.raises(TypeError) as caught:
        checked(Of(nn.BatchNorm2d(3)), Dyn, layer=TensorType((1, 2, 3, 4)))
    assert str(caught.value) == "layer: expected 3 channels, got TensorType[(1, 2, 3, 4)]"


def test_calls_without_a_rule():
    text = text_of(RuntimeError, checked, lambda x: x * 2, Dyn)
    assert text.startswith("mul: expected a call that has an inference rule, got ")
    text = text_of(NotImplementedError, checked, lambda x: x.relu(), Dyn)
    assert text == "relu: expected a function or a layer, got call_method"
    register = typechecker.register_inference_rule(nn.ReLU)
    assert text_of(RuntimeError, register, len) == (
        f"{nn.ReLU}: expected no inference rule, got another"
    )
    register = typechecker.register_refinement_rule(nn.ReLU)
    assert text_of(RuntimeError, register, len).endswith("expected no refinement rule, got another")
    register = typechecker.register_algebraic_expressions_inference_rule(nn.Conv2d)
    assert text_of(RuntimeError, register, len).endswith("expected no algebraic rule, got another")


def test_bounds_and_broadcasting():
    bound, broadcast = typechecker.get_greatest_upper_bound, typechecker.broadcast_types
    assert bound(TensorType((Dyn, 2)), TensorType((1, Dyn))) == TensorType((1, 2))
    assert bound(Dyn, TensorType((1,))) == TensorType((1,)) and bound(1, Dyn) == 1
    assert text_of(TypeError, bound, 1, 2) == "expected types of the same sizes, got 1 and 2"
    assert broadcast(TensorType((1, 2)), TensorType((3,))) == (
        TensorType((1, 2)), TensorType((1, 3)),
    )  # fmt: skip
    assert broadcast(Dyn, int) == (Dyn, int)
    assert text_of(TypeError, broadcast, 1, TensorType((1,))) == (
        "broadcast: expected types of tensors, got 1 and TensorType[(1,)]"
    )
    text = text_of(TypeError, typechecker.calculate_out_dimension, "a", nn.Conv2d(3, 5, 1), 0)
    assert text.endswith(": expected a size that is a number or Dyn, got 'a'")


# ---- refinement ----


def refined(program, *types):
    gm = traced(program, *types)
    typechecker.GraphTypeChecker({}, gm).type_check()
    refine = typechecker.Refine(gm)
    assert refine.refine() is True
    return list(gm.graph.nodes), refine.constraints


def test_equal_sizes():
    (x, relu, out), found = refined(Of(nn.ReLU()), TensorType((Dyn, 3)))
    (a, _), (b, _) = x.type.__args__, relu.type.__args__
    assert isinstance(a, Var) and a != b and out.type == relu.type
    assert found == [Equality(a, b), Equality(3, 3)] and str(Equality(a, 2)) == f"{a} = 2"
    (x, conv, _), found = refined(Of(nn.Conv2d(3, 5, 3)), Dyn)
    assert found == [Equality(x.type.__args__[0], conv.type.__args__[0])]
    (x, pool, _), found = refined(Of(nn.MaxPool2d(2)), TensorType((Dyn, 3, 4, 4)))
    assert found == [Equality(x.type.__args__[0], pool.type.__args__[0]), Equality(3, 3)]
    (x, flat, _), found = refined(lambda x: treadle.flatten(x, 1, 2), TensorType((Dyn, 2, 3, 4)))
    assert found == [Equality(flat.type.__args__[0], x.type.__args__[0]), Equality(4, 4)]
    types = TensorType((1, Dyn)), TensorType((Dyn, 2))
    (_, y, total, _), found = refined(lambda x, y: x + y, *types)
    assert found == [Equality(y.type.__args__[0], total.type.__args__[0])]
    assert refined(Of(nn.Linear(2, 3)), Dyn)[1] == []


def test_equal_sizes_get_one_name():
    layers = nn.Sequential(nn.Conv2d(3, 5, 3, padding=1), nn.BatchNorm2d(5), nn.ReLU())
    gm = traced(Of(layers), Dyn)
    typechecker.GraphTypeChecker({}, gm).type_check()
    unify_refinements.infer_symbolic_types_single_pass(gm)
    x, conv, norm, relu, out = (n.type.__args__ for n in gm.graph.nodes)
    assert x[0] == conv[0] == norm[0] == relu[0] and isinstance(x[0], Var)
    assert conv == norm == relu == out and conv[1] == 5 and conv[2] != x[2]
    other = traced(Of(layers), Dyn)
    assert unify_refinements.check_for_type_equality(gm.graph, gm.graph)
    assert not unify_refinements.check_for_type_equality(gm.graph, other.graph)


def test_sizes_as_expressions():
    sympy = pytest.importorskip("sympy")
    gm = traced(Of(nn.Conv2d(3, 5, 3)), TensorType((2, 3, Dyn, 12)))
    typechecker.GraphTypeChecker({}, gm).type_check()
    unify_refinements.infer_symbolic_types(gm)
    x, conv, _ = (n.type.__args__ for n in gm.graph.nodes)
    assert isinstance(x[2], sympy.Symbol) and conv[2].subs(x[2], 10) == 8 and conv[3] == 10


def test_solutions():
    x, y, z = Var("x"), Var("y"), Var("z")
    assert unify_refinements.convert_eq([Equality(1, x), Equality(y, 2)]) == ((1, y), (x, 2))
    assert unify_refinements.unify_eq([Equality(1, x), Equality(y, x)]) == {x: 1, y: 1}
    assert unify_refinements.unify_eq([Equality(1, x), Equality(2, x)]) is False
    one = unify_refinements.substitute_solution_one_type
    assert one({x: 3}, TensorType((x, y))) == TensorType((3, y)) and one({x: 3}, Dyn) == Dyn
    assert one({x: z, z: 3}, [x, (TensorType((x,)),)]) == [z, (TensorType((z,)),)]
    gm = traced(lambda x: x, TensorType((x,)))
    unify_refinements.substitute_all_types(gm.graph, {x: z, z: 3})
    assert next(iter(gm.graph.nodes)).type == TensorType((3,))

    gm = traced(Of(nn.ReLU()), TensorType((2,)))
    nodes = list(gm.graph.nodes)
    nodes[1].type = TensorType((3,))
    text = text_of(TypeError, unify_refinements.infer_symbolic_types_single_pass, gm)
    assert text == "expected equal sizes, got 2 and 3"

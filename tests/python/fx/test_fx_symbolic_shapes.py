"""fx.experimental.symbolic_shapes and sym_node: questions about sizes, which are numbers."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import math

import pytest

import treadle
from treadle import fx
from treadle.fx.experimental import sym_node
from treadle.fx.experimental import symbolic_shapes as shapes
from treadle.fx.experimental.sym_node import DynamicInt

X = treadle.ones(2, 3)


def text_of(error, function, *args):
    with pytest.raises(error) as caught:
        function(*args)
    return str(caught.value)


@pytest.mark.parametrize(
    "name",
    ["guard_or_false", "guard_or_true", "guard_size_oblivious", "statically_known_true"]
    + ["guard_bool", "expect_true"],
)
def test_truth_values(name):
    question = getattr(shapes, name)
    assert question(X.shape[0] == 2) is True and question(X.shape[0] == 3) is False
    assert text_of(AssertionError, question, 1) == f"{name}: expected a bool, got a int"


def test_numbers():
    assert shapes.statically_known_false(X.shape[0] == 3) is True
    assert shapes.guard_int(3) == 3 and shapes.guard_float(2.5) == 2.5
    assert [shapes.guard_scalar(v) for v in (True, 2, 2.5)] == [True, 2, 2.5]
    assert shapes.guarding_hint_or_throw(2) == 2 and shapes.optimization_hint(3, fallback=7) == 3
    assert shapes.has_static_value(2.5) and shapes.is_concrete_bool(False)
    assert shapes.is_concrete_int(2) and shapes.is_concrete_float(2.5)
    assert not shapes.is_nested_int(2) and not shapes.is_symbolic(2)
    assert text_of(AssertionError, shapes.guard_int, True) == (
        "guard_int: expected a int, got a bool"
    )
    assert text_of(AssertionError, shapes.guard_scalar, "a") == (
        "guard_scalar: expected a bool or int or float, got a str"
    )


def test_no_value_has_symbols():
    for value in (1, 2.5, X, [1, (2, X)]):
        assert not shapes.has_free_symbols(value) and shapes.free_symbols(value) == set()
        assert not shapes.has_free_unbacked_symbols(value)
        assert shapes.free_unbacked_symbols(value) == set()
    assert not shapes.has_symbolic_sizes_strides(X)
    assert shapes.compute_unbacked_bindings(None, X) is None
    assert shapes.resolve_unbacked_bindings(None, {}) == {}
    node = next(iter(fx.symbolic_trace(lambda x: x).graph.nodes))
    assert shapes.is_symbol_binding_fx_node(node) is None
    assert shapes.rebind_unbacked(None, node, 3) is None
    with pytest.raises(NotImplementedError):
        shapes.ShapeEnv()


def test_equality_and_logic():
    assert shapes.sym_eq(1, 1) and shapes.sym_eq([1, (2, 3)], (1, [2, 3]))
    assert not shapes.sym_eq((1,), (1, 2)) and not shapes.sym_eq((1, 2), (1, 3))
    text = "sym_eq: expected two numbers or two lists, got a int and a tuple"
    assert text_of(AssertionError, shapes.sym_eq, 1, (1,)) == text
    assert shapes.sym_and(True, True) and not shapes.sym_and(True, False) and shapes.sym_and(True)
    assert shapes.sym_or(False, True) and not shapes.sym_or(False, False)
    assert shapes.canonicalize_bool_expr(True) is True
    x = treadle.zeros(2, 3, 4)
    assert shapes.create_contiguous([2, 3, 4]) == list(x.stride())
    assert shapes.create_contiguous([]) == [1]


def test_consistency():
    shapes.check_consistent(X, treadle.zeros(2, 3))
    shapes.check_consistent(1, 1)
    shapes.check_consistent("a", "b")
    text = "check_consistent: expected what was before, (2, 3), got (6,)"
    assert text_of(RuntimeError, shapes.check_consistent, treadle.ones(6), X) == text
    text = "check_consistent: expected what was before, 2, got 1"
    assert text_of(RuntimeError, shapes.check_consistent, 1, 2) == text


def test_nodes_that_read_sizes():
    graph = fx.symbolic_trace(lambda x: x.size(0) + x.stride(0) + x.numel() + x.dim()).graph
    for node in graph.nodes:
        node.meta["example_value"] = X
    found = [node.name for node in graph.nodes if shapes.is_accessor_node(node)]
    assert found == ["size", "stride"]


def test_what_is_said_of_sizes():
    dims = shapes.DimDynamic
    context = shapes.StatelessSymbolicContext([dims.STATIC, dims.DYNAMIC])
    assert context.dynamic_strides == [dims.INFER_STRIDE] * 2
    assert context.constraint_sizes == [None, None] and context.specialize_on == [[], []]
    assert context.specialize_on[0] is not context.specialize_on[1]
    with pytest.raises(dataclasses.FrozenInstanceError):
        context.shape_ids = {}
    assert isinstance(context, shapes.SymbolicContext)
    of = shapes.SubclassSymbolicContext([dims.STATIC], tensor_source="x", inner_contexts={"a": 1})
    assert of.tensor_source == "x" and of.inner_contexts == {"a": 1} and of.track_outer_size_stride
    assert isinstance(of, shapes.StatefulSymbolicContext) and of.excluded_sizes is None
    text = "tensor_source: expected where the tensor is, got None"
    with pytest.raises(AssertionError, match=text):
        shapes.StatefulSymbolicContext([dims.STATIC], tensor_source=None)
    assert shapes.SymIntSymbolicContext(None).constraint is None
    assert shapes.Specialization(1, len) == shapes.Specialization(1, len)
    assert shapes.ValueRangesSLoc(1, 2) == shapes.ValueRangesSLoc(1, 2)

    class Source:
        name = "x"

    one = shapes.TrackedFake(X, Source(), None)
    assert one == shapes.TrackedFake(X, Source(), context) and len({one, one}) == 1


def test_steps_to_numbers():
    assert shapes.ConvertIntKey().get(True) == 1
    assert str(shapes.ConvertIntKey()) == ".cast_symbool_to_symint_guardless()"
    assert shapes.CallMethodKey("size").get(X) == (2, 3)
    assert str(shapes.CallMethodKey("a")) == ".a()"
    assert shapes.DivideByKey(2).get(9) == 4 and str(shapes.DivideByKey(2)) == ".__floordiv__(2)"
    assert shapes.InnerTensorKey("real").get(2) == 2 and str(shapes.InnerTensorKey("a")) == ".a"
    same = shapes.SymIntEqByExpr
    assert same(3) == same(3) != same(4) and {same(3): 1}[same(3)] == 1 and repr(same(3)) == "3"
    error = shapes.GuardOnDataDependentSymNode("c", "text")
    assert error.cond == "c" and str(error) == "text"


def test_dynamic_int():
    n = DynamicInt(7)
    assert n == 7 and hash(n) == hash(7) and repr(n) == str(n) == "DynamicInt(7)"
    for made in (n + 1, 1 + n, n - 2, n // 2, n % 4, n**2, -n, abs(n), n & 3, n << 1, 2**n):
        assert type(made) is DynamicInt
    assert 2 - n == -5 and 7 // DynamicInt(2) == 3 and n / 2 == 3.5 and n + 1.5 == 8.5
    assert type(int(n)) is int and treadle.ones(DynamicInt(3)).shape == (3,)
    text = "DynamicInt: expected a int, got a float"
    assert text_of(AssertionError, DynamicInt, 2.5) == text


def test_operators_by_name():
    by_name = sym_node.method_to_operator
    assert by_name("int_floordiv")(7, 2) == 3 and by_name("and")(6, 3) == 2
    assert by_name("sym_max")(1, 2.0) == 2.0 and by_name("ceil")(2.5) == 3
    assert by_name("sym_cos") is math.cos and by_name("is_integer")(2.0)
    assert all(callable(by_name(name)) for name in sym_node.magic_methods)
    with pytest.raises(KeyError):
        by_name("nope")
    with pytest.raises(NotImplementedError):
        sym_node.SymNode(1)

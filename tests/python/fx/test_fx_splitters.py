"""fx.passes: what splitters are made of, one order of graphs, shapes without memory."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import operator

import pytest

import treadle
from treadle import fx, nn
from treadle.fx.passes import splitter_base, tools_common
from treadle.fx.passes.canonicalize import canonicalize_graph, rename_nodes_to_canonical
from treadle.fx.passes.fake_tensor_prop import FakeTensorProp
from treadle.fx.passes.graph_transform_observer import GraphTransformObserver
from treadle.fx.passes.operator_support import OperatorSupportBase
from treadle.fx.passes.shape_prop import ShapeProp
from treadle.fx.passes.split_module import split_module, split_module_simple
from treadle.fx.passes.split_utils import move_non_tensor_nodes_on_boundary
from treadle.fx.passes.splitter_base import NodeEvent, NodeEventTracker, Subgraph
from treadle.testing import assert_close

X = treadle.arange(6.0).reshape(2, 3)


class AllBut(OperatorSupportBase):
    def __init__(self, *names):
        self.names = names

    def is_node_supported(self, submodules, node):
        return node.name not in self.names


def sizes(x):
    rows = x.size(0)
    more = rows + 1
    return (x.relu() * more).sum() + x.exp().sum()


def traced(function, x=X):
    gm = fx.symbolic_trace(function)
    ShapeProp(gm).propagate(x)
    return gm, {node.name: node for node in gm.graph.nodes}


def names(nodes):
    return sorted(node.name for node in nodes)


# ---- nodes for a device ----


def test_nodes_that_a_device_supports():
    gm, _ = traced(sizes)
    every = ["add", "add_1", "exp", "mul", "relu", "size", "sum_1", "sum_2"]

    def found(allow, *unsupported):
        finder = splitter_base.FxNetAccNodesFinder(gm, AllBut(*unsupported), allow)
        return names(finder()), finder.tracker.to_dict()

    assert found(False)[0] == every
    assert found(True, "mul")[0] == [n for n in every if n != "mul"]
    # `more` is a number that `mul` would be given from elsewhere, and so is `rows`.
    acc, events = found(False, "mul")
    assert acc == ["add_1", "exp", "relu", "sum_1", "sum_2"]
    assert events["add"][-1] == "add: acc_del|non_tensor_output_with_cpu_user mul"
    assert events["mul"] == ["mul: init_cpu|not_supported #"]
    acc, events = found(False, "size")
    assert acc == ["add_1", "exp", "relu", "sum_1", "sum_2"]
    assert events["mul"][-1] == "mul: acc_del|user_of_new_cpu_node add"


def test_groups_that_pass_numbers():
    gm, by_name = traced(sizes)
    nodes = {n for n in gm.graph.nodes if n.op.startswith("call")}
    groups = tools_common.FxNetAccFusionsFinder(gm, set(nodes))()
    assert {n.name: names(group) for n, group in groups.items()} == dict.fromkeys(
        ["size", "add", "mul"], ["add", "mul", "size"]
    )
    left = nodes - {by_name["mul"]}
    finder = tools_common.FxNetAccFusionsFinder(gm, left)
    assert finder() == {} and names(finder.acc_nodes) == ["add_1", "exp", "relu", "sum_1", "sum_2"]


def test_numbers_move_to_who_uses_them():
    gm, by_name = traced(sizes)
    order = list(gm.graph.nodes)
    first = Subgraph(False, order[1:4])
    second = Subgraph(True, order[4:-1])
    assert names(first.nodes) == ["add", "relu", "size"]
    move_non_tensor_nodes_on_boundary([first, second])
    assert names(first.nodes) == ["relu"] and second.nodes[:2] == order[1:3]
    # A number that two others use stays.
    three = [Subgraph(True, [by_name[n]]) for n in ("size", "add", "relu")]
    by_name["relu"].args = (by_name["x"], by_name["size"])
    move_non_tensor_nodes_on_boundary(three)
    assert [names(s.nodes) for s in three] == [["size"], ["add"], ["relu"]]


def test_events(capsys, tmp_path):
    _, by_name = traced(sizes)
    tracker = NodeEventTracker(1, str(tmp_path / "log"))
    tracker.add(by_name["relu"], "one", by_name["x"])
    tracker.add(by_name["mul"], "two", by_name["relu"])
    assert NodeEvent(by_name["mul"], "d").to_str() == "mul: d #"
    tracker.print_node("mul", recursive=True)
    assert capsys.readouterr().out == "mul: two relu\n| relu: one x\n"
    tracker.dump()
    expected = "Node: relu:\n  relu: one x\nNode: mul:\n  mul: two relu\n"
    assert (tmp_path / "log_nodes.txt").read_text() == expected
    NodeEventTracker(0, str(tmp_path / "none")).dump()
    assert not (tmp_path / "none_nodes.txt").exists()


def test_inputs_of_submodules():
    module = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    found = splitter_base.generate_inputs_for_submodules(module, [X], ["0", "1"], deepcopy=True)
    assert treadle.equal(found["0"][0], X) and found["0"][0] is not X
    assert_close(found["1"][0], module[0](X))
    assert not module[0]._forward_pre_hooks
    with pytest.raises(AttributeError):
        splitter_base.generate_inputs_for_submodules(module, [X], ["2"])


def test_parts_by_a_dict():
    gm, _ = traced(sizes)
    parts = {n: int(i > 4) for i, n in enumerate(gm.graph.nodes) if n.op.startswith("call")}
    made = split_module_simple(gm, parts, partition_affix="a")
    assert [name for name, _ in made.named_children()] == ["submod_a_0", "submod_a_1"]
    assert_close(made(X), sizes(X))
    assert made.code == split_module(gm, gm, parts.__getitem__, partition_affix="a").code
    with pytest.raises(KeyError):
        split_module_simple(gm, {})


# ---- one order and one set of names ----


def mixed(x, y):
    b = y.relu()
    a = treadle.abs(x)
    c = treadle.abs(b)
    return (a + c) * b


def key(node, place):
    return {"placeholder": 0, "output": 2}.get(node.op, 1), str(node.name)


def test_one_order():
    gm = fx.symbolic_trace(mixed)
    assert canonicalize_graph(gm.graph, key, lambda n: True) == {}
    assert [n.name for n in gm.graph.nodes][2:5] == ["abs_1", "relu", "abs_2"]
    gm.recompile()
    assert_close(gm(X, X), mixed(X, X))
    gm = fx.symbolic_trace(mixed)
    canonicalize_graph(gm.graph, key, lambda n: n.name != "relu")
    assert [n.name for n in gm.graph.nodes][2:5] == ["relu", "abs_1", "abs_2"]


def test_items_behind_their_node():
    gm = fx.symbolic_trace(lambda x: (lambda t: (t[1] + 1) + (t[0] * 2))(x.split(2)))
    renamed = canonicalize_graph(gm.graph, key, lambda n: True, group_getitems=True)
    assert renamed == {"getitem": "getitem_1", "getitem_1": "getitem"}
    order = list(gm.graph.nodes)
    assert [n.args[1] for n in order[2:4]] == [0, 1]
    assert all(n.target is operator.getitem for n in order[2:4])


def test_one_set_of_names():
    gm = fx.symbolic_trace(mixed)
    node = next(n for n in gm.graph.nodes if n.name == "abs_2")
    node.name = "other"
    assert rename_nodes_to_canonical(gm.graph, frozenset(["call_function"])) == {}
    assert rename_nodes_to_canonical(gm.graph) == {"other": "abs_2"}
    with gm.graph.inserting_before(gm.graph.output_node()):
        assert gm.graph.call_function(treadle.abs, (node,)).name == "abs_3"


def test_passes_by_name():
    gm = fx.symbolic_trace(mixed)
    assert GraphTransformObserver(gm, "p").apply_gm_pass(lambda m: m) is gm
    assert GraphTransformObserver(gm, "p", "s").apply_graph_pass(lambda g: g) is gm.graph
    with pytest.raises(NotImplementedError) as caught:
        GraphTransformObserver(gm, "p", log_url="a")
    assert str(caught.value) == (
        "GraphTransformObserver: expected no log_url, got 'a': graphs are not drawn"
    )


# ---- shapes without memory ----


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(3, 4), nn.BatchNorm1d(4)
        self.w = nn.Parameter(treadle.ones(4))

    def forward(self, x):
        return self.norm(self.linear(x)) * self.w, x.size(0)


def test_shapes_without_memory():
    module = Layers()
    gm = fx.symbolic_trace(module)
    before = module.norm.running_mean.clone()
    result, rows = FakeTensorProp(gm).propagate(X)
    assert result.device.type == "meta" and result.shape == (2, 4) and rows == 2
    values = {node.name: node.meta["val"] for node in gm.graph.nodes}
    assert values["linear"].shape == (2, 4) and values["w"].device.type == "meta"
    assert treadle.equal(module.norm.running_mean, before) and X.device.type == "cpu"
    again, _ = FakeTensorProp(gm).propagate_dont_convert_inputs(X.to("meta"))
    assert again.shape == (2, 4)
    with pytest.raises(NotImplementedError) as caught:
        FakeTensorProp(gm, mode=1)
    assert str(caught.value) == (
        "FakeTensorProp: expected no mode, got a int: shapes are found by the meta device"
    )

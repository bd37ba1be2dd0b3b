"""fx.passes.graph_drawer: a graph as a picture; what is given to pydot, which need not be there."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import sys
import types

import pytest

import treadle
from treadle import fx, nn
from treadle.fx.passes.graph_drawer import FxGraphDrawer
from treadle.fx.passes.shape_prop import ShapeProp


class Dot:
    def __init__(self, name, **settings):
        self.name, self.settings, self.nodes, self.edges = name, settings, {}, []

    def add_node(self, node):
        self.nodes[node.name] = node.settings

    def add_edge(self, edge):
        self.edges.append(edge.settings)


class Node:
    def __init__(self, name, **settings):
        self.name, self.settings = name, settings


class Edge:
    def __init__(self, *ends):
        self.settings = ends


@pytest.fixture
def pydot(monkeypatch):
    module = types.ModuleType("pydot")
    module.Dot, module.Node, module.Edge = Dot, Node, Edge
    monkeypatch.setitem(sys.modules, "pydot", module)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.w = nn.Parameter(treadle.ones(4))
        self.inner = fx.symbolic_trace(nn.Sequential(nn.ReLU()))

    def forward(self, x):
        y = self.inner(self.linear(x)) + self.w
        return y.sum(dim=1, keepdim=True), y[0]


class Tracer(fx.Tracer):
    def is_leaf_module(self, m, path):
        return isinstance(m, fx.GraphModule) or super().is_leaf_module(m, path)


def traced():
    net = Net()
    gm = fx.GraphModule(net, Tracer().trace(net))
    ShapeProp(gm).propagate(treadle.ones(2, 3))
    return gm


def test_nodes_and_edges(pydot):
    drawer = FxGraphDrawer(traced(), "net")
    dot = drawer.get_dot_graph()
    assert dot is drawer.get_main_dot_graph() and dot.name == "net"
    assert dot.settings == {"rankdir": "TB"}
    assert {"x", "linear", "linear.weight", "linear.bias", "inner", "w", "add"} <= set(dot.nodes)
    assert ("x", "linear") in dot.edges and ("linear.bias", "linear") in dot.edges
    assert ("w", "add") in dot.edges and dot.nodes["x"]["fillcolor"] == "AliceBlue"
    assert dot.nodes["x"]["label"] == (
        "{name=%x|op_code=placeholder|target=x|num_users=1|dtype=" + str(treadle.float32)
        + "|shape=(2, 3)|requires_grad=False|stride=(3, 1)}"
    )  # fmt: skip
    assert "torch.nn" in dot.nodes["linear"]["label"] or "nn." in dot.nodes["linear"]["label"]
    assert "in_features=3" in dot.nodes["linear"]["label"]
    assert "kwargs=\\{'dim': 1, 'keepdim': True\\}" in dot.nodes["sum_1"]["label"]
    assert "args=(0,)" in dot.nodes["getitem"]["label"]
    assert dot.nodes["output"]["label"].count("shape=") == 2
    assert sorted(drawer.get_all_dot_graphs()) == ["net", "net_inner"]
    assert drawer.get_dot_graph("inner") is drawer.get_submod_dot_graph("inner")
    with pytest.raises(KeyError):
        drawer.get_submod_dot_graph("linear")


def test_what_is_left_out(pydot):
    gm = traced()
    dot = FxGraphDrawer(gm, "n", ignore_getattr=True, ignore_parameters_and_buffers=True)
    assert not {"w", "linear.weight"} & set(dot.get_dot_graph().nodes)
    dot = FxGraphDrawer(gm, "n", skip_node_names_in_args=False, dot_graph_shape="box")
    nodes = dot.get_dot_graph().nodes
    assert "args=(inner, w)" in nodes["add"]["label"] and nodes["add"]["shape"] == "box"
    gm = fx.symbolic_trace(lambda x: treadle.sum(x, 1))
    list(gm.graph.nodes)[1].stack_trace = "first line\n  File a.py, line 3"
    dot = FxGraphDrawer(gm, "n", parse_stack_trace=True, normalize_args=True).get_dot_graph()
    assert "File a.py, line 3" in dot.nodes["sum_1"]["label"]
    assert "dim" in dot.nodes["sum_1"]["label"]


def test_without_pydot(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydot", None)
    with pytest.raises(RuntimeError) as caught:
        FxGraphDrawer(traced(), "net")
    assert str(caught.value) == (
        "FxGraphDrawer: expected the package pydot, got none: pip install pydot"
    )

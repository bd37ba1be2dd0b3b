"""fx.experimental, types and provenance of nodes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import operator

import pytest

import treadle
from treadle import fx, nn
from treadle.fx import annotate, operator_schemas, tensor_type, traceback
from treadle.fx.experimental import (
    const_fold,
    merge_matmul,
    normalize,
    optimization,
    proxy_tensor,
)
from treadle.fx.experimental.schema_type_annotation import AnnotateTypesWithSchema
from treadle.testing import assert_close

X = treadle.arange(6.0).reshape(2, 3)


def targets(gm):
    return [n.target for n in gm.graph.nodes if n.op.startswith("call")]


# ---- parts that depend on parameters alone ----


class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(treadle.tensor([1.0, 2.0, 3.0]))
        self.v = nn.Parameter(treadle.tensor([2.0, 2.0, 2.0]))

    def forward(self, x):
        return x * (self.w + self.v) + self.v.exp()


def test_parameters_are_computed_once():
    module = Weighted()
    folded = const_fold.split_const_subgraphs(module)
    assert isinstance(folded, const_fold.FoldedGraphModule) and not folded.has_folding_been_run
    assert_close(folded(X), module(X))
    assert folded.has_folding_been_run
    module.w.data.fill_(100.0)
    assert_close(folded(X), X * treadle.tensor([3.0, 4.0, 5.0]) + treadle.tensor(2.0).exp())
    with pytest.raises(RuntimeError) as caught:
        folded.run_folding()
    assert str(caught.value) == "run_folding: expected one call, got another"


def test_one_constant_and_none():
    class One(Weighted):
        def forward(self, x):
            return x + self.w.exp()

    folded = const_fold.split_const_subgraphs(One())
    folded.run_folding()
    assert_close(folded(X), X + One().w.exp())
    same = const_fold.split_const_subgraphs(fx.symbolic_trace(lambda x: x + 1))
    assert treadle.equal(same(X), X + 1)
    skipped = const_fold.split_const_subgraphs(One(), skip_folding_node_fn=lambda n: True)
    assert skipped.const_subgraph_module is None and treadle.equal(skipped(X), X + One().w.exp())


def test_names_that_are_free():
    gm = fx.symbolic_trace(Weighted())
    name = const_fold.get_unique_attr_name_in_module
    assert [name(gm, n) for n in ("w", "a.b", "1st")] == ["w_1", "a_b", "_1st"]
    gm.w_1 = 0
    assert name(gm, "w") == "w_2"


# ---- inference ----


def test_normalisation_goes_into_weights():
    treadle.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(2, 3),
        nn.BatchNorm1d(3),
    )  # fmt: skip
    with treadle.no_grad():
        net[1].running_mean += 0.5
        net[5].running_var *= 4
    net.eval()
    x = treadle.randn(2, 1, 3, 3)
    fused = optimization.fuse(net)
    assert_close(fused(x), net(x))
    assert len(targets(fused)) == 4 and isinstance(net[1], nn.BatchNorm2d)
    training = optimization.fuse(net.train())
    assert len(targets(training)) == 6


def test_dropout_is_taken_out():
    net = nn.Sequential(nn.Linear(3, 3), nn.Dropout(), nn.ReLU())
    without = optimization.remove_dropout(net)
    assert treadle.equal(without(X), net[2](net[0](X))) and len(targets(without)) == 2


def test_a_part_of_a_graph():
    gm = fx.symbolic_trace(lambda x: ((x + 1) * 2).relu())
    x, add, mul, relu, _ = gm.graph.nodes
    part = optimization.extract_subgraph(gm, [mul, relu], [add], [relu])
    assert part(X - 4)[0].tolist() == ((X - 4) * 2).relu().tolist()
    groups = optimization.UnionFind(4)
    groups.join(0, 1)
    groups.join(1, 3)
    assert groups.find(3) == groups.find(0) != groups.find(2)


def test_products_with_one_matrix():
    class Products(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(treadle.randn(3, 4))

        def forward(self, x, y):
            return treadle.matmul(x, self.w), treadle.matmul(y + 1, self.w)

    module = Products()
    merged = merge_matmul.merge_matmul(module)
    assert targets(merged).count(treadle.matmul) == 1
    for found, wanted in zip(merged(X, X[:1]), module(X, X[:1])):
        assert_close(found, wanted)
    dependent = fx.symbolic_trace(lambda x: treadle.matmul(treadle.matmul(x, x), x))
    first, second = (n for n in dependent.graph.nodes if n.op == "call_function")
    assert not merge_matmul.are_nodes_independent([first, second])
    assert merge_matmul.may_depend_on(second, first, search_depth=1)
    assert not merge_matmul.may_depend_on(first, second)


# ---- calls written in one way ----


def test_arguments_by_name():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 2)

        def forward(self, x):
            return nn.functional.softmax(self.linear(x), 1)

    gm = fx.symbolic_trace(Two())
    made = normalize.NormalizeArgs(gm).transform()
    calls = {n.op: n for n in made.graph.nodes if n.op.startswith("call")}
    assert calls["call_module"].args == () and list(calls["call_module"].kwargs) == ["input"]
    assert calls["call_function"].kwargs["dim"] == 1
    assert_close(made(X), gm(X))


def test_functions_in_place_of_operators():
    gm = fx.symbolic_trace(lambda x: (x + 1) * x / 2 > x)
    made = normalize.NormalizeOperators(gm).transform()
    assert targets(made) == [treadle.add, treadle.mul, treadle.div, treadle.gt]
    assert treadle.equal(made(X), gm(X))


def test_types_of_layers():
    net = nn.Sequential(nn.ReLU())
    made = AnnotateTypesWithSchema(fx.symbolic_trace(net)).transform()
    assert [n.type for n in made.graph.nodes if n.op == "call_module"] == [treadle.Tensor]
    plain = AnnotateTypesWithSchema(fx.symbolic_trace(net), annotate_modules=False).transform()
    assert [n.type for n in plain.graph.nodes if n.op == "call_module"] == [None]


# ---- types ----


def test_a_value_gets_a_type():
    seen = []

    def program(x):
        y = annotate.annotate(x + 1, treadle.Tensor)
        seen.append(y.node.type)
        with pytest.raises(RuntimeError) as caught:
            annotate.annotate(y, int)
        assert str(caught.value).startswith("annotate: expected a value without a type, got one of")
        return y

    fx.symbolic_trace(program)
    assert seen == [treadle.Tensor]
    assert annotate.annotate(3, int) == 3


def test_types_of_tensors():
    Dyn, T = tensor_type.Dyn, tensor_type.TensorType
    assert T((1, Dyn)) == T([1, Dyn]) != T((1, 2)) and repr(Dyn) == "Dyn"
    assert T[1, 2].dims == (1, 2)
    consistent = tensor_type.is_consistent
    assert consistent(T((1, Dyn, 3)), T((1, 2, 3))) and consistent(int, Dyn)
    assert not consistent(T((1, 2)), T((1, 3))) and not consistent(T((1,)), T((1, Dyn)))
    assert not consistent(int, str)
    precise = tensor_type.is_more_precise
    assert precise(T((1, 2)), T((1, Dyn))) and not precise(T((1, Dyn)), T((1, 2)))
    assert precise(T((1,)), Dyn) and not precise(Dyn, int)


def test_operators_that_write():
    check = operator_schemas.check_for_mutable_operation
    check(treadle.ops.aten.add.Tensor, (), {})
    check(operator.add, (), {})
    with pytest.raises(RuntimeError) as caught:
        check(treadle.ops.aten.add_.Tensor, (), {})
    assert str(caught.value).startswith("trace: expected operators that write to no argument, got")


# ---- where nodes come from ----


def test_sources_of_nodes():
    gm = fx.symbolic_trace(lambda x: x + 1)
    add = next(n for n in gm.graph.nodes if n.name == "add")
    source = traceback.NodeSource(add, "fold", traceback.NodeSourceAction.CREATE)
    assert (source.name, source.pass_name) == ("add", "fold")
    add.meta["from_node"] = [source]
    actions = list(traceback.NodeSourceAction)
    later = traceback.NodeSource(add, "merge", actions)
    assert later.to_dict()["action"] == "create+replace"
    assert later.to_dict()["from_node"][0]["name"] == "add"
    assert later.print_readable().count("name=add") == 2
    assert later == traceback.NodeSource(add, "merge", actions) != source
    assert traceback.NodeSource(None).graph_id == -1


def test_blocks_of_nodes():
    gm = fx.symbolic_trace(lambda x: x + 1)
    assert traceback.get_current_replay_node() is None
    with traceback.set_current_replay_node(gm.graph.output_node()):
        assert traceback.get_current_replay_node() is gm.graph.output_node()
    assert traceback.get_current_replay_node() is None

    @traceback.annotate_fn({"stage": 1})
    def inside():
        return traceback.get_current_meta()["custom"]

    assert inside() == {"stage": 1} and "custom" not in traceback.get_current_meta()


# ---- a whole module for inference, and graphs made anew ----


class Inference(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)
        self.drop, self.flat = nn.Dropout(), nn.Flatten()

    def forward(self, x):
        return self.flat(self.drop(self.norm(self.conv(x))))


def test_a_module_for_inference():
    treadle.manual_seed(0)
    net = Inference()
    net.norm.running_mean += 0.5
    net.eval()
    x = treadle.randn(2, 1, 4, 4)

    def layers(config=None):
        made = optimization.optimize_for_inference(net, config)
        assert_close(made(x), net(x))
        return [n.name for n in made.graph.nodes if n.op == "call_module"]

    assert layers() == ["conv", "flat"]
    assert layers({"conv_bn_fuse": False}) == ["conv", "norm", "flat"]
    assert layers({"remove_dropout": False, "mkldnn_layout_optimize": {}}) == [
        "conv", "drop", "flat",
    ]  # fmt: skip
    assert isinstance(net.norm, nn.BatchNorm2d) and net.conv.bias is not None
    with pytest.raises(RuntimeError) as caught:
        layers({"fast": True})
    assert str(caught.value) == (
        "optimize_for_inference: expected the keys conv_bn_fuse, remove_dropout, "
        "mkldnn_layout_optimize, got fast"
    )


def test_modules_are_put_back():
    gm = fx.symbolic_trace(Inference())
    modules, before = dict(gm.named_modules()), gm.drop
    node = next(n for n in gm.graph.nodes if n.name == "drop")
    other = nn.Identity()
    optimization.replace_node_module(node, modules, other)
    assert gm.drop is other
    optimization.reset_modules(list(gm.graph.nodes), modules, {other: before})
    assert gm.drop is before and modules["drop"] is before


def clamped(x):
    return treadle.clamp(x, min=0)


class Relus(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.w = nn.Parameter(treadle.ones(3))

    def forward(self, x):
        y = treadle.relu(self.linear(x) * self.w)
        return treadle.relu(y - 1).sum(), y


def test_calls_by_what_a_table_has():
    module = Relus()
    gm = fx.symbolic_trace(module)
    graph = fx.Graph()
    run = proxy_tensor.DecompositionInterpreter(gm, graph, {treadle.relu: clamped})
    run.run(X)
    made = fx.GraphModule(gm, graph)
    assert_close(made(X), module(X))
    assert [n.target for n in graph.nodes if n.op == "call_function"].count(treadle.clamp) == 2
    some = proxy_tensor.selective_decompose(
        gm,
        X,
        decomposition={treadle.relu: clamped},
        should_decompose=lambda node: node.name == "relu_1",
        trace_joint_graph=False,
    )
    assert_close(some(X), module(X))
    found = [n.target for n in some.graph.nodes if n.target in (treadle.relu, treadle.clamp)]
    assert found == [treadle.relu, treadle.clamp]


def test_traces_by_a_tracer():
    gm = proxy_tensor.dispatch_trace(Relus(), proxy_tensor.PythonKeyTracer())
    assert type(gm).__name__ == "Relus" and treadle.relu in targets(gm)
    gm = proxy_tensor.dispatch_trace(lambda x, k: x + k, fx.Tracer(), (treadle.fx.PH, 2))
    assert treadle.equal(gm(X, 2), X + 2)
    assert proxy_tensor.get_innermost_proxy_mode() is None
    seen = []

    def function(x):
        seen.append(proxy_tensor.handle_sym_dispatch(max, (x.shape[0], 1), {}))
        with proxy_tensor.maybe_enable_thunkify(), proxy_tensor.maybe_disable_thunkify():
            return x + 1

    proxy_tensor.make_fx(function)(X)
    assert seen == [2] and isinstance(proxy_tensor.py_sym_types, tuple)
    with pytest.raises(AssertionError) as caught:
        proxy_tensor.handle_sym_dispatch(max, (1, 2), {})
    assert str(caught.value) == "handle_sym_dispatch: expected make_fx() at work, got none"

"""Passes over graphs: what can be run somewhere, parts of graphs, sizes, order."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import logging
import operator
from typing import List, Tuple

import pytest

import treadle
from treadle import fx, nn
from treadle.fx.passes import graph_manipulation, operator_support, pass_manager, tools_common
from treadle.fx.passes.annotate_getitem_nodes import annotate_getitem_nodes
from treadle.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops
from treadle.fx.passes.infra import pass_manager as repeating
from treadle.fx.passes.infra.partitioner import CapabilityBasedPartitioner, Partition
from treadle.fx.passes.shape_prop import ShapeProp
from treadle.fx.passes.split_utils import getattr_recursive, setattr_recursive, split_by_tags
from treadle.fx.passes.utils import common, fuser_utils, source_matcher_utils
from treadle.fx.passes.utils.matcher_with_name_node_map_utils import SubgraphMatcherWithNameNodeMap


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.scale = nn.Parameter(treadle.tensor([2.0]))

    def forward(self, x):
        y = self.linear(x)
        z = (y + 1).relu() * self.scale
        return z - y


def traced():
    treadle.manual_seed(0)
    return fx.symbolic_trace(Net())


X = treadle.arange(6.0).reshape(2, 3)


def node(gm, name):
    return next(n for n in gm.graph.nodes if n.name == name)


def supports(*names):
    return operator_support.create_op_support(lambda _, n: n.name in names)


# ---- what is supported ----


def test_predicates_are_combined():
    gm = traced()
    modules = dict(gm.named_modules())
    both = operator_support.chain(supports("add", "mul"), supports("add"))
    any_of = operator_support.any_chain(supports("mul"), supports("add"))
    names = ("add", "mul", "sub")
    assert [both.is_node_supported(modules, node(gm, n)) for n in names] == [True, False, False]
    assert [any_of.is_node_supported(modules, node(gm, n)) for n in names] == [True, True, False]
    not_add = operator_support.OpSupports.decline_if_node_in_names({"add"})
    assert not not_add.is_node_supported(modules, node(gm, "add"))


def test_targets_and_dtypes():
    gm = traced()
    ShapeProp(gm).propagate(X)
    modules = dict(gm.named_modules())
    target = tools_common.get_node_target(modules, node(gm, "linear"))
    floats, halves = [treadle.float32], [treadle.float16]
    for table, wanted in (
        ({target: None}, True),
        ({}, False),
        ({target: ([floats], {})}, True),
        ({target: ([halves], {})}, False),
        ({target: ([None], {"other": halves})}, True),
    ):
        support = operator_support.OperatorSupport(table)
        assert support.is_node_supported(modules, node(gm, "linear")) is wanted
        assert support.is_node_supported(modules, node(gm, "x"))
    decline = operator_support.OpSupports.decline_if_input_dtype
    assert not decline(treadle.float32).is_node_supported(modules, node(gm, "linear"))
    assert decline(treadle.float16).is_node_supported(modules, node(gm, "linear"))


# ---- parts ----


def test_nodes_become_a_module():
    gm = traced()
    wanted = gm(X)
    nodes = [node(gm, n) for n in ("add", "relu", "scale", "mul")]
    fused, inputs, outputs = fuser_utils.fuse_as_graphmodule(gm, nodes, "Fused")
    assert type(fused).__name__ == "Fused"
    assert [n.name for n in inputs] == ["linear"] and [n.name for n in outputs] == ["mul"]
    assert treadle.equal(fused(X), (X + 1).relu() * 2)
    fuser_utils.insert_subgm(gm, fused, inputs, outputs)
    fuser_utils.erase_nodes(gm, nodes)
    gm.graph.lint()
    gm.recompile()
    assert treadle.equal(gm(X), wanted)
    assert [n.op for n in gm.graph.nodes].count("call_module") == 2


def test_nodes_that_cannot_become_one():
    gm = traced()
    apart = [node(gm, "linear"), node(gm, "mul")]
    assert not fuser_utils.validate_partition(apart)
    assert fuser_utils.validate_partition([node(gm, "add"), node(gm, "relu")])
    with pytest.raises(AssertionError) as caught:
        fuser_utils.fuse_as_graphmodule(gm, apart, "Fused")
    assert str(caught.value) == (
        "fuse_as_graphmodule: expected nodes of which none needs another over nodes outside"
    )
    with pytest.raises(AssertionError) as caught:
        fuser_utils.fuse_as_graphmodule(traced(), apart, "Fused")
    assert str(caught.value) == "fuse_as_graphmodule: expected nodes of the module's graph"
    order = fuser_utils.topo_sort([node(gm, n) for n in ("mul", "add", "relu")])
    assert [n.name for n in order] == ["add", "relu", "mul"]


def test_parts_as_large_as_they_can_be():
    gm = traced()
    wanted = gm(X)
    partitioner = CapabilityBasedPartitioner(gm, supports("add", "relu", "mul", "sub"))
    (part,) = partitioner.propose_partitions()
    assert isinstance(part, Partition) and part.size() == 4
    assert [n.name for n in part.nodes] == ["add", "relu", "mul", "sub"]
    result = partitioner.fuse_partitions([part])
    assert treadle.equal(result(X), wanted)
    assert hasattr(result, "fused_0") and len(result.graph.nodes) == 5
    gm = traced()
    alone = CapabilityBasedPartitioner(gm, supports("add", "mul", "sub"))
    assert [list(p.nodes) for p in alone.propose_partitions()] == [
        [node(gm, "mul"), node(gm, "sub")]
    ]
    single = CapabilityBasedPartitioner(gm, supports("add"), allows_single_node_partition=True)
    assert treadle.equal(single.partition_and_fuse("only_")(X), wanted)


def test_parts_do_not_need_each_other():
    def program(x, y):
        a = x + 1
        b = y.relu()
        return (b + a) * a.relu(), (a * 2).relu() + b

    gm = fx.symbolic_trace(program)
    wanted = gm(X, X - 3)
    functions = operator_support.create_op_support(lambda _, n: n.op == "call_function")
    result = CapabilityBasedPartitioner(gm, functions).partition_and_fuse()
    result.graph.lint()
    assert [treadle.equal(a, b) for a, b in zip(result(X, X - 3), wanted)] == [True, True]


def test_steps_that_count_for_none_leave_the_edges():
    gm = traced()
    partitioner = CapabilityBasedPartitioner(
        gm, supports("add", "relu", "mul"), non_compute_ops=["_operator.add", "operator.add"]
    )
    (part,) = partitioner.propose_partitions()
    partitioner.remove_bookend_non_compute_ops([part])
    assert [n.name for n in part.nodes] == ["relu", "mul"]


def test_a_graph_split_by_tags():
    gm = traced()
    for n in gm.graph.nodes:
        n.tag = "first" if n.name in ("linear", "add") else "second"
    split, paths = split_by_tags(gm, ["first", "second"], return_fqn_mapping=True)
    assert treadle.equal(split(X), gm(X))
    assert [n.target for n in split.graph.nodes if n.op == "call_module"] == ["first", "second"]
    assert paths == {"first.linear": "linear", "second.scale": "scale"}
    node(gm, "linear").tag = "second"
    with pytest.raises(AssertionError) as caught:
        split_by_tags(gm, ["first", "second"])
    assert str(caught.value) == (
        "split_by_tags: expected add of first not to use linear of second, which comes later"
    )
    node(gm, "add").tag = "third"
    with pytest.raises(AssertionError) as caught:
        split_by_tags(gm, ["first", "second"])
    assert str(caught.value) == ("split_by_tags: expected a tag of first, second on add, got third")


def test_values_at_paths():
    net = nn.Sequential(nn.Linear(1, 1))
    assert getattr_recursive(net, "0.weight") is net[0].weight
    assert getattr_recursive(net, "1.weight") is None
    setattr_recursive(net, "0.extra", 3)
    assert net[0].extra == 3


def test_graphs_are_compared_and_lifted():
    gm = traced()
    assert common.compare_graphs(gm.graph, traced().graph)
    other = fx.symbolic_trace(lambda x: x + 2)
    assert not common.compare_graphs(gm.graph, other.graph)
    lifted, paths = common.lift_subgraph_as_module(gm, gm.graph, "part", "Part")
    assert paths == {"part.linear": "linear", "part.scale": "scale"}
    assert type(lifted).__name__ == "Part" and treadle.equal(lifted(X), gm(X))
    held = common.HolderModule({"a": nn.ReLU(), "b": None})
    assert isinstance(held.a, nn.ReLU) and held.b is None


def test_nodes_by_the_layer_that_they_came_of():
    gm = traced()
    for n in ("add", "relu"):
        node(gm, n).meta["source_fn_stack"] = [("part", nn.ReLU)]
    node(gm, "mul").meta["source_fn_stack"] = [("mul", operator.mul)]
    found = source_matcher_utils.get_source_partitions(gm.graph, [nn.ReLU, operator.mul])
    (first,), (second,) = found[nn.ReLU], found[operator.mul]
    assert [n.name for n in first.nodes] == ["add", "relu"]
    assert [n.name for n in first.input_nodes] == ["linear"]
    assert [n.name for n in second.params] == ["scale"]
    assert source_matcher_utils.check_subgraphs_connected(first, second)
    assert not source_matcher_utils.check_subgraphs_connected(second, first)
    none = source_matcher_utils.get_source_partitions(gm.graph, [nn.ReLU], lambda n: False)
    assert none == {}


def test_a_match_has_the_names_of_its_pattern():
    def pattern(y):
        added = y + 1
        return added.relu(), {"added": added}

    matcher = SubgraphMatcherWithNameNodeMap(fx.symbolic_trace(pattern))
    gm = traced()
    (found,) = matcher.match(gm.graph)
    assert found.name_node_map["added"] is node(gm, "add")


# ---- the order of passes and nodes ----


def first(values):
    return [*values, 1]


def second(values):
    values.append(2)
    return len(values)


def test_passes_in_order(caplog):
    manager = pass_manager.PassManager([first, pass_manager.inplace_wrapper(second)])
    manager.add_constraint(pass_manager.these_before_those_pass_constraint(first, second))
    assert manager([]) == [1, 2]
    manager.add_constraint(pass_manager.these_before_those_pass_constraint(second, first))
    with pytest.raises(RuntimeError) as caught:
        manager([])
    assert str(caught.value) == ("PassManager: expected second before first, as a constraint says")
    manager.constraints.clear()
    manager.remove_pass(["second"])
    manager.add_pass(pass_manager.loop_pass(first, n_iter=2))
    assert manager([]) == [1, 1, 1]
    manager.replace_pass(first, pass_manager.loop_pass(first, predicate=lambda v: len(v) < 3))
    assert manager([]) == [1, 1, 1]
    with caplog.at_level(logging.INFO):
        assert pass_manager.log_hook(first)([0]) == [0, 1]
    assert "Return value: [0, 1]" in caplog.text
    with pytest.raises(AssertionError):
        pass_manager.loop_pass(first)


def test_passes_until_nothing_changes():
    def drop_one(gm):
        unused = [n for n in gm.graph.nodes if n.name == "extra"]
        for n in unused:
            gm.graph.erase_node(n)
        return repeating.PassResult(gm, bool(unused))

    def nothing(gm):
        return None

    gm = traced()
    with gm.graph.inserting_before(node(gm, "output")):
        gm.graph.create_node("call_function", operator.neg, (node(gm, "x"),), name="extra")
    constraint = repeating.this_before_that_pass_constraint(nothing, drop_one)
    manager = repeating.PassManager([drop_one, nothing], [constraint], steps=3)
    result = manager(gm)
    assert result.modified and not [n for n in gm.graph.nodes if n.name == "extra"]
    assert manager.passes == [nothing, drop_one]
    assert manager(gm).modified is False
    manager.add_constraint(repeating.this_before_that_pass_constraint(drop_one, nothing))
    with pytest.raises(RuntimeError) as caught:
        manager.solve_constraints()
    assert str(caught.value) == (
        "PassManager: expected constraints that an order meets, got a cycle of nothing, drop_one"
    )
    wrapped = repeating.pass_result_wrapper(lambda gm: None)
    assert wrapped(gm) == (gm, True)


def test_checks_after_passes():
    def check(gm):
        raise ValueError("wrong")

    manager = repeating.PassManager([], suppress_check_failures=True)
    manager.add_checks(check)
    with pytest.warns(UserWarning, match="^PassManager: a check failed: wrong$"):
        manager(traced())
    manager.suppress_check_failures = False
    with pytest.raises(ValueError, match="^wrong$"):
        manager(traced())
    with pytest.raises(ValueError, match="expected a function of one argument"):
        manager.add_checks(lambda a, b: None)
    failing = repeating.PassManager([lambda gm: 1])
    with pytest.raises(TypeError) as caught:
        failing(traced())
    assert str(caught.value) == (
        "PassManager: expected the pass <lambda> to return a PassResult, got int"
    )


def test_nodes_behind_those_they_use():
    gm = traced()
    wanted = [n.name for n in gm.graph.nodes]
    node(gm, "x").prepend(node(gm, "relu"))
    tools_common.stable_topological_sort(gm)
    gm.graph.lint()
    assert sorted(wanted) == sorted(n.name for n in gm.graph.nodes)
    assert treadle.equal(gm(X), traced()(X))
    assert tools_common.get_acc_ops_name("relu") == "relu"
    assert tools_common.get_acc_ops_name(nn.ReLU).endswith("nn.modules.activation.ReLU")


# ---- nodes ----


def test_sizes_and_other_targets():
    gm = traced()
    with pytest.raises(RuntimeError) as caught:
        graph_manipulation.get_size_of_node(gm, node(gm, "linear"))
    assert str(caught.value) == (
        "get_tensor_meta: expected ShapeProp to have been run, got linear without shapes"
    )
    graph_manipulation.get_size_of_all_nodes(gm, [X])
    assert node(gm, "linear").size_bytes == (24, 24 + 12 * 4)
    assert node(gm, "add").size_bytes == (24, 24)
    graph_manipulation.replace_target_nodes_with(
        gm, "call_function", operator.sub, "call_function", operator.add
    )
    y = gm.linear(X)
    assert treadle.equal(gm(X), (y + 1).relu() * 2 + y)


def test_types_of_elements():
    def program(pair: Tuple[int, str], numbers: List[float], rest: Tuple[int, ...]):
        return pair[0], pair[1], numbers[3], rest[7]

    gm = fx.symbolic_trace(program)
    annotate_getitem_nodes(gm.graph)
    found = [n.type for n in gm.graph.nodes if n.op == "call_function"]
    assert found == [int, str, float, int]


def test_a_step_that_is_there_twice():
    def program(x):
        return (x + 1) * (x + 1), x + 1.0, treadle.rand_like(x), treadle.rand_like(x)

    gm = fx.symbolic_trace(program)
    result = CSEPass()(gm)
    targets = [n.target for n in gm.graph.nodes if n.op == "call_function"]
    assert result.modified and targets.count(operator.add) == 2
    assert targets.count(treadle.rand_like) == 2
    assert treadle.equal(gm(X)[0], (X + 1) * (X + 1))
    assert not CSEPass()(gm).modified
    assert treadle.ops.aten.rand_like in get_CSE_banned_ops()


def test_nodes_of_sizes():
    gm = traced()
    x, output = node(gm, "x"), gm.graph.output_node()
    with gm.graph.inserting_before(output):
        made = (
            gm.graph.create_size_node(x, 1), gm.graph.create_stride_node(x, 0),
            gm.graph.create_storage_offset_node(x),
        )  # fmt: skip
    output.args = (made,)
    gm.recompile()
    assert gm(X) == (3, 3, 0)
    for name in ("name", "op", "target", "users", "meta", "graph", "type"):
        assert hasattr(fx.Node, name)

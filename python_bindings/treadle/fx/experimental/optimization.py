"""Modules made quicker for inference by changing their graphs."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import operator
from typing import Any, Dict, Iterable, List, Optional, Type

from treadle import _C, fx, nn
from treadle.nn import functional
from treadle.nn.utils import blocked
from treadle.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval


def _parent_name(target: str) -> tuple:
    path, _, name = target.rpartition(".")
    return path, name


def matches_module_pattern(pattern: Iterable[Type], node: fx.Node, modules: Dict[str, Any]) -> bool:
    """Whether a node calls a module of the last class of a pattern on what one of the class before
    returned, and so on. `modules` has the modules by their paths."""
    kinds = list(pattern)
    nodes = [node]
    while len(nodes) < len(kinds):
        before = nodes[0].args[0] if nodes[0].args else None
        if not isinstance(before, fx.Node):
            return False
        nodes.insert(0, before)
    return all(
        n.op == "call_module" and type(modules.get(n.target)) is kind
        for n, kind in zip(nodes, kinds)
    )


def replace_node_module(node: fx.Node, modules: Dict[str, Any], new_module: nn.Module) -> None:
    """Put a module in the place of the one that a node calls."""
    path, name = _parent_name(node.target)
    modules[node.target] = new_module
    setattr(modules[path], name, new_module)


_PAIRS = (
    (nn.Conv1d, nn.BatchNorm1d, fuse_conv_bn_eval),
    (nn.Conv2d, nn.BatchNorm2d, fuse_conv_bn_eval),
    (nn.Conv3d, nn.BatchNorm3d, fuse_conv_bn_eval),
    (nn.Linear, nn.BatchNorm1d, fuse_linear_bn_eval),
)


def fuse(model: nn.Module, inplace: bool = False, no_trace: bool = False) -> nn.Module:
    """A module, in eval mode, whose batch normalisations behind convolutions and linear layers are
    in the weights of those. With `inplace` the layers of `model` are changed, else those of a copy;
    with `no_trace` `model` has a graph already."""
    if not inplace:
        model = copy.deepcopy(model)
    traced: Any = (
        model if no_trace and isinstance(model, fx.GraphModule) else fx.symbolic_trace(model)
    )
    modules = dict(traced.named_modules())
    for first, second, fused_of in _PAIRS:
        for node in list(traced.graph.nodes):
            if not matches_module_pattern((first, second), node, modules):
                continue
            before = node.args[0]
            layer, norm = modules[before.target], modules[node.target]
            if len(before.users) > 1 or not norm.track_running_stats or norm.training:
                continue
            replace_node_module(before, modules, fused_of(layer, norm))
            node.replace_all_uses_with(before)
            traced.graph.erase_node(node)
    return fx.GraphModule(traced, traced.graph)


def remove_dropout(model: nn.Module) -> nn.Module:
    """A module without the layers of dropout."""
    traced = fx.symbolic_trace(model)

    class _WithoutDropout(fx.Transformer):
        def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
            if isinstance(self.submodules[target], nn.Dropout):
                return args[0]
            return super().call_module(target, args, kwargs)

    return _WithoutDropout(traced).transform()


def optimize_for_inference(
    model: nn.Module,
    pass_config: Optional[Dict[str, Any]] = None,
    tracer: Type[fx.Tracer] = fx.Tracer,
) -> nn.Module:
    """A module for inference: convolutions with their normalisation and relu in them, images that
    keep the order of convolutions between these, and no dropout. The model has to be in eval mode.
    `pass_config` turns one off: {"conv_bn_fuse": False}, {"remove_dropout": False} or
    {"mkldnn_layout_optimize": False}. RuntimeError for another key."""
    chosen: Dict[str, Any] = {
        "conv_bn_fuse": True,
        "remove_dropout": True,
        "mkldnn_layout_optimize": True,
    }
    given = dict(pass_config or {})
    unknown = sorted(set(given) - set(chosen))
    if unknown:
        raise RuntimeError(
            f"optimize_for_inference: expected the keys {', '.join(chosen)}, "
            f"got {', '.join(unknown)}"
        )
    chosen.update(given)
    made: Any = fx.GraphModule(model, tracer().trace(model))
    made = fuse(made, no_trace=True) if chosen["conv_bn_fuse"] else copy.deepcopy(made)
    modules = dict(made.named_modules())
    for node in list(made.graph.nodes):
        is_dropout = node.op == "call_module" and isinstance(modules[node.target], nn.Dropout)
        if is_dropout and chosen["remove_dropout"]:
            node.replace_all_uses_with(node.args[0])
            made.graph.erase_node(node)
    if chosen["mkldnn_layout_optimize"] is not False:
        _keep_blocks(made, modules)
    return fx.GraphModule(made, made.graph)


_KEEPING_MODULES = (
    nn.ReLU, nn.ReLU6, nn.Hardswish, nn.SiLU, nn.Sigmoid, nn.Hardsigmoid, nn.Identity, nn.MaxPool2d,
    nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.BatchNorm2d,
)  # fmt: skip
_KEEPING_FUNCTIONS = (
    operator.add,
    operator.iadd,
    _C.add,
    _C.relu,
    functional.relu,
    functional.relu6,
)


def _keep_blocks(made: fx.GraphModule, modules: Dict[str, nn.Module]) -> None:
    """Put convolutions that keep blocks of channels into a graph. What knows nothing of blocks is
    given the strided tensor."""
    kept = set()
    for node in list(made.graph.nodes):
        layer = modules.get(node.target) if node.op == "call_module" else None
        if layer is not None and blocked.is_convertible(layer):
            after = next(iter(node.users)) if len(node.users) == 1 else None
            if after is not None and not _is_relu(after, modules):
                after = None
            convolution = blocked.MkldnnConvolution(layer, relu=after is not None)
            replace_node_module(node, modules, convolution)
            if after is not None:
                after.replace_all_uses_with(node)
                made.graph.erase_node(after)
            kept.add(node)
            continue
        inputs = node.all_input_nodes
        keeps = isinstance(layer, _KEEPING_MODULES) if layer is not None else (
            node.op == "call_function" and node.target in _KEEPING_FUNCTIONS
        )  # fmt: skip
        if keeps and inputs and all(i in kept for i in inputs):
            kept.add(node)
            continue
        for given in inputs:
            if given in kept:
                with made.graph.inserting_before(node):
                    dense = made.graph.call_method("to_dense", (given,))
                node.replace_input_with(given, dense)


def _is_relu(node: fx.Node, modules: Dict[str, nn.Module]) -> bool:
    if node.op == "call_module":
        return type(modules.get(node.target)) is nn.ReLU
    return node.op == "call_function" and node.target in (_C.relu, functional.relu)


def reset_modules(
    nodes: List[fx.Node], modules: Dict[str, nn.Module], old_modules: Dict[nn.Module, nn.Module]
) -> None:
    """Put modules back that others stand for, at the nodes that call them."""
    for node in nodes:
        if node.op == "call_module":
            current = modules[str(node.target)]
            if current in old_modules:
                replace_node_module(node, modules, old_modules[current])


def extract_subgraph(
    orig_module: nn.Module, nodes: List[fx.Node], inputs: List[fx.Node], outputs: List[fx.Node]
) -> fx.GraphModule:
    """A module that computes `outputs` of `inputs` by some nodes of a graph."""
    made = fx.Graph()
    values = {node: made.placeholder(node.name) for node in inputs}
    for node in nodes:
        values[node] = made.node_copy(node, values.__getitem__)
    made.output([values[node] for node in outputs])
    made.lint()
    return fx.GraphModule(orig_module, made)


class UnionFind:
    """Groups of the numbers from 0 to n - 1, each first alone."""

    def __init__(self, n: int) -> None:
        self.parent = list(range(n))
        self.size = [1] * n

    def make_set(self, v: int) -> None:
        """Make a number a group of its own."""
        self.parent[v], self.size[v] = v, 1

    def find(self, v: int) -> int:
        """The number that stands for the group of another."""
        while self.parent[v] != v:
            self.parent[v] = self.parent[self.parent[v]]
            v = self.parent[v]
        return v

    def join(self, a: int, b: int) -> int:
        """Make one group of those of two numbers, and give what stands for it."""
        a, b = self.find(a), self.find(b)
        if a != b:
            if self.size[a] < self.size[b]:
                a, b = b, a
            self.parent[b] = a
            self.size[a] += self.size[b]
        return a


__all__ = [
    "UnionFind",
    "extract_subgraph",
    "fuse",
    "matches_module_pattern",
    "optimize_for_inference",
    "remove_dropout",
    "replace_node_module",
    "reset_modules",
]

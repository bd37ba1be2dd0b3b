"""split_module: a graph in parts, each a module of its own, called one after the other."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from operator import getitem
from typing import Any, Callable, Dict, List, Optional

from treadle import nn
from treadle.fx.graph import Graph
from treadle.fx.graph_module import GraphModule, _copy_attr
from treadle.fx.node import Node, map_arg


class Partition:
    """A part: its nodes, the values that it takes from outside and those that others use."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.submod_name = f"submod_{name}"
        self.node_names: List[str] = []
        self.nodes: List[Node] = []
        self.inputs: Dict[Node, None] = {}
        self.outputs: Dict[Node, None] = {}
        self.dependencies: Dict[str, None] = {}
        self.graph = Graph()
        self.environment: Dict[Node, Node] = {}

    def __repr__(self) -> str:
        return f"Partition({self.name}: {', '.join(self.node_names)})"


def split_module(
    m: GraphModule,
    root_m: nn.Module,
    split_callback: Callable[[Node], Any],
    qualname_map: Optional[Dict[str, str]] = None,
    keep_original_order: bool = False,
    keep_original_node_name: bool = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: Optional[str] = None,
    tuple_return: bool = False,
) -> GraphModule:
    """A module whose submodules `submod_0` and so on have the nodes for which `split_callback` says
    0 and so on. Parameters move with the nodes that read them; `qualname_map` is filled with their
    paths in `root_m` by their paths here. A part with one result returns it, or with `tuple_return`
    a tuple. RuntimeError if two parts need each other."""
    parts: Dict[str, Partition] = {}
    part_of: Dict[Node, Partition] = {}
    for node in m.graph.nodes:
        if node.op in ("placeholder", "output", "get_attr"):
            continue
        name = str(split_callback(node))
        part = parts.setdefault(name, Partition(name))
        part.nodes.append(node)
        part.node_names.append(node.name)
        part_of[node] = part
    readers = _place_attributes(m, part_of)
    for node in m.graph.nodes:
        for used in node.all_input_nodes:
            _connect(used, node, part_of, readers)
    order = list(parts.values()) if keep_original_order else _in_order(parts)
    _check_order(order, parts)
    made = Graph()
    values: Dict[Node, Node] = {}
    modules: Dict[str, Any] = {}
    for node in m.graph.nodes:
        if node.op == "placeholder":
            values[node] = made.node_copy(node)
        elif node.op == "get_attr" and node in readers["outside"]:
            values[node] = made.node_copy(node)
            modules[node.target] = _value(root_m, node.target)
    for part in order:
        affix = f"_{partition_affix}" if partition_affix else ""
        part.submod_name = f"submod{affix}_{part.name}"
        modules[part.submod_name] = _module_of(
            part, m, root_m, readers, qualname_map, keep_original_node_name, tuple_return
        )
        call = made.create_node(
            "call_module", part.submod_name, tuple(values[n] for n in part.inputs)
        )
        results = list(part.outputs)
        if len(results) == 1 and not tuple_return:
            values[results[0]] = call
        else:
            for index, node in enumerate(results):
                values[node] = made.call_function(getitem, (call, index))
    output = m.graph.output_node()
    made.output(map_arg(output.args[0], lambda n: values[n]), output.type).meta = copy.copy(
        output.meta
    )
    result = GraphModule(modules, made)
    result.train(root_m.training)
    return result


def _place_attributes(m: GraphModule, part_of: Dict[Node, Partition]) -> Dict[str, Dict[Node, Any]]:
    """The reads of attributes that stay outside, as the output uses them."""
    outside: Dict[Node, None] = {}
    for node in m.graph.nodes:
        if node.op == "get_attr" and any(user not in part_of for user in node.users):
            outside[node] = None
    return {"outside": outside}


def _connect(
    used: Node, user: Node, part_of: Dict[Node, Partition], readers: Dict[str, Dict[Node, Any]]
) -> None:
    """Note that a value goes from one part to another."""
    target, source = part_of.get(user), part_of.get(used)
    if target is source:
        return
    if source is not None:
        source.outputs.setdefault(used)
    if target is not None:
        is_inside = used.op == "get_attr" and used not in readers["outside"]
        if not is_inside:
            target.inputs.setdefault(used)
        if source is not None:
            target.dependencies.setdefault(source.name)


def _in_order(parts: Dict[str, Partition]) -> List[Partition]:
    """The parts, each behind those whose values it takes."""
    done: Dict[str, Partition] = {}
    waiting = dict(parts)
    while waiting:
        ready = [p for p in waiting.values() if all(d in done for d in p.dependencies)]
        if not ready:
            names = ", ".join(waiting)
            raise RuntimeError(
                "split_module: expected parts of which none needs a later one, "
                f"got a cycle of {names}"
            )
        part = ready[0]
        done[part.name] = waiting.pop(part.name)
    return list(done.values())


def _check_order(order: List[Partition], parts: Dict[str, Partition]) -> None:
    done: Dict[str, None] = {}
    for part in order:
        missing = [name for name in part.dependencies if name not in done]
        if missing:
            raise RuntimeError(
                f"split_module: expected part {missing[0]} before part {part.name}, which uses it"
            )
        done[part.name] = None


def _module_of(
    part: Partition,
    m: GraphModule,
    root_m: nn.Module,
    readers: Dict[str, Dict[Node, Any]],
    qualname_map: Optional[Dict[str, str]],
    keep_names: bool,
    tuple_return: bool,
) -> GraphModule:
    holder = nn.Module()
    for node in part.inputs:
        value = part.graph.placeholder(node.name, type_expr=node.type)
        value.meta = copy.copy(node.meta)
        part.environment[node] = value
    for node in part.nodes:
        for used in node.all_input_nodes:
            if used.op == "get_attr" and used not in part.environment:
                part.environment[used] = part.graph.node_copy(used)
                _take(used.target, holder, root_m, part, qualname_map)
        if node.op == "call_module":
            _take(node.target, holder, root_m, part, qualname_map)
        part.environment[node] = part.graph.node_copy(node, lambda n: part.environment[n])
    results = tuple(part.environment[n] for n in part.outputs)
    part.graph.output(results[0] if len(results) == 1 and not tuple_return else results)
    return GraphModule(holder, part.graph, type(m).__name__)


def _take(
    target: str,
    holder: nn.Module,
    root_m: nn.Module,
    part: Partition,
    qualname_map: Optional[Dict[str, str]],
) -> None:
    _copy_attr(root_m, holder, target)
    if qualname_map is not None:
        qualname_map[f"{part.submod_name}.{target}"] = target


def _value(module: Any, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name)
    return module


def split_module_simple(
    m: GraphModule, node_to_partition: Dict[Node, int], *, partition_affix: Optional[str] = None
) -> GraphModule:
    """split_module() by a dict: the number of the part of each node that calls something. KeyError
    for a call that is not in it."""
    return split_module(m, m, node_to_partition.__getitem__, partition_affix=partition_affix)


__all__ = ["Partition", "split_module", "split_module_simple"]

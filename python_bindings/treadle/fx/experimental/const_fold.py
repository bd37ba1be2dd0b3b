"""The parts of a graph that depend on parameters alone, computed once.

Example:

    folded = split_const_subgraphs(module)
    folded(x)                       # computes them at the first call
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re
from typing import Any, Callable, List, Optional, Union

from treadle import nn
from treadle.fx._symbolic_trace import symbolic_trace
from treadle.fx.graph import Graph
from treadle.fx.graph_module import GraphModule
from treadle.fx.node import Node
from treadle.fx.passes.split_module import split_module


class FoldedGraphModule(GraphModule):
    """A module of which `const_subgraph` is run once, by run_folding() or at the first call: what
    it returns is kept as the attribute `fx_const_folded_attrs_name`, which `graph` reads."""

    def __init__(
        self,
        root: nn.Module,
        graph: Graph,
        const_subgraph: Optional[Graph] = None,
        fx_const_folded_attrs_name: Optional[str] = None,
        device_for_folded_attrs: str = "cuda",
    ) -> None:
        super().__init__(root, graph)
        self.const_subgraph_module = (
            None if const_subgraph is None else GraphModule(root, const_subgraph)
        )
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self) -> None:
        """Compute what depends on parameters alone. RuntimeError at a second call."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise RuntimeError("run_folding: expected one call, got another")
        self.has_folding_been_run = True
        found = self.const_subgraph_module()
        values = list(found) if isinstance(found, tuple) else [found]
        kept = nn.ParameterList(
            nn.Parameter(v.detach().clone(), requires_grad=v.requires_grad) for v in values
        )
        value = kept if isinstance(found, tuple) else kept[0]
        setattr(self, self.fx_const_folded_attrs_name, value)


def get_unique_attr_name_in_module(mod_traced: GraphModule, name: str) -> str:
    """A name like the given one that the module has not: letters, digits and _ alone."""
    name = re.sub(r"[^0-9a-zA-Z_]+", "_", name)
    if name[0].isdigit():
        name = f"_{name}"
    while hasattr(mod_traced, name):
        found = re.match(r"(.*)_(\d+)$", name)
        name = f"{name}_1" if found is None else f"{found.group(1)}_{int(found.group(2)) + 1}"
    return name


def _constant_nodes(
    module: GraphModule, skip: Optional[Callable[[Node], bool]], impure: Callable[[Node], bool]
) -> List[Node]:
    known: dict = {}
    for node in module.graph.nodes:
        if node.op == "get_attr":
            known[node] = None
        elif node.op in ("placeholder", "output") or (skip and skip(node)) or impure(node):
            continue
        elif node.all_input_nodes and all(n in known for n in node.all_input_nodes):
            known[node] = None
    return [n for n in known if n.op != "get_attr"]


def split_const_subgraphs(
    module: Union[nn.Module, GraphModule],
    skip_folding_node_fn: Optional[Callable[[Node], bool]] = None,
    device_for_folded_attrs: str = "cpu",
    is_impure_node: Optional[Callable[[Node], bool]] = None,
) -> FoldedGraphModule:
    """A module whose steps that depend on parameters alone are computed once; not those for which
    `skip_folding_node_fn` is true, nor those that do more than compute a value."""
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    impure = is_impure_node if is_impure_node is not None else Node.is_impure
    constant = set(_constant_nodes(traced, skip_folding_node_fn, impure))
    if not constant:
        return FoldedGraphModule(traced, traced.graph)
    split = split_module(traced, traced, lambda node: 0 if node in constant else 1)
    name = get_unique_attr_name_in_module(split, "_FX_CONST_FOLDED_ATTRS")
    first = split.submod_0
    call = next(n for n in split.graph.nodes if n.target == "submod_0")
    returned = first.graph.output_node().args[0]
    # The graph of the constants reads the parameters where the first part has them.
    const_graph = Graph()
    values = const_graph.graph_copy(first.graph, {})
    const_graph.output(values)
    for node in const_graph.nodes:
        if node.op in ("get_attr", "call_module"):
            node.target = f"submod_0.{node.target}"
    setattr(split, name, nn.ParameterList() if isinstance(returned, tuple) else nn.Parameter())
    with split.graph.inserting_before(call):
        kept = split.graph.get_attr(name)
    call.replace_all_uses_with(kept)
    split.graph.erase_node(call)
    return FoldedGraphModule(split, split.graph, const_graph, name, device_for_folded_attrs)


__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]

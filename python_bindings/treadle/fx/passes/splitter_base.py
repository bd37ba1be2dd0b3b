"""The parts of splitters of graphs for a device ("acc") and the rest ("cpu").

Example:

    acc = FxNetAccNodesFinder(traced, supported, allow_non_tensor=False)()  # nodes for the device
    generate_inputs_for_submodules(module, [x], ["layers.0"])                  # what each is given
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence

from treadle import nn
from treadle.autograd.grad_mode import no_grad
from treadle.fx.graph_module import GraphModule
from treadle.fx.node import Node
from treadle.fx.passes.operator_support import OperatorSupportBase
from treadle.fx.passes.tools_common import CALLABLE_NODE_OPS, NodeSet, is_node_output_tensor


class FxNetSplitterInternalError(Exception):
    """A splitter came to a state that it does not know."""


@dataclass
class Subgraph:
    """Nodes that run in one place, one after the other."""

    is_acc: bool
    nodes: List[Node]
    device_ordinal: Optional[int] = None


class SplitResult(NamedTuple):
    """The module of submodules, what each of them is given, and how the names of those begin that
    are not for the device."""

    split_module: GraphModule
    submodule_inputs: Dict[str, Any]
    non_acc_submodule_prefix: str


class NodeEvent:
    """An event of a node: `desc` says what happened, `dep` is the node because of which."""

    def __init__(self, source: Node, desc: str, dep: Optional[Node] = None) -> None:
        self.source, self.desc, self.dep = source, desc, dep

    def to_str(self) -> str:
        """The event in one line; # where no other node is the reason."""
        return f"{self.source.name}: {self.desc} {self.dep.name if self.dep else '#'}"


class NodeEventTracker:
    """Keeps what happens to nodes. With `tracker_mode` 0 dump() does nothing; with another it
    writes the events of all nodes to the file `dump_prefix` + "_nodes.txt"."""

    def __init__(self, tracker_mode: int, dump_prefix: str) -> None:
        self.tracker_mode, self.dump_prefix = tracker_mode, dump_prefix
        self.events: List[NodeEvent] = []
        self.node_events: Dict[str, List[int]] = {}
        self.writer: Callable[[str], Any] = print

    def add(self, node: Node, desc: str, dep: Optional[Node] = None) -> None:
        """Keep an event."""
        self.node_events.setdefault(node.name, []).append(len(self.events))
        self.events.append(NodeEvent(node, desc, dep))

    def print_node(
        self,
        node_name: str,
        recursive: bool = False,
        tab: str = "",
        writer: Optional[Callable[[str], Any]] = None,
    ) -> None:
        """Write the events of a node, and with `recursive` those of the nodes because of which."""
        write = writer or self.writer
        for index in self.node_events.get(node_name, ()):
            event = self.events[index]
            write(tab + event.to_str())
            if recursive and event.dep is not None:
                self.print_node(event.dep.name, True, "| " + tab, write)

    def to_dict(self) -> Dict[str, List[str]]:
        """The lines of each node."""
        return {
            name: [self.events[index].to_str() for index in found]
            for name, found in self.node_events.items()
        }

    def print_all(self, writer: Optional[Callable[[str], Any]] = None) -> None:
        """Write the events of all nodes."""
        write = writer or self.writer
        for name in self.node_events:
            write(f"Node: {name}:")
            self.print_node(name, tab="  ", writer=write)

    def dump(self) -> None:
        """Write what the mode asks for."""
        if self.tracker_mode:
            with open(f"{self.dump_prefix}_nodes.txt", "w", encoding="utf-8") as file:
                self.print_all(lambda line: file.write(line + "\n"))


class FxNetAccNodesFinder:
    """Finds the nodes of a graph that go to a device: those that it supports, without those that
    are given by, or give, something else than a tensor to the rest, unless `allow_non_tensor`.

    ShapeProp has to be run before, to know what is a tensor."""

    def __init__(
        self, module: GraphModule, operator_support: OperatorSupportBase, allow_non_tensor: bool
    ) -> None:
        self.module, self.operator_support = module, operator_support
        self.allow_non_tensor = allow_non_tensor
        self.acc_nodes: NodeSet = set()
        self.tracker = NodeEventTracker(0, "")

    def reduce_acc_nodes_non_tensor_input_helper(self, cpu_worklist: List[Node]) -> None:
        """Take the users of these nodes out, and of those that give no tensor their users too."""
        while cpu_worklist:
            node = cpu_worklist.pop(0)
            for user in [user for user in node.users if user in self.acc_nodes]:
                self.acc_nodes.remove(user)
                self.tracker.add(user, "acc_del|user_of_new_cpu_node", node)
                if not is_node_output_tensor(user):
                    cpu_worklist.append(user)

    def reduce_acc_nodes_non_tensor_input(self) -> None:
        """Take nodes out that are given something else than a tensor by the rest."""
        given_elsewhere = [
            node
            for node in self.module.graph.nodes
            if node.op in CALLABLE_NODE_OPS
            and node not in self.acc_nodes
            and not is_node_output_tensor(node)
        ]
        self.reduce_acc_nodes_non_tensor_input_helper(given_elsewhere)

    def reduce_acc_nodes_non_tensor_output(self) -> None:
        """Take nodes out that give something else than a tensor to the rest."""
        while True:
            found = {
                node: user
                for node in self.module.graph.nodes
                if node in self.acc_nodes and not is_node_output_tensor(node)
                for user in node.users
                if user not in self.acc_nodes
            }
            if not found:
                return
            for node, user in found.items():
                self.acc_nodes.remove(node)
                self.tracker.add(node, "acc_del|non_tensor_output_with_cpu_user", user)
            self.reduce_acc_nodes_non_tensor_input_helper(list(found))

    def __call__(self) -> NodeSet:
        submodules = dict(self.module.named_modules())
        for node in self.module.graph.nodes:
            if node.op in CALLABLE_NODE_OPS:
                if self.operator_support.is_node_supported(submodules, node):
                    self.acc_nodes.add(node)
                    self.tracker.add(node, "init_acc|callable_and_operator_supported")
                else:
                    self.tracker.add(node, "init_cpu|not_supported")
        if not self.allow_non_tensor:
            self.reduce_acc_nodes_non_tensor_input()
            self.reduce_acc_nodes_non_tensor_output()
        self.tracker.dump()
        return self.acc_nodes


def generate_inputs_for_submodules(
    model: nn.Module,
    inputs: Sequence[Any],
    target_submodules: Iterable[str],
    deepcopy: bool = False,
) -> Dict[str, Any]:
    """The arguments by position that submodules are given, by their paths, when the module is
    called with `inputs`; copies of them with `deepcopy`."""
    found: Dict[str, Any] = {}
    names = {model.get_submodule(path): path for path in target_submodules}

    def keep(module: nn.Module, given: Any) -> None:
        found[names[module]] = copy.deepcopy(given) if deepcopy else given

    handles = [module.register_forward_pre_hook(keep) for module in names]
    try:
        with no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return found


__all__ = [
    "FxNetAccNodesFinder",
    "FxNetSplitterInternalError",
    "NodeEvent",
    "NodeEventTracker",
    "SplitResult",
    "Subgraph",
    "generate_inputs_for_submodules",
]

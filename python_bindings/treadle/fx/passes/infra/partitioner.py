"""Parts of a graph that something can run, as large as they can be.

Example:

    parts = CapabilityBasedPartitioner(module, support).partition_and_fuse()
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
from operator import getitem
from typing import Dict, Iterable, List, Optional, Sequence, Set

from treadle.fx.graph_module import GraphModule
from treadle.fx.node import Node, _get_qualified_name
from treadle.fx.passes.operator_support import OperatorSupportBase
from treadle.fx.passes.utils.fuser_utils import fuse_by_partitions


class Partition:
    """A part: its nodes, with their places in the graph where they are known."""

    def __init__(
        self,
        id: Optional[int] = None,
        nodes: Optional[Iterable[Node]] = None,
        node_orders: Optional[Iterable[int]] = None,
    ) -> None:
        self.id = id
        given = list(nodes or ())
        orders = list(node_orders) if node_orders is not None else [None] * len(given)
        self.nodes: Dict[Node, Optional[int]] = dict(zip(given, orders))

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: Optional[int] = None) -> None:
        """Add a node."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """Take a node out."""
        del self.nodes[node]

    def size(self) -> int:
        """How many nodes there are."""
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """Finds parts of a graph of which `operator_support` supports every node.

    allows_single_node_partition: whether a part may have one step only. non_compute_ops: names of
    functions, "_operator.getitem", that count for none; allowed_single_node_partition_ops: of those
    that may be alone in a part. skip_horizontal_fusion: whether nodes that have nothing to do with
    each other stay in parts of their own.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Optional[Sequence[str]] = None,
        allowed_single_node_partition_ops: Optional[Sequence[str]] = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = set(non_compute_ops or ())
        self.allowed_single_node_partition_ops = set(allowed_single_node_partition_ops or ())
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def _is_node_supported(self, node: Node) -> bool:
        modules = dict(self.graph_module.named_modules())
        return self.operator_support.is_node_supported(modules, node)

    def propose_partitions(self) -> List[Partition]:
        """The parts, none of which needs the values of another that needs its own."""
        parts: List[List[Node]] = []
        part_of: Dict[Node, List[Node]] = {}
        for node in self.graph_module.graph.nodes:
            if node.op in ("placeholder", "output", "get_attr"):
                continue
            if not self._is_node_supported(node):
                continue
            near = [part_of[n] for n in node.all_input_nodes if n in part_of]
            others = [] if self.skip_horizontal_fusion else parts
            mine = part_of[node] = [node]
            for part in list({id(p): p for p in (*near, *reversed(others))}.values()):
                joined = part + mine
                if self._has_order({**part_of, **dict.fromkeys(joined, joined)}):
                    part_of.update(dict.fromkeys(joined, joined))
                    parts = [p for p in parts if p is not part and p is not mine]
                    mine = joined
            if mine not in parts:
                parts.append(mine)
        place = {n: i for i, n in enumerate(self.graph_module.graph.nodes)}
        kept = [sorted(p, key=place.__getitem__) for p in parts if self._is_worth_it(p)]
        numbers = itertools.count()
        return [Partition(next(numbers), p, (place[n] for n in p)) for p in kept]

    def _has_order(self, part_of: Dict[Node, List[Node]]) -> bool:
        """Whether the parts can be run one after the other, none needing a later one."""
        needs: Dict[object, Set[object]] = {}
        for node in self.graph_module.graph.nodes:
            own = id(part_of[node]) if node in part_of else node
            used = (id(part_of[n]) if n in part_of else n for n in node.all_input_nodes)
            needs.setdefault(own, set()).update(other for other in used if other != own)
        while needs:
            ready = {one for one, others in needs.items() if not others}
            if not ready:
                return False
            needs = {one: others - ready for one, others in needs.items() if one not in ready}
        return True

    def _name(self, node: Node) -> str:
        is_function = node.op == "call_function"
        return _get_qualified_name(node.target) if is_function else str(node.target)

    def _is_worth_it(self, nodes: List[Node]) -> bool:
        names = [self._name(n) for n in nodes if n.target is not getitem]
        steps = [name for name in names if name not in self.non_compute_ops]
        if any(name in self.allowed_single_node_partition_ops for name in names):
            return True
        return len(steps) > (0 if self.allows_single_node_partition else 1)

    def fuse_partitions(self, partitions: List[Partition], prefix: str = "fused_") -> GraphModule:
        """The module with each part in a module of its own."""
        return fuse_by_partitions(self.graph_module, [p.nodes for p in partitions], prefix)

    def remove_bookend_non_compute_ops(self, partitions: List[Partition]) -> None:
        """Take those nodes of `non_compute_ops` out of parts that stand at their edges: all of
        whose inputs, or all of whose users, are outside."""
        for part in partitions:
            changed = True
            while changed:
                edge = [n for n in part.nodes if self._is_at_edge(n, part)]
                for node in edge:
                    part.remove_node(node)
                changed = bool(edge)

    def _is_at_edge(self, node: Node, part: Partition) -> bool:
        if self._name(node) not in self.non_compute_ops:
            return False
        return not any(n in part.nodes for n in node.all_input_nodes) or not any(
            n in part.nodes for n in node.users
        )

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """propose_partitions() and fuse_partitions()."""
        return self.fuse_partitions(self.propose_partitions(), prefix)


__all__ = ["CapabilityBasedPartitioner", "Partition", "fuse_by_partitions"]

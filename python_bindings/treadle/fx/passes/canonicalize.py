"""Graphs in one order and with one set of names, however they were recorded.

Example:

    canonicalize_graph(graph, lambda node, place: (str(node.target),), lambda node: True)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import heapq
import operator
from typing import AbstractSet, Any, Callable, Dict, Iterator, List

from treadle.fx._code import Namespace
from treadle.fx.graph import Graph
from treadle.fx.node import Node


def rename_nodes_to_canonical(
    graph: Graph, skip_ops: AbstractSet[str] = frozenset()
) -> Dict[str, str]:
    """Give nodes, in their order, the names that they would get in a new graph, but for those of
    the ops in `skip_ops`; the new names by the old ones, where they differ."""
    names = Namespace()
    kept = [node for node in graph.nodes if node.op in skip_ops]
    for node in kept:
        names.create_name(node.name, node)
    renamed = {}
    for node in graph.nodes:
        if node.op in skip_ops:
            continue
        name = names.create_name(graph._target_to_str(node.target), node)
        if name != node.name:
            renamed[node.name] = name
            node.name = name
    graph._graph_namespace = names
    return renamed


def _segments(graph: Graph, is_pure: Callable[[Node], bool]) -> Iterator[List[Node]]:
    """The nodes up to one that stays where it is, which is alone in the next list, and so on."""
    current: List[Node] = []
    for node in graph.nodes:
        if node.op != "output" and is_pure(node):
            current.append(node)
        else:
            yield current
            yield [node]
            current = []
    yield current


def _is_getitem(node: Node) -> bool:
    return node.op == "call_function" and node.target is operator.getitem


def _items(node: Node) -> Iterator[Node]:
    """The nodes that take an item of a node by a number, by that number, each with its own."""
    found = [user for user in node.users if _is_getitem(user)]
    numbered = [user for user in found if user.args[0] is node and isinstance(user.args[1], int)]
    for item in sorted(numbered, key=lambda user: user.args[1]):
        yield item
        yield from _items(item)


class _Order:
    """The nodes that have their place, and those of one segment that could be next."""

    def __init__(self, key: Callable[[Node, Dict[Node, int]], Any], with_items: bool) -> None:
        self._key, self._with_items = key, with_items
        self.place: Dict[Node, int] = {}

    def add(self, segment: List[Node]) -> None:
        """Give the nodes of a segment their places."""
        self._original = {node: i for i, node in enumerate(segment) if node not in self.place}
        self._waiting = {
            node: sum(given in self._original for given in node.all_input_nodes)
            for node in self._original
        }
        self._ready: List[Any] = []
        for node, count in self._waiting.items():
            if count == 0:
                self._offer(node)
        while self._ready:
            *_, node = heapq.heappop(self._ready)
            if node not in self.place:
                self._put(node)
                for item in _items(node) if self._with_items else ():
                    self._put(item)

    def _offer(self, node: Node) -> None:
        heapq.heappush(self._ready, (self._key(node, self.place), self._original[node], node))

    def _put(self, node: Node) -> None:
        self.place.setdefault(node, len(self.place))
        for user in node.users:
            if user in self._waiting:
                self._waiting[user] -= 1
                if self._waiting[user] == 0 and user not in self.place:
                    self._offer(user)


def canonicalize_graph(
    graph: Graph,
    canonical_key_fn: Callable[[Node, Dict[Node, int]], Any],
    is_safe_to_reorder: Callable[[Node], bool],
    *,
    skip_rename_ops: AbstractSet[str] = frozenset(),
    group_getitems: bool = False,
) -> Dict[str, str]:
    """Put nodes in an order in which each is behind those it uses, and of those that could be next
    the one with the least key comes first; then name them anew. Returns the new names by the old.

    canonical_key_fn: the key of a node, by the places of the nodes that come before it;
    is_safe_to_reorder: nodes for which it is False stay, and no other goes past them;
    group_getitems: items of a node come right behind it, by their numbers."""
    order = _Order(canonical_key_fn, group_getitems)
    for segment in _segments(graph, is_safe_to_reorder):
        order.add(segment)
    for node in order.place:
        graph._root.prepend(node)
    return rename_nodes_to_canonical(graph, skip_rename_ops)


__all__ = ["canonicalize_graph", "rename_nodes_to_canonical"]

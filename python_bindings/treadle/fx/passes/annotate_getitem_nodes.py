"""Types for the nodes that take an element of a tuple or a list whose type is known."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import operator
import typing

from treadle.fx.graph import Graph


def annotate_getitem_nodes(graph: Graph) -> None:
    """Give each node `value[i]` the type of the element, where that of `value` says it."""
    for node in graph.nodes:
        if node.target is not operator.getitem or node.type is not None:
            continue
        value, index = node.args
        kind = getattr(value, "type", None)
        parts = typing.get_args(kind)
        named = getattr(kind, "__annotations__", None)
        if typing.get_origin(kind) is tuple and isinstance(index, int):
            if len(parts) == 2 and parts[1] is Ellipsis:
                node.type = parts[0]
            elif -len(parts) <= index < len(parts):
                node.type = parts[index]
        elif typing.get_origin(kind) is list and parts:
            node.type = parts[0]
        elif named and hasattr(kind, "_fields") and isinstance(index, int):
            node.type = typing.get_type_hints(kind).get(kind._fields[index])  # type: ignore[union-attr]


__all__ = ["annotate_getitem_nodes"]

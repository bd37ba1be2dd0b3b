"""The `meta` of nodes that are made in a block: used by passes that make graphs anew."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import copy
import enum
import functools
import traceback
from typing import Any, Callable, Dict, Iterator, List, NamedTuple

_meta: Dict[str, Any] = {}
_preserving = False


@contextlib.contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """A block in which new nodes take over the `meta` that set_current_meta() says."""
    global _preserving, _meta
    before = _preserving, _meta
    _preserving, _meta = enable, dict(_meta)
    try:
        yield
    finally:
        _preserving, _meta = before


def has_preserved_node_meta() -> bool:
    """Whether such a block is open."""
    return _preserving


@contextlib.contextmanager
def set_current_meta(node: Any, pass_name: str = "") -> Iterator[None]:
    """A block for the nodes that are made in place of a node: they take over its `meta`."""
    global _meta
    if not _preserving or not node.meta:
        yield
        return
    before, _meta = _meta, copy.copy(node.meta)
    try:
        yield
    finally:
        _meta = before


def get_current_meta() -> Dict[str, Any]:
    """The `meta` that new nodes take over."""
    return _meta


@contextlib.contextmanager
def annotate(annotation_dict: Dict[str, Any]) -> Iterator[None]:
    """A block whose nodes have the dictionary in `meta["custom"]`."""
    global _meta
    before = _meta
    custom = {**before.get("custom", {}), **annotation_dict}
    _meta = {**before, "custom": custom}
    try:
        yield
    finally:
        _meta = before


def annotate_fn(annotation_dict: Dict[str, Any]) -> Callable[[Callable], Callable]:
    """A decorator: annotate() around each call of a function."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return function(*args, **kwargs)

        return wrapped

    return decorate


class NodeSourceAction(enum.Enum):
    """How a node came of another."""

    CREATE = "create"
    REPLACE = "replace"


class NodeSource:
    """The node that another was made of, by which pass and how; `from_node` has the sources of that
    one. Passes put it into `meta["from_node"]`."""

    class NodeInfo(NamedTuple):
        """The record of a node."""

        name: str
        target: str
        graph_id: int

    def __init__(self, node: Any, pass_name: str = "", action: Any = None) -> None:
        given = [] if action is None else action
        self.pass_name = pass_name
        self.action: List[NodeSourceAction] = given if isinstance(given, list) else [given]
        self.node_info = None
        self.from_node: List[NodeSource] = []
        if node is not None:
            self.node_info = self.NodeInfo(node.name, str(node.target), id(node.graph))
            self.from_node = copy.deepcopy(node.meta.get("from_node", []))

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.node_info.name if self.node_info else ""

    @property
    def target(self) -> str:
        """The name of its target."""
        return self.node_info.target if self.node_info else ""

    @property
    def graph_id(self) -> int:
        """The number of its graph; -1 where there is no node."""
        return self.node_info.graph_id if self.node_info else -1

    def _get_action_string(self) -> str:
        return "+".join(a.name.lower() for a in self.action)

    def print_readable(self, indent: int = 0) -> str:
        """The source and its own sources as lines of text."""
        own = (
            f"(name={self.name}, pass_name={self.pass_name}, action={self._get_action_string()}, "
            f"graph_id={self.graph_id})\n"
        )
        rest = (source.print_readable(indent + 1) for source in self.from_node)
        return " " * indent * 4 + own + "".join(rest)

    def __repr__(self) -> str:
        return self.print_readable()

    def to_dict(self) -> Dict[str, Any]:
        """All of it as a dictionary."""
        return {
            "name": self.name,
            "target": self.target,
            "graph_id": self.graph_id,
            "pass_name": self.pass_name,
            "action": self._get_action_string(),
            "from_node": [source.to_dict() for source in self.from_node],
        }

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.node_info, self.pass_name, self._get_action_string()))


_replayed: Any = None


@contextlib.contextmanager
def set_current_replay_node(node: Any) -> Iterator[None]:
    """A block in which a node is being made anew."""
    global _replayed
    before, _replayed = _replayed, node
    try:
        yield
    finally:
        _replayed = before


def get_current_replay_node() -> Any:
    """The node that is being made anew; None outside of such a block."""
    return _replayed


def set_stack_trace(stack: List[str]) -> None:
    """The place in the program that new nodes have, in such a block."""
    if _preserving and stack:
        _meta["stack_trace"] = "".join(stack)


def set_grad_fn_seq_nr(seq_nr: int) -> None:
    """The number of the gradient's step that new nodes have, in such a block."""
    if _preserving:
        _meta["grad_fn_seq_nr"] = [*_meta.get("grad_fn_seq_nr", []), seq_nr]


def reset_grad_fn_seq_nr() -> None:
    """Take the last such number away."""
    numbers = _meta.get("grad_fn_seq_nr", [])
    if len(numbers) > 1:
        _meta["grad_fn_seq_nr"] = numbers[:-1]
    else:
        _meta.pop("grad_fn_seq_nr", None)


def format_stack() -> List[str]:
    """The place in the program of the node that is being made anew, or where the caller is."""
    if _preserving:
        return [_meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


def get_graph_provenance_json(graph: Any) -> Dict[str, Any]:
    """For each node the nodes that it was made of, as passes recorded them."""
    return {
        node.name: [str(source) for source in node.meta.get("from_node", [])]
        for node in graph.nodes
    }

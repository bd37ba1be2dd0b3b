"""What nodes that are made in a block have as `meta`: used by passes that make graphs anew."""

from __future__ import annotations

import contextlib
import copy
import traceback
from typing import Any, Dict, Iterator, List

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
    """What new nodes take over."""
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

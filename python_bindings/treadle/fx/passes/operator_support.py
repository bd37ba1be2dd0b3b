"""Predicates that say whether something can run a node, and functions that combine them.

Example:

    additions = OperatorSupport({"_operator.add": None})
    some = chain(additions, OpSupports.decline_if_node_in_names({"add_1"}))
    some.is_node_supported(dict(module.named_modules()), node)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import abc
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Set, Tuple

from treadle import _C, nn
from treadle.fx.node import Node
from treadle.fx.passes.shape_prop import TensorMetadata
from treadle.fx.passes.tools_common import CALLABLE_NODE_OPS, get_node_target

TargetTypeName = str
SupportedArgumentDTypes = Optional[
    Tuple[Sequence[Sequence[_C.dtype]], Dict[str, Sequence[_C.dtype]]]
]
SupportDict = Mapping[TargetTypeName, SupportedArgumentDTypes]
IsNodeSupported = Callable[[Mapping[str, nn.Module], Node], bool]


class OperatorSupportBase(abc.ABC):
    """A predicate over nodes."""

    @abc.abstractmethod
    def is_node_supported(self, submodules: Mapping[str, nn.Module], node: Node) -> bool:
        """Whether the node can be run; `submodules` are the modules of the graph by their paths."""


def _dtype_of(node: Any) -> Any:
    """The dtype that ShapeProp found; None for what is no tensor."""
    found = node.meta.get("tensor_meta") if isinstance(node, Node) else None
    return found.dtype if isinstance(found, TensorMetadata) else None


class OperatorSupport(OperatorSupportBase):
    """Supports the targets of a dictionary, by the names that get_node_target() gives them.

    A value is None for all dtypes, or a pair: for arguments by position a list of sequences of
    dtypes, None for any, and for those by name a dictionary. Dtypes are those that ShapeProp found;
    an argument without one is taken.
    """

    def __init__(self, support_dict: Optional[SupportDict] = None) -> None:
        self._support_dict: SupportDict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, nn.Module], node: Node) -> bool:
        """Whether the dictionary has the target, for the dtypes of its arguments."""
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        dtypes = self._support_dict[target]
        if dtypes is None:
            return True
        by_position, by_name = dtypes
        pairs = [*zip(node.args, by_position)]
        pairs += [(node.kwargs[name], d) for name, d in by_name.items() if name in node.kwargs]
        return all(
            allowed is None or _dtype_of(value) is None or _dtype_of(value) in allowed
            for value, allowed in pairs
        )


class FunctionalOperatorSupport(OperatorSupportBase):
    """A predicate that a function computes."""

    def __init__(self, is_node_supported: IsNodeSupported) -> None:
        self._is_node_supported = is_node_supported

    def is_node_supported(self, submodules: Mapping[str, nn.Module], node: Node) -> bool:
        """The answer of the function."""
        return self._is_node_supported(submodules, node)


def create_op_support(is_node_supported: IsNodeSupported) -> OperatorSupportBase:
    """A function of submodules and a node as a predicate."""
    return FunctionalOperatorSupport(is_node_supported)


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """True where all are."""
    return create_op_support(lambda s, n: all(o.is_node_supported(s, n) for o in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """True where any is."""
    return create_op_support(lambda s, n: any(o.is_node_supported(s, n) for o in op_support))


class OpSupports:
    """Predicates that others are made of."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: _C.dtype) -> OperatorSupportBase:
        """False for a node with an argument of a dtype."""
        return create_op_support(
            lambda _, node: all(_dtype_of(value) != dtype for value in node.all_input_nodes)
        )

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: Set[str]) -> OperatorSupportBase:
        """False for the nodes of some names."""
        return create_op_support(lambda _, node: node.name not in disallow_set)


__all__ = [
    "OpSupports",
    "OperatorSupport",
    "OperatorSupportBase",
    "any_chain",
    "chain",
    "create_op_support",
]

"""Calls that are written in several ways, written in one.

Example:

    NormalizeArgs(traced).transform()           # arguments by name
    NormalizeOperators(traced).transform()      # torch.add for +
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import operator
from typing import Any, Callable, Dict

import treadle.fx as fx
from treadle import _C
from treadle._C import Tensor
from treadle.fx.experimental.schema_type_annotation import AnnotateTypesWithSchema
from treadle.fx.graph_module import GraphModule
from treadle.fx.interpreter import Transformer
from treadle.fx.node import Node, map_aggregate
from treadle.fx.operator_schemas import create_type_hint, normalize_function, normalize_module
from treadle.fx.proxy import Proxy


class NormalizeArgs(Transformer):
    """Makes a graph anew whose calls have their arguments by name, as far as signatures are known;
    with normalize_to_only_use_kwargs=False in the order of the signature."""

    def __init__(self, module: GraphModule, normalize_to_only_use_kwargs: bool = True) -> None:
        super().__init__(module)
        self.node_map: Dict[Proxy, Node] = {}
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs

    def run_node(self, n: Node) -> Any:
        """The node of the new graph."""
        self._types = (
            map_aggregate(n.args, _type_of), {name: _type_of(v) for name, v in n.kwargs.items()}
        )  # fmt: skip
        result = super().run_node(n)
        if n.op != "output":
            self.node_map[result] = n
            result.node.meta, result.node.type = n.meta, n.type
        return result

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The call, with its arguments by name."""
        by_position, by_name = self._types
        found = None
        if callable(target):
            found = normalize_function(
                target, args, kwargs, by_position, by_name, self.normalize_to_only_use_kwargs
            )
        return super().call_function(target, *(found or (args, kwargs)))

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The call, with its arguments by name."""
        only = self.normalize_to_only_use_kwargs
        found = normalize_module(self.module, target, args, kwargs, only)
        return super().call_module(target, *(found or (args, kwargs)))


def _type_of(value: Any) -> Any:
    if isinstance(value, Node):
        return value.type or Tensor
    return create_type_hint(value) if isinstance(value, (list, tuple)) else type(value)


_OPERATORS: Dict[Callable[..., Any], Callable[..., Any]] = {
    operator.add: _C.add,
    operator.sub: _C.sub,
    operator.mul: _C.mul,
    operator.truediv: _C.div,
    operator.floordiv: _C.floor_divide,
    operator.mod: _C.remainder,
    operator.eq: _C.eq,
    operator.ne: _C.ne,
    operator.lt: _C.lt,
    operator.le: _C.le,
    operator.gt: _C.gt,
    operator.ge: _C.ge,
}


class NormalizeOperators(AnnotateTypesWithSchema):
    """Makes a graph anew that calls the functions of the package in place of Python's operators,
    for tensors: ShapeProp, or types, tell which values are such."""

    binary_magic_method_remap = _OPERATORS

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The call, of the function that the operator is."""
        other = self.binary_magic_method_remap.get(target)
        if other is not None and len(args) == 2 and isinstance(args[0], Proxy):
            return super().call_function(other, args, kwargs)
        return super().call_function(target, args, kwargs)


__all__ = [
    "NormalizeArgs",
    "NormalizeOperators",
    "create_type_hint",
    "fx",
    "map_aggregate",
    "normalize_function",
    "normalize_module",
]

"""The edges of a node: each argument that has a gradient has some, a list one for each tensor.

Example:

    struct CatBackward0 { size_t tensors_count_; ... };    the edges of `tensors`: 0, tensors_count_
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable, Optional

from ..cpp import code
from ..cpp.names import cpp_name
from ..model.entry import Entry
from ..model.schema import Arg

# The object before a member; None in the functions of a node, where the name is enough.
Receiver = Optional[code.Expr]


def _member(receiver: Receiver, name: str) -> code.Expr:
    return code.Id(name) if receiver is None else code.Member(receiver, name, of_pointer=True)


@dataclass(frozen=True)
class Target:
    """An argument that has a gradient."""

    arg: Arg
    fixed: int  # how many edges of single tensors come before its own
    lists: tuple[Target, ...]  # and of which lists

    @property
    def name(self) -> str:
        return self.arg.name

    @property
    def variable(self) -> str:
        return cpp_name(self.arg.name)

    @property
    def is_list(self) -> bool:
        return self.arg.type.is_tensor_list

    @property
    def count(self) -> str:
        """The member that holds how many edges a list has."""
        return f"{self.variable}_count_"

    def first(self, node: Receiver = None) -> code.Expr:
        """The number of its first edge."""
        return _sum(self.fixed, self.lists, node)

    def edges(self, node: Receiver = None) -> tuple[code.Expr, ...]:
        """The arguments that say which edges are its own."""
        first = self.first(node)
        return (first, _member(node, self.count)) if self.is_list else (first,)

    def should_compute(self) -> code.Expr:
        return code.Call("should_compute", self.edges())

    def has_edge(self, node: code.Expr) -> code.Expr:
        return code.MethodCall(node, "has_edge", self.edges(node), of_pointer=True)


def _sum(fixed: int, lists: Iterable[Target], node: Receiver = None) -> code.Expr:
    counts = [_member(node, target.count) for target in lists]
    return code.joined("+", [code.integer(fixed)] * (fixed > 0 or not counts) + counts)


@dataclass(frozen=True)
class Edges:
    targets: tuple[Target, ...]
    count: code.Expr  # of all

    @property
    def lists(self) -> tuple[Target, ...]:
        return tuple(target for target in self.targets if target.is_list)

    def of(self, name: str) -> Target:
        return next(target for target in self.targets if target.name == name)


def edges_of(e: Entry) -> Edges:
    """The edges of an entry's node, in the order of the arguments."""
    names = {name for formula in e.formulas for name in formula.targets}
    found: list[Target] = []
    fixed = 0
    lists: tuple[Target, ...] = ()
    for a in e.args:
        if a.name not in names:
            continue
        found.append(Target(a, fixed, lists))
        if found[-1].is_list:
            lists += (found[-1],)
        else:
            fixed += 1
    return Edges(tuple(found), _sum(fixed, lists))

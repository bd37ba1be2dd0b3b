"""The constant data about an entry, EntryInfo of core/dispatch/operator.h: the facts that the
library has at run time, as structures.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Iterable

from ..cpp import code
from ..model import expr
from ..model.entry import Entry
from ..model.expr import Expr, Visitor
from .contract import check_text

_ZERO = code.integer(0)


class _Nodes(Visitor[int]):
    """ExpressionNode initializers of a tree, children before their parents; a visit is the index of
    the node.
    """

    def __init__(self) -> None:
        self.nodes: list[code.Expr] = []

    def _add(
        self,
        kind: str,
        text: str,
        children: Iterable[Expr] = (),
        integer: code.Expr = _ZERO,
        number: code.Expr = _ZERO,
    ) -> int:
        indices = tuple(code.integer(self.visit(child)) for child in children)
        self.nodes.append(
            code.Braces(
                (
                    code.Id(f"ExpressionKind::{kind}"),
                    code.integer(len(indices)),
                    code.Braces(indices),
                    code.Text(text),
                    integer,
                    number,
                )
            )
        )
        return len(self.nodes) - 1

    def name(self, node: expr.Name) -> int:
        return self._add("Name", node.text)

    def constant(self, node: expr.Constant) -> int:
        return self._add("Name", node.text)

    def dtype(self, node: expr.DtypeName) -> int:
        return self._add("Name", node.dtype.name)

    def number(self, node: expr.Number) -> int:
        value = code.Literal(node.text)
        if node.is_integer:
            return self._add("Int", node.text, integer=value)
        return self._add("Float", node.text, number=value)

    def boolean(self, node: expr.Bool) -> int:
        text = "true" if node.value else "false"
        return self._add("Bool", text, integer=code.integer(int(node.value)))

    def call(self, node: expr.Call) -> int:
        return self._add("Call", node.function, node.arguments)

    def unary(self, node: expr.Unary) -> int:
        return self._add("Unary", node.operator, node.children)

    def binary(self, node: expr.Binary) -> int:
        return self._add("Binary", node.operator, node.children)

    def ternary(self, node: expr.Ternary) -> int:
        return self._add("Select", "", node.children)

    def _no_element(self, node: Expr) -> int:
        raise AssertionError(f"expected an expression of elements, got {node}")

    def string(self, node: expr.String) -> int:
        return self._no_element(node)

    def nothing(self, node: expr.Nothing) -> int:
        return self._no_element(node)

    def method(self, node: expr.Method) -> int:
        return self._no_element(node)

    def index(self, node: expr.Index) -> int:
        return self._no_element(node)

    def items(self, node: expr.Items) -> int:
        return self._no_element(node)


def expression_nodes(tree: Expr) -> list[code.Expr]:
    nodes = _Nodes()
    nodes.visit(tree)
    return nodes.nodes


def check_texts(e: Entry) -> code.Expr:
    """The conditions of an entry, for people."""
    return code.Braces(tuple(code.Text(check_text(condition)) for condition in e.check))


def dtype_rows(e: Entry) -> code.Expr:
    """DtypeRow initializers of an entry's `dtypes:`."""

    def device(name: str) -> code.Expr:
        return code.Literal("nullptr") if name == "all" else code.Text(name.lower())

    return code.Braces(
        tuple(
            code.Braces((device(name), code.Literal(f"0x{row.mask:x}u")))
            for name, row in e.dtypes.items()
        )
    )


def moved_arguments(e: Entry) -> int:
    """The mask of the arguments that `moves:` names."""
    return sum(1 << i for i, a in enumerate(e.args) if a.name in e.moves)

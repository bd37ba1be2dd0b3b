"""The trees that TorchScript's front makes of programs.

    >>> print(BinOp("+", Var(Ident(place, "x")), Const(place, "1")))
    (+ (variable (ident x)) (const 1))

A tree has a kind and, in order, what is below it: trees, lists of trees, texts, and None.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List, Optional, Sequence

from treadle._sources import SourceRange, SourceRangeFactory

# How wide a tree may be that stands on one line.
_WIDTH = 40


class TreeView:
    """Base of trees."""

    def __init__(self, place: Optional[SourceRange], kind: str, *parts: Any) -> None:
        self._place, self.kind, self.parts = place, kind, parts

    def range(self) -> Optional[SourceRange]:
        """Where it stands in the program."""
        return self._place

    def dump(self) -> None:
        """Print it."""
        print(self, end="")

    def __str__(self) -> str:
        return _text(self, 0) + "\n"


class _Parts(TreeView):
    """A "list", or an "option" of none or one."""

    def __init__(self, kind: str, parts: Sequence[Any]) -> None:
        super().__init__(None, kind, *parts)


def _many(parts: Sequence[Any]) -> _Parts:
    return _Parts("list", parts)


def _maybe(part: Any) -> _Parts:
    return _Parts("option", [] if part is None else [part])


def _flat(tree: Any) -> str:
    if not isinstance(tree, TreeView):
        return str(tree)
    return f"({' '.join([tree.kind, *map(_flat, tree.parts)])})"


def _text(tree: Any, indent: int) -> str:
    flat = _flat(tree)
    if not isinstance(tree, TreeView) or indent + len(flat) < _WIDTH or not tree.parts:
        return flat
    below = "".join(f"\n{' ' * (indent + 2)}{_text(part, indent + 2)}" for part in tree.parts)
    return f"({tree.kind}{below})"


class Ident(TreeView):
    """A name."""

    def __init__(self, place: Optional[SourceRange], name: str) -> None:
        super().__init__(place, "ident", name)
        self.name = name


class Attribute(TreeView):
    """An argument by its name."""

    def __init__(self, name: Ident, value: "Expr") -> None:
        super().__init__(name.range(), "attribute", name, value)


# ---- expressions ---------------------------------------------------------------------------------


class Expr(TreeView):
    """Base of expressions."""


class Var(Expr):
    """A variable; `name` is its Ident."""

    def __init__(self, name: Ident) -> None:
        super().__init__(name.range(), "variable", name)
        self.name = name


class Const(Expr):
    """A number, as it is written."""

    def __init__(self, place: SourceRange, value: str) -> None:
        super().__init__(place, "const", value)


class StringLiteral(Expr):
    """A text."""

    def __init__(self, place: SourceRange, value: str) -> None:
        super().__init__(place, "string_literal", value)


def TrueLiteral(range: SourceRange) -> Expr:  # noqa: N802, A002
    """True."""
    return Expr(range, "True")


def FalseLiteral(range: SourceRange) -> Expr:  # noqa: N802, A002
    """False."""
    return Expr(range, "False")


def NoneLiteral(range: SourceRange) -> Expr:  # noqa: N802, A002
    """None."""
    return Expr(range, "None")


class Dots(Expr):
    """Three points."""

    def __init__(self, place: SourceRange) -> None:
        super().__init__(place, "dots")


class BinOp(Expr):
    """An operator of two; `op` is how its kind is written."""

    def __init__(self, op: str, left: Expr, right: Expr) -> None:
        super().__init__(left.range(), op, left, right)


class UnaryOp(Expr):
    """An operator of one."""

    def __init__(self, place: SourceRange, op: str, value: Expr) -> None:
        super().__init__(place, op, value)


class TernaryIf(Expr):
    """One value or another."""

    def __init__(self, condition: Expr, true: Expr, false: Expr) -> None:
        super().__init__(condition.range(), "if", condition, true, false)


class ListComp(Expr):
    """A list made of another."""

    def __init__(self, place: SourceRange, value: Expr, target: Expr, source: Expr) -> None:
        super().__init__(place, "list comprehension", value, target, source)


class DictComp(Expr):
    """A dict made of a list."""

    def __init__(
        self, place: SourceRange, key: Expr, value: Expr, target: Expr, source: Expr
    ) -> None:
        super().__init__(place, "dict comprehension", key, value, target, source)


class ListLiteral(Expr):
    """A list."""

    def __init__(self, place: SourceRange, items: Sequence[Expr]) -> None:
        super().__init__(place, "list-literal", _many(items))


class TupleLiteral(Expr):
    """A tuple."""

    def __init__(self, place: SourceRange, items: Sequence[Expr]) -> None:
        super().__init__(place, "tuple-literal", _many(items))


class DictLiteral(Expr):
    """A dict."""

    def __init__(self, place: SourceRange, keys: Sequence[Expr], values: Sequence[Expr]) -> None:
        super().__init__(place, "dict-literal", _many(keys), _many(values))


class Select(Expr):
    """An attribute of a value."""

    def __init__(self, value: Expr, name: Ident) -> None:
        super().__init__(value.range(), ".", value, name)


class Apply(Expr):
    """A call."""

    def __init__(
        self, function: Expr, arguments: Sequence[Expr], keywords: Sequence[Attribute]
    ) -> None:
        super().__init__(function.range(), "apply", function, _many(arguments), _many(keywords))


class Subscript(Expr):
    """An element or a part of a value."""

    def __init__(self, value: Expr, places: Sequence[Expr]) -> None:
        super().__init__(value.range(), "subscript", value, _many(places))


class SliceExpr(Expr):
    """From, to and step of a part."""

    def __init__(
        self,
        place: SourceRange,
        lower: Optional[Expr],
        upper: Optional[Expr],
        step: Optional[Expr],
    ) -> None:
        super().__init__(place, "slice expr", _maybe(lower), _maybe(upper), _maybe(step))


class Starred(Expr):
    """A value with a star before it."""

    def __init__(self, place: SourceRange, value: Expr) -> None:
        super().__init__(place, "starred", value)


# ---- statements ----------------------------------------------------------------------------------


class Stmt(TreeView):
    """Base of statements."""


class ExprStmt(Stmt):
    """A value that is not kept."""

    def __init__(self, value: Expr) -> None:
        super().__init__(value.range(), "expression statement", value)


class Assign(Stmt):
    """Values for names, with their type where it is written."""

    def __init__(
        self, targets: Sequence[Expr], value: Optional[Expr], kind: Optional[Expr] = None
    ) -> None:
        super().__init__(targets[0].range(), "assign", _many(targets), _maybe(value), _maybe(kind))


class AugAssign(Stmt):
    """`x += 1`; `op` without the sign of equality."""

    def __init__(self, target: Expr, op: str, value: Expr) -> None:
        super().__init__(target.range(), "aug_assign", target, _Parts(op, []), value)


class Return(Stmt):
    """The result."""

    def __init__(self, place: SourceRange, value: Optional[Expr]) -> None:
        super().__init__(place, "return", NoneLiteral(place) if value is None else value)


class Raise(Stmt):
    """An error."""

    def __init__(self, place: SourceRange, value: Expr) -> None:
        super().__init__(place, "raise", value)


class Assert(Stmt):
    """A condition that must hold."""

    def __init__(self, place: SourceRange, condition: Expr, message: Optional[Expr]) -> None:
        super().__init__(place, "assert", condition, _maybe(message))


class Pass(Stmt):
    """Nothing."""

    def __init__(self, place: SourceRange) -> None:
        super().__init__(place, "pass")


class Break(Stmt):
    """The end of a loop."""

    def __init__(self, place: SourceRange) -> None:
        super().__init__(place, "break")


class Continue(Stmt):
    """The next turn of a loop."""

    def __init__(self, place: SourceRange) -> None:
        super().__init__(place, "continue")


class Delete(Stmt):
    """Names that go."""

    def __init__(self, place: SourceRange, targets: Sequence[Expr]) -> None:
        super().__init__(place, "del", _many(targets))


class WithItem(Expr):
    """A manager and the name of what it gives."""

    def __init__(self, place: SourceRange, value: Expr, target: Optional[Expr]) -> None:
        super().__init__(place, "withitem", value, _maybe(target))


class With(Stmt):
    """Statements under managers."""

    def __init__(self, place: SourceRange, items: Sequence[WithItem], body: Sequence[Stmt]) -> None:
        super().__init__(place, "with", _many(items), _many(body))


class If(Stmt):
    """Statements for a condition, and others."""

    def __init__(
        self, place: SourceRange, condition: Expr, body: Sequence[Stmt], other: Sequence[Stmt]
    ) -> None:
        super().__init__(place, "if", condition, _many(body), _many(other))


class While(Stmt):
    """Statements as long as a condition holds."""

    def __init__(self, place: SourceRange, condition: Expr, body: Sequence[Stmt]) -> None:
        super().__init__(place, "while", condition, _many(body))


class For(Stmt):
    """Statements for each element."""

    def __init__(
        self,
        place: SourceRange,
        targets: Sequence[Expr],
        sources: Sequence[Expr],
        body: Sequence[Stmt],
    ) -> None:
        super().__init__(place, "for", _many(targets), _many(sources), _many(body))


# ---- functions and classes -----------------------------------------------------------------------


class Param(TreeView):
    """An argument that a function takes, and its type where it is written."""

    def __init__(self, kind: Optional[Expr], name: Ident, kwarg_only: bool) -> None:
        flag = _Parts(str(bool(kwarg_only)), [])
        super().__init__(name.range(), "param", name, _maybe(kind), _maybe(None), flag)
        self.type, self.name, self.kwarg_only = kind, name, kwarg_only


class Decl(TreeView):
    """All arguments of a function, and the type of its result where it is written."""

    def __init__(
        self, place: Optional[SourceRange], params: Sequence[Param], result: Optional[Expr]
    ) -> None:
        super().__init__(place, "decl", _many(params), _maybe(result))
        self.params: List[Param] = list(params)
        self.result = result


class Def(TreeView):
    """A function."""

    def __init__(self, name: Ident, decl: Decl, body: Sequence[Stmt]) -> None:
        super().__init__(name.range(), "def", name, decl, _many(body))
        self._name, self._decl = name, decl

    def name(self) -> Ident:
        """Its name."""
        return self._name

    def decl(self) -> Decl:
        """Its arguments and its result."""
        return self._decl


class Property(TreeView):
    """A value that a function gives, and perhaps one that sets it."""

    def __init__(self, place: SourceRange, name: Ident, getter: Def, setter: Optional[Def]) -> None:
        super().__init__(place, "property", name, getter, _maybe(setter))
        self._name, self._getter, self._setter = name, getter, setter

    def name(self) -> Ident:
        """Its name."""
        return self._name

    def getter_name(self) -> Ident:
        """The name of the function that gives it."""
        return self._getter.name()

    def setter_name(self) -> Optional[Ident]:
        """The name of the function that sets it."""
        return None if self._setter is None else self._setter.name()


class ClassDef(TreeView):
    """A class."""

    def __init__(
        self,
        name: Ident,
        body: Sequence[TreeView],
        properties: Sequence[Property],
        assigns: Sequence[Assign],
    ) -> None:
        super().__init__(
            name.range(), "class", name, _maybe(None), _many(body), _maybe(_many(properties)),
            _maybe(_many(assigns)),
        )  # fmt: skip


__all__ = [
    "Apply", "Assert", "Assign", "Attribute", "AugAssign", "BinOp", "Break", "ClassDef", "Const",
    "Continue", "Decl", "Def", "Delete", "DictComp", "DictLiteral", "Dots", "Expr", "ExprStmt",
    "FalseLiteral", "For", "Ident", "If", "ListComp", "ListLiteral", "NoneLiteral", "Param", "Pass",
    "Property", "Raise", "Return", "Select", "SliceExpr", "SourceRange", "SourceRangeFactory",
    "Starred", "Stmt", "StringLiteral", "Subscript", "TernaryIf", "TreeView", "TrueLiteral",
    "TupleLiteral", "UnaryOp", "Var", "While", "With", "WithItem",
]  # fmt: skip

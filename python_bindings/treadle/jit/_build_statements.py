"""Python's statements as trees of TorchScript."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast
from typing import Any, Callable, Dict, List, Type

from treadle.jit import _tree as tree
from treadle.jit._build_expressions import BINARY, build_expr, build_exprs, place_of
from treadle.jit._frontend_errors import NotSupportedError, UnsupportedNodeError
from treadle.jit._ignored_blocks import (
    build_ignore_context_manager,
    is_torch_jit_ignore_context_manager,
)

# The operators that assign: these are taken.
_ASSIGNED = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.BitOr, ast.BitAnd, ast.BitXor,
             ast.LShift, ast.RShift, ast.Pow)  # fmt: skip


def _place(ctx: Any, node: Any, word: str) -> Any:
    return ctx.make_range(node.lineno, node.col_offset, node.col_offset + len(word))


def _without_else(ctx: Any, node: Any, word: str) -> Any:
    if node.orelse:
        raise NotSupportedError(_place(ctx, node, word), f"expected no else behind a {word} loop")
    return _place(ctx, node, word)


def _expression(ctx: Any, node: ast.Expr) -> tree.Stmt:
    return tree.ExprStmt(build_expr(ctx, node.value))


def _assign(ctx: Any, node: ast.Assign) -> tree.Stmt:
    return tree.Assign(build_exprs(ctx, node.targets), build_expr(ctx, node.value))


def _annotated(ctx: Any, node: ast.AnnAssign) -> tree.Stmt:
    if node.value is None:
        raise UnsupportedNodeError(ctx, node, reason="it has no value")
    return tree.Assign(*_pair(ctx, node), build_expr(ctx, node.annotation))  # type: ignore[call-arg]


def _pair(ctx: Any, node: ast.AnnAssign) -> Any:
    return [build_expr(ctx, node.target)], build_expr(ctx, node.value)


def _augmented(ctx: Any, node: ast.AugAssign) -> tree.Stmt:
    target = build_expr(ctx, node.target)
    if not isinstance(node.op, _ASSIGNED):
        name = type(node.op).__name__
        raise NotSupportedError(place_of(ctx, node), f"expected another operator, got {name}")
    return tree.AugAssign(target, BINARY[type(node.op)], build_expr(ctx, node.value))


def _delete(ctx: Any, node: ast.Delete) -> tree.Stmt:
    return tree.Delete(_place(ctx, node, "del"), build_exprs(ctx, node.targets))


def _return(ctx: Any, node: ast.Return) -> tree.Stmt:
    value = None if node.value is None else build_expr(ctx, node.value)
    return tree.Return(_place(ctx, node, "return"), value)


def _raise(ctx: Any, node: ast.Raise) -> tree.Stmt:
    place = _place(ctx, node, "raise")
    if node.exc is None:
        raise NotSupportedError(place, "expected an exception behind raise")
    return tree.Raise(place, build_expr(ctx, node.exc))


def _assert(ctx: Any, node: ast.Assert) -> tree.Stmt:
    message = None if node.msg is None else build_expr(ctx, node.msg)
    return tree.Assert(_place(ctx, node, "assert"), build_expr(ctx, node.test), message)


def _while(ctx: Any, node: ast.While) -> tree.Stmt:
    place = _without_else(ctx, node, "while")
    return tree.While(place, build_expr(ctx, node.test), build_stmts(ctx, node.body))


def _for(ctx: Any, node: ast.For) -> tree.Stmt:
    place = _without_else(ctx, node, "for")
    target, source = build_exprs(ctx, [node.target, node.iter])
    return tree.For(place, [target], [source], build_stmts(ctx, node.body))


def _if(ctx: Any, node: ast.If) -> tree.Stmt:
    body, other = build_stmts(ctx, node.body), build_stmts(ctx, node.orelse)
    return tree.If(_place(ctx, node, "if"), build_expr(ctx, node.test), body, other)


def _with(ctx: Any, node: ast.With) -> tree.Stmt:
    if is_torch_jit_ignore_context_manager(node):
        return build_stmt(ctx, build_ignore_context_manager(ctx, node))
    items = build_withitems(ctx, node.items)
    return tree.With(_place(ctx, node, "with"), items, build_stmts(ctx, node.body))


def build_withitem(ctx: Any, node: ast.withitem) -> tree.WithItem:
    """The tree of a manager behind `with`."""
    value = build_expr(ctx, node.context_expr)
    target = None if node.optional_vars is None else build_expr(ctx, node.optional_vars)
    return tree.WithItem(value.range(), value, target)  # type: ignore[arg-type]


def build_withitems(ctx: Any, items: List[ast.withitem]) -> List[tree.WithItem]:
    """The trees of several."""
    return [build_withitem(ctx, item) for item in items]


_BUILDERS: Dict[Type[ast.AST], Callable[..., tree.Stmt]] = {
    ast.AnnAssign: _annotated,
    ast.Assert: _assert,
    ast.Assign: _assign,
    ast.AugAssign: _augmented,
    ast.Break: lambda ctx, node: tree.Break(_place(ctx, node, "break")),
    ast.Continue: lambda ctx, node: tree.Continue(_place(ctx, node, "continue")),
    ast.Delete: _delete,
    ast.Expr: _expression,
    ast.For: _for,
    ast.If: _if,
    ast.Pass: lambda ctx, node: tree.Pass(_place(ctx, node, "pass")),
    ast.Raise: _raise,
    ast.Return: _return,
    ast.While: _while,
    ast.With: _with,
}


def build_stmt(ctx: Any, node: Any) -> tree.Stmt:
    """The tree of a statement. Raises UnsupportedNodeError, or another FrontendError, for what
    TorchScript does not have."""
    builder = _BUILDERS.get(type(node))
    if builder is None:
        raise UnsupportedNodeError(ctx, node)
    return builder(ctx, node)


def build_stmts(ctx: Any, stmts: Any) -> List[tree.Stmt]:
    """The trees of several."""
    return [build_stmt(ctx, node) for node in stmts]

"""Python's expressions as trees of TorchScript."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast
import re
from typing import Any, Callable, Dict, List, Type

from treadle._sources import SourceRange
from treadle.jit import _tree as tree
from treadle.jit._frontend_errors import FrontendError, NotSupportedError, UnsupportedNodeError

BINARY = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Pow: "pow operator",
    ast.Mod: "%",
    ast.FloorDiv: "floordiv",
    ast.BitAnd: "&",
    ast.BitXor: "^",
    ast.BitOr: "|",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.MatMult: "@",
}
_UNARY = {ast.Not: "not", ast.USub: "unary minus", ast.Invert: "~"}
_COMPARISONS = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "<",
    ast.LtE: "le",
    ast.Gt: ">",
    ast.GtE: "ge",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "in",
}


def place_of(ctx: Any, node: Any) -> SourceRange:
    """Where a node of one line stands, or its first letter."""
    end = node.end_col_offset if node.end_lineno == node.lineno else node.col_offset + 1
    return ctx.make_range(node.lineno, node.col_offset, end)


def _name(ctx: Any, node: ast.Name) -> tree.Expr:
    place = place_of(ctx, node)
    if re.match(r"__jit", node.id):
        raise NotSupportedError(place, f"expected a name not beginning with __jit, got {node.id}")
    return tree.Var(tree.Ident(place, node.id))


def _constant(ctx: Any, node: ast.Constant) -> tree.Expr:
    value, place = node.value, place_of(ctx, node)
    if value is None:
        return tree.NoneLiteral(place)
    if isinstance(value, bool):
        return tree.TrueLiteral(place) if value else tree.FalseLiteral(place)
    if isinstance(value, (int, float, complex)):
        return tree.Const(place, str(value))
    if isinstance(value, str):
        return tree.StringLiteral(place, value)
    if value is Ellipsis:
        return tree.Dots(place)
    raise FrontendError(place, f"expected a number, a text, None or ..., got {value!r}")


def _attribute(ctx: Any, node: ast.Attribute) -> tree.Expr:
    value = build_expr(ctx, node.value)
    return tree.Select(value, tree.Ident(place_of(ctx, node), node.attr))


def _call(ctx: Any, node: ast.Call) -> tree.Expr:
    keywords = []
    for keyword in node.keywords:
        value = build_expr(ctx, keyword.value)
        if keyword.arg is None:
            raise NotSupportedError(value.range(), "expected no arguments of a dict (**)")  # type: ignore[arg-type]
        keywords.append(tree.Attribute(tree.Ident(value.range(), keyword.arg), value))
    return tree.Apply(build_expr(ctx, node.func), build_exprs(ctx, node.args), keywords)


def _binary(ctx: Any, node: ast.BinOp) -> tree.Expr:
    return tree.BinOp(
        BINARY[type(node.op)], build_expr(ctx, node.left), build_expr(ctx, node.right)
    )


def _unary(ctx: Any, node: ast.UnaryOp) -> tree.Expr:
    value, kind = build_expr(ctx, node.operand), _UNARY.get(type(node.op))
    if kind is None:
        raise NotSupportedError(place_of(ctx, node), "expected no plus before a value")
    return tree.UnaryOp(place_of(ctx, node), kind, value)


def _bool_op(ctx: Any, node: ast.BoolOp) -> tree.Expr:
    word = "and" if isinstance(node.op, ast.And) else "or"
    first, *others = build_exprs(ctx, node.values)
    for other in others:
        first = tree.BinOp(word, first, other)
    return first


def _compare(ctx: Any, node: ast.Compare) -> tree.Expr:
    operands = build_exprs(ctx, [node.left, *node.comparators])
    result = None
    for left, right, op in zip(operands, operands[1:], node.ops):
        one: tree.Expr = tree.BinOp(_COMPARISONS[type(op)], left, right)
        if isinstance(op, ast.NotIn):
            one = tree.UnaryOp(left.range(), "not", one)  # type: ignore[arg-type]
        result = one if result is None else tree.BinOp("and", result, one)
    assert result is not None
    return result


def _if(ctx: Any, node: ast.IfExp) -> tree.Expr:
    return tree.TernaryIf(*build_exprs(ctx, [node.test, node.body, node.orelse]))


def _subscript(ctx: Any, node: ast.Subscript) -> tree.Expr:
    value = build_expr(ctx, node.value)
    index = node.slice
    if type(index).__name__ == "Index":  # of older Pythons
        index = index.value  # type: ignore[attr-defined]
    places: List[Any] = list(index.elts) if isinstance(index, ast.Tuple) else [index]
    if not places:
        return tree.Subscript(value, [tree.TupleLiteral(place_of(ctx, node), [])])
    return tree.Subscript(value, build_exprs(ctx, places))


def _slice(ctx: Any, node: ast.Slice) -> tree.Expr:
    parts = (None if p is None else build_expr(ctx, p) for p in (node.lower, node.upper, node.step))
    return tree.SliceExpr(place_of(ctx, node), *parts)


def _list(ctx: Any, node: ast.List) -> tree.Expr:
    return tree.ListLiteral(place_of(ctx, node), build_exprs(ctx, node.elts))


def _tuple(ctx: Any, node: ast.Tuple) -> tree.Expr:
    return tree.TupleLiteral(place_of(ctx, node), build_exprs(ctx, node.elts))


def _dict(ctx: Any, node: ast.Dict) -> tree.Expr:
    if None in node.keys:
        raise NotSupportedError(place_of(ctx, node), "expected no entries of another dict (**)")
    keys, values = build_exprs(ctx, node.keys), build_exprs(ctx, node.values)
    return tree.DictLiteral(place_of(ctx, node), keys, values)


def _generator(ctx: Any, node: Any) -> Any:
    if len(node.generators) != 1:
        raise NotSupportedError(place_of(ctx, node), "expected one `for`, got several")
    (generator,) = node.generators
    if generator.ifs:
        raise NotSupportedError(place_of(ctx, node), "expected no `if` behind a `for`")
    return build_exprs(ctx, [generator.target, generator.iter])


def _list_comprehension(ctx: Any, node: Any) -> tree.Expr:
    target, source = _generator(ctx, node)
    return tree.ListComp(place_of(ctx, node), build_expr(ctx, node.elt), target, source)


def _dict_comprehension(ctx: Any, node: ast.DictComp) -> tree.Expr:
    target, source = _generator(ctx, node)
    key, value = build_exprs(ctx, [node.key, node.value])
    return tree.DictComp(place_of(ctx, node), key, value, target, source)


def _starred(ctx: Any, node: ast.Starred) -> tree.Expr:
    return tree.Starred(place_of(ctx, node), build_expr(ctx, node.value))


def _joined(ctx: Any, node: ast.JoinedStr) -> tree.Expr:
    text, arguments = "", []
    for value in node.values:
        place = place_of(ctx, node)
        if isinstance(value, ast.FormattedValue):
            if value.conversion != -1 or value.format_spec is not None:
                raise NotSupportedError(place, "expected no conversion and format in a text")
            text += "{}"
            arguments.append(build_expr(ctx, value.value))
        elif isinstance(value, ast.Constant):
            text += value.value.replace("{", "{{").replace("}", "}}")  # type: ignore[arg-type,operator,union-attr]
    place = place_of(ctx, node)
    method = tree.Select(tree.StringLiteral(place, text), tree.Ident(place, "format"))
    return tree.Apply(method, arguments, [])


_BUILDERS: Dict[Type[ast.AST], Callable[..., tree.Expr]] = {
    ast.Attribute: _attribute,
    ast.BinOp: _binary,
    ast.BoolOp: _bool_op,
    ast.Call: _call,
    ast.Compare: _compare,
    ast.Constant: _constant,
    ast.Dict: _dict,
    ast.DictComp: _dict_comprehension,
    ast.GeneratorExp: _list_comprehension,
    ast.IfExp: _if,
    ast.JoinedStr: _joined,
    ast.List: _list,
    ast.ListComp: _list_comprehension,
    ast.Name: _name,
    ast.Slice: _slice,
    ast.Starred: _starred,
    ast.Subscript: _subscript,
    ast.Tuple: _tuple,
    ast.UnaryOp: _unary,
}


def build_expr(ctx: Any, node: Any) -> tree.Expr:
    """The tree of an expression. Raises UnsupportedNodeError, or another FrontendError, for what
    TorchScript does not have."""
    builder = _BUILDERS.get(type(node))
    if builder is None:
        raise UnsupportedNodeError(ctx, node)
    return builder(ctx, node)


def build_exprs(ctx: Any, nodes: Any) -> List[tree.Expr]:
    """The trees of several."""
    return [build_expr(ctx, node) for node in nodes]

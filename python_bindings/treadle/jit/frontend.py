"""TorchScript's front: programs as trees, by their text.

    >>> print(get_jit_def(f, "f"))
    (def (ident f) (decl (list) (option)) (list (return (const 1))))

Nothing compiles the trees here; tools read them.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any, Callable, Dict, List, Optional, Tuple

from treadle._jit_internal import is_static_fn, should_drop
from treadle._sources import (
    ParsedDef,
    get_source_lines_and_file,
    make_source_context,
    parse_def,
)
from treadle.jit import _tree as tree
from treadle.jit._build_expressions import build_expr, place_of
from treadle.jit._build_statements import build_stmt, build_stmts, build_withitem, build_withitems
from treadle.jit._dataclass_impls import DATACLASS_MAGIC_METHODS, synthesized
from treadle.jit._frontend_errors import (
    FrontendError,
    FrontendTypeError,
    NotSupportedError,
    UnsupportedNodeError,
    node_start_tokens,
    pretty_node_names,
)
from treadle.jit._ignored_blocks import (
    build_ignore_context_manager,
    is_torch_jit_ignore_context_manager,
)
from treadle.jit._tree import FalseLiteral, NoneLiteral, TrueLiteral
from treadle.jit._type_comments import merge_type_from_type_comment, parse_type_comment
from treadle.jit.annotations import get_type_line

# Types that another tool found by watching calls: none is used.
monkeytype_trace = None


def is_reserved_name(name: str) -> bool:
    """Whether programs may not use a name: one that begins with __jit."""
    return name.startswith("__jit")


def get_qualified_name(func: Any) -> str:
    """The name of a function or class, with those that it is in."""
    return func.__qualname__


# ---- defaults ------------------------------------------------------------------------------------


def get_default_args(fn: Optional[Callable[..., Any]]) -> Dict[str, Any]:
    """The arguments of a function that have a default, and it; none for None."""
    if fn is None:
        return {}
    parameters = inspect.signature(fn).parameters
    return {n: p.default for n, p in parameters.items() if p.default is not p.empty}


def get_default_args_for_class(cls: type) -> Dict[str, Dict[str, Any]]:
    """The same for each method of a class that is not static."""
    return {name: get_default_args(method) for name, method in _methods(cls)}


def _methods(cls: type) -> List[Tuple[str, Any]]:
    found = inspect.getmembers(cls, lambda m: inspect.ismethod(m) or inspect.isfunction(m))
    return [(name, m) for name, m in found if not is_static_fn(cls, m.__name__)]


# ---- functions -----------------------------------------------------------------------------------


def build_param(
    ctx: Any,
    py_arg: ast.arg,
    self_name: Optional[str],
    kwarg_only: bool,
    pdt_arg_type: Optional[str] = None,
) -> tree.Param:
    """The tree of an argument. `self` is of the class `self_name`; pdt_arg_type: a type in place
    of the annotation."""
    place = place_of(ctx, py_arg)
    name = ctx.make_range(
        py_arg.lineno, py_arg.col_offset, py_arg.col_offset + len(py_arg.arg)
    )  # fmt: skip
    kind: Optional[tree.Expr] = None
    if pdt_arg_type:
        kind = tree.Var(tree.Ident(place, pdt_arg_type))
    elif py_arg.annotation is not None:
        kind = build_expr(ctx, py_arg.annotation)
    elif self_name is not None and py_arg.arg == "self":
        kind = tree.Var(tree.Ident(name, self_name))
    return tree.Param(kind, tree.Ident(name, py_arg.arg), kwarg_only)


def build_param_list(
    ctx: Any,
    py_args: ast.arguments,
    self_name: Optional[str],
    pdt_arg_types: Optional[Dict[str, List[str]]] = None,
) -> List[tree.Param]:
    """The trees of a function's arguments. NotSupportedError for *args, **kwargs and defaults of
    arguments that are given by name alone."""
    for extra in (py_args.vararg, py_args.kwarg, *filter(None, py_args.kw_defaults)):
        if extra is not None:
            raise NotSupportedError(
                place_of(ctx, extra),
                "expected a fixed number of arguments, without defaults of those by name alone",
            )
    known = pdt_arg_types or {}

    def one(argument: ast.arg, kwarg_only: bool) -> tree.Param:
        types = known.get(argument.arg) or []
        joined = types[0] if len(types) == 1 else f"Union[{', '.join(types)}]" if types else None
        return build_param(ctx, argument, self_name, kwarg_only, joined)

    ordered = [*py_args.posonlyargs, *py_args.args]
    return [*(one(a, False) for a in ordered), *(one(a, True) for a in py_args.kwonlyargs)]


def build_def(
    ctx: Any,
    py_def: Any,
    type_line: Optional[str],
    def_name: str,
    self_name: Optional[str] = None,
    pdt_arg_types: Optional[Dict[str, List[str]]] = None,
) -> tree.Def:
    """The tree of a function; type_line: its types, as `# type: (int) -> int`."""
    place = ctx.make_range(py_def.lineno, py_def.col_offset, py_def.col_offset + len("def"))
    params = build_param_list(ctx, py_def.args, self_name, pdt_arg_types)
    result = None if py_def.returns is None else build_expr(ctx, py_def.returns)
    decl = tree.Decl(place, params, result)
    if type_line is not None:
        comment = parse_type_comment(type_line)
        decl = merge_type_from_type_comment(decl, comment, self_name is not None)
    return tree.Def(tree.Ident(place, def_name), decl, build_stmts(ctx, py_def.body))


def _statement(text: str, like: Any) -> ast.stmt:
    node = ast.parse(text).body[0]
    for part in ast.walk(node):
        if hasattr(part, "lineno"):
            ast.copy_location(part, like)
            part.end_lineno, part.end_col_offset = like.lineno, like.col_offset + 1  # type: ignore[attr-defined]
    return node


def _drop_body(function: Any) -> None:
    """A function that the compiler leaves out takes anything and raises."""
    message = '"Cannot call @unused methods"'
    function.body = [_statement(f"raise RuntimeError({message})", function)]
    arguments = function.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        argument.annotation = ast.copy_location(ast.Name("Any", ast.Load()), argument)
        argument.annotation.end_col_offset = argument.col_offset + 1
    arguments.vararg = arguments.kwarg = None


def get_jit_def(
    fn: Any,
    def_name: str,
    self_name: Optional[str] = None,
    is_classmethod: bool = False,
) -> tree.Def:
    """The tree of a function, or of a ParsedDef, under a name.

    self_name: the class that `self` is of; is_classmethod: whether its first argument is that
    class. RuntimeError for what is not one function, as a lambda; FrontendError for statements that
    TorchScript does not have. A function marked by jit.unused() has no body.
    """
    parsed = fn if isinstance(fn, ParsedDef) else parse_def(fn)
    type_line = get_type_line(parsed.source)
    function: Any = parsed.ast.body[0]
    if is_classmethod:
        name = function.args.args[0].arg
        function.body.insert(0, _statement(f"{name} = {self_name}", function))
    if should_drop(fn):
        _drop_body(function)
    named = None if is_classmethod else self_name
    return build_def(parsed.ctx, function, type_line, def_name, named)


# ---- classes -------------------------------------------------------------------------------------


def get_class_properties(cls: type, self_name: str) -> List[tree.Property]:
    """The trees of the properties of a class. NotSupportedError for one that can be deleted."""
    found = []
    for name, value in inspect.getmembers(cls, lambda m: isinstance(m, property)):
        if value.fget is None or should_drop(value.fget):
            continue
        getter = get_jit_def(value.fget, f"__{name}_getter", self_name)
        setter = None
        if value.fset is not None and not should_drop(value.fset):
            setter = get_jit_def(value.fset, f"__{name}_setter", self_name)
        place: Any = getter.range()
        found.append(tree.Property(place, tree.Ident(place, name), getter, setter))
    return found


def get_class_assigns(ctx: Any, cls_ast: ast.ClassDef) -> List[tree.Assign]:
    """The trees of the values that the body of a class has; those that TorchScript does not take
    are left out."""
    found = []
    for node in cls_ast.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            try:
                found.append(build_stmt(ctx, node))
            except FrontendError:
                continue
    return found  # type: ignore[return-value]


def build_class_def(
    ctx: Any,
    py_def: Any,
    methods: List[tree.Def],
    properties: List[tree.Property],
    self_name: str,
    assigns: List[tree.Assign],
) -> tree.ClassDef:
    """The tree of a class of these parts."""
    place = ctx.make_range(py_def.lineno, py_def.col_offset, py_def.col_offset + len("class"))
    return tree.ClassDef(tree.Ident(place, self_name), methods, properties, assigns)


def get_jit_class_def(cls: type, self_name: str) -> tree.ClassDef:
    """The tree of a class, under a name: its methods but static ones, properties and values. The
    methods that Python makes for a dataclass are written out."""
    methods = []
    for name, method in _methods(cls):
        fn = synthesized(cls, name) or method
        methods.append(get_jit_def(fn, name, self_name, inspect.ismethod(method)))
    lines, number, filename = get_source_lines_and_file(cls)
    source = textwrap.dedent("".join(lines))
    definition: Any = ast.parse(source).body[0]
    context = make_source_context(source, filename, number, 0, False)
    assigns = get_class_assigns(context, definition)
    properties = get_class_properties(cls, self_name)
    return build_class_def(context, definition, methods, properties, self_name, assigns)


def find_before(ctx: Any, pos: int, substr: str, offsets: Tuple[int, int] = (0, 0)) -> Any:
    """The place of the last such text before a position, begun and ended so much later. ValueError
    where there is none."""
    start = ctx.source[:pos].rindex(substr)
    return ctx.make_raw_range(start + offsets[0], start + len(substr) + offsets[1])


__all__ = [
    "DATACLASS_MAGIC_METHODS", "FalseLiteral", "FrontendError", "FrontendTypeError",
    "NoneLiteral", "NotSupportedError", "ParsedDef", "TrueLiteral", "UnsupportedNodeError",
    "build_class_def", "build_def", "build_expr", "build_ignore_context_manager", "build_param",
    "build_param_list", "build_stmt", "build_stmts", "build_withitem", "build_withitems",
    "find_before", "get_class_assigns", "get_class_properties", "get_default_args",
    "get_default_args_for_class", "get_jit_class_def", "get_jit_def", "get_qualified_name",
    "get_source_lines_and_file", "is_reserved_name", "is_static_fn",
    "is_torch_jit_ignore_context_manager", "make_source_context", "monkeytype_trace",
    "node_start_tokens", "parse_def", "pretty_node_names", "should_drop",
]  # fmt: skip

"""Types in comments, `# type: (int, Tensor) -> str`, as trees."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast

from treadle._sources import make_source_context
from treadle.jit import _tree as tree
from treadle.jit._build_expressions import build_expr
from treadle.jit.annotations import split_type_line


def parse_type_comment(comment: str) -> tree.Decl:
    """The arguments, without names, and the result of such a comment. RuntimeError for text that
    is none."""
    written = split_type_line(comment)
    parts = []
    for text in written:
        try:
            node = ast.parse(text, mode="eval").body
        except SyntaxError:
            raise RuntimeError(f"parse_type_comment: expected types, got {text!r}") from None
        parts.append((make_source_context(text, None, 0, 0), node))
    (context, arguments), (after, result) = parts
    nodes = arguments.elts if isinstance(arguments, ast.Tuple) else [arguments]
    place = context.make_raw_range(0, len(written[0]))
    params = [tree.Param(build_expr(context, n), tree.Ident(place, ""), False) for n in nodes]
    return tree.Decl(place, params, build_expr(after, result))


def merge_type_from_type_comment(
    decl: tree.Decl, type_annotation_decl: tree.Decl, is_method: bool
) -> tree.Decl:
    """The arguments with the types of a comment, in which a method's first has none. RuntimeError
    where there are more or fewer."""
    first = 1 if is_method else 0
    ours, theirs = decl.params[first:], type_annotation_decl.params
    if len(ours) != len(theirs):
        raise RuntimeError(
            f"type comment: expected {len(ours)} types, one for each argument, got {len(theirs)}"
        )
    merged = [tree.Param(b.type, a.name, a.kwarg_only) for a, b in zip(ours, theirs)]
    return tree.Decl(decl.range(), [*decl.params[:first], *merged], type_annotation_decl.result)

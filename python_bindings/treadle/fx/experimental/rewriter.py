"""RewritingTracer: traces programs whose `assert` statements depend on traced values.

    graph = RewritingTracer().trace(module)     # has a call of `_assert` for each assert

The text of a function is read and written anew, so it has to be in a file.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast
import copy
import functools
import inspect
import textwrap
from types import FunctionType
from typing import Any, Dict, List, Optional

from treadle import _names
from treadle.functional import _assert
from treadle.fx._symbolic_trace import Tracer
from treadle.fx.graph import Graph

_ASSERT = "_assert_of_rewriter"


def normalize_source_lines(sourcelines: List[str]) -> List[str]:
    """The lines of a function, each indented at least as far as its `def`, which comments and long
    strings need not be. Without a `def` the lines are returned as they are."""
    definition = next((line for line in sourcelines if line.lstrip().startswith("def")), None)
    if definition is None:
        return sourcelines
    indent = definition[: len(definition) - len(definition.lstrip())]
    return [indent + line.removeprefix(indent) for line in sourcelines]


class AST_Rewriter(ast.NodeTransformer):
    """Makes of `assert condition, text` in functions a call that a tracer records."""

    def rewrite(self, fn: FunctionType) -> Any:
        """The function with its asserts as calls, itself if it has none. OSError where its text is
        not known."""
        lines, first = inspect.getsourcelines(fn)
        source = textwrap.dedent("".join(normalize_source_lines(lines)))
        tree = ast.increment_lineno(ast.parse(source), first - 1)
        if not any(isinstance(node, ast.Assert) for node in ast.walk(tree)):
            return fn
        tree = ast.fix_missing_locations(self.visit(tree))
        definition = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
        definition.decorator_list = []  # they were applied to the function that is read
        names: Dict[str, Any] = {}
        exec(  # noqa: S102  the text of a function of the running program
            compile(tree, inspect.getsourcefile(fn) or "<rewritten>", "exec"),
            {**fn.__globals__, **inspect.getclosurevars(fn).nonlocals, _ASSERT: _assert},
            names,
        )
        made = names[definition.name]
        made.__defaults__, made.__kwdefaults__ = fn.__defaults__, fn.__kwdefaults__
        return functools.update_wrapper(made, fn)

    def visit_Assert(self, node: ast.Assert) -> ast.Expr:
        """The call in place of an assert."""
        text = ast.Constant("") if node.msg is None else node.msg
        call = ast.Call(ast.Name(_ASSERT, ast.Load()), [node.test, text], [])
        return ast.copy_location(ast.Expr(call), node)


class RewritingTracer(Tracer):
    """A tracer that records `assert` statements as calls of `_assert`."""

    def trace(self, root: Any, concrete_args: Optional[Dict[str, Any]] = None) -> Graph:
        """The graph of a module, whose `forward` and those of its parts are rewritten, or of a
        function."""
        return super().trace(_rewritten(root), concrete_args)


def _rewritten(root: Any) -> Any:
    from treadle import nn

    if not isinstance(root, nn.Module):
        return AST_Rewriter().rewrite(root)
    made = copy.copy(root)
    made._modules = {
        name: None if part is None else _rewritten(part) for name, part in root._modules.items()
    }
    kind = type(root)
    if not _names.is_own(kind.__module__):
        # The tracer asks the class for `forward`.
        body = {"forward": AST_Rewriter().rewrite(kind.forward), "__module__": kind.__module__}  # type: ignore[arg-type]
        made.__class__ = type(kind.__name__, (kind,), body)
    return made


__all__ = ["AST_Rewriter", "RewritingTracer", "normalize_source_lines"]

"""Blocks that TorchScript leaves to Python:

    with torch.jit._IgnoreContextManager(a="inp:int", c="out:int"):
        c = a + 1

To the compiler they are a call of a function of what comes in, whose results are what goes out.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast
import re
from typing import Any, List

from treadle import _names
from treadle._C import Tensor

_MANAGER = "_IgnoreContextManager"


def is_torch_jit_ignore_context_manager(stmt: Any) -> bool:
    """Whether a `with` is such a block."""
    call = stmt.items[0].context_expr
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    return ast.unparse(call.func) in (f"torch.jit.{_MANAGER}", f"treadle.jit.{_MANAGER}")


def build_ignore_context_manager(ctx: Any, stmt: Any) -> ast.stmt:
    """The call of a function with the statements of the block, which is defined in jit.frontend."""
    from treadle.jit import frontend

    inputs: List[Any] = []
    outputs: List[Any] = []
    for keyword in stmt.items[0].context_expr.keywords:
        kind, _, annotation = ast.literal_eval(keyword.value).partition(":")
        (inputs if kind == "inp" else outputs).append((keyword.arg, annotation))
    name = "func_ignore_" + re.sub(r"\W", "_", f"{ctx.filename or ''}_{stmt.lineno}")
    arguments = ", ".join(f"{argument}: {kind}" for argument, kind in inputs)
    body = "\n".join(f"    {line}" for s in stmt.body for line in ast.unparse(s).split("\n"))
    results = ", ".join(result for result, _ in outputs)
    kinds = ", ".join(kind for _, kind in outputs)
    kind = "None" if not outputs else kinds if len(outputs) == 1 else f"Tuple[{kinds}]"
    text = f"def {name}({arguments}) -> {kind}:\n{body}\n    return {results}\n"
    known = {**vars(__import__("typing")), "torch": _names.package(), "Tensor": Tensor}
    exec(text, known)  # noqa: S102  as the program has it
    setattr(frontend, name, known[name])
    called = f"torch.jit.frontend.{name}({', '.join(argument for argument, _ in inputs)})"
    assignment = f"{results} = {called}" if outputs else called
    node = ast.parse(assignment).body[0]
    for part in ast.walk(node):
        if hasattr(part, "lineno"):
            part.lineno, part.end_lineno = stmt.lineno, stmt.lineno  # type: ignore[attr-defined]
            part.col_offset, part.end_col_offset = stmt.col_offset, stmt.col_offset + 1  # type: ignore[attr-defined]
    return node

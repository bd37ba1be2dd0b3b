"""The script of a finding: a page of Python that makes the call again, with `import treadle` alone.

It ends with an AssertionError, or never, or as the process does, for as long as the finding holds.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Sequence

import treadle

from . import law, strangers
from .judge import Finding
from .recipe import ALIASES, Alias, Items, Literal, Node, Recipe, Stranger, TensorNode
from .values import literal

ALLOWED = ", ".join(
    ("treadle." if t is treadle.OutOfMemoryError else "") + t.__name__ for t in law.ALLOWED
)
LAW = f'''

def follows_the_law(error):
    """The exceptions and messages that the library may answer with."""
    message = str(error)
    allowed = ({ALLOWED})
    assert isinstance(error, allowed) and not isinstance(error, treadle.InternalError), repr(error)
    assert message and len(message.splitlines()) <= {law.MOST_LINES}, message
    assert len(message) <= {law.MOST_CHARACTERS}, message
    assert not re.search({law.INTERNAL!r}, message), message
    of_python = isinstance(error, (TypeError, RecursionError, MemoryError))
    assert of_python or re.match({law.NAMED!r}, message), message
'''


class _Script:
    """Collects the lines of a script."""

    def __init__(self) -> None:
        self.definitions: dict[str, str] = {}
        self.lines: list[str] = []

    def expression(self, node: Node, names: dict[int, str]) -> str:
        if isinstance(node, (Literal, TensorNode)):
            return node.source()
        if isinstance(node, Alias):
            name = names.get(node.of, "None")
            return ALIASES[node.how][1].format(name)
        if isinstance(node, Items):
            items = [self.expression(n, names) for n in node.items]
            if node.kind is tuple:
                return "(" + "".join(i + ", " for i in items).rstrip() + ")"
            return "[" + ", ".join(items) + "]"
        assert isinstance(node, Stranger)
        definitions, expression = strangers.SOURCES[node.name]
        if definitions:
            self.definitions[definitions] = definitions
        return expression


def function_source(recipe: Recipe) -> str:
    """How a program names the function of a call."""
    op = recipe.operator
    if op.kind == "binding":
        return op.id
    function = recipe.function()
    name = op.name
    if recipe.form == "inplace" and not name.endswith("_"):
        name += "_"
    if recipe.form == "method" or getattr(treadle.Tensor, name, None) is function:
        return f"treadle.Tensor.{name}"
    module = op.json["python_module"]
    inner = "treadle._C" if module is None else f"treadle._C._{module}"
    return f"treadle.{name}" if getattr(treadle, name, None) is function else f"{inner}.{name}"


def source(
    recipe: Recipe, finding: Finding, origin: str, modules: Sequence[str] = (), alone: bool = True
) -> str:
    """The text of the script. `origin` says which call of which run it was."""
    script = _Script()
    names: dict[int, str] = {}
    assignments = []
    given: list[str] = []
    keywords = [*([None] * len(recipe.args)), *recipe.kwargs, *(["out"] if recipe.out else [])]
    for argument, (node, keyword) in enumerate(zip(recipe.nodes(), keywords)):
        expression = script.expression(node, names)
        if isinstance(node, (TensorNode, Items, Alias)) or len(expression) > 60:
            name = keyword if keyword and keyword.isidentifier() else f"a{argument}"
            assignments.append(f"{name} = {expression}")
            names[argument] = name
            expression = name
        given.append(
            expression
            if keyword is None
            else f"{keyword}={expression}"
            if keyword.isidentifier()
            else f"**{{{literal(keyword)}: {expression}}}"
        )
    call = f"{function_source(recipe)}({', '.join(given)})"
    check = _check(recipe, finding, call, names)
    text = [f'"""{recipe.op}, {recipe.form}: {_one_line(finding.kind)}.\n']
    text.append(_comment(finding.detail))
    text.append(f"\n{origin}\n" + ("" if alone else "Alone it goes well.\n") + '"""\n\n')
    uses_law = "follows_the_law" in check
    text += ["import re\n\n"] if uses_law else []
    text += [f"import {module}  # noqa: F401\n" for module in modules]
    text.append("import treadle.nn.functional\n" if ".nn." in call else "import treadle\n")
    text += ["\n\n" + d if "def " in d else d for d in script.definitions]
    text += [LAW] if uses_law else []
    text.append("\n" if not (script.definitions or uses_law) else "\n\n")
    text += [line + "\n" for line in assignments]
    text.append(check)
    return "".join(text)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _comment(text: str) -> str:
    printable = text.encode("ascii", "backslashreplace").decode().replace("\\", "\\\\")
    return printable.replace('"""', "'''")[:1000] + "\n"


def _check(recipe: Recipe, finding: Finding, call: str, names: dict[int, str]) -> str:
    """The call, and the assertion that fails."""
    kind = finding.kind
    tensors = [names[i] for i, n in enumerate(recipe.nodes()) if isinstance(n, (TensorNode, Alias))]
    if kind.startswith("backward") or finding.detail.startswith("backward: "):
        inputs = [
            names[i]
            for i, n in enumerate(recipe.nodes())
            if isinstance(n, TensorNode) and n.grad and i in names
        ]
        flow = f"""outs = [t for t in result if t.requires_grad]
ins = [t for t in [{", ".join(inputs)}] if t.requires_grad and t.is_leaf]
"""
        grad = (
            "treadle.autograd.grad(outs, ins, [treadle.ones_like(t) for t in outs], "
            "allow_unused=True)"
        )
        return (
            f"result = {call}\n"
            "result = [result] if isinstance(result, treadle.Tensor) else result\n"
            + flow
            + f"try:\n    grads = {grad}\n"
            "    for t, g in zip(ins, grads):\n"
            "        assert g is None or (g.shape, g.dtype) == (t.shape, t.dtype), (g, t)\n"
            "except AssertionError:\n    raise\n"
            "except Exception as error:\n    follows_the_law(error)\n"
        )
    if kind.startswith("writes"):
        listed = ", ".join(tensors)
        return (
            f"tensors = [{listed}]\n"
            "before = [(t.detach().clone(), t.shape, t.stride()) for t in tensors]\n"
            f"try:\n    {call}\n    failed = False\n"
            "except Exception as error:\n    print(error)\n    failed = True\n"
            + ("assert failed\n" if "though it fails" in kind else "assert not failed\n")
            + "for t, (values, shape, stride) in zip(tensors, before):\n"
            "    assert (t.shape, t.stride()) == (shape, stride), (t.shape, shape)\n"
            "    same = (t == values) | ((t != t) & (values != values))\n"
            "    assert t.is_meta or same.all(), (t, values)\n"
        ).replace("assert failed\n", "")
    if kind in ("wrong result", "refuses a call that fits", "leak"):
        if kind == "leak":
            return f"for _ in range(100):\n    print({call})\n"
        return f"print({call})\n"
    if kind in ("depends on the layout", "forms differ", "differs from meta") or kind.startswith(
        "meta"
    ):
        return _twice(recipe, kind, call, names)
    handler = "print(error)" if kind in ("crash", "hang") else "follows_the_law(error)"
    return f"try:\n    {call}\nexcept Exception as error:\n    {handler}\n"


def _twice(recipe: Recipe, kind: str, call: str, names: dict[int, str]) -> str:
    """The call made twice, in two ways."""
    how = {
        "depends on the layout": "t.detach().clone(memory_format=treadle.contiguous_format)",
        "forms differ": "t.detach().clone()",
    }.get(kind, 't.detach().to("meta")')
    tensors = [names[i] for i, n in enumerate(recipe.nodes()) if i in names]
    second = call
    if kind == "forms differ":
        plain = Recipe(recipe.op, "functional", recipe.args, recipe.kwargs)
        second = call.replace(function_source(recipe), function_source(plain), 1)
        second = second.replace(", out=out", "")
    moved: list[Any] = [f"{n} = again({n})" for n in tensors]
    compare = (
        "assert [(t.shape, t.dtype) for t in first] == [(t.shape, t.dtype) for t in second]\n"
        if "meta" in kind
        else "for a, b in zip(first, second):\n"
        "    same = treadle.allclose(a, b.to(a.dtype), 1e-3, equal_nan=True)\n"
        "    assert a.shape == b.shape and same, (a, b)\n"
    )
    before = "\n".join(f"{n}_ = again({n})" for n in tensors) if kind == "forms differ" else ""
    back = "\n".join(f"{n} = {n}_" for n in tensors) if before else "\n".join(moved)
    return (
        "\n\ndef again(value):\n"
        "    if isinstance(value, (list, tuple)):\n"
        "        return type(value)(map(again, value))\n"
        f"    return (lambda t: {how})(value) if isinstance(value, treadle.Tensor) else value\n\n\n"
        "def listed(value):\n"
        "    return [value] if isinstance(value, treadle.Tensor) else list(value)\n\n\n"
        + (before + "\n" if before else "")
        + f"first = listed({call})\nprint(first)\n"
        + back
        + f"\nsecond = listed({second})\nprint(second)\n"
        + compare
    )

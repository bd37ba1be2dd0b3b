"""Prints the pages of the Python interface as JSON: {"python/treadle.nn.md": "# treadle.nn ..."}.

    python docs_api.py     # with the built package

A page for each public module has what is at home there: the shortest public path of a class or a
function. Operators have pages of their own, which codegen.reference makes.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any

from public_names import kind_of, names_of

PACKAGE = "treadle"
# Programs, parts of the build, and what the tests are made of.
PASSED_OVER = (
    f"{PACKAGE}.codegen",
    f"{PACKAGE}.bazel",
    f"{PACKAGE}.run",
    f"{PACKAGE}.testing.operators",
    f"{PACKAGE}.fx.experimental",
)
# Text that Markdown would take for its own, outside of code.
SPECIAL = re.compile(r"[\\*_<>\[\]#|{}$~]")


def modules() -> Iterator[types.ModuleType]:
    """The public modules that can be imported, those of the shortest path first."""
    waiting = [importlib.import_module(PACKAGE)]
    seen = set(waiting)
    while waiting:
        module = waiting.pop(0)
        yield module
        for found in pkgutil.iter_modules(vars(module).get("__path__", [])):
            name = f"{module.__name__}.{found.name}"
            if found.name.startswith("_") or name.startswith(PASSED_OVER):
                continue
            try:
                imported = importlib.import_module(name)
            except ImportError:  # asks for a package that is not here
                continue
            if imported not in seen:  # a module may be known by several names
                seen.add(imported)
                waiting.append(imported)


def homes() -> dict[str, list[tuple[str, Any]]]:
    """Classes and functions by the module with the shortest path to them."""
    seen: set[int] = set()
    found: dict[str, list[tuple[str, Any]]] = {}
    for module in modules():
        for name in names_of(module, PACKAGE):
            value = getattr(module, name, None)
            if kind_of(value) not in ("class", "function") or id(value) in seen:
                continue
            # A value that the standard library or another package defines is not ours to explain.
            if str(getattr(value, "__module__", PACKAGE)).partition(".")[0] != PACKAGE:
                continue
            seen.add(id(value))
            if not isinstance(value, types.BuiltinFunctionType):  # operators
                found.setdefault(module.__name__, []).append((name, value))
    return found


class _Text(str):
    """An annotation that is shown without quotes."""

    __repr__ = str.__str__


def signature(value: Any) -> str:
    """`(input, p: float = 0.5) -> Tensor`; `(...)` where Python does not know it."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "" if isinstance(value, type) else "(...)"

    def shown(annotation: Any) -> Any:
        return _Text(annotation) if isinstance(annotation, str) else annotation

    parameters = []
    for p in found.parameters.values():
        # A default that prints an address differs from run to run.
        default = _Text("...") if " at 0x" in repr(p.default) else p.default
        parameters.append(p.replace(default=default, annotation=shown(p.annotation)))
    result = inspect.Signature.empty if isinstance(value, type) else found.return_annotation
    return str(found.replace(parameters=parameters, return_annotation=shown(result)))


def described(value: Any) -> str:
    """The docstring as Markdown: code stays code, other text loses what Markdown would change."""
    text = value.__doc__ if isinstance(value.__doc__, str) else ""
    if isinstance(value, type) and not _own_docstring(value):
        text = ""
    blocks = []
    for block in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        lines = block.splitlines()
        if lines and all(line.startswith(("    ", ">>>", "...")) for line in lines[:1]):
            blocks.append("```\n" + inspect.cleandoc("\n" + block) + "\n```")
            continue
        parts = re.split(r"(`+[^`]+`+)", block)
        plain = [p if i % 2 else SPECIAL.sub(r"\\\g<0>", p) for i, p in enumerate(parts)]
        blocks.append("".join(plain))
    return "\n\n".join(blocks)


def _own_docstring(value: type) -> bool:
    """Whether the docstring is the class's, not one that it inherits or that `type` makes."""
    return "__doc__" in vars(value) and not (value.__doc__ or "").startswith(f"{value.__name__}(")


def page(module: str, members: list[tuple[str, Any]]) -> str:
    """The page of one module."""
    imported = importlib.import_module(module)
    parts = [f"# {module}", described(imported)]
    for heading, kind in (("Classes", "class"), ("Functions", "function")):
        of_kind = [(name, value) for name, value in members if kind_of(value) == kind]
        if not of_kind:
            continue
        parts.append(f"## {heading}")
        for name, value in sorted(of_kind, key=lambda member: member[0].lower()):
            text = f"{module}.{name}{signature(value)}"
            parts.append(f":::::{{py:{kind}}} {text}\n\n{described(value)}\n:::::")
    return "\n\n".join(part for part in parts if part) + "\n"


def index(names: list[str]) -> str:
    """The list of the modules, each with the first sentence about it."""
    lines = ["# Python interface", "", "The public modules. Operators have pages of their own.", ""]
    for name in names:
        words = " ".join(described(importlib.import_module(name)).split())
        sentence = re.split(r"(?<=[.:]) ", words)[0].rstrip(":")
        lines.append(f"* [{name}](python/{name}.md)" + (f": {sentence}" if sentence else ""))
    return "\n".join(lines) + "\n"


def main() -> None:
    warnings.simplefilter("ignore")
    output, sys.stdout = sys.stdout, sys.stderr  # modules may print when they are imported
    by_module = homes()
    made = {f"python/{module}.md": page(module, members) for module, members in by_module.items()}
    made["python.md"] = index(sorted(by_module))
    json.dump(made, output)


if __name__ == "__main__":
    main()

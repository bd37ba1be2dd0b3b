"""No argument is taken and ignored: a parameter of a public function that its body never reads is
in the table of docs/arguments-without-effect.md, with the reason, and nothing else is."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast
import functools
import itertools
import re
from pathlib import Path
from typing import Dict, Iterator, List, Set, Tuple, Union

import treadle
from source_tree import ROOT
from treadle import _C

PACKAGE = Path(treadle.__file__).parent
PAGE = ROOT / "docs" / "arguments-without-effect.md"
# The parts of load and save, which nobody else calls.
LEFT_OUT = re.compile(r"serialization/_[a-z]")
# Public modules that show the functions of a private one.
SHOWN_BY = {
    "_as_written/compiler": "compiler",
    "_as_written/torchscript": "jit",
    "_device/facade": "cuda",
    "_device/registry": "accelerator",
    "_jit_internal": "jit",
}
# It makes the functions of namespaces inside of its own functions.
MAKES_FUNCTIONS = "_device/facade"
# The names that Python itself calls whose parameters are the caller's.
CALLED_BY_USERS = {"__init__", "__new__", "__call__"}

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]


@functools.lru_cache(maxsize=None)
def sources() -> List[Tuple[str, ast.Module]]:
    """The name of each module up to its first private part, or the public one that shows it; and
    its tree."""
    made = []
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        if not LEFT_OUT.match(place):
            name = place[: -len(".py")]
            parts = SHOWN_BY.get(name, name).split("/")
            public = itertools.takewhile(lambda part: not part.startswith("_"), parts)
            tree = ast.parse(path.read_text())
            if name == MAKES_FUNCTIONS:
                made_inside = [part for node in tree.body for part in getattr(node, "body", [])]
                tree = ast.Module(body=made_inside, type_ignores=[])
            made.append((".".join(public), tree))
    return made


def functions(tree: ast.AST, prefix: str) -> Iterator[Tuple[str, Function]]:
    """The functions of modules and classes. Those inside of functions are nobody's to call."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{prefix}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, (ast.If, ast.Try)):
            yield from functions(node, prefix)


def statements(function: Function) -> List[ast.stmt]:
    """The body without the docstring."""
    body = function.body
    is_text = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    return body[is_text:]


def refuses(function: Function) -> bool:
    """Whether it only raises: nothing is ignored then."""
    body = statements(function)
    return len(body) == 1 and isinstance(body[0], ast.Raise)


def is_abstract(function: Function) -> bool:
    """Whether only subclasses are called: nothing is ignored then."""
    return any("abstractmethod" in ast.dump(mark) for mark in function.decorator_list)


def unread(function: Function) -> List[str]:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [a for a in (arguments.vararg, arguments.kwarg) if a]
    read = {
        node.id
        for statement in function.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Load, ast.Del))
    }
    names = (a.arg for a in every)
    return [n for n in names if n not in read and n not in ("self", "cls") and n[0] != "_"]


def is_public(qualified: str) -> bool:
    parts = qualified.split(".")
    last = parts[-1]
    is_named_by_python = last.startswith("__") and last.endswith("__")
    if is_named_by_python and last not in CALLED_BY_USERS:
        return False  # its parameters are Python's
    return not any(part.startswith("_") for part in (parts[:-1] if is_named_by_python else parts))


def found() -> Dict[str, List[str]]:
    trees = sources()
    # Methods that a class leaves to its subclasses say which parameters those have. A subclass of a
    # class with abstract methods is in the same package; others may be anywhere.
    left: Set[str] = set()
    declared: Set[Tuple[str, str]] = set()
    for module, tree in trees:
        for name, function in functions(tree, ""):
            last = name.split(".")[-1]
            if is_abstract(function):
                declared.add((module.split(".")[0], last))
            elif "." in name and (refuses(function) or not statements(function)):
                left.add(last)
    result: Dict[str, List[str]] = {}
    for module, tree in trees:
        for name, function in functions(tree, ""):
            last = name.split(".")[-1]
            known = last in left or (module.split(".")[0], last) in declared
            inherits = "." in name and known and last not in CALLED_BY_USERS
            if (
                is_public(name)
                and not refuses(function)
                and not is_abstract(function)
                and not (inherits and statements(function))
            ):
                names = unread(function)
                if names and not any("overload" in ast.dump(d) for d in function.decorator_list):
                    result[f"{module}.{name}".lstrip(".")] = names
    return result


def table() -> Dict[str, List[str]]:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    result = {}
    for row in rows:
        names, arguments, reason = (cell.strip() for cell in row.strip("|").split(" | "))
        assert reason, f"a reason for {names}"
        for name in names.split(", "):
            assert name not in result, f"{name} has two rows"
            result[name.strip("`")] = [a.strip("`") for a in arguments.split(", ")]
    return result


def test_the_page_has_every_argument_without_effect_and_no_other() -> None:
    read, written = found(), table()
    assert {n: a for n, a in read.items() if written.get(n) != a} == {}, "not in the table so"
    assert sorted(set(written) - set(read)) == [], "read after all, or gone"


PARAMETERS = re.compile(r"const Param (\w+)\[\] = \{(.*?)\n?\};", re.DOTALL)
SIGNATURES = re.compile(r"const Signature (\w+)\[\] = \{(.*?)\};", re.DOTALL)
FUNCTIONS = re.compile(r"(?:static )?Function (\w+)(?:\{| = \{)[^,]+, (\w+)")
CALLS = re.compile(r"Call<\d+> call\((\w+)")
READ = re.compile(r"call\.\w+\((\d+)|\bcall, (\d+)")
# A function that reads arguments for another.
READER = re.compile(r"(\w+)\([^;{}]*const Call<\d+>& call\b[^;{}]*\) \{")
# Reads its last three by a computed number.
COMPUTED = {"to_function"}


def test_functions_of_the_extension_module_read_their_arguments() -> None:
    """The parameters of the functions that are parsed by tables in python_bindings/csrc."""
    unread_there, seen = [], 0
    for path in sorted((ROOT / "python_bindings" / "csrc").rglob("*.cc")):
        text = path.read_text()
        parameters = {
            name: re.findall(r'\{"(\w+)"', body) for name, body in PARAMETERS.findall(text)
        }
        signatures = {
            name: re.findall(r"\{(\w+),", body) for name, body in SIGNATURES.findall(text)
        }
        tables = dict(FUNCTIONS.findall(text))
        for call in CALLS.finditer(text):
            function, end = call.group(1), text.find("\n}\n", call.start())
            body = text[call.start() : end]
            for reader in READER.finditer(text):
                if re.search(rf"\b{reader.group(1)}\(", body):
                    body += text[reader.start() : text.find("\n}\n", reader.start())]
            read = {int(a or b) for a, b in READ.findall(body)}
            for table_of in signatures.get(tables.get(function, ""), []):
                seen += 1
                names = [n for i, n in enumerate(parameters.get(table_of, [])) if i not in read]
                if names and function not in COMPUTED:
                    unread_there.append((path.name, function, names))
    assert unread_there == [] and seen > 20


def test_names_of_the_extension_module_exist() -> None:
    """A name that the package looks up only when a function runs."""
    missing = []
    for module, tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.value.id == "_C" and not hasattr(_C, node.attr):
                    missing.append(f"{module}:{node.lineno}: _C.{node.attr}")
    assert missing == []

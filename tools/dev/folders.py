"""Rules of ./dev lint that are about folders, not about single files: the number of files in one,
the direction of C++ includes between layers, that parts of one layer do not form a cycle, and that
no module imports a root that only re-exports.

Each rule is a function of paths, or of paths and texts, so that a test can give it a small tree.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

FILES = 40
# From the lowest: a file includes files of its own layer and of those before it.
LAYERS = (
    "plugin/treadle",
    "core",
    "aten",
    "autograd",
    "plugin/host",
    "stable_abi",
    "python_bindings",
)
# Gradients are composed of operators: they lie with their family, in the layer of autograd.
GRADIENTS = re.compile(r"aten/ops/(?:.*/)?gradients[^/]*")
# Tests include what they compare with.
TESTS = re.compile(r"_test\.(?:cc|cu)$|/testing_[^/]*$")
CPP_FILES = re.compile(r"\.(?:h|hpp|cc|cu|cuh)$")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
# Folders below which no folders include each other in a cycle.
INCLUDES_WITHOUT_CYCLES = ("core",)
# Packages whose modules and sub-packages do not import each other in a cycle. The root of each is a
# part, too.
IMPORTS_WITHOUT_CYCLES = (
    "codegen",
    "python_bindings/treadle",
    "python_bindings/treadle_testing",
)
# Packages whose root re-exports names and is imported by none of their modules. The rule of cycles
# does not find such an import in a function, or in a module that the root imports lazily.
REEXPORTING_ROOTS = ("python_bindings/treadle",)
TYPES_ONLY = {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


class Use(NamedTuple):
    """A line of the file `user` that includes or imports the file `used`."""

    user: str
    line: int
    used: str


# The first use for each pair of parts.
Uses = dict[tuple[str, str], Use]


def problems(texts: Mapping[str, str], names: Iterable[str]) -> Iterator[str]:
    """The breaches of all rules; `names` are all files, `texts` those in C++ and Python."""
    yield from crowded(names)
    yield from includes_upwards(texts)
    for folder in INCLUDES_WITHOUT_CYCLES:
        yield from cycles(folder, "include", uses_by_includes(texts, folder))
    for package in IMPORTS_WITHOUT_CYCLES:
        yield from cycles(package, "import", uses_by_imports(texts, package))
    for package in REEXPORTING_ROOTS:
        yield from imports_of_root(texts, package)


def crowded(names: Iterable[str]) -> Iterator[str]:
    """Folders with too many files; files of their sub-folders do not count."""
    counts = Counter(str(PurePosixPath(name).parent) for name in names)
    for folder, count in sorted(counts.items()):
        if count > FILES:
            yield (
                f"{folder}: {count} files beside each other, {FILES} allowed; split the folder by "
                "what its files are about"
            )


# ---- includes ------------------------------------------------------------------------------------


def layer_of(name: str) -> int | None:
    """The number of a file's layer; None for files outside of the layers."""
    if GRADIENTS.fullmatch(name):
        return LAYERS.index("autograd")
    for number, layer in enumerate(LAYERS):
        if name.startswith(layer + "/"):
            return number
    return None


def includes(texts: Mapping[str, str]) -> Iterator[Use]:
    """The includes of C++ files by paths from the root; tests are left out."""
    for name, text in sorted(texts.items()):
        if CPP_FILES.search(name) and not TESTS.search(name):
            for match in INCLUDE.finditer(text):
                if "/" in match[1]:
                    yield Use(name, text.count("\n", 0, match.start()) + 1, match[1])


def includes_upwards(texts: Mapping[str, str]) -> Iterator[str]:
    """Includes from a layer above."""
    for user, line, used in includes(texts):
        lower, upper = layer_of(user), layer_of(used)
        if lower is not None and upper is not None and lower < upper:
            yield (
                f"{user}:{line}: includes {used}, but {LAYERS[lower]} is below {LAYERS[upper]}; "
                f"the layers are {' <- '.join(LAYERS)}"
            )


def uses_by_includes(texts: Mapping[str, str], folder: str) -> Uses:
    """The includes between the folders directly below `folder`; its own files are one part, too."""

    def part_of(name: str) -> str:
        first, _, rest = name.removeprefix(folder + "/").partition("/")
        return first if rest else "."

    uses: Uses = {}
    for use in includes(texts):
        if use.user.startswith(folder + "/") and use.used.startswith(folder + "/"):
            uses.setdefault((part_of(use.user), part_of(use.used)), use)
    return uses


# ---- imports -------------------------------------------------------------------------------------


def modules_of(texts: Mapping[str, str], folder: str) -> dict[tuple[str, ...], str]:
    """The file of each module of a package, by the module's path: ("codegen", "render")."""
    package = PurePosixPath(folder).name
    modules: dict[tuple[str, ...], str] = {}
    for name in sorted(texts, reverse=True):  # x.py after x.pyi
        if name.startswith(folder + "/") and name.endswith((".py", ".pyi")):
            path = (package, *PurePosixPath(name).relative_to(folder).with_suffix("").parts)
            modules[path[:-1] if path[-1] == "__init__" else path] = name
    return modules


def uses_by_imports(texts: Mapping[str, str], folder: str) -> Uses:
    """The imports between the modules and sub-packages directly below a package while they are
    loaded: imports in functions and under TYPE_CHECKING are left out. The package's own `__init__`
    is a part, too: an import of a name that is no module uses it."""
    modules = modules_of(texts, folder)
    found = [
        (name, path, imported)
        for path, name in sorted(modules.items())
        if name.endswith(".py")
        for imported in imports(texts[name], path, name.endswith("/__init__.py"))
    ]
    # The build writes some modules; these import nothing from the package.
    generated = {i.module for _, _, i in found if i.module not in modules}
    uses: Uses = {}
    for name, path, (line, module, imported, _) in found:
        used = next((m for m in ((*module, imported), module) if m in modules), None)
        if used and not (used == module and (*module, imported) in generated):
            pair = (_part(path), _part(used))
            uses.setdefault(pair, Use(name, line, modules[used]))
    return uses


def imports_of_root(texts: Mapping[str, str], folder: str) -> Iterator[str]:
    """Lines of a package's modules that import its root: in functions, too. `import package.module`
    is among them, for it binds the root's name."""
    modules = modules_of(texts, folder)
    root = (PurePosixPath(folder).name,)
    for path, name in sorted(modules.items()):
        if path == root or not name.endswith(".py"):
            continue
        is_package = name.endswith("/__init__.py")
        for line, module, imported, alias in imports(texts[name], path, is_package, True):
            if imported:
                is_root = module == root and (*module, imported) not in modules
            else:
                is_root = module == root or (module[:1] == root and not alias)
            if is_root:
                yield (
                    f"{name}:{line}: imports {root[0]}, whose root re-exports what modules define; "
                    "import the module that defines the name"
                )


def _part(path: tuple[str, ...]) -> str:
    return path[1] if len(path) > 1 else "__init__"


class Import(NamedTuple):
    """A name that a line imports from a module; no name where it imports the module."""

    line: int
    module: tuple[str, ...]
    name: str
    alias: str


def imports(
    text: str, path: tuple[str, ...], is_package: bool, everywhere: bool = False
) -> Iterator[Import]:
    """The imports that run when a module is loaded, or all with `everywhere`."""
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a rule of its own says so
        return
    for node in ast.walk(tree) if everywhere else _run_at_import(tree.body):
        if isinstance(node, ast.Import):
            for a in node.names:
                yield Import(node.lineno, tuple(a.name.split(".")), "", a.asname or "")
        elif isinstance(node, ast.ImportFrom):
            module = tuple(node.module.split(".")) if node.module else ()
            if node.level:
                module = (*path[: len(path) + is_package - node.level], *module)
            for a in node.names:
                yield Import(node.lineno, module, a.name, a.asname or "")


def _run_at_import(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a module is loaded."""
    for node in body:
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        types_only = isinstance(node, ast.If) and ast.unparse(node.test) in TYPES_ONLY
        for field in ("orelse", "finalbody") if types_only else ("body", "orelse", "finalbody"):
            yield from _run_at_import(getattr(node, field, []))
        for handler in getattr(node, "handlers", []):
            yield from _run_at_import(handler.body)


# ---- cycles --------------------------------------------------------------------------------------


def cycles(folder: str, verb: str, uses: Uses) -> Iterator[str]:
    """One line for each group of parts that use each other: its shortest cycle, file by file."""
    left = {a for a, b in uses if a != b}
    while left:
        found = [cycle for part in sorted(left) if (cycle := _shortest(part, uses))]
        if not found:
            return
        cycle = min(found, key=len)
        chain = ", ".join(
            f"{use.user}:{use.line} {verb}s {use.used}"
            for use in (uses[pair] for pair in zip(cycle, [*cycle[1:], cycle[0]]))
        )
        yield f"{folder}: parts {verb} each other in a cycle: {chain}"
        # Parts of the same group wait until this cycle is gone.
        group = {part for part in left if _reaches(part, cycle[0], uses)}
        left -= {part for part in group if _reaches(cycle[0], part, uses)}


def _next(uses: Uses) -> dict[str, list[str]]:
    following: dict[str, list[str]] = {}
    for a, b in sorted(uses):
        if a != b:
            following.setdefault(a, []).append(b)
    return following


def _paths(start: str, uses: Uses) -> Iterator[list[str]]:
    """Shortest paths from a part to each that it reaches; at last to itself, if it does."""
    following = _next(uses)
    seen: set[str] = set()
    queue = deque([[start]])
    while queue:
        path = queue.popleft()
        for part in following.get(path[-1], []):
            if part not in seen:
                seen.add(part)
                queue.append([*path, part])
                yield [*path, part]


def _shortest(start: str, uses: Uses) -> list[str]:
    """The parts of a shortest cycle through a part; none if there is no cycle."""
    return next((path[:-1] for path in _paths(start, uses) if path[-1] == start), [])


def _reaches(start: str, end: str, uses: Uses) -> bool:
    return any(path[-1] == end for path in _paths(start, uses))

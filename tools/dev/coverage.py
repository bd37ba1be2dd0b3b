"""./dev coverage: which of the names that programs use exist here, and work.

    ./dev coverage api-usage.tsv      # name, number of programs, number of occurrences

A name is `torch.nn.Linear`; `import torch.nn`; a member of an object, `Tensor.item` or
`Optimizer.step`, of one of two, `Tensor|Module.to`, or of what may be another object as well,
`Tensor?.split`; or `operator @`. Each is looked up as a program does: `torch` is imported through
the hook of treadle.run, members are asked of instances. A name that exists only to say that it does
not work is not counted; docs/coming-from-pytorch.md lists those, beside the missing ones.

Fails if a name that two programs use is not there, or more than a tenth of all.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import fnmatch
import functools
import importlib
import operator
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "coming-from-pytorch.md"

OPERATORS = {"@": operator.matmul}


class Use(NamedTuple):
    name: str
    programs: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a file with one name on each line, or a table")


def main(args: argparse.Namespace) -> int:
    import bazel
    import environment
    from tests import python_environment
    from ui import run

    environment.prepare()
    config = bazel.Config()
    package = bazel.build_package(config)
    variables = python_environment(config, package)
    return run([str(environment.PYTHON), str(Path(__file__)), args.file], env=variables)


def names_of(text: str) -> list[Use]:
    """The names of a table or a list: first words that look like one; a heading does not."""
    rows = (line.split("\t") for line in text.splitlines())
    form = r"(import )?torch(\.\w+)*|[A-Z]\w*[|?\w]*\.\w+|operator .+"
    return [
        Use(row[0].strip(), int(row[1]) if row[1:] else 1)
        for row in rows
        if re.fullmatch(form, row[0].strip())
    ]


def explained() -> dict[str, str]:
    """Name, or pattern for names -> reason, from the tables of the page."""
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", PAGE.read_text(), re.M)
    return {name: reason for names, reason in rows for name in re.findall(r"`([\w.*]+)`", names)}


def reason_of(name: str) -> str | None:
    """Why a name is not there, where the page says so; of what is there it says nothing."""
    known = explained()
    if name in known:
        return known[name]
    fitting = [p for p in known if "*" in p and fnmatch.fnmatchcase(name, p)]
    return known[max(fitting, key=len)] if fitting else None


def is_name_only(name: str) -> bool:
    """Whether programs can mention it, and no more."""
    if not name.startswith("torch.") or not exists(name):
        return False
    return "Only a name" in str(getattr(_value(name), "__doc__", ""))


def _value(name: str) -> Any:
    owner = package()
    for part in name.split(".")[1:]:
        owner = getattr(owner, part)
    return owner


@functools.lru_cache(maxsize=None)
def package() -> Any:
    """The module that `import torch` gives."""
    importlib.import_module("treadle.run").install()
    return importlib.import_module("torch")


@functools.lru_cache(maxsize=None)
def instance(kind: str) -> Any:
    """An object whose members `Tensor.item` and the like are."""
    torch = package()
    module = torch.nn.Linear(2, 2)
    make = {
        "Tensor": lambda: torch.zeros(2, 2),
        "Module": lambda: module,
        "Optimizer": lambda: torch.optim.SGD(module.parameters(), lr=0.1),
        "Distribution": lambda: torch.distributions.Normal(0.0, 1.0),
    }
    return make[kind]()


def has(owner: Any, name: str) -> bool:
    """Whether an object has a member; one that raises for it counts: x.imag of a real x."""
    return hasattr(type(owner), name) or hasattr(owner, name)


def leads_somewhere(path: list[str]) -> bool:
    """Whether `torch.a.b` does, by attributes and by imports."""
    owner = package()
    for i, part in enumerate(path[1:], 1):
        if not hasattr(owner, part):
            try:
                importlib.import_module(".".join(path[: i + 1]))
            except ImportError:
                return False
        owner = getattr(owner, part)
    return True


def exists(name: str) -> bool:
    """Whether a program that uses the name finds something."""
    first, _, rest = name.partition(" ")
    if first == "operator":
        apply = OPERATORS.get(rest)
        return apply is not None and apply(instance("Tensor"), instance("Tensor")) is not None
    path = name.split(".")
    try:
        if first == "import":
            package()
            return importlib.import_module(rest) is not None
        if path[0] == "torch":
            return leads_somewhere(path)
        kinds = path[0].rstrip("?").split("|")
        return any(has(instance(kind), path[1]) for kind in kinds)
    except (ImportError, AttributeError):
        return False


def works(name: str) -> bool:
    """Whether it exists, and not only to say that it does not work."""
    plain = name.removeprefix("import ")
    return plain not in explained() and exists(name) and not is_name_only(plain)


def _share(uses: list[Use], missing: list[Use]) -> str:
    there = len(uses) - len(missing)
    return f"{there} of {len(uses)}" + (f" ({there / len(uses):.1%})" if uses else "")


def report(uses: list[Use]) -> tuple[list[str], bool]:
    """The lines to print, and whether enough is there."""
    missing = [use for use in uses if not works(use.name)]
    often, often_missing = ([u for u in some if u.programs >= 2] for some in (uses, missing))
    lines = [
        f"names used by two programs or more: {_share(often, often_missing)}",
        f"all names: {_share(uses, missing)}",
    ]
    for name, programs in missing:
        reason = reason_of(name.removeprefix("import ")) or "not yet"
        lines.append(f"  {name} ({programs}): {reason}")
    return lines, not often_missing and len(missing) * 10 <= len(uses)


if __name__ == "__main__":
    text, is_enough = report(names_of(Path(sys.argv[1]).read_text()))
    print("\n".join(text))
    sys.exit(0 if is_enough else 1)

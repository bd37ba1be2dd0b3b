"""./dev names: what is public in an installed PyTorch and is not here, or has other parameters.

    ./dev names /path/to/python             # a Python that has PyTorch
    ./dev names /path/to/python --write     # and put what is missing on its page

The reasons are in tools/tables/names.txt: a pattern for names, a tab, the reason. Fails if a name
is missing that no pattern stands for. The tables of docs/coming-from-pytorch.md, of what is missing
and of what is a name only, are made from the comparison.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import json
import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import bazel
import environment
from tests import python_environment
from ui import ROOT, DevError, say

LISTER = Path(__file__).resolve().parent / "public_names.py"
REASONS = ROOT / "tools" / "tables" / "names.txt"
PAGE = ROOT / "docs" / "coming-from-pytorch.md"
TABLE = ROOT / "python_bindings" / "treadle" / "_names" / "table.py"
MARKS = "<!-- {0}: made by ./dev names -->\n", "<!-- end of {0} -->\n"

Names = dict[str, list[Any]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("python", help="a Python in which torch is installed")
    parser.add_argument("--write", action="store_true", help="write the tables of the page")


def _listed(python: str, arguments: list[str], given: str, variables: dict[str, str]) -> Names:
    command = [python, str(LISTER), *arguments]
    result = subprocess.run(
        command, input=given, capture_output=True, text=True, env=variables, cwd="/", check=False
    )
    if result.returncode != 0:
        raise DevError(f"{python} cannot list names:\n{result.stderr[-2000:]}")
    return json.loads(result.stdout)


def reasons() -> dict[str, str]:
    """Pattern -> reason."""
    lines = [line for line in REASONS.read_text().splitlines() if line and line[0] != "#"]
    return dict(line.split("\t") for line in lines)


def pattern_for(name: str, patterns: dict[str, str]) -> str | None:
    """The first pattern that stands for a name or for something that it is in."""
    return next((p for p in patterns if fnmatch.fnmatchcase(name, p)), None)


def differences(theirs: list[Any], ours: list[Any]) -> list[str]:
    """Differences of a name that both have: `-dim` is missing, `dim=0|1` has another default."""
    (kind, wanted), (our_kind, found) = theirs, ours
    if kind != our_kind and {kind, our_kind} != {"class", "function"}:
        return [f"{our_kind} instead of {kind}"]
    if wanted is None or found is None:
        return []
    have = dict(found)
    lines = [f"-{name}" for name, _ in wanted if name not in have and name not in ("args", "self")]
    for name, default in wanted:
        other = have.get(name, default)
        if "?" not in (default, other) and default != other:
            lines.append(f"{name}={default}|{other}")
    return lines


def mentioned() -> dict[str, dict[str, str]]:
    """The table of the names that are names only: reason -> module -> names."""
    spec = importlib.util.spec_from_file_location("table_of_names", TABLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.MISSING


def _is_written(module: str) -> bool:
    path = TABLE.parent.parent.joinpath(*module.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def table_of_mentioned() -> list[str]:
    rows = []
    for reason, modules in mentioned().items():
        names: list[str] = []
        for module, listed in sorted(modules.items()):
            path = f"torch.{module}".rstrip(".")
            one_by_one = not module or _is_written(module)
            names += [f"{path}.{n}" for n in listed.split()] if one_by_one else [f"{path}.*"]
        rows.append(f"| {', '.join(f'`{name}`' for name in names)} | {reason} |")
    return rows


def table_of_missing(missing: list[str]) -> list[str]:
    patterns = reasons()
    by_reason: defaultdict[str, list[str]] = defaultdict(list)
    for name in missing:
        pattern = pattern_for(name, patterns)
        if pattern is not None and pattern not in by_reason[patterns[pattern]]:
            by_reason[patterns[pattern]].append(pattern)
    return [
        f"| {', '.join(f'`{p}`' for p in found)} | {reason} |"
        for reason, found in sorted(by_reason.items(), key=lambda item: item[1])
    ]


def with_table(text: str, name: str, rows: list[str]) -> str:
    """The text of the page with the rows between the marks of that name."""
    begin, end = (mark.format(name) for mark in MARKS)
    made = "\n".join(["| name | reason |", "|---|---|", *rows])
    pattern = re.escape(begin) + ".*?" + re.escape(end)
    found, count = re.subn(pattern, lambda _: f"{begin}{made}\n{end}", text, flags=re.S)
    if count != 1:
        raise DevError(f"{PAGE.name} has no place for the table of {name}")
    return found


def main(args: argparse.Namespace) -> int:
    environment.prepare()
    config = bazel.Config()
    package = bazel.build_package(config)
    ours_environment = python_environment(config, package)
    plain = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    theirs = _listed(args.python, [], "", plain)
    given = "\n".join(theirs)
    ours = _listed(str(environment.PYTHON), ["treadle"], given, {**plain, **ours_environment})
    missing = [name for name in theirs if name not in ours]
    unexplained = [name for name in missing if pattern_for(name, reasons()) is None]
    other = {n: differences(theirs[n], ours[n]) for n in theirs if n in ours}
    for name in unexplained:
        say(f"missing: {name}")
    for name, lines in other.items():
        if lines:
            say(f"differs: {name}: {' '.join(lines)}")
    count = sum(1 for lines in other.values() if lines)
    say(
        f"{len(theirs)} names, {len(missing)} missing ({len(unexplained)} without a reason), "
        f"{count} with other parameters"
    )
    if args.write:
        text = with_table(PAGE.read_text(), "names that are missing", table_of_missing(missing))
        PAGE.write_text(with_table(text, "names only", table_of_mentioned()))
    return 1 if unexplained else 0

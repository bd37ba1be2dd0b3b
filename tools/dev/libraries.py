"""./dev libraries: the libraries that people use with PyTorch, as they are installed, on Treadle.

    ./dev libraries                     # all of tests/libraries; a quarter of an hour
    ./dev libraries timm kornia         # only these programs
    ./dev libraries --quick             # those of quick.txt
    ./dev libraries --reference PYTHON  # compare with the PyTorch of that interpreter
    ./dev libraries --reference PYTHON --record    # and keep its numbers as what is expected
    ./dev libraries --package FOLDER    # on a package that is built already, as it is
    ./dev libraries --page              # write the table of docs/libraries.md

The pinned versions of versions.txt go into an environment of their own, which has no PyTorch. The
programs are in a folder for each field; each runs in a process of its own. A use passes when its
numbers are those that PyTorch gave.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import ast
import json
import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Optional

import bazel
import environment
from tests import python_environment
from ui import ROOT, DevError, say, step

FOLDER = ROOT / "tests" / "libraries"
SUPPORT = FOLDER / "support"
EXPECTED = FOLDER / "expected.json"
PAGE = ROOT / "docs" / "libraries.md"
MARK = "<!-- The table is written by ./dev libraries --page. -->"
SECONDS = 600  # for one program

# The difference between two right results: the order of sums, and what training makes of it.
RELATIVE, ABSOLUTE = 5e-3, 5e-4


class Row(NamedTuple):
    """A use of a library, and how it went: `fault` is empty where its numbers are right."""

    library: str
    version: str
    use: str
    seconds: float
    fault: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", help="only these programs, such as timm")
    parser.add_argument("--quick", action="store_true", help="the libraries of quick.txt")
    parser.add_argument("--reference", metavar="PYTHON", help="an interpreter that has PyTorch")
    parser.add_argument("--record", action="store_true", help="keep the numbers of the reference")
    parser.add_argument("--package", metavar="FOLDER", help="a built package; nothing is built")
    parser.add_argument("--page", action="store_true", help="write the table of docs/libraries.md")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="programs at once")


def main(args: argparse.Namespace) -> int:
    if args.record and not args.reference:
        raise DevError("--record keeps the numbers of --reference PYTHON")
    if args.page:
        write_page()
        return 0
    if not args.package:
        environment.prepare()
    programs = programs_named(args.names, args.quick)
    python = make_environment(args.quick)
    expected = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    if args.reference:
        site = subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout.strip()
        with step(f"{len(programs)} programs on PyTorch"):
            command = [args.reference, "-W", "ignore"]
            found = run_all(command, site, programs, args.jobs, "reference")
        for name, result in found.items():
            expected[name] = {u["use"]: u["numbers"] for u in result["uses"] if "numbers" in u}
            for use in result["uses"]:
                if "error" in use:
                    say(f"the reference fails: {name}: {use['use']}: {use['error']}")
        if args.record:
            write_expected(expected)
    package = args.package or str(bazel.build_package(bazel.Config()))
    command = [str(python), "-W", "ignore", "-m", "treadle.run"]
    with step(f"{len(programs)} programs on Treadle"):
        found = run_all(command, package, programs, args.jobs, "treadle")
    rows = [row for name in programs for row in rows_of(name, found[name], expected)]
    print(as_text(rows))
    return 0 if all(not row.fault for row in rows) else 1


def programs_named(names: list[str], quick: bool) -> list[str]:
    """The programs that are asked for, by the names of their libraries."""
    known = sorted(path.stem.removeprefix("with_") for path in FOLDER.glob("*/with_*.py"))
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise DevError(f"libraries: expected some of {' '.join(known)}; got {unknown[0]}")
    chosen = [name for name in known if not names or name in names]
    if quick:
        versions = versions_in(FOLDER / "quick.txt")
        chosen = [name for name in chosen if as_distribution(distribution_of(name)) in versions]
    return chosen


def as_distribution(name: str) -> str:
    """A distribution's name in the one form that names are compared in."""
    return name.lower().replace("_", "-").replace(".", "-")


def versions_in(path: Path) -> dict[str, str]:
    """The versions that a file pins, with those of the file that it reads first."""
    found: dict[str, str] = {}
    for line in path.read_text().splitlines():
        if line.startswith("-r "):
            found |= versions_in(path.parent / line[3:].strip())
        elif line and not line.startswith("#"):
            name, _, version = line.partition("==")
            found[as_distribution(name)] = version.strip()
    return found


def program_of(name: str) -> Path:
    """The program of a library, in the folder of its field."""
    (program,) = FOLDER.glob(f"*/with_{name}.py")
    return program


def distribution_of(name: str) -> str:
    """The distribution that a program is about: the argument of its last call."""
    call = ast.parse(program_of(name).read_text()).body[-1]
    calls = [node for node in ast.walk(call) if isinstance(node, ast.Call)]
    return ast.literal_eval(calls[0].args[0])


def titles_of(name: str) -> list[str]:
    """The titles of a program's uses, without running it."""
    tree = ast.parse(program_of(name).read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    marks = [mark for function in functions for mark in function.decorator_list]
    return [ast.literal_eval(mark.args[0]) for mark in marks if isinstance(mark, ast.Call)]


def make_environment(quick: bool) -> Path:
    """The Python of the environment that has the libraries, made if need be."""
    if sys.version_info < (3, 11):
        raise DevError("libraries: expected Python 3.11 or newer, for the pinned versions")
    folder = ROOT / "build" / ("libraries-quick" if quick else "libraries")
    file = FOLDER / ("quick.txt" if quick else "versions.txt")
    key = b"".join((FOLDER / name).read_bytes() for name in ("quick.txt", "versions.txt"))
    # Nothing but the list: what the libraries say they need has PyTorch in it.
    environment.virtual_environment(folder, ["--no-deps", "-r", str(file)], key, "The libraries")
    return folder / "bin" / "python"


def run_all(
    command: list[str], path: str, programs: list[str], jobs: int, kind: str
) -> dict[str, Any]:
    """Runs the programs, several at once; what each wrote."""
    with ThreadPoolExecutor(jobs) as pool:
        found = pool.map(lambda name: run_one(command, path, name, kind), programs)
        return dict(zip(programs, found))


def run_one(command: list[str], path: str, name: str, kind: str) -> dict[str, Any]:
    """Runs one program. Where it ends early, each of its uses has the last line of its errors."""
    folder = ROOT / "build" / "libraries-results" / kind
    home = ROOT / "build" / "libraries-results" / "home" / name
    for each in (folder, home):
        each.mkdir(parents=True, exist_ok=True)
    results = folder / f"{name}.json"
    results.unlink(missing_ok=True)
    variables = python_environment(bazel.Config(), Path(path)) | {
        "PYTHONPATH": os.pathsep.join([path, str(SUPPORT)]),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "CUDA_VISIBLE_DEVICES": "",
        # Nothing is fetched, and nothing is left in the user's folders.
        "HF_HUB_OFFLINE": "1",
        "HOME": str(home),
        "HF_HOME": str(home),
        "MPLBACKEND": "Agg",
    }
    log = folder / f"{name}.log"
    with open(log, "w") as file:
        try:
            subprocess.run(
                [*command, str(program_of(name)), str(results)],
                cwd=home,
                timeout=SECONDS,
                env={**os.environ, **variables},
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        except subprocess.TimeoutExpired:
            file.write(f"\nit ran for more than {SECONDS} seconds\n")
    if results.exists():
        return json.loads(results.read_text())
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    fault = lines[-1] if lines else "it wrote nothing"
    uses = [{"use": title, "seconds": 0.0, "error": fault} for title in titles_of(name)]
    return {"distribution": distribution_of(name), "version": "", "uses": uses}


def rows_of(name: str, result: dict[str, Any], expected: dict[str, Any]) -> list[Row]:
    """The rows of a program in the table."""
    pinned = versions_in(FOLDER / "versions.txt")
    distribution = result["distribution"]
    version = result["version"] or pinned[as_distribution(distribution)]
    return [
        Row(
            distribution,
            version,
            use["use"],
            use["seconds"],
            use.get("error") or difference(use["numbers"], expected.get(name, {}).get(use["use"])),
        )
        for use in result["uses"]
    ]


def difference(found: list[Any], expected: Optional[list[Any]]) -> str:
    """The difference between the numbers of a use and those that PyTorch gave; "" for nothing."""
    if expected is None:
        return "nothing is recorded for it"
    if len(found) != len(expected):
        return f"expected {len(expected)} numbers, got {len(found)}"
    for i, (mine, its) in enumerate(zip(found, expected)):
        if not is_close(mine, its):
            return f"number {i}: expected {its}, got {mine}"
    return ""


def is_close(mine: Any, its: Any) -> bool:
    if isinstance(mine, float) and isinstance(its, (int, float)):
        near = math.isclose(mine, its, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
        return near or (math.isnan(mine) and math.isnan(its))
    return mine == its


def write_expected(expected: dict[str, Any]) -> None:
    """Keeps numbers with six digits, a line for each use."""

    def shorten(number: Any) -> Any:
        return float(f"{number:.6g}") if isinstance(number, float) else number

    programs = []
    for name in sorted(expected):
        uses = [
            f"  {json.dumps(use)}: {json.dumps([shorten(n) for n in expected[name][use]])}"
            for use in expected[name]
        ]
        programs.append(f" {json.dumps(name)}: {{\n" + ",\n".join(uses) + "\n }")
    EXPECTED.write_text("{\n" + ",\n".join(programs) + "\n}\n")


def as_text(rows: list[Row]) -> str:
    """The table for a terminal, and one line of totals."""
    lines = []
    for row in rows:
        end = "passed" if not row.fault else f"FAILED: {row.fault[:300]}"
        library = f"{row.library} {row.version}"
        lines.append(f"{library:36} {row.seconds:6.1f} s  {row.use}: {end}")
    passed = [row for row in rows if not row.fault]
    libraries = {row.library for row in rows}
    whole = libraries - {row.library for row in rows if row.fault}
    lines.append(
        f"{len(passed)} of {len(rows)} uses passed; "
        f"{len(whole)} of {len(libraries)} libraries whole"
    )
    return "\n".join(lines)


def write_page() -> None:
    """Writes the table of the page anew."""
    start, mark, _ = PAGE.read_text().partition(MARK)
    if not mark:
        raise DevError(f"{PAGE.name}: expected a line {MARK}")
    PAGE.write_text(f"{start}{mark}\n\n{table()}")


def table() -> str:
    """The table of the page: a line for each library, its version and what is run of it."""
    lines = ["| library | version | what is run |", "|---|---|---|"]
    pinned = versions_in(FOLDER / "versions.txt")
    for name in programs_named([], quick=False):
        library = distribution_of(name)
        version = pinned[as_distribution(library)]
        lines.append(f"| {library} | {version} | {'; '.join(titles_of(name))} |")
    return "\n".join(lines) + "\n"

"""./dev oracle: runs the samples of an installed PyTorch's own databases on both, and compares.

    ./dev oracle --python /path/to/python          # a Python that has PyTorch and its test helpers
    ./dev oracle --only 'nn.functional.*' --dtypes float64,int64 --jobs 2
    ./dev oracle --keep build/oracle               # PyTorch's results are used again the next time

The operators (`op_db`: values, methods, in-place, `out=`, errors, first and second derivatives),
the modules and the optimisers, in each dtype that PyTorch has on the CPU. Differences that are kept
stand in tools/tables/differences.txt with a reason: patterns for operator, part, kind and dtype,
separated by tabs. Fails if there is another. `--write` makes the table of docs/differences.md of
that file.
Differences of strides are listed and counted apart: a sample that has no other is equal. So are
values that no two runs of PyTorch have in common, whose reason begins with "Not compared".
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import queue
import subprocess
import tempfile
import threading
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bazel
import environment
from tests import python_environment
from ui import ROOT, DevError, say

SIDES = Path(__file__).resolve().parent / "oracle_sides"
REASONS = ROOT / "tools" / "tables" / "differences.txt"
PAGE = ROOT / "docs" / "differences.md"
MARKS = "<!-- made by ./dev oracle -->\n", "<!-- end -->\n"
# Longer than any sample takes, on a busy machine, too.
_SECONDS = 120.0
_MOST_RESTARTS = 50
# Begins the reason of values that are drawn or that nobody wrote.
_NOT_COMPARED = "Not compared"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--python",
        default=os.environ.get("TREADLE_REFERENCE", ""),
        help="a Python in which torch is installed; TREADLE_REFERENCE if not given",
    )
    parser.add_argument("--only", default="*", help="a pattern for names of operators")
    parser.add_argument("--dtypes", default="*", help="names of dtypes, separated by commas")
    parser.add_argument("--jobs", type=int, default=1, help="how many pairs of processes")
    parser.add_argument("--samples", type=int, default=0, help="at most so many of each dtype")
    parser.add_argument("--keep", default="", help="a folder that keeps what PyTorch gave")
    parser.add_argument("--list", default="", help="a file for every difference, a line each")
    parser.add_argument("--write", action="store_true", help="write the table of the page")


class Died(Exception):
    """A process ended, or gave no sign of life, before it had answered."""


class Side:
    """One of the two processes: lines of JSON in and out."""

    def __init__(self, command: list[str], variables: dict[str, str]) -> None:
        self._command, self._variables = command, variables
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str] = queue.Queue()

    def _start(self) -> subprocess.Popen[str]:
        self._lines = queue.Queue()
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            stderr=subprocess.DEVNULL,
            env=self._variables,
            cwd=SIDES,
        )
        lines = self._lines

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                lines.put(line)
            lines.put("")

        threading.Thread(target=read, daemon=True).start()
        return process

    def ask(self, request: dict[str, Any]) -> None:
        if self._process is None:
            self._process = self._start()
        assert self._process.stdin is not None
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            pass  # the next answer says that it died

    def answer(self, seconds: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            self.end()
            raise Died(f"gave no sign of life for {seconds:.0f} s") from None
        if not line:
            assert self._process is not None
            status = self._process.wait()
            self._process = None
            raise Died(f"ended with the status {status}")
        return json.loads(line)

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@dataclass
class Found:
    """The findings for one name in one dtype."""

    samples: int = 0
    # (part, kind, text, index of the sample)
    differences: list[tuple[str, str, str, int]] = field(default_factory=list)
    failed: str = ""


class Pair:
    """A reference and a side of ours that take work one by one."""

    def __init__(self, args: argparse.Namespace, ours: dict[str, str], folder: Path) -> None:
        plain = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        plain["OMP_NUM_THREADS"] = "1"
        self._most, self._folder = args.samples, folder
        self._theirs = Side([args.python, "reference.py"], plain)
        self._ours = Side([str(environment.PYTHON), "ours.py"], {**plain, **ours})

    def names(self) -> list[Any]:
        self._theirs.ask({"database": "list"})
        answer: Any = self._theirs.answer(600)
        return answer["done"]

    def _reference(self, database: str, name: str, dtype: str) -> Path | str:
        """The file with PyTorch's results, or why there is none."""
        limit = f".{self._most}" if self._most else ""
        path = self._folder / f"{database}.{name.replace('/', '_')}.{dtype}{limit}.gz"
        if path.exists():
            return path
        request = {"database": database, "name": name, "dtype": dtype}
        self._theirs.ask({**request, "file": str(path), "most": self._most})
        try:
            done = self._theirs.answer(1800)["done"]
        except Died as error:
            return f"PyTorch {error}"
        return done["failed"] if "failed" in done else path

    def compare(self, database: str, name: str, dtype: str) -> Found:
        found = Found()
        path = self._reference(database, name, dtype)
        if isinstance(path, str):
            found.failed = path
            return found
        seen: set[tuple[str, int]] = set()
        at: tuple[int, int, str] = (0, 0, "")
        for _ in range(_MOST_RESTARTS):
            self._ours.ask({"file": str(path), "skip": at[0]})
            try:
                while True:
                    answer = self._ours.answer(_SECONDS)
                    if "done" in answer:
                        found.samples = len(seen)
                        return found
                    if "begin" in answer:
                        at = tuple(answer["begin"])
                        continue
                    seen.add(("error" if at[2] == "error" else "", at[1]))
                    other = answer["end"]
                    found.differences += [(at[2], kind, text, at[1]) for kind, text in other]
            except Died as error:
                seen.add(("error" if at[2] == "error" else "", at[1]))
                found.differences.append((at[2], "crash", f"Treadle {error}", at[1]))
        found.samples, found.failed = len(seen), f"{_MOST_RESTARTS} crashes"
        return found

    def end(self) -> None:
        self._theirs.end()
        self._ours.end()


def reasons() -> list[tuple[list[str], str]]:
    """Patterns for operator, part, kind and dtype, and the reason."""
    lines = [line for line in REASONS.read_text().splitlines() if line and line[0] != "#"]
    rows = [line.split("\t") for line in lines]
    return [(row[:4], row[4]) for row in rows]


def _reason(rows: list[tuple[list[str], str]], *place: str) -> str:
    """Why a difference is kept; nothing where it is not."""
    fits = (r for patterns, r in rows if all(map(fnmatch.fnmatchcase, place, patterns)))
    return next(fits, "")


def _first_words(text: str) -> str:
    return text if len(text) < 150 else text[:150] + "..."


class Summary:
    """Counts of all, and the differences by what they are."""

    def __init__(self, listing: Path | None) -> None:
        self.counts: Counter[str] = Counter()
        self.rows: dict[str, Counter[str]] = defaultdict(Counter)
        self.groups: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._kept = reasons()
        self._listing = listing.open("w") if listing else None

    def add(self, name: str, dtype: str, found: Found) -> None:
        row = self.rows[name]
        row["samples"] += found.samples
        worst: dict[tuple[bool, int], int] = {}
        for part, kind, text, index in found.differences:
            reason = _reason(self._kept, name, part, kind, dtype)
            apart = kind == "strides" or reason.startswith(_NOT_COMPARED)
            row["apart" if apart and kind != "strides" else kind] += 1
            sample = (part == "error", index)
            worst[sample] = max(worst.get(sample, 0), 0 if apart else 1 if reason else 2)
            if not reason:
                self.groups[(kind, part)].append(f"{name} {dtype} {index}: {_first_words(text)}")
            if self._listing:
                line = [name, dtype, str(index), part, kind, "kept" if reason else "", text]
                print("\t".join(line).replace("\n", " "), file=self._listing, flush=True)
        row["kept"] += sum(1 for level in worst.values() if level == 1)
        row["other"] += sum(1 for level in worst.values() if level == 2)
        if found.failed:
            row["failed"] += 1
            say(f"{name} {dtype}: {found.failed}")

    def print(self) -> int:
        total: Counter[str] = Counter()
        columns = ["samples", "other", "kept", "failed"]
        for name, row in sorted(self.rows.items()):
            total.update(row)
            if row["other"] or row["failed"]:
                kinds = [f"{k} {n}" for k, n in sorted(row.items()) if n and k not in columns]
                count = f"{row['other']} of {row['samples']}"
                say(f"{name}: {count} samples differ ({', '.join(kinds)})")
        for (kind, part), lines in sorted(self.groups.items(), key=lambda item: -len(item[1])):
            say(f"{kind}, {part}: {len(lines)}")
            by_name = {line.split(" ", 1)[0]: line for line in reversed(lines)}
            for line in list(by_name.values())[:12]:
                say(f"    {line}")
        equal = total["samples"] - total["other"] - total["kept"]
        share = 100.0 * equal / max(1, total["samples"])
        say(
            f"{total['samples']} samples of {len(self.rows)} names: {equal} equal ({share:.2f}%), "
            f"{total['kept']} differ for a reason, {total['other']} without one; "
            f"{total['crash']} crashes; {total['strides']} results with other strides, "
            f"{total['apart']} whose values are not compared"
        )
        return 1 if total["other"] or total["crash"] else 0


def table() -> list[str]:
    """The rows of the page, one for each reason."""
    grouped: dict[str, list[str]] = defaultdict(list)
    for (name, part, kind, dtype), reason in reasons():
        which = ", ".join(word for word in (part, kind, dtype) if word != "*")
        grouped[reason].append(f"`{name}`" + (f" ({which})" if which else ""))
    return [f"| {', '.join(names)} | {reason} |" for reason, names in grouped.items()]


def with_table(text: str) -> str:
    """The text of the page with the table that belongs to the file of reasons."""
    before, _, rest = text.partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not end:
        raise DevError(f"{PAGE.name} has no place for the table")
    lines = ["| operator and difference | reason |", "|---|---|", *table()]
    return before + MARKS[0] + "\n".join(lines) + "\n" + MARKS[1] + after


def _wanted(names: list[Any], args: argparse.Namespace) -> list[tuple[str, str, str]]:
    dtypes = args.dtypes.split(",")
    return [
        (database, name, dtype)
        for database, name, of_it in names
        if fnmatch.fnmatchcase(name, args.only)
        for dtype in of_it
        if any(fnmatch.fnmatchcase(dtype, d) for d in dtypes)
    ]


def _run(args: argparse.Namespace, ours: dict[str, str], folder: Path, summary: Summary) -> None:
    pairs = [Pair(args, ours, folder) for _ in range(args.jobs)]
    work: queue.Queue[tuple[str, str, str]] = queue.Queue()
    wanted = _wanted(pairs[0].names(), args)
    for one in wanted:
        work.put(one)
    lock = threading.Lock()

    def take(pair: Pair) -> None:
        while True:
            try:
                database, name, dtype = work.get_nowait()
            except queue.Empty:
                return
            found = pair.compare(database, name, dtype)
            with lock:
                summary.add(name if database == "op" else f"{database}.{name}", dtype, found)

    threads = [threading.Thread(target=take, args=(pair,)) for pair in pairs]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        for pair in pairs:
            pair.end()


def main(args: argparse.Namespace) -> int:
    if args.write:
        PAGE.write_text(with_table(PAGE.read_text()))
        return 0
    if not args.python:
        raise DevError("name a Python that has PyTorch: --python PATH, or TREADLE_REFERENCE")
    environment.prepare()
    config = bazel.Config()
    ours = python_environment(config, bazel.build_package(config))
    summary = Summary(Path(args.list) if args.list else None)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(args.keep or temporary).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        _run(args, ours, folder, summary)
    return summary.print()

"""clang-tidy over core/: what it finds, a line for each. Its checks are chosen in .clang-tidy.

A file is checked again when it, a header of core or the choice of checks has changed.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ui import ROOT, DevError

FOLDER = ROOT / "core"
# The files that had nothing to say, by a digest of what they were made of.
CLEAN = ROOT / "build" / "tidy"
FLAGS = ("-std=c++20", "-xc++", f"-I{ROOT}", "-fopenmp", "-Wno-unknown-warning-option")
FOUND = re.compile(r"^(\S+:\d+:\d+): (?:warning|error): (.*)$", re.MULTILINE)


def problems() -> list[str]:
    """Checks the files of core, as many at once as there are cores."""
    files = [path for path in sorted(FOLDER.rglob("*.cc")) if not path.name.endswith("_test.cc")]
    common = digest(sorted(FOLDER.rglob("*.h")) + [ROOT / ".clang-tidy"])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda path: list(check(path, common)), files)
        # A header's problem is found from each file that includes it.
        return list(dict.fromkeys(problem for of_file in found for problem in of_file))


def check(path: Path, common: str) -> Iterator[str]:
    """The problems that clang-tidy reports for one file."""
    known = CLEAN / digest([path], common)
    if known.exists():
        return
    command = ["clang-tidy", "--quiet", str(path), "--", *FLAGS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    found = [f"{place}: {text}" for place, text in FOUND.findall(done.stdout)]
    if done.returncode and not found:
        raise DevError(f"clang-tidy failed:\n{done.stderr}")
    if not found:
        CLEAN.mkdir(parents=True, exist_ok=True)
        known.touch()
    for problem in found:
        yield problem.replace(f"{ROOT}/", "")


def digest(paths: list[Path], start: str = "") -> str:
    """Stands for the contents of files."""
    made = hashlib.sha256(start.encode())
    for path in paths:
        made.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return made.hexdigest()

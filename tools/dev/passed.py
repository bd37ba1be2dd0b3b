"""The runs that passed and need not run again: as Bazel keeps the results of C++ tests, this keeps
those of whole runs of the Python tests, for as long as nothing that they look at changes.

The inputs of a run: the files of the tree, the package as built, the interpreter with what is
installed for it, the options, and the environment variables that Treadle reads.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

import environment
from ui import ROOT

RECORD = ROOT / "build" / "test" / "passed.json"
KEPT = 4  # runs: those of other options do not put each other out


def fingerprint(package: Path, options: object) -> Optional[str]:
    """Stands for all that a run looks at; None where git does not say what the tree's files are."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    if listing.returncode:
        return None
    ours = {name: value for name, value in os.environ.items() if name.startswith("TREADLE_")}
    stamp = environment.VENV / "treadle.stamp"
    digest = hashlib.sha256(repr((options, sorted(ours.items()), stamp.read_text())).encode())
    tree = [ROOT / os.fsdecode(name) for name in listing.stdout.split(b"\0") if name]
    for path in sorted({*tree, *_files(package)}):
        digest.update(f"\n{path.relative_to(ROOT)} ".encode())
        if path.is_file():  # one that was deleted may still be tracked
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder, followlinks=True):
        if os.path.basename(place) != "__pycache__":
            yield from (Path(place, name) for name in names)


def known(key: Optional[str]) -> Optional[dict[str, int]]:
    """The counts of the run that passed with this fingerprint, if it was one of the last."""
    return _records().get(key) if key else None


def keep(key: Optional[str], counts: dict[str, int]) -> None:
    """Notes that a run with this fingerprint passed."""
    if key:
        others = {other: known for other, known in _records().items() if other != key}
        kept = [*others.items(), (key, counts)][-KEPT:]
        RECORD.write_text(json.dumps(dict(kept)))


def _records() -> dict[str, dict[str, int]]:
    """Counts by fingerprints, the oldest first."""
    try:
        records = json.loads(RECORD.read_text())
    except (OSError, ValueError):
        return {}
    return records if isinstance(records, dict) else {}

"""Writes stamp.h: the version, and a digest of every header that the package ships.

A build step (see python_bindings/wheel.bzl). C++ code compiled against the package fits the library
only if it saw the same headers; the two names say which those were.

    make_stamp.py VERSION OUTPUT LIST

LIST has on each line a header's place in the package, a tab, its path.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

TEXT = """\
// Which Treadle a library is compiled for: see treadle_library_stamp.
#pragma once

#define TREADLE_VERSION "{version}"
#define TREADLE_ABI "{abi}"
"""


def digest(headers: list[tuple[str, str]]) -> str:
    """A short name for the headers' contents; comments count, which does no harm."""
    total = hashlib.sha256()
    for place, path in sorted(headers):
        total.update(f"{place}\0".encode() + hashlib.sha256(Path(path).read_bytes()).digest())
    return total.hexdigest()[:12]


def main(version: str, output: str, listing: str) -> None:
    lines = Path(listing).read_text().splitlines()
    headers = [(place, path) for place, path in (line.split("\t") for line in lines)]
    Path(output).write_text(TEXT.format(version=version, abi=digest(headers)))


if __name__ == "__main__":
    main(*sys.argv[1:])

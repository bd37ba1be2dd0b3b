"""The side of Treadle: reads what the other wrote, does the same and says what is other.

Reads {"file": ..., "skip": n} a line. Answers with lines: {"begin": [...]} before each part, so
that whoever reads knows where it was if it dies; {"end": [[kind, text], ...]} after it, with what
is other; {"done": null} after the file. `skip` says how many parts to leave out.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import gzip
import json
import pickle
import sys
import warnings
from typing import Any, Iterator

import treadle.run

treadle.run.install()

import torch  # noqa: E402
from compare import differences, without_zeros  # noqa: E402
from parts import parts_of  # noqa: E402
from plain import Failure, encode, failure  # noqa: E402


def _cases(path: str) -> Iterator[Any]:
    with gzip.open(path, "rb") as file:
        while True:
            try:
                yield pickle.load(file)
            except EOFError:
                return


def _judged(case: Any, name: str, wanted: Any, part: Any) -> list[Any] | None:
    """The differences of a part; None where it does not count."""
    if isinstance(wanted, Failure) and case.kind != "error":
        return None  # what PyTorch refuses of its own samples is not asked of anybody
    try:
        found = encode(torch, part())
    except Exception as error:  # noqa: BLE001  that it fails is the result
        found = failure(error)
    if name == "second order":
        wanted, found = without_zeros(wanted), without_zeros(found)
    seen = {}
    for kind, text in differences(wanted, found, case.dtype):
        seen.setdefault(kind, text)
    return [[kind, text] for kind, text in seen.items()]


def run(path: str, skip: int, say: Any) -> None:
    number = 0
    for case, results in _cases(path):
        for name, part in parts_of(torch, case):
            number += 1
            if name not in results or number <= skip:
                continue
            say({"begin": [number, case.index, "error" if case.kind == "error" else name]})
            found = _judged(case, name, results[name], part)
            if found is not None:
                say({"end": found})


def main() -> None:
    warnings.simplefilter("ignore")
    output, sys.stdout = sys.stdout, sys.stderr

    def say(line: Any) -> None:
        print(json.dumps(line), file=output, flush=True)

    for line in sys.stdin:
        request = json.loads(line)
        run(request["file"], request["skip"], say)
        say({"done": None})


if __name__ == "__main__":
    main()

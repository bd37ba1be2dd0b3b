"""The process that makes calls, one after the other, as it is told.

    python -m fuzz.worker SOCKET JOURNAL [MODULE ...]

SOCKET is the number of the descriptor through which orders come and answers go.

JOURNAL is a file that always says which call is being made, and what of it: the process that
started this one reads there which call was the last. MODULEs are imported first.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import gc
import importlib
import mmap
import struct
import sys
import traceback
from functools import partial
from multiprocessing.connection import Connection
from typing import Callable, Optional

from treadle_testing import limits

from .draw import draw
from .judge import PHASES, Finding, judge
from .law import OF_A_STRANGER
from .recipe import Recipe

JOURNAL = struct.Struct("<qq")


class Journal:
    """The number of the call that is being made, and its phase."""

    def __init__(self, path: str):
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), JOURNAL.size)
        self.number = -1

    def phase(self, phase: int) -> None:
        JOURNAL.pack_into(self.memory, 0, self.number, phase)


def checked(recipe: Callable[[], Recipe], journal: Journal) -> Optional[Finding]:
    """The fault of a call; a failure of the checks themselves is a finding too, but for their
    running out of memory.
    """
    try:
        return _checked(recipe, journal)
    except MemoryError:  # what holds the memory may be garbage
        gc.collect()
        return None


def _checked(recipe: Callable[[], Recipe], journal: Journal) -> Optional[Finding]:
    try:
        journal.phase(0)
        return judge(recipe(), journal.phase)
    except (MemoryError, RecursionError):
        gc.collect()
        return None
    except Exception as error:
        if str(error).startswith(OF_A_STRANGER):
            return None
        _, phase = JOURNAL.unpack_from(journal.memory)
        where = traceback.format_exc().splitlines()[-3:]
        if "expected to allocate" in str(error):
            return None
        return Finding(f"unexpected {type(error).__name__}", f"{PHASES[phase]}: {where}")


def main() -> None:
    parent = Connection(int(sys.argv[1]))
    for module in sys.argv[3:]:
        importlib.import_module(module)
    journal = Journal(sys.argv[2])
    limits.apply()
    while True:
        try:
            order = parent.recv()
        except EOFError:
            return
        if order[0] == "judge":
            journal.number += 1
            parent.send(("judged", checked(lambda: order[1], journal)))
            continue
        _, seed, first, count, only = order
        for number in range(first, first + count):
            journal.number = number
            found = checked(partial(draw, seed, number, only), journal)
            if found is not None:
                parent.send(("found", number, found))
        journal.number = -1
        parent.send(("done",))


if __name__ == "__main__":
    main()

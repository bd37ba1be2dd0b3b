"""Calls operators while another process writes the memory of their arguments.

    python shared_arrays.py JOURNAL PART PARTS FIRST

calls every PARTS-th operator from PART on, from call FIRST on, each with one sample per dtype, over
and over. The arrays of the sample lie in memory that a second process shares, which writes there by
turns what the sample has and numbers that are no place in any tensor. Such a call may return
anything, or raise; it may not crash or hang. JOURNAL always holds the number and the name of the
call, for the process that started this one.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import mmap
import os
import signal
import sys
import time
from typing import Iterator

import numpy as np

import treadle
from treadle_testing import limits
from treadle_testing.cases import dtypes_of, has_samples, samples_of
from treadle_testing.catalogue import Operator, operators
from treadle_testing.sample import map_arrays

SECONDS = float(os.environ.get("SECONDS_A_CALL", "0.03"))
DTYPES = ("float32", "int64", "bool", "float16")
REGION = 1 << 20
# The values that are written for a while instead of a number.
BAD = {"i": 1 << 44, "u": 1 << 44, "f": np.nan, "c": np.nan, "b": True}


class Arena:
    """Memory that a second process writes: `live`, from `good` and `bad` by turns."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, 4 * REGION)
        self.head = np.frombuffer(self.memory, np.int64, 1)
        self.live, self.good, self.bad = (
            np.frombuffer(self.memory, np.uint8, REGION, REGION * (1 + i)) for i in range(3)
        )
        self.writer = os.fork()
        if self.writer == 0:
            self._write()

    def _write(self) -> None:
        parent = os.getppid()
        while os.getppid() == parent:
            size = int(self.head[0])
            for _ in range(200):
                self.live[:size] = self.bad[:size]
                self.live[:size] = self.good[:size]
        os._exit(0)

    def clear(self) -> None:
        self.head[0] = 0
        self.used = 0

    def tensor(self, array: np.ndarray) -> treadle.Tensor:
        """A tensor of the array, in memory that is written from now on."""
        array = np.ascontiguousarray(array).reshape(array.shape).view(np.ndarray)
        size = array.nbytes
        if self.used + size > REGION or size == 0:
            return treadle.tensor(array)
        region = slice(self.used, self.used + size)
        bad = np.empty_like(array)
        kind, item = array.dtype.kind, array.dtype.itemsize
        bad[...] = BAD[kind] if kind not in "iu" or item == 8 else np.iinfo(array.dtype).max
        self.good[region] = self.live[region] = np.frombuffer(array.tobytes(), np.uint8)
        self.bad[region] = np.frombuffer(bad.tobytes(), np.uint8)
        self.used += (size + 63) // 64 * 64
        return treadle.from_numpy(self.live[region].view(array.dtype).reshape(array.shape))


def calls(part: int, parts: int) -> Iterator[tuple[Operator, str]]:
    """The operators that take arrays, with each dtype that a sample is made for."""
    for op in list(operators())[part::parts]:
        if not has_samples(op):
            continue
        for dtype in DTYPES:
            if dtype in dtypes_of(op):
                yield op, dtype


def call_over_and_over(arena: Arena, op: Operator, dtype: str) -> None:
    sample = next(iter(samples_of(op, dtype)), None)
    if sample is None:
        return
    arena.clear()
    args = map_arrays(sample.args, arena.tensor)
    kwargs = {name: map_arrays(value, arena.tensor) for name, value in sample.kwargs.items()}
    arena.head[0] = arena.used
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            op.function(*args, **kwargs)
        except Exception:  # any refusal will do; a crash is what this is about
            pass
    arena.clear()


def main() -> None:
    journal, (part, parts, first) = sys.argv[1], map(int, sys.argv[2:5])
    arena = Arena()
    try:
        limits.apply()
        with open(journal, "r+b") as file:
            for number, (op, dtype) in enumerate(calls(part, parts)):
                if number < first:
                    continue
                file.seek(0)
                file.write(f"{number} {op.id} {dtype}\n".ljust(200).encode())
                file.flush()
                call_over_and_over(arena, op, dtype)
    finally:
        os.kill(arena.writer, signal.SIGKILL)
        os.waitpid(arena.writer, 0)


if __name__ == "__main__":
    main()

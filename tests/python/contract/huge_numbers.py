"""Calls operators with numbers that describe more work than anybody could do.

    python huge_numbers.py JOURNAL PART PARTS FIRST

makes the calls of every PARTS-th operator from PART on, from call FIRST on: those of its samples,
with one integer, or all of a list, replaced by a huge one, in a process of little memory. Each call
answers or refuses at once: one that works twice for longer than a second, and a second for each GiB
of its result, is printed. JOURNAL always holds the number of the call and what it is, for the
process that started this one.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
import sys
import time
from typing import Any, Iterator

import numpy as np

import treadle
from treadle_testing import limits
from treadle_testing.cases import dtypes_of, has_samples, samples_of
from treadle_testing.catalogue import Operator, operators
from treadle_testing.sample import map_arrays, to_tensor

HUGE = (2**31, 2**40, 2**62, 498444555)
MOST_SECONDS = 1.0
DTYPES = ("float32", "int64", "bool", "complex64")
# The most samples of one operator: those whose integers are alike are left out.
SAMPLES = 12


def variants(value: Any) -> Iterator[Any]:
    """`value` with one of the integers in it replaced, in every way; and with all of a list."""
    if type(value) is int:
        yield from HUGE
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            for other in variants(item):
                yield type(value)([*value[:i], other, *value[i + 1 :]])
        if len(value) > 1 and all(type(item) is int for item in value):
            for number in HUGE:
                yield type(value)([number] * len(value))


def shape_of(value: Any) -> Any:
    """The common part of samples that are called only once."""
    if isinstance(value, np.ndarray):
        return value.shape
    if isinstance(value, (list, tuple)):
        return tuple(shape_of(v) for v in value)
    return type(value).__name__


Call = tuple[str, Operator, tuple[Any, ...], dict[str, Any], str]


def calls(part: int, parts: int) -> Iterator[Call]:
    for op in list(operators())[part::parts]:
        if not has_samples(op):
            continue
        dtype = next((d for d in DTYPES if d in dtypes_of(op)), None)
        seen: set[Any] = set()
        for sample in itertools.islice(samples_of(op, dtype), SAMPLES) if dtype else ():
            alike = (shape_of(sample.args), tuple(sample.kwargs))
            if alike in seen:
                continue
            seen.add(alike)
            for i, value in enumerate(sample.args):
                for other in variants(value):
                    args = (*sample.args[:i], other, *sample.args[i + 1 :])
                    yield f"{op.id} argument {i} = {other}", op, args, sample.kwargs, dtype
            for name, value in sample.kwargs.items():
                for other in variants(value):
                    kwargs = {**sample.kwargs, name: other}
                    yield f"{op.id} {name} = {other}", op, sample.args, kwargs, dtype


def make(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], dtype: str) -> int:
    """Makes a call; how many bytes its result has."""

    def tensor(array: np.ndarray) -> Any:
        return to_tensor(array, dtype)

    args = tuple(map_arrays(a, tensor) for a in args)
    kwargs = {name: map_arrays(value, tensor) for name, value in kwargs.items()}
    try:
        result = op.function(*args, **kwargs)
    except Exception:  # any refusal will do
        return 0
    return result.nbytes if isinstance(result, treadle.Tensor) else 0


def slow(*call: Any) -> float:
    """The seconds of the processor that a call took if they are too many, else 0."""
    begun = time.process_time()
    allowed = MOST_SECONDS * (1 + make(*call) / 2**30)
    seconds = time.process_time() - begun
    return seconds if seconds > allowed else 0.0


def main() -> None:
    journal, (part, parts, first) = sys.argv[1], map(int, sys.argv[2:5])
    limits.apply()
    with open(journal, "r+b", buffering=0) as file:
        for number, (label, *call) in enumerate(calls(part, parts)):
            if number < first:
                continue
            file.seek(0)
            file.write(f"{number} {label}"[:199].ljust(200).encode())
            # Twice, since a machine that is short of memory may make any one call slow.
            if slow(*call) and (seconds := slow(*call)):
                print(f"{label}: {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()

"""How fast a kernel is, beside the operator and beside the memory of this machine."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import time
from math import prod
from typing import Any, Callable, Optional, Sequence

import treadle

from . import entry
from .judge import PATTERNS, Built, Judge, Skipped
from .line import Line
from .plan import enlarged

_ELEMENTS, _SECONDS = 1 << 20, 0.4


def _shortest(function: Callable[[], Any]) -> float:
    function()
    end, best = time.monotonic() + _SECONDS, float("inf")
    while True:
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
        if time.monotonic() > end:
            return best


def figures(judge: Judge, lines: Sequence[Line]) -> Optional[dict[str, Any]]:
    """Seconds of a call on many elements, of the kernel and of the operator; the bytes of the
    arguments and results by second, and the machine's measured peak of that. None where there is no
    line to measure."""
    for line in lines:
        first = line.tensors()[0]
        if not first.shape or not prod(first.shape):
            continue
        large = enlarged(line, _ELEMENTS)
        if sum(prod(t.shape) for t in large.tensors()) > 8 * _ELEMENTS:
            continue
        built = Built(large, True, PATTERNS[0])
        try:
            wanted = judge.expected(built)
            kernel = _shortest(lambda: judge.call(built, wanted))
            moved = sum(b.array.nbytes for _, b in built.buffers[: len(large.tensors())])
            moved += sum(w.exact.size * getattr(treadle, w.dtype).itemsize for w in wanted)
            own = None
            if entry.exists(judge.op) and not judge.kernel.is_operator:
                own = _shortest(lambda: judge.op.function(*built.args, **built.kwargs))
        except (Skipped, MemoryError):
            continue
        finally:
            built.close()
        from treadle.profiler import roofline

        return {
            "line": str(large),
            "seconds": kernel,
            "operator_seconds": own,
            "bytes_per_second": moved / kernel,
            "peak_bytes_per_second": roofline().bytes_per_second,
        }
    return None

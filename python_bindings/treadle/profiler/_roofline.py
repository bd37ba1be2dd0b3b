"""The machine's peak: the rates that no operator exceeds on data outside the caches.

The name is that of the roofline model (Williams, Waterman and Patterson, 2009): a program is
limited either by the memory's bandwidth or by the processor's arithmetic.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any, Callable, Dict, NamedTuple

from treadle import _C
from treadle._atomic_file import replacing
from treadle.autograd.grad_mode import no_grad
from treadle.utils._cache_folder import cache_folder
from treadle.version import __version__

_ELEMENTS = 1 << 25  # of each operand: 128 MiB, more than most caches hold
_SIDE = 1024  # of the matrices
_REPEATS = 5


class Roofline(NamedTuple):
    """The peak of a number of threads.

    threads: as treadle.get_num_threads() says. bytes_per_second: read and written, of a memory that
    no cache holds. flops_per_second: float32, a multiplication and an addition count as two.
    """

    threads: int
    bytes_per_second: float
    flops_per_second: float


def roofline(*, measure: bool = False) -> Roofline:
    """The peak of this machine with the present number of threads.

    It is measured once, in about a second, and kept in `$XDG_CACHE_HOME/treadle/roofline.json` (by
    default `~/.cache/treadle`) for this processor and this version. measure=True measures it again,
    for instance when other programs were running the first time. Memory: 400 MB.
    """
    threads = _C.get_num_threads()
    kept = _read()
    key = f"{_processor()}, Treadle {__version__}, threads: {threads}"
    rates = None if measure else kept.get(key)
    if not (
        isinstance(rates, list)
        and len(rates) == 2
        and all(isinstance(rate, float) and rate > 0 for rate in rates)
    ):
        rates = _measured()
        _write({**kept, key: rates})
    return Roofline(threads, *rates)


def _measured() -> list[float]:
    with no_grad():
        a, b, c = (_C.ones(_ELEMENTS) for _ in range(3))
        whole = a.nbytes
        memory = max(
            2 * whole / _shortest(lambda: c.copy_(a)),
            3 * whole / _shortest(lambda: _C.add(a, b, out=c)),
            whole / _shortest(a.sum),
        )
        x, y, z = (_C.ones(_SIDE, _SIDE) for _ in range(3))
        return [memory, 2.0 * _SIDE**3 / _shortest(lambda: _C.mm(x, y, out=z))]


def _shortest(call: Callable[[], Any]) -> float:
    """The seconds of the fastest of some calls."""
    times = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return os.uname().machine


def _file() -> Path:
    return Path(cache_folder(), "treadle", "roofline.json")


def _read() -> Dict[str, Any]:
    """The kept peaks; none if the file is not there, or is not as it was written."""
    with contextlib.suppress(OSError, ValueError):
        kept = json.loads(_file().read_text())
        if isinstance(kept, dict):
            return kept
    return {}


def _write(kept: Dict[str, Any]) -> None:
    """Keeps it where that is possible: the next call measures again where it is not."""
    with contextlib.suppress(OSError):
        _file().parent.mkdir(parents=True, exist_ok=True)
        with replacing(str(_file())) as file:
            file.write(json.dumps(kept, indent=1).encode())

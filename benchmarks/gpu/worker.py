"""Measures the cases of cases.py and models.py in one library, as it is told line by line.

    python benchmarks/gpu/worker.py                       # PyTorch
    python -m treadle.run benchmarks/gpu/worker.py        # Treadle

An order is a line of JSON, {"case": NAME, "device": "cuda", "seconds": 0.3, "quick": false}, and so
is its answer: {"seconds": of a call, "memory": the most bytes that tensors took, "reserved": with
those kept}, or {"error": what went wrong}. A case stays until another is named, so that the two
libraries can take turns in it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path
from typing import Any, Optional

sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch  # noqa: E402
from cases import KERNELS, Call  # noqa: E402
from models import MODELS  # noqa: E402

CASES = {**KERNELS, **MODELS}
WARM_CALLS = 3


class Measured:
    """A case, ready to be called."""

    def __init__(self, name: str, device: str, quick: bool) -> None:
        self.name = name
        self.case = CASES[name]
        self.place = torch.get_device_module(device)
        self.call: Call = self.case.make(torch, device, quick)
        for _ in range(WARM_CALLS):
            self.call()
        self.place.synchronize()
        if hasattr(self.place, "reset_peak_memory_stats"):
            self.place.reset_peak_memory_stats()

    def seconds(self, least: float) -> float:
        """The time of one call, over at least so many seconds."""
        if self.case.unit == "calls queued":
            return self._queued(least)
        calls = 1
        while True:
            start = time.perf_counter()
            for _ in range(calls):
                self.call()
            self.place.synchronize()
            taken = time.perf_counter() - start
            if taken >= least:
                return taken / calls
            calls = max(calls + 1, int(1.2 * calls * least / max(taken, 1e-6)))

    def _queued(self, least: float) -> float:
        """Until the host goes on; what it queued is waited for outside of the time."""
        best, end = float("inf"), time.perf_counter() + least
        while time.perf_counter() < end:
            start = time.perf_counter()
            self.call()
            best = min(best, time.perf_counter() - start)
            self.place.synchronize()
        return best

    def memory(self) -> dict[str, int]:
        """The most bytes since the first calls; none where the device does not count."""
        if not hasattr(self.place, "max_memory_allocated"):
            return {}
        return {
            "memory": self.place.max_memory_allocated(),
            "reserved": self.place.max_memory_reserved(),
        }


def main() -> None:
    current: Optional[Measured] = None
    print(json.dumps({"library": torch.__name__, "version": torch.__version__}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        answer: dict[str, Any]
        try:
            if current is None or current.name != order["case"]:
                current = None
                gc.collect()
                if hasattr(torch.get_device_module(order["device"]), "empty_cache"):
                    torch.get_device_module(order["device"]).empty_cache()
                current = Measured(order["case"], order["device"], order["quick"])
            answer = {"seconds": current.seconds(order["seconds"]), **current.memory()}
        except (RuntimeError, NotImplementedError, TypeError, AttributeError) as error:
            current = None
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

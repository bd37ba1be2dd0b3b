"""How busy training a ResNet-50 keeps a device, by the profiler's timeline, and that timeline.

    python -m treadle.run tools/gpu/programs/busy.py --device cuda --trace resnet50.json.gz

The figure is the part of the time, from the first kernel of some steps to the end of the last, in
which a kernel or a copy runs. Nothing is waited for in between.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks" / "gpu"))
from models import MODELS  # noqa: E402

WARM, STEPS = 5, 5


def covered(times: list[tuple[float, float]]) -> float:
    """How much of a line intervals cover."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(times):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--trace", default="", help="where the timeline goes")
    parser.add_argument("--quick", action="store_true", help="a small batch")
    options = parser.parse_args()
    step = MODELS["ResNet-50, float32"].make(torch, options.device, options.quick)
    place = torch.get_device_module(options.device)
    for _ in range(1 if options.quick else WARM):
        step()
    place.synchronize()
    with torch.profiler.profile() as prof:
        for _ in range(1 if options.quick else STEPS):
            step()
        place.synchronize()
    if options.trace:
        prof.export_chrome_trace(options.trace)
    kind = "CPU" if options.device == "cpu" else "CUDA"
    events = [event for event in prof.events() if event.device_type.name == kind]
    times = [(event.time_range.start, event.time_range.end) for event in events]
    if not times:
        print("nothing that the device did was recorded")
        return 1
    whole = max(end for _, end in times) - min(start for start, _ in times)
    busy = covered(times) / whole
    print(f"{len(events)} events in {whole / 1e3:.1f} ms: busy {100 * busy:.1f} % of the time")
    return 0


if __name__ == "__main__":
    sys.exit(main())

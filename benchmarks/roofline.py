"""The peak of this machine: bytes of memory and floating-point operations per second.

    ./dev bench roofline               # one thread, two, four, ... and all
    ./dev bench roofline --threads 3

The rates are measured and kept (treadle.profiler.roofline); reports of the profiler and the table
of `./dev bench throughput --section operators` compare with them. Run it when nothing else runs.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse

import treadle
from treadle.profiler import roofline


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, nargs="+", help="numbers of threads")
    options = parser.parse_args()
    most = treadle.get_num_threads()
    doublings = [1 << n for n in range(most.bit_length()) if 1 << n < most]
    print(f"{'threads':>8s}{'GB/s':>9s}{'GFLOP/s, float32':>19s}")
    for threads in options.threads or [*doublings, most]:
        treadle.set_num_threads(threads)
        peak = roofline(measure=True)
        print(
            f"{threads:8d}{peak.bytes_per_second / 1e9:9.1f}{peak.flops_per_second / 1e9:19.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()

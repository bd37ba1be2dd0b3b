"""The parts of the library, as text: `print(treadle.__config__.show())`."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import platform

from treadle import _C, _version


def show() -> str:
    """The version, the libraries and the devices of this build, a line each."""
    from treadle import accelerator

    found = accelerator.current_accelerator()
    lines = [
        "Treadle built with:",
        f"  - Treadle {_version.__version__}, which follows PyTorch {_version.FOLLOWED}",
        f"  - Python {platform.python_version()} on {platform.machine()}",
        "  - OpenBLAS for linear algebra",
        "  - oneDNN for convolutions",
        "  - OpenMP for threads",
        f"  - Devices: cpu{'' if found is None else ', ' + found.type}",
    ]
    return "\n".join(lines) + "\n"


def parallel_info() -> str:
    """How many threads operators use, and why, a line each."""
    lines = [
        f"Threads of an operator: {_C.get_num_threads()}",
        f"Processors: {os.cpu_count()}",
        f"OMP_NUM_THREADS: {os.environ.get('OMP_NUM_THREADS', '[not set]')}",
        "Threads are those of: OpenMP",
    ]
    return "\n".join(lines) + "\n"


def cpu_capability() -> str:
    """The best of the sets of instructions that operators are compiled for and the processor has:
    "AVX512", "AVX2" or "DEFAULT"."""
    try:
        with open("/proc/cpuinfo") as file:
            flags = next((line for line in file if line.startswith("flags")), "").split()
    except OSError:
        flags = []
    return "AVX512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "DEFAULT"

"""The limits of a process that makes calls: so much memory more than it has, and one thread."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import resource
import warnings

MEMORY = 768 << 20


def apply() -> None:
    """Called once everything is imported."""
    warnings.simplefilter("ignore")
    # The sanitizers reserve far more addresses than any limit; theirs is max_allocation_size_mb.
    if os.environ.get("TREADLE_SANITIZERS"):
        return
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

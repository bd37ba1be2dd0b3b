"""The function that old programs give to a DataLoader as `worker_init_fn`."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings


def worker_init_fn(worker_id: int) -> None:
    """Warns: workers need no such function to have parts of datapipes of their own."""
    warnings.warn(
        "worker_init_fn of backward_compatibility is deprecated: a DataLoader does what it did",
        stacklevel=2,
    )


__all__ = ["worker_init_fn"]

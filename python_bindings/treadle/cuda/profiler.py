"""The switches of NVIDIA's profilers: they are taken and dropped, as there is none of them to hear
them. RuntimeError where there is no CUDA device.

    with treadle.cuda.profiler.profile():
        y = model(x)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from typing import Iterator

from treadle._device import facade, registry


def _need_device(function: str) -> None:
    if not registry.is_available("cuda"):
        raise facade.no_device(f"cuda.profiler.{function}")


def start() -> None:
    """Let a profiler record from here on."""
    _need_device("start")


def stop() -> None:
    """Let it record no longer."""
    _need_device("stop")


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """A block that a profiler records."""
    start()
    try:
        yield
    finally:
        stop()


__all__ = ["profile", "start", "stop"]

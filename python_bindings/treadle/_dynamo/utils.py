"""Questions that programs ask of the compiler before they use it."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator


def is_compile_supported(device_type: Any) -> bool:
    """Whether programs for a device are compiled: none is."""
    return False


@contextmanager
def disable_cache_limit() -> Iterator[None]:
    """A block in which programs may be compiled for any number of kinds of arguments. Nothing is
    kept that has a limit."""
    yield

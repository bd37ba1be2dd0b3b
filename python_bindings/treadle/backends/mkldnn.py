"""oneDNN, on which convolutions run. It cannot be left out: its switches change nothing."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import ContextManager, Optional

from treadle.backends._flags import set_for_a_while

enabled = True
deterministic = False
allow_tf32 = True
fp32_precision = "none"

VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = range(3)


def is_available() -> bool:
    """Whether the library is there."""
    return True


def flags(
    enabled: bool = False,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: Optional[str] = "none",
) -> ContextManager[None]:
    """The switches for a block."""
    return set_for_a_while(
        __name__,
        enabled=enabled,
        deterministic=deterministic,
        allow_tf32=allow_tf32,
        fp32_precision=fp32_precision,
    )

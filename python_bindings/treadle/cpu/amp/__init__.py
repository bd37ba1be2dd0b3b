"""Mixed precision by the names of before `treadle.amp`, for which they stand.

with treadle.cpu.amp.autocast():         # amp.autocast("cpu")
    loss = model(x)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import treadle
from treadle import amp
from treadle.amp._deprecated import warn

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):  # noqa: N801
    """amp.autocast for the CPU."""

    def __init__(
        self,
        enabled: bool = True,
        dtype: treadle.dtype = treadle.bfloat16,
        cache_enabled: bool = True,
    ) -> None:
        warn("cpu", "autocast")
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """amp.GradScaler for the CPU."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        warn("cpu", "GradScaler")
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)

"""Mixed precision by the names of before `treadle.amp`, for which they stand.

with treadle.cuda.amp.autocast():         # amp.autocast("cuda")
    loss = model(x)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Optional

import treadle
from treadle import amp
from treadle.amp._deprecated import warn


def amp_definitely_not_available() -> bool:
    """Whether there is no device for which this was made."""
    return not treadle.cuda.is_available()


class autocast(amp.autocast):  # noqa: N801
    """amp.autocast for CUDA devices."""

    def __init__(
        self,
        enabled: bool = True,
        dtype: treadle.dtype = treadle.float16,
        cache_enabled: bool = True,
    ) -> None:
        warn("cuda", "autocast")
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """amp.GradScaler for CUDA devices."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        warn("cuda", "GradScaler")
        super().__init__(
            "cuda",
            init_scale=init_scale,
            growth_factor=growth_factor,
            backoff_factor=backoff_factor,
            growth_interval=growth_interval,
            enabled=enabled,
        )


def custom_fwd(
    fwd: Optional[Callable[..., Any]] = None, *, cast_inputs: Optional[treadle.dtype] = None
) -> Any:
    """amp.custom_fwd for CUDA devices."""
    warn("cuda", "custom_fwd", "args..., device_type='cuda'")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any]) -> Any:
    """amp.custom_bwd for CUDA devices."""
    warn("cuda", "custom_bwd", "args..., device_type='cuda'")
    return amp.custom_bwd(bwd, device_type="cuda")


# Programs import from modules below it, which are this one: see treadle/_names/table.py.
__path__: list = []
__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]

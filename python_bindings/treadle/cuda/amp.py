"""Mixed precision by the names of before `treadle.amp`, for which they stand.

with treadle.cuda.amp.autocast():         # amp.autocast("cuda")
    loss = model(x)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Optional

from treadle import _C, amp
from treadle.amp._deprecated import autocast_of, grad_scaler_of, warn


def amp_definitely_not_available() -> bool:
    """Whether there is no device for which this was made."""
    from treadle import cuda

    return not cuda.is_available()


autocast = autocast_of("cuda", "CUDA devices", _C.float16)
GradScaler = grad_scaler_of("cuda", "CUDA devices")


def custom_fwd(
    fwd: Optional[Callable[..., Any]] = None, *, cast_inputs: Optional[_C.dtype] = None
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

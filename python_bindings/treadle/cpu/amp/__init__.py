"""Mixed precision by the names of before `treadle.amp`, for which they stand.

with treadle.cpu.amp.autocast():         # amp.autocast("cpu")
    loss = model(x)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from treadle import _C
from treadle.amp._deprecated import autocast_of, grad_scaler_of

autocast = autocast_of("cpu", "the CPU", _C.bfloat16)
GradScaler = grad_scaler_of("cpu", "the CPU")

__all__ = ["GradScaler", "autocast"]

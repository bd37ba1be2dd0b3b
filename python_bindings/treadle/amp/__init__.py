"""Mixed precision: operators that are fast in 16 bits run in 16 bits, the rest in float32.

    scaler = treadle.amp.GradScaler("cpu")
    with treadle.autocast("cpu"):
        loss = loss_of(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

The entry of an operator in native_functions.yaml says what autocast does with it, and so does its
page; docs/mixed-precision.md says how it works.
"""

# SPDX-License-Identifier: Apache-2.0

from treadle.amp.autocast_mode import (
    autocast,
    custom_bwd,
    custom_fwd,
    is_autocast_available,
)
from treadle.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

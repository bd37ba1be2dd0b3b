"""Mixed precision: operators that are fast in 16 bits run in 16 bits, the rest in float32.

    scaler = treadle.amp.GradScaler("cpu")
    with treadle.autocast("cpu"):
        loss = loss_of(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

Which operators do what is part of their entries in native_functions.yaml; the page of each operator
says it, and docs/mixed-precision.md how it works.
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

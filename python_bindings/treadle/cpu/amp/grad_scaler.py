"""The older place of cpu.amp.GradScaler."""

# SPDX-License-Identifier: Apache-2.0

from treadle.cpu.amp import GradScaler

__all__ = ["GradScaler"]

"""The older place of cpu.amp.autocast."""

# SPDX-License-Identifier: Apache-2.0

from treadle.cpu.amp import autocast

__all__ = ["autocast"]

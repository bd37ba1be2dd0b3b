"""The older place of cpu.amp.autocast."""

from treadle.cpu.amp import autocast

__all__ = ["autocast"]

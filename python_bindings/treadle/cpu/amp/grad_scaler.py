"""The older place of cpu.amp.GradScaler."""

from treadle.cpu.amp import GradScaler

__all__ = ["GradScaler"]

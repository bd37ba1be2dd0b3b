"""Functions on signals, as in torch.signal."""

from treadle.signal import windows

__all__ = ["windows"]

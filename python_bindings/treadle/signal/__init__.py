"""Functions on signals, as in torch.signal."""

# SPDX-License-Identifier: Apache-2.0

from treadle.signal import windows

__all__ = ["windows"]

"""Discrete Fourier transforms, as in torch.fft.

    spectrum = treadle.fft.rfft(signal)
    signal = treadle.fft.irfft(spectrum, n=signal.shape[-1])

The functions are the operators whose names begin with fft_.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from treadle import _C
from treadle._C import Tensor as Tensor

__all__ = sorted(name[len("fft_") :] for name in dir(_C._fft) if name.startswith("fft_"))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


globals().update({name: getattr(_C._fft, f"fft_{name}") for name in __all__})

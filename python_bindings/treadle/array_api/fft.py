"""The standard's extension `fft`."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

from treadle import fft as _fft
from treadle._C import Tensor
from treadle.array_api._array import as_array
from treadle.array_api._dtypes import Dtype


def _one(name: str) -> Any:
    apply = getattr(_fft, name)

    def function(
        x: Tensor, /, *, n: Optional[int] = None, axis: int = -1, norm: str = "backward"
    ) -> Tensor:
        return apply(x, n, axis, norm)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}` along one dimension: see treadle.fft.{name}."
    return function


def _many(name: str) -> Any:
    apply = getattr(_fft, name)

    def function(
        x: Tensor,
        /,
        *,
        s: Optional[Sequence[int]] = None,
        axes: Optional[Sequence[int]] = None,
        norm: str = "backward",
    ) -> Tensor:
        return apply(x, s, axes, norm)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}` along several dimensions: see treadle.fft.{name}."
    return function


fft = _one("fft")
ifft = _one("ifft")
rfft = _one("rfft")
irfft = _one("irfft")
hfft = _one("hfft")
ihfft = _one("ihfft")
fftn = _many("fftn")
ifftn = _many("ifftn")
rfftn = _many("rfftn")
irfftn = _many("irfftn")


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: Optional[Dtype] = None, device: Any = None
) -> Tensor:
    """The frequencies of the points of `fft`."""
    return as_array(_fft.fftfreq(n, d, dtype=dtype, device=device))


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: Optional[Dtype] = None, device: Any = None
) -> Tensor:
    """The frequencies of the points of `rfft`."""
    return as_array(_fft.rfftfreq(n, d, dtype=dtype, device=device))


def fftshift(x: Tensor, /, *, axes: Optional[Union[int, Sequence[int]]] = None) -> Tensor:
    """Moves the frequency 0 from the front to the middle."""
    return _fft.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: Optional[Union[int, Sequence[int]]] = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _fft.ifftshift(x, axes)


__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip

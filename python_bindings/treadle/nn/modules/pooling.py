"""Pooling layers: the largest, the mean or the norm of the values under windows."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

from treadle._C import Tensor

from .. import functional as F
from .._tuples import tuple_of
from .module import Module

_Ints = Union[int, tuple[int, ...]]


class _PoolNd(Module):
    """A layer over the last `_dims` dimensions."""

    _dims = 0

    def _function(self, name: str) -> Any:
        """F.max_pool2d for "max_pool" over two dimensions."""
        return getattr(F, f"{name}{self._dims}d")

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _MaxPoolNd(_PoolNd):
    def __init__(
        self,
        kernel_size: _Ints,
        stride: Optional[_Ints] = None,
        padding: _Ints = 0,
        dilation: _Ints = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        return self._function("max_pool")(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """The largest value under each window of a line; the windows touch unless stride says
    otherwise."""

    _dims = 1


class MaxPool2d(_MaxPoolNd):
    """The largest value under each window of an image; the windows touch unless stride says
    otherwise."""

    _dims = 2


class MaxPool3d(_MaxPoolNd):
    """The largest value under each window of a volume; the windows touch unless stride says
    otherwise."""

    _dims = 3


class _MaxUnpoolNd(_PoolNd):
    def __init__(
        self, kernel_size: _Ints, stride: Optional[_Ints] = None, padding: _Ints = 0
    ) -> None:
        super().__init__()
        self.kernel_size = tuple_of(kernel_size, self._dims)
        self.stride = tuple_of(stride if stride is not None else kernel_size, self._dims)
        self.padding = tuple_of(padding, self._dims)

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Optional[Sequence[int]] = None
    ) -> Tensor:
        return self._function("max_unpool")(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool1d(_MaxUnpoolNd):
    """Zeros, with what a MaxPool1d chose where it came from."""

    _dims = 1


class MaxUnpool2d(_MaxUnpoolNd):
    """Zeros, with what a MaxPool2d chose where it came from."""

    _dims = 2


class MaxUnpool3d(_MaxUnpoolNd):
    """Zeros, with what a MaxPool3d chose where it came from."""

    _dims = 3


class AvgPool1d(_PoolNd):
    """The mean value under each window of a line; the windows touch unless stride says
    otherwise."""

    def __init__(
        self,
        kernel_size: _Ints,
        stride: Optional[_Ints] = None,
        padding: _Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = tuple_of(kernel_size, 1)
        self.stride = tuple_of(stride if stride is not None else kernel_size, 1)
        self.padding = tuple_of(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class _AvgPoolNd(_PoolNd):
    def __init__(
        self,
        kernel_size: _Ints,
        stride: Optional[_Ints] = None,
        padding: _Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: Optional[int] = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return self._function("avg_pool")(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPoolNd):
    """The mean value under each window of an image; the windows touch unless stride says
    otherwise."""

    _dims = 2


class AvgPool3d(_AvgPoolNd):
    """The mean value under each window of a volume; the windows touch unless stride says
    otherwise."""

    _dims = 3


class _LPPoolNd(_PoolNd):
    def __init__(
        self,
        norm_type: float,
        kernel_size: _Ints,
        stride: Optional[_Ints] = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return self._function("lp_pool")(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """The norm of the values under each window of a line."""

    _dims = 1


class LPPool2d(_LPPoolNd):
    """The norm of the values under each window of an image."""

    _dims = 2


class LPPool3d(_LPPoolNd):
    """The norm of the values under each window of a volume."""

    _dims = 3


class _AdaptivePoolNd(_PoolNd):
    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveAvgPoolNd(_AdaptivePoolNd):
    def forward(self, input: Tensor) -> Tensor:
        return self._function("adaptive_avg_pool")(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """The mean of each of output_size windows that cover a line evenly."""

    _dims = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """The mean of each of output_size windows that cover an image evenly; None keeps a size."""

    _dims = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """The mean of each of output_size windows that cover a volume evenly; None keeps a size."""

    _dims = 3


class _AdaptiveMaxPoolNd(_AdaptivePoolNd):
    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        return self._function("adaptive_max_pool")(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The largest value of each of output_size windows that cover a line evenly."""

    _dims = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The largest value of each of output_size windows that cover an image evenly; None keeps a
    size."""

    _dims = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The largest value of each of output_size windows that cover a volume evenly; None keeps a
    size."""

    _dims = 3


class LocalResponseNorm(Module):
    """Each value divided by a power of the mean square over neighbouring channels."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"

"""Normalisation that looks at one sample at a time."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

from treadle import _C
from treadle._C import Tensor
from treadle._functions.linear_algebra import einsum
from treadle.autograd.function import Function, once_differentiable

from .. import functional as F
from .. import init
from .._tuples import tuple_of
from ..parameter import Parameter
from .module import Module


class _Norm(Module):
    """A normalisation whose elements are then scaled by `weight` and shifted by `bias`, where it
    has them."""

    def _make_parameters(
        self, size: tuple[int, ...], weight: bool, bias: bool, device: Any, dtype: Any
    ) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):
            value = Parameter(_C.empty(size, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale one and shift zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_Norm):
    """Normalise over the last dimensions, whose sizes are normalized_shape, then scale and
    shift."""

    def __init__(
        self,
        normalized_shape: Union[int, Sequence[int]],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = tuple_of(normalized_shape, 1)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        affine = elementwise_affine
        self._make_parameters(self.normalized_shape, affine, affine and bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(_Norm):
    """Normalise each group of channels of each sample, then scale and shift each channel."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError("num_channels must be divisible by num_groups")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make_parameters((num_channels,), affine, affine and bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class RMSNorm(Module):
    """Divide by the root of the mean square over the last dimensions, then scale."""

    def __init__(
        self,
        normalized_shape: Union[int, Sequence[int]],
        eps: Optional[float] = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = tuple_of(normalized_shape, 1)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        value = None
        if elementwise_affine:
            value = Parameter(_C.empty(self.normalized_shape, device=device, dtype=dtype))
        self.register_parameter("weight", value)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale one."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class _CrossMapLRN(Function):
    """y = x * scale ** -beta, where scale = k + alpha / size * (sums of x ** 2 over channels).

    The channels that a sum takes, and those that the gradient goes back to, are PyTorch's; both
    differ from the formula of Krizhevsky and others, "ImageNet classification with deep
    convolutional neural networks" (2012), which LocalResponseNorm follows. Every sum takes channel
    0, and the gradient is gathered over `size` channels that begin (size + 1) // 2 before the own
    one.
    """

    @staticmethod
    def forward(ctx: Any, input: Tensor, size: int, alpha: float, beta: float, k: float) -> Tensor:
        channels = _C.arange(input.shape[1], device=input.device)
        distance = channels - channels.unsqueeze(1)  # of column from row
        window = (distance.abs() <= (size - 1) // 2) | (channels == 0)
        scale = k + alpha / size * _over_channels(window, input.square())
        output = input * scale.pow(-beta)
        ctx.save_for_backward(input, output, scale)
        ctx.settings = size, alpha, beta, distance
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        input, output, scale = ctx.saved_tensors
        size, alpha, beta, distance = ctx.settings
        back = (size + 1) // 2
        window = (distance >= -back) & (distance < size - back)
        ratio = _over_channels(window, grad * output / scale)
        own = grad * scale.pow(-beta) - 2 * alpha * beta / size * input * ratio
        return own, None, None, None, None


def _over_channels(window: Tensor, images: Tensor) -> Tensor:
    """For each channel of (N, C, H, W) the sum over those in its row of `window` (C, C)."""
    return einsum("dc,nchw->ndhw", window.to(images.dtype), images)


class CrossMapLRN2d(Module):
    """Each value of (N, C, H, W) divided by a power of the mean square over `size` neighbouring
    channels, as PyTorch computes it; LocalResponseNorm is the same by the formula.

    Raises:
        ValueError: the input is not 4-dimensional.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        return _CrossMapLRN.apply(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"

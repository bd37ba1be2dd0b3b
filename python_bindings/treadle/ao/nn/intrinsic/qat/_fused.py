"""Layers as one that round their weights.

Where a normalisation follows, the weight that is rounded is the one that convert() will make: the
weight times the factor of the normalisation, by its running statistics. The result is divided by
the factor, and normalised by the statistics of the batch, so training goes as without rounding.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle import _C, nn
from treadle._C import Tensor
from treadle.ao.nn import intrinsic as nni
from treadle.ao.nn.qat import _layers
from treadle.ao.nn.qat._rounded import RoundsWeight
from treadle.nn import functional
from treadle.nn.utils.fusion import fuse_conv_bn_weights, fuse_linear_bn_weights


class LinearReLU(_layers.Linear):
    """Linear and ReLU, with a rounded weight."""

    _float_classes = (nni.LinearReLU,)  # type: ignore[assignment]

    def forward(self, input: Tensor) -> Tensor:
        """relu() of the product with the rounded weight."""
        return functional.relu(super().forward(input))

    def to_float(self) -> Any:
        """The float layers."""
        return nni.LinearReLU(self._to(nn.Linear), nn.ReLU())


class _ConvReLU(_layers._Conv):
    _float_conv: Any = None

    def forward(self, input: Tensor) -> Tensor:
        """relu() of the convolution with the rounded weight."""
        return functional.relu(super().forward(input))

    def to_float(self) -> Any:
        """The float layers."""
        return self._float_classes[0](self._to(self._float_conv), nn.ReLU())


class ConvReLU1d(_ConvReLU, nn.Conv1d):
    """Conv1d and ReLU, with a rounded weight."""

    _float_classes, _float_conv = (nni.ConvReLU1d,), nn.Conv1d


class ConvReLU2d(_ConvReLU, nn.Conv2d):
    """Conv2d and ReLU, with a rounded weight."""

    _float_classes, _float_conv = (nni.ConvReLU2d,), nn.Conv2d


class ConvReLU3d(_ConvReLU, nn.Conv3d):
    """Conv3d and ReLU, with a rounded weight."""

    _float_classes, _float_conv = (nni.ConvReLU3d,), nn.Conv3d


class _WithBn(RoundsWeight):
    """A layer and a normalisation `bn`, whose running statistics can be frozen."""

    bn: Any
    bias: Any
    weight: Any
    freeze_bn = False

    def __init__(
        self,
        *args: Any,
        eps: float = 1e-5,
        momentum: float = 0.1,
        freeze_bn: bool = False,
        qconfig: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, qconfig=qconfig, **kwargs)
        normalisation = self._float_classes[0]._parts[1]  # type: ignore[attr-defined]
        self.bn = normalisation(len(self.weight), eps, momentum)
        if freeze_bn:
            self.freeze_bn_stats()

    @classmethod
    def from_float(cls, mod: Any) -> Any:
        """From float layers with a QConfig, with their parameters themselves."""
        made = super().from_float(mod)
        made.bn = mod[1]
        made.freeze_bn = not mod.training
        return made

    def _of_input(self, input: Tensor, weight: Tensor) -> Tensor:
        """The layer without its bias, for a weight."""
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        """The normalised result."""
        factor = self.bn.weight / _C.sqrt(self.bn.running_var + self.bn.eps)
        # Residual networks begin with normalisations of weight 0, by which nothing can be divided.
        factor = _C.where(factor == 0, _C.ones_like(factor), factor)
        rows = [-1] + [1] * (self.weight.dim() - 1)
        weight = self.weight_fake_quant(self.weight * factor.reshape(rows))
        result = self._of_input(input, weight)
        columns = [1, -1] + [1] * (result.dim() - 2)
        result = result / factor.reshape(columns)
        if self.bias is not None:
            result = result + self.bias.reshape(columns)
        return self.bn(result)

    def fused(self) -> Any:
        """A float layer that does what both do, by the running statistics."""
        raise NotImplementedError

    def update_bn_stats(self) -> Any:
        """Move the running statistics in training."""
        self.freeze_bn = False
        self.bn.training = self.training
        return self

    def freeze_bn_stats(self) -> Any:
        """Leave the running statistics as they are, and normalise by them."""
        self.freeze_bn = True
        self.bn.training = False
        return self

    def reset_running_stats(self) -> None:
        """Begin anew with the running statistics."""
        self.bn.reset_running_stats()

    def train(self, mode: bool = True) -> Any:
        """Set training mode; frozen statistics stay frozen."""
        super().train(mode)
        if self.freeze_bn:
            self.bn.training = False
        return self


class _ConvBnNd(_WithBn):
    _float_conv: Any = None
    _conv_forward: Any

    def _of_input(self, input: Tensor, weight: Tensor) -> Tensor:
        return self._conv_forward(input, weight, None)

    def fused(self) -> Any:
        """A float convolution that does what both do, by the running statistics."""
        made = self._to(self._float_conv)
        bn = self.bn
        made.weight, made.bias = fuse_conv_bn_weights(
            self.weight, self.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
        )
        return made

    def to_float(self) -> Any:
        """A float convolution with the normalisation in it; with ReLU where there is one."""
        return self.fused()


class _ConvBnReLUNd(_ConvBnNd):
    _with_relu: Any = None

    def forward(self, input: Tensor) -> Tensor:
        """relu() of the normalised result."""
        return functional.relu(super().forward(input))

    def to_float(self) -> Any:
        """A float convolution with the normalisation in it, and ReLU."""
        return self._with_relu(self.fused(), nn.ReLU())


class ConvBn1d(_ConvBnNd, nn.Conv1d):
    """Conv1d and BatchNorm1d, with a rounded weight."""

    _float_classes, _float_conv = (nni.ConvBn1d,), nn.Conv1d


class ConvBn2d(_ConvBnNd, nn.Conv2d):
    """Conv2d and BatchNorm2d, with a rounded weight."""

    _float_classes, _float_conv = (nni.ConvBn2d,), nn.Conv2d


class ConvBn3d(_ConvBnNd, nn.Conv3d):
    """Conv3d and BatchNorm3d, with a rounded weight."""

    _float_classes, _float_conv = (nni.ConvBn3d,), nn.Conv3d


class ConvBnReLU1d(_ConvBnReLUNd, nn.Conv1d):
    """Conv1d, BatchNorm1d and ReLU, with a rounded weight."""

    _float_classes, _float_conv, _with_relu = (nni.ConvBnReLU1d,), nn.Conv1d, nni.ConvReLU1d


class ConvBnReLU2d(_ConvBnReLUNd, nn.Conv2d):
    """Conv2d, BatchNorm2d and ReLU, with a rounded weight."""

    _float_classes, _float_conv, _with_relu = (nni.ConvBnReLU2d,), nn.Conv2d, nni.ConvReLU2d


class ConvBnReLU3d(_ConvBnReLUNd, nn.Conv3d):
    """Conv3d, BatchNorm3d and ReLU, with a rounded weight."""

    _float_classes, _float_conv, _with_relu = (nni.ConvBnReLU3d,), nn.Conv3d, nni.ConvReLU3d


class LinearBn1d(_WithBn, nn.Linear):
    """Linear and BatchNorm1d, with a rounded weight."""

    _float_classes = (nni.LinearBn1d,)

    def _of_input(self, input: Tensor, weight: Tensor) -> Tensor:
        return functional.linear(input, weight)

    def fused(self) -> Any:
        """A float layer that does what both do, by the running statistics."""
        made, bn = self._to(nn.Linear), self.bn
        made.weight, made.bias = fuse_linear_bn_weights(
            self.weight, self.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
        )
        return made

    def to_float(self) -> Any:
        """The same as fused()."""
        return self.fused()


def update_bn_stats(mod: nn.Module) -> None:
    """Move the running statistics in training; for Module.apply()."""
    if isinstance(mod, _WithBn):
        mod.update_bn_stats()


def freeze_bn_stats(mod: nn.Module) -> None:
    """Leave the running statistics as they are; for Module.apply()."""
    if isinstance(mod, _WithBn):
        mod.freeze_bn_stats()

"""Layers on quantized tensors that have no kernel of their own: each computes on the floats, and
quantizes the result with its own scale. Some keep the scale of their argument."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Tuple

from treadle import nn
from treadle._C import Tensor
from treadle.ao.nn import intrinsic as nni
from treadle.ao.nn._weights import WithState, check_type, qparams
from treadle.ao.nn.quantized.functional import in_float
from treadle.nn import functional


class _InFloat(WithState):
    """A float layer between dequantize() and a quantization with `scale` and `zero_point`.

    The arguments are PyTorch's; `_arguments` has their order. A layer is always in evaluation mode.
    """

    _numbers = (("scale", float), ("zero_point", int))
    _relu = False
    _float_class: Any = None
    _arguments: Tuple[str, ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if len(args) > len(self._arguments):
            raise TypeError(
                f"{type(self).__name__}: expected at most {len(self._arguments)} arguments "
                f"({', '.join(self._arguments)}), got {len(args)}"
            )
        given = {**dict(zip(self._arguments, args)), **kwargs}
        given = {name.removeprefix("output_"): value for name, value in given.items()}
        scale, zero_point = given.pop("scale", 1.0), given.pop("zero_point", 0)
        parameters = {name: given.pop(name) for name in ("weight", "bias") if name in given}
        super().__init__(**given)
        for name, parameter in parameters.items():
            setattr(self, name, parameter)
        self.scale, self.zero_point = float(scale), int(zero_point)
        self.eval()

    def train(self, mode: bool = True) -> Any:
        """Evaluation mode, whatever the argument: a quantized layer is not trained."""
        del mode
        return super().train(False)

    def forward(self, input: Tensor) -> Tensor:
        """The result, quantized."""
        layer = super().forward
        computed = (lambda x: functional.relu(layer(x))) if self._relu else layer
        return in_float(computed, input, self.scale, self.zero_point)

    @classmethod
    def from_float(cls, mod: Any) -> Any:
        """In place of a prepared layer, by what its observer saw."""
        check_type(f"nn.quantized.{cls.__name__}.from_float", mod, (cls._float_class,))
        scale, zero_point = qparams(mod)
        layer = mod[0] if isinstance(mod, nn.Sequential) else mod
        made = cls.__new__(cls)
        nn.Module.__init__(made)
        own = set(made.__dict__) - {"training"}
        made.__dict__.update({k: v for k, v in layer.__dict__.items() if k not in own})
        made._parameters = dict(layer._parameters)
        made._buffers = dict(layer._buffers)
        made.scale, made.zero_point = scale, zero_point
        return made.eval()

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    def extra_repr(self) -> str:
        """The settings of the layer, and the scale."""
        own = f"scale={self.scale}, zero_point={self.zero_point}"
        return ", ".join(part for part in (super().extra_repr(), own) if part)


def _of(float_class: type, arguments: str) -> Any:
    name = float_class.__name__
    members = {
        "__doc__": f"nn.{name} of quantized tensors; the result has `scale` and `zero_point`.",
        "__module__": __name__,
        "_float_class": float_class,
        "_arguments": tuple(arguments.split()),
    }
    return type(name, (_InFloat, float_class), members)


_INSTANCE_NORM = "num_features weight bias scale zero_point eps momentum affine track_running_stats"

BatchNorm2d = _of(nn.BatchNorm2d, "num_features eps momentum")
BatchNorm3d = _of(nn.BatchNorm3d, "num_features eps momentum")
ELU = _of(nn.ELU, "scale zero_point alpha")
GroupNorm = _of(nn.GroupNorm, "num_groups num_channels weight bias scale zero_point eps affine")
Hardswish = _of(nn.Hardswish, "scale zero_point")
InstanceNorm1d = _of(nn.InstanceNorm1d, _INSTANCE_NORM)
InstanceNorm2d = _of(nn.InstanceNorm2d, _INSTANCE_NORM)
InstanceNorm3d = _of(nn.InstanceNorm3d, _INSTANCE_NORM)
LayerNorm = _of(
    nn.LayerNorm, "normalized_shape weight bias scale zero_point eps elementwise_affine"
)
LeakyReLU = _of(nn.LeakyReLU, "scale zero_point negative_slope inplace")
PReLU = _of(nn.PReLU, "scale zero_point num_parameters")
Sigmoid = _of(nn.Sigmoid, "scale zero_point")
Softmax = _of(nn.Softmax, "dim scale zero_point")


class BNReLU2d(BatchNorm2d):  # type: ignore[misc, valid-type]
    """relu() of a normalisation, as BatchNorm2d."""

    _relu = True
    _float_class = nni.BNReLU2d


class BNReLU3d(BatchNorm3d):  # type: ignore[misc, valid-type]
    """relu() of a normalisation, as BatchNorm3d."""

    _relu = True
    _float_class = nni.BNReLU3d


class _OfKnownRange(nn.Module):
    """A float layer whose results have a known range. A tensor of floats gives floats, so that the
    layer may also stand after DeQuantize."""

    _float_class: Any = None
    _scale = 1 / 256
    _zero_point = 0

    def forward(self, input: Tensor) -> Tensor:
        """The result, quantized where the input is."""
        layer = super().forward
        if not input.is_quantized:
            return layer(input)
        return in_float(layer, input, self._scale, self._zero_point)

    @classmethod
    def from_float(cls, mod: Any) -> Any:
        """In place of a float layer, with its settings."""
        made = cls.__new__(cls)
        nn.Module.__init__(made)
        made.__dict__.update({k: v for k, v in vars(mod).items() if k not in vars(made)})
        return made.train(mod.training)

    def _get_name(self) -> str:
        return f"Quantized{self._float_class.__name__}"


class HardsigmoidOfKnownRange(_OfKnownRange, nn.Hardsigmoid):
    """nn.Hardsigmoid, whose results are from 0 to 1."""

    _float_class = nn.Hardsigmoid


class SigmoidOfKnownRange(_OfKnownRange, nn.Sigmoid):
    """nn.Sigmoid, whose results are from 0 to 1."""

    _float_class = nn.Sigmoid


class SoftmaxOfKnownRange(_OfKnownRange, nn.Softmax):
    """nn.Softmax, whose results are from 0 to 1."""

    _float_class = nn.Softmax


class TanhOfKnownRange(_OfKnownRange, nn.Tanh):
    """nn.Tanh, whose results are from -1 to 1."""

    _float_class = nn.Tanh
    _scale, _zero_point = 2 / 256, 128


OF_KNOWN_RANGE = {
    kind._float_class: kind
    for kind in (
        HardsigmoidOfKnownRange,
        SigmoidOfKnownRange,
        SoftmaxOfKnownRange,
        TanhOfKnownRange,
    )
}


class ReLU6(nn.ReLU):
    """The numbers between 0 and 6 of a quantized tensor, with its scale."""

    def forward(self, input: Tensor) -> Tensor:
        """The result; the input itself with inplace=True."""
        return functional.relu6(input, self.inplace)

    @staticmethod
    def from_float(mod: Any) -> ReLU6:
        """In place of nn.ReLU6."""
        return ReLU6(mod.inplace)

    def _get_name(self) -> str:
        return "QuantizedReLU6"


class Dropout(nn.Dropout):
    """Gives back its argument: a quantized model is not trained."""

    def forward(self, input: Tensor) -> Tensor:
        """The argument."""
        return input

    @staticmethod
    def from_float(mod: Any) -> Dropout:
        """In place of nn.Dropout."""
        return Dropout(mod.p, mod.inplace)

    def _get_name(self) -> str:
        return "QuantizedDropout"

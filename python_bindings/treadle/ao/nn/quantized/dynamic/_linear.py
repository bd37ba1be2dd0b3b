"""Linear on floats, with a weight in eight bits."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle import _C, nn
from treadle._C import Tensor
from treadle.ao.nn import intrinsic as nni
from treadle.ao.nn import qat
from treadle.ao.nn._weights import check_type, float_bias
from treadle.ao.nn.quantized._linear import Linear as _StaticLinear
from treadle.ao.nn.quantized.dynamic._weights import DTYPES, dynamic_linear, weight_for
from treadle.nn.modules.linear import NonDynamicallyQuantizableLinear


class Linear(_StaticLinear):
    """x @ weight.T + bias for floats `x` (*, in_features); the result is of their dtype. TypeError
    for other numbers.

    The weight is quantized to qint8, or kept as float16, by the dtype that it is made with.
    """

    _version = 4
    _name = "DynamicQuantizedLinear"
    _dtypes = DTYPES
    _float_classes = (  # type: ignore[assignment]
        nn.Linear,
        NonDynamicallyQuantizableLinear,
        qat.Linear,
    )

    def forward(self, x: Tensor) -> Tensor:
        """The result, in floats."""
        weight, bias = self._packed_params._packed_params
        return dynamic_linear(x, weight, bias, relu=self._relu)

    @classmethod
    def from_float(cls, mod: Any) -> Any:
        """From a layer with a QConfig."""
        check_type(f"nn.quantized.dynamic.{cls.__name__}.from_float", mod, cls._float_classes)
        qconfig = mod.qconfig
        layer = mod[0] if isinstance(mod, nn.Sequential) else mod
        weight = weight_for(cls.__name__, layer.weight, qconfig)
        made = cls(layer.in_features, layer.out_features, dtype=weight.dtype)
        made.set_weight_bias(weight, float_bias(layer))
        return made.train(mod.training)

    def extra_repr(self) -> str:
        """The sizes, the dtype and the scheme."""
        dtype = self._packed_params.dtype
        text = f"in_features={self.in_features}, out_features={self.out_features}, dtype={dtype}"
        return text if dtype == _C.float16 else f"{text}, qscheme={self.weight().qscheme()}"


class LinearReLU(Linear):
    """relu(x @ weight.T + bias), as Linear."""

    _relu = True
    _name = "DynamicQuantizedLinearReLU"
    _float_classes = (nni.LinearReLU,)  # type: ignore[assignment]

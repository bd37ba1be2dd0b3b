"""Linear on quantized tensors."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional, Tuple

from treadle import _C, nn
from treadle._C import Tensor
from treadle.ao.nn import intrinsic as nni
from treadle.ao.nn import qat
from treadle.ao.nn._weights import (
    WithState,
    check_shape,
    check_type,
    empty_weight,
    qparams,
)
from treadle.ao.nn.intrinsic import qat as intrinsic_qat
from treadle.ao.nn.quantized._from_float import quantized_parameters
from treadle.nn.modules.linear import NonDynamicallyQuantizableLinear


class LinearPackedParams(WithState):
    """The weight (out_features, in_features) and the bias of a layer, under the names that they
    have in a file."""

    _version = 3
    _kept = ("dtype", "_packed_params")

    def __init__(self, dtype: Any = _C.qint8) -> None:
        super().__init__()
        self.dtype = dtype
        weight = empty_weight("LinearPackedParams", (1, 1), dtype, (_C.qint8, _C.float16))
        self._packed_params: Tuple[Tensor, Optional[Tensor]] = (weight, None)

    def set_weight_bias(self, weight: Tensor, bias: Optional[Tensor]) -> None:
        """Keep a weight, and a bias or None."""
        bias = None if bias is None else bias.detach()
        self._packed_params = (weight, bias)

    def _weight_bias(self) -> Tuple[Tensor, Optional[Tensor]]:
        return self._packed_params

    def _check_loaded(self, name: str, value: Any) -> None:
        if name == "_packed_params":
            weight = value[0] if isinstance(value, tuple) and len(value) == 2 else None
            now = tuple(self._packed_params[0].shape)
            got = tuple(weight.shape) if isinstance(weight, Tensor) else type(value).__name__
            if got != now:
                raise ValueError(f"expected a weight of shape {now} and a bias, got {got}")
            if value[1] is not None:
                check_shape(value[1], now[:1])

    def forward(self, x: Tensor) -> Tensor:
        """The argument."""
        return x


class Linear(WithState):
    """x @ weight.T + bias for a quantized `x` (*, in_features) of quint8; the result is quantized
    with `scale` and `zero_point`. The weight is quantized to qint8, the bias is float32."""

    _version = 3
    _numbers = (("scale", float), ("zero_point", int))
    _dtypes: Tuple[Any, ...] = (_C.qint8,)
    _relu = False
    _name = "QuantizedLinear"
    _float_classes = (
        nn.Linear,
        NonDynamicallyQuantizableLinear,
        qat.Linear,
        intrinsic_qat.LinearBn1d,
    )

    def __init__(
        self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = _C.qint8
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.scale, self.zero_point = 1.0, 0
        weight = empty_weight(self._name, (out_features, in_features), dtype, self._dtypes)
        self._packed_params = LinearPackedParams(dtype)
        self.set_weight_bias(weight, _C.zeros(out_features) if bias_ else None)

    def forward(self, x: Tensor) -> Tensor:
        """The result, quantized."""
        weight, bias = self._packed_params._packed_params
        return _C._quantized_linear(x, weight, bias, self.scale, self.zero_point, self._relu)

    def weight(self) -> Tensor:
        """The quantized weight."""
        return self._packed_params._packed_params[0]

    def bias(self) -> Optional[Tensor]:
        """The bias; None where there is none."""
        return self._packed_params._packed_params[1]

    def _weight_bias(self) -> Tuple[Tensor, Optional[Tensor]]:
        return self._packed_params._packed_params

    def set_weight_bias(self, w: Tensor, b: Optional[Tensor]) -> None:
        """Put in a quantized weight (out_features, in_features), and a bias (out_features,)."""
        self._packed_params.set_weight_bias(w, b)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """From a prepared layer, by what its observers saw. With `use_precomputed_fake_quant` the
        scale of a weight is the one from training, not computed anew."""
        check_type(f"nn.quantized.{cls.__name__}.from_float", mod, cls._float_classes)
        scale, zero_point = qparams(mod)
        layer, weight, bias = quantized_parameters(cls.__name__, mod, use_precomputed_fake_quant)
        made = cls(layer.in_features, layer.out_features)
        made.set_weight_bias(weight, bias)
        made.scale, made.zero_point = scale, zero_point
        return made.train(mod.training)

    def _get_name(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def extra_repr(self) -> str:
        """The sizes, the scale and the scheme."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"scale={self.scale}, zero_point={self.zero_point}, qscheme={self.weight().qscheme()}"
        )


class LinearReLU(Linear):
    """relu(x @ weight.T + bias), as Linear."""

    _relu = True
    _name = "QuantizedLinearReLU"
    _float_classes = (nni.LinearReLU, intrinsic_qat.LinearReLU)  # type: ignore[assignment]

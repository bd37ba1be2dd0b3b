"""The base classes of observers."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Dict, Optional, Tuple

from treadle import _C, nn
from treadle._C import Tensor
from treadle._introspection.build import (
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
)
from treadle.ao.quantization._factories import _with_args, _with_callable_args
from treadle.ao.quantization.utils import (
    EPS,
    PER_CHANNEL,
    PER_TENSOR,
    calculate_qmin_qmax,
    qparams_of_range,
    validate_qmin_qmax,
)

_SCHEMES = (*PER_TENSOR, *PER_CHANNEL)
_DTYPES = (
    _C.qint8,
    _C.quint8,
    _C.quint4x2,
    _C.qint32,
    _C.int8,
    _C.uint8,
    _C.int16,
    _C.int32,
    _C.float8_e5m2,
    _C.float8_e4m3fn,
    _C.uint16,
)


class ObserverBase(ABC, nn.Module):
    """The base of observers: forward() looks at a tensor and returns it, calculate_qparams()
    returns the scale and the zero point. `dtype` is that of the quantized tensor."""

    def __init__(self, dtype: Any, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype = dtype
        self.is_dynamic = is_dynamic

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """The argument."""

    @abstractmethod
    def calculate_qparams(self) -> Any:
        """The scale and the zero point."""

    with_args = classmethod(_with_args)
    with_callable_args = classmethod(_with_callable_args)


class UniformQuantizationObserverBase(ObserverBase):
    """Observers whose steps are of equal width.

    `dtype` is the quantized one, `qscheme` one of the five schemes; `quant_min` and `quant_max` are
    the ends of the quantized numbers, those of the dtype unless both are given; `reduce_range`
    halves them; `eps` is the smallest scale. AssertionError for another dtype or scheme, and for a
    range that is wider than the dtype or has no 0.
    """

    _version = 3
    eps: Tensor

    def __init__(
        self,
        dtype: Any = _C.quint8,
        qscheme: Any = per_tensor_affine,
        reduce_range: bool = False,
        quant_min: Optional[int] = None,
        quant_max: Optional[int] = None,
        factory_kwargs: Optional[Dict[str, Any]] = None,
        eps: float = EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        name = type(self).__name__
        if qscheme not in _SCHEMES:
            raise AssertionError(f"{name}: expected qscheme to be one of {_SCHEMES}, got {qscheme}")
        if dtype not in _DTYPES:
            raise AssertionError(f"{name}: expected dtype to be one of {_DTYPES}, got {dtype}")
        self.qscheme = qscheme
        self.reduce_range = reduce_range
        self._factory = nn.factory_kwargs(factory_kwargs)
        self.register_buffer("eps", _C.tensor([eps], **self._factory))
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if quant_min is not None and quant_max is not None:
            validate_qmin_qmax(quant_min, quant_max)
        self.quant_min, self.quant_max = calculate_qmin_qmax(
            quant_min, quant_max, self.has_customized_qrange, dtype, reduce_range
        )

    def _check_scheme(self, qscheme: Any, allowed: Tuple[Any, ...], is_dynamic: bool) -> None:
        name = type(self).__name__
        if qscheme not in allowed:
            raise NotImplementedError(
                f"{name}: expected qscheme to be one of {allowed}, got {qscheme}"
            )
        if is_dynamic:
            raise NotImplementedError(f"{name}: expected is_dynamic=False, got True")

    def _check_reduced(self) -> None:
        if (
            self.qscheme in (per_tensor_symmetric, per_channel_symmetric)
            and self.reduce_range
            and self.dtype == _C.quint8
        ):
            raise NotImplementedError(
                f"{type(self).__name__}: expected reduce_range=False for a symmetric scheme of "
                f"{self.dtype}, got True"
            )

    def _calculate_qparams(self, min_val: Tensor, max_val: Tensor) -> Tuple[Tensor, Tensor]:
        return qparams_of_range(
            min_val,
            max_val,
            self.quant_min,
            self.quant_max,
            self.dtype,
            self.eps,
            self.has_customized_qrange,
            self.qscheme,
        )

    def reset_min_max_vals(self) -> None:
        """NotImplementedError: not every observer can forget."""
        raise NotImplementedError(f"{type(self).__name__}: it cannot forget what it observed")

    def _load_from_state_dict(
        self, state_dict: Dict, prefix: str, local_metadata: Dict, *rest: Any
    ) -> None:
        if local_metadata.get("version") in (None, 1):
            # `eps` is a buffer since the second version.
            state_dict[prefix + "eps"] = _C.tensor([EPS])
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

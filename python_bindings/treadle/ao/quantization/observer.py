"""Modules that look at the tensors that pass through, and compute a scale and a zero point for
them.

Example:

    observer = MinMaxObserver()
    observer(treadle.tensor([-1.0, 3.0]))
    observer.calculate_qparams()               # (4 / 255, round(255 / 4))
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import Any, Dict, List, NoReturn, Optional, Tuple

from treadle import _C, _names, nn
from treadle._C import Tensor
from treadle._introspection.build import (
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
)
from treadle.ao.quantization._factories import _PartialWrapper
from treadle.ao.quantization._histogram import HistogramObserver, default_histogram_observer
from treadle.ao.quantization._observer_base import ObserverBase, UniformQuantizationObserverBase
from treadle.ao.quantization.utils import (
    EPS,
    PER_CHANNEL,
    PER_TENSOR,
)

__all__ = [
    "FixedQParamsObserver",
    "HistogramObserver",
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver",
    "NoopObserver",
    "ObserverBase",
    "PerChannelMinMaxObserver",
    "PlaceholderObserver",
    "RecordingObserver",
    "ReuseInputObserver",
    "UniformQuantizationObserverBase",
    "default_affine_fixed_qparams_observer",
    "default_debug_observer",
    "default_dynamic_quant_observer",
    "default_fixed_qparams_range_0to1_observer",
    "default_fixed_qparams_range_neg1to1_observer",
    "default_float_qparams_observer",
    "default_float_qparams_observer_4bit",
    "default_histogram_observer",
    "default_observer",
    "default_per_channel_weight_observer",
    "default_placeholder_observer",
    "default_reuse_input_observer",
    "default_symmetric_fixed_qparams_observer",
    "default_weight_observer",
    "get_observer_state_dict",
    "load_observer_state_dict",
    "per_channel_weight_observer_range_neg_127_to_127",
    "weight_observer_range_neg_127_to_127",
]


class MinMaxObserver(UniformQuantizationObserverBase):
    """Keeps the smallest and the largest number that it saw, in buffers of no dimension.

    NotImplementedError for a scheme per channel.
    """

    min_val: Tensor
    max_val: Tensor

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
        self._check_scheme(qscheme, PER_TENSOR, is_dynamic=False)
        super().__init__(
            dtype=dtype,
            qscheme=qscheme,
            reduce_range=reduce_range,
            quant_min=quant_min,
            quant_max=quant_max,
            factory_kwargs=factory_kwargs,
            eps=eps,
            is_dynamic=is_dynamic,
            **kwargs,
        )
        self.register_buffer("min_val", _C.tensor(float("inf"), **self._factory))
        self.register_buffer("max_val", _C.tensor(float("-inf"), **self._factory))
        self._check_reduced()

    def forward(self, x_orig: Tensor) -> Tensor:
        """Observe a tensor of any shape, and give it back."""
        if x_orig.numel() != 0:
            low, high = _C.aminmax(x_orig.detach().to(self.min_val.dtype))
            low, high = self._with_earlier(low, high)
            self.min_val.copy_(low)
            self.max_val.copy_(high)
        return x_orig

    def _with_earlier(self, low: Tensor, high: Tensor) -> Tuple[Tensor, Tensor]:
        return _C.minimum(low, self.min_val), _C.maximum(high, self.max_val)

    def calculate_qparams(self) -> Tuple[Tensor, Tensor]:
        """The scale and the zero point, each of shape (1,)."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        """What it saw."""
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self) -> None:
        """Forget what was observed."""
        self.min_val.fill_(float("inf"))
        self.max_val.fill_(float("-inf"))


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Keeps moving averages of the smallest and the largest number of each tensor: a new tensor
    counts `averaging_constant`."""

    def __init__(
        self,
        averaging_constant: float = 0.01,
        dtype: Any = _C.quint8,
        qscheme: Any = per_tensor_affine,
        reduce_range: bool = False,
        quant_min: Optional[int] = None,
        quant_max: Optional[int] = None,
        eps: float = EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        self._check_scheme(qscheme, PER_TENSOR, is_dynamic and averaging_constant != 1)
        super().__init__(
            dtype=dtype,
            qscheme=qscheme,
            reduce_range=reduce_range,
            quant_min=quant_min,
            quant_max=quant_max,
            eps=eps,
            is_dynamic=is_dynamic,
            **kwargs,
        )
        self.averaging_constant = averaging_constant

    def _with_earlier(self, low: Tensor, high: Tensor) -> Tuple[Tensor, Tensor]:
        if self.min_val.item() == float("inf") and self.max_val.item() == float("-inf"):
            return low, high
        return (
            self.min_val + self.averaging_constant * (low - self.min_val),
            self.max_val + self.averaging_constant * (high - self.max_val),
        )


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """Keeps the smallest and the largest number of each channel, of dimension `ch_axis`.

    The buffers `min_val` and `max_val` are empty until something is observed, then of shape
    (channels,). NotImplementedError for a scheme per tensor.
    """

    min_val: Tensor
    max_val: Tensor

    def __init__(
        self,
        ch_axis: int = 0,
        dtype: Any = _C.quint8,
        qscheme: Any = per_channel_affine,
        reduce_range: bool = False,
        quant_min: Optional[int] = None,
        quant_max: Optional[int] = None,
        factory_kwargs: Optional[Dict[str, Any]] = None,
        eps: float = EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        self._check_scheme(qscheme, PER_CHANNEL, is_dynamic)
        super().__init__(
            dtype=dtype,
            qscheme=qscheme,
            reduce_range=reduce_range,
            quant_min=quant_min,
            quant_max=quant_max,
            factory_kwargs=factory_kwargs,
            eps=eps,
            is_dynamic=is_dynamic,
            **kwargs,
        )
        self.ch_axis = ch_axis
        self.register_buffer("min_val", _C.tensor([], **self._factory))
        self.register_buffer("max_val", _C.tensor([], **self._factory))
        self._check_reduced()

    def forward(self, x_orig: Tensor) -> Tensor:
        """Observe a tensor, and give it back."""
        if x_orig.numel() != 0:
            rows = x_orig.detach().to(self.min_val.dtype).transpose(0, self.ch_axis).flatten(1)
            low, high = _C.aminmax(rows, dim=1)
            if self.min_val.numel() != 0:
                low, high = self._with_earlier(low, high)
            self.min_val.resize_(low.shape).copy_(low)
            self.max_val.resize_(high.shape).copy_(high)
        return x_orig

    def _with_earlier(self, low: Tensor, high: Tensor) -> Tuple[Tensor, Tensor]:
        return _C.minimum(low, self.min_val), _C.maximum(high, self.max_val)

    def calculate_qparams(self) -> Tuple[Tensor, Tensor]:
        """The scales and the zero points, each of shape (channels,)."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        """What it saw."""
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self) -> None:
        """Forget what was observed."""
        self.min_val, self.max_val = (_C.empty(0, **self._factory) for _ in range(2))

    def _load_from_state_dict(
        self, state_dict: Dict, prefix: str, local_metadata: Dict, *rest: Any
    ) -> None:
        version = local_metadata.get("version")
        for name in ("min_val", "max_val"):
            # The buffers were named min_vals and max_vals before the third version.
            older = f"{prefix}{name}s"
            if version is not None and version < 3 and older in state_dict:
                state_dict[prefix + name] = state_dict.pop(older)
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Keeps moving averages of the smallest and the largest number of each channel."""

    def __init__(
        self,
        averaging_constant: float = 0.01,
        ch_axis: int = 0,
        dtype: Any = _C.quint8,
        qscheme: Any = per_channel_affine,
        reduce_range: bool = False,
        quant_min: Optional[int] = None,
        quant_max: Optional[int] = None,
        eps: float = EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            ch_axis=ch_axis,
            dtype=dtype,
            qscheme=qscheme,
            reduce_range=reduce_range,
            quant_min=quant_min,
            quant_max=quant_max,
            eps=eps,
            is_dynamic=is_dynamic,
            **kwargs,
        )
        self.averaging_constant = averaging_constant

    def _with_earlier(self, low: Tensor, high: Tensor) -> Tuple[Tensor, Tensor]:
        return (
            self.min_val + self.averaging_constant * (low - self.min_val),
            self.max_val + self.averaging_constant * (high - self.max_val),
        )


class _PassesOn(ObserverBase):
    """Observers that look at nothing."""

    def forward(self, x: Tensor) -> Tensor:
        """The argument."""
        return x

    def calculate_qparams(self) -> NoReturn:
        """RuntimeError: nothing was observed."""
        raise RuntimeError(f"{type(self).__name__}: it has no scale, as it observes nothing")


class FixedQParamsObserver(_PassesOn):
    """Has the scale and the zero point that it was given, whatever passes through."""

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self,
        scale: float,
        zero_point: int,
        dtype: Any = _C.quint8,
        qscheme: Any = per_tensor_affine,
        quant_min: int = 0,
        quant_max: int = 255,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver: expected is_dynamic=False, got True")
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.quant_min, self.quant_max, self.qscheme = quant_min, quant_max, qscheme
        self.register_buffer("scale", _C.tensor([scale], dtype=_C.float32))
        self.register_buffer("zero_point", _C.tensor([zero_point], dtype=_C.int32))

    def calculate_qparams(self) -> Tuple[Tensor, Tensor]:
        """The scale and the zero point that it was made with, each of shape (1,)."""
        return self.scale, self.zero_point


class PlaceholderObserver(_PassesOn):
    """Holds the dtype and the range for quantization, and observes nothing. With `is_dynamic` the
    scale is computed for each tensor when the model runs."""

    def __init__(
        self,
        dtype: Any = _C.float32,
        custom_op_name: str = "",
        compute_dtype: Any = None,
        quant_min: Optional[int] = None,
        quant_max: Optional[int] = None,
        qscheme: Any = None,
        eps: Optional[float] = None,
        is_dynamic: bool = False,
    ) -> None:
        super().__init__(dtype=dtype, is_dynamic=is_dynamic or bool(compute_dtype))
        if compute_dtype:
            warnings.warn(
                "PlaceholderObserver: pass is_dynamic=True instead of compute_dtype", stacklevel=2
            )
        self.qscheme = per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max = quant_min, quant_max
        self.eps = EPS if eps is None else eps
        self.custom_op = custom_op_name

    def extra_repr(self) -> str:
        """The settings."""
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"


class RecordingObserver(_PassesOn):
    """Keeps a copy of each tensor that it sees, in the list `tensor_val`."""

    def __init__(self, dtype: Any = _C.quint8) -> None:
        super().__init__(dtype=dtype, is_dynamic=False)
        self.tensor_val: List[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        """Keep a copy of a tensor, without its history, and give it back."""
        self.tensor_val.append(x.detach().clone())
        return x

    def get_tensor_value(self) -> List[Tensor]:
        """The copies."""
        return self.tensor_val


class NoopObserver(_PassesOn):
    """Holds the dtype for quantization, and observes nothing."""

    def __init__(self, dtype: Any = _C.float16, custom_op_name: str = "") -> None:
        super().__init__(dtype=dtype, is_dynamic=False)
        self.custom_op = custom_op_name


class ReuseInputObserver(_PassesOn):
    """Says that a result has the scale of the argument: of reshape, for example."""

    def __init__(self) -> None:
        super().__init__(_C.quint8, is_dynamic=False)


def _is_activation_post_process(module: Any) -> bool:
    """Whether a module is an observer, or a FakeQuantize, which observes, too."""
    return isinstance(module, nn.Module) and hasattr(module, "calculate_qparams")


def get_observer_state_dict(mod: nn.Module) -> Dict[str, Tensor]:
    """The buffers of a model's observers, by their names in its state_dict()."""
    state = mod.state_dict()
    found = OrderedDict((k, v) for k, v in state.items() if "activation_post_process" in k)
    found._metadata = state._metadata  # type: ignore[attr-defined]
    return found


def load_observer_state_dict(mod: nn.Module, obs_dict: Dict[str, Tensor]) -> None:
    """Load what get_observer_state_dict() returned into the observers of a model. RuntimeError
    where a name is missing."""
    missing: List[str] = []
    metadata = getattr(obs_dict, "_metadata", {})
    for name, module in mod.named_modules():
        if _is_activation_post_process(module):
            settings = metadata.get(name, {})
            errors: List[str] = []
            module._load_from_state_dict(obs_dict, f"{name}.", settings, True, missing, [], errors)
            if errors:
                raise RuntimeError(f"load_observer_state_dict: {errors[0]}")
    missing = [name for name in missing if "activation_post_process" in name]
    if missing:
        raise RuntimeError(f"load_observer_state_dict: expected the key {missing[0]}, got none")


def _weights(cls: Any, qscheme: Any, **settings: Any) -> _PartialWrapper:
    return cls.with_args(dtype=_C.qint8, qscheme=qscheme, **settings)


_WITHOUT_LOWEST: Dict[str, Any] = {"quant_min": -127, "quant_max": 127, "eps": 2**-12}

default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_reuse_input_observer = ReuseInputObserver
default_weight_observer = _weights(MinMaxObserver, per_tensor_symmetric)
weight_observer_range_neg_127_to_127 = _weights(
    MinMaxObserver, per_tensor_symmetric, **_WITHOUT_LOWEST
)
default_per_channel_weight_observer = _weights(PerChannelMinMaxObserver, per_channel_symmetric)
per_channel_weight_observer_range_neg_127_to_127 = _weights(
    PerChannelMinMaxObserver, per_channel_symmetric, **_WITHOUT_LOWEST
)
default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=_C.quint8, quant_min=0, quant_max=255, is_dynamic=True
)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(
    dtype=_C.quint8, qscheme=per_channel_affine_float_qparams, ch_axis=0
)
default_float_qparams_observer_4bit = PerChannelMinMaxObserver.with_args(
    dtype=_C.quint4x2, qscheme=per_channel_affine_float_qparams, ch_axis=0
)
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, dtype=_C.quint8, quant_min=0, quant_max=255
)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, dtype=_C.quint8, quant_min=0, quant_max=255
)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer

__getattr__ = _names.attributes_of(__name__)

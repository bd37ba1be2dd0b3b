"""Modules that round tensors as quantization would, on floats, so that training gets used to it.

Example:

    fake = FakeQuantize(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255)
    y = fake(x)             # x, rounded to 256 numbers; the gradient is that of the identity
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Callable, Dict, Optional, Tuple

from treadle import _C, _names, nn
from treadle._C import Tensor
from treadle._functions.fused_fake_quantization import fused_moving_avg_obs_fake_quant
from treadle._functions.older import (
    fake_quantize_per_channel_affine,
    fake_quantize_per_tensor_affine,
)
from treadle._introspection.build import (
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
)
from treadle._tensor.type_info import iinfo
from treadle.ao.quantization._factories import _PartialWrapper, _with_args
from treadle.ao.quantization.observer import (
    FixedQParamsObserver,
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)
from treadle.ao.quantization.utils import SYMMETRIC, is_per_channel, is_per_tensor

__all__ = [
    "FakeQuantize",
    "FakeQuantizeBase",
    "FixedQParamsFakeQuantize",
    "FusedMovingAvgObsFakeQuantize",
    "default_affine_fixed_qparams_fake_quant",
    "default_dynamic_fake_quant",
    "default_embedding_fake_quant",
    "default_embedding_fake_quant_4bit",
    "default_fake_quant",
    "default_fixed_qparams_range_0to1_fake_quant",
    "default_fixed_qparams_range_neg1to1_fake_quant",
    "default_fused_act_fake_quant",
    "default_fused_per_channel_wt_fake_quant",
    "default_fused_wt_fake_quant",
    "default_histogram_fake_quant",
    "default_per_channel_weight_fake_quant",
    "default_symmetric_fixed_qparams_fake_quant",
    "default_weight_fake_quant",
    "disable_fake_quant",
    "disable_observer",
    "enable_fake_quant",
    "enable_observer",
    "fused_per_channel_wt_fake_quant_range_neg_127_to_127",
    "fused_wt_fake_quant_range_neg_127_to_127",
]


class FakeQuantizeBase(ABC, nn.Module):
    """The base of modules that observe and round. Each has a switch, a buffer of one element."""

    fake_quant_enabled: Tensor
    observer_enabled: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fake_quant_enabled", _C.tensor([1], dtype=_C.uint8))
        self.register_buffer("observer_enabled", _C.tensor([1], dtype=_C.uint8))

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """The tensor, rounded."""

    @abstractmethod
    def calculate_qparams(self) -> Any:
        """The scale and the zero point."""

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Round from now on, or do not."""
        self.fake_quant_enabled.fill_(int(enabled))

    def disable_fake_quant(self) -> None:
        """Do not round from now on."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Observe from now on, or do not."""
        self.observer_enabled.fill_(int(enabled))

    def disable_observer(self) -> None:
        """Do not observe from now on: the scale stays as it is."""
        self.enable_observer(False)

    with_args = classmethod(_with_args)


class FakeQuantize(FakeQuantizeBase):
    """Observes a tensor and rounds it to the numbers (q - zero_point) * scale, q from quant_min to
    quant_max.

    `observer` makes the module `activation_post_process`, with the further arguments. The buffers
    `scale` and `zero_point` are of shape (1,), or (channels,). AssertionError for a range that the
    dtype does not have.
    """

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self,
        observer: Callable[..., Any] = MovingAverageMinMaxObserver,
        quant_min: Optional[int] = None,
        quant_max: Optional[int] = None,
        is_dynamic: bool = False,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__()
        if quant_min is not None and quant_max is not None:
            observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        inner = observer(is_dynamic=is_dynamic, **observer_kwargs)
        if quant_min is not None and quant_max is not None:
            info = iinfo(inner.dtype)
            if not info.min <= quant_min <= quant_max <= info.max:
                raise AssertionError(
                    f"FakeQuantize: expected {info.min} <= quant_min <= quant_max <= {info.max} "
                    f"for {inner.dtype}, got {quant_min} and {quant_max}"
                )
        self.activation_post_process = inner
        self.quant_min, self.quant_max = inner.quant_min, inner.quant_max
        self.is_dynamic, self.dtype, self.qscheme = inner.is_dynamic, inner.dtype, inner.qscheme
        if not (is_per_channel(self.qscheme) or is_per_tensor(self.qscheme)):
            raise AssertionError(f"FakeQuantize: expected a scheme, got {self.qscheme}")
        of_floats = self.qscheme == per_channel_affine_float_qparams
        self.register_buffer("scale", _C.tensor([1.0], dtype=_C.float32))
        kind = _C.float32 if of_floats else _C.int32
        self.register_buffer("zero_point", _C.tensor([0], dtype=kind))
        self.ch_axis = getattr(inner, "ch_axis", -1)
        self.is_per_channel = is_per_channel(self.qscheme)

    def calculate_qparams(self) -> Tuple[Tensor, Tensor]:
        """The scale and the zero point for what was observed."""
        return self.activation_post_process.calculate_qparams()

    def _observe(self, x: Tensor) -> None:
        self.activation_post_process(x.detach())
        scale, zero_point = self.calculate_qparams()
        self.scale.resize_(scale.shape).copy_(scale)
        self.zero_point.resize_(zero_point.shape).copy_(zero_point)

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803
        """The tensor, rounded; the tensor itself where that is switched off."""
        if self.observer_enabled.item() == 1:
            self._observe(X)
        if self.fake_quant_enabled.item() != 1:
            return X
        low, high = self.activation_post_process.quant_min, self.activation_post_process.quant_max
        if self.is_per_channel:
            return fake_quantize_per_channel_affine(
                X, self.scale, self.zero_point, self.ch_axis, low, high
            )
        return fake_quantize_per_tensor_affine(X, self.scale, self.zero_point, low, high)

    def extra_repr(self) -> str:
        """The switches, the range and the scale."""
        inner = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, "
            f"observer_enabled={self.observer_enabled}, quant_min={inner.quant_min}, "
            f"quant_max={inner.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, "
            f"ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}"
        )

    def _load_from_state_dict(self, state_dict: Dict, prefix: str, *rest: Any) -> None:
        for name in ("scale", "zero_point"):
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, *rest)


class FixedQParamsFakeQuantize(FakeQuantize):
    """Rounds with the scale and the zero point of a FixedQParamsObserver."""

    def __init__(self, observer: Callable[..., Any]) -> None:
        super().__init__(observer=observer)
        if type(self.activation_post_process) is not FixedQParamsObserver:
            raise AssertionError(
                "FixedQParamsFakeQuantize: expected a FixedQParamsObserver, got "
                f"{type(self.activation_post_process).__name__}"
            )
        self.scale = self.activation_post_process.scale
        self.zero_point = self.activation_post_process.zero_point

    def _observe(self, x: Tensor) -> None:
        """Nothing: the scale is given."""

    def calculate_qparams(self) -> Tuple[Tensor, Tensor]:
        """The scale and the zero point that were given."""
        return self.scale, self.zero_point


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """Observes by moving averages and rounds, in one call of fused_moving_avg_obs_fake_quant().

    AssertionError where the observer has no moving averages.
    """

    def __init__(
        self,
        observer: Callable[..., Any] = MovingAverageMinMaxObserver,
        quant_min: int = 0,
        quant_max: int = 255,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        allowed = (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)
        if not isinstance(self.activation_post_process, allowed):
            raise AssertionError(
                "FusedMovingAvgObsFakeQuantize: expected an observer with moving averages, got "
                f"{type(self.activation_post_process).__name__}"
            )
        self.register_buffer("fake_quant_enabled", _C.tensor([1], dtype=_C.int64))
        self.register_buffer("observer_enabled", _C.tensor([1], dtype=_C.int64))
        self.is_symmetric_quant = self.qscheme in SYMMETRIC

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803
        """The tensor, rounded; the tensor itself where that is switched off."""
        inner = self.activation_post_process
        return fused_moving_avg_obs_fake_quant(
            X,
            self.observer_enabled,
            self.fake_quant_enabled,
            inner.min_val,
            inner.max_val,
            self.scale,
            self.zero_point,
            inner.averaging_constant,
            inner.quant_min,
            inner.quant_max,
            self.ch_axis,
            self.is_per_channel,
            self.is_symmetric_quant,
        )


def _activations(cls: Any, **settings: Any) -> _PartialWrapper:
    range_of_dtype = {"quant_min": 0, "quant_max": 255, "dtype": _C.quint8}
    return cls.with_args(**{"observer": MovingAverageMinMaxObserver, **range_of_dtype, **settings})


def _weights(cls: Any, qscheme: Any, lowest: int = -128, **settings: Any) -> _PartialWrapper:
    per_tensor = qscheme == per_tensor_symmetric
    observer = MovingAverageMinMaxObserver if per_tensor else MovingAveragePerChannelMinMaxObserver
    return cls.with_args(
        observer=observer,
        quant_min=lowest,
        quant_max=127,
        dtype=_C.qint8,
        qscheme=qscheme,
        **settings,
    )


default_fake_quant = _activations(FakeQuantize, qscheme=per_tensor_affine, reduce_range=True)
default_weight_fake_quant = _weights(FakeQuantize, per_tensor_symmetric, reduce_range=False)
default_dynamic_fake_quant = _activations(FakeQuantize, is_dynamic=True, averaging_constant=1)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer
)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_per_channel_weight_fake_quant = _weights(
    FakeQuantize, per_channel_symmetric, reduce_range=False, ch_axis=0
)
default_embedding_fake_quant = _activations(
    FakeQuantize,
    observer=MovingAveragePerChannelMinMaxObserver,
    qscheme=per_channel_affine_float_qparams,
    ch_axis=0,
    averaging_constant=1,
)
default_embedding_fake_quant_4bit = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    qscheme=per_channel_affine_float_qparams,
    ch_axis=0,
    dtype=_C.quint4x2,
    averaging_constant=1,
)
default_histogram_fake_quant = _activations(
    FakeQuantize, observer=HistogramObserver, qscheme=per_tensor_affine, reduce_range=True
)
default_fused_act_fake_quant = _activations(FusedMovingAvgObsFakeQuantize)
default_fused_wt_fake_quant = _weights(FusedMovingAvgObsFakeQuantize, per_tensor_symmetric)
default_fused_per_channel_wt_fake_quant = _weights(
    FusedMovingAvgObsFakeQuantize, per_channel_symmetric
)
fused_wt_fake_quant_range_neg_127_to_127 = _weights(
    FusedMovingAvgObsFakeQuantize, per_tensor_symmetric, lowest=-127, eps=2**-12
)
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = _weights(
    FusedMovingAvgObsFakeQuantize, per_channel_symmetric, lowest=-127, eps=2**-12
)


def _switch(name: str, doc: str) -> Callable[[Any], None]:
    def switch(mod: Any) -> None:
        if isinstance(mod, FakeQuantizeBase):
            getattr(mod, name)()

    switch.__name__ = switch.__qualname__ = name
    switch.__doc__ = doc + " in a module that fakes quantization; for Module.apply()."
    return switch


disable_fake_quant = _switch("disable_fake_quant", "Stop rounding")
enable_fake_quant = _switch("enable_fake_quant", "Round")
disable_observer = _switch("disable_observer", "Stop observing")
enable_observer = _switch("enable_observer", "Observe")

__getattr__ = _names.attributes_of(__name__)

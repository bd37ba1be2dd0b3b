"""Ranges of quantized numbers, and the scale and zero point for a range of floats.

Example:

    low, high = calculate_qmin_qmax(None, None, False, treadle.quint8, False)      # 0, 255
    scale, zero_point = qparams_of_range(min_val, max_val, low, high, ...)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
from typing import Any, Dict, Optional, Tuple

from treadle import _C, _names, nn
from treadle._C import Tensor
from treadle._introspection.build import (
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
)
from treadle._tensor.type_info import finfo

EPS = finfo(_C.float32).eps

PER_TENSOR = (per_tensor_affine, per_tensor_symmetric)
PER_CHANNEL = (per_channel_affine, per_channel_symmetric, per_channel_affine_float_qparams)
SYMMETRIC = (per_tensor_symmetric, per_channel_symmetric)

# The range of each dtype, and that with one bit less.
_RANGES: Dict[Any, Tuple[Tuple[int, int], Tuple[int, int]]] = {
    **dict.fromkeys((_C.qint8, _C.int8), ((-128, 127), (-64, 63))),
    **dict.fromkeys((_C.quint8, _C.uint8), ((0, 255), (0, 127))),
    **dict.fromkeys((_C.qint32, _C.int32), ((-(2**31), 2**31 - 1),) * 2),
    _C.uint16: ((0, 2**16 - 1),) * 2,
    _C.int16: ((-(2**15), 2**15 - 1),) * 2,
}
# quint4x2 has no range with fewer bits.
_FOUR_BITS = ((0, 15), (0, 15))


def is_per_tensor(qscheme: Any) -> bool:
    """Whether a scheme has one scale for a tensor."""
    return qscheme in PER_TENSOR


def is_per_channel(qscheme: Any) -> bool:
    """Whether a scheme has a scale for each channel."""
    return qscheme in PER_CHANNEL


def is_quantized_dtype(dtype: Any) -> bool:
    """Whether a dtype has quantized numbers."""
    return dtype in _RANGES or dtype == _C.quint4x2


def validate_qmin_qmax(quant_min: int, quant_max: int) -> None:
    """AssertionError where the range has no zero, or is empty."""
    if not quant_min <= 0 <= quant_max or quant_min >= quant_max:
        raise AssertionError(
            "observer: expected quant_min < quant_max with 0 between them, got "
            f"{quant_min} and {quant_max}"
        )


def calculate_qmin_qmax(
    quant_min: Optional[int],
    quant_max: Optional[int],
    has_customized_qrange: bool,
    dtype: Any,
    reduce_range: bool,
) -> Tuple[int, int]:
    """The range of the quantized numbers: the given one, or that of the dtype; with `reduce_range`
    of half the width. AssertionError where the given one is wider than the dtype."""
    whole, half = _RANGES.get(dtype, _FOUR_BITS)
    if not has_customized_qrange or quant_min is None or quant_max is None:
        return half if reduce_range else whole
    widest = whole[1] - whole[0] + 1
    if dtype in _RANGES and not 0 < quant_max - quant_min + 1 <= widest:
        raise AssertionError(
            f"observer: expected a range of at most {widest} numbers for {dtype}, got "
            f"{quant_min} to {quant_max}"
        )
    return (quant_min // 2, quant_max // 2) if reduce_range else (quant_min, quant_max)


def check_min_max_valid(min_val: Tensor, max_val: Tensor) -> bool:
    """Whether anything was observed; a warning where not. AssertionError where a minimum is above
    its maximum."""
    unset = min_val.numel() == 0 or max_val.numel() == 0
    if not unset and min_val.dim() == 0:
        unset = min_val.item() == float("inf") and max_val.item() == float("-inf")
    if unset:
        warnings.warn(
            "must run observer before calling calculate_qparams. Returning default values.",
            stacklevel=3,
        )
        return False
    if bool((min_val > max_val).any()):
        raise AssertionError(f"observer: expected minima <= maxima, got {min_val} and {max_val}")
    return True


def qparams_of_range(
    min_val: Tensor,
    max_val: Tensor,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    eps: Tensor,
    has_customized_qrange: bool,
    qscheme: Any,
) -> Tuple[Tensor, Tensor]:
    """The scales and the zero points for minima and maxima, of shape (channels,), or (1,) where
    those are of no dimension. Scales are float32 and at least `eps`; zero points are integers, but
    floats under per_channel_affine_float_qparams. 1 and 0 where nothing was observed."""
    device = min_val.device
    if not check_min_max_valid(min_val, max_val):
        return _C.tensor([1.0], device=device), _C.tensor([0], device=device)
    steps = float(quant_max - quant_min)
    below, above = min_val.clamp(max=0), max_val.clamp(min=0)
    if qscheme in SYMMETRIC:
        scale = _C.maximum(_C.maximum(-below, above) / (steps / 2), eps)
        middle = 0
        if dtype in (_C.quint8, _C.uint8):
            middle = (quant_min + quant_max) // 2 if has_customized_qrange else 128
        elif dtype == _C.uint16:
            middle = 2**15
        zero_point = _C.full(below.shape, middle, dtype=_C.int64, device=device)
    elif qscheme == per_channel_affine_float_qparams:
        scale = (max_val - min_val) / steps
        scale = _C.where(scale > eps, scale, _C.ones_like(scale))
        zero_point = -min_val / scale
    else:
        scale = _C.maximum((above - below) / steps, eps)
        zero_point = quant_min - _C.round(below / scale).to(_C.int32)
        zero_point = zero_point.clamp(quant_min, quant_max)
    return scale.reshape(-1), zero_point.reshape(-1)


def get_combined_dict(default_dict: Dict, additional_dict: Dict) -> Dict:
    """Both dictionaries; the second one counts where both have a key."""
    return {**default_dict, **additional_dict}


def type_before_parametrizations(module: nn.Module) -> type:
    """The class of a module, or the one that it had before a parametrization."""
    return _names.package().nn.utils.parametrize.type_before_parametrizations(module)


def has_no_children_ignoring_parametrizations(module: nn.Module) -> bool:
    """Whether a module has no modules inside, other than parametrizations."""
    return set(module._modules) <= {"parametrizations"}


def pass_hooks_on(first: nn.Module, last: nn.Module, made: nn.Module, but: Any = ()) -> None:
    """Register the hooks before `first` and after `last` at the module that takes their place;
    those in `but` are left out."""
    for key, before in first._forward_pre_hooks.items():
        if before not in but:
            with_kwargs = key in first._forward_pre_hooks_with_kwargs
            made.register_forward_pre_hook(before, with_kwargs=with_kwargs)
    for key, after in last._forward_hooks.items():
        if after not in but:
            made.register_forward_hook(
                after,
                with_kwargs=key in last._forward_hooks_with_kwargs,
                always_call=key in last._forward_hooks_always_called,
            )


def activation_dtype(qconfig: Any) -> Any:
    """The dtype to which a QConfig quantizes activations."""
    return qconfig.activation().dtype


def weight_dtype(qconfig: Any) -> Any:
    """The dtype to which a QConfig quantizes weights."""
    return qconfig.weight().dtype


def activation_is_dynamically_quantized(qconfig: Any) -> bool:
    """Whether a QConfig chooses the range of activations anew for each call."""
    return bool(getattr(qconfig.activation(), "is_dynamic", False))


__getattr__ = _names.attributes_of(__name__)

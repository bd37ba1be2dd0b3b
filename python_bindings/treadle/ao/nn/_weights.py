"""Functions that layers with quantized weights share: how a weight is quantized, how a float layer
is checked, and how a layer keeps its numbers in a state_dict.

Example:

    quantized_weight(layer.weight, observer)          # qint8, with the scales of the observer
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

from treadle import _C, nn
from treadle._C import Tensor
from treadle._introspection.build import per_tensor_affine, per_tensor_symmetric


def check_type(what: str, mod: Any, allowed: Sequence[type]) -> None:
    """AssertionError where a module is of none of the allowed classes, or has no QConfig."""
    if type(mod) not in allowed:
        names = ", ".join(kind.__name__ for kind in allowed)
        raise AssertionError(
            f"{what}: expected a module of class {names}, got one of {type(mod).__name__}"
        )
    if getattr(mod, "qconfig", None) is None:
        raise AssertionError(f"{what}: expected a module with the attribute qconfig, got none")


def check_weight_dtype(what: str, dtype: Any, allowed: Sequence[Any]) -> None:
    """AssertionError where a QConfig asks for weights of another dtype."""
    if dtype not in allowed:
        names = " or ".join(str(kind) for kind in allowed)
        raise AssertionError(f"{what}: expected weights of {names}, got {dtype}")


def qparams_of(observer: Any) -> Tuple[float, int]:
    """The scale and the zero point of an observer of whole tensors, as numbers. AssertionError for
    an observer of channels."""
    scale, zero_point = observer.calculate_qparams()
    if scale.numel() != 1:
        raise AssertionError(
            f"{type(observer).__name__}: expected one scale for activations, got {scale.numel()}"
        )
    return float(scale), int(zero_point)


def qparams(mod: Any) -> Tuple[float, int]:
    """The scale and the zero point of what a prepared module gives back."""
    observer: Any = getattr(mod, "activation_post_process", None)
    if not hasattr(observer, "calculate_qparams"):
        raise AssertionError(
            f"{type(mod).__name__}: expected an observer in activation_post_process, got "
            f"{type(observer).__name__}; call prepare() first"
        )
    return qparams_of(observer)


def quantized_weight(weight: Tensor, observer: Any) -> Tensor:
    """A weight as a quantized tensor of the observer's dtype, with the scales for what the observer
    saw: one, or one for each channel."""
    scale, zero_point = observer.calculate_qparams()
    weight = weight.detach().float()
    if observer.qscheme in (per_tensor_affine, per_tensor_symmetric):
        return _C.quantize_per_tensor(weight, float(scale), int(zero_point), observer.dtype)
    return _C.quantize_per_channel(
        weight, scale.to(_C.float64), zero_point.to(_C.int64), observer.ch_axis, observer.dtype
    )


def float_bias(mod: Any) -> Any:
    """The bias of a layer in float32, without its history; None where it has none."""
    return None if mod.bias is None else mod.bias.detach().float()


class WithState(nn.Module):
    """A module whose numbers and quantized tensors are plain attributes, which its state_dict has.

    `_numbers` names attributes with a number, which are saved as tensors of no dimension, and
    `_kept` those that are saved as they are. `_attributes` has the attributes whose names differ
    from those in the state_dict.
    """

    _numbers: Tuple[Tuple[str, type], ...] = ()
    _kept: Tuple[str, ...] = ()
    _attributes: Dict[str, str] = {}

    def _save_to_state_dict(self, destination: Dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name, _ in self._numbers:
            destination[prefix + name] = _C.tensor(getattr(self, name))
        for name in self._kept:
            destination[prefix + name] = getattr(self, self._attributes.get(name, name))

    def _load_from_state_dict(
        self,
        state_dict: Dict,
        prefix: str,
        local_metadata: Dict,
        strict: bool,
        missing_keys: List[str],
        unexpected_keys: List[str],
        error_msgs: List[str],
    ) -> None:
        kinds = {**dict(self._numbers), **dict.fromkeys(self._kept)}
        for name, kind in kinds.items():
            key = prefix + name
            if key not in state_dict:
                missing_keys.append(key)
                continue
            value = state_dict[key]
            try:
                if kind is None:
                    self._check_loaded(name, value)
                value = value if kind is None else kind(value)
                setattr(self, self._attributes.get(name, name), value)
            except (RuntimeError, TypeError, ValueError) as error:
                error_msgs.append(f"{key}: {error}")
        own = {prefix + name for name in kinds}
        others = {k: v for k, v in state_dict.items() if k not in own}
        super()._load_from_state_dict(
            others, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def _check_loaded(self, name: str, value: Any) -> None:
        """Raise where a value from outside does not fit the one there is."""
        now = getattr(self, self._attributes.get(name, name))
        if isinstance(now, Tensor):
            check_shape(value, now.shape)


def check_shape(value: Any, shape: Sequence[int]) -> None:
    """ValueError for what is no tensor of a shape."""
    got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
    if got != tuple(shape):
        raise ValueError(f"expected a tensor of shape {tuple(shape)}, got {got}")


def empty_weight(what: str, shape: Sequence[int], dtype: Any, allowed: Sequence[Any]) -> Tensor:
    """The weight of a layer that nothing was loaded into: zeros. AssertionError for a dtype that is
    not allowed."""
    check_weight_dtype(what, dtype, allowed)
    zeros = _C.zeros(shape)
    return zeros.half() if dtype == _C.float16 else _C.quantize_per_tensor(zeros, 1.0, 0, dtype)

"""Bounds on gradients, applied between backward() and step()."""

from __future__ import annotations

import math
from typing import Iterable, Optional, Union

import treadle
from treadle import Tensor


def _gradients(parameters: Union[Tensor, Iterable[Tensor]]) -> list[Tensor]:
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def get_total_norm(
    tensors: Union[Tensor, Iterable[Tensor]],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: Optional[bool] = None,
) -> Tensor:
    """The norm of all elements of all tensors taken together."""
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return treadle.tensor(0.0)
    with treadle.no_grad():
        if math.isinf(norm_type):
            total = treadle.stack([tensor.abs().max() for tensor in tensors]).max()
        elif norm_type == 2.0:
            total = treadle.stack([(tensor * tensor).sum() for tensor in tensors]).sum().sqrt()
        else:
            powers = [tensor.abs().pow(norm_type).sum() for tensor in tensors]
            total = treadle.stack(powers).sum().pow(1.0 / norm_type)
        if error_if_nonfinite and not math.isfinite(total.item()):
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from `parameters` is "
                "non-finite, so it cannot be clipped. To disable this error and scale the "
                "gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
            )
        return total


def clip_grad_norm_(
    parameters: Union[Tensor, Iterable[Tensor]],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: Optional[bool] = None,
) -> Tensor:
    """Scale all gradients together so that their norm is at most max_norm; returns the norm
    before."""
    gradients = _gradients(parameters)
    total = get_total_norm(gradients, norm_type, error_if_nonfinite)
    with treadle.no_grad():
        scale = treadle.clamp(float(max_norm) / (total + 1e-6), max=1.0)
        for gradient in gradients:
            gradient.mul_(scale.to(gradient.dtype))
    return total


def clip_grad_value_(
    parameters: Union[Tensor, Iterable[Tensor]], clip_value: float, foreach: Optional[bool] = None
) -> None:
    """Bring every element of every gradient within [-clip_value, clip_value]."""
    clip_value = float(clip_value)
    with treadle.no_grad():
        for gradient in _gradients(parameters):
            gradient.clamp_(min=-clip_value, max=clip_value)

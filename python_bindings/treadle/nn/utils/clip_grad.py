"""Bounds on gradients, applied between backward() and step()."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import math
import warnings
from typing import Iterable, Optional, Union

from treadle import _C, linalg
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad


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
    """The norm of all elements of all tensors taken together, on the device of the first.

    Sums are as wide as those of `linalg.vector_norm`: elements of float16 are not squared in
    float16. `foreach` does not change the result.
    """
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return _C.tensor(0.0)
    with no_grad():
        device = tensors[0].device
        norms = [n.to(device) for n in _C._foreach_norm(list(map(_values, tensors)), norm_type)]
        widest = functools.reduce(_C.promote_types, (norm.dtype for norm in norms))
        total = linalg.vector_norm(_C.stack([norm.to(widest) for norm in norms]), norm_type)
        if error_if_nonfinite and not math.isfinite(total.item()):
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from `parameters` is "
                "non-finite, so it cannot be clipped. To disable this error and scale the "
                "gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
            )
        return total


def _values(tensor: Tensor) -> Tensor:
    """The elements that are stored: all others of a sparse tensor are zero."""
    return tensor.coalesce().values() if tensor.is_sparse else tensor


def clip_grads_with_norm_(
    parameters: Union[Tensor, Iterable[Tensor]],
    max_norm: float,
    total_norm: Tensor,
    foreach: Optional[bool] = None,
) -> None:
    """Scale all gradients by max_norm / total_norm where that is less than one. `foreach` does not
    change the result."""
    with no_grad():
        scale = _C.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
        gradients = _gradients(parameters)
        by_device: dict[_C.device, list[Tensor]] = {}
        if all(gradient.is_cpu for gradient in gradients):
            # As most often: said without looking at each of many gradients for long.
            by_device = {_C.device("cpu"): gradients} if gradients else {}
        else:
            for gradient in gradients:
                by_device.setdefault(gradient.device, []).append(gradient)
        for device, there in by_device.items():
            _C._foreach_mul_(there, scale.to(device))


def clip_grad_norm_(
    parameters: Union[Tensor, Iterable[Tensor]],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: Optional[bool] = None,
) -> Tensor:
    """Scale all gradients together so that their norm is at most max_norm; returns the norm
    before. `foreach` does not change the result."""
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    total = get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_value_(
    parameters: Union[Tensor, Iterable[Tensor]], clip_value: float, foreach: Optional[bool] = None
) -> None:
    """Bring every element of every gradient within [-clip_value, clip_value]. `foreach` does not
    change the result."""
    clip_value = float(clip_value)
    with no_grad():
        for gradient in _gradients(parameters):
            gradient.clamp_(min=-clip_value, max=clip_value)


def clip_grad_norm(
    parameters: Union[Tensor, Iterable[Tensor]],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: Optional[bool] = None,
) -> Tensor:
    """The older name of clip_grad_norm_(), with a FutureWarning."""
    warnings.warn(
        "`nn.utils.clip_grad_norm` is the older name of `nn.utils.clip_grad_norm_`",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)

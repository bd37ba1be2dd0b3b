"""Normalisation: values shifted and scaled to mean 0 and variance 1 over a batch, a layer, or to
unit length."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Optional, Sequence, Union

from treadle import _C
from treadle._C import Tensor

from .._operators import ops


def batch_norm(
    input: Tensor,
    running_mean: Optional[Tensor],
    running_var: Optional[Tensor],
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel (dimension 1) over all others; in training the running statistics are
    updated."""
    if training:
        _require_several_values(input)
    return ops.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps, False
    )


def _require_several_values(input: Tensor) -> None:
    """A channel with one value has no variance."""
    size = tuple(input.shape)
    if len(size) >= 2 and input.numel() == size[1]:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {input.shape}"
        )


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise over the last dimensions, whose sizes are normalized_shape."""
    return ops.layer_norm(input, normalized_shape, weight, bias, eps, False)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each group of channels of each sample."""
    if input.dim() < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.dim()}"
        )
    return ops.group_norm(input, num_groups, weight, bias, eps, False)


def instance_norm(
    input: Tensor,
    running_mean: Optional[Tensor] = None,
    running_var: Optional[Tensor] = None,
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel of each sample, by its own statistics or the running ones."""
    if use_input_stats:
        _require_several_places(input)
    return ops.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False
    )


def _require_several_places(input: Tensor) -> None:
    """A channel of one sample with one value has no variance."""
    size = tuple(input.shape)
    if len(size) >= 2 and all(n == 1 for n in size[2:]):
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {input.shape}"
        )


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Optional[Tensor] = None,
    eps: Optional[float] = None,
) -> Tensor:
    """Divide by the root of the mean square over the last dimensions."""
    return ops.rms_norm(input, normalized_shape, weight, eps)


def normalize(
    input: Tensor,
    p: float = 2.0,
    dim: Union[int, tuple[int, ...]] = 1,
    eps: float = 1e-12,
    out: Optional[Tensor] = None,
) -> Tensor:
    """Divide by the p-norm along `dim`, or by eps where that is larger."""
    norm = ops.linalg_vector_norm(input, p, dim, True).clamp(min=eps).expand(input.shape)
    return _C.div(input, norm) if out is None else _C.div(input, norm, out=out)

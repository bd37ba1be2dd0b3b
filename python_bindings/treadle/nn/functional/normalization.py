"""Normalisation: values shifted and scaled to mean 0 and variance 1 over a batch, a layer, or to
unit length."""

from __future__ import annotations

from typing import Optional, Sequence

from treadle import Tensor

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


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divide by the p-norm along `dim`, or by eps where that is larger."""
    norm = input.abs().pow(p).sum(dim, keepdim=True).pow(1.0 / p)
    return input / norm.clamp(min=eps)

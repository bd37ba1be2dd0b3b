"""Losses: how far a prediction is from its target. All combine a batch as `reduction` says."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
from typing import Optional

from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad

from .._operators import ops
from . import _reduction


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    ignore_index: int = -100,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy between scores (before softmax) and classes, or probabilities of classes."""
    number = _reduction.code(reduction, size_average, reduce)
    return ops.cross_entropy_loss(input, target, weight, number, ignore_index, label_smoothing)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    ignore_index: int = -100,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log probability that `input` gives to each target class."""
    number = _reduction.code(reduction, size_average, reduce)
    return ops.nll_loss(input, target, weight, number, ignore_index)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    weight: Optional[Tensor] = None,
) -> Tensor:
    """The squared difference."""
    _warn_of_broadcast(input, target)
    reduction = _reduction.name(reduction, size_average, reduce)
    if weight is None:
        return ops.mse_loss(input, target, _reduction.code(reduction))
    return _weighted((input - target).pow(2), weight, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    weight: Optional[Tensor] = None,
) -> Tensor:
    """The absolute difference."""
    _warn_of_broadcast(input, target)
    reduction = _reduction.name(reduction, size_average, reduce)
    if weight is None:
        return ops.l1_loss(input, target, _reduction.code(reduction))
    return _weighted((input - target).abs(), weight, reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Quadratic where the difference is below beta, linear above."""
    _warn_of_broadcast(input, target)
    number = _reduction.code(reduction, size_average, reduce)
    return ops.smooth_l1_loss(input, target, number, beta)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Optional[Tensor] = None,
) -> Tensor:
    """Quadratic where the difference is below delta, linear with slope delta above."""
    _warn_of_broadcast(input, target)
    if weight is None:
        return ops.huber_loss(input, target, _reduction.code(reduction), delta)
    return _weighted(ops.huber_loss(input, target, 0, delta), weight, reduction)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Divergence of the distribution `target` from the one whose logarithms are `input`."""
    reduction = _reduction.name(reduction, size_average, reduce)
    if reduction != "batchmean":
        return ops.kl_div(input, target, _reduction.code(reduction), log_target=log_target)
    total = ops.kl_div(input, target, _reduction.code("sum"), log_target=log_target)
    return total / input.shape[0] if input.dim() else total


def _weighted(values: Tensor, weight: Tensor, reduction: str) -> Tensor:
    """Combine with a weight for each element; the mean is over the weights."""
    weighted = values * weight
    if reduction == "mean":
        return weighted.sum() / weight.expand(weighted.shape).sum()
    return _reduction.apply(weighted, reduction)


def _warn_of_broadcast(input: Tensor, target: Tensor) -> None:
    if tuple(input.shape) != tuple(target.shape):
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}). This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=3,
        )


def _require_same_size(name: str, input: Tensor, target: Tensor) -> None:
    if tuple(input.shape) != tuple(target.shape):
        raise ValueError(
            f"{name}: expected a target of the input's size {tuple(input.shape)}, got "
            f"{tuple(target.shape)}"
        )


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    """Cross entropy between probabilities and targets in [0, 1]; logarithms are kept above -100."""
    _require_same_size("binary_cross_entropy", input, target)
    with no_grad():
        if input.numel() and not bool(((input >= 0) & (input <= 1)).all()):
            raise RuntimeError(
                "binary_cross_entropy: expected every element of input to be between 0 and 1"
            )
    number = _reduction.code(reduction, size_average, reduce)
    return ops.binary_cross_entropy(input, target, weight, number)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    pos_weight: Optional[Tensor] = None,
) -> Tensor:
    """The same for scores before the sigmoid, computed so that large scores do not overflow."""
    _require_same_size("binary_cross_entropy_with_logits", input, target)
    number = _reduction.code(reduction, size_average, reduce)
    return ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)

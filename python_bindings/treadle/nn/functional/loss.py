"""Losses: how far a prediction is from its target. All combine a batch as `reduction` says."""

from __future__ import annotations

import math
import warnings
from typing import Optional

import treadle
from treadle import Tensor

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
    difference = (input - target).abs()
    return (
        _reduction.apply(difference, reduction)
        if weight is None
        else _weighted(difference, weight, reduction)
    )


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
    with treadle.no_grad():
        if input.numel() and not bool(((input >= 0) & (input <= 1)).all()):
            raise RuntimeError(
                "binary_cross_entropy: expected every element of input to be between 0 and 1"
            )
    losses = (target - 1.0) * _bounded_log(1.0 - input) - target * _bounded_log(input)
    if weight is not None:
        losses = losses * weight
    return _reduction.apply(losses, _reduction.name(reduction, size_average, reduce))


def _bounded_log(probability: Tensor) -> Tensor:
    """max(log(p), -100), with gradient 0 where the bound holds; the derivative of log there would
    be 0 * inf."""
    bounded = probability < math.exp(-100.0)
    inside = treadle.where(bounded, treadle.ones_like(probability), probability)
    return treadle.log(inside).masked_fill(bounded, -100.0)


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
    # log(1 + exp(-x)) = max(-x, 0) + log(1 + exp(-|x|)), whose exponential never exceeds 1.
    log_sum = treadle.clamp(-input, min=0.0) + treadle.log(1.0 + treadle.exp(-input.abs()))
    if pos_weight is None:
        losses = (1.0 - target) * input + log_sum
    else:
        losses = (1.0 - target) * input + (1.0 + (pos_weight - 1.0) * target) * log_sum
    if weight is not None:
        losses = losses * weight
    return _reduction.apply(losses, _reduction.name(reduction, size_average, reduce))

"""Activation functions that bend, clip or shrink: the rectifier family beyond relu, the soft and
hard curves, and the gated linear unit."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
import warnings

from treadle import _C
from treadle._C import Tensor

from .._operators import ops
from .activation import softmax

# The operators themselves.
threshold_ = ops.threshold_
hardtanh_ = ops.hardtanh_
elu_ = ops.elu_
selu_ = ops.selu_
celu_ = ops.celu_
prelu = ops.prelu
rrelu_ = ops.rrelu_
hardshrink = ops.hardshrink
softshrink = ops.softshrink
softplus = ops.softplus
logsigmoid = ops.log_sigmoid


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where it is above the threshold, else value."""
    operator = ops.threshold_ if inplace else ops.threshold
    return operator(input, threshold, value)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """x limited to [min_val, max_val], which are cut to integers, of uint8 to none below 0, for a
    tensor of integers. ValueError where min_val > max_val."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if not (input.is_floating_point() or input.is_complex() or input.is_quantized):
        least = 0 if input.dtype == _C.uint8 else -math.inf
        min_val, max_val = max(int(min_val), least), max(int(max_val), least)
    operator = ops.hardtanh_ if inplace else ops.hardtanh
    return operator(input, min_val, max_val)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """x limited to [0, 6]."""
    return ops.relu6_(input) if inplace else ops.relu6(input)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where positive, else alpha * (exp(x) - 1)."""
    return ops.elu_(input, alpha) if inplace else ops.elu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """elu with the constants that keep activations at mean 0 and variance 1."""
    return ops.selu_(input) if inplace else ops.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where positive, else alpha * (exp(x / alpha) - 1)."""
    return ops.celu_(input, alpha) if inplace else ops.celu(input, alpha)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """x where positive, else x times a slope in [lower, upper], by chance while training."""
    operator = ops.rrelu_ if inplace else ops.rrelu
    return operator(input, lower, upper, training)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the sigmoid of the second."""
    return ops.glu(input, dim)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - input.tanh()


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """x / 6 + 1 / 2, limited to [0, 1]."""
    return ops.hardsigmoid_(input) if inplace else ops.hardsigmoid(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * hardsigmoid(x)."""
    return ops.hardswish_(input) if inplace else ops.hardswish(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x))."""
    return ops.mish_(input) if inplace else ops.mish(input)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A sample from the distribution over `dim` with these logits, smoothed so that it has a
    gradient; with `hard`, a single one whose gradient is that of the smooth sample."""
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -_C.empty_like(logits).exponential_().log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    chosen = _C.zeros_like(logits).scatter_(dim, index, 1.0)
    return chosen - soft.detach() + soft


__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "glu",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "logsigmoid",
    "mish",
    "prelu",
    "relu6",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "softplus",
    "softshrink",
    "softsign",
    "tanhshrink",
    "threshold",
    "threshold_",
]

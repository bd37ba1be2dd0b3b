"""One layer from two that follow each other, for evaluation: a normalisation by running statistics
goes into the weights of the layer before it."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from typing import Any, Optional, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.nn.parameter import Parameter


def _check(what: str, layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError(f"{what}: expected modules in evaluation mode; call eval() first")
    if bn.running_mean is None:
        raise AssertionError(
            f"{what}: expected a normalisation with track_running_stats=True, got {bn}"
        )


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution that does what `conv` and after it `bn` do. AssertionError in training mode,
    and for a normalisation without running statistics."""
    _check("fuse_conv_bn_eval", conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight,
        fused.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
        transpose,
    )
    return fused


def _fused(
    weight: Tensor,
    bias: Optional[Tensor],
    mean: Tensor,
    var: Tensor,
    eps: float,
    scale: Optional[Tensor],
    shift: Optional[Tensor],
    shape: Tuple[int, ...],
) -> Tuple[Parameter, Parameter]:
    dtypes = weight.dtype, weight.dtype if bias is None else bias.dtype
    bias = _C.zeros_like(mean) if bias is None else bias
    factor = _C.rsqrt(var + eps) * (1.0 if scale is None else scale)
    new_weight = (weight * factor.reshape(shape)).to(dtypes[0])
    new_bias = ((bias - mean) * factor + (0.0 if shift is None else shift)).to(dtypes[1])
    return (
        Parameter(new_weight.detach(), weight.requires_grad),
        Parameter(new_bias.detach(), bias.requires_grad),
    )


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Optional[Tensor],
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Optional[Tensor],
    bn_b: Optional[Tensor],
    transpose: bool = False,
) -> Tuple[Parameter, Parameter]:
    """Weight and bias of that convolution."""
    rest = [1] * (conv_w.dim() - 2)
    shape = (1, -1, *rest) if transpose else (-1, 1, *rest)
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A linear layer that does what `linear` and after it `bn` do. AssertionError in training mode,
    where `bn` has no running statistics, and where it is for another number of features, unless it
    is for one."""
    _check("fuse_linear_bn_eval", linear, bn)
    if bn.num_features not in (1, linear.out_features):
        raise AssertionError(
            f"fuse_linear_bn_eval: expected a normalisation of {linear.out_features} features or "
            f"one, got one of {bn.num_features}"
        )
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Optional[Tensor],
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Optional[Tensor],
    bn_b: Optional[Tensor],
) -> Tuple[Parameter, Parameter]:
    """Weight and bias of that layer."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, (-1, 1))


__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]

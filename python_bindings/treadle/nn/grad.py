"""The gradients of convolutions, as functions of their own."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Sequence

from treadle import autograd
from treadle._C import Tensor
from treadle.autograd.grad_mode import enable_grad
from treadle.nn import functional as F  # noqa: N812


def _gradient(
    convolution: Callable[..., Tensor],
    wanted: int,
    tensors: Sequence[Tensor],
    settings: Any,
    grad_output: Tensor,
) -> Tensor:
    with enable_grad():
        given = [t.detach().requires_grad_(i == wanted) for i, t in enumerate(tensors)]
        result = convolution(given[0], given[1], None, *settings)
        if result.shape != grad_output.shape:
            raise ValueError(
                f"{convolution.__name__}: expected grad_output of shape {tuple(result.shape)}, got "
                f"{tuple(grad_output.shape)}"
            )
        return autograd.grad(result, given[wanted], grad_output)[0]


def _pair(convolution: Callable[..., Tensor], name: str) -> Any:
    def of_input(
        input_size: Sequence[int],
        weight: Tensor,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        tensors = (grad_output.new_empty(1).expand(tuple(input_size)), weight)
        settings = (stride, padding, dilation, groups)
        return _gradient(convolution, 0, tensors, settings, grad_output)

    def of_weight(
        input: Tensor,
        weight_size: Sequence[int],
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        tensors = (input, grad_output.new_empty(1).expand(tuple(weight_size)))
        settings = (stride, padding, dilation, groups)
        return _gradient(convolution, 1, tensors, settings, grad_output)

    for function, what in ((of_input, "input"), (of_weight, "weight")):
        function.__name__ = function.__qualname__ = f"{name}_{what}"
        function.__doc__ = f"The gradient of {name}'s {what}, from that of its result."
    return of_input, of_weight


conv1d_input, conv1d_weight = _pair(F.conv1d, "conv1d")
conv2d_input, conv2d_weight = _pair(F.conv2d, "conv2d")
conv3d_input, conv3d_weight = _pair(F.conv3d, "conv3d")

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]

"""Muon: steps along the momentum of a matrix, made orthogonal."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterable, Optional, Union

from treadle import _C
from treadle._C import Tensor

from .optimizer import (
    Optimizer,
    check_lr,
    check_not_negative,
    number,
    step_over,
    zeros_like,
)

_ADJUSTMENTS = ("original", "match_rms_adamw", "spectral_unclamped")


def orthogonal(
    matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Tensor:
    """A matrix near the orthogonal one that `matrix` is closest to, in bfloat16: the polynomial
    a * x + b * x^3 + c * x^5, applied `steps` times, brings all singular values near 1."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if matrix.dim() != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    x = matrix.bfloat16()
    tall = x.size(0) > x.size(1)
    x = x.T if tall else x
    x = x / x.norm().clamp(min=eps)  # now no singular value is above 1
    for _ in range(steps):
        gram = x @ x.T
        x = _C.addmm(x, _C.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def _adjusted(lr: float, adjustment: Optional[str], shape: Any) -> float:
    """The learning rate for a matrix of the shape, so that steps of all shapes are alike."""
    rows, columns = shape
    if adjustment is None or adjustment == "original":
        return lr * max(1, rows / columns) ** 0.5
    if adjustment == "match_rms_adamw":
        return lr * 0.2 * max(rows, columns) ** 0.5
    return lr * (rows / columns) ** 0.5


class Muon(Optimizer):
    """param = (1 - lr * weight_decay) * param - adjusted(lr) * orthogonal(momentum), where the
    momentum is a running mean of gradients, and with `nesterov` looks ahead. For the matrices of
    hidden layers; other parameters are for another optimiser.

    Jordan (2024). `ns_coefficients` and `ns_steps` are those of the iteration that makes the
    momentum orthogonal, `eps` the least norm that it divides by. `adjust_lr_fn` says how the
    learning rate follows from the shape: "original", "match_rms_adamw" or "spectral_unclamped".
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: Optional[str] = None,
    ) -> None:
        check_lr("Muon", lr)
        check_not_negative("Muon", momentum=momentum, weight_decay=weight_decay)
        if adjust_lr_fn is not None and adjust_lr_fn not in _ADJUSTMENTS:
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                if param.dim() != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: "
                        f"{param.size()}"
                    )

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        for param in params:
            if param.is_complex():
                raise RuntimeError("Muon does not support complex parameters")
        states = [self.state[param] for param in params]
        for param, state in zip(params, states):
            if "momentum_buffer" not in state:
                state["momentum_buffer"] = zeros_like(param)
        self.advance(group, params, grads, states)

    @staticmethod
    def advance(
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Tensor]],
    ) -> None:
        """Take a step with these settings and states."""
        lr, momentum = number(group["lr"]), group["momentum"]
        for param, grad, state in zip(params, grads, states):
            if grad.dim() != 2:
                raise ValueError("Param gradient must be a 2D matrix")
            velocity = state["momentum_buffer"]
            velocity.lerp_(grad, 1 - momentum)
            direction = grad.lerp(velocity, momentum) if group["nesterov"] else velocity
            direction = orthogonal(
                direction, group["ns_coefficients"], group["ns_steps"], group["eps"]
            )
            param.mul_(1 - lr * group["weight_decay"])
            rate = _adjusted(lr, group["adjust_lr_fn"], param.shape)
            param.add_(direction.to(param.dtype), alpha=-rate)


def muon(
    params: list[Tensor],
    grads: list[Tensor],
    muon_momentum_bufs: list[Tensor],
    *,
    foreach: Optional[bool] = None,
    lr: Union[float, Tensor],
    weight_decay: float,
    momentum: float,
    nesterov: bool,
    ns_coefficients: tuple[float, float, float],
    ns_steps: int,
    eps: float,
    adjust_lr_fn: Optional[str],
    has_complex: bool,
) -> None:
    """A step of `Muon` over lists of parameters, gradients and states, which are changed in
    place."""
    if foreach:
        raise RuntimeError("Foreach is not supported for Muon yet")
    if has_complex:
        raise ValueError("Complex parameters are not supported")
    settings = {
        "lr": lr,
        "weight_decay": weight_decay,
        "momentum": momentum,
        "nesterov": nesterov,
        "ns_coefficients": ns_coefficients,
        "ns_steps": ns_steps,
        "eps": eps,
        "adjust_lr_fn": adjust_lr_fn,
    }
    step_over(Muon.advance, settings, params, grads, momentum_buffer=muon_momentum_bufs)

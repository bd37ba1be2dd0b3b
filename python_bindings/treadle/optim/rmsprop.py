"""RMSprop: steps divided by a running root mean square of the gradient."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterable, Optional, Union

from treadle._C import Tensor

from .optimizer import PerParameter, check_lr, check_not_negative, number, step_over, zeros_like


class RMSprop(PerParameter):
    """param -= lr * gradient / (sqrt(mean square) + eps), or with `momentum` a velocity of such
    steps; `centered` takes the square of the mean off the mean square.

    Tieleman & Hinton (2012); Graves (2013) for `centered`.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Union[float, Tensor] = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: Optional[bool] = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr("RMSprop", lr)
        check_not_negative(
            "RMSprop", eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha
        )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        state = {"square_avg": zeros_like(param)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(param)
        if group["centered"]:
            state["grad_avg"] = zeros_like(param)
        return state

    @staticmethod
    def change(
        param: Tensor, grad: Tensor, state: dict[str, Tensor], group: dict[str, Any]
    ) -> None:
        lr, alpha, square = number(group["lr"]), group["alpha"], state["square_avg"]
        square.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"]
            mean.lerp_(grad, 1 - alpha)
            square = square.addcmul(mean, mean, value=-1)
        scale = square.sqrt().add(group["eps"])
        if group["momentum"] > 0:
            velocity = state["momentum_buffer"]
            velocity.mul_(group["momentum"]).addcdiv_(grad, scale)
            param.add_(velocity, alpha=-lr)
        else:
            param.addcdiv_(grad, scale, value=-lr)


def rmsprop(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor],
    momentum_buffer_list: list[Tensor],
    state_steps: list[Tensor],
    foreach: Optional[bool] = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: Union[float, Tensor],
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """A step of `RMSprop` over lists of parameters, gradients and states, all changed in place.
    `foreach` and `capturable` do not change the numbers."""
    settings = {
        "lr": lr,
        "alpha": alpha,
        "eps": eps,
        "weight_decay": weight_decay,
        "momentum": momentum,
        "centered": centered,
        "maximize": maximize,
    }
    step_over(
        RMSprop.advance,
        settings,
        params,
        grads,
        square_avg=square_avgs,
        grad_avg=grad_avgs,
        momentum_buffer=momentum_buffer_list,
        step=state_steps,
    )

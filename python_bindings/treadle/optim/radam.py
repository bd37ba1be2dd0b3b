"""RAdam: Adam that goes without the mean square until enough gradients were seen to know it."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterable, Optional, Union

from treadle._C import Tensor

from .optimizer import (
    PerParameter,
    check_adam,
    number,
    step_over,
    zeros_like,
)


class RAdam(PerParameter):
    """Adam's step times a factor that grows to 1 with the number of gradients in the mean square;
    up to five of them (the first steps) the step is lr * mean.

    Liu et al. (2020).
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Union[float, Tensor] = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: Optional[bool] = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_adam("RAdam", lr, betas, eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        return {"exp_avg": zeros_like(param), "exp_avg_sq": zeros_like(param)}

    @staticmethod
    def change(
        param: Tensor, grad: Tensor, state: dict[str, Tensor], group: dict[str, Any]
    ) -> None:
        lr, (beta1, beta2), step = number(group["lr"]), group["betas"], state["step"].item()
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        rate = lr / (1 - beta1**step)
        correction = 1 - beta2**step
        # How many gradients the mean square is made of, in the end and now.
        most = 2 / (1 - beta2) - 1
        now = most - 2 * step * beta2**step / correction
        if now > 5.0:
            rectified = (now - 4) * (now - 2) * most / ((most - 4) * (most - 2) * now)
            scale = square.sqrt().add(group["eps"])
            param.addcdiv_(mean, scale, value=-rate * (rectified * correction) ** 0.5)
        else:
            param.add_(mean, alpha=-rate)


def radam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: Optional[bool] = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    eps: float,
) -> None:
    """A step of `RAdam` over lists of parameters, gradients and states, which are changed in place.
    `foreach` and `capturable` do not change the numbers."""
    settings = {
        "lr": lr,
        "weight_decay": weight_decay,
        "eps": eps,
        "decoupled_weight_decay": decoupled_weight_decay,
        "maximize": maximize,
        "betas": (beta1, beta2),
    }
    step_over(
        RAdam.advance,
        settings,
        params,
        grads,
        exp_avg=exp_avgs,
        exp_avg_sq=exp_avg_sqs,
        step=state_steps,
    )

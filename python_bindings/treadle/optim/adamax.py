"""Adamax: Adam with the largest gradient instead of the mean square."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterable, Optional, Union

from treadle import _C
from treadle._C import Tensor

from .optimizer import (
    PerParameter,
    check_adam,
    number,
    step_over,
    zeros_like,
)


class Adamax(PerParameter):
    """param -= lr / (1 - beta1^t) * mean / largest, where
    largest = max(beta2 * largest, |gradient| + eps).

    Kingma & Ba (2015), section 7.1.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Union[float, Tensor] = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: Optional[bool] = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_adam("Adamax", lr, betas, eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        return {"exp_avg": zeros_like(param), "exp_inf": zeros_like(param)}

    @staticmethod
    def change(
        param: Tensor, grad: Tensor, state: dict[str, Tensor], group: dict[str, Any]
    ) -> None:
        beta1, beta2 = group["betas"]
        mean, largest = state["exp_avg"], state["exp_inf"]
        mean.lerp_(grad, 1 - beta1)
        largest.copy_(_C.maximum(largest * beta2, grad.abs() + group["eps"]))
        rate = number(group["lr"]) / (1 - beta1 ** state["step"].item())
        param.addcdiv_(mean, largest, value=-rate)


def adamax(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_infs: list[Tensor],
    state_steps: list[Tensor],
    foreach: Optional[bool] = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: Union[float, Tensor],
    weight_decay: float,
) -> None:
    """A step of `Adamax` over lists of parameters, gradients and states, all changed in place.
    `foreach` and `capturable` do not change the numbers."""
    settings = {
        "eps": eps,
        "lr": lr,
        "weight_decay": weight_decay,
        "maximize": maximize,
        "betas": (beta1, beta2),
    }
    step_over(
        Adamax.advance,
        settings,
        params,
        grads,
        exp_avg=exp_avgs,
        exp_inf=exp_infs,
        step=state_steps,
    )

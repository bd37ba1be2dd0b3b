"""Adamax: Adam with the largest gradient instead of the mean square."""

from __future__ import annotations

from typing import Any, Iterable, Optional, Union

import treadle
from treadle import Tensor

from .optimizer import (
    PerParameter,
    check_adam,
    number,
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

    def change(
        self, param: Tensor, grad: Tensor, state: dict[str, Tensor], group: dict[str, Any]
    ) -> None:
        beta1, beta2 = group["betas"]
        mean, largest = state["exp_avg"], state["exp_inf"]
        mean.lerp_(grad, 1 - beta1)
        largest.copy_(treadle.maximum(largest * beta2, grad.abs() + group["eps"]))
        rate = number(group["lr"]) / (1 - beta1 ** state["step"].item())
        param.addcdiv_(mean, largest, value=-rate)

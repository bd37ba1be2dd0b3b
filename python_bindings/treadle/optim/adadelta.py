"""Adadelta: steps whose size is that of the steps before."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterable, Optional, Union

from treadle._C import Tensor

from .optimizer import (
    PerParameter,
    check_lr,
    check_not_negative,
    check_setting,
    number,
    step_over,
    zeros_like,
)


class Adadelta(PerParameter):
    """param -= lr * gradient * rms(steps before) / rms(gradients), with running root mean squares
    that keep `rho` of what they were.

    Zeiler (2012).
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Union[float, Tensor] = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: Optional[bool] = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr("Adadelta", lr)
        check_setting("Adadelta", "rho value", rho, 0.0 <= rho <= 1.0, "0 <= rho <= 1")
        check_not_negative("Adadelta", eps=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        return {"square_avg": zeros_like(param), "acc_delta": zeros_like(param)}

    @staticmethod
    def change(
        param: Tensor, grad: Tensor, state: dict[str, Tensor], group: dict[str, Any]
    ) -> None:
        rho, eps = group["rho"], group["eps"]
        square, moved = state["square_avg"], state["acc_delta"]
        square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        delta = moved.add(eps).sqrt() / square.add(eps).sqrt() * grad
        moved.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        param.add_(delta, alpha=-number(group["lr"]))


def adadelta(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    state_steps: list[Tensor],
    capturable: bool = False,
    foreach: Optional[bool] = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: Union[float, Tensor],
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """A step of `Adadelta` over lists of parameters, gradients and states, all changed in place.
    `foreach` and `capturable` do not change the numbers."""
    settings = {
        "lr": lr,
        "rho": rho,
        "eps": eps,
        "weight_decay": weight_decay,
        "maximize": maximize,
    }
    step_over(
        Adadelta.advance,
        settings,
        params,
        grads,
        square_avg=square_avgs,
        acc_delta=acc_deltas,
        step=state_steps,
    )

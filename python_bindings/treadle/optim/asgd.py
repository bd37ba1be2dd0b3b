"""ASGD: gradient descent that keeps the average of where it was."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterable, Optional, Union

from treadle._C import Tensor

from .optimizer import (
    PerParameter,
    check_lr,
    check_not_negative,
    number,
    step_count,
    step_over,
    zeros_like,
)


class ASGD(PerParameter):
    """param = (1 - lambd * eta) * param - eta * gradient, where eta = lr / (1 + lambd * lr * t) **
    alpha falls with the number of steps. The state holds in "ax" the average of the parameter
    since step `t0`, and until then the parameter.

    Polyak & Juditsky (1992).
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Union[float, Tensor] = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: Optional[bool] = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr("ASGD", lr)
        check_not_negative("ASGD", weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        return {
            "eta": step_count(number(group["lr"])),
            "mu": step_count(1.0),
            "ax": zeros_like(param),
        }

    @staticmethod
    def change(
        param: Tensor, grad: Tensor, state: dict[str, Tensor], group: dict[str, Any]
    ) -> None:
        lr, lambd, step = number(group["lr"]), group["lambd"], state["step"].item()
        eta, mu, average = state["eta"].item(), state["mu"].item(), state["ax"]
        param.mul_(1 - lambd * eta)
        param.add_(grad, alpha=-eta)
        if mu == 1:
            average.copy_(param)
        else:
            average.add_(param.sub(average).mul(mu))
        state["eta"].fill_(lr / (1 + lambd * lr * step) ** group["alpha"])
        state["mu"].fill_(1 / max(1, step - group["t0"]))


def asgd(
    params: list[Tensor],
    grads: list[Tensor],
    axs: list[Tensor],
    mus: list[Tensor],
    etas: list[Tensor],
    state_steps: list[Tensor],
    foreach: Optional[bool] = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: Union[float, Tensor],
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """A step of `ASGD` over lists of parameters, gradients and states, which are changed in place.
    `foreach` and `capturable` do not change the numbers."""
    settings = {
        "lambd": lambd,
        "lr": lr,
        "t0": t0,
        "alpha": alpha,
        "weight_decay": weight_decay,
        "maximize": maximize,
    }
    step_over(
        ASGD.advance,
        settings,
        params,
        grads,
        ax=axs,
        mu=mus,
        eta=etas,
        step=state_steps,
    )

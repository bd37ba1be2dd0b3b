"""Adadelta: steps whose size is that of the steps before."""

from __future__ import annotations

from typing import Any, Iterable, Optional, Union

from treadle import Tensor

from .optimizer import (
    PerParameter,
    check_lr,
    check_not_negative,
    check_setting,
    number,
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

    def change(
        self, param: Tensor, grad: Tensor, state: dict[str, Tensor], group: dict[str, Any]
    ) -> None:
        rho, eps = group["rho"], group["eps"]
        square, moved = state["square_avg"], state["acc_delta"]
        square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        delta = moved.add(eps).sqrt() / square.add(eps).sqrt() * grad
        moved.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        param.add_(delta, alpha=-number(group["lr"]))

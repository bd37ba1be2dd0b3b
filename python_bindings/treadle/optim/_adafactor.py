"""Adafactor: Adam's mean square as the product of two vectors, so that a matrix of n by m needs a
state of n + m numbers."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterable, Optional, Union

from treadle import _C
from treadle._C import Tensor
from treadle._tensor.type_info import finfo

from .optimizer import (
    PerParameter,
    check_lr,
    check_not_negative,
    check_setting,
    number,
    step_over,
)


def _root_mean_square(x: Tensor) -> float:
    return x.norm(2).item() / x.numel() ** 0.5


class Adafactor(PerParameter):
    """param -= max(eps[1], rms(param)) * rho * update / max(1, rms(update) / d), where
    rho = min(lr, 1 / sqrt(step)) and update = gradient / sqrt(mean square). The mean square of a
    matrix is estimated from the means of its rows and of its columns; running means keep
    1 - step ** beta2_decay of what they were.

    Shazeer & Stern (2018). `eps[0]`, by default the epsilon of the dtype, bounds what is divided
    by. `weight_decay` shrinks the parameter itself. Parameters are real.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Union[float, Tensor] = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[Optional[float], float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: Optional[bool] = None,
        maximize: bool = False,
    ) -> None:
        check_lr("Adafactor", lr)
        check_setting("Adafactor", "beta2_decay", beta2_decay, beta2_decay <= 0, "beta2_decay <= 0")
        valid = eps[0] is None or eps[0] >= 0
        check_setting("Adafactor", "epsilon1", eps[0], valid, "eps[0] >= 0, or None")
        check_setting("Adafactor", "epsilon2", eps[1], eps[1] >= 0, "eps[1] >= 0")
        check_setting("Adafactor", "clipping threshold d", d, d >= 1, "d >= 1")
        check_not_negative("Adafactor", weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        if param.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        if param.dim() < 2:
            return {"variance": _C.zeros_like(param.detach())}
        *outer, rows, columns = param.shape
        return {
            "row_var": param.detach().new_zeros((*outer, rows, 1)),
            "col_var": param.detach().new_zeros((*outer, 1, columns)),
        }

    @staticmethod
    def prepare(param: Tensor, grad: Tensor, group: dict[str, Any]) -> Tensor:
        if param.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        return -grad if group["maximize"] else grad

    @staticmethod
    def change(
        param: Tensor, grad: Tensor, state: dict[str, Tensor], group: dict[str, Any]
    ) -> None:
        least, least_scale = group["eps"]
        if least is None:
            least = finfo(param.dtype).eps
        step = state["step"].item()
        weight = step ** group["beta2_decay"]
        rate = min(number(group["lr"]), 1 / step**0.5)
        rate *= max(least_scale, _root_mean_square(param))
        param.mul_(1 - number(group["lr"]) * group["weight_decay"])
        squares = grad * grad
        if param.dim() > 1:
            rows, columns = state["row_var"], state["col_var"]
            rows.lerp_(squares.mean(dim=-1, keepdim=True), weight)
            columns.lerp_(squares.mean(dim=-2, keepdim=True), weight)
            variance = (rows @ columns).div_(rows.mean(dim=-2, keepdim=True).clamp_(min=least))
        else:
            variance = state["variance"].lerp_(squares, weight).clone()
        update = variance.clamp_(min=least * least).rsqrt_().mul_(grad)
        rate /= max(1.0, _root_mean_square(update) / group["d"])
        param.add_(update, alpha=-rate)


def adafactor(
    params: list[Tensor],
    grads: list[Tensor],
    row_vars: list[Optional[Tensor]],
    col_vars: list[Optional[Tensor]],
    variances: list[Optional[Tensor]],
    state_steps: list[Tensor],
    foreach: Optional[bool] = None,
    grad_scale: Optional[Tensor] = None,
    found_inf: Optional[Tensor] = None,
    has_complex: bool = False,
    *,
    d: float,
    lr: Union[float, Tensor],
    beta2_decay: float,
    weight_decay: float,
    eps1: Optional[float],
    eps2: float,
    maximize: bool,
) -> None:
    """A step of `Adafactor` over lists of parameters, gradients and states, which are changed in
    place. In the states, matrices have `row_vars` and `col_vars`, other parameters `variances`;
    the rest is None. `foreach` does not change the numbers."""
    if grad_scale is not None or found_inf is not None:
        raise AssertionError("Grad scaling should occur outside of optimizer.step()")
    settings = {
        "lr": lr,
        "beta2_decay": beta2_decay,
        "eps": (eps1, eps2),
        "d": d,
        "weight_decay": weight_decay,
        "maximize": maximize,
    }
    step_over(
        Adafactor.advance,
        settings,
        params,
        grads,
        step=state_steps,
        row_var=row_vars,
        col_var=col_vars,
        variance=variances,
    )

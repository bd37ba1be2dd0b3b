"""Rprop: steps of a size of their own for each element, which the signs of gradients change."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterable, Optional, Union

from treadle import _C
from treadle._C import Tensor

from .optimizer import PerParameter, check_lr, check_setting, number, step_over, zeros_like


class Rprop(PerParameter):
    """param -= sign(gradient) * step_size. A step size grows by `etas[1]` where the gradient keeps
    its sign, and shrinks by `etas[0]` where it turns, within `step_sizes`; there the element stays
    for a step.

    Riedmiller & Braun (1993).
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Union[float, Tensor] = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: Optional[bool] = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr("Rprop", lr)
        shown = f"{etas[0]}, {etas[1]}"
        check_setting("Rprop", "eta values", shown, 0.0 < etas[0] < 1.0 < etas[1], "0 < a < 1 < b")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        lr = number(group["lr"])
        size = complex(lr, lr) if param.is_complex() else lr
        return {
            "prev": zeros_like(param),
            "step_size": _C.full_like(param.detach(), size),
        }

    @staticmethod
    def change(
        param: Tensor, grad: Tensor, state: dict[str, Tensor], group: dict[str, Any]
    ) -> None:
        shrink, grow = group["etas"]
        agreement = grad * state["prev"]
        kept, turned = agreement > 0, agreement < 0
        ones = _C.ones_like(grad)
        size = state["step_size"]
        size.mul_(ones.masked_fill(kept, grow).masked_fill(turned, shrink))
        size.clamp_(*group["step_sizes"])
        grad = grad.masked_fill(turned, 0.0)
        param.addcmul_(grad.sign(), size, value=-1)
        state["prev"].copy_(grad)


def rprop(
    params: list[Tensor],
    grads: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    state_steps: list[Tensor],
    foreach: Optional[bool] = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """A step of `Rprop` over lists of parameters, gradients and states, which are changed in place.
    `foreach` and `capturable` do not change the numbers."""
    settings = {
        "maximize": maximize,
        "etas": (etaminus, etaplus),
        "step_sizes": (step_size_min, step_size_max),
    }
    step_over(
        Rprop.advance,
        settings,
        params,
        grads,
        prev=prevs,
        step_size=step_sizes,
        step=state_steps,
    )

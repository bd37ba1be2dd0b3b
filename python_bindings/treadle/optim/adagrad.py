"""Adagrad: steps that get smaller the more a parameter has been moved by."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterable, Optional, Union

from treadle import _C
from treadle._C import Tensor

from ._sparse import add_rows, entries, rows_at, write_rows
from .optimizer import (
    Fused,
    check_implementation,
    check_lr,
    check_not_negative,
    like,
    number,
    real,
    scalar,
    step_count,
    step_over,
    uniform_parts,
)


class Adagrad(Fused):
    """param -= lr / (1 + (step - 1) * lr_decay) * gradient / (sqrt(sum of squares) + eps).

    Duchi, Hazan & Singer (2011). The sums start at `initial_accumulator_value`.
    """

    _counts_steps = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: Union[float, Tensor] = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: Optional[bool] = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: Optional[bool] = None,
    ) -> None:
        check_lr("Adagrad", lr)
        check_not_negative(
            "Adagrad",
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        check_implementation(0.0, foreach, fused, False, differentiable)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            self.states_of(group["params"], group)

    def states_of(self, params: list[Tensor], group: dict[str, Any]) -> list[dict[str, Tensor]]:
        states = [self.state[param] for param in params]
        if all(states):
            return states
        start = group["initial_accumulator_value"]
        for param, state in zip(params, states):
            if not state:
                first = complex(start, start) if param.is_complex() else start
                state["step"] = step_count(fused=group["fused"])
                state["sum"] = _C.full_like(param.detach(), first)
        return states

    def share_memory(self) -> None:
        """Move the sums to memory that processes share."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()

    @classmethod
    def run(
        cls,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Tensor]],
        grad_scale: Optional[Tensor],
    ) -> None:
        steps = [state["step"] for state in states]
        sums = [state["sum"] for state in states]
        _C._foreach_add_(steps, 1)
        for part in uniform_parts(params, grads, sums, steps):
            _C._fused_adagrad_(
                *part,
                lr=number(group["lr"]),
                lr_decay=group["lr_decay"],
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                maximize=group["maximize"],
                grad_scale=grad_scale,
            )

    @classmethod
    def run_sparse(
        cls, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Tensor]
    ) -> None:
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        step = number(state["step"].add_(1))
        at, values = entries(grad)
        totals = rows_at(state["sum"], at).addcmul_(values, values)
        write_rows(state["sum"], at, totals)
        rate = number(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
        change = values / totals.sqrt_().add_(group["eps"])
        add_rows(param, at, change, rate if group["maximize"] else -rate)

    update_with_sparse = Fused.update

    @classmethod
    def run_recorded(
        cls,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Tensor]],
    ) -> None:
        lr, weight_decay = scalar(group["lr"]), scalar(group["weight_decay"])
        for param, grad, state in zip(params, grads, states):
            state["step"] = state["step"] + 1
            if group["maximize"]:
                grad = -grad
            if group["weight_decay"] != 0:
                grad = grad + param.clone() * weight_decay
            grad = real(grad)
            total = real(state["sum"]) + grad * grad
            rate = lr / (1 + (number(state["step"]) - 1) * group["lr_decay"])
            param.sub_(like(grad / (total.sqrt() + group["eps"]) * rate, param))
            state["sum"] = like(total, param)


def adagrad(
    params: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    state_steps: list[Tensor],
    fused: Optional[bool] = None,
    grad_scale: Optional[Tensor] = None,
    found_inf: Optional[Tensor] = None,
    has_sparse_grad: bool = False,
    foreach: Optional[bool] = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: Union[float, Tensor],
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """A step of `Adagrad` over lists of parameters, gradients and states, all changed in place.
    `foreach` and `fused` do not change the numbers."""
    settings = {
        "lr": lr,
        "weight_decay": weight_decay,
        "lr_decay": lr_decay,
        "eps": eps,
        "maximize": maximize,
        "differentiable": differentiable,
    }
    step_over(
        Adagrad.advance,
        settings,
        params,
        grads,
        found_inf=found_inf,
        grad_scale=grad_scale,
        sum=state_sums,
        step=state_steps,
    )

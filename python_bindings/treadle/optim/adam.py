"""Adam: steps scaled by running estimates of each gradient's mean and mean square."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterable, Optional, Union

from treadle import _C
from treadle._C import Tensor

from .optimizer import (
    Fused,
    check_adam,
    check_implementation,
    like,
    number,
    real,
    scalar,
    step_count,
    step_over,
    uniform_parts,
    zeros_like,
)


class Adam(Fused):
    """param -= lr * mean / (sqrt(mean square) + eps), both estimates corrected for starting at
    zero; with `amsgrad` by the largest mean square so far.

    Kingma & Ba (2015); Reddi et al. (2018) for amsgrad; Loshchilov & Hutter (2019) for
    `decoupled_weight_decay`, which shrinks the parameter itself instead of adding to the gradient.
    """

    _counts_steps = True
    _refuses_sparse = "Adam does not support sparse gradients, please consider SparseAdam instead"

    def __init__(
        self,
        params: Iterable[Any],
        lr: Union[float, Tensor] = 1e-3,
        betas: tuple[Union[float, Tensor], Union[float, Tensor]] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: Optional[bool] = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: Optional[bool] = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        name = type(self).__name__
        check_adam(name, lr, betas, eps, weight_decay=weight_decay)
        check_implementation(lr, foreach, fused, capturable, differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def states_of(self, params: list[Tensor], group: dict[str, Any]) -> list[dict[str, Tensor]]:
        states = [self.state[param] for param in params]
        if all(states):
            return states
        for param, state in zip(params, states):
            if not state:
                state["step"] = step_count(fused=group["fused"])
                state["exp_avg"] = zeros_like(param)
                state["exp_avg_sq"] = zeros_like(param)
                if group["amsgrad"]:
                    state["max_exp_avg_sq"] = zeros_like(param)
        return states

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
        means = [state["exp_avg"] for state in states]
        squares = [state["exp_avg_sq"] for state in states]
        largest = [state["max_exp_avg_sq"] for state in states] if group["amsgrad"] else []
        _C._foreach_add_(steps, 1)
        step = _C._fused_adamw_ if group["decoupled_weight_decay"] else _C._fused_adam_
        beta1, beta2 = group["betas"]
        for part in uniform_parts(params, grads, means, squares, largest, steps):
            step(
                *part,
                lr=number(group["lr"]),
                beta1=number(beta1),
                beta2=number(beta2),
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                amsgrad=group["amsgrad"],
                maximize=group["maximize"],
                grad_scale=grad_scale,
            )

    @classmethod
    def run_recorded(
        cls,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Tensor]],
    ) -> None:
        beta1, beta2 = (scalar(beta) for beta in group["betas"])
        lr, weight_decay = scalar(group["lr"]), scalar(group["weight_decay"])
        for param, grad, state in zip(params, grads, states):
            state["step"] = state["step"] + 1
            step = number(state["step"])
            if group["maximize"]:
                grad = -grad
            if group["weight_decay"] != 0:
                if group["decoupled_weight_decay"]:
                    param.mul_(1 - lr * weight_decay)
                else:
                    grad = grad + param.clone() * weight_decay
            grad = real(grad)
            mean = real(state["exp_avg"]) * beta1 + grad * (1 - beta1)
            square = real(state["exp_avg_sq"]) * beta2 + grad * grad * (1 - beta2)
            new = {"exp_avg": mean, "exp_avg_sq": square}
            if group["amsgrad"]:
                square = _C.maximum(real(state["max_exp_avg_sq"]), square)
                new["max_exp_avg_sq"] = square
            scale = square.sqrt() / (1 - beta2**step) ** 0.5 + group["eps"]
            param.sub_(like(mean / scale * (lr / (1 - beta1**step)), param))
            # New tensors, as the old ones are needed for the gradient of this step.
            state.update({name: like(value, param) for name, value in new.items()})


def adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    foreach: Optional[bool] = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: Optional[bool] = None,
    grad_scale: Optional[Tensor] = None,
    found_inf: Optional[Tensor] = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: Union[float, Tensor],
    beta2: Union[float, Tensor],
    lr: Union[float, Tensor],
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """A step of `Adam` over lists of parameters, gradients and states, which are changed in place.
    `foreach`, `fused` and `capturable` do not change the numbers."""
    settings = {
        "amsgrad": amsgrad,
        "lr": lr,
        "weight_decay": weight_decay,
        "eps": eps,
        "maximize": maximize,
        "differentiable": differentiable,
        "decoupled_weight_decay": decoupled_weight_decay,
        "betas": (beta1, beta2),
    }
    step_over(
        Adam.advance,
        settings,
        params,
        grads,
        found_inf=found_inf,
        grad_scale=grad_scale,
        exp_avg=exp_avgs,
        exp_avg_sq=exp_avg_sqs,
        max_exp_avg_sq=max_exp_avg_sqs,
        step=state_steps,
    )

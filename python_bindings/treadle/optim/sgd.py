"""Stochastic gradient descent, with momentum."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterable, Optional, Union

from treadle import _C
from treadle._C import Tensor

from .optimizer import (
    Fused,
    check_implementation,
    check_lr,
    check_not_negative,
    empty_like,
    number,
    scalar,
    step_over,
    uniform_parts,
)


class SGD(Fused):
    """param -= lr * velocity, where velocity = momentum * velocity + (1 - dampening) * gradient;
    with `nesterov` it looks ahead: param -= lr * (gradient + momentum * velocity).

    Polyak (1964); Sutskever et al. (2013).
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Union[float, Tensor] = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: Optional[bool] = None,
        differentiable: bool = False,
        fused: Optional[bool] = None,
    ) -> None:
        check_lr("SGD", lr)
        check_not_negative("SGD", momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_implementation(0.0, foreach, fused, False, differentiable)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def states_of(self, params: list[Tensor], group: dict[str, Any]) -> list[dict[str, Tensor]]:
        return [self.state[param] for param in params] if group["momentum"] != 0 else []

    update_with_sparse = Fused.update

    @classmethod
    def run(
        cls,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Tensor]],
        grad_scale: Optional[Tensor],
    ) -> None:
        velocities: list[Any] = []
        first = False
        if group["momentum"] != 0:
            velocities = [state.get("momentum_buffer") for state in states]
            new = [place for place, velocity in enumerate(velocities) if velocity is None]
            first = len(new) == len(params)
            if new and not first:
                old = [place for place in range(len(params)) if velocities[place] is not None]
                for places in (new, old):
                    cls.run(
                        group,
                        [params[i] for i in places],
                        [grads[i] for i in places],
                        [states[i] for i in places],
                        grad_scale,
                    )
                return
            if first:
                # The first step writes them without reading them.
                velocities = [empty_like(param) for param in params]
        for part in uniform_parts(params, grads, velocities):
            _C._fused_sgd_(
                *part,
                weight_decay=group["weight_decay"],
                momentum=group["momentum"],
                lr=number(group["lr"]),
                dampening=group["dampening"],
                nesterov=group["nesterov"],
                maximize=group["maximize"],
                is_first_step=first,
                grad_scale=grad_scale,
            )
        if first:
            for state, velocity in zip(states, velocities):
                state["momentum_buffer"] = velocity

    @classmethod
    def run_sparse(
        cls, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Tensor]
    ) -> None:
        if group["weight_decay"] != 0:  # it moves all of the parameter
            return cls.run(group, [param], [grad.to_dense()], [state], None)
        momentum, lr = group["momentum"], number(group["lr"])
        factor = 1 if group["maximize"] else -1
        if momentum == 0:  # the rows alone that the gradient has are written
            param.add_(grad, alpha=lr * factor)
            return
        velocity = state.get("momentum_buffer")
        if velocity is None:
            velocity = grad.to_dense()
        else:
            # A file of PyTorch's may have a sparse one.
            velocity = velocity.to_dense().mul_(momentum).add_(grad, alpha=1 - group["dampening"])
        state["momentum_buffer"] = velocity
        if group["nesterov"]:
            param.add_(grad, alpha=lr * factor)
        param.add_(velocity, alpha=lr * factor * (momentum if group["nesterov"] else 1))

    @classmethod
    def run_recorded(
        cls,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Tensor]],
    ) -> None:
        lr, momentum, weight_decay = (
            scalar(group[name]) for name in ("lr", "momentum", "weight_decay")
        )
        for place, (param, grad) in enumerate(zip(params, grads)):
            if group["maximize"]:
                grad = -grad
            if group["weight_decay"] != 0:
                grad = grad + param.clone() * weight_decay
            if momentum != 0:
                state = states[place]
                velocity = state.get("momentum_buffer")
                if velocity is None:
                    velocity = grad.clone()
                else:
                    velocity = velocity * momentum + grad * (1 - group["dampening"])
                state["momentum_buffer"] = velocity
                grad = grad + velocity * momentum if group["nesterov"] else velocity
            param.sub_(grad * lr)


def sgd(
    params: list[Tensor],
    d_p_list: list[Tensor],
    momentum_buffer_list: list[Optional[Tensor]],
    has_sparse_grad: bool = False,
    foreach: Optional[bool] = None,
    fused: Optional[bool] = None,
    grad_scale: Optional[Tensor] = None,
    found_inf: Optional[Tensor] = None,
    *,
    weight_decay: float,
    momentum: float,
    lr: Union[float, Tensor],
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """A step of `SGD` over lists of parameters, gradients and states, which are changed in place.
    `foreach` and `fused` do not change the numbers."""
    settings = {
        "weight_decay": weight_decay,
        "momentum": momentum,
        "lr": lr,
        "dampening": dampening,
        "nesterov": nesterov,
        "maximize": maximize,
        "differentiable": False,
    }
    step_over(
        SGD.advance,
        settings,
        params,
        d_p_list,
        found_inf=found_inf,
        grad_scale=grad_scale,
        momentum_buffer=momentum_buffer_list,
    )

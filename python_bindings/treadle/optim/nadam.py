"""NAdam: Adam that looks ahead, as Nesterov's momentum does."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterable, Optional, Union

from treadle._C import Tensor

from .optimizer import (
    PerParameter,
    check_adam,
    number,
    step_count,
    step_over,
    zeros_like,
)


class NAdam(PerParameter):
    """param -= lr * ((1 - mu_t) / (1 - M_t) * gradient + mu_t+1 / (1 - M_t+1) * mean) /
    (sqrt(mean square) + eps), where mu_t = beta1 * (1 - 0.96^(t * momentum_decay) / 2) and M_t is
    the product of those up to t.

    Dozat (2016).
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Union[float, Tensor] = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: Optional[bool] = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_adam(
            "NAdam", lr, betas, eps, weight_decay=weight_decay, momentum_decay=momentum_decay
        )
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        return {
            "mu_product": step_count(1.0),
            "exp_avg": zeros_like(param),
            "exp_avg_sq": zeros_like(param),
        }

    @staticmethod
    def change(
        param: Tensor, grad: Tensor, state: dict[str, Tensor], group: dict[str, Any]
    ) -> None:
        lr, (beta1, beta2) = number(group["lr"]), group["betas"]
        step, decay = state["step"].item(), group["momentum_decay"]
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mu, mu_next = (beta1 * (1 - 0.5 * 0.96 ** (t * decay)) for t in (step, step + 1))
        state["mu_product"].mul_(mu)
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        scale = square.div(1 - beta2**step).sqrt().add(group["eps"])
        if group["differentiable"]:
            # Gradients flow to the product, too. The next step changes it in place.
            kept = state["mu_product"].clone().double()
            param.addcdiv_(grad, scale * (1 - kept), value=-lr * (1 - mu))
            param.addcdiv_(mean, scale * (1 - kept * mu_next), value=-lr * mu_next)
            return
        product = state["mu_product"].item()
        param.addcdiv_(grad, scale, value=-lr * (1 - mu) / (1 - product))
        param.addcdiv_(mean, scale, value=-lr * mu_next / (1 - product * mu_next))


def nadam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    mu_products: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: Optional[bool] = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: Union[float, Tensor],
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """A step of `NAdam` over lists of parameters, gradients and states, which are changed in place.
    `foreach` and `capturable` do not change the numbers."""
    settings = {
        "lr": lr,
        "weight_decay": weight_decay,
        "momentum_decay": momentum_decay,
        "eps": eps,
        "decoupled_weight_decay": decoupled_weight_decay,
        "maximize": maximize,
        "differentiable": differentiable,
        "betas": (beta1, beta2),
    }
    step_over(
        NAdam.advance,
        settings,
        params,
        grads,
        exp_avg=exp_avgs,
        exp_avg_sq=exp_avg_sqs,
        mu_product=mu_products,
        step=state_steps,
    )

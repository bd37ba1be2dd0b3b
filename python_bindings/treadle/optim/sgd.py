"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from typing import Any, Iterable, Optional, Union

from treadle import Tensor

from .optimizer import Optimizer, check_setting


class SGD(Optimizer):
    """param -= lr * velocity, where velocity = momentum * velocity + (1 - dampening) * gradient."""

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
        check_setting("SGD", "learning rate", lr, lr >= 0.0, "lr >= 0")
        check_setting("SGD", "momentum value", momentum, momentum >= 0.0, "momentum >= 0")
        check_setting(
            "SGD", "weight_decay value", weight_decay, weight_decay >= 0.0, "weight_decay >= 0"
        )
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
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

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        lr, momentum = float(group["lr"]), group["momentum"]
        for param, grad in zip(params, grads):
            if group["maximize"]:
                grad = -grad
            if group["weight_decay"] != 0:
                grad = grad.add(param, alpha=group["weight_decay"])
            if momentum != 0:
                state = self.state[param]
                velocity = state.get("momentum_buffer")
                if velocity is None:
                    velocity = state["momentum_buffer"] = grad.detach().clone()
                else:
                    velocity.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
                grad = grad.add(velocity, alpha=momentum) if group["nesterov"] else velocity
            param.add_(grad, alpha=-lr)

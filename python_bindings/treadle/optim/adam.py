"""Adam: steps scaled by running estimates of each gradient's mean and mean square."""

from __future__ import annotations

import math
from typing import Any, Iterable, Optional, Union

import treadle
from treadle import Tensor

from .optimizer import Optimizer, check_setting


class Adam(Optimizer):
    """param -= lr * mean / (sqrt(mean square) + eps), both estimates corrected for starting at
    zero."""

    # Whether weight decay shrinks the parameter itself (AdamW) instead of adding to the gradient.
    decoupled = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: Union[float, Tensor] = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
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
        check_setting(name, "learning rate", lr, lr >= 0.0, "lr >= 0")
        check_setting(name, "epsilon value", eps, eps >= 0.0, "eps >= 0")
        for index, beta in enumerate(betas):
            check_setting(
                name, f"beta parameter at index {index}", beta, 0.0 <= beta < 1.0, "0 <= beta < 1"
            )
        check_setting(
            name, "weight_decay value", weight_decay, weight_decay >= 0.0, "weight_decay >= 0"
        )
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
            "decoupled_weight_decay": decoupled_weight_decay or self.decoupled,
        }
        super().__init__(params, defaults)

    def _state_of(self, param: Tensor, amsgrad: bool) -> dict[str, Tensor]:
        state = self.state[param]
        if not state:
            state["step"] = treadle.tensor(0.0, dtype=treadle.float32)
            state["exp_avg"] = treadle.zeros_like(param.detach())
            state["exp_avg_sq"] = treadle.zeros_like(param.detach())
        if amsgrad and "max_exp_avg_sq" not in state:
            state["max_exp_avg_sq"] = treadle.zeros_like(param.detach())
        return state

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        lr, (beta1, beta2) = float(group["lr"]), group["betas"]
        for param, grad in zip(params, grads):
            state = self._state_of(param, group["amsgrad"])
            state["step"].add_(1.0)
            step = state["step"].item()
            mean, mean_square = state["exp_avg"], state["exp_avg_sq"]
            if group["maximize"]:
                grad = -grad
            if group["weight_decay"] != 0:
                if group["decoupled_weight_decay"]:
                    param.mul_(1 - lr * group["weight_decay"])
                else:
                    grad = grad.add(param, alpha=group["weight_decay"])
            mean.mul_(beta1).add_(grad, alpha=1 - beta1)
            mean_square.mul_(beta2).add_(grad * grad, alpha=1 - beta2)
            if group["amsgrad"]:
                largest = state["max_exp_avg_sq"]
                largest.copy_(treadle.maximum(largest, mean_square))
                mean_square = largest
            scale = mean_square.sqrt().div_(math.sqrt(1 - beta2**step)).add_(group["eps"])
            param.add_(mean / scale, alpha=-lr / (1 - beta1**step))

"""Adam whose weight decay shrinks the parameters themselves, apart from the gradients."""

from __future__ import annotations

from typing import Any, Iterable, Optional, Union

from treadle import Tensor

from .adam import Adam


class AdamW(Adam):
    """As Adam, after param *= 1 - lr * weight_decay."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: Union[float, Tensor] = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: Optional[bool] = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: Optional[bool] = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # A file of an older version, or one of Adam's, does not make this another algorithm.
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True

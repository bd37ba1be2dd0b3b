"""SparseAdam: Adam for gradients that are sparse, which changes only what they hold."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterable, Union

from treadle._C import Tensor

from ._sparse import add_rows, entries, rows_at, write_rows
from .optimizer import Optimizer, check_betas, check_lr, check_setting, number, zeros_like


class SparseAdam(Optimizer):
    """Adam's step for the rows that a gradient has entries in: elsewhere the parameter and its
    running means stay as they are.

    Parameters are real and strided. Gradients are sparse, as those of `nn.Embedding(sparse=True)`,
    or strided: then the rows that are not all zero are the entries.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Union[float, Tensor] = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_lr("SparseAdam", lr)
        check_setting("SparseAdam", "epsilon value", eps, eps > 0.0, "eps > 0")
        check_betas("SparseAdam", betas)
        defaults = {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize}
        super().__init__(params, defaults)
        for what, refused in (
            ("Sparse", "SparseAdam requires dense parameter tensors"),
            ("Complex", "SparseAdam does not support complex parameters"),
        ):
            places = [
                [i, k]
                for i, group in enumerate(self.param_groups)
                for k, param in enumerate(group["params"])
                if (param.is_sparse if what == "Sparse" else param.is_complex())
            ]
            if places:
                raise ValueError(f"{what} params at indices {places}: {refused}")

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        states = [self.state[param] for param in params]
        for param, state in zip(params, states):
            if not state:
                state.update(step=0, exp_avg=zeros_like(param), exp_avg_sq=zeros_like(param))
            state["step"] += 1
        beta1, beta2 = group["betas"]
        sparse_adam(
            params,
            grads,
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [state["step"] for state in states],
            eps=group["eps"],
            beta1=beta1,
            beta2=beta2,
            lr=number(group["lr"]),
            maximize=group["maximize"],
        )

    update_with_sparse = update


def sparse_adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[int],
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    maximize: bool,
) -> None:
    """A step of `SparseAdam` over lists; parameters and running means are changed in place.
    `state_steps` counts this step already. A gradient is sparse, or strided with rows of zeros."""
    for param, grad, mean, square, step in zip(params, grads, exp_avgs, exp_avg_sqs, state_steps):
        at, values = entries(grad)
        if values.numel() == 0:
            continue
        values = -values if maximize else values
        means = rows_at(mean, at).lerp_(values, 1 - beta1)
        squares = rows_at(square, at).mul_(beta2).addcmul_(values, values, value=1 - beta2)
        write_rows(mean, at, means)
        write_rows(square, at, squares)
        rate = lr * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        add_rows(param, at, means.div_(squares.sqrt_().add_(eps)), -rate)

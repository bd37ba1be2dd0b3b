"""Scaling the loss of a model that is spread over processes: a step is left out in all of them if a
gradient in one is not finite.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, List, Optional

from treadle import _C
from treadle import distributed as dist
from treadle._C import Tensor
from treadle.amp.grad_scaler import GradScaler
from treadle.autograd.grad_mode import no_grad


class ShardedGradScaler(GradScaler):
    """A GradScaler for the processes of a group, by default all.

    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        backoff_factor: float = 0.5,
        growth_factor: float = 2.0,
        growth_interval: int = 2000,
        enabled: bool = True,
        process_group: Optional[dist.ProcessGroup] = None,
    ) -> None:
        super().__init__(
            device, init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )
        self.process_group = process_group

    @no_grad()
    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> Dict[_C.device, Tensor]:
        grads: List[Tensor] = []
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                if parameter.grad.dtype == _C.float16 and not allow_fp16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                # The part that this process has of a gradient that is spread.
                grads.append(getattr(parameter.grad, "_local_tensor", parameter.grad))
        found = found_inf.to(inv_scale.device, copy=True)
        if grads:
            _C._amp_foreach_non_finite_check_and_unscale_(grads, found, inv_scale)
        dist.all_reduce(found, dist.ReduceOp.MAX, self.process_group)
        return {found.device: found}


__all__ = ["ShardedGradScaler"]

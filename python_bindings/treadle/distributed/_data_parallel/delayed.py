"""Parameters that DistributedDataParallel averages at once, when the gradient of another one comes:
the arguments delay_all_reduce_named_params and param_to_hook_all_reduce.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List, Sequence

from treadle import _C
from treadle import distributed as dist
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad

from .module_state import broadcast_all


class Delayed:
    """One tensor for the gradients of `parameters`, averaged when `trigger` has its gradient."""

    def __init__(self, parameters: Sequence[Tensor], trigger: Tensor, group: Any) -> None:
        self.parameters = list(parameters)
        self.group = group
        broadcast_all(self.parameters, 0, group)
        self.flat = _C.zeros(
            sum(p.numel() for p in self.parameters),
            dtype=self.parameters[0].dtype,
            device=self.parameters[0].device,
        )
        self.views: List[Tensor] = []
        start = 0
        for parameter in self.parameters:
            self.views.append(self.flat[start : start + parameter.numel()].view(parameter.shape))
            start += parameter.numel()
        self._work: Any = None
        trigger.register_hook(self._begin)

    def place_gradients(self) -> None:
        """Let backward() add to the tensor: forgotten gradients become zeros in it."""
        with no_grad():
            for parameter, view in zip(self.parameters, self.views):
                if parameter.grad is None:
                    parameter.grad = view.zero_()

    def _begin(self, grad: Tensor) -> Tensor:
        with no_grad():
            self.flat.div_(dist.get_world_size(self.group))
        self._work = dist.all_reduce(self.flat, group=self.group, async_op=True)
        _C._queue_callback(self._finish)
        return grad

    def _finish(self) -> None:
        work, self._work = self._work, None
        work.wait()

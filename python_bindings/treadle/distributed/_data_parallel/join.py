"""The part of a process whose inputs have ended in DistributedDataParallel of the others: the same
calls, with gradients of zero. At the end all take the module of one that had inputs last."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle import _C
from treadle import distributed as dist
from treadle.distributed.algorithms.join import JoinHook

from .module_state import broadcast_all

if TYPE_CHECKING:
    from .model import DistributedDataParallel


class DataParallelJoinHook(JoinHook):
    """Stands for forward(), backward() and the end of the training."""

    def __init__(self, model: DistributedDataParallel, divide_by_initial_world_size: bool) -> None:
        self.model = model
        model._divides_by_all = divide_by_initial_world_size

    def main_hook(self) -> None:
        """Take part in one step of the others."""
        model = self.model
        model.reducer.rebuild()
        if model.will_sync_module_buffers():
            model._take_buffers(common_rank(model, False))
        has_backward = tell_backward(model, False)
        model.require_forward_param_sync = has_backward
        if has_backward:
            model.reducer.reduce_zeros()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Take parameters and buffers from a process that was among the last."""
        source = common_rank(self.model, is_last_joiner)
        model = self.model
        tensors = [*model._parameters_of_module()]
        if model.forward_sync_buffers:
            tensors += model._buffers_of_module()
        broadcast_all(tensors, source, model.process_group)


def common_rank(model: DistributedDataParallel, is_candidate: bool) -> int:
    """The highest rank in the group of those that are candidates; all agree on it."""
    mine = dist.get_rank(model.process_group) if is_candidate else -1
    rank = _C.tensor([mine])
    dist.all_reduce(rank, dist.ReduceOp.MAX, model.process_group)
    return int(rank.item())


def tell_backward(model: DistributedDataParallel, has_inputs: bool) -> bool:
    """Whether the step of the others ends in a backward() that averages: they tell it."""
    averages = has_inputs and model.require_backward_grad_sync
    told = _C.tensor([float(averages)])
    dist.all_reduce(told, group=model.process_group)
    return bool(told.item())

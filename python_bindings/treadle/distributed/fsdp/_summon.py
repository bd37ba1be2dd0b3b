"""Whole parameters in a module for a while, in their own dtype: for a look at them, or a change."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from typing import Any, Iterator, List

from treadle import distributed as dist
from treadle.autograd.grad_mode import no_grad
from treadle.distributed.checkpoint._full_state import sharded
from treadle.distributed.fsdp._parameter import ShardedParameter
from treadle.distributed.fsdp._state import State
from treadle.nn import Parameter


def _whole(parameter: ShardedParameter, with_grad: bool) -> Any:
    """The whole parameter; all processes call it."""
    mine: Any = parameter.sharded
    whole: Any = Parameter(mine.detach().full_tensor().clone(), requires_grad=mine.requires_grad)
    if with_grad and mine.grad is not None:
        whole.grad = mine.grad.detach().full_tensor().clone()
    return whole


@contextlib.contextmanager
def summoned(
    states: List[State], writeback: bool, rank0_only: bool, with_grads: bool
) -> Iterator[None]:
    """A block in which the modules have whole parameters; what is written to them is kept with
    `writeback`. With `rank0_only` the other processes keep their rows. Parameters that are whole by
    a block around this one stay so."""
    groups = [state.group for state in states if state.group is not None]
    parameters = [p for group in groups for p in group.parameters if not p.is_summoned]
    for state in states:
        if state.in_backward:
            raise AssertionError(
                "summon_full_params: expected no forward or backward under way, got one"
            )
    for group in groups:
        if not any(p.is_summoned for p in group.parameters):
            group.reshard()
    with no_grad():
        wholes = [_whole(parameter, with_grads) for parameter in parameters]
    keeps = not rank0_only or dist.get_rank() == 0
    if keeps:
        for parameter, whole in zip(parameters, wholes):
            parameter.give(whole)
    else:
        wholes = []
    for parameter in parameters:
        parameter.is_summoned = True
    try:
        yield
    finally:
        for parameter in parameters:
            parameter.is_summoned = False
            parameter.give(parameter.sharded)
        if writeback:
            with no_grad():
                for parameter, whole in zip(parameters, wholes):
                    mine: Any = parameter.sharded
                    mine._local_tensor.copy_(sharded("", whole.detach(), mine)._local_tensor)
                    if with_grads and mine.grad is not None and whole.grad is not None:
                        grad = sharded("", whole.grad.detach(), mine)
                        mine.grad._local_tensor.copy_(grad._local_tensor)


__all__ = ["summoned"]

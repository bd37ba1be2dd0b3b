"""Steps of a ZeroRedundancyOptimizer within backward(): while the gradients of later buckets are on
their way, the parameters of earlier ones are stepped and sent.

    optimizer = ZeroRedundancyOptimizer(model.parameters(), Adam, overlap_with_ddp=True, lr=0.01)
    hook = hook_with_zero_step(allreduce_hook, model, optimizer)
    model.register_comm_hook(None, hook)
    loss(model(x)).backward()      # steps
    optimizer.step()               # waits for the parameters of the other processes
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List

from treadle._C import Tensor
from treadle.distributed._grad_bucket import GradBucket, tensor_of
from treadle.futures import Future

from ._stages import Stages
from .default_hooks import Hook


def _check(ddp: Any, zero: Any) -> None:
    if not zero.overlap_with_ddp:
        raise ValueError(
            "hook_with_zero_step: expected a ZeroRedundancyOptimizer with overlap_with_ddp=True, "
            "got one with False"
        )
    if ddp.find_unused_parameters or ddp.static_graph:
        raise ValueError(
            "hook_with_zero_step: expected a model whose parameters are all used, got one with "
            "find_unused_parameters or static_graph"
        )


def _stepped(future: Future[Tensor], zero: Any, bucket: GradBucket) -> Future[Tensor]:
    """A future of the bucket's gradients, whose wait() steps its parameters, too."""

    def compute() -> Tensor:
        flat, result = bucket.buffer(), tensor_of(future.wait())
        if result.data_ptr() != flat.data_ptr():
            flat.copy_(result.reshape(-1)[: flat.numel()])
        pairs = zip(bucket.parameters(), bucket.gradients())
        zero._step_in_backward({id(parameter): gradient for parameter, gradient in pairs})
        return flat

    return Stages(compute)


def hook_with_zero_step(hook: Hook, ddp: Any, zero: Any, shard_buckets: bool = False) -> Hook:
    """`hook`, with a step of `zero` for each bucket when all gradients are there: the steps of the
    first buckets run beside the communication of the last ones. ValueError without
    overlap_with_ddp=True, or for a model with find_unused_parameters or static_graph."""
    _check(ddp, zero)

    def stepping_hook(state: Any, bucket: GradBucket) -> Future[Tensor]:
        return _stepped(hook(state, bucket), zero, bucket)

    return stepping_hook


def hook_with_zero_step_interleaved(
    hook: Hook, ddp: Any, zero: Any, shard_buckets: bool = False
) -> Hook:
    """As hook_with_zero_step(), where the step of a bucket comes when the gradients of the next one
    are there: it runs beside their communication and the rest of backward()."""
    _check(ddp, zero)
    begun: List[Future[Tensor]] = []

    def stepping_hook(state: Any, bucket: GradBucket) -> Future[Tensor]:
        future = _stepped(hook(state, bucket), zero, bucket)
        if begun:
            begun.pop().wait()
        if not bucket.is_last():
            begun.append(future)
        return future

    return stepping_hook


__all__ = ["hook_with_zero_step", "hook_with_zero_step_interleaved"]

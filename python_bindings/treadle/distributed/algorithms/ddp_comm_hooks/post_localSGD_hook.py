"""Post-local SGD: gradients are averaged over all processes for some steps, then over a few of them
(Lin et al., arXiv:1808.07217). PostLocalSGDOptimizer averages the parameters from then on."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle import distributed as dist
from treadle._C import Tensor
from treadle.distributed._grad_bucket import GradBucket
from treadle.futures import Future

from . import default_hooks
from .debugging_hooks import noop_hook


class PostLocalSGDState:
    """start_localSGD_iter: steps that average over `process_group`. From then on gradients are
    averaged over `subgroup`, by default the processes of one machine; or not at all, with
    post_local_gradient_allreduce=False."""

    def __init__(
        self,
        process_group: Any,
        subgroup: Any,
        start_localSGD_iter: int,
        post_local_gradient_allreduce: bool = True,
    ) -> None:
        self.process_group = process_group
        self.subgroup = subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count a step when its last bucket comes."""
        if bucket.is_last():
            self.iter += 1


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> Future[Tensor]:
    """The mean over the group of the step."""
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return default_hooks._allreduce_fut(state.process_group, bucket.buffer())
    if not state.post_local_gradient_allreduce:
        return noop_hook(None, bucket)
    if state.subgroup is None:
        state.subgroup = dist.new_subgroups()[0]
    return default_hooks._allreduce_fut(state.subgroup, bucket.buffer())


__all__ = ["PostLocalSGDState", "post_localSGD_hook"]

"""The argument `mixed_precision` of DistributedDataParallel: forward() and backward() compute with
parameters of a narrow dtype, and the parameters themselves stay as they are.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional, Set

from treadle import distributed as dist
from treadle._C import Tensor
from treadle.distributed._grad_bucket import GradBucket
from treadle.nn.modules.module import Module


@dataclass
class _MixedPrecision:
    """The dtypes of parameters and inputs in forward(), of gradients between processes (by default
    that of the parameters), and of buffers. None leaves the dtype as it is."""

    param_dtype: Optional[Any] = None
    reduce_dtype: Optional[Any] = None
    buffer_dtype: Optional[Any] = None


def cast_buffers(module: Module, dtype: Any, ignored: Set[str]) -> None:
    """Convert the floating buffers, for good."""
    for name, buffer in module.named_buffers():
        if name not in ignored and buffer.is_floating_point():
            buffer.data = buffer.to(dtype)


def cast_inputs(value: Any, dtype: Any) -> Any:
    """The arguments with floating tensors in another dtype."""
    if isinstance(value, Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if isinstance(value, dict):
        return type(value)((key, cast_inputs(item, dtype)) for key, item in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(cast_inputs(item, dtype) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(cast_inputs(item, dtype) for item in value)
    return value


def cast_parameters(module: Module, dtype: Any, ignored: Set[str]) -> Dict[str, Tensor]:
    """Copies of the floating parameters, whose gradients go to the parameters."""
    return {
        name: parameter.to(dtype)
        for name, parameter in module.named_parameters()
        if name not in ignored and parameter.is_floating_point()
    }


def averages_in(dtype: Any) -> Callable[[Any, GradBucket], Any]:
    """A hook that averages the gradients in another dtype."""

    def average(group: Any, bucket: GradBucket) -> Any:
        narrow = bucket.buffer().to(dtype).div_(dist.get_world_size(group))
        work = dist.all_reduce(narrow, group=group, async_op=True)
        assert work is not None
        return work.get_future().then(lambda done: done.value()[0])

    return average


def is_narrower(dtype: Any, parameters: Any) -> bool:
    """Whether some parameter has another dtype."""
    return any(p.is_floating_point() and p.dtype != dtype for p in parameters)


__all__ = ["_MixedPrecision"]

"""Hooks that average gradients in their own dtype, or send them in 16 bits."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable

from treadle import _C
from treadle import distributed as dist
from treadle._C import Tensor
from treadle.distributed._grad_bucket import GradBucket, tensor_of
from treadle.distributed._sparse import sum_of_sparse
from treadle.futures import Future

Hook = Callable[[Any, GradBucket], Future[Tensor]]


def _allreduce_fut(process_group: Any, tensor: Tensor) -> Future[Tensor]:
    """A future of the mean of the tensor over the group, which replaces it."""
    size = dist.get_world_size(process_group)
    if tensor.is_sparse:
        future: Future[Tensor] = Future()
        future.set_result(sum_of_sparse(tensor / size, process_group))
        return future
    work = dist.all_reduce(tensor.div_(size), group=process_group, async_op=True)
    assert work is not None
    return work.get_future().then(lambda done: tensor_of(done.value()))


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The mean, as without a hook."""
    return _allreduce_fut(process_group, bucket.buffer())


def _compressed(dtype: Any, process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    buffer = bucket.buffer()
    narrow = _allreduce_fut(process_group, buffer.to(dtype))
    if buffer.is_sparse:
        return narrow.then(lambda done: done.value().to(buffer.dtype))
    return narrow.then(lambda done: buffer.copy_(done.value()))


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The mean, computed and sent as float16."""
    return _compressed(_C.float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The mean, computed and sent as bfloat16."""
    return _compressed(_C.bfloat16, process_group, bucket)


def _compresses(dtype: Any, hook: Hook) -> Hook:
    def compressing_hook(hook_state: Any, bucket: GradBucket) -> Future[Tensor]:
        wide = bucket.buffer()
        bucket.set_buffer(wide.to(dtype))
        return hook(hook_state, bucket).then(lambda done: wide.copy_(tensor_of(done.value())))

    return compressing_hook


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """`hook`, for a bucket that is converted to float16, and its result back."""
    return _compresses(_C.float16, hook)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """`hook`, for a bucket that is converted to bfloat16, and its result back."""
    return _compresses(_C.bfloat16, hook)


__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]

"""Gradients that are reduced together: what DistributedDataParallel hands to a communication hook.

def hook(state, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    bucket.buffer().div_(dist.get_world_size())
    return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda f: f.value()[0])
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
from typing import Any, List, Sequence

from treadle._C import Tensor


class GradBucket:
    """The gradients of some parameters, of one dtype, one after the other in one tensor."""

    def __init__(
        self,
        index: int,
        buffer: Tensor,
        gradients: Sequence[Tensor],
        parameters: Sequence[Tensor],
        is_last: bool,
    ) -> None:
        self._index = index
        self._buffer = buffer
        self._gradients = list(gradients)
        self._parameters = list(parameters)
        self._is_last = is_last

    def index(self) -> int:
        """The number of the bucket, in the order in which all processes reduce them."""
        return self._index

    def buffer(self) -> Tensor:
        """The gradients as one tensor of shape (elements,); sparse for a sparse gradient."""
        return self._buffer

    def gradients(self) -> List[Tensor]:
        """A view of the buffer for each parameter, with the parameter's shape."""
        return list(self._gradients)

    def parameters(self) -> List[Tensor]:
        """The parameters, in the order of gradients()."""
        return list(self._parameters)

    def is_last(self) -> bool:
        """Whether no bucket follows in this backward()."""
        return self._is_last

    def set_buffer(self, buffer: Tensor) -> None:
        """Replace the buffer, by one of another dtype for example. gradients() are views of it."""
        self._buffer = buffer
        self._gradients = [
            buffer.as_strided(view.shape, view.stride(), view.storage_offset())
            for view in self._gradients
        ]


class BuiltinCommHookType(enum.Enum):
    """The hooks of DistributedDataParallel._register_builtin_comm_hook()."""

    ALLREDUCE = "ALLREDUCE"
    FP16_COMPRESS = "FP16_COMPRESS"


def tensor_of(result: Any) -> Tensor:
    """The tensor in the result of a hook, which may be a list with one tensor."""
    if isinstance(result, (list, tuple)) and len(result) == 1:
        result = result[0]
    if not isinstance(result, Tensor):
        raise RuntimeError(
            "DistributedDataParallel: expected the hook's future to hold a tensor, got "
            f"{type(result).__name__}"
        )
    return result


__all__ = ["BuiltinCommHookType", "GradBucket", "tensor_of"]

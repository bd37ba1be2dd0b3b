"""Attention over a sequence whose parts are in the processes of a mesh: each process has the
queries of its part, and the keys and values of the others come by.

The results for the parts of the keys become one by their logarithms of sums of exponentials, so no
process has the scores of the whole sequence. In the backward pass, the gradient of each part of the
keys follows from the final result and its logarithms; it goes back to the process of that part.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
from typing import Any, Iterator, List, Optional, Sequence, Tuple

from treadle import _C, _ops
from treadle._C import Tensor
from treadle.autograd import Function
from treadle.distributed.device_mesh import DeviceMesh
from treadle.distributed.tensor import _collective_utils as comm

_SEQUENCE = -2  # the dimension of query, key and value
_attention = _ops.ops.aten._attention
_attention_backward = _ops.ops.aten._attention_backward
Block = Tuple[slice, slice, bool]  # queries, keys, whether a query sees no later keys


@dataclasses.dataclass(frozen=True)
class Parts:
    """How a sequence is divided among the processes of a mesh of one dimension.

    is_balanced: whether process r of n has the chunks r and 2n - 1 - r of 2n, and not the chunk r
        of n. All processes have as many pairs of a query and an earlier key then.
    travels: whether keys and values go from process to process, and not to all at once.
    """

    mesh: DeviceMesh
    is_balanced: bool
    travels: bool

    @property
    def count(self) -> int:
        return self.mesh.size()

    @property
    def place(self) -> int:
        return self.mesh.get_local_rank(0)

    def chunks_of(self, place: int) -> List[int]:
        """The numbers of the chunks that a process has."""
        return [place, 2 * self.count - 1 - place] if self.is_balanced else [place]

    def chunks(self) -> List[int]:
        """The numbers of all chunks, in the order of the processes."""
        return [chunk for place in range(self.count) for chunk in self.chunks_of(place)]

    def blocks(self, source: int, length: int, is_causal: bool) -> Iterator[Block]:
        """The blocks of this process's queries and the keys of `source` that see each other."""
        if not is_causal:
            yield slice(None), slice(None), False
            return
        mine, theirs = self.chunks_of(self.place), self.chunks_of(source)
        size = length // len(mine)
        for i, rows in enumerate(mine):
            for j, columns in enumerate(theirs):
                if columns <= rows:
                    queries = slice(i * size, (i + 1) * size)
                    yield queries, slice(j * size, (j + 1) * size), rows == columns

    def visits(self, tensors: Sequence[Tensor]) -> Iterator[Tuple[int, List[Tensor]]]:
        """Each process, with its tensors."""
        if not self.travels:
            everyone = [comm.all_gathered(tensor, self.mesh, 0) for tensor in tensors]
            for place in range(self.count):
                yield place, [each[place] for each in everyone]
            return
        here = list(tensors)
        for step in range(self.count):
            yield (self.place - step) % self.count, here
            if step < self.count - 1:
                here = self.passed_on(here)

    def passed_on(self, tensors: Sequence[Tensor]) -> List[Tensor]:
        """The tensors of the process before this one; the next one gets these."""
        after, before = (self.place + 1) % self.count, (self.place - 1) % self.count
        found = []
        for tensor in tensors:
            parts = [tensor.new_empty(0)] * self.count
            shapes: List[Sequence[int]] = [(0,)] * self.count
            parts[after], shapes[before] = tensor, tensor.shape
            found.append(comm.exchanged(parts, shapes, self.mesh, 0)[before])
        return found


def _wide(dtype: Any) -> Any:
    """The dtype of sums."""
    return _C.float64 if dtype == _C.float64 else _C.float32


def _add(output: Tensor, logsumexp: Tensor, part: Tensor, part_logsumexp: Tensor) -> None:
    """Add the attention over other keys to that over some keys, in place."""
    total = _C.logaddexp(logsumexp, part_logsumexp)
    output.mul_((logsumexp - total).exp().unsqueeze(-1))
    output.add_(part * (part_logsumexp - total).exp().unsqueeze(-1))
    logsumexp.copy_(total)


class _RingAttention(Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        parts: Parts,
        is_causal: bool,
        scale: float,
    ) -> Tensor:
        dtype = _wide(query.dtype)
        output = query.new_zeros((*query.shape[:-1], value.shape[-1]), dtype=dtype)
        logsumexp = query.new_full(query.shape[:-1], float("-inf"), dtype=dtype)
        for source, (keys, values) in parts.visits([key, value]):
            for rows, columns, diagonal in parts.blocks(source, query.shape[_SEQUENCE], is_causal):
                part, part_logsumexp = _attention(
                    query[..., rows, :], keys[..., columns, :], values[..., columns, :], None, 0.0,
                    diagonal, scale, 0,
                )  # fmt: skip
                _add(output[..., rows, :], logsumexp[..., rows], part, part_logsumexp)
        output = output.to(query.dtype)
        ctx.save_for_backward(query, key, value, output, logsumexp)
        ctx.parts, ctx.is_causal, ctx.scale = parts, is_causal, scale
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        query, key, value, output, logsumexp = ctx.saved_tensors
        parts: Parts = ctx.parts
        grad_query = _C.zeros_like(query, dtype=_wide(query.dtype))

        def gradients(source: int, keys: Tensor, values: Tensor) -> List[Tensor]:
            """Those of the keys and values of a process; adds that of this process's queries."""
            made = [_C.zeros_like(t, dtype=_wide(t.dtype)) for t in (keys, values)]
            blocks = parts.blocks(source, query.shape[_SEQUENCE], ctx.is_causal)
            for rows, columns, diagonal in blocks:
                of_query, *others = _attention_backward(
                    grad[..., rows, :], query[..., rows, :], keys[..., columns, :],
                    values[..., columns, :], None, output[..., rows, :], logsumexp[..., rows], 0.0,
                    diagonal, ctx.scale, 0,
                )  # fmt: skip
                grad_query[..., rows, :] += of_query
                for total, part in zip(made, others):
                    total[..., columns, :] += part
            return made

        collect = _travelled if parts.travels else _gathered
        grad_key, grad_value = collect(parts, key, value, gradients)
        return (
            grad_query.to(query.dtype), grad_key.to(key.dtype), grad_value.to(value.dtype), None,
            None, None,
        )  # fmt: skip


def _gathered(parts: Parts, key: Tensor, value: Tensor, gradients: Any) -> List[Tensor]:
    """The gradients of this process's keys and values: each process sums those that others made."""
    made = [gradients(source, *tensors) for source, tensors in parts.visits([key, value])]
    return [comm.reduce_scattered(each, 0, "sum", parts.mesh, 0) for each in zip(*made)]


def _travelled(parts: Parts, key: Tensor, value: Tensor, gradients: Any) -> List[Tensor]:
    """The same, where sums travel with keys and values, until they are home again."""
    here = [key, value]
    sums = [_C.zeros_like(t, dtype=_wide(t.dtype)) for t in here]
    for step in range(parts.count):
        made = gradients((parts.place - step) % parts.count, *here)
        sums = parts.passed_on([total + part for total, part in zip(sums, made)])
        if step < parts.count - 1:
            here = parts.passed_on(here)
    return sums


def ring_attention(
    parts: Parts,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Optional[Tensor] = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: Optional[float] = None,
    enable_gqa: bool = False,
) -> Tensor:
    """scaled_dot_product_attention() of a whole sequence, of which this process has a part: query,
    key and value are (..., length of the part, width), of one length in all processes. Returns the
    result for the part. NotImplementedError for a mask or dropout, ValueError for other lengths."""
    name = "scaled_dot_product_attention"
    if attn_mask is not None or dropout_p:
        raise NotImplementedError(
            f"{name}: expected attn_mask = None and dropout_p = 0 in context_parallel(), got "
            f"{'a mask' if attn_mask is not None else None} and {dropout_p}"
        )
    lengths = [tensor.shape[_SEQUENCE] for tensor in (query, key, value)]
    if len(set(lengths)) > 1 or (parts.is_balanced and lengths[0] % 2):
        raise ValueError(
            f"{name}: expected query, key and value of one "
            f"{'even ' if parts.is_balanced else ''}length in context_parallel(), got {lengths}"
        )
    if enable_gqa:
        times = query.shape[-3] // key.shape[-3]
        key, value = (t.repeat_interleave(times, -3) for t in (key, value))
    width = scale if scale is not None else query.shape[-1] ** -0.5
    return _RingAttention.apply(query, key, value, parts, is_causal, width)


__all__ = ["Parts", "ring_attention"]

"""PowerSGD: gradients as products of two thin matrices (Vogels et al., arXiv:1905.13727).

A gradient M (n, m) is replaced by P Q^T with P (n, r), Q (m, r). P is the mean of M Q over the
processes, with orthonormal columns; Q is the mean of M^T P. What is lost is added to the next
gradient.

    state = PowerSGDState(process_group=None, matrix_approximation_rank=2, start_powerSGD_iter=100)
    model.register_comm_hook(state, powerSGD_hook)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
import random
from typing import Any, Dict, List, Tuple

from treadle import _C, linalg
from treadle import distributed as dist
from treadle._C import Tensor
from treadle.distributed._grad_bucket import GradBucket
from treadle.futures import Future

from . import default_hooks
from ._stages import Stages

_GRAM_SCHMIDT_RANK = 2


class PowerSGDState:
    """The settings, and what is kept between steps.

    matrix_approximation_rank: r. start_powerSGD_iter: gradients are averaged as they are in so many
    steps before. min_compression_rate: gradients that would not shrink so much are averaged as they
    are. use_error_feedback: add what was lost to the next gradient. warm_start: begin with the Q of
    the step before. orthogonalization_epsilon: added to the norms of columns. random_seed: of the
    first Q, the same in all processes. batch_tensors_with_same_shape: one product for all gradients
    of a shape in a bucket.

    ValueError for start_powerSGD_iter < 2 with use_error_feedback or warm_start: the buckets change
    after the first step.
    """

    def __init__(
        self,
        process_group: Any,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1_000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "PowerSGDState: expected start_powerSGD_iter > 1 with use_error_feedback or "
                f"warm_start, got start_powerSGD_iter = {start_powerSGD_iter}"
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback = use_error_feedback
        self.warm_start = warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = random.Random(random_seed)
        self.error_dict: Dict[int, Tensor] = {}
        self.p_memory_dict: Dict[int, List[Tensor]] = {}
        self.q_memory_dict: Dict[int, List[Tensor]] = {}
        self.iter = 0
        self.total_numel_before_compression = 0
        self.total_numel_after_compression = 0
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape

    # A saved state goes on in the group of all processes.
    def __getstate__(self) -> dict:
        return {name: value for name, value in vars(self).items() if name != "process_group"}

    def __setstate__(self, state: dict) -> None:
        vars(self).update(state, process_group=dist.group.WORLD)

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count a step when its last bucket comes."""
        if bucket.is_last():
            self.iter += 1

    def compression_stats(self) -> Tuple[float, int, int]:
        """The rate of compression so far, and the numbers of elements before and after it."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0.0), before, after


def _orthogonalize(matrices: Tensor, epsilon: float = 0.0) -> None:
    """Make the columns of each matrix (batch, n, r) orthonormal, in place; zeros stay zeros."""
    rank = matrices.shape[2]
    if rank > _GRAM_SCHMIDT_RANK and matrices.dtype not in (_C.float16, _C.bfloat16):
        matrices.copy_(linalg.qr(matrices)[0])
        return
    for place in range(rank):
        column = matrices[:, :, place : place + 1]
        norm = linalg.vector_norm(column, dim=1, keepdim=True) + epsilon
        column.div_(norm.masked_fill(norm == 0, 1.0))
        following = matrices[:, :, place + 1 :]
        if following.shape[2]:
            following.sub_((column * following).sum(1, keepdim=True) * column)


def _begin_mean(tensors: List[Tensor], group: Any) -> Any:
    """Begin the sum of the tensors over the processes, as one tensor; a function that waits for it
    and writes the means."""
    flat = _C.cat([tensor.reshape(-1) for tensor in tensors])
    work = dist.all_reduce(flat, group=group, async_op=True)
    assert work is not None

    def finish() -> None:
        work.wait()
        means = (flat / dist.get_world_size(group)).split([t.numel() for t in tensors])
        for tensor, mean in zip(tensors, means):
            tensor.copy_(mean.view(tensor.shape))

    return finish


def _random_q(state: PowerSGDState, shapes: List[tuple], dtype: Any) -> List[Tensor]:
    generator = _C.Generator().manual_seed(state.rng.randrange(1_000_000_000))
    return [_C.randn(shape, generator=generator).to(dtype) for shape in shapes]


def _compress(
    state: PowerSGDState, bucket: GradBucket, matrices: List[Tensor], others: List[Tensor]
) -> Any:
    """Begin to replace the matrices (batch, n, m) by the products, and the others by their means; a
    function that waits for it, and returns the products."""
    number, group = bucket.index(), state.process_group
    rank = [min(m.shape[1], m.shape[2], state.matrix_approximation_rank) for m in matrices]
    if not state.warm_start or number not in state.q_memory_dict:
        shapes = [(m.shape[0], m.shape[2], r) for m, r in zip(matrices, rank)]
        dtype = bucket.buffer().dtype
        state.q_memory_dict[number] = _random_q(state, shapes, dtype)
    qs = state.q_memory_dict[number]
    for q in qs:
        _orthogonalize(q, state.orthogonalization_epsilon)
    ps = [_C.bmm(m, q) for m, q in zip(matrices, qs)]
    state.p_memory_dict[number] = ps
    finish_ps = _begin_mean([*others, *ps], group) if others or ps else None

    def finish() -> List[Tensor]:
        if finish_ps is not None:
            finish_ps()
        if not matrices:
            return []
        for p in ps:
            _orthogonalize(p, state.orthogonalization_epsilon)
        for m, p, q in zip(matrices, ps, qs):
            _C.bmm(m.transpose(1, 2), p, out=q)
        _begin_mean(qs, group)()
        products = [_C.bmm(p, q.transpose(1, 2)) for p, q in zip(ps, qs)]
        if not state.warm_start:
            state.p_memory_dict.clear()
            state.q_memory_dict.clear()
        return products

    return finish


def _with_error(state: PowerSGDState, number: int, tensor: Tensor) -> Any:
    """Add what was lost in the step before; a copy to compare the result with, or None."""
    if not state.use_error_feedback:
        return None
    if number in state.error_dict:
        tensor.add_(state.error_dict[number])
    return tensor.clone()


def _matrix(state: PowerSGDState, tensor: Tensor) -> Any:
    """The gradient as a matrix if it is worth compressing, else None. Counts it."""
    state.total_numel_before_compression += tensor.numel()
    if tensor.dim() >= 2 and tensor.numel():
        matrix = tensor.reshape(tensor.shape[0], -1)
        n, m = matrix.shape
        after = (n + m) * min(n, m, state.matrix_approximation_rank)
        if after * state.min_compression_rate < n * m:
            state.total_numel_after_compression += after
            return matrix
    state.total_numel_after_compression += tensor.numel()
    return None


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """The mean of the gradients, each weight as a product of thin matrices of its own."""
    flat = bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return default_hooks._allreduce_fut(state.process_group, flat)
    before = _with_error(state, bucket.index(), flat)
    others: List[Tensor] = []
    groups: Dict[Any, List[Tuple[Tensor, Tensor]]] = {}
    for place, tensor in enumerate(bucket.gradients()):
        matrix = _matrix(state, tensor)
        if matrix is None:
            others.append(tensor)
        else:
            key = tuple(matrix.shape) if state.batch_tensors_with_same_shape else place
            groups.setdefault(key, []).append((tensor, matrix))
    stacked = [_C.stack([matrix for _, matrix in group]) for group in groups.values()]
    finish = _compress(state, bucket, stacked, others)

    def compute() -> Tensor:
        for products, group in zip(finish(), groups.values()):
            for product, (tensor, _) in zip(products, group):
                tensor.copy_(product.view(tensor.shape))
        if before is not None:
            state.error_dict[bucket.index()] = before - flat
        state.maybe_increase_iter(bucket)
        return flat

    return Stages(compute)


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """The mean of the gradients, the whole bucket as one square matrix: faster, less accurate."""
    flat = bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return default_hooks._allreduce_fut(state.process_group, flat)
    length = flat.numel()
    side = math.isqrt(length - 1) + 1
    state.total_numel_before_compression += length
    state.total_numel_after_compression += 2 * side * state.matrix_approximation_rank
    padded = _C.cat([flat, flat.new_zeros(side * side - length)])
    before = _with_error(state, bucket.index(), padded)
    finish = _compress(state, bucket, [padded.view(1, side, side)], [])

    def compute() -> Tensor:
        result = finish()[0].reshape(-1)
        if before is not None:
            state.error_dict[bucket.index()] = before - result
        state.maybe_increase_iter(bucket)
        return flat.copy_(result[:length])

    return Stages(compute)


__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]

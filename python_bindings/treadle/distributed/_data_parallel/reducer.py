"""Gradients averaged over processes while backward() still computes others.

A bucket is reduced as soon as all of its gradients are there, the buckets in one order in all
processes. The order in which gradients come in the first backward(), that of the first process,
makes the buckets of the next ones. A gradient is known to be there by a hook that runs when it was
added to `parameter.grad`.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from treadle import _C
from treadle import distributed as dist
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.distributed._grad_bucket import GradBucket, tensor_of
from treadle.distributed._sparse import sum_of_sparse
from treadle.sparse import sparse_coo_tensor

from .buckets import Bucket, assign
from .outputs import reached_from

_MOST_NAMES = 8


@dataclass
class Options:
    """The arguments of DistributedDataParallel that the reducer reads."""

    first_caps: List[int]
    caps: List[int]
    find_unused: bool = False
    as_views: bool = False
    skip_unused: bool = False
    copies_together: bool = False
    allocates_late: bool = False


class Reducer:
    """Averages the gradients of `parameters` over a group."""

    def __init__(
        self,
        parameters: Sequence[Tensor],
        names: Sequence[str],
        sparse: Set[int],
        group: Any,
        options: Options,
    ) -> None:
        self.parameters = list(parameters)
        self.names = list(names)
        self.options = options
        self.static = False
        self.waits_for_caller = False  # finalize() is called by the program
        self.hook: Optional[Tuple[Callable, Any]] = None
        self.after_backward: List[Any] = []  # futures that the end of backward() waits for
        self._sparse = set(sparse)
        self._index_of = {id(p): i for i, p in enumerate(self.parameters)}
        self.set_group(group)
        self._handles = [p.register_post_accumulate_grad_hook(self._arrived) for p in parameters]

    def set_group(self, group: Any) -> None:
        """Begin again, with another group."""
        self.group = group
        self.world = dist.get_world_size(group)
        self.divisor = self.world
        self.rebuilt = False
        self._may_rebuild = False
        self._order: Dict[int, None] = {}  # indices, in the order in which gradients came
        self._times: Optional[Dict[int, int]] = None  # of a static graph: gradients of each index
        self._counted: Dict[int, int] = {}
        self._used: Set[int] = set()  # by this process
        self._never_used: Set[int] = set()  # by no process
        self._used_by_all: Optional[Tensor] = None
        self._used_work: Any = None
        self._unused: Set[int] = set()
        self._expects = self._is_running = self._is_queued = self._all_begun = False
        caps = self.options.first_caps
        if self.static or not self.options.find_unused:
            caps = [1 << 62]  # the order is not known yet, so there is one bucket of each dtype
        self._make_buckets(assign(self.parameters, range(len(self.parameters)), caps, self._sparse))
        self.buckets.reverse()
        self._number_buckets()

    def _make_buckets(self, assigned: Sequence[Sequence[int]]) -> None:
        self.buckets = [
            Bucket(indices, self.parameters, self.names, indices[0] in self._sparse)
            for indices in assigned
        ]
        self._number_buckets()

    def _number_buckets(self) -> None:
        self._place = {
            index: (bucket, slot)
            for bucket in self.buckets
            for slot, index in enumerate(bucket.indices)
        }
        self._begin_count()

    def _begin_count(self) -> None:
        self._ready: Set[int] = set()
        self._next = 0
        self._all_begun = False
        for bucket in self.buckets:
            bucket.waiting = len(bucket.indices)

    def remove_hooks(self) -> None:
        """Leave the gradients alone from now on."""
        for handle in self._handles:
            handle.remove()

    # ---- before forward() and backward() ----

    def rebuild(self) -> bool:
        """Make the buckets after the order of the first backward(), once. All processes call it."""
        if self.rebuilt or not self._may_rebuild or self._is_running:
            return False
        order = [*self._order, *(i for i in range(len(self.parameters)) if i not in self._order)]
        if self.world > 1:
            agreed = _C.tensor(order)
            dist.broadcast(agreed, group=self.group, group_src=0)
            order = agreed.tolist()
        self._make_buckets(assign(self.parameters, order, self.options.caps, self._sparse))
        self.rebuilt = True
        return True

    def prepare_for_backward(self, outputs: Sequence[Tensor]) -> None:
        """Expect a backward() from the outputs of forward(). RuntimeError if the last one left
        buckets that wait."""
        self.expect_finished()
        self._expects = True
        self._is_queued = False
        self._begin_count()
        self._counted = dict(self._times or {})
        self._unused = set()
        if self._finds_unused():
            reached = {self._index_of.get(i) for i in reached_from(outputs)}
            self._unused = set(range(len(self.parameters))) - reached
        elif self._times is not None:
            self._unused = {i for i in range(len(self.parameters)) if not self._times.get(i)}
        for output in outputs:
            if output.grad_fn is not None:
                # The outermost backward() calls it, also if checkpoints run inner ones.
                output.grad_fn.register_prehook(self._queue_end)

    def _finds_unused(self) -> bool:
        return self.options.find_unused and not self.static

    def _learns(self) -> bool:
        """Whether this is the first backward() of a static graph."""
        return self.static and self._times is None

    def expect_finished(self) -> None:
        """RuntimeError with the names of the parameters whose gradients are missing."""
        if not self._is_running:
            return
        if self._all_begun:
            raise RuntimeError(
                "DistributedDataParallel: expected finalize_backward() after the last backward(), "
                "as require_manual_backward_finalization is set, got no call"
            )
        missing = [name for i, name in enumerate(self.names) if i not in self._ready]
        more = f" and {len(missing) - _MOST_NAMES} more" if len(missing) > _MOST_NAMES else ""
        raise RuntimeError(
            "DistributedDataParallel: expected a gradient of every parameter in the last "
            f"backward(), got none of {len(missing)} in rank {dist.get_rank()}: "
            f"{', '.join(missing[:_MOST_NAMES])}{more}\n"
            "Use all outputs of forward() in the loss. If the parameters take no part in it, set "
            "find_unused_parameters=True."
        )

    # ---- in backward() ----

    def _queue_end(self, _: Any) -> None:
        if self._expects and not self._is_queued:
            self._is_queued = True
            _C._queue_callback(self._end_of_backward)

    def _arrived(self, parameter: Tensor) -> None:
        index = self._index_of[id(parameter)]
        if self.static or self.options.find_unused:
            self._used.add(index)  # also in no_sync(), for the backward() that ends it
        if not self._expects:
            return
        if not self._is_running:
            self._is_running = True
            if not self._learns():
                for unused in sorted(self._unused):
                    self._mark_ready(unused)
        if not self.rebuilt:
            self._order.pop(index, None)
            self._order[index] = None
        if self._learns():
            self._counted[index] = self._counted.get(index, 0) + 1
            return
        if self._times is not None:
            if index in self._unused:
                raise RuntimeError(
                    "DistributedDataParallel: expected the graph of the first backward(), as "
                    f"static_graph is set, got a gradient of {self.names[index]}, which had none"
                )
            self._counted[index] -= 1
            if self._counted[index] > 0:
                return
        self._mark_ready(index)

    def _mark_ready(self, index: int) -> None:
        if index in self._ready:
            raise RuntimeError(
                "DistributedDataParallel: expected one gradient of each parameter in a backward(), "
                f"got a second of {self.names[index]}\n"
                "A parameter has a second one if backward() runs again before all gradients of the "
                "last one\nare there, if checkpoints with use_reentrant=True share it, or if "
                "find_unused_parameters is\nset and forward() uses it outside of its outputs. If "
                "the graph never changes, set static_graph=True."
            )
        self._ready.add(index)
        bucket, slot = self._place[index]
        if not self.options.copies_together and not bucket.is_sparse:
            with no_grad():
                bucket.take(slot, self._scale(), self.options.as_views)
        bucket.waiting -= 1
        while self._next < len(self.buckets) and self.buckets[self._next].waiting == 0:
            with no_grad():
                self._reduce(self._next)
            self._next += 1
        if self._next == len(self.buckets) and not self._all_begun:
            self._all_begun = True
            if self._finds_unused():
                self._find_used_by_all()
            if not (self._is_queued or self.waits_for_caller):
                _C._queue_callback(self.finalize)  # from other tensors than the outputs

    def _scale(self) -> float:
        """The factor of a gradient before it is added to the others. Hooks divide."""
        return 1.0 if self.hook is not None else 1.0 / self.divisor

    def _reduce(self, number: int) -> None:
        bucket = self.buckets[number]
        if bucket.is_sparse:
            parameter = bucket.parameters[0]
            grad = _nothing(parameter) if parameter.grad is None else parameter.grad.detach()
            grad = grad.coalesce() if grad.is_sparse else grad.to_sparse(1)
            self._begin_sparse(number, bucket, grad)
            return
        if self.options.copies_together:
            bucket.take_all(self._scale(), self.options.as_views)
        if not (self.options.skip_unused and self._unused.issuperset(bucket.indices)):
            self._begin_dense(number, bucket)

    def _begin_dense(self, number: int, bucket: Bucket) -> None:
        assert bucket.flat is not None
        if self.hook is not None:
            bucket.future = self._run_hook(number, bucket.flat, bucket.views)
        else:
            bucket.work = dist.all_reduce(bucket.flat, group=self.group, async_op=True)

    def _begin_sparse(self, number: int, bucket: Bucket, grad: Tensor) -> None:
        if self.hook is not None:
            bucket.future = self._run_hook(number, grad, [grad])
        else:
            bucket.future = sum_of_sparse(grad * self._scale(), self.group)

    def _run_hook(self, number: int, flat: Tensor, views: Sequence[Tensor]) -> Any:
        assert self.hook is not None
        hook, state = self.hook
        bucket = self.buckets[number]
        is_last = number == len(self.buckets) - 1
        future = hook(state, GradBucket(number, flat, views, bucket.parameters, is_last))
        if not (hasattr(future, "wait") and hasattr(future, "then")):
            raise RuntimeError(
                "DistributedDataParallel: expected the hook to return a torch.futures.Future, got "
                f"{type(future).__name__}"
            )
        return future

    def _find_used_by_all(self) -> None:
        used = [1 if index in self._used else 0 for index in range(len(self.parameters))]
        self._used_by_all = _C.tensor(used, dtype=_C.int32)
        if not self.options.skip_unused:
            self._used_work = dist.all_reduce(
                self._used_by_all, dist.ReduceOp.MAX, self.group, async_op=True
            )

    # ---- at the end of backward() ----

    def _end_of_backward(self) -> None:
        """All gradients that come have come."""
        self._is_queued = False
        if not self._is_running:
            return
        if self._learns():
            self._times = self._counted
            for index in range(len(self.parameters)):
                self._mark_ready(index)
            self._find_used_by_all()
        elif self._finds_unused():
            for index in range(len(self.parameters)):
                if index not in self._ready:
                    self._mark_ready(index)
        if self._all_begun and not self.waits_for_caller:
            self.finalize()

    def _nobody_used(self) -> Set[int]:
        """The parameters that no process used: their gradients stay as they are."""
        if self._used_by_all is not None:
            if self._used_work is not None:
                self._used_work.wait()
            used = self._used_by_all.tolist()
            self._used_by_all = self._used_work = None
            self._never_used = {index for index, is_used in enumerate(used) if not is_used}
        return self._never_used

    def finalize(self) -> None:
        """Wait for all buckets, and write the means to the gradients."""
        with no_grad():
            self._finish_buckets()
        self._expects = self._is_running = False
        self.divisor = self.world
        self._used = set()
        if self.static or not self.options.find_unused:
            self._may_rebuild = True
        waiting, self.after_backward = self.after_backward, []
        for future in waiting:
            future.wait()

    def _finish_buckets(self) -> None:
        for bucket in self.buckets:
            if bucket.work is not None:
                bucket.work.wait()
        nobody = self._nobody_used()
        for bucket in self.buckets:
            if bucket.is_sparse:
                self._finish_sparse(bucket, nobody)
                continue
            if bucket.future is not None:
                result = tensor_of(bucket.future.wait())
                assert bucket.flat is not None
                if result.data_ptr() != bucket.flat.data_ptr():
                    bucket.flat.copy_(result.reshape(-1)[: bucket.flat.numel()])
            bucket.give(nobody, self.options.as_views, self.options.copies_together)
            bucket.work = bucket.future = None
            if self.options.allocates_late:
                bucket.release()

    def _finish_sparse(self, bucket: Bucket, nobody: Set[int]) -> None:
        result, bucket.future = bucket.future, None
        result = result if isinstance(result, Tensor) else tensor_of(result.wait())
        if bucket.indices[0] not in nobody:
            bucket.parameters[0].grad = result

    def may_finalize(self) -> bool:
        """Whether all buckets were begun, and wait for finalize()."""
        return self._is_running and self._all_begun

    # ---- for a process that has no more inputs ----

    def reduce_zeros(self) -> None:
        """Take part in one backward() of the others, with gradients of zero, and take the means."""
        with no_grad():
            for number, bucket in enumerate(self.buckets):
                if bucket.is_sparse:
                    self._begin_sparse(number, bucket, _nothing(bucket.parameters[0]))
                else:
                    bucket.allocate()
                    bucket.flat.zero_()  # type: ignore[union-attr]
                    self._begin_dense(number, bucket)
            if self._finds_unused() or self._learns():
                self._used = set()
                self._find_used_by_all()
            self._finish_buckets()
        if self._learns():  # as far as the others can tell
            every = range(len(self.parameters))
            self._times = {index: 1 for index in every if index not in self._never_used}
        if self.static or not self.options.find_unused:
            self._may_rebuild = True


def _nothing(parameter: Tensor) -> Tensor:
    """A sparse gradient without entries."""
    places = _C.zeros((1, 0), dtype=_C.int64)
    values = parameter.detach().new_zeros((0, *parameter.shape[1:]))
    return sparse_coo_tensor(places, values, parameter.shape)

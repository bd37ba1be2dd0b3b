"""A module in several processes, each with its share of the batch: after backward() all have the
mean of their gradients, and so the same parameters after a step.

    model = DistributedDataParallel(model)
    loss(model(share), target).backward()      # gradients are averaged here
    optimizer.step()
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set

from treadle import _C
from treadle import distributed as dist
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad

from ..modules.module import Module

_MEGABYTE = 1 << 20
_DEFAULT_MEGABYTES = 25


class _Bucket:
    """Parameters of one dtype whose gradients are averaged together."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self.parameters = list(parameters)
        self.waiting: Set[int] = set()
        self.flat: Optional[Tensor] = None
        self.work: Any = None

    def begin(self, group: Any, size: int) -> None:
        """Average, beside the rest of backward()."""
        grads = [p.grad if p.grad is not None else _C.zeros_like(p) for p in self.parameters]
        self.flat = _C.cat([grad.detach().reshape(-1) for grad in grads]) / size
        self.work = dist.all_reduce(self.flat, group=group, async_op=True)

    def finish(self, skipped: Set[int]) -> None:
        """Wait for the mean, and give it to the parameters, but for those that nobody used."""
        self.work.wait()
        assert self.flat is not None
        pieces = self.flat.split([p.numel() for p in self.parameters])
        for parameter, piece in zip(self.parameters, pieces):
            if id(parameter) in skipped:
                continue
            if parameter.grad is None:
                parameter.grad = _C.zeros_like(parameter)
            parameter.grad.detach().copy_(piece.view(parameter.shape))
        self.flat = self.work = None


def _buckets(parameters: Sequence[Tensor], megabytes: float) -> List[_Bucket]:
    """The parameters from the last to the first, as backward() reaches them, in parts of one dtype
    and at most so large; the first part is small, so that averaging begins early."""
    limit, size = min(megabytes, 1.0) * _MEGABYTE, 0
    parts: List[List[Tensor]] = []
    for parameter in reversed(parameters):
        bytes_of_it = parameter.numel() * parameter.element_size()
        if not parts or parts[-1][0].dtype != parameter.dtype or size + bytes_of_it > limit:
            limit = megabytes * _MEGABYTE if parts else limit
            parts.append([])
            size = 0
        parts[-1].append(parameter)
        size += bytes_of_it
    return [_Bucket(part) for part in parts]


def _tensors_in(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors_in(item)


def _reached_from(outputs: Any) -> Set[int]:
    """The leaves whose gradients backward() from these outputs would make, by id()."""
    nodes = [t.grad_fn for t in _tensors_in(outputs) if t.grad_fn is not None]
    found = {id(t) for t in _tensors_in(outputs) if t.is_leaf}
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        if node.name() == "AccumulateGrad":
            found.add(id(node.variable))
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                nodes.append(following)
    return found


class DistributedDataParallel(Module):
    """Calls `module`, whose parameters and buffers all processes take from the first one.

    Gradients are averaged while backward() runs, in parts of `bucket_cap_mb` megabytes. A parameter
    that takes no part in the result is an error of the next forward(), unless
    `find_unused_parameters` is set; then its gradient is that of the processes that used it.
    `static_graph` allows the same. `broadcast_buffers` takes buffers from the first process before
    each forward().

    ValueError before init_process_group(); RuntimeError for a module without parameters to train,
    or with others than the first process has.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Optional[Sequence[Any]] = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: Optional[float] = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
    ) -> None:
        super().__init__()
        if device_ids:
            raise ValueError(
                "DistributedDataParallel: expected no device_ids for a module on the cpu, got "
                f"{list(device_ids)}"
            )
        if output_device is not None:
            raise ValueError(
                "DistributedDataParallel: expected no output_device for a module on the cpu, got "
                f"{output_device}"
            )
        self.module = module
        self.process_group = process_group
        self.dim = dim
        self.device_ids = None
        self.output_device = None
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.static_graph = static_graph
        self.require_backward_grad_sync = True
        self._size = dist.get_world_size(process_group)
        self._source = dist.get_global_rank(process_group or dist.group.WORLD, 0)  # type: ignore[arg-type]
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named: dict[str, Tensor] = {
            name: p for name, p in module.named_parameters() if name not in ignored
        }
        self._trained = [p for p in named.values() if p.requires_grad]
        self._shared = [*named.values()] + [
            b for name, b in module.named_buffers() if name not in ignored
        ]
        self._buffers_to_share = self._shared[len(named) :]
        if not self._trained:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters "
                "that require a gradient."
            )
        if init_sync:
            self._check_same(named)
            self._take_from_first(self._shared)
        self._megabytes = _DEFAULT_MEGABYTES if bucket_cap_mb is None else bucket_cap_mb
        self._listen_to_gradients()

    def _listen_to_gradients(self) -> None:
        self._parts = _buckets(self._trained, self._megabytes)
        self._part_of = {id(p): part for part in self._parts for p in part.parameters}
        self._used: Set[int] = set()
        self._next_part = 0
        self._is_waiting = False  # forward() has run, and its backward() has not ended
        self._in_backward = False
        self._hooks = [
            p.register_post_accumulate_grad_hook(self._gradient_is_there) for p in self._trained
        ]

    # Copies, pickled or not, listen to the gradients of their own parameters.
    def __getstate__(self) -> dict:
        if self.process_group is not None and self.process_group is not dist.group.WORLD:
            raise RuntimeError(
                "DistributedDataParallel: expected the group of all processes for a copy, "
                "got another"
            )
        state = super().__getstate__()
        for name in ("_parts", "_part_of", "_used", "_hooks", "process_group"):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        self.process_group = None
        self._listen_to_gradients()

    # ---- parameters and buffers ----

    def _check_same(self, named: Dict[str, Tensor]) -> None:
        mine = [(name, tuple(p.shape), str(p.dtype)) for name, p in named.items()]
        first = [mine]
        dist.broadcast_object_list(first, self._source, self.process_group)
        if first[0] != mine:
            different = next(
                (pair for pair in zip(first[0], mine) if pair[0] != pair[1]),
                (f"{len(first[0])} parameters", len(mine)),
            )
            raise RuntimeError(
                "DistributedDataParallel: expected the parameters of the first process, "
                f"{different[0]}, got {different[1]}"
            )

    def _take_from_first(self, tensors: Sequence[Tensor]) -> None:
        for tensor in tensors:
            dist.broadcast(tensor.detach(), self._source, self.process_group)

    # ---- a step ----

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The result of the module for this process's share."""
        is_recorded = _C.is_grad_enabled() and self.require_backward_grad_sync
        if is_recorded:
            self._expect_finished()
        if self.broadcast_buffers and self._buffers_to_share and self.require_backward_grad_sync:
            self._take_from_first(self._buffers_to_share)
        outputs = self.module(*inputs, **kwargs)
        if is_recorded:
            self._prepare(outputs)
        return outputs

    def _expect_finished(self) -> None:
        if self._is_waiting and self._in_backward:
            left = sum(len(part.waiting) for part in self._parts)
            raise RuntimeError(
                "DistributedDataParallel: expected a gradient of every parameter in the last "
                f"backward(), got none of {left}; set find_unused_parameters=True if they take no "
                "part in the loss"
            )

    def _prepare(self, outputs: Any) -> None:
        """Wait for the gradients of all parameters that the outputs depend on."""
        everything = {id(p) for p in self._trained}
        self._used = everything
        if self.find_unused_parameters or self.static_graph:
            self._used = _reached_from(outputs) & everything
        self._next_part, self._is_waiting, self._in_backward = 0, True, False
        for part in self._parts:
            part.waiting = {id(p) for p in part.parameters} & self._used

    def _gradient_is_there(self, parameter: Tensor) -> None:
        if not (self._is_waiting and self.require_backward_grad_sync):
            return
        if not self._in_backward:
            self._in_backward = True
            _C._queue_callback(self._end_of_backward)
        self._part_of[id(parameter)].waiting.discard(id(parameter))
        self._begin_ready_parts()

    def _begin_ready_parts(self) -> None:
        """In the same order in all processes, whichever is ready first."""
        while self._next_part < len(self._parts) and not self._parts[self._next_part].waiting:
            self._parts[self._next_part].begin(self.process_group, self._size)
            self._next_part += 1

    def _end_of_backward(self) -> None:
        if self._next_part < len(self._parts):
            return  # forward() reports it
        self._is_waiting = False
        may_skip = self.find_unused_parameters or self.static_graph
        skipped = self._used_by_nobody() if may_skip else set()
        with no_grad():
            for part in self._parts:
                part.finish(skipped)

    def _used_by_nobody(self) -> Set[int]:
        used = _C.tensor([id(p) in self._used for p in self._trained], dtype=_C.uint8)
        dist.all_reduce(used, dist.ReduceOp.MAX, self.process_group)
        return {id(p) for p, is_used in zip(self._trained, used.tolist()) if not is_used}

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block whose backward() only adds to the gradients of this process; the first one after
        it averages the sums."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

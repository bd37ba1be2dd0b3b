"""The parameters of one module that are gathered, freed and reduced together.

Parameters of one dtype are sent in one call. A gather may begin before its parameters are needed,
and a reduction ends after later layers have begun: both are communication beside computation.

Between forward and backward the parameters are whole, or sharded over all processes, or sharded
over a part of the processes: then each part has all rows, and backward gathers within it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import weakref
from typing import Any, Dict, List, Optional, Tuple

from treadle import _C
from treadle import distributed as dist
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.distributed.fsdp._parameter import MeshDims, ShardedParameter
from treadle.distributed.fsdp._policies import MixedPrecisionPolicy

_parts: Any = weakref.WeakKeyDictionary()  # of groups: the part with this process, by its size


def _part_of(dims: MeshDims, size: int) -> Any:
    """The group of this process and its neighbours: `size` successive ones of those that shard."""
    known = _parts.setdefault(dims.group, {})
    if size not in known:
        first = dims.rank - dims.rank % size
        ranks = dist.get_process_group_ranks(dims.group)[first : first + size]
        known[size] = dist.new_group(ranks, use_local_synchronization=True)
    return known[size]


class _Gather:
    """A gather under way: the parameters, their flat rows of all processes, and the work."""

    def __init__(
        self, parameters: List[ShardedParameter], dims: MeshDims, sent: Tensor, group: Any
    ) -> None:
        self.parameters = parameters
        self.sizes = [p.padded for p in parameters]
        self.rows = _C.empty(dims.size, sum(self.sizes), dtype=sent.dtype)
        self.work: Any = dist.all_gather_into_tensor(
            self.rows.view(-1), sent.view(-1), group=group, async_op=True
        )

    def finish(self) -> None:
        """Wait, and make the whole parameters."""
        self.work.wait()
        columns = self.rows.split(self.sizes, dim=1)
        for parameter, rows in zip(self.parameters, columns):
            parameter.fill(rows.unbind(0))


def _own_rows(parameters: List[ShardedParameter], dims: MeshDims) -> _Gather:
    """The gather of the rows that each process has."""
    sizes = [p.padded for p in parameters]
    sent = _C.empty(sum(sizes), dtype=parameters[0].used_dtype)
    for parameter, place in zip(parameters, sent.split(sizes)):
        parameter.write_rows(place)
    return _Gather(parameters, dims, sent, dims.group)


class _Reduction:
    """A reduction under way: of the gradients of some parameters, in one dtype."""

    def __init__(
        self,
        group: ParameterGroup,
        gradients: List[Tuple[ShardedParameter, Tensor]],
        dtype: _C.dtype,
    ) -> None:
        self.group = group
        self.parameters = [parameter for parameter, _ in gradients]
        self.sizes = [p.padded for p in self.parameters]
        dims, total = group.dims, sum(self.sizes)
        sent = _C.empty(dims.size, total, dtype=dtype)
        for (parameter, gradient), place in zip(gradients, sent.split(self.sizes, dim=1)):
            parameter.split(gradient, place.unbind(0))
        factor = group.divide_factor
        if factor is None and group.sums:
            factor = dims.size if dims.copies is None else dims.size * dims.copies.size()
        self.op = dist.ReduceOp.AVG if factor is None else dist.ReduceOp.SUM
        if factor is not None:
            sent /= factor
        self.rows = _C.empty(total, dtype=dtype)
        self.work: Any = None
        if group.comm_hook is not None and dims.copies is None:
            group.comm_hook(sent.view(-1), self.rows)
            return
        self.work = dist.reduce_scatter_tensor(
            self.rows, sent.view(-1), self.op, dims.group, async_op=True
        )

    def finish(self) -> None:
        """Wait, and give the rows to the parameters. With copies of the shards, these are averaged
        as well, unless a later backward does that."""
        group = self.group
        if self.work is not None:
            self.work.wait()
        if group.dims.copies is not None:
            key = tuple(map(id, self.parameters))
            before = group.partly_reduced.pop(key, None)
            if before is not None:
                self.rows += before
            if not group.requires_all_reduce:
                group.partly_reduced[key] = self.rows
                return
            if group.comm_hook is not None:
                group.comm_hook(self.rows)
            else:
                dist.all_reduce(self.rows, self.op, group.dims.copies)
        if group.all_reduce_hook is not None:
            group.all_reduce_hook(self.rows)
        for parameter, rows in zip(self.parameters, self.rows.split(self.sizes)):
            parameter.add_gradient(rows)


class ParameterGroup:
    """The sharded parameters of a module."""

    def __init__(
        self, parameters: List[ShardedParameter], dims: MeshDims, precision: MixedPrecisionPolicy
    ) -> None:
        self.parameters = parameters
        self.dims = dims
        self.precision = precision
        self.is_unsharded = False
        self.reduce_gradients = True
        self.requires_all_reduce = True
        self.reshard_after_backward = True
        self.unshard_in_backward = True
        self.reduce_unused = False
        self.keep_memory = False
        self.divide_factor: Optional[float] = None
        self.sums = False  # whether sums are sent, and divided by this, where averages would be
        self.all_reduce_hook: Any = None
        self.comm_hook: Any = None  # reduces gradients in place of the average
        self.partly_reduced: Dict[Tuple[int, ...], Tensor] = {}
        self._gathers: List[_Gather] = []
        # The rows that this process keeps for its part of the processes, by dtype.
        self._part_rows: Dict[_C.dtype, Tensor] = {}
        self._part: Any = None
        self._ready: set = set()
        self._listening: Dict[int, Any] = {}
        self.when_ready: Any = None  # called when backward has made all gradients

    # ---- parameters ----

    def _by_dtype(self) -> Dict[_C.dtype, List[ShardedParameter]]:
        found: Dict[_C.dtype, List[ShardedParameter]] = {}
        for parameter in self.parameters:
            found.setdefault(parameter.used_dtype, []).append(parameter)
        return found

    def begin_unshard(self, in_backward: bool = False) -> None:
        """Begin the gather, unless the parameters are there or under way. In backward they are
        those of the last forward, which a part of the processes may have."""
        if self.is_unsharded or self._gathers:
            return
        if not in_backward:
            self._part_rows = {}
        for parameter in self.parameters:
            parameter.take_from_module()
        with no_grad():
            for dtype, parameters in self._by_dtype().items():
                rows = self._part_rows.get(dtype)
                self._gathers.append(
                    _own_rows(parameters, self.dims)
                    if rows is None
                    else _Gather(parameters, self.dims, rows, self._part)
                )

    def unshard(self, in_backward: bool = False) -> None:
        """Give the module its whole parameters."""
        if self.is_unsharded:
            return
        self.begin_unshard(in_backward)
        gathers, self._gathers = self._gathers, []
        with no_grad():
            for gather in gathers:
                gather.finish()
        for parameter in self.parameters:
            parameter.to_unsharded()
            self._listen(parameter)
        self.is_unsharded = True

    def drop_gathers(self) -> None:
        """End a gather that nobody needed."""
        for gather in self._gathers:
            gather.work.wait()
        self._gathers = []

    def keep_part(self, size: int) -> None:
        """Keep the rows that this process has to have for backward, where parts of `size` processes
        have all rows between them. Called before reshard()."""
        self._part = _part_of(self.dims, size)
        each = self.dims.size // size  # processes whose rows this one keeps
        first = self.dims.rank % size * each
        with no_grad():
            for dtype, parameters in self._by_dtype().items():
                sizes = [p.padded for p in parameters]
                rows = _C.empty(each, sum(sizes), dtype=dtype)
                for parameter, place in zip(parameters, rows.split(sizes, dim=1)):
                    parameter.split(parameter.whole(), place.unbind(0), first)
                self._part_rows[dtype] = rows

    def reshard(self, keeps_part: bool = False) -> None:
        """Free the whole parameters, and what keep_part() kept unless `keeps_part`."""
        self.drop_gathers()
        if not keeps_part:
            self._part_rows = {}
        if not self.is_unsharded:
            return
        for parameter in self.parameters:
            parameter.to_sharded(free=not self.keep_memory)
        self.is_unsharded = False

    # ---- gradients ----

    def _listen(self, parameter: ShardedParameter) -> None:
        # A conversion to another dtype makes another tensor.
        whole = parameter.unsharded
        if whole.requires_grad and self._listening.get(id(parameter)) is not whole:
            self._listening[id(parameter)] = whole
            whole.register_post_accumulate_grad_hook(
                lambda _, key=id(parameter): self._gradient_is_there(key)
            )

    def _gradient_is_there(self, key: int) -> None:
        self._ready.add(key)
        wanted = {id(p) for p in self.parameters if p.sharded.requires_grad}
        if wanted <= self._ready and self.when_ready is not None:
            self.when_ready()

    def has_gradients(self) -> bool:
        """Whether there are gradients to take: of this backward, or kept until one reduces."""
        return any(
            p.unsharded is not None
            and (
                p.unsharded.grad is not None
                or (self.reduce_gradients and p.accumulated is not None)
            )
            for p in self.parameters
        )

    @property
    def is_frozen(self) -> bool:
        """Whether no parameter wants a gradient."""
        return not any(p.sharded.requires_grad for p in self.parameters)

    def forget(self) -> None:
        """Drop the gradients of a backward that an exception ended."""
        self._ready = set()
        for parameter in self.parameters:
            parameter.accumulated = None
            if parameter.unsharded is not None:
                parameter.unsharded.grad = None

    def take_gradients(self) -> List[_Reduction]:
        """Begin the reduction of the gradients, or keep them for a later one."""
        self._ready = set()
        if not self.reduce_gradients:
            for parameter in self.parameters:
                parameter.keep_gradient(self.precision.reduce_dtype or parameter.sharded.dtype)
            return []
        by_dtype: Dict[_C.dtype, List[Tuple[ShardedParameter, Tensor]]] = {}
        with no_grad():
            for parameter in self.parameters:
                gradient = parameter.take_gradient()
                if gradient is None and self.reduce_unused and parameter.sharded.requires_grad:
                    gradient = _C.zeros(parameter.shape, dtype=parameter.used_dtype)
                if gradient is not None:
                    dtype = self.precision.reduce_dtype or parameter.sharded.dtype
                    by_dtype.setdefault(dtype, []).append((parameter, gradient))
            return [_Reduction(self, part, dtype) for dtype, part in by_dtype.items()]


__all__ = ["ParameterGroup"]

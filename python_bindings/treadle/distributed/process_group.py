"""ProcessGroup: some of the processes, and what they do together.

    group = dist.new_group([0, 1])
    group.allreduce([tensor], dist.AllreduceOptions(dist.ReduceOp.MAX)).wait()

A group has a transport for each type of device; its methods are those of the transport for the
tensors given. A program's own transport derives from ProcessGroup and has these methods itself.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from datetime import timedelta
from typing import Any, Dict, List, Optional, Sequence, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.distributed.work import Work

DEFAULT_TIMEOUT = timedelta(minutes=30)


def _first_tensor(values: Any) -> Optional[Tensor]:
    if isinstance(values, Tensor):
        return values
    if isinstance(values, (list, tuple)):
        for each in values:
            found = _first_tensor(each)
            if found is not None:
                return found
    return None


class ProcessGroup:
    """Some of the processes. `members` are their ranks in the group of all."""

    def __init__(self, *args: Any) -> None:
        """ProcessGroup(rank, size), or ProcessGroup(store, rank, size)."""
        self._rank, self._size = args[-2:] if len(args) >= 2 else (0, 1)
        self._backends: Dict[str, Any] = {}
        self._timeout = DEFAULT_TIMEOUT
        self._members: Optional[Tuple[int, ...]] = None
        self._group_name = ""
        self._group_desc = "undefined"
        self.bound_device_id: Any = None

    # ---- What the group is ----

    def rank(self) -> int:
        """The place of this process among the members."""
        return self._rank

    def size(self) -> int:
        """How many members there are."""
        return self._size

    def name(self) -> str:
        """The name of the transport."""
        return str(next(iter(self._backends.values())).name()) if self._backends else "undefined"

    getBackendName = name  # noqa: N815

    @property
    def members(self) -> Tuple[int, ...]:
        """The ranks of the members in the group of all."""
        members = getattr(self, "_members", None)
        return tuple(range(self.size())) if members is None else members

    def member(self, function: str, rank: int) -> int:
        """The place of a rank of the group of all among the members. ValueError if it is none."""
        if rank not in self.members:
            raise ValueError(
                f"{function}: expected a rank of the group {list(self.members)}, got {rank}"
            )
        return self.members.index(rank)

    @property
    def group_name(self) -> str:
        """A name that is the same in all members, and different for each group."""
        return str(self.__dict__.get("_group_name", ""))

    @property
    def group_desc(self) -> str:
        """The description that new_group() was given."""
        return str(self.__dict__.get("_group_desc", "undefined"))

    def _set_group_name(self, name: str) -> None:
        self._group_name = name

    def _set_group_desc(self, desc: str) -> None:
        self._group_desc = desc

    @property
    def timeout(self) -> timedelta:
        """How long calls wait."""
        found = self.__dict__.get("_timeout", DEFAULT_TIMEOUT)
        assert isinstance(found, timedelta)
        return found

    def set_timeout(self, timeout: timedelta) -> None:
        """Choose that time, for calls from now on."""
        self._timeout = timeout
        for backend in self._each_backend():
            if hasattr(backend, "timeout"):
                backend.timeout = timeout

    # ---- Its transports ----

    def _register_backend(self, device: Any, backend_type: Any, backend: Any = None) -> None:
        """Use a transport for tensors on a type of device."""
        self._backends[_C.device(device).type] = backend if backend is not None else backend_type

    def _each_backend(self) -> List[Any]:
        found: List[Any] = []
        for backend in getattr(self, "_backends", {}).values():
            if not any(backend is each for each in found):
                found.append(backend)
        return found

    @property
    def _device_types(self) -> List[Any]:
        return [_C.device(kind) for kind in self._backends]

    def _get_backend(self, device: Any) -> Any:
        """The transport for a device; RuntimeError where there is none."""
        kind = _C.device(device).type
        if kind not in self._backends:
            raise RuntimeError(f"ProcessGroup: expected a transport for {kind}, got none")
        return self._backends[kind]

    def _has(self, function: str, tensor: Tensor) -> None:
        """ValueError where no transport is for the tensor's device."""
        backends = self.__dict__.get("_backends")
        if backends and tensor.device.type not in backends:
            raise ValueError(
                f"{function}: expected a tensor on the {' or '.join(backends)}, got {tensor.device}"
            )

    def _do(self, method: str, tensors: Any, args: Tuple[Any, ...]) -> Any:
        backends = self._backends
        if len(backends) == 1:
            backend = next(iter(backends.values()))
        else:
            first = _first_tensor(tensors)
            if first is None:
                backend = next(iter(backends.values()), None)
            else:
                backend = backends.get(first.device.type)
        if backend is None:
            raise NotImplementedError(
                f"{type(self).__name__}: expected a method {method}, got none"
            )
        return getattr(backend, method)(*args)

    # ---- What the members do together; the handle's wait() ends the call ----

    def allreduce(self, tensors: List[Tensor], opts: Any = None) -> Work:
        """Replace the tensor by the sum over all members, or what else opts.reduceOp makes."""
        return self._do("allreduce", tensors, (tensors, opts))

    def allreduce_coalesced(self, tensors: List[Tensor], opts: Any = None) -> Work:
        """As allreduce(), of several tensors of one dtype in one call."""
        return self._do("allreduce_coalesced", tensors, (tensors, opts))

    def broadcast(self, tensors: List[Tensor], opts: Any = None) -> Work:
        """Replace the tensor by that of the member opts.rootRank."""
        return self._do("broadcast", tensors, (tensors, opts))

    def reduce(self, tensors: List[Tensor], opts: Any = None) -> Work:
        """As allreduce(), where only the member opts.rootRank gets the result."""
        return self._do("reduce", tensors, (tensors, opts))

    def allgather(
        self, output_tensors: List[List[Tensor]], input_tensors: List[Tensor], opts: Any = None
    ) -> Work:
        """Fill the list with the tensors of all members."""
        return self._do("allgather", input_tensors, (output_tensors, input_tensors, opts))

    def _allgather_base(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        """As allgather(), into one tensor."""
        return self._do("_allgather_base", input, (output, input, opts))

    all_gather_single = _allgather_base

    def allgather_coalesced(
        self, output_lists: List[List[Tensor]], input_list: List[Tensor], opts: Any = None
    ) -> Work:
        """As allgather(), of several tensors."""
        return self._do("allgather_coalesced", input_list, (output_lists, input_list, opts))

    def allgather_into_tensor_coalesced(
        self, outputs: List[Tensor], inputs: List[Tensor], opts: Any = None
    ) -> Work:
        """As _allgather_base(), of several pairs of tensors."""
        return self._do("allgather_into_tensor_coalesced", inputs, (outputs, inputs, opts))

    def gather(
        self, output_tensors: List[List[Tensor]], input_tensors: List[Tensor], opts: Any = None
    ) -> Work:
        """Fill the list of the member opts.rootRank with the tensors of all."""
        return self._do("gather", input_tensors, (output_tensors, input_tensors, opts))

    def scatter(
        self, output_tensors: List[Tensor], input_tensors: List[List[Tensor]], opts: Any = None
    ) -> Work:
        """Replace the tensor by this member's one in the list of opts.rootRank."""
        return self._do("scatter", output_tensors, (output_tensors, input_tensors, opts))

    def reduce_scatter(
        self, output_tensors: List[Tensor], input_tensors: List[List[Tensor]], opts: Any = None
    ) -> Work:
        """Replace the tensor by the sum of what all members have for this one in their lists."""
        return self._do("reduce_scatter", output_tensors, (output_tensors, input_tensors, opts))

    def _reduce_scatter_base(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        """As reduce_scatter(), from one tensor."""
        return self._do("_reduce_scatter_base", output, (output, input, opts))

    reduce_scatter_single = _reduce_scatter_base

    def reduce_scatter_tensor_coalesced(
        self, outputs: List[Tensor], inputs: List[Tensor], opts: Any = None
    ) -> Work:
        """As _reduce_scatter_base(), of several pairs of tensors."""
        return self._do("reduce_scatter_tensor_coalesced", inputs, (outputs, inputs, opts))

    def alltoall(
        self, output_tensors: List[Tensor], input_tensors: List[Tensor], opts: Any = None
    ) -> Work:
        """Send input_tensors[i] to member i, whose tensor for this one comes to
        output_tensors[i]."""
        return self._do("alltoall", input_tensors, (output_tensors, input_tensors, opts))

    def alltoall_base(
        self,
        output: Tensor,
        input: Tensor,
        output_split_sizes: Sequence[int],
        input_split_sizes: Sequence[int],
        opts: Any = None,
    ) -> Work:
        """As alltoall(), with tensors that are split along their first dimension."""
        args = (output, input, output_split_sizes, input_split_sizes, opts)
        return self._do("alltoall_base", input, args)

    def send(self, tensors: List[Tensor], dst: int, tag: int) -> Work:
        """Begin to send a tensor to a member."""
        return self._do("send", tensors, (tensors, dst, tag))

    def recv(self, tensors: List[Tensor], src: int, tag: int) -> Work:
        """Begin to receive a tensor from a member."""
        return self._do("recv", tensors, (tensors, src, tag))

    def recv_anysource(self, tensors: List[Tensor], tag: int) -> Work:
        """Begin to receive a tensor from the member whose message comes first."""
        return self._do("recv_anysource", tensors, (tensors, tag))

    def barrier(self, opts: Any = None) -> Work:
        """Ends when all members have called it."""
        return self._do("barrier", None, (opts,))

    def monitored_barrier(
        self, timeout: Optional[timedelta] = None, wait_all_ranks: bool = False
    ) -> None:
        """As barrier(), with an error that names who does not come: the first that is missing, or
        with `wait_all_ranks` all of them."""
        from treadle.distributed._barrier import monitored_barrier

        monitored_barrier(self, timeout or self.timeout, wait_all_ranks)

    # ---- Its end ----

    def abort(self) -> None:
        """End all calls under way with an error; the group is of no use afterwards."""
        for backend in self._each_backend():
            if hasattr(backend, "abort"):
                backend.abort()

    def shutdown(self, seconds: float = 10.0) -> None:
        """Wait for the calls under way, for at most so long, and end the connections."""
        for backend in self._each_backend():
            if hasattr(backend, "shutdown"):
                backend.shutdown(seconds)


__all__ = ["DEFAULT_TIMEOUT", "ProcessGroup"]

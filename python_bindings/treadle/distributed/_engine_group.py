"""The methods of a group whose data an engine carries: Gloo, MPI, NCCL.

The engine takes addresses of contiguous memory. Other tensors are copied to such memory and back.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import weakref
import zlib
from datetime import timedelta
from typing import Any, Callable, List, Optional, Sequence, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.distributed import options as opts_of
from treadle.distributed.debug import DebugLevel, get_debug_level
from treadle.distributed.errors import DistError
from treadle.distributed.reduce_op import PremulSum, ReduceOp
from treadle.distributed.work import EngineWork

# The numbers of the functions in the engine.
(
    _ALL_REDUCE,
    _BROADCAST,
    _REDUCE,
    _ALL_GATHER,
    _GATHER,
    _SCATTER,
    _REDUCE_SCATTER,
    _ALL_TO_ALL,
    _BARRIER,
    _SEND,
    _RECEIVE,
) = range(11)

# The dtypes with arithmetic, in the engine's order.
_DTYPES = (
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 "
    "complex64 complex128"
).split()
_NUMBERS = {getattr(_C, name): number for number, name in enumerate(_DTYPES)}

ANY_RANK = -1


def _number(dtype: Any) -> int:
    """The number of a dtype; of those without arithmetic one that tells them apart."""
    number = _NUMBERS.get(dtype)
    if number is None:
        name = str(dtype).rpartition(".")[2]
        number = _NUMBERS[dtype] = 64 + zlib.crc32(name.encode()) % 192
    return number


def _is_plain(tensor: Tensor) -> bool:
    return tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def _filled(tensor: Any) -> Tensor:
    """The tensor with memory that an AsyncCollectiveTensor stands for, when its elements are there;
    other tensors as they are."""
    wait = None if type(tensor) is Tensor else getattr(tensor, "trigger_wait", None)
    return tensor if wait is None else wait()


def _plain(tensor: Tensor) -> Tensor:
    """The same values in contiguous memory: the tensor itself where they are."""
    tensor = _filled(tensor)
    if _is_plain(tensor):
        return tensor
    with no_grad():
        made = _C.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
        made.copy_(tensor.detach())
    return made


def _address(tensor: Tensor) -> Tuple[int, int]:
    return tensor.data_ptr(), tensor.numel() * tensor.element_size()


class _Places:
    """Contiguous memory for results, and where they belong."""

    def __init__(self, tensors: Sequence[Tensor], with_values: bool = False) -> None:
        self.tensors: List[Tensor] = []
        self._copies: List[Tuple[Tensor, Tensor]] = []
        for tensor in map(_filled, tensors):
            if _is_plain(tensor):
                self.tensors.append(tensor)
                continue
            if with_values:
                made = _plain(tensor)
            else:
                made = _C.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
            self.tensors.append(made)
            self._copies.append((tensor, made))

    @property
    def after(self) -> Optional[Callable[[], None]]:
        """A function that copies the results there; None where they are."""
        return self._copy if self._copies else None

    def _copy(self) -> None:
        with no_grad():
            for tensor, made in self._copies:
                tensor.detach().copy_(made)


def _split(function: str, tensor: Tensor, size: int) -> List[Tensor]:
    """A contiguous tensor as one piece along the first dimension for each rank."""
    rows = tensor.shape[0] if tensor.dim() else 0
    if tensor.dim() == 0 or rows % size:
        raise ValueError(
            f"{function}: expected a first dimension that {size} divides, got shape "
            f"{tuple(tensor.shape)}"
        )
    return list(tensor.detach().chunk(size)) if rows else [tensor.detach()] * size


class EngineGroup:
    """The methods of ProcessGroup over an engine."""

    supports_splitting = False

    def __init__(self, engine: Any, members: Sequence[int], name: str, timeout: timedelta) -> None:
        from treadle.distributed import _engine

        self.group = _engine.Group(engine, list(members), name)
        self._rank, self._size = engine.rank, engine.size
        self._backend_name = engine.name
        self.timeout = timeout
        self._watch: Any = None  # a treadle.distributed._faults.Watch
        self._watched: Any = None  # a weak reference to the group, as the watch knows it

    def rank(self) -> int:
        """The rank of this process."""
        return self._rank

    def size(self) -> int:
        """How many processes there are."""
        return self._size

    def name(self) -> str:
        """The name of the engine."""
        return str(self._backend_name)

    def watch(self, watch: Any, group: Any) -> None:
        """Let a Watch say who is at fault where a call fails."""
        self._watch, self._watched = watch, weakref.ref(group)

    def _explained(self, error: DistError, is_message: bool = False) -> DistError:
        """The error as the program shall see it."""
        group = None if self._watched is None else self._watched()
        return error if group is None else self._watch.explained(group, error, is_message)

    def _check(self, name: str, like: Optional[Tensor], root: int, seconds: float) -> None:
        """Compare a call with those of the other ranks, where the program asks for that."""
        group = None if self._watched is None else self._watched()
        if group is not None and get_debug_level() == DebugLevel.DETAIL:
            dtype, shape = (0, []) if like is None else (_number(like.dtype), list(like.shape))
            mine = {"name": name, "dtype": dtype, "shape": shape, "root": root}
            self._watch.check(group, mine, timedelta(seconds=seconds))

    def _seconds(self, timeout: Optional[timedelta]) -> float:
        return (self.timeout if timeout is None else timeout).total_seconds()

    def _run(
        self,
        name: str,
        function: int,
        opts: Any,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        result: Any,
        root: int = 0,
        op: Any = ReduceOp.SUM,
        after: Optional[Callable[[], None]] = None,
    ) -> EngineWork:
        like = inputs[0] if inputs else outputs[0] if outputs else None
        seconds = self._seconds(opts.timeout)
        self._check(name, like, root, seconds)
        arguments = (
            name,
            function,
            0 if like is None else _number(like.dtype),
            int(op.op),
            op.factor if isinstance(op, PremulSum) else 1.0,
            root,
            [_address(t) for t in inputs],
            [_address(t) for t in outputs],
            [] if like is None else list(like.shape),
            seconds,
            opts.asyncOp,
        )
        try:
            handle = self.group.run(*arguments)
        except DistError as error:
            raise self._explained(error) from None
        work = EngineWork(handle, result, (inputs, outputs), after, self._explained)
        if handle is None:
            work.wait()
        return work

    # ---- One tensor for each process ----

    def allreduce(
        self, tensors: List[Tensor], opts: Any = None, name: str = "all_reduce"
    ) -> EngineWork:
        """Replace the tensor by the sum over all ranks, or what else opts.reduceOp makes."""
        opts = opts or opts_of.AllreduceOptions()
        places = _Places(tensors, with_values=True)
        one = places.tensors
        self._can_reduce(name, opts.reduceOp, one[0])
        return self._run(
            name, _ALL_REDUCE, opts, one, one, tensors, op=opts.reduceOp, after=places.after
        )

    def _can_reduce(self, name: str, op: Any, tensor: Tensor) -> None:
        from treadle.distributed import _engine

        if not _engine.can_reduce(int(op.op), _number(tensor.dtype)):
            raise ValueError(f"{name}: expected a dtype that {op} is for, got {tensor.dtype}")

    def allreduce_coalesced(self, tensors: List[Tensor], opts: Any = None) -> EngineWork:
        """As allreduce(), of several tensors of one dtype in one call."""
        opts = opts or opts_of.AllreduceCoalescedOptions()
        name = "all_reduce_coalesced"
        with no_grad():
            flat = _C.cat([_plain(t).detach().reshape(-1) for t in tensors])
        self._can_reduce(name, opts.reduceOp, flat)

        def after() -> None:
            with no_grad():
                pieces = flat.split([t.numel() for t in tensors])
                for tensor, piece in zip(tensors, pieces):
                    tensor.detach().copy_(piece.reshape(tensor.shape))

        return self._run(
            name, _ALL_REDUCE, opts, [flat], [flat], tensors, op=opts.reduceOp, after=after
        )

    def broadcast(
        self, tensors: List[Tensor], opts: Any = None, name: str = "broadcast"
    ) -> EngineWork:
        """Replace the tensor by that of opts.rootRank."""
        opts = opts or opts_of.BroadcastOptions()
        is_root = self._rank == opts.rootRank
        places = _Places(tensors, with_values=is_root)
        after = None if is_root else places.after
        one = places.tensors
        return self._run(name, _BROADCAST, opts, one, one, tensors, opts.rootRank, after=after)

    def reduce(self, tensors: List[Tensor], opts: Any = None) -> EngineWork:
        """As allreduce(), where only opts.rootRank gets the result."""
        opts = opts or opts_of.ReduceOptions()
        is_root = self._rank == opts.rootRank
        places = _Places(tensors, with_values=True)
        one = places.tensors
        self._can_reduce("reduce", opts.reduceOp, one[0])
        after = places.after if is_root else None
        return self._run(
            "reduce", _REDUCE, opts, one, one, tensors, opts.rootRank, opts.reduceOp, after
        )

    # ---- A list of tensors, one for each rank ----

    def allgather(
        self,
        output_tensors: List[List[Tensor]],
        input_tensors: List[Tensor],
        opts: Any = None,
        name: str = "all_gather",
        result: Any = None,
    ) -> EngineWork:
        """Fill the list with the tensors of all ranks."""
        opts = opts or opts_of.AllgatherOptions()
        places = _Places(output_tensors[0])
        return self._run(
            name,
            _ALL_GATHER,
            opts,
            [_plain(input_tensors[0])],
            places.tensors,
            output_tensors if result is None else result,
            after=places.after,
        )

    def _allgather_base(
        self, output: Tensor, input: Tensor, opts: Any = None, name: str = "all_gather_into_tensor"
    ) -> EngineWork:
        """As allgather(), into one tensor, one after the other along the first dimension."""
        return self._into_one(
            output, name, lambda pieces: self.allgather([pieces], [input], opts, name, output)
        )

    def _into_one(
        self, output: Tensor, name: str, call: Callable[[List[Tensor]], EngineWork]
    ) -> EngineWork:
        """A call with the pieces of a tensor for results; where it is not contiguous those of a
        copy."""
        places = _Places([output])
        work = call(_split(name, places.tensors[0], self._size))
        if places.after is not None:
            work._then(places.after)
        return work

    def allgather_into_tensor_coalesced(
        self, outputs: List[Tensor], inputs: List[Tensor], opts: Any = None
    ) -> Any:
        """As _allgather_base(), of several pairs of tensors."""
        from treadle.distributed.work import Works

        return Works([self._allgather_base(o, i, opts) for o, i in zip(outputs, inputs)], outputs)

    def allgather_coalesced(
        self, output_lists: List[List[Tensor]], input_list: List[Tensor], opts: Any = None
    ) -> Any:
        """As allgather(), of several tensors: output_lists[rank][i] is input_list[i] there."""
        from treadle.distributed.work import Works

        works = [
            self.allgather(
                [[outputs[i] for outputs in output_lists]], [one], opts, "all_gather_coalesced"
            )
            for i, one in enumerate(input_list)
        ]
        return Works(works, output_lists)

    def gather(
        self, output_tensors: List[List[Tensor]], input_tensors: List[Tensor], opts: Any = None
    ) -> EngineWork:
        """Fill the list of opts.rootRank with the tensors of all ranks."""
        opts = opts or opts_of.GatherOptions()
        places = _Places(output_tensors[0] if output_tensors else [])
        return self._run(
            "gather",
            _GATHER,
            opts,
            [_plain(input_tensors[0])],
            places.tensors,
            output_tensors,
            opts.rootRank,
            after=places.after,
        )

    def scatter(
        self, output_tensors: List[Tensor], input_tensors: List[List[Tensor]], opts: Any = None
    ) -> EngineWork:
        """Replace the tensor by this rank's one in the list of opts.rootRank."""
        opts = opts or opts_of.ScatterOptions()
        places = _Places(output_tensors)
        inputs = [_plain(t) for t in input_tensors[0]] if input_tensors else []
        return self._run(
            "scatter",
            _SCATTER,
            opts,
            inputs,
            places.tensors,
            output_tensors,
            opts.rootRank,
            after=places.after,
        )

    def reduce_scatter(
        self,
        output_tensors: List[Tensor],
        input_tensors: List[List[Tensor]],
        opts: Any = None,
        name: str = "reduce_scatter",
    ) -> EngineWork:
        """Replace the tensor by the sum of what all ranks have for this one in their lists."""
        opts = opts or opts_of.ReduceScatterOptions()
        places = _Places(output_tensors)
        self._can_reduce(name, opts.reduceOp, output_tensors[0])
        return self._run(
            name,
            _REDUCE_SCATTER,
            opts,
            [_plain(t) for t in input_tensors[0]],
            places.tensors,
            output_tensors,
            op=opts.reduceOp,
            after=places.after,
        )

    def _reduce_scatter_base(
        self, output: Tensor, input: Tensor, opts: Any = None, name: str = "reduce_scatter_tensor"
    ) -> EngineWork:
        """As reduce_scatter(), from one tensor that is split along its first dimension."""
        pieces = _split(name, _plain(input), self._size)
        return self.reduce_scatter([output], [pieces], opts, name)

    def reduce_scatter_tensor_coalesced(
        self, outputs: List[Tensor], inputs: List[Tensor], opts: Any = None
    ) -> Any:
        """As _reduce_scatter_base(), of several pairs of tensors."""
        from treadle.distributed.work import Works

        works = [self._reduce_scatter_base(o, i, opts) for o, i in zip(outputs, inputs)]
        return Works(works, outputs)

    def alltoall(
        self,
        output_tensors: List[Tensor],
        input_tensors: List[Tensor],
        opts: Any = None,
        name: str = "all_to_all",
        result: Any = None,
    ) -> EngineWork:
        """Send input_tensors[i] to rank i, whose tensor for this one comes to output_tensors[i]."""
        opts = opts or opts_of.AllToAllOptions()
        places = _Places(output_tensors)
        return self._run(
            name,
            _ALL_TO_ALL,
            opts,
            [_plain(t) for t in input_tensors],
            places.tensors,
            output_tensors if result is None else result,
            after=places.after,
        )

    def alltoall_base(
        self,
        output: Tensor,
        input: Tensor,
        output_split_sizes: Sequence[int],
        input_split_sizes: Sequence[int],
        opts: Any = None,
    ) -> EngineWork:
        """As alltoall(), with tensors that are split along their first dimension, into equal pieces
        or pieces of the given sizes."""
        name = "all_to_all_single"

        def pieces(tensor: Tensor, sizes: Sequence[int]) -> List[Tensor]:
            if not sizes:
                return _split(name, tensor, self._size)
            rows = tensor.shape[0] if tensor.dim() else 0
            if len(sizes) != self._size or sum(sizes) != rows:
                raise ValueError(
                    f"{name}: expected {self._size} split sizes of {rows} rows together, "
                    f"got {list(sizes)}"
                )
            return list(tensor.detach().split(list(sizes)))

        places = _Places([output])
        work = self.alltoall(
            pieces(places.tensors[0], output_split_sizes),
            pieces(_plain(input), input_split_sizes),
            opts,
            name,
            [output],
        )
        if places.after is not None:
            work._then(places.after)
        return work

    def barrier(self, opts: Any = None) -> EngineWork:
        """Ends when all ranks have called it."""
        return self._run("barrier", _BARRIER, opts or opts_of.BarrierOptions(), [], [], [])

    # ---- Messages ----

    def _post(
        self, name: str, function: int, tensor: Tensor, place: Tensor, peer: int, tag: int
    ) -> Any:
        try:
            return self.group.post(
                name,
                function,
                _number(tensor.dtype),
                peer,
                tag,
                _address(place),
                list(tensor.shape),
                self._seconds(None),
            )
        except DistError as error:
            raise self._explained_message(error) from None

    def _explained_message(self, error: DistError) -> DistError:
        return self._explained(error, is_message=True)

    def send(self, tensors: List[Tensor], dst: int, tag: int, name: str = "send") -> EngineWork:
        """Begin to send a tensor to a rank."""
        place = _plain(tensors[0])
        handle = self._post(name, _SEND, tensors[0], place, dst, tag)
        return EngineWork(handle, tensors, place, None, self._explained_message)

    def recv(self, tensors: List[Tensor], src: int, tag: int, name: str = "recv") -> EngineWork:
        """Begin to receive a tensor from a rank."""
        places = _Places(tensors)
        handle = self._post(name, _RECEIVE, tensors[0], places.tensors[0], src, tag)
        explain = self._explained_message
        return EngineWork(handle, tensors, places.tensors, places.after, explain)

    def recv_anysource(self, tensors: List[Tensor], tag: int, name: str = "recv") -> EngineWork:
        """Begin to receive a tensor from the rank whose message comes first."""
        return self.recv(tensors, ANY_RANK, tag, name)

    # ---- The group itself ----

    def abort(self) -> None:
        """End all calls under way with an error."""
        self.group.abort()

    def shutdown(self, seconds: float = 10.0) -> None:
        """Wait for the calls under way, for at most so long, and end the connections."""
        self.group.shut_down(seconds)


__all__ = ["ANY_RANK", "EngineGroup"]

"""Python objects between processes.

An object goes as treadle.save() writes it, and what arrives is read as treadle.load() reads a file
that nobody vouches for: no code of another process runs. Plain values, containers, tensors, NumPy's
arrays and instances of the program's own classes arrive; for others see
treadle.serialization.add_safe_globals.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import io
from typing import Any, List, Optional

from treadle import _C, serialization
from treadle._C import Tensor
from treadle.distributed import collectives, point_to_point
from treadle.distributed._world import group_of
from treadle.distributed.collectives import Group, _place
from treadle.distributed.process_group import ProcessGroup


def _check_list(function: str, name: str, objects: Any, size: Optional[int] = None) -> None:
    if not isinstance(objects, list):
        kind = type(objects).__name__
        raise TypeError(f"{function}: expected {name} to be a list, got {kind}")
    if size is not None and len(objects) != size:
        raise ValueError(
            f"{function}: expected {name} to have {size} items, one for each process, "
            f"got {len(objects)}"
        )


class _Wire:
    """Objects as tensors of bytes, on the device of a group's transport."""

    def __init__(self, function: str, members: ProcessGroup, device: Any) -> None:
        kinds = list(members.__dict__.get("_backends") or ["cpu"])
        if device is not None and _C.device(device).type not in kinds:
            where = " or ".join(kinds)
            raise ValueError(f"{function}: expected device on the {where}, got {device}")
        self._function = function
        if device is None:
            device = "cpu" if "cpu" in kinds else members.bound_device_id or kinds[0]
        self._device = device

    def bytes_of(self, value: Any) -> Tensor:
        """An object as a tensor of bytes."""
        file = io.BytesIO()
        serialization.save(value, file)
        return _C.frombuffer(bytearray(file.getvalue()), dtype=_C.uint8).to(self._device)

    def value_of(self, data: Tensor) -> Any:
        """The object in a tensor of bytes. UnpicklingError for one of a class that is not allowed,
        with the class's name."""
        content = bytes(memoryview(data.to("cpu").numpy()))
        return serialization.load(io.BytesIO(content))

    def lengths(self, *values: int) -> Tensor:
        return _C.tensor(list(values), dtype=_C.int64, device=self._device)

    def room(self, count: int) -> Tensor:
        return _C.empty((count,), dtype=_C.uint8, device=self._device)

    def padded(self, data: Tensor, count: int) -> Tensor:
        made = _C.zeros(count, dtype=_C.uint8, device=self._device)
        made[: data.numel()].copy_(data)
        return made


def all_gather_object(object_list: List[Any], obj: Any, group: Group = None) -> None:
    """Fill the list with the objects of all processes, in the order of ranks."""
    members = group_of(group)
    if members is None:
        return
    function, size = "all_gather_object", members.size()
    _check_list(function, "object_list", object_list, size)
    wire = _Wire(function, members, None)
    mine = wire.bytes_of(obj)
    lengths = [wire.lengths(0) for _ in range(size)]
    collectives.all_gather(lengths, wire.lengths(mine.numel()), members)
    counts = [int(n.item()) for n in lengths]
    places = [wire.room(max(counts)) for _ in range(size)]
    collectives.all_gather(places, wire.padded(mine, max(counts)), members)
    object_list[:] = [wire.value_of(p[:n]) for p, n in zip(places, counts)]


def gather_object(
    obj: Any,
    object_gather_list: Optional[List[Any]] = None,
    dst: Optional[int] = None,
    group: Group = None,
    group_dst: Optional[int] = None,
) -> None:
    """Fill the list of the process `dst` with the objects of all."""
    members = group_of(group)
    if members is None:
        return
    function, size = "gather_object", members.size()
    root = _place(function, members, "dst", dst, group_dst)
    is_root = members.rank() == root
    if is_root:
        _check_list(function, "object_gather_list", object_gather_list, size)
    wire = _Wire(function, members, None)
    mine = wire.bytes_of(obj)
    lengths = [wire.lengths(0) for _ in range(size)]
    collectives.all_gather(lengths, wire.lengths(mine.numel()), members)
    counts = [int(n.item()) for n in lengths]
    places = [wire.room(max(counts)) for _ in range(size)] if is_root else None
    collectives.gather(wire.padded(mine, max(counts)), places, group=members, group_dst=root)
    if places is not None:
        assert object_gather_list is not None
        object_gather_list[:] = [wire.value_of(p[:n]) for p, n in zip(places, counts)]


def broadcast_object_list(
    object_list: List[Any],
    src: Optional[int] = None,
    group: Group = None,
    device: Any = None,
    group_src: Optional[int] = None,
) -> None:
    """Replace the objects in the list by those in the list of the process `src`."""
    members = group_of(group)
    if members is None:
        return
    function = "broadcast_object_list"
    wire = _Wire(function, members, device)
    _check_list(function, "object_list", object_list)
    root = _place(function, members, "src", src, group_src)
    is_root = members.rank() == root
    data = wire.bytes_of(object_list) if is_root else None
    length = wire.lengths(0 if data is None else data.numel(), len(object_list))
    collectives.broadcast(length, group=members, group_src=root)
    count, items = length.tolist()
    if data is None:
        data = wire.room(count)
    collectives.broadcast(data, group=members, group_src=root)
    if not is_root:
        _check_list(function, "object_list", object_list, items)
        object_list[:] = wire.value_of(data)


def scatter_object_list(
    scatter_object_output_list: List[Any],
    scatter_object_input_list: Optional[List[Any]] = None,
    src: Optional[int] = None,
    group: Group = None,
    group_src: Optional[int] = None,
) -> None:
    """Write to the first place of the output list this process's object in the input list of the
    process `src`."""
    members = group_of(group)
    if members is None:
        return
    function, size = "scatter_object_list", members.size()
    _check_list(function, "scatter_object_output_list", scatter_object_output_list)
    if not scatter_object_output_list:
        raise ValueError(f"{function}: expected scatter_object_output_list with a place, got none")
    root = _place(function, members, "src", src, group_src)
    is_root = members.rank() == root
    wire = _Wire(function, members, None)
    pieces: Optional[List[Tensor]] = None
    lengths = wire.lengths(*[0] * size)
    if is_root:
        given = scatter_object_input_list
        _check_list(function, "scatter_object_input_list", given, size)
        assert given is not None
        pieces = [wire.bytes_of(value) for value in given]
        lengths = wire.lengths(*[piece.numel() for piece in pieces])
    collectives.broadcast(lengths, group=members, group_src=root)
    counts = lengths.tolist()
    if pieces is not None:
        pieces = [wire.padded(piece, max(counts)) for piece in pieces]
    mine = wire.room(max(counts))
    collectives.scatter(mine, pieces, group=members, group_src=root)
    scatter_object_output_list[0] = wire.value_of(mine[: counts[members.rank()]])


def send_object_list(
    object_list: List[Any],
    dst: Optional[int] = None,
    group: Group = None,
    device: Any = None,
    group_dst: Optional[int] = None,
    use_batch: bool = False,
) -> None:
    """Send the objects in the list to a process, which calls recv_object_list()."""
    members = group_of(group)
    if members is None:
        return
    function = "send_object_list"
    _check_list(function, "object_list", object_list)
    wire = _Wire(function, members, device)
    to = _place(function, members, "dst", dst, group_dst)
    data = wire.bytes_of(object_list)
    for each in (wire.lengths(data.numel(), len(object_list)), data):
        if use_batch:
            one = point_to_point.P2POp(point_to_point.isend, each, group=members, group_peer=to)
            point_to_point.batch_isend_irecv([one])[0].wait()
        else:
            point_to_point.send(each, group=members, group_dst=to)


def recv_object_list(
    object_list: List[Any],
    src: Optional[int] = None,
    group: Group = None,
    device: Any = None,
    group_src: Optional[int] = None,
    use_batch: bool = False,
) -> int:
    """Replace the objects in the list by those that a process sends with send_object_list();
    without `src` the process whose message comes first. Returns its rank; -1 outside the group.
    """
    members = group_of(group)
    if members is None:
        return -1
    function = "recv_object_list"
    _check_list(function, "object_list", object_list)
    wire = _Wire(function, members, device)
    length = wire.lengths(0, 0)

    def receive(place: Tensor, source: Optional[int]) -> int:
        if use_batch and source is not None:
            one = point_to_point.P2POp(point_to_point.irecv, place, source, members)
            point_to_point.batch_isend_irecv([one])[0].wait()
            return source
        return point_to_point.recv(place, source, members)

    given = src
    if group_src is not None:
        given = members.members[_place(function, members, "src", src, group_src)]
    source = receive(length, given)
    count, items = length.tolist()
    data = wire.room(count)
    receive(data, source)
    _check_list(function, "object_list", object_list, items)
    object_list[:] = wire.value_of(data)
    return source

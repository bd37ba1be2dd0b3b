"""Python objects between processes, pickled: for processes that trust each other, as those of one
program do.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pickle
from typing import Any, List, Optional

from treadle import _C
from treadle.distributed._world import group_of
from treadle.distributed.collectives import Group, _place
from treadle.distributed.process_group import ProcessGroup


def _exchanged(members: ProcessGroup, function: str, mine: bytes) -> List[bytes]:
    """The bytes of each member, in order."""
    call = members.call(function)
    for other in call.others():
        call.send(other, mine)
    me = members.rank()
    return [mine if m == me else bytes(call.receive(m)) for m in range(members.size())]


def _check_list(function: str, name: str, objects: Any, size: Optional[int] = None) -> None:
    if not isinstance(objects, list):
        kind = type(objects).__name__
        raise TypeError(f"{function}: expected {name} to be a list, got {kind}")
    if size is not None and len(objects) != size:
        raise ValueError(
            f"{function}: expected {name} to have {size} items, one for each process, "
            f"got {len(objects)}"
        )


def all_gather_object(object_list: List[Any], obj: Any, group: Group = None) -> None:
    """Fill the list with the objects of all processes, in the order of ranks."""
    members = group_of(group)
    if members is None:
        return
    _check_list("all_gather_object", "object_list", object_list, members.size())
    object_list[:] = map(pickle.loads, _exchanged(members, "all_gather", pickle.dumps(obj)))


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
    root = _place("gather_object", members, "dst", dst, group_dst)
    call = members.call("gather")
    if members.rank() != root:
        call.send(root, pickle.dumps(obj))
        return
    _check_list("gather_object", "object_gather_list", object_gather_list, members.size())
    assert object_gather_list is not None
    for member in range(members.size()):
        object_gather_list[member] = obj if member == root else pickle.loads(call.receive(member))


def broadcast_object_list(
    object_list: List[Any],
    src: Optional[int] = None,
    group: Group = None,
    device: Any = None,
    group_src: Optional[int] = None,
) -> None:
    """Replace the objects in the list by those in the list of the process `src`."""
    if device is not None and _C.device(device).type != "cpu":
        raise ValueError(f"broadcast_object_list: expected device on the cpu, got {device}")
    members = group_of(group)
    if members is None:
        return
    _check_list("broadcast_object_list", "object_list", object_list)
    root = _place("broadcast_object_list", members, "src", src, group_src)
    call = members.call("broadcast")
    if members.rank() == root:
        content = pickle.dumps(object_list)
        for other in call.others():
            call.send(other, content)
        return
    given = pickle.loads(call.receive(root))
    _check_list("broadcast_object_list", "object_list", object_list, len(given))
    object_list[:] = given


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
    function = "scatter_object_list"
    _check_list(function, "scatter_object_output_list", scatter_object_output_list)
    if not scatter_object_output_list:
        raise ValueError(f"{function}: expected scatter_object_output_list with a place, got none")
    root = _place(function, members, "src", src, group_src)
    call = members.call("scatter")
    if members.rank() != root:
        scatter_object_output_list[0] = pickle.loads(call.receive(root))
        return
    given = scatter_object_input_list
    _check_list(function, "scatter_object_input_list", given, members.size())
    assert given is not None
    for other in call.others():
        call.send(other, pickle.dumps(given[other]))
    scatter_object_output_list[0] = given[root]

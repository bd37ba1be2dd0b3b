"""Groups made of other groups, and what is known of a group."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import os
from datetime import timedelta
from typing import Any, Iterator, List, Optional, Sequence, Tuple, Union

from treadle import _C
from treadle.distributed._world import (
    AnyGroup,
    GroupMember,
    _default,
    _end,
    _world,
    destroy_process_group,
    group_of,
    new_group,
)
from treadle.distributed.backend import Backend
from treadle.distributed.process_group import ProcessGroup
from treadle.distributed.reduce_op import ReduceOp
from treadle.distributed.store import Store

GroupName = str
SHRINK_DEFAULT = 0
SHRINK_ABORT = 1


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: Optional[timedelta] = None,
    backend: Optional[str] = None,
    pg_options: Any = None,
    group_desc: Optional[str] = None,
) -> Tuple[Any, List[Any]]:
    """A group for each list of ranks, no rank in two of them. Returns the group of this process,
    None if it is in none, and all groups."""
    function = "new_subgroups_by_enumeration"
    if not ranks_per_subgroup_list:
        raise ValueError(f"{function}: expected lists of ranks, got none")
    every = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if len(set(every)) != len(every):
        raise ValueError(f"{function}: expected each rank once, got {sorted(every)}")
    mine, found, me = None, [], _default().rank()
    for ranks in ranks_per_subgroup_list:
        made = new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        found.append(made)
        if me in ranks:
            mine = made
    return mine, found


def new_subgroups(
    group_size: Optional[int] = None,
    group: AnyGroup = None,
    timeout: Optional[timedelta] = None,
    backend: Optional[str] = None,
    pg_options: Any = None,
    group_desc: Optional[str] = None,
) -> Tuple[Any, List[Any]]:
    """Groups of `group_size` processes that follow each other, by default those of a machine, as
    LOCAL_WORLD_SIZE says. Returns the group of this process, and all groups."""
    function = "new_subgroups"
    if group_size is None:
        if "LOCAL_WORLD_SIZE" not in os.environ:
            raise ValueError(
                f"{function}: expected group_size, or LOCAL_WORLD_SIZE in the environment, got none"
            )
        group_size = int(os.environ["LOCAL_WORLD_SIZE"])
    whole = group_of(group)
    members = () if whole is None else whole.members
    if group_size < 1 or len(members) % group_size:
        raise ValueError(
            f"{function}: expected a group_size that divides {len(members)}, got {group_size}"
        )
    lists = [members[i : i + group_size] for i in range(0, len(members), group_size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def split_group(
    parent_pg: Optional[ProcessGroup] = None,
    split_ranks: Optional[Sequence[Sequence[int]]] = None,
    timeout: Optional[timedelta] = None,
    pg_options: Any = None,
    group_desc: Optional[str] = None,
    backend: Optional[str] = None,
) -> Any:
    """The group of this process among those that `split_ranks` lists; its ranks are those of the
    parent. All members of the parent call it. GroupMember.NON_GROUP_MEMBER in one that is in no
    list."""
    parent = _default() if parent_pg is None else parent_pg
    if not split_ranks:
        raise ValueError("split_group: expected split_ranks with lists of ranks, got none")
    every = [rank for ranks in split_ranks for rank in ranks]
    if len(set(every)) != len(every) or not all(0 <= r < parent.size() for r in every):
        raise ValueError(
            f"split_group: expected different ranks in [0, {parent.size()}), got {sorted(every)}"
        )
    for ranks in split_ranks:
        if parent.rank() in ranks:
            members = [parent.members[rank] for rank in sorted(ranks)]
            desc = group_desc or f"{parent.group_desc}:split"
            return new_group(
                members,
                timeout or parent.timeout,
                backend,
                pg_options,
                use_local_synchronization=True,
                group_desc=desc,
            )
    return GroupMember.NON_GROUP_MEMBER


def shrink_group(
    ranks_to_exclude: Sequence[int],
    group: AnyGroup = None,
    shrink_flags: int = SHRINK_DEFAULT,
    pg_options: Any = None,
) -> ProcessGroup:
    """The group without some of its ranks, in place of it; only those that stay call it. With
    SHRINK_ABORT calls under way in the old group end with an error. The group of all is replaced,
    too, if it is the one that shrinks."""
    function = "shrink_group"
    old = group_of(group)
    if old is None:
        raise ValueError(f"{function}: expected a group that this process is a member of")
    excluded = set(ranks_to_exclude)
    if not excluded or not excluded <= set(range(old.size())):
        raise ValueError(f"{function}: expected ranks in [0, {old.size()}), got {sorted(excluded)}")
    if old.rank() in excluded:
        raise ValueError(
            f"{function}: expected ranks of other processes, got that of this one, {old.rank()}"
        )
    if shrink_flags not in (SHRINK_DEFAULT, SHRINK_ABORT):
        raise ValueError(f"{function}: expected SHRINK_DEFAULT or SHRINK_ABORT, got {shrink_flags}")
    if shrink_flags == SHRINK_ABORT:
        old.abort()
    members = [old.members[rank] for rank in range(old.size()) if rank not in excluded]
    made = new_group(
        members,
        old.timeout,
        None,
        pg_options,
        use_local_synchronization=True,
        group_desc=f"{old.group_desc}:shrunk",
    )
    assert isinstance(made, ProcessGroup)
    if old is not _world.default:
        destroy_process_group(old)
        return made
    # The store stays: it is that of the first process, which may be gone with others.
    store, own, config = _world.store, _world.own_store, _world.config
    _world.groups.remove(made)
    _world.own_store = None
    _end(0.0)
    made._members = tuple(range(len(members)))
    _world.store, _world.own_store, _world.config = store, own, config
    _world.groups, _world.default = [made], made
    GroupMember.WORLD = made
    return made


def set_timeout(timeout: timedelta, group: AnyGroup = None) -> None:
    """Choose how long calls of a group wait, from now on."""
    if not isinstance(timeout, timedelta):
        kind = type(timeout).__name__
        raise TypeError(f"set_timeout: expected timeout to be a timedelta, got {kind}")
    found = group_of(group)
    if found is not None:
        found.set_timeout(timeout)


# ---- Questions ----


def get_backend_config(group: AnyGroup = None) -> str:
    """The transports of a group by the types of devices: "cpu:gloo"."""
    found = group_of(group)
    if found is None:
        raise ValueError("get_backend_config: expected a group of this process, got another")
    backends = found.__dict__.get("_backends", {})
    return ",".join(f"{device}:{each.name()}" for device, each in backends.items()) or found.name()


def get_backend_impl(group: Union[AnyGroup, str] = None, device: Any = None) -> Any:
    """The transport of a group, given itself or by its name, for a type of device."""
    found = resolve_process_group(group) if isinstance(group, str) else group_of(group)
    if found is None:
        raise ValueError("get_backend_impl: expected a group of this process, got another")
    if not found.__dict__.get("_backends"):
        return found
    kinds = found._device_types
    return found._get_backend(kinds[0] if device is None else device)


def get_default_backend_for_device(device: Any) -> str:
    """The name of the transport for a type of device. ValueError for one without."""
    kind = _C.device(device).type
    found = Backend.default_device_backend_map.get(kind)
    if found is None:
        raise ValueError(
            f"get_default_backend_for_device: expected a device with a backend, got {kind}"
        )
    return found


def get_pg_count() -> int:
    """How many groups this process has made."""
    return 0 if _world.default is None else 1 + _world.count


def supports_complex(reduceOp: Any) -> bool:  # noqa: N803
    """Whether an operation is for complex numbers."""
    return reduceOp in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT, ReduceOp.PREMUL_SUM)


def resolve_process_group(name: str) -> ProcessGroup:
    """The group of a name (see ProcessGroup.group_name). ValueError where there is none."""
    for each in _world.groups:
        if each.group_name == name:
            return each
    raise ValueError(f"expected the name of a group of this process, got {name!r}")


def store_of() -> Store:
    """The store by which the processes found each other."""
    _default()
    assert _world.store is not None
    return _world.store


@contextlib.contextmanager
def record_comm(name: str) -> Iterator[None]:
    """Shows the calls within it under a name in the profiler."""
    from treadle.profiler import record_function

    with record_function(name):
        yield

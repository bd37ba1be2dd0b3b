"""The group of all processes of the program, and the groups made of some of them."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import hashlib
import warnings
from datetime import timedelta
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from treadle import _C
from treadle.distributed._mesh import Mesh, connect_all
from treadle.distributed.process_group import ProcessGroup
from treadle.distributed.rendezvous import rendezvous
from treadle.distributed.store import Store

default_pg_timeout = timedelta(minutes=30)

_ELSEWHERE = ("nccl", "mpi", "ucc", "xccl")


class Backend(str):
    """The name of a transport; here "gloo", over sockets."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend: expected a name, got {type(name).__name__}")
        return super().__new__(cls, name.lower())


class GroupMember:
    """The result of new_group() in a process that is no member."""

    WORLD: Optional[ProcessGroup] = None
    NON_GROUP_MEMBER = -100


class _World:
    """The state that init_process_group() set up."""

    def __init__(self) -> None:
        self.default: Optional[ProcessGroup] = None
        self.mesh: Optional[Mesh] = None
        self.groups: List[ProcessGroup] = []
        self.channels = 0
        self.local: Dict[Tuple[int, ...], int] = {}


_world = _World()
AnyGroup = Union[None, ProcessGroup, int]


class _GroupMeta(type):
    @property
    def WORLD(cls) -> Optional[ProcessGroup]:  # noqa: N802
        return _world.default


class group(metaclass=_GroupMeta):  # noqa: N801
    """`group.WORLD` is the group of all processes; None before init_process_group()."""


def is_initialized() -> bool:
    """Whether init_process_group() was called, and destroy_process_group() not since."""
    return _world.default is not None


def _default() -> ProcessGroup:
    if _world.default is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    return _world.default


def group_of(given: AnyGroup) -> Optional[ProcessGroup]:
    """The group, by default that of all. None, with a warning, in a process that is no member."""
    if given == GroupMember.NON_GROUP_MEMBER:
        warnings.warn("the process is not a member of the given group", stacklevel=3)
        return None
    found = _default() if given is None else given
    if not isinstance(found, ProcessGroup):
        raise TypeError(f"expected a group of processes, got {type(found).__name__}")
    return found


def _transport(function: str, backend: Optional[str]) -> None:
    """RuntimeError for a transport of devices that are not there, ValueError for an unknown one."""
    if backend is None:
        return
    name = str(backend).lower()
    for pair in name.split(","):
        device, _, one = pair.rpartition(":")
        if device in ("", "cpu") and one != "gloo":
            if one in _ELSEWHERE:
                raise RuntimeError(
                    f"{function}: expected backend 'gloo', for processes on the CPU, got {one!r}, "
                    "which is not there"
                )
            raise ValueError(f"{function}: expected backend 'gloo', got {backend!r}")


def _no_options(function: str, pg_options: Any, device_id: Any) -> None:
    """ValueError for options of transports that are not there, and for a device of its own."""
    if pg_options is not None:
        kind = type(pg_options).__name__
        raise ValueError(f"{function}: expected no pg_options, as gloo has none, got {kind}")
    if device_id is not None and _C.device(device_id).type != "cpu":
        raise ValueError(f"{function}: expected device_id on the cpu or None, got {device_id}")


def _local_channel(ranks: Tuple[int, ...]) -> int:
    """The number of a group that its members make alone: they count the groups of these ranks."""
    count = _world.local[ranks] = _world.local.get(ranks, 0) + 1
    digest = hashlib.sha256(repr((ranks, count)).encode()).digest()
    return int.from_bytes(digest[:8], "big") | 1 << 63


def init_process_group(
    backend: Optional[str] = None,
    init_method: Optional[str] = None,
    timeout: Optional[timedelta] = None,
    world_size: int = -1,
    rank: int = -1,
    store: Optional[Store] = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Join the group of all processes; returns when all have joined. They find each other by
    `init_method` (see rendezvous), by default env://, or by a store. Later calls wait for at most
    `timeout`, by default 30 minutes.

    ValueError if the group is there already, or something is missing; RuntimeError for a backend
    that is not "gloo"; DistNetworkError, DistStoreError if not all join in time.
    """
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    _transport("init_process_group", backend)
    _no_options("init_process_group", pg_options, device_id)
    limit = timeout or default_pg_timeout
    if store is None:
        found, rank, world_size = rendezvous(init_method or "env://", rank, world_size, limit)
    elif init_method is not None:
        raise ValueError("init_process_group: expected init_method or store, got both")
    else:
        found = store
    if not 0 <= rank < world_size:
        raise ValueError(
            f"init_process_group: expected rank in [0, {world_size}), got rank = {rank}"
        )
    try:
        mesh = connect_all(found, rank, world_size, limit.total_seconds())
        whole = ProcessGroup(mesh, 0, range(world_size), limit)
        if store is None and rank > 0:
            found.close()
        # When all have come here the store, which the first process holds, is of no use any more.
        # It is gone before any process goes on, and perhaps begins anew at the same address.
        whole.meet(whole.call("barrier"), between=found.end if store is None else lambda: None)
    except BaseException:
        if store is None:
            found.close()
        raise
    _world.mesh, _world.channels, _world.groups = mesh, 0, [whole]
    _world.default = GroupMember.WORLD = whole


def new_group(
    ranks: Optional[Sequence[int]] = None,
    timeout: Optional[timedelta] = None,
    backend: Optional[str] = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: Optional[str] = None,
    device_id: Any = None,
) -> Any:
    """A group of the processes with these ranks, by default all. All processes call it, in the same
    order, or with `use_local_synchronization` the members alone; the others get
    GroupMember.NON_GROUP_MEMBER."""
    whole = _default()
    _transport("new_group", backend)
    _no_options("new_group", pg_options, device_id)
    wanted = sorted(range(whole.size()) if ranks is None else ranks)
    if len(set(wanted)) != len(wanted):
        raise ValueError(f"new_group: expected different ranks, got {list(wanted)}")
    for rank in wanted:
        whole.member("new_group", rank)
    if use_local_synchronization:
        channel = _local_channel(tuple(wanted))
    else:
        channel = _world.channels = _world.channels + 1
    if whole.rank() not in wanted:
        return GroupMember.NON_GROUP_MEMBER
    assert _world.mesh is not None
    made = ProcessGroup(_world.mesh, channel, wanted, timeout or whole.timeout)
    _world.groups.append(made)
    return made


def destroy_process_group(group: AnyGroup = None) -> None:
    """Leave the group, by default that of all, and with it every other one."""
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    found = _default() if group is None else group
    assert isinstance(found, ProcessGroup)
    if found is not _world.default:
        found.close()
        _world.groups.remove(found)
        return
    for each in _world.groups:
        each.close()
    assert _world.mesh is not None
    _world.mesh.close()
    _world.default = _world.mesh = GroupMember.WORLD = None
    _world.groups, _world.local = [], {}


# ---- Questions ----


def get_rank(group: AnyGroup = None) -> int:
    """The rank of this process in a group, by default that of all; -1 where it is no member."""
    if group == GroupMember.NON_GROUP_MEMBER:
        return -1
    found = group_of(group)
    return -1 if found is None else found.rank()


def get_world_size(group: AnyGroup = None) -> int:
    """How many processes a group has; -1 in a process that is no member."""
    if group == GroupMember.NON_GROUP_MEMBER:
        return -1
    found = group_of(group)
    return -1 if found is None else found.size()


def get_backend(group: AnyGroup = None) -> Backend:
    """The transport of a group."""
    _default()
    return Backend("gloo")


def get_process_group_ranks(group: AnyGroup) -> List[int]:
    """The ranks of the members in the group of all."""
    found = group_of(group)
    return [] if found is None else list(found.members)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank in the group of all of a member."""
    if not 0 <= group_rank < group.size():
        raise ValueError(
            f"get_global_rank: expected group_rank in [0, {group.size()}), got {group_rank}"
        )
    return group.members[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank in a group of a process, given by its rank in the group of all."""
    return group.member("get_group_rank", global_rank)


def is_available() -> bool:
    """Whether processes can be connected: always."""
    return True


def is_gloo_available() -> bool:
    """Whether the transport "gloo" is there: always."""
    return True


def is_nccl_available() -> bool:
    """Whether the transport between NVIDIA's devices is there."""
    return False


is_mpi_available = is_ucc_available = is_xccl_available = is_nccl_available


def is_backend_available(backend: str) -> bool:
    """Whether a transport is there, by its name."""
    return backend.lower() == "gloo"


def is_torchelastic_launched() -> bool:
    """Whether a launcher that restarts processes began this one, as it says in the environment."""
    import os

    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def get_node_local_rank(fallback_rank: Optional[int] = None) -> int:
    """The rank among the processes of this machine: LOCAL_RANK of the environment."""
    import os

    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError("get_node_local_rank: expected LOCAL_RANK in the environment, got none")
    return fallback_rank

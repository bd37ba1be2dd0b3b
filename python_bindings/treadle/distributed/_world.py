"""The group of all processes of the program, and the groups made of some of them."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import hashlib
import os
import time
import warnings
from datetime import timedelta
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from treadle import _C
from treadle._device.registry import is_available as is_device_there
from treadle.distributed.backend import (
    Backend,
    BackendConfig,
    is_registered,
    is_there,
    make,
    mpi_place,
)
from treadle.distributed.constants import default_pg_nccl_timeout, default_pg_timeout
from treadle.distributed.errors import DistError, DistStoreError
from treadle.distributed.process_group import ProcessGroup
from treadle.distributed.rendezvous import rendezvous
from treadle.distributed.store import FileStore, HashStore, PrefixStore, Store, TCPStore

# How long destroy_process_group() waits for calls under way, and the end of the program.
_LAST_CALLS = 5.0
_AT_EXIT = 1.0


class GroupMember:
    """The result of new_group() in a process that is no member."""

    WORLD: Optional[ProcessGroup] = None
    NON_GROUP_MEMBER = -100


class _World:
    """The state that init_process_group() set up."""

    def __init__(self) -> None:
        self.default: Optional[ProcessGroup] = None
        self.store: Optional[Store] = None  # of the group of all
        self.own_store: Optional[Store] = None  # that init_process_group() made
        self.config: Optional[BackendConfig] = None
        self.groups: List[ProcessGroup] = []
        self.count = 0
        self.local: Dict[Tuple[int, ...], int] = {}
        self.watch: Any = None  # a _faults.Watch, where there is one


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


def _no_options(function: str, config: BackendConfig, pg_options: Any) -> None:
    """ValueError for options of transports that have none."""
    plugins = any(is_registered(name) for name in config.get_device_backend_map().values())
    if pg_options is not None and not plugins:
        kind = type(pg_options).__name__
        raise ValueError(f"{function}: expected no pg_options, as {config} has none, got {kind}")


def _checked_device(function: str, device_id: Any, config: BackendConfig) -> Any:
    """The device that a group is bound to. ValueError for one without a transport, for several, and
    for one that is not there."""
    if device_id is None:
        return None
    device = _C.device(device_id)
    kinds = config.get_device_backend_map()
    if device.type not in kinds:
        raise ValueError(
            f"{function}: expected device_id on the {' or '.join(kinds)} or None, got {device}"
        )
    if device.type != "cpu" and (device.index is None or not is_device_there(str(device))):
        raise ValueError(
            f"{function}: expected device_id with the number of a device that is there, "
            f"got {device}"
        )
    return device


def _checked_timeout(function: str, timeout: Any) -> None:
    if timeout is not None and not isinstance(timeout, timedelta):
        kind = type(timeout).__name__
        raise TypeError(f"{function}: expected timeout to be a timedelta, got {kind}")


def _local_name(ranks: Tuple[int, ...]) -> str:
    """The name of a group that its members make alone: they count the groups of these ranks."""
    count = _world.local[ranks] = _world.local.get(ranks, 0) + 1
    return f"{hashlib.sha256(repr(ranks).encode()).hexdigest()[:16]}_{count}"


def _connect(
    config: BackendConfig,
    store: Store,
    members: Sequence[int],
    place: int,
    name: str,
    timeout: timedelta,
    pg_options: Any = None,
    device: Any = None,
) -> ProcessGroup:
    """The group of these members; returns when all are connected."""
    backends: Dict[str, Any] = {}
    for backend in dict.fromkeys(config.get_device_backend_map().values()):
        part = PrefixStore(f"{name}/{backend}", store)
        part.set_timeout(timeout)
        backends[backend] = make(
            backend, part, place, list(members), name, timeout, pg_options, device
        )
    if len(backends) == 1 and isinstance(next(iter(backends.values())), ProcessGroup):
        made = next(iter(backends.values()))
    else:
        made = ProcessGroup(place, len(members))
        for device, backend in config.get_device_backend_map().items():
            made._register_backend(device, backend, backends[backend])
    made._members = tuple(members)
    made._timeout = timeout
    made._set_group_name(name)
    return made


def _joined(
    init_method: Optional[str], rank: int, world_size: int, timeout: timedelta
) -> Tuple[Store, int, int]:
    """The store of the group of all, which only this group uses. A store that this process has
    joined before belongs to an earlier group, whose first process has not ended it yet."""
    end = time.monotonic() + timeout.total_seconds()
    while True:
        url = init_method or "env://"
        store, place, size = next(rendezvous(url, rank, world_size, timeout=timeout))
        try:
            count = store.add(f"joined/{place}", 1)
        except DistError:
            if time.monotonic() >= end:
                raise
            count = 0
        if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True" and count:
            return PrefixStore(f"group_{count}", store), place, size  # the launcher's store
        if count == 1:
            return store, place, size
        store.close()
        if time.monotonic() >= end:
            raise DistStoreError(
                "init_process_group: expected a store that this process has not joined before, got "
                "that of an earlier group; destroy it in the first process"
            )
        time.sleep(0.01)


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
    `timeout`, by default 30 minutes, with "nccl" 10. `backend` is "gloo", on the CPU, "nccl",
    between devices of CUDA, "mpi" in a program that mpirun started, which knows the ranks, one that
    was registered, or one for each type of device: "cpu:gloo,cuda:nccl", which is the default where
    there is NCCL. `device_id` is the device that this process uses: the backend for it is the
    default then, and connects the processes at once.

    ValueError if the group is there already, or something is missing; RuntimeError for a backend
    that is not there; DistNetworkError, DistStoreError if not all join in time.
    """
    function = "init_process_group"
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    if backend is None and device_id is not None:
        backend = Backend.default_device_backend_map.get(_C.device(device_id).type)
    config = BackendConfig(backend, function)
    _no_options(function, config, pg_options)
    _checked_timeout(function, timeout)
    device = _checked_device(function, device_id, config)
    limit = timeout or (default_pg_nccl_timeout if backend == "nccl" else default_pg_timeout)
    own: Optional[Store] = None
    is_mpi = set(config.get_device_backend_map().values()) == {Backend.MPI}
    if is_mpi:
        rank, world_size = _place_in_mpi(function, rank, world_size)
        store = HashStore()  # MPI finds the processes
    elif store is None:
        own, rank, world_size = _joined(init_method, rank, world_size, limit)
        found = own
    elif init_method is not None:
        raise ValueError(f"{function}: expected init_method or store, got both")
    if not 0 <= rank < world_size:
        raise ValueError(f"{function}: expected rank in [0, {world_size}), got rank = {rank}")
    if store is not None:
        found = PrefixStore(f"group_{store.add(f'joined/{rank}', 1)}", store)
    try:
        whole = _connect(
            config, found, range(world_size), rank, group_name or "0", limit, pg_options, device
        )
        whole._set_group_desc("default_pg")
        whole.bound_device_id = device
        _world.groups = [whole]
        if not is_mpi:  # its ranks share no store
            _begin_watch(found, own is not None, whole)
        whole.barrier(_now()).wait()  # all have found each other: the store may end
    except BaseException:
        if _world.watch is not None:
            _world.watch.end()
        _world.__init__()  # type: ignore[misc]
        if own is not None:
            _end_store(own, rank)
        raise
    _world.store, _world.own_store, _world.config = found, own, config
    _world.default = GroupMember.WORLD = whole
    _watch_the_process()


def _begin_watch(store: Store, is_own: bool, whole: ProcessGroup) -> None:
    """Find out who is at fault when calls of groups fail, where the ranks share a store."""
    root = _root(store)
    if whole.size() > 1 and isinstance(root, (FileStore, HashStore, TCPStore)):
        from treadle.distributed._faults import Watch

        is_agents = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        holder = 0 if is_own and isinstance(root, TCPStore) and not is_agents else None
        _world.watch = Watch(store, whole.rank(), _world.groups, holder)
        _watch_calls(whole)


def _watch_calls(group: ProcessGroup) -> None:
    for backend in group._each_backend():
        if _world.watch is not None and hasattr(backend, "watch"):
            backend.watch(_world.watch, group)


def _root(store: Store) -> Store:
    return store._underlying_non_prefix_store if isinstance(store, PrefixStore) else store


def _place_in_mpi(function: str, rank: int, world_size: int) -> Tuple[int, int]:
    """The rank and world size that MPI has. ValueError where the program says something else."""
    place, size = mpi_place()
    for name, given, expected in (("rank", rank, place), ("world_size", world_size, size)):
        if given not in (-1, expected):
            raise ValueError(f"{function}: expected {name} = {expected}, as MPI has, got {given}")
    return place, size


def _now() -> Any:
    from treadle.distributed.options import BarrierOptions

    return BarrierOptions(asyncOp=False)


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
    function = "new_group"
    whole = _default()
    assert _world.config is not None and _world.store is not None
    config = _world.config if backend is None else BackendConfig(backend, function)
    _no_options(function, config, pg_options)
    _checked_timeout(function, timeout)
    device = _checked_device(function, device_id, config)
    wanted = sorted(range(whole.size()) if ranks is None else ranks)
    if len(set(wanted)) != len(wanted):
        raise ValueError(f"{function}: expected different ranks, got {list(wanted)}")
    for rank in wanted:
        whole.member(function, rank)
    if use_local_synchronization:
        name = _local_name(tuple(wanted))
    else:
        _world.count += 1
        name = str(_world.count)
    if whole.rank() not in wanted:
        return GroupMember.NON_GROUP_MEMBER
    limit = timeout or whole.timeout
    place = wanted.index(whole.rank())
    device = device if device is not None else whole.bound_device_id
    made = _connect(config, _world.store, wanted, place, name, limit, pg_options, device)
    made._set_group_desc(group_desc or "undefined")
    made.bound_device_id = device
    _world.groups.append(made)
    _watch_calls(made)
    try:
        made.barrier(_now()).wait()  # no member ends the store before all have found each other
    except BaseException:
        _world.groups.remove(made)
        raise
    return made


def destroy_process_group(group: AnyGroup = None) -> None:
    """Leave the group, by default that of all, and with it every other one. Calls under way have a
    few seconds to end."""
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    found = _default() if group is None else group
    if not isinstance(found, ProcessGroup) or found not in _world.groups:
        raise ValueError("destroy_process_group: expected a group that is there, got another value")
    if found is not _world.default:
        _world.groups.remove(found)
        found.shutdown(_LAST_CALLS)
        return
    _end(_LAST_CALLS)


def _end(seconds: float) -> None:
    groups, store, rank = _world.groups, _world.own_store, get_rank()
    if _world.watch is not None:
        _world.watch.end()
    _world.__init__()  # type: ignore[misc]
    GroupMember.WORLD = None
    for each in groups:
        each.shutdown(seconds)
    if store is not None:
        _end_store(store, rank)


def _end_store(store: Store, rank: int) -> None:
    store = _root(store)
    with contextlib.suppress(DistError, OSError):
        if rank == 0:
            store.end()
        else:
            store.close()


_watched = False
_of_the_parent: List[Any] = []


def _watch_the_process() -> None:
    """See to it that groups end before the interpreter, and that a child of a fork has none."""
    global _watched
    if _watched:
        return
    import atexit

    _watched = True
    atexit.register(_at_exit)
    os.register_at_fork(after_in_child=_forget)


def _at_exit() -> None:
    if _world.default is not None:
        _end(_AT_EXIT)


def _forget() -> None:
    """The connections are the parent's: they stay as they are, unused."""
    _of_the_parent.append((_world.groups, _world.store, _world.own_store))
    _world.__init__()  # type: ignore[misc]
    GroupMember.WORLD = None


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
    found = group_of(group)
    return Backend(Backend.UNDEFINED if found is None else found.name())


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


def is_mpi_available() -> bool:
    """Whether the transport "mpi" is there: whether the system has a library of MPI."""
    return is_there(Backend.MPI)


def is_nccl_available() -> bool:
    """Whether the transport "nccl" is there: a device of CUDA, and a library of NCCL."""
    return is_there(Backend.NCCL)


def is_xccl_available() -> bool:
    """Whether the transport between Intel's devices is there: never."""
    return False


is_ucc_available = is_xccl_available


def is_backend_available(backend: str) -> bool:
    """Whether a transport is there, by its name."""
    return is_there(backend.lower())


def is_torchelastic_launched() -> bool:
    """Whether a launcher that restarts processes began this one, as it says in the environment."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def get_node_local_rank(fallback_rank: Optional[int] = None) -> int:
    """The rank among the processes of this machine: LOCAL_RANK of the environment, or what Slurm,
    Open MPI or MPICH say."""
    from treadle.distributed import _launchers

    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    place = _launchers.place()
    if place is not None and place.local_rank is not None:
        return place.local_rank
    if fallback_rank is None:
        raise RuntimeError("get_node_local_rank: expected LOCAL_RANK in the environment, got none")
    return fallback_rank

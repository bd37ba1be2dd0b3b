"""The transports by their names: "gloo" over sockets, "nccl" between devices of CUDA, "mpi", and
those that a program registers.

    dist.Backend.register_backend("mine", make, devices=["cpu"])
    dist.init_process_group("cpu:gloo,cuda:mine")

A package offers one by an entry point of the group `torch.distributed.backends`: the name, and a
function without arguments that registers it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Callable, ClassVar, Dict, List, NamedTuple, Optional, Tuple, Union

from treadle import _C
from treadle.distributed.errors import DistError, DistNetworkError, DistStoreError
from treadle.distributed.store import PrefixStore, Store, TCPStore

_ENTRY_POINTS = "torch.distributed.backends"


class Registered(NamedTuple):
    """A transport that a program registered."""

    make: Callable[..., Any]
    extended_api: bool


class Backend(str):
    """The name of a transport."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"

    backend_list: ClassVar[List[str]] = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]
    default_device_backend_map: ClassVar[Dict[str, str]] = {"cpu": GLOO, "cuda": NCCL}
    backend_capability: ClassVar[Dict[str, List[str]]] = {
        GLOO: ["cpu"],
        NCCL: ["cuda"],
        MPI: ["cpu"],
    }
    _plugins: ClassVar[Dict[str, Registered]] = {}

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend: expected a name, got {type(name).__name__}")
        return super().__new__(cls, name.lower())

    @classmethod
    def register_backend(
        cls,
        name: str,
        func: Callable[..., Any],
        extended_api: bool = False,
        devices: Union[None, str, List[str]] = None,
    ) -> None:
        """Make a transport known. `func(store, rank, size, timeout)` returns a ProcessGroup, or an
        object with its methods; with `extended_api` it is func(options, pg_options), where options
        has `store`, `group_rank`, `group_size`, `timeout`, `group_id`, `global_ranks_in_group`.
        `devices` are the types of devices that it is for, by default all. RuntimeError for a name
        that is taken."""
        lower = name.lower()
        if lower in cls._plugins or lower in (cls.GLOO, cls.MPI, cls.NCCL):
            raise RuntimeError(f"register_backend: expected a new name, got {name!r}")
        devices = [devices] if isinstance(devices, str) else devices
        if lower not in cls.backend_list:
            cls.backend_list.append(lower)
        setattr(cls, name.upper(), lower)
        for device in devices or []:
            cls.default_device_backend_map.setdefault(device, lower)
        cls.backend_capability[lower] = list(devices) if devices else ["cpu", "cuda"]
        cls._plugins[lower] = Registered(func, extended_api)


@dataclass
class DistributedBackendOptions:
    """The arguments of a transport with `extended_api` (PyTorch's _DistributedBackendOptions)."""

    store: Store
    group_rank: int
    group_size: int
    timeout: timedelta
    group_id: str
    global_ranks_in_group: List[int]


def _load_entry_point(name: str) -> None:
    """Register a transport that an installed package offers."""
    from importlib.metadata import entry_points

    for point in entry_points(group=_ENTRY_POINTS):
        if point.name.lower() == name:
            point.load()()
            return


def is_registered(name: str) -> bool:
    """Whether a program or an installed package has registered a transport of this name."""
    # PyTorch, where it is installed, offers its own transports of the built-in names.
    if name not in Backend._plugins and name not in (Backend.GLOO, Backend.MPI, Backend.NCCL):
        _load_entry_point(name)
    return name in Backend._plugins


def is_there(name: str) -> bool:
    """Whether a transport can be used, by its name in lower case."""
    if name == Backend.MPI:
        from treadle.distributed import _engine

        return bool(_engine.mpi_is_there())
    if name == Backend.NCCL:
        return not _missing_for_nccl()
    return name == Backend.GLOO or is_registered(name)


class BackendConfig:
    """Which transport is for which type of device: "gloo", or "cpu:gloo,cuda:nccl"."""

    def __init__(self, backend: Optional[str], function: str = "BackendConfig") -> None:
        self.device_backend_map: Dict[str, str] = {}
        text = Backend.UNDEFINED if backend is None else str(backend).lower()
        for part in text.split(","):
            device, _, name = part.strip().rpartition(":")
            if name == Backend.UNDEFINED:
                self.device_backend_map.update(_usual())
                continue
            self._check(function, name, backend)
            devices = [device] if device else Backend.backend_capability[name]
            for each in devices:
                if each in self.device_backend_map:
                    raise ValueError(
                        f"{function}: expected one backend for {each}, got {backend!r}"
                    )
                self.device_backend_map[each] = name

    @staticmethod
    def _check(function: str, name: str, given: Any) -> None:
        if is_there(name):
            return
        if name == Backend.NCCL:
            raise RuntimeError(f"{function}: {_missing_for_nccl()}")
        there = ", ".join(sorted(filter(is_there, Backend.backend_list)))
        kind = RuntimeError if name in Backend.backend_list else ValueError
        raise kind(f"{function}: expected a backend that is there ({there}), got {given!r}")

    def get_device_backend_map(self) -> Dict[str, str]:
        """The names by the types of devices."""
        return self.device_backend_map

    def __repr__(self) -> str:
        return ",".join(f"{device}:{name}" for device, name in self.device_backend_map.items())


def _usual() -> Dict[str, str]:
    """The transports where a program names none: those of the devices that are there."""
    found = {"cpu": Backend.GLOO}
    if is_there(Backend.NCCL):
        found["cuda"] = Backend.NCCL
    return found


# ---- Gloo ----------------------------------------------------------------------------------------


def _route(host: str, port: int) -> str:
    """The address of this machine on the way to another."""
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as probe:
        probe.connect(address)  # sends nothing
        return str(probe.getsockname()[0])


def _interface(store: Store) -> Tuple[str, str]:
    """The address, or the name of the network interface, by which the others reach this process:
    GLOO_SOCKET_IFNAME; or what leads to the store; or the host name, if it is this machine's."""
    name = os.environ.get("GLOO_SOCKET_IFNAME", "").split(",")[0]
    if name:
        return "", name
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    if isinstance(store, TCPStore):
        return _route(store.host, store.port), ""
    try:
        host = socket.gethostname()
        with socket.socket() as probe:
            probe.bind((host, 0))
        return host, ""
    except OSError:
        return "127.0.0.1", ""


def _gloo_engine(store: Store, rank: int, members: List[int], name: str, timeout: timedelta) -> Any:
    from treadle.distributed import _engine, _gloo  # noqa: F401

    host, interface = _interface(store)

    def joined(key: str) -> bytes:
        try:
            return store.get(key)
        except DistStoreError:
            absent = members[int(key.rpartition("/")[2])]
            raise DistNetworkError(
                f"init_process_group: expected rank {absent} to join within "
                f"{timeout.total_seconds():g} s, got none"
            ) from None

    try:
        return _gloo.connect(
            rank, len(members), store.set, joined, host, interface, timeout.total_seconds()
        )
    except DistError:
        raise
    except RuntimeError as error:
        raise DistNetworkError(
            f"init_process_group: expected connections to all ranks of group {name}, got an error "
            f"({str(error).rpartition('] ')[2]})"
        ) from None


# ---- NCCL ----------------------------------------------------------------------------------------


def _missing_for_nccl() -> str:
    """What "nccl" needs and is not there; empty where all is. Looks for a device first: without one
    nothing is loaded."""
    from treadle.distributed import _nccl

    try:
        _C.empty((0,), device="cuda")
    except (RuntimeError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        return f"expected a device of CUDA, and NCCL (libnccl.so.2), for 'nccl', got none: {reason}"
    return str(_nccl.missing())


def _make_nccl(
    store: Store, rank: int, members: List[int], name: str, timeout: timedelta, device: Any
) -> Any:
    from treadle.distributed import _nccl
    from treadle.distributed._nccl_group import NcclGroup

    engine = _nccl.NcclEngine(_gloo_engine(store, rank, members, name, timeout))
    return NcclGroup(engine, members, name, timeout, device)


# ---- MPI -----------------------------------------------------------------------------------------


def mpi_place() -> Tuple[int, int]:
    """The rank of this process in MPI, and how many processes it has. Starts MPI, which then ends
    with the program."""
    import atexit

    from treadle.distributed import _engine

    place: Tuple[int, int] = _engine.mpi_start()
    atexit.unregister(_engine.mpi_finish)
    atexit.register(_engine.mpi_finish)
    return place


def _make_mpi(members: List[int], name: str, timeout: timedelta) -> Any:
    from treadle.distributed import _engine
    from treadle.distributed._engine_group import EngineGroup

    return EngineGroup(_engine.mpi_connect(members, name), members, name, timeout)


# ---- All -----------------------------------------------------------------------------------------


def make(
    name: str,
    store: Optional[Store],
    rank: int,
    members: List[int],
    group_name: str,
    timeout: timedelta,
    pg_options: Any = None,
    device: Any = None,
) -> Any:
    """The transport of this name for a group, whose device in this process may be known."""
    if name in Backend._plugins:
        plugin = Backend._plugins[name]
        assert store is not None
        if not plugin.extended_api:
            return plugin.make(store, rank, len(members), timeout)
        options = DistributedBackendOptions(
            store, rank, len(members), timeout, group_name, list(members)
        )
        return plugin.make(options, pg_options)
    if name == Backend.MPI:
        return _make_mpi(members, group_name, timeout)
    if name == Backend.GLOO:
        from treadle.distributed._engine_group import EngineGroup

        assert store is not None
        engine = _gloo_engine(store, rank, members, group_name, timeout)
        return EngineGroup(engine, members, group_name, timeout)
    if name == Backend.NCCL:
        assert store is not None
        return _make_nccl(store, rank, members, group_name, timeout, device)
    raise RuntimeError(f"init_process_group: expected a backend that is there, got {name!r}")


__all__ = [
    "Backend",
    "BackendConfig",
    "DistributedBackendOptions",
    "is_registered",
    "is_there",
    "make",
]

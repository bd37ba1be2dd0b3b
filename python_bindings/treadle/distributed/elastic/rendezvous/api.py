"""How agents meet: the interface, and what it says."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Callable, ClassVar, Dict, Optional

from treadle.distributed.store import Store


class RendezvousError(Exception):
    """Agents do not meet."""


class RendezvousClosedError(RendezvousError):
    """The run has ended."""


class RendezvousTimeoutError(RendezvousError):
    """Not enough agents came in time."""


class RendezvousConnectionError(RendezvousError):
    """The store at which the agents meet is not reached."""


class RendezvousStateError(RendezvousError):
    """The values that the agents wrote to the store cannot be read."""


class RendezvousGracefulExitError(RendezvousError):
    """This agent is not needed, and ends without an error."""


@dataclass
class RendezvousStoreInfo:
    """The address of the store of the workers."""

    MASTER_ADDR_KEY: ClassVar[str] = "MASTER_ADDR"
    MASTER_PORT_KEY: ClassVar[str] = "MASTER_PORT"
    master_addr: str
    master_port: int

    @staticmethod
    def build(
        rank: int, store: Store, local_addr: Optional[str], server_port: Optional[int] = None
    ) -> RendezvousStoreInfo:
        """The address that the agent of rank 0 writes to the store of agents, by default that of a
        free port of its machine."""
        if rank == 0:
            if server_port is None:
                with socket.socket() as probe:
                    probe.bind(("", 0))
                    server_port = int(probe.getsockname()[1])
            store.set(RendezvousStoreInfo.MASTER_ADDR_KEY, local_addr or socket.getfqdn())
            store.set(RendezvousStoreInfo.MASTER_PORT_KEY, str(server_port))
        address = store.get(RendezvousStoreInfo.MASTER_ADDR_KEY).decode()
        port = int(store.get(RendezvousStoreInfo.MASTER_PORT_KEY))
        return RendezvousStoreInfo(address, port)


@dataclass
class RendezvousInfo:
    """A meeting: a store for the agents of this meeting alone, the number of this agent, how many
    agents there are, and the store of the workers."""

    store: Store
    rank: int
    world_size: int
    bootstrap_store_info: RendezvousStoreInfo


class RendezvousHandler(ABC):
    """Lets an agent meet the others."""

    @abstractmethod
    def get_backend(self) -> str:
        """The name of the way to meet."""

    @property
    def use_agent_store(self) -> bool:
        """Whether the store of the workers is that of the agents, so that no worker serves it."""
        return False

    @abstractmethod
    def next_rendezvous(self) -> RendezvousInfo:
        """Meet the others: waits for them. RendezvousClosedError if the run has ended,
        RendezvousTimeoutError if too few come, RendezvousConnectionError without a store."""

    @abstractmethod
    def is_closed(self) -> bool:
        """Whether the run has ended."""

    @abstractmethod
    def set_closed(self) -> None:
        """End the run for all agents."""

    @abstractmethod
    def num_nodes_waiting(self) -> int:
        """How many agents wait for a meeting; where it is not 0, the workers start anew."""

    @abstractmethod
    def get_run_id(self) -> str:
        """The name of the run."""

    @abstractmethod
    def shutdown(self) -> bool:
        """Let go of what it holds open; whether that succeeded."""

    # Further questions of agents of this package; other handlers need not have it.

    def finish(self) -> bool:
        """The workers of this agent have succeeded. Whether those of all agents have."""
        return True

    def leave(self) -> bool:
        """This agent takes no part any more. Whether the others know, and go on without it."""
        return False


class RendezvousParameters:
    """The settings of a handler. More settings are in keyword arguments; see get()."""

    def __init__(
        self,
        backend: str,
        endpoint: str,
        run_id: str,
        min_nodes: int,
        max_nodes: int,
        local_addr: Optional[str] = None,
        **kwargs: Any,
    ) -> None:
        if not backend:
            raise ValueError("RendezvousParameters: expected the name of a backend, got none")
        if not 0 < min_nodes <= max_nodes:
            raise ValueError(
                f"RendezvousParameters: expected 0 < min_nodes <= max_nodes, got "
                f"min_nodes = {min_nodes}, max_nodes = {max_nodes}"
            )
        self.backend = backend
        self.endpoint = endpoint
        self.run_id = run_id
        self.min_nodes = min_nodes
        self.max_nodes = max_nodes
        self.local_addr = local_addr
        self.config = kwargs

    def get(self, key: str, default: Any = None) -> Any:
        """A setting."""
        return self.config.get(key, default)

    def get_as_bool(self, key: str, default: Optional[bool] = None) -> Optional[bool]:
        """A setting that is true or false, as text too: 1, true, yes; 0, false, no."""
        value = self.get(key, default)
        if value is None or isinstance(value, bool):
            return value
        text = str(value).lower()
        if text in ("1", "true", "t", "yes", "y"):
            return True
        if text in ("0", "false", "f", "no", "n"):
            return False
        raise ValueError(f"rendezvous: expected {key} as true or false, got {value!r}")

    def get_as_int(self, key: str, default: Optional[int] = None) -> Optional[int]:
        """A setting that is a number, as text too."""
        value = self.get(key, default)
        try:
            return None if value is None else int(value)
        except ValueError:
            raise ValueError(f"rendezvous: expected {key} as a number, got {value!r}") from None


Creator = Callable[[RendezvousParameters], RendezvousHandler]


class RendezvousHandlerRegistry:
    """The ways to meet, by name."""

    def __init__(self) -> None:
        self._creators: Dict[str, Creator] = {}

    def register(self, backend: str, creator: Creator) -> None:
        """Add a way to meet. ValueError if the name is taken by another."""
        if self._creators.get(backend, creator) is not creator:
            raise ValueError(f"register: expected a new name, got {backend!r}, which is taken")
        self._creators[backend] = creator

    def create_handler(self, params: RendezvousParameters) -> RendezvousHandler:
        """A handler of the way that the parameters name. ValueError if it is not known."""
        if params.backend not in self._creators:
            known = ", ".join(sorted(self._creators))
            raise ValueError(
                f"rendezvous: expected a backend among {known}, got {params.backend!r}"
            )
        return self._creators[params.backend](params)


rendezvous_handler_registry = RendezvousHandlerRegistry()

__all__ = [
    "RendezvousClosedError",
    "RendezvousConnectionError",
    "RendezvousError",
    "RendezvousGracefulExitError",
    "RendezvousHandler",
    "RendezvousHandlerRegistry",
    "RendezvousInfo",
    "RendezvousParameters",
    "RendezvousStateError",
    "RendezvousStoreInfo",
    "RendezvousTimeoutError",
    "rendezvous_handler_registry",
]

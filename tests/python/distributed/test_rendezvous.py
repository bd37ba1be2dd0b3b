"""How processes find each other: addresses, the environment of launchers, the agents' meeting."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any, Dict, List, Tuple

import pytest

import treadle.distributed as dist
from treadle.distributed import _launchers
from treadle.distributed.elastic import rendezvous as meetings
from treadle.distributed.elastic.rendezvous import dynamic_rendezvous, registry
from treadle.distributed.elastic.rendezvous.utils import (
    _matches_machine_hostname,
    _parse_rendezvous_config,
    parse_rendezvous_endpoint,
)

SECOND = timedelta(seconds=1)

LAUNCHERS: List[Tuple[Dict[str, str], Tuple]] = [
    (
        {
            "SLURM_PROCID": "5",
            "SLURM_NTASKS": "8",
            "SLURM_LOCALID": "1",
            "SLURM_JOB_NODELIST": "node[007-009,12],gpu3",
        },
        (5, 8, 1, "node007", 29500),
    ),
    (
        {
            "OMPI_COMM_WORLD_RANK": "1",
            "OMPI_COMM_WORLD_SIZE": "2",
            "OMPI_COMM_WORLD_LOCAL_RANK": "1",
            "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
            "SLURM_PROCID": "0",  # mpirun within a job
        },
        (1, 2, 1, "127.0.0.1", 29500),
    ),
    ({"PMI_RANK": "3", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1"}, (3, 4, 1, None, 29500)),
]


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "PMI_RANK", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)


def test_launchers_of_clusters() -> None:
    for environment, expected in LAUNCHERS:
        assert _launchers.place(environment) == expected
    assert _launchers.place({}) is None
    job = {**LAUNCHERS[0][0], "SLURM_JOB_ID": "77"}
    found = _launchers.place(job)
    assert found == _launchers.place(job) and found is not None and found.port != 29500
    for nodes, first in (
        ("a", "a"),
        ("a1,a2", "a1"),
        ("a[3]", "a3"),
        ("r[1-2]n[05,07-9],x", "r1n05"),
        ("n-[1-2].cluster", "n-1.cluster"),
    ):
        assert _launchers.first_host(nodes) == first


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    slurm = {**LAUNCHERS[0][0], "SLURM_PROCID": "0", "SLURM_JOB_NODELIST": "localhost"}
    for name, value in slurm.items():
        monkeypatch.setenv(name, value)
    assert dist.get_node_local_rank() == 1
    monkeypatch.setenv("MASTER_PORT", "0")  # what is set counts
    store, rank, world_size = next(dist.rendezvous("env://", timeout=SECOND))
    assert (rank, world_size) == (0, 8) and store.timeout == SECOND
    # The store of an agent is reached and not served, and each group has its own keys.
    assert isinstance(store, dist.TCPStore)
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    monkeypatch.setenv("MASTER_PORT", str(store.port))
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    monkeypatch.setenv("TREADLE_STORE_PREFIX", "run/round/3")
    for _ in range(2):
        other, rank, world_size = next(dist.rendezvous("env://?rank=0&world_size=2"))
        assert (rank, world_size) == (0, 2) and not other.check(["a"])
        other.set("a", "1")
    keys = [key for key in store.list_keys() if key.startswith("run/round/3/")]
    assert len(keys) == 2
    # A program that serves the address itself becomes a client of the agent's.
    client = dist.TCPStore("localhost", store.port, None, True, SECOND)
    assert client._server is None and client.check(keys)
    store.close()


def test_addresses(tmp_path: Any) -> None:
    with pytest.raises(ValueError) as raised:
        dist.rendezvous("tcp://localhost:1?rank=1", rank=0)
    assert str(raised.value) == (
        "init_process_group: expected rank = 1 as in tcp://localhost:1?rank=1, got 0"
    )
    url = f"file://{tmp_path}/store?rank=1&world_size=3"
    store, rank, world_size = next(dist.rendezvous(url, timeout=SECOND))
    assert (rank, world_size, store.timeout) == (1, 3, SECOND)
    for arguments in ((b"env://",), ("env://", "0"), ("env://", 0, 1.0)):
        with pytest.raises(RuntimeError, match="rendezvous: expected"):
            dist.rendezvous(*arguments)

    def handler(url: str, **more: Any) -> Any:
        yield url, more["timeout"], 2

    dist.register_rendezvous_handler("own", handler)
    expected = ("own://place?rank=1", SECOND, 2)
    assert next(dist.rendezvous("own://place", 1, timeout=SECOND)) == expected
    with pytest.raises(RuntimeError) as twice:
        dist.register_rendezvous_handler("own", handler)
    assert str(twice.value) == (
        "register_rendezvous_handler: expected a scheme without a handler, got own://"
    )


def test_endpoints_and_settings() -> None:
    for text, expected in (
        ("node:29400", ("node", 29400)),
        ("node", ("node", 7)),
        ("[::1]:2", ("::1", 2)),
        ("", ("localhost", 7)),
        (None, ("localhost", 7)),
    ):
        assert parse_rendezvous_endpoint(text, 7) == expected
    for bad in ("a:b", "a:70000", "a:1:2", "a b"):
        with pytest.raises(ValueError, match="expected an endpoint as host:port"):
            parse_rendezvous_endpoint(bad, 7)
    assert _parse_rendezvous_config("a=1, b=x=y") == {"a": "1", "b": "x=y"}
    with pytest.raises(ValueError, match="expected settings as key=value,..., got 'a'"):
        _parse_rendezvous_config("a")
    assert _matches_machine_hostname("localhost") and not _matches_machine_hostname("192.0.2.1")


# ---- Agents ----


def agent(
    store: dist.Store, least: int, most: int, number: Any = None, **settings: Any
) -> dynamic_rendezvous.DynamicRendezvousHandler:
    given = {"last_call_timeout": 0.1, "keep_alive_interval": 0.1, "join_timeout": 10, **settings}
    parameters = meetings.RendezvousParameters("c10d", "", "run", least, most, **given)
    return dynamic_rendezvous.DynamicRendezvousHandler(
        "c10d", store, ("localhost", 1), parameters, number
    )


def met(*agents: Any) -> List[Any]:
    """What the meeting of these agents says to each; an error stands for itself."""
    found: Dict[int, Any] = {}

    def meet(index: int) -> None:
        try:
            found[index] = agents[index].next_rendezvous()
        except meetings.RendezvousError as error:
            found[index] = error

    threads = [threading.Thread(target=meet, args=(index,)) for index in range(len(agents))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[index] for index in range(len(agents))]


def test_agents_come_and_go() -> None:
    store = dist.HashStore()
    first, second, third = (agent(store, 1, 2) for _ in range(3))
    (alone,) = met(first)
    assert (alone.rank, alone.world_size) == (0, 1) and first.num_nodes_waiting() == 0
    comes = threading.Thread(target=lambda: met(second))
    comes.start()
    while first.num_nodes_waiting() == 0:
        pass
    (together,) = met(first)
    comes.join()
    # The one that was there before has rank 0: it has the state of the run.
    assert (together.rank, together.world_size) == (0, 2)
    assert together.store.prefix != alone.store.prefix
    second.leave()
    assert first.num_nodes_waiting() == 1
    (again,) = met(first)
    assert again.world_size == 1
    # One that says nothing any more is found out.
    found = met(first, second)
    assert sorted(each.rank for each in found) == [0, 1]
    second._ending.set()
    while first.num_nodes_waiting() == 0:
        pass
    assert met(first)[0].world_size == 1
    assert not first.is_closed() and first.finish()
    first.set_closed()
    (error,) = met(third)
    assert isinstance(error, meetings.RendezvousGracefulExitError)
    for each in (first, second, third):
        assert each.shutdown()


def test_agents_with_numbers_and_too_few_of_them() -> None:
    store = dist.HashStore()
    agents = [agent(store, 3, 3, number) for number in (2, 0, 1)]
    assert [found.rank for found in met(*agents)] == [2, 0, 1]
    assert not agents[0].finish() and not agents[1].finish() and agents[2].finish()
    agents[0].set_closed()
    (error,) = met(agent(store, 3, 3, 1))
    assert isinstance(error, meetings.RendezvousGracefulExitError)
    (late,) = met(agent(dist.HashStore(), 2, 2, join_timeout=0.1))
    assert str(late) == "rendezvous: expected 2 agents within 0.1 s, got 1"
    closed = agent(dist.HashStore(), 1, 1)
    closed.set_closed()
    assert str(met(closed)[0]) == "rendezvous: the run run has ended"
    broken = dist.HashStore()
    broken.set("rendezvous/run/state", "{")
    assert str(met(agent(broken, 1, 1))[0]).startswith("rendezvous: the state cannot be read: ")
    for each in agents:
        each.shutdown()


def test_handlers() -> None:
    def made(
        backend: str, least: int, most: int, endpoint: str = "127.0.0.1:0", **more: Any
    ) -> Any:
        parameters = meetings.RendezvousParameters(backend, endpoint, "r", least, most, **more)
        return registry.get_rendezvous_handler(parameters)

    handler = made("c10d", 1, 1)
    info = handler.next_rendezvous()
    store = dist.TCPStore("127.0.0.1", info.bootstrap_store_info.master_port)
    assert store.list_keys() and handler.use_agent_store and handler.get_run_id() == "r"
    assert handler.shutdown()
    with pytest.raises(meetings.RendezvousConnectionError):
        handler.is_closed()
    for call, message in (
        (lambda: made("etcd", 1, 1), "expected a backend among c10d, static, got 'etcd'"),
        (lambda: made("static", 1, 2), "expected one number of nodes for static, got 1:2"),
        (lambda: made("static", 2, 2, rank=2), "expected the rank of the node in [0, 2) for"),
        (lambda: made("c10d", 1, 1, is_host="perhaps"), "expected is_host as true or false, got"),
        (lambda: made("c10d", 1, 1, join_timeout="x"), "expected join_timeout as a number of sec"),
        (lambda: made("", 1, 1), "expected the name of a backend, got none"),
        (lambda: made("c10d", 2, 1), "expected 0 < min_nodes <= max_nodes, got min_nodes = 2"),
    ):
        with pytest.raises(ValueError) as raised:
            call()
        assert message in str(raised.value)
    parameters = meetings.RendezvousParameters("c10d", "", "r", 1, 1, a="7", b="no")
    assert parameters.get_as_int("a") == 7 and parameters.get_as_bool("b") is False

"""A rank that dies, stops, sleeps or calls something else is named in the errors of all others, in
time, with what each rank did."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest

import child_processes
import faulty_ranks
import processes
import treadle
import treadle.distributed as dist
from child_processes import Child, results
from faulty_ranks import Fault
from process_groups import joined, reserved_port
from treadle.distributed import _faults, flight_record
from treadle.distributed._stores import protocol
from treadle.distributed._verdict import ENDED, SILENT, Said, verdict

TIMEOUT = 0.7


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_faults, "_ANSWER_SECONDS", 0.8)


def texts(fault: Fault, world: int = 3) -> Dict[int, List[str]]:
    """The lines of the errors, by rank."""
    found = faulty_ranks.run(fault, world, TIMEOUT)
    assert faulty_ranks.complaints(fault, found, TIMEOUT) == []
    return {outcome.rank: outcome.text.splitlines() for outcome in found}


WAITS = "called all_reduce(float32 [3]), which waits for the others"


def test_a_killed_rank() -> None:
    found = texts(Fault("killed", 1, 5))
    assert sorted(found) == [0, 2]
    for lines in found.values():
        assert lines[1:] == ["call 5 of group 0:", f"rank 1: {ENDED}", f"rank 0, 2 {WAITS}"]


def test_a_killed_rank_that_holds_the_store() -> None:
    for lines in texts(Fault("killed", 0, 5)).values():
        assert lines[1:3] == [
            "call 5 of group 0:",
            "rank 0, which holds the store, does not answer: its process has ended, is stopped or "
            "hangs",
        ]


def test_a_stopped_rank() -> None:
    for lines in texts(Fault("stopped", 2, 5)).values():
        assert lines[1:] == ["call 5 of group 0:", f"rank 2: {SILENT}", f"rank 0, 1 {WAITS}"]


def test_a_rank_that_calls_something_else() -> None:
    found = texts(Fault("function", 1, 4))
    for lines in found.values():
        assert lines[1:] == [
            "call 4 of group 0 differs between the ranks:",
            "rank 1 called all_gather(float32 [3]), which waits for the others",
            f"rank 0, 2 {WAITS}",
        ]
    assert sorted(found) == [0, 1, 2]


def test_a_rank_that_does_not_come() -> None:
    for lines in texts(Fault("sleeps", 0, 4), world=2).values():
        start = (
            "rank 0 has not called it: its last call is 3, broadcast(float32 [3], root 0), ended "
        )
        assert lines[1] == "call 4 of group 0:" and lines[2].startswith(start)
        assert lines[3] == f"rank 1 {WAITS}"


def test_calls_are_compared_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """With TORCH_DISTRIBUTED_DEBUG=DETAIL no time goes by."""
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "DETAIL")
    monkeypatch.setattr("treadle.distributed.debug._level", None)  # that of the variable
    found = faulty_ranks.run(Fault("shape", 1, 4), 2, 60.0)
    assert [outcome.error for outcome in found] == ["DistBackendError"] * 2
    for outcome in found:
        assert outcome.text.splitlines() == [
            "all_reduce: expected the same call of all ranks, got",
            "call 4 of group 0 differs between the ranks:",
            "rank 0 called all_reduce(float32 [3]), which waits for the others",
            "rank 1 called all_reduce(float32 [4]), which waits for the others",
        ]


# ---- Strangers ----


def _listening(pid: int) -> Iterator[Tuple[str, int]]:
    """Where a process listens."""
    links = []
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            links.append(os.readlink(f"/proc/{pid}/fd/{number}"))
        except OSError:
            pass
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in links:
            host, port = fields[1].split(":")
            yield socket.inet_ntoa(bytes.fromhex(host)[::-1]), int(port, 16)


def _trains(rank: int, world: int) -> int:
    child_processes.say("begun")
    steps, goes_on = 0, treadle.ones(1)
    while goes_on.item():
        gradient = treadle.full((100,), float(rank))
        dist.all_reduce(gradient)
        assert gradient.tolist() == [1.0] * 100
        steps += 1
        goes_on = treadle.tensor([0.0 if child_processes.has_heard() else 1.0])
        dist.broadcast(goes_on, 0)
    return steps


def test_training_while_strangers_come() -> None:
    """A million random bytes and 10,000 connections to all ports of the ranks."""
    with reserved_port() as port:
        url = f"tcp://127.0.0.1:{port}"
        ranks = [Child(joined, rank, 2, url, _trains) for rank in range(2)]
        assert [rank.hear() for rank in ranks] == ["begun"] * 2
        places = [place for rank in ranks for place in _listening(rank.pid)]
        assert ("127.0.0.1", port) in places
        for place in places:
            for size in [500_000, *[5_000] * 100]:
                with socket.create_connection(place) as stranger:
                    try:
                        stranger.sendall(os.urandom(size))
                    except ConnectionError:
                        pass  # closed, as it should
            for _ in range(50):
                strangers = [socket.create_connection(place) for _ in range(200)]
                strangers[0].sendall(protocol.frame(b"half")[:6])
                for stranger in strangers:
                    stranger.close()
        for rank in ranks:
            rank.say("stop")
        steps = results(ranks)
        assert steps[0] == steps[1] > 0


# ---- The parts ----


def call(number: int, name: str = "all_reduce", state: str = "started", **more: Any) -> dict:
    made = dict(number=number, is_message=False, name=name, dtype=11, shape=[3], root=0)
    return {**made, "state": state, "queued": 90.0, "started": 91.0, "ended": 95.0, **more}


def test_verdicts() -> None:
    waits, done = Said("", [call(7)]), Said("", [call(6, state="completed")])
    assert verdict({0: waits, 1: waits}, "0", 7, 100.0) == ""
    assert verdict({0: waits, 1: done, 2: Said("", [], True)}, "g", 7, 100.0).splitlines() == [
        "call 7 of group g:",
        "rank 1 has not called it: its last call is 6, all_reduce(float32 [3]), ended 5 s ago",
        "rank 2 has not called it: it has left the group; it has made no call",
        f"rank 0 {WAITS}",
    ]
    # The root of a broadcast ends it alone, and fails in the next call.
    root = Said("", [call(6, "broadcast", "completed", root=1), call(7)])
    others = Said("", [call(6)])
    assert verdict({0: others, 1: root, 2: others}, "0", 7, 100.0).splitlines() == [
        "call 6 of group 0 differs between the ranks:",
        "rank 1 called broadcast(float32 [3], root 1), ended 5 s ago",
        f"rank 0, 2 {WAITS}",
    ]
    # Names, dtypes, shapes where all ranks have one, roots.
    for other, differs in (
        (call(7, dtype=12), True),
        (call(7, shape=[4]), True),
        (call(7, root=1), False),
        (call(7, "barrier"), True),
    ):
        text = verdict({0: waits, 1: Said("", [other])}, "0", 7, 100.0)
        assert text.startswith("call 7 of group 0 differs") == differs
    gathers = [Said("", [call(7, "all_to_all", shape=[n])]) for n in range(2)]
    assert verdict(dict(enumerate(gathers)), "0", 7, 100.0) == ""
    # Large groups: at most five lines.
    many = {rank: Said(SILENT if rank % 2 else "", [call(7)]) for rank in range(100)}
    lines = verdict(many, "0", 7, 100.0).splitlines()
    assert lines[1] == f"rank 1, 3, 5, 7, 9, 11, 13, 15 and 42 others: {SILENT}"
    late = {rank: waits if rank == 0 else done for rank in range(100)}
    assert len(verdict(late, "0", 7, 100.0).splitlines()) == 5


def test_the_flight_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert flight_record.record() == {"version": 1, "rank": -1, "groups": []}
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    try:
        dist.all_reduce(treadle.ones(2, 3))
        said = json.loads(flight_record.dump(str(tmp_path / "record")))
        assert json.loads((tmp_path / "record").read_text()) == said
        (group,) = said["groups"]
        assert said["rank"] == 0 and group["ranks"] == [0] and group["name"] == "0"
        last = group["calls"][-1]
        assert (last["name"], last["dtype"], last["shape"]) == ("all_reduce", "float32", [2, 3])
        assert last["state"] == "completed" and last["queued"] <= last["started"] <= last["ended"]
        monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "1")
        assert len(flight_record.record()["groups"][0]["calls"]) == 1
        monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "x")
        with pytest.raises(ValueError, match="TORCH_FR_BUFFER_SIZE: expected a number, got 'x'"):
            flight_record.record()
    finally:
        dist.destroy_process_group()


def test_a_will() -> None:
    """What a connection leaves is set when it ends, whoever waits for it."""
    from treadle.distributed._stores.table import Request

    master = dist.TCPStore("127.0.0.1", 0, None, True)
    other = master.clone()
    other._ask(Request("will", ("gone",), (b"1",)), 0.0)
    waits = threading.Thread(target=lambda: master.get("gone"))
    waits.start()
    time.sleep(0.01)
    assert not master.check(["gone"])
    other.close()
    waits.join()
    assert master.get("gone") == b"1"
    master.close()


@pytest.mark.slow
def test_random_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """TREADLE_FAULT_RUNS runs with a fault of a random rank at a random call."""
    monkeypatch.undo()  # answers take as long as they do for programs
    wrong: List[str] = []
    for seed in range(int(os.environ.get("TREADLE_FAULT_RUNS", "6"))):
        world = 2 + seed % 3
        fault = faulty_ranks.random_fault(seed, world)
        found = faulty_ranks.run(fault, world, 1.5)
        wrong += faulty_ranks.complaints(fault, found, 1.5)
        assert not processes.children()
    assert wrong == []

"""Starting workers: from the command line and from programs, on one machine and on several, where
workers fail, and where the agent is asked to end."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

import treadle.distributed as dist
from process_groups import reserved_port
from treadle.distributed import launch, run
from treadle.distributed.elastic import events, metrics, timer
from treadle.distributed.elastic.multiprocessing import (
    SignalException,
    Std,
    start_processes,
    to_map,
)
from treadle.distributed.elastic.multiprocessing.errors import (
    ChildFailedError,
    ProcessFailure,
    record,
)
from treadle.distributed.elastic.multiprocessing.logs import DefaultLogsSpecs
from treadle.distributed.elastic.utils import data
from treadle.distributed.elastic.utils.store import synchronize
from treadle.distributed.launcher.api import LaunchConfig, elastic_launch

RUN = [sys.executable, "-m", "treadle.distributed.run"]


def _children(pid: int) -> List[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = _children(os.getpid())
    yield
    assert _children(os.getpid()) == before


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def config(**more: Any) -> LaunchConfig:
    given: Dict[str, Any] = {"max_restarts": 0, "start_method": "fork", "monitor_interval": 0.02}
    return LaunchConfig(1, 1, 2, rdzv_endpoint="localhost:0", **{**given, **more})


# ---- Functions ----


def _numbers(*args: Any) -> tuple:
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_NAME", "GROUP_RANK")
    store, rank, world_size = next(dist.rendezvous("env://"))
    store.barrier("all", world_size)
    return rank, [os.environ[name] for name in names], args, os.environ["TORCHELASTIC_RUN_ID"]


def test_functions_return_values() -> None:
    found = elastic_launch(config(run_id="seven", role="own"), _numbers)("a", 1)
    for rank in range(2):
        numbers = [str(rank), str(rank), "2", "2", "own", "0"]
        assert found[rank] == (rank, numbers, ("a", 1), "seven")
    assert "TREADLE_STORE_SECRET" not in os.environ


def _fails(folder: str) -> str:
    rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    with open(f"{folder}/{rank}", "a") as file:
        file.write(f"{attempt} {os.environ['TORCHELASTIC_MAX_RESTARTS']}\n")
    if rank == 1 and attempt < 2:
        raise KeyError("boom")
    if attempt < 2:
        time.sleep(30)
    return "well"


def test_restarts_and_the_failure(tmp_path: Path) -> None:
    """Two failures: with two restarts the run succeeds, with one it fails."""
    assert elastic_launch(config(max_restarts=2), _fails)(str(tmp_path)) == {0: "well", 1: "well"}
    assert (tmp_path / "1").read_text().split("\n")[:3] == ["0 2", "1 2", "2 2"]
    own = tmp_path / "error.json"
    os.environ["TORCHELASTIC_ERROR_FILE"] = str(own)
    try:
        with pytest.raises(ChildFailedError) as raised:
            launched = elastic_launch(config(max_restarts=1), _fails)
            record(lambda: launched(str(tmp_path)))()
    finally:
        del os.environ["TORCHELASTIC_ERROR_FILE"]
    rank, failure = raised.value.get_first_failure()
    assert (rank, failure.local_rank, failure.exitcode) == (1, 1, 1)
    text = str(raised.value)
    assert re.match(
        r"_fails failed. The first failure:\n  rank 1 \(local rank 1, pid \d+\) on .*, "
        r"\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d: ended with exit code 1\n    error file: /.*error.json\n"
        r"    Traceback",
        text,
    )
    assert text.endswith("KeyError: 'boom'")
    # The error file of the cause is that of the agent as well.
    assert json.loads(own.read_text())["message"]["message"] == "KeyError: 'boom'"


# ---- Programs ----

TRAINING = """
import os, signal, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
start = int(open(sys.argv[1]).read()) if os.path.exists(sys.argv[1]) else 0
for step in range(start, 6):
    x = torch.full((2,), float(rank + step))
    dist.all_reduce(x)
    assert x[0].item() == world * step + world * (world - 1) / 2
    if rank == 0:
        with open(sys.argv[1] + "~", "w") as file:
            file.write(str(step + 1))
        os.replace(sys.argv[1] + "~", sys.argv[1])
    dist.barrier()
    if step == 3 and rank == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        os.kill(os.getpid(), signal.SIGKILL)
dist.destroy_process_group()
print("trained", rank, "from", start, "by", sys.argv[2], flush=True)
"""


def test_training_that_loses_a_worker_ends_well(tmp_path: Path) -> None:
    """A program that imports torch, started as by torchrun; one worker is killed, all go on from
    the checkpoint."""
    (tmp_path / "train.py").write_text(TRAINING)
    options = ["--standalone", "--nproc_per_node=2", "--max-restarts=1", "-t", "3", "--role=own"]
    options += ["--log-dir", str(tmp_path / "logs")]
    program = [str(tmp_path / "train.py"), str(tmp_path / "step"), "rank${local_rank}"]
    launcher = [sys.executable, "-m", "treadle.run", "-m", "torch.distributed.run"]
    done = subprocess.run(
        [*launcher, *options, *program], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "starting the workers anew, 1 of 1 times" in done.stderr
    lines = [f"[own{rank}]:trained {rank} from 4 by rank{rank}" for rank in range(2)]
    assert sorted(done.stdout.splitlines()) == lines
    (folder,) = (tmp_path / "logs").iterdir()
    written = [(folder / "attempt_1" / str(r) / "stdout.log").read_text() for r in range(2)]
    assert written == [f"trained {r} from 4 by rank{r}\n" for r in range(2)]


WAITING = """
import os, signal, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
if os.environ["LOCAL_RANK"] == "1":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(f"{sys.argv[1]}/{os.environ['RANK']}~", "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
os.replace(file.name, file.name[:-1])
time.sleep(100)
"""


def _is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left_over(end: signal.Signals, tmp_path: Path) -> None:
    """The agent is asked to end, or killed: workers that ignore SIGTERM end too, and, where the
    agent could see to that, what they started."""
    (tmp_path / "wait.py").write_text(WAITING)
    command = [*RUN, "--standalone", "--nproc-per-node=2", "--shutdown-timeout=1", "--no-python"]
    command += [sys.executable, str(tmp_path / "wait.py"), str(tmp_path)]
    agent = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    pids: List[int] = []
    try:
        files = [tmp_path / str(rank) for rank in range(2)]
        while not all(file.exists() for file in files):
            assert agent.poll() is None
            time.sleep(0.02)
        pairs = [list(map(int, file.read_text().split())) for file in files]
        pids = [pid for pair in pairs for pid in pair]
        agent.send_signal(end)
        if end == signal.SIGTERM:
            _, text = agent.communicate(timeout=60)
            assert agent.returncode == 128 + end and text == f"process {agent.pid} got SIGTERM\n"
            assert not any(map(_is_there, pids))
        else:
            while any(_is_there(worker) for worker, _ in pairs):
                time.sleep(0.02)
    finally:
        agent.kill()
        agent.wait()
        for pid in pids:
            if _is_there(pid):
                os.kill(pid, signal.SIGKILL)


JOINING = """
import os, sys, time, treadle, treadle.distributed as dist
dist.init_process_group("gloo")
print("start", dist.get_rank(), "of", dist.get_world_size(), flush=True)
while not os.path.exists(sys.argv[1]):
    dist.all_reduce(treadle.ones(2))
    time.sleep(0.05)
    dist.barrier()
os._exit(0)
"""


@pytest.mark.slow
def test_machines_come_and_go(tmp_path: Path) -> None:
    """One agent starts alone, a second one joins, is killed with its workers, a third one joins."""
    with reserved_port() as port:
        _come_and_go(tmp_path, f"localhost:{port}")


def _come_and_go(tmp_path: Path, endpoint: str) -> None:
    (tmp_path / "join.py").write_text(JOINING)
    command = [*RUN, "--nnodes=1:2", "--nproc-per-node=1", "--max-restarts=9", "--rdzv-id=r"]
    command += ["--rdzv-backend=c10d", f"--rdzv-endpoint={endpoint}", "-t", "1"]
    command += ["--rdzv-conf=last_call_timeout=1,keep_alive_interval=0.2"]
    command += [str(tmp_path / "join.py"), str(tmp_path / "stop")]
    agents = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True)]

    def next_line(agent: Any) -> str:
        while True:
            line = agent.stdout.readline()
            if "start" in line or not line:
                return line.strip()

    try:
        assert next_line(agents[0]) == "[default0]:start 0 of 1"
        for _ in range(2):
            agents.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            assert next_line(agents[-1]) == "[default0]:start 1 of 2"
            assert next_line(agents[0]) == "[default0]:start 0 of 2"
            if len(agents) == 2:
                agents[-1].kill()
                while (line := next_line(agents[0])) != "[default0]:start 0 of 1":
                    assert line == "[default0]:start 0 of 2"
        (tmp_path / "stop").touch()
        assert agents[0].wait(60) == 0 and agents[2].wait(60) == 0
    finally:
        for agent in agents:
            agent.kill()
            agent.communicate()


# ---- The parts ----


def test_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PET_NNODES", "2:3")
    monkeypatch.setenv("PET_STANDALONE", "1")
    args = run.parse_args(["--nproc_per_node", "3", "-m", "pkg.mod", "--lr", "1"])
    assert args.standalone and args.module and args.nnodes == "2:3"
    assert run.parse_min_max_nnodes(args.nnodes) == (2, 3) and args.training_script == "pkg.mod"
    made, program, arguments = run.config_from_args(args)
    assert (made.min_nodes, made.max_nodes, made.nproc_per_node) == (2, 3, 3)
    assert program == sys.executable and arguments[-4:] == ["-m", "pkg.mod", "--lr", "1"]
    args = run.parse_args(["--as-torch", "x.py"])
    args.standalone = False
    assert run.config_from_args(args)[2] == ["-u", "-m", "treadle.run", "x.py"]
    args = launch.parse_args(["--node-rank=1", "--nnodes=2", "--master-port=7", "x.py"])
    args.standalone = False
    made, _, arguments = run.config_from_args(args)
    assert (made.rdzv_endpoint, made.rdzv_configs["rank"]) == ("127.0.0.1:7", 1)
    assert arguments[-2:] == ["x.py", "--local-rank=${local_rank}"]
    assert run.determine_local_world_size("cpu") == len(os.sched_getaffinity(0))
    assert run.determine_local_world_size("auto") >= 1
    base = ["--nnodes=1", "x.py"]
    for options, message in (
        (["--nproc-per-node=x"], "--nproc-per-node: expected a number, auto, cpu or gpu, got 'x'"),
        (["--nnodes=a"], "--nnodes: expected a number or <least>:<most>, got 'a'"),
        (["--nnodes=2:1"], "--nnodes: expected 0 < least <= most, got 2:1"),
        (["--max-restarts=-1"], "--max-restarts: expected a number >= 0, got -1"),
        (["--local-ranks-filter=x"], "--local-ranks-filter: expected numbers as in 0,2, got 'x'"),
        (
            ["-r", "4"],
            "expected streams as 0, 1, 2 or 3, or for local ranks as in 0:3,1:1, got '4'",
        ),
        (["--no-python", "-m"], "expected --no-python or --module, got both"),
    ):
        given = run.parse_args([base[0], *options, base[1]])
        with pytest.raises((ValueError, RuntimeError)) as raised:
            run.config_from_args(given)
        assert str(raised.value) == message


class _Everywhere(DefaultLogsSpecs):
    """A class of a package's own."""


def test_a_class_for_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    from treadle.distributed import run

    entry = EntryPoint("everywhere", f"{__name__}:_Everywhere", "torchrun.logs_specs")
    monkeypatch.setattr(run.metadata, "entry_points", lambda group: [entry])

    def config(name: str) -> Any:
        args = ["--logs-specs", name, "--tee", "3", "--local-ranks-filter", "0", "a.py"]
        return run.config_from_args(run.parse_args(args))[0]

    made = config("everywhere").logs_specs
    assert type(made) is _Everywhere and made._tee == 3 and made._local_ranks_filter == {0}
    with pytest.raises(ValueError) as raised:
        config("nowhere")
    assert str(raised.value) == (
        "--logs-specs: expected the name of an entry point of torchrun.logs_specs, got 'nowhere'"
    )


def test_streams_and_files(tmp_path: Path) -> None:
    assert Std.from_str("3") == Std.ALL and Std.from_str("0:1,1:2") == {0: Std.OUT, 1: Std.ERR}
    assert to_map({1: Std.OUT}, 2) == {0: Std.NONE, 1: Std.OUT}
    logs = DefaultLogsSpecs(str(tmp_path), {0: Std.OUT}, {1: Std.ERR}, local_ranks_filter={1})
    dest = logs.reify({rank: {"TORCHELASTIC_RUN_ID": "a/b"} for rank in range(3)})
    assert [os.path.basename(dest.stdouts[r]) for r in range(3)] == ["stdout.log", "", "null"]
    assert [os.path.basename(dest.stderrs[r]) for r in range(3)] == ["null", "stderr.log", "null"]
    assert list(dest.tee_stderrs) == [1] and not dest.tee_stdouts


def test_workers(tmp_path: Path) -> None:
    logs = DefaultLogsSpecs(str(tmp_path), redirects=Std.ALL)
    script = "import os, sys; print('out', sys.argv[1]); print('say apple', file=sys.stderr)"
    args = {rank: ("-c", script, f"a{rank}") for rank in range(2)}
    envs: dict = {0: {}, 1: {}}
    workers = start_processes(
        "w", sys.executable, args, envs, logs, duplicate_stderr_filters=["apple"]
    )
    result = workers.wait(period=0.02)
    assert result is not None and not result.is_failed()
    for rank in range(2):
        assert Path(result.stdouts[rank]).read_text() == f"out a{rank}\n"
        assert Path(result.stderrs[rank]).read_text() == "say apple\n"
    lines = sorted(Path(workers.dest.filtered_stderr).read_text().splitlines())
    assert lines == ["[w0]:say apple", "[w1]:say apple"]
    stopped = {0: ("-c", "import os; os.kill(os.getpid(), 19)")}
    workers = start_processes("w", sys.executable, stopped, {0: {}}, logs)
    assert workers.wait(timeout=0) is None
    workers.close(timeout=10)  # a process that is stopped ends too
    with pytest.raises(FileNotFoundError):
        start_processes("w", "/no/such/program", {0: ()}, {0: {}}, logs)
    with pytest.raises(ValueError, match="expected numa_options = None"):
        start_processes("w", "true", {0: ()}, {0: {}}, logs, numa_options=1)


def test_records_of_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "folder" / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(path))

    @record
    def leaves(code: int) -> int:
        if code:
            sys.exit(code)
        return 3

    assert leaves(0) == 3 and not path.exists()
    with pytest.raises(SystemExit):
        leaves(2)
    failure = ProcessFailure(0, 7, -9, str(path))
    assert failure.message["message"] == "SystemExit: 2" and failure.signal_name() == "SIGKILL"
    path.write_text("{")
    broken = ProcessFailure(0, 7, 1, str(path))
    assert broken.message.startswith("its error file cannot be read: ")
    killed = ProcessFailure(0, 7, -9, "")
    assert (killed.message, killed.error_file) == ("ended by SIGKILL", "<N/A>")
    assert "rank 3 (local rank 0, pid 7)" in str(ChildFailedError("x.py", {3: killed}))
    assert str(ChildFailedError("x.py", {})) == (
        "x.py: expected all workers to succeed, but those elsewhere failed"
    )
    event = events.Event("e", events.EventSource.WORKER, metadata={"step": 1})
    assert events.Event.deserialize(event.serialize()) == event
    assert issubclass(SignalException, Exception)
    assert synchronize(dist.HashStore(), b"a", 0, 1, "k") == [b"a"]


def _too_long(queue: Any) -> None:
    timer.configure(timer.LocalTimerClient(queue))
    with timer.expires(60):
        pass
    with timer.expires(0.05):
        time.sleep(60)


def test_time_limits() -> None:
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    server = timer.LocalTimerServer(queue)
    process = context.Process(target=_too_long, args=(queue,))
    process.start()
    server.start()
    process.join(40)
    server.stop()
    assert process.exitcode == -signal.SIGKILL
    with pytest.raises(RuntimeError) as raised, timer.expires(1):
        pass
    assert str(raised.value) == (
        "expires: expected a client, got none; call timer.configure() first"
    )


class _Kept(metrics.MetricHandler):
    def __init__(self) -> None:
        self.found: List[tuple] = []

    def emit(self, metric_data: metrics.MetricData) -> None:
        self.found.append(metric_data[1:3])


def test_metrics_and_data() -> None:
    kept = _Kept()
    metrics.configure(kept, "own")

    @metrics.prof(group="own")
    def halves(value: float) -> float:
        return 1 / value

    assert halves(2) == 0.5
    with pytest.raises(ZeroDivisionError):
        halves(0)
    metrics.put_metric("other", 1)
    name = "test_metrics_and_data.<locals>.halves"
    endings = ["success", "duration.ms", "failure", "duration.ms"]
    assert kept.found == [("own", f"{name}.{ending}") for ending in endings]
    shares = [list(data.ElasticDistributedSampler(range(10), 2, rank, 3)) for rank in range(2)]
    assert sorted(set(shares[0] + shares[1])) == list(range(3, 10))
    assert [len(share) for share in shares] == [4, 4]
    epochs = data.CyclingIterator(3, lambda epoch: iter([epoch] * epoch), start_epoch=0)
    assert list(epochs) == [1, 2, 2]
    with pytest.raises(ValueError) as raised:
        data.ElasticDistributedSampler(range(2), 1, 0, 2)
    assert str(raised.value) == ("ElasticDistributedSampler: expected start_index in [0, 2), got 2")

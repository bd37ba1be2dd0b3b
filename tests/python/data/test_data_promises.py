"""Promises of data loading: every sample once, in an order that follows from the seed; errors and
deaths of workers reported at once; no process left however the program ends."""

# SPDX-License-Identifier: Apache-2.0

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import treadle
from processes import children, is_running
from treadle.utils.data import DataLoader, Dataset

# Far less than the minute that a sample of Waiting takes, and more than a busy machine needs: what
# is tested is that somebody notices.
SOON = 30.0


# Processes that begin anew take their time.
CONTEXTS = ["fork", pytest.param("spawn", marks=pytest.mark.slow)]


# ---- every sample once -------------------------------------------------------------------------


class Numbers(Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        return index


def test_each_of_100_000_samples_once_in_an_order_of_the_seed():
    def order(seed):
        treadle.manual_seed(seed)
        loader = DataLoader(Numbers(), batch_size=250, shuffle=True, num_workers=4)
        return treadle.cat(list(loader))

    first = order(1)
    assert treadle.equal(first.sort().values, treadle.arange(100_000))
    assert treadle.equal(order(1), first)
    assert not treadle.equal(order(2), first)
    assert not children()


# ---- errors and deaths -------------------------------------------------------------------------


class Failing(Dataset):
    """Sample 40 notes the time and fails, as `how` says."""

    def __init__(self, how):
        self.how = how
        self.time = treadle.zeros(1, dtype=treadle.float64).share_memory_()

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        if index == 40:
            self.time[0] = time.monotonic()
            self.how()
        time.sleep(0.001)
        return index


def raise_error():
    raise LookupError("sample forty is not there")


def kill_self():
    os.kill(os.getpid(), signal.SIGKILL)


def leave():
    os._exit(3)


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize(
    "how, error, texts",
    [
        (raise_error, LookupError, ["sample forty is not there", "in raise_error", "__getitem__"]),
        (kill_self, RuntimeError, ["DataLoader worker (pid", "was killed by signal 9"]),
        (leave, RuntimeError, ["DataLoader worker (pid", "exited with code 3"]),
    ],
    ids=["error", "kill", "exit"],
)
def test_reported_soon(context, how, error, texts):
    dataset = Failing(how)
    loader = DataLoader(dataset, batch_size=4, num_workers=4, multiprocessing_context=context)
    with pytest.raises(error) as caught:
        list(loader)
    assert time.monotonic() - dataset.time.item() < SOON
    for text in texts:
        assert text in str(caught.value)
    assert type(caught.value) is error
    del loader, caught
    assert not children()


class Waiting(Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, index):
        time.sleep(60)


def test_a_worker_that_is_killed_while_it_works():
    loader = DataLoader(Waiting(), num_workers=4)
    killed = []

    def kill():
        while len(children()) < 4:
            time.sleep(0.01)
        time.sleep(0.1)
        killed.append(time.monotonic())
        os.kill(children()[2], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    with pytest.raises(RuntimeError, match="was killed by signal 9") as caught:
        next(iter(loader))
    assert time.monotonic() - killed[0] < SOON
    thread.join()
    del caught
    assert not children()


# ---- the end of the program --------------------------------------------------------------------

SCRIPT = """
import os, sys, time
import treadle
from treadle.utils.data import DataLoader, Dataset

def tell():
    os.write(1, f"pid {os.getpid()}\\n".encode())  # in one piece: several processes share the pipe

class Slow(Dataset):
    def __len__(self):
        return 1000
    def __getitem__(self, index):
        if index < 4:
            tell()
        time.sleep(0.2)
        return treadle.zeros(100_000)

if __name__ == "__main__":
    context, persistent = sys.argv[1:]
    loader = DataLoader(Slow(), num_workers=4, multiprocessing_context=context,
                        persistent_workers=persistent == "True")
    for batch in loader:
        tell()
"""


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize(
    "how, everyone",
    [
        (signal.SIGINT, True),  # as a terminal sends it
        (signal.SIGINT, False),
        (signal.SIGTERM, False),
        (signal.SIGKILL, False),
    ],
    ids=["ctrl-c", "int", "term", "kill"],
)
def test_no_process_is_left(how, everyone, context, tmp_path):
    script = tmp_path / "slow.py"
    script.write_text(SCRIPT)
    program = subprocess.Popen(
        [sys.executable, str(script), context, str(everyone)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Programs that are started in the background ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    pids = set()
    while len(pids) < 5:  # the program itself and its workers
        line = program.stdout.readline()
        assert line, program.stderr.read()
        pids.add(int(line.split()[1]))
    (os.killpg if everyone else os.kill)(program.pid, how)
    errors = program.communicate(timeout=60)[1]
    deadline = time.monotonic() + 10
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(is_running, pids))
    # One traceback at most: workers leave it to the program to speak.
    assert errors.count("Traceback") == (1 if how == signal.SIGINT else 0), errors


# ---- what travels, and how a worker ends ---------------------------------------------------------


class Marked(treadle.Tensor):
    """A tensor with an attribute."""


class Reduced(treadle.Tensor):
    """A tensor that says itself how it is pickled."""

    def __reduce_ex__(self, protocol):
        return _reduced, (self.tolist(), "by its own method")


def _reduced(values, label):
    made = treadle.tensor(values).as_subclass(Reduced)
    made.label = label
    return made


class Subclasses(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        marked = treadle.full((3, 2), float(index)).t().as_subclass(Marked)
        marked.format = "xyxy"
        return marked, treadle.ones(1).as_subclass(Reduced), treadle.empty(2, device="meta")


@pytest.mark.parametrize("count", [0, 1])
def test_subclasses_keep_what_they_carry(count):
    loader = DataLoader(Subclasses(), batch_size=None, num_workers=count)
    for index, (marked, reduced, meta) in enumerate(loader):
        assert type(marked) is Marked and marked.format == "xyxy"
        assert marked.tolist() == [[index] * 3] * 2 and marked.stride() == (1, 2)
        assert type(reduced) is Reduced and meta.is_meta
        assert count == 0 or reduced.label == "by its own method"


ENDINGS = """
import multiprocessing.util, os, pathlib, sys
from treadle.utils.data import DataLoader

def start(number):
    path = pathlib.Path(sys.argv[1]) / str(os.getpid())
    multiprocessing.util.Finalize(None, path.touch, exitpriority=1)

for _ in range(5):
    assert len(list(DataLoader(range(40), num_workers=4, worker_init_fn=start))) == 40
"""


def test_what_a_worker_registers_for_its_end_runs(tmp_path):
    subprocess.run([sys.executable, "-c", ENDINGS, tmp_path], check=True)
    assert len(list(tmp_path.iterdir())) == 20

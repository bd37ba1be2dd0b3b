"""Datasets, samplers, collation, and DataLoader with its worker processes."""

import collections
import gc
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import treadle
from treadle.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
    random_split,
)


class Numbers(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return index


class Stream(IterableDataset):
    """0 to count - 1, shared among the workers."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        return iter(range(first, self.count, step))


def flat(loader):
    return [number for batch in loader for number in batch.tolist()]


def children():
    """Processes that this one started and that still run."""
    gc.collect()  # what a traceback held
    path = f"/proc/{os.getpid()}/task/{os.getpid()}/children"
    return open(path).read().split() if os.path.exists(path) else []


# ---- datasets and samplers -----------------------------------------------------------------------


def test_tensor_dataset():
    x, y = treadle.arange(6).reshape((3, 2)), treadle.tensor([7, 8, 9])
    dataset = TensorDataset(x, y)
    assert len(dataset) == 3
    assert [part.tolist() for part in dataset[1]] == [[2, 3], 8]
    with pytest.raises(ValueError, match="one first size"):
        TensorDataset(x, treadle.zeros(4))


def test_concat_and_subset():
    both = Numbers(3) + Numbers(2)
    assert isinstance(both, ConcatDataset)
    assert [both[i] for i in range(5)] == [0, 1, 2, 0, 1] and both[-1] == 1
    with pytest.raises(IndexError):
        both[5]
    assert [Subset(Numbers(10), [9, 3])[i] for i in range(2)] == [9, 3]


def test_random_split():
    parts = random_split(Numbers(10), [7, 3], treadle.Generator().manual_seed(1))
    again = random_split(Numbers(10), [7, 3], treadle.Generator().manual_seed(1))
    assert [part.indices for part in parts] == [part.indices for part in again]
    assert sorted(parts[0].indices + parts[1].indices) == list(range(10))
    assert [len(part) for part in random_split(Numbers(10), [0.55, 0.45])] == [6, 4]
    with pytest.raises(ValueError, match="sum to 10"):
        random_split(Numbers(10), [5, 4])


def test_samplers():
    numbers = Numbers(10)
    assert list(SequentialSampler(numbers)) == list(range(10))
    seeded = RandomSampler(numbers, generator=treadle.Generator().manual_seed(3))
    first, second = list(seeded), list(seeded)
    assert sorted(first) == sorted(second) == list(range(10)) and first != second
    assert len(list(RandomSampler(numbers, num_samples=25))) == 25
    drawn = list(RandomSampler(numbers, replacement=True, num_samples=100))
    assert len(drawn) == 100 and set(drawn) <= set(range(10))
    assert sorted(SubsetRandomSampler([4, 6, 8])) == [4, 6, 8]
    assert list(BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="batch_size should be a positive integer"):
        BatchSampler(range(5), 0, False)


def test_weighted_sampler():
    treadle.manual_seed(0)
    counts = collections.Counter(WeightedRandomSampler([1.0, 0.0, 3.0], 4000))
    assert counts[1] == 0 and 0.2 < counts[0] / 4000 < 0.3
    without = list(WeightedRandomSampler([1.0, 0.0, 3.0], 2, replacement=False))
    assert sorted(without) == [0, 2]
    with pytest.raises(ValueError, match="1d sequence"):
        WeightedRandomSampler([[1.0]], 3)


# ---- collation -----------------------------------------------------------------------------------


def test_collate():
    Point = collections.namedtuple("Point", "x y")
    assert default_collate([1, 2]).dtype == treadle.int64
    assert default_collate([1.0, 2.0]).dtype == treadle.float64
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([treadle.zeros(2), treadle.ones(2)]).tolist() == [[0, 0], [1, 1]]
    assert default_collate([np.float32(1), np.float32(2)]).dtype == treadle.float32
    assert default_collate([np.zeros((2, 3)), np.ones((2, 3))]).shape == (2, 2, 3)
    batch = default_collate([{"a": 1, "b": (2, "x")}, {"a": 3, "b": (4, "y")}])
    assert batch["a"].tolist() == [1, 3]
    assert batch["b"][0].tolist() == [2, 4] and batch["b"][1] == ["x", "y"]
    point = default_collate([Point(1, 2), Point(3, 4)])
    assert isinstance(point, Point) and point.y.tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="equal size"):
        default_collate([[1, 2], [3]])
    with pytest.raises(TypeError, match="got object"):
        default_collate([object()])


def test_convert():
    converted = default_convert({"a": np.arange(2), "b": "text"})
    assert isinstance(converted["a"], treadle.Tensor) and converted["b"] == "text"


# ---- loading -------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_in_order(workers):
    loader = DataLoader(Numbers(11), batch_size=4, num_workers=workers)
    assert [batch.tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]
    assert len(loader) == 3
    dropped = DataLoader(Numbers(11), batch_size=4, drop_last=True, num_workers=workers)
    assert [len(batch) for batch in dropped] == [4, 4] and len(dropped) == 2


def test_order_follows_from_the_seed_alone():
    def order(workers):
        treadle.manual_seed(7)
        loader = DataLoader(Numbers(50), batch_size=8, shuffle=True, num_workers=workers)
        return flat(loader), flat(loader)

    in_place, with_workers = order(0), order(3)
    assert in_place == with_workers and in_place[0] != in_place[1]
    assert sorted(in_place[0]) == list(range(50))

    def seeded():
        generator = treadle.Generator().manual_seed(5)
        return flat(DataLoader(Numbers(50), batch_size=8, shuffle=True, generator=generator))

    assert seeded() == seeded()


def test_many_samples_each_once():
    loader = DataLoader(Numbers(100_000), batch_size=500, shuffle=True, num_workers=4)
    assert sorted(flat(loader)) == list(range(100_000))


def test_without_batches():
    loader = DataLoader(Numbers(3), batch_size=None)
    assert list(loader) == [0, 1, 2]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_iterable_dataset(workers):
    loader = DataLoader(Stream(20), batch_size=3, num_workers=workers)
    assert sorted(flat(loader)) == list(range(20))


def test_tensors_cross_in_shared_memory():
    x = treadle.arange(600_000).reshape((6, 100_000)).to(treadle.float32)
    loader = DataLoader(TensorDataset(x, treadle.arange(6)), batch_size=3, num_workers=1)
    batches = list(loader)
    assert treadle.equal(treadle.cat([images for images, _ in batches]), x)
    assert treadle.cat([labels for _, labels in batches]).tolist() == list(range(6))
    batches[0][0].mul_(0)  # what arrives belongs to whoever receives it
    assert batches[0][0].abs().max().item() == 0


class Structured(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return {
            "image": np.full((3,), index, dtype=np.float32),
            "name": f"n{index}",
            "empty": treadle.zeros(0),
        }


def test_structures_cross():
    (batch,) = DataLoader(Structured(), batch_size=4, num_workers=1)
    assert batch["image"][:, 0].tolist() == [0, 1, 2, 3]
    assert batch["name"] == ["n0", "n1", "n2", "n3"] and batch["empty"].shape == (4, 0)


class Seeds(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        info = get_worker_info()
        return [
            info.id,
            info.seed,
            int(treadle.randint(0, 10**9, (1,)).item()),
            random.randrange(10**9),
        ]


def test_workers_have_seeds_of_their_own():
    def seeds():
        treadle.manual_seed(11)
        return [batch for batch in DataLoader(Seeds(), batch_size=None, num_workers=2)]

    first, second = seeds(), seeds()
    assert first == second
    assert first[0][1] != first[1][1] and first[0][2] != first[1][2] and first[0][3] != first[1][3]


def test_worker_init_function():
    def init(worker):
        random.seed(1000 + worker)

    loader = DataLoader(Seeds(), batch_size=None, num_workers=2, worker_init_fn=init)
    numbers = [sample[3] for sample in loader]
    expected = [random.Random(1000 + worker) for worker in range(2)]
    assert numbers == [expected[i % 2].randrange(10**9) for i in range(4)]


def test_persistent_workers():
    class Pids(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return os.getpid()

    loader = DataLoader(Pids(), batch_size=1, num_workers=2, persistent_workers=True)
    first, second = set(flat(loader)), set(flat(loader))
    assert first == second and os.getpid() not in first
    partly = iter(loader)
    next(partly)
    assert set(flat(loader)) == first  # an epoch left early does not spoil the next
    del loader, partly
    assert not children()


# ---- when things go wrong ------------------------------------------------------------------------


class Failing(Dataset):
    def __init__(self, error):
        self.error = error

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 5:
            raise self.error
        return index


class OddError(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


@pytest.mark.parametrize(
    "error, raised",
    [
        (ValueError("no sample five"), ValueError),
        (KeyError("no sample five"), KeyError),
        (OddError("no sample", "five"), RuntimeError),
        (SystemExit("no sample five"), RuntimeError),
        (StopIteration("no sample five"), RuntimeError),
    ],
    ids=lambda value: type(value).__name__,
)
def test_worker_exception_is_raised_with_its_traceback(error, raised):
    loader = DataLoader(Failing(error), batch_size=2, num_workers=2)
    batches = []
    with pytest.raises(raised) as caught:
        for batch in loader:
            batches.append(batch.tolist())
    assert batches == [[0, 1], [2, 3]]
    text = str(caught.value)
    assert "in DataLoader worker process 0" in text
    assert "__getitem__" in text and "no sample" in text and "test_data.py" in text


def test_a_batch_that_cannot_be_pickled():
    loader = DataLoader(Numbers(4), num_workers=1, collate_fn=lambda batch: lambda: batch)
    with pytest.raises(Exception, match="in DataLoader worker process 0"):
        list(loader)


def test_init_function_that_fails():
    def init(worker):
        raise ValueError("not today")

    with pytest.raises(ValueError, match="not today"):
        list(DataLoader(Numbers(4), num_workers=1, worker_init_fn=init))


class Dying(Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, index):
        if index == 30:
            os.kill(os.getpid(), signal.SIGKILL)
        return index


def test_death_of_a_worker_is_reported_at_once():
    started = time.monotonic()
    with pytest.raises(RuntimeError, match=r"worker \(pid \d+\) was killed by signal 9"):
        list(DataLoader(Dying(), batch_size=10, num_workers=2))
    assert time.monotonic() - started < 5
    assert not children()


class Sleeping(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        time.sleep(60)


def test_timeout():
    started = time.monotonic()
    with pytest.raises(RuntimeError, match="timed out after 0.3 seconds"):
        list(DataLoader(Sleeping(), num_workers=1, timeout=0.3))
    assert time.monotonic() - started < 10


def test_leaving_early_leaves_no_process():
    next(iter(DataLoader(Numbers(1000), num_workers=2)))
    deadline = time.monotonic() + 5
    while children() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not children()


SCRIPT = """
import os, sys, time
import treadle
from treadle.utils.data import DataLoader, Dataset

def tell():
    os.write(1, f"pid {os.getpid()}\\n".encode())  # in one piece: three processes share the pipe

class Slow(Dataset):
    def __len__(self):
        return 1000
    def __getitem__(self, index):
        if index == 2:
            tell()
        time.sleep(0.2)
        return index

if __name__ == "__main__":
    for batch in DataLoader(Slow(), num_workers=2):
        tell()
"""


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left_when_the_program_ends(how, tmp_path):
    script = tmp_path / "slow.py"
    script.write_text(SCRIPT)
    program = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        # Programs that are started in the background ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    pids = set()
    while len(pids) < 2:
        line = program.stdout.readline()
        assert line, "the program ended before it was told to"
        pids.add(int(line.split()[1]))
    if how == signal.SIGINT:
        os.killpg(program.pid, how)  # as a terminal does
    else:
        os.kill(program.pid, how)
    program.wait(60)
    deadline = time.monotonic() + 60
    while not all(gone(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert all(gone(pid) for pid in pids)


@pytest.mark.parametrize(
    "settings, text",
    [
        ({"num_workers": -1}, "num_workers option should be non-negative"),
        ({"timeout": -1}, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, "num_workers > 0"),
        ({"persistent_workers": True}, "num_workers > 0"),
        ({"shuffle": True, "sampler": range(3)}, "mutually exclusive with shuffle"),
        ({"batch_sampler": [[0]], "batch_size": 2}, "mutually exclusive with batch_size"),
        ({"batch_size": None, "drop_last": True}, "disables auto-batching"),
        ({"batch_size": 0}, "batch_size should be a positive integer"),
    ],
)
def test_bad_arguments(settings, text):
    with pytest.raises(ValueError, match=text):
        DataLoader(Numbers(3), **settings)


def test_iterable_datasets_have_no_order():
    with pytest.raises(ValueError, match="expected unspecified shuffle option"):
        DataLoader(Stream(3), shuffle=True)

"""Datasets, samplers, collation, and DataLoader with its worker processes."""

# SPDX-License-Identifier: Apache-2.0

import collections
import os
import random
import time

import numpy as np
import pytest

import treadle
from processes import children
from treadle.utils import data
from treadle.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
    random_split,
)
from treadle.utils.data._utils.collate import collate, default_collate_fn_map


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


# ---- datasets and samplers -----------------------------------------------------------------------


def test_tensor_dataset():
    x, y = treadle.arange(6).reshape((3, 2)), treadle.tensor([7, 8, 9])
    dataset = TensorDataset(x, y)
    assert len(dataset) == 3
    assert [part.tolist() for part in dataset[1]] == [[2, 3], 8]
    with pytest.raises(AssertionError, match="one first size"):
        TensorDataset(x, treadle.zeros(4))
    with pytest.raises(AssertionError, match="at least one"):
        TensorDataset()


def test_concat_and_subset():
    both = Numbers(3) + Numbers(2)
    assert isinstance(both, ConcatDataset)
    assert [both[i] for i in range(5)] == [0, 1, 2, 0, 1] and both[-1] == 1
    with pytest.raises(IndexError):
        both[5]
    with pytest.raises(ValueError, match="index within 5 samples, got -6"):
        both[-6]
    with pytest.raises(AssertionError, match="at least one dataset"):
        ConcatDataset([])
    with pytest.raises(AssertionError, match="got an IterableDataset"):
        ConcatDataset([Stream(3)])
    assert [Subset(Numbers(10), [9, 3])[i] for i in range(2)] == [9, 3]


def test_chain_of_streams():
    chain = Stream(3) + ChainDataset([Stream(2), Stream(0)])
    assert list(chain) == [0, 1, 2, 0, 1]
    assert flat(DataLoader(chain, batch_size=2)) == [0, 1, 2, 0, 1]
    with pytest.raises(AssertionError, match="expected an IterableDataset, got Numbers"):
        list(ChainDataset([Stream(1), Numbers(3)]))

    class Counted(Stream):
        def __len__(self):
            return self.count

    assert len(Counted(3) + Counted(4)) == 7


def test_datasets_side_by_side():
    tuples = StackDataset(Numbers(4), TensorDataset(treadle.arange(4) * 2))
    assert len(tuples) == 4 and tuples[3][0] == 3 and tuples[3][1][0].item() == 6
    dicts = StackDataset(a=Numbers(4), b=Subset(Numbers(9), [8, 7, 6, 5]))
    assert dicts[1] == {"a": 1, "b": 7}
    assert dicts.__getitems__([0, 2]) == [{"a": 0, "b": 8}, {"a": 2, "b": 6}]
    (batch,) = DataLoader(dicts, batch_size=4)
    assert batch["a"].tolist() == [0, 1, 2, 3] and batch["b"].tolist() == [8, 7, 6, 5]
    for wrong in (lambda: StackDataset(), lambda: StackDataset(Numbers(1), a=Numbers(1))):
        with pytest.raises(ValueError, match="by position or all by name"):
            wrong()
    with pytest.raises(ValueError, match="Size mismatch between datasets"):
        StackDataset(Numbers(2), Numbers(3))

    class Short(Numbers):
        def __getitems__(self, indices):
            return indices[1:]

    with pytest.raises(ValueError, match="Expected 2, got 1"):
        StackDataset(Short(3)).__getitems__([0, 1])


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


class Celsius:
    def __init__(self, degrees):
        self.degrees = degrees


def test_collate_types_of_ones_own():
    def mean(batch, *, collate_fn_map=None):
        return Celsius(collate([item.degrees for item in batch], collate_fn_map=collate_fn_map))

    table = {Celsius: mean, **default_collate_fn_map}
    batch = collate([(Celsius(1.0), 2), (Celsius(3.0), 4)], collate_fn_map=table)
    assert batch[0].degrees.tolist() == [1, 3] and batch[1].tolist() == [2, 4]
    # The type itself comes before a base of it, which comes before containers.
    table = {list: lambda batch, *, collate_fn_map=None: "lists", **table}
    assert collate([[1], [2, 3]], collate_fn_map=table) == "lists"
    default_collate_fn_map[Celsius] = mean
    try:
        loader = DataLoader([Celsius(5.0), Celsius(6.0)], batch_size=2)
        assert next(iter(loader)).degrees.tolist() == [5, 6]
    finally:
        del default_collate_fn_map[Celsius]
    with pytest.raises(TypeError, match="got Celsius"):
        default_collate([Celsius(1.0)])


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


def test_without_batches():
    loader = DataLoader(Numbers(3), batch_size=None)
    assert list(loader) == [0, 1, 2]


class Uneven(Dataset):
    """The first sample takes longest."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        time.sleep(0.5 if index == 0 else 0)
        return index


def test_batches_as_they_come():
    loader = DataLoader(Uneven(), num_workers=2, in_order=False, prefetch_factor=1)
    numbers = flat(loader)
    assert numbers[-1] == 0 and sorted(numbers) == list(range(12))
    assert flat(DataLoader(Uneven(), num_workers=2)) == list(range(12))
    loader = DataLoader(Stream(20), batch_size=3, num_workers=3, in_order=False)
    assert sorted(flat(loader)) == list(range(20))


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_workers_of_every_start_method(context):
    loader = DataLoader(Numbers(6), batch_size=3, num_workers=1, multiprocessing_context=context)
    assert loader.multiprocessing_context.get_start_method() == context
    assert flat(loader) == list(range(6))


def test_contexts_that_are_none():
    with pytest.raises(ValueError, match="num_workers > 0"):
        DataLoader(Numbers(3), multiprocessing_context="fork")
    with pytest.raises(ValueError, match="valid start method in .*'teleport'"):
        DataLoader(Numbers(3), num_workers=1, multiprocessing_context="teleport")
    with pytest.raises(TypeError, match="valid context object"):
        DataLoader(Numbers(3), num_workers=1, multiprocessing_context=3)
    context = treadle.multiprocessing.get_context("spawn")
    loader = DataLoader(Numbers(3), num_workers=1, multiprocessing_context=context)
    assert loader.multiprocessing_context is context


def test_what_samplers_are_made_from_stays():
    loader = DataLoader(Numbers(3))
    for name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set after"):
            setattr(loader, name, None)
    loader.collate_fn = tuple
    assert list(loader) == [(0,), (1,), (2,)]


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


# ---- numbers that only describe the work ---------------------------------------------------------


class Endless(Dataset):
    def __len__(self):
        return 10**12

    def __getitem__(self, index):
        return index


def _first(values):
    return next(iter(values))


@pytest.mark.parametrize(
    "make",
    [
        lambda: _first(RandomSampler(Endless(), replacement=True, num_samples=10**11)),
        lambda: _first(RandomSampler(range(10), num_samples=10**11)),
        lambda: _first(WeightedRandomSampler([1.0, 2.0], 10**11)),
        lambda: _first(SequentialSampler(Endless())),
        lambda: _first(BatchSampler(SequentialSampler(range(5)), 10**18, False)),
        lambda: _first(data.distributed.DistributedSampler(Endless(), 2, 1, shuffle=False)),
        lambda: _first(DataLoader(Endless(), batch_size=2)),
        lambda: _first(DataLoader(Endless(), num_workers=1, prefetch_factor=10**9)),
        lambda: Subset(Endless(), range(10**11))[5],
        lambda: ConcatDataset([Endless(), Endless()])[10**12 + 5],
    ],
)
def test_large_numbers_cost_nothing(make):
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    make()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes


def test_parts_of_a_draw():
    generator = treadle.Generator().manual_seed(4)
    drawn = list(RandomSampler(range(7), replacement=True, num_samples=100, generator=generator))
    generator.manual_seed(4)
    parts = [treadle.randint(0, 7, (n,), generator=generator).tolist() for n in (32, 32, 32, 4)]
    assert drawn == sum(parts, [])
    weighted = list(WeightedRandomSampler([0.0, 1.0, 3.0], 200_000, generator=generator))
    counts = [weighted.count(i) for i in range(3)]
    assert counts[0] == 0 and 2.9 < counts[2] / counts[1] < 3.1
    assert len(set(WeightedRandomSampler([1.0] * 9, 9, replacement=False))) == 9


def test_shares_of_unequal_parts_begin_again():
    for count, shares in ((5, 3), (2, 5), (6, 3), (0, 2)):
        samplers = [
            data.distributed.DistributedSampler(range(count), shares, rank, shuffle=False)
            for rank in range(shares)
        ]
        found = [list(sampler) for sampler in samplers]
        size = -(-count // shares)
        assert found == [[(r + i * shares) % count for i in range(size)] for r in range(shares)]

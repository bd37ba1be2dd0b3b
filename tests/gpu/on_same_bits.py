"""On a CUDA device: writes that meet at one place, sorting and scans give the CPU's results, and
the same bits each run, however many meet and however long a line is.

    pytest tests/gpu/on_same_bits.py       # ./dev gpu says how, on a machine with a GPU
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Callable

import pytest

import treadle
from treadle import Tensor

treadle.manual_seed(0)
ENTRIES, PLACES = 300_000, 7
INDEX = treadle.randint(0, PLACES, (ENTRIES,))
NUMBERS = treadle.randn(ENTRIES)
ROWS = treadle.randn(ENTRIES // 10, 5)
WITH_TIES = treadle.randint(-4, 4, (40, 5000)).to(treadle.float32)
WITH_TIES[3, 17] = WITH_TIES[3, 99] = float("nan")
# A byte other than 0 is true.
BYTES = treadle.tensor([0, 2, 128, 0, 1, 255], dtype=treadle.uint8).view(treadle.bool)


def table(index: Tensor, rows: Tensor) -> Tensor:
    weight = treadle.zeros(PLACES, 5, device=rows.device, requires_grad=True)
    treadle.nn.functional.embedding(index, weight).backward(rows)
    assert weight.grad is not None
    return weight.grad


Case = Callable[[Callable[[Tensor], Tensor]], Tensor | tuple[Tensor, ...]]
EXACT: dict[str, Case] = {
    "sort": lambda on: treadle.sort(on(WITH_TIES), stable=True),
    "sort of columns": lambda on: treadle.sort(on(WITH_TIES), dim=0, stable=True, descending=True),
    "argsort": lambda on: treadle.argsort(on(NUMBERS)),
    "topk": lambda on: treadle.topk(on(WITH_TIES), 20),
    "long topk": lambda on: treadle.topk(on(NUMBERS), 1000, largest=False),
    "kthvalue": lambda on: treadle.kthvalue(on(WITH_TIES), 1234),
    "median": lambda on: treadle.median(on(WITH_TIES), 1),
    "mode": lambda on: treadle.mode(on(INDEX.reshape(30, -1)), 1),
    "max": lambda on: treadle.max(on(WITH_TIES), 1),
    "argmin": lambda on: treadle.argmin(on(NUMBERS)),
    "unique": lambda on: treadle.unique(on(INDEX), return_inverse=True, return_counts=True),
    "unique rows": lambda on: treadle.unique(on(INDEX.reshape(-1, 3)), dim=0),
    "searchsorted": lambda on: treadle.searchsorted(on(treadle.sort(NUMBERS)[0]), on(ROWS)),
    "bincount": lambda on: treadle.bincount(on(INDEX)),
    "histc": lambda on: treadle.histc(on(NUMBERS), 50, -2, 2),
    "cummax": lambda on: treadle.cummax(on(WITH_TIES), 1),
    "integer cumsum": lambda on: treadle.cumsum(on(INDEX), 0),
    "nonzero": lambda on: treadle.nonzero(on(WITH_TIES)),
    "mask": lambda on: on(WITH_TIES)[on(WITH_TIES) > 1],
    "index": lambda on: on(WITH_TIES)[on(INDEX[:100]), :, None],
    "index_copy": lambda on: on(treadle.zeros(PLACES)).index_copy(0, on(INDEX), on(NUMBERS)),
    "scatter": lambda on: on(treadle.zeros(PLACES)).scatter(0, on(INDEX), on(NUMBERS)),
    "scatter_reduce": lambda on: on(treadle.zeros(PLACES)).scatter_reduce(
        0, on(INDEX), on(NUMBERS), "amax"
    ),
    "nonzero of bytes": lambda on: treadle.nonzero(on(BYTES)),
    "extremes of bytes": lambda on: treadle.cummax(on(BYTES.reshape(2, 3)), 1),
    "most of bytes": lambda on: treadle.max(on(BYTES.reshape(2, 3)), 1),
    "mode of bytes": lambda on: treadle.mode(on(BYTES), 0),
    "different bytes": lambda on: treadle.unique(on(BYTES), return_counts=True),
    "sum of bytes": lambda on: on(treadle.zeros(2, dtype=treadle.bool)).index_add(
        0, on(treadle.tensor([0, 1, 1, 0, 0, 0])), on(BYTES)
    ),
    "triu": lambda on: treadle.triu(on(WITH_TIES), 3),
    "flip": lambda on: treadle.flip(on(ROWS), (0, 1)),
    "repeat_interleave": lambda on: on(ROWS[:PLACES]).repeat_interleave(on(INDEX[:PLACES]), dim=0),
}
ROUNDED: dict[str, Case] = {
    "index_add": lambda on: on(treadle.zeros(PLACES)).index_add(0, on(INDEX), on(NUMBERS)),
    "index_put": lambda on: on(treadle.zeros(PLACES)).index_put(
        (on(INDEX),), on(NUMBERS), accumulate=True
    ),
    "scatter_add": lambda on: on(treadle.zeros(PLACES, 5)).scatter_add(
        0, on(INDEX[: len(ROWS) * 5].reshape(-1, 5)), on(ROWS)
    ),
    "scatter_reduce": lambda on: on(treadle.zeros(PLACES)).scatter_reduce(
        0, on(INDEX), on(NUMBERS), "mean"
    ),
    "embedding": lambda on: table(on(INDEX[: len(ROWS)]), on(ROWS)),
    "bincount": lambda on: treadle.bincount(on(INDEX), on(NUMBERS)),
    "cumsum": lambda on: treadle.cumsum(on(NUMBERS), 0),
    "cumsum of columns": lambda on: treadle.cumsum(on(ROWS), 0),
    "logcumsumexp": lambda on: treadle.logcumsumexp(on(NUMBERS), 0),
    "mask of bytes": lambda on: treadle.nn.functional.scaled_dot_product_attention(
        *(on(treadle.eye(2)[None]) for _ in "qkv"), attn_mask=on(BYTES[:4].reshape(1, 2, 2))
    ),
}


def on_cuda(t: Tensor) -> Tensor:
    return t.to("cuda")


def results(case: Case, on: Callable[[Tensor], Tensor]) -> list[Tensor]:
    got = case(on)
    return [t.cpu() for t in ((got,) if isinstance(got, Tensor) else got)]


def same(a: Tensor, b: Tensor) -> bool:
    return treadle.equal(treadle.nan_to_num(a), treadle.nan_to_num(b))


@pytest.mark.parametrize("name", EXACT)
def test_is_the_cpus(name: str) -> None:
    for here, there in zip(results(EXACT[name], lambda t: t), results(EXACT[name], on_cuda)):
        assert here.dtype == there.dtype and same(here, there)


@pytest.mark.parametrize("name", ROUNDED)
def test_is_the_cpus_and_the_same_each_run(name: str) -> None:
    first = results(ROUNDED[name], on_cuda)
    for here, there in zip(results(ROUNDED[name], lambda t: t), first):
        assert treadle.allclose(here, there, rtol=1e-4, atol=1e-2)
    for _ in range(5):
        assert all(map(treadle.equal, results(ROUNDED[name], on_cuda), first))


def test_a_random_order_has_every_number_once() -> None:
    order = treadle.randperm(100_003, device="cuda")
    assert treadle.equal(order.sort()[0].cpu(), treadle.arange(100_003))


def test_a_wrong_index_says_which_dimension() -> None:
    x = treadle.zeros(4, 5, device="cuda")
    with pytest.raises(
        IndexError,
        match=r"^index: expected index in \[-5, 5\) for dimension 1, got index = 5$",
    ):
        x[:, treadle.tensor([5], device="cuda")].cpu()
    assert x.sum().item() == 0

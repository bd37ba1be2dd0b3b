"""Results so large that they are written past the caches: the same bits as in parts that are
not."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable

import pytest

import treadle
from treadle import Tensor

ROWS, COLUMNS = 2051, 1027  # float32: 8.4 MB
OPERATORS: dict[str, Callable[..., Tensor]] = {
    "add": treadle.add,
    "sub": lambda a, b: treadle.sub(a, b, alpha=2),
    "mul": treadle.mul,
    "div": treadle.div,
    "neg": lambda a, b: -a,
    "rsub": lambda a, b: 3 - a,
    "gt": treadle.gt,
    "where": lambda a, b: treadle.where(a > b, a, b),
    "addcmul": lambda a, b: treadle.addcmul(a, a, b, value=0.5),
    "lerp": lambda a, b: treadle.lerp(a, b, 0.25),
    "exp": lambda a, b: treadle.exp(a),
}
REALS = [treadle.float32, treadle.float64]


def operands(dtype: Any) -> tuple[Tensor, Tensor]:
    """Two of them, the first of which does not begin where a line of the cache does."""
    treadle.manual_seed(0)
    whole = treadle.randn(ROWS * COLUMNS + 1).to(dtype)
    return whole[1:].view(ROWS, COLUMNS), treadle.randn(ROWS, COLUMNS).to(dtype)


def in_parts(f: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    rows = len(tensors[0])
    parts = [f(*(t[i : i + 100] for t in tensors)) for i in range(0, rows, 100)]
    out = treadle.empty(rows, *parts[0].shape[1:], dtype=parts[0].dtype)
    for i, part in enumerate(parts):
        out[i * 100 : i * 100 + 100] = part
    return out


@pytest.mark.parametrize("dtype", REALS, ids=str)
@pytest.mark.parametrize("name", OPERATORS)
def test_pointwise(name: str, dtype: Any) -> None:
    a, b = operands(dtype)
    wanted = in_parts(OPERATORS[name], a, b)
    assert treadle.equal(OPERATORS[name](a, b), wanted)


@pytest.mark.parametrize("dtype", [treadle.int64, treadle.int8, treadle.complex64], ids=str)
def test_other_dtypes(dtype: Any) -> None:
    a, b = (treadle.cat([t] * 4) if dtype == treadle.int8 else t for t in operands(dtype))
    assert treadle.equal(a + b, in_parts(treadle.add, a, b))


@pytest.mark.parametrize("first", [0, 1, 5])
def test_out_that_begins_anywhere(first: int) -> None:
    a, b = operands(treadle.float32)
    memory = treadle.full((ROWS * COLUMNS + 8,), 7.0)
    out = memory[first : first + ROWS * COLUMNS].view(ROWS, COLUMNS)
    treadle.add(a, b, out=out)
    assert treadle.equal(out, in_parts(treadle.add, a, b))
    beside = treadle.cat([memory[:first], memory[first + ROWS * COLUMNS :]])
    assert beside.tolist() == [7.0] * 8


def test_in_place() -> None:
    a, b = operands(treadle.float32)
    wanted = in_parts(treadle.mul, a, b)
    a.mul_(b)
    assert treadle.equal(a, wanted)


def test_copies() -> None:
    a, _ = operands(treadle.float32)
    wanted = a.tolist()
    assert a.clone().tolist() == wanted
    assert treadle.cat([a, a])[ROWS:].tolist() == wanted
    assert treadle.cat([a, a], 1)[:, COLUMNS:].tolist() == wanted
    assert a.T.contiguous().T.tolist() == wanted
    backwards = treadle.arange(ROWS - 1, -1, -1)
    assert a[backwards].flip(0).tolist() == wanted
    assert a[:, :-1].contiguous().tolist() == [row[:-1] for row in wanted]
    assert a.double().tolist() == wanted

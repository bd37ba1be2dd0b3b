"""Deterministic mode: new memory holds the same values each time."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Iterator

import pytest

import treadle


@pytest.fixture(autouse=True)
def deterministic() -> Iterator[None]:
    treadle.use_deterministic_algorithms(True)
    yield
    treadle.utils.deterministic.fill_uninitialized_memory = True
    treadle.use_deterministic_algorithms(False)


def made(dtype: treadle.dtype) -> list[treadle.Tensor]:
    like = treadle.ones(2, 3, dtype=dtype)
    return [
        treadle.empty(3, dtype=dtype),
        treadle.empty_like(like),
        treadle.empty_like(like.t()),
        treadle.empty_strided((2, 2), (3, 1), dtype=dtype),
        treadle.empty_permuted((2, 3), (1, 0), dtype=dtype),
        like.new_empty(4),
    ]


@pytest.mark.parametrize("name", ["float32", "bfloat16", "complex64", "float8_e5m2"])
def test_numbers_with_a_fraction_are_nan(name: str) -> None:
    for t in made(getattr(treadle, name)):
        assert t.isnan().all()


@pytest.mark.parametrize("name", ["uint8", "int16", "int64", "uint64"])
def test_integers_are_the_largest(name: str) -> None:
    dtype = getattr(treadle, name)
    for t in made(dtype):
        assert set(t.flatten().tolist()) == {treadle.iinfo(dtype).max}


def test_truth_values_are_true() -> None:
    assert all(t.all() for t in made(treadle.bool))


@pytest.mark.parametrize(
    "size, grown", [((10,), (20,)), ((2, 3), (4, 5)), ((0,), (3,)), ((8,), (4,))]
)
def test_memory_that_a_tensor_grows_by(size: tuple, grown: tuple) -> None:
    t = treadle.zeros(size)
    before = t.numel()
    t.resize_(grown)
    held = treadle.tensor(t.untyped_storage(), dtype=treadle.float32)
    assert held.numel() == max(before, t.numel())
    assert (held[:before] == 0).all() and held[before:].isnan().all()


def test_the_switch() -> None:
    assert treadle.utils.deterministic.fill_uninitialized_memory is True
    treadle.utils.deterministic.fill_uninitialized_memory = False
    assert treadle._C._math_switch("fills_new_memory") is False
    with pytest.raises(RuntimeError) as error:
        treadle.utils.deterministic.fill_uninitialized_memory = 1
    assert str(error.value) == "fill_uninitialized_memory: expected a bool, got int"
    treadle.utils.deterministic.fill_uninitialized_memory = True
    treadle.use_deterministic_algorithms(False)
    assert treadle._C._math_switch("fills_new_memory") is False

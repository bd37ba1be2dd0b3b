"""The writes of factories to `out=`, and what they take for data."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import array
from typing import Any, Callable

import numpy as np
import pytest

import treadle


@pytest.mark.parametrize(
    "factory",
    [
        lambda **s: treadle.eye(3, **s),
        lambda **s: treadle.full((2,), 1.5, **s),
        lambda **s: treadle.linspace(0, 9, 4, **s),
        lambda **s: treadle.range(0, 3, **s),
        lambda **s: treadle.range(0, 3, 2, **s),
    ],
)
@pytest.mark.parametrize("dtype", [treadle.int64, treadle.float64, treadle.complex64])
def test_a_factory_makes_the_dtype_of_out(factory: Callable, dtype: treadle.dtype) -> None:
    if dtype.is_complex and factory(dtype=treadle.float32).numel() in (2, 4):
        pytest.skip("ranges are real")
    out = treadle.empty(0, dtype=dtype)
    assert factory(out=out) is out
    assert treadle.equal(out, factory(dtype=dtype))


@pytest.mark.parametrize(
    "draw",
    [
        lambda **s: treadle.randperm(20, **s),
        lambda **s: treadle.randint(5, (20,), **s),
        lambda **s: treadle.randint(3, 5, (20,), **s),
        lambda **s: treadle.randint(3, 5, (20,), generator=treadle.Generator().manual_seed(1), **s),
    ],
)
def test_drawn_integers_are_written_to_out(draw: Callable) -> None:
    for dtype in (treadle.int64, treadle.float32):
        treadle.manual_seed(0)
        expected = draw()
        treadle.manual_seed(0)
        out = treadle.empty(0, dtype=dtype)
        assert draw(out=out) is out and out.dtype == dtype
        assert out.tolist() == expected.tolist()


def test_arrays_lend_their_memory() -> None:
    for code, dtype in (("f", treadle.float32), ("q", treadle.int64), ("B", treadle.uint8)):
        numbers = array.array(code, [1, 2, 3])
        for source in (numbers, memoryview(numbers)):
            lent = treadle.asarray(source)
            assert lent.dtype == dtype and lent.data_ptr() == numbers.buffer_info()[0]
            assert treadle.asarray(source, copy=False).data_ptr() == lent.data_ptr()
            copied = treadle.asarray(source, copy=True)
            assert copied.data_ptr() != lent.data_ptr() and copied.tolist() == [1, 2, 3]
    lent = treadle.asarray(numbers)
    lent[0] = 7
    assert numbers[0] == 7
    assert treadle.asarray(bytearray(8), dtype=treadle.float32).tolist() == [0.0, 0.0]
    assert treadle.asarray(memoryview(np.ones(2, np.complex64))).dtype == treadle.complex64


def test_capsules_lend_their_memory() -> None:
    x = treadle.arange(3)
    assert treadle.asarray(x.__dlpack__()).data_ptr() == x.data_ptr()
    assert treadle.asarray(x.__dlpack__(), copy=True).data_ptr() != x.data_ptr()
    with pytest.raises(ValueError) as error:
        treadle.asarray(x.__dlpack__(), dtype=treadle.float32, copy=False)
    assert str(error.value) == "asarray: expected data that needs no copy, as copy=False asks"


def test_tensors_of_one_element_are_numbers_within_lists() -> None:
    one: Any = treadle.ones(1)
    assert treadle.tensor([one, 2]).tolist() == [1.0, 2.0]
    assert treadle.tensor([[treadle.ones(1, 1), one[0]]]).tolist() == [[1.0, 1.0]]
    mixed = treadle.tensor([[7, np.array(5)], [np.array(9), 5.0]])
    assert mixed.dtype == treadle.float32 and mixed.tolist() == [[7.0, 5.0], [9.0, 5.0]]
    assert treadle.tensor([treadle.ones(2), [3, 4]]).tolist() == [[1.0, 1.0], [3.0, 4.0]]


def test_integers_beyond_64_bits_fit_floating_point_numbers() -> None:
    large = treadle.tensor([2**64, -(2**80)], dtype=treadle.float64)
    assert large.tolist() == [2.0**64, -(2.0**80)]
    assert treadle.tensor(2**64, dtype=treadle.bool).item() is True
    with pytest.raises(OverflowError):
        treadle.tensor(2**64)


def test_empty_tensors_join_along_any_dimension() -> None:
    nothing = treadle.empty(0, requires_grad=True)
    joined = treadle.cat([nothing, treadle.empty(0)], dim=1)
    assert tuple(joined.shape) == (0,)
    joined.sum().backward()
    assert tuple(nothing.grad.shape) == (0,)


def test_the_precision_of_a_complex_number_is_that_of_the_tensor() -> None:
    x, z = treadle.ones(2), treadle.tensor(1j, dtype=treadle.complex128)
    assert treadle.result_type(z, x) == treadle.complex64 == (z + x).dtype
    assert treadle.result_type(x.double(), z) == treadle.complex128
    assert treadle.result_type(x.long(), z) == treadle.complex128

"""NumPy's scalars as data, NumPy's functions of tensors, and numbers that a dtype cannot hold."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings

import numpy as np
import pytest

import treadle


@pytest.mark.parametrize("make", [treadle.tensor, treadle.as_tensor, treadle.asarray])
def test_a_float64_keeps_its_digits(make) -> None:  # type: ignore[no-untyped-def]
    number = np.float64(0.1)
    for data in (number, [number], [[1.0, number]], [number, 1]):
        t = make(data)
        assert t.dtype == treadle.float64
        assert 0.1 in t.flatten().tolist()
    assert make([np.float32(0.1)]).dtype == treadle.float32
    assert make([np.complex128(1j)]).dtype == treadle.complex128
    assert make(0.1).dtype == treadle.float32
    assert make(np.float64(0.1), dtype=treadle.float32).dtype == treadle.float32


def test_an_integer_beyond_int64_is_itself() -> None:
    t = treadle.tensor(2**63, dtype=treadle.uint64)
    assert int(t) == t.__index__() == t.item() == 2**63
    assert int(treadle.tensor(True)) == 1 and type(int(treadle.tensor(True))) is int


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "uint64"])
def test_nan_is_no_integer(dtype: str) -> None:
    for make in (
        lambda: treadle.tensor(float("nan"), dtype=getattr(treadle, dtype)),
        lambda: treadle.zeros(2, dtype=getattr(treadle, dtype)).fill_(float("nan")),
    ):
        with pytest.raises(RuntimeError, match=f"expected a value that fits {dtype}, got nan"):
            make()


def test_a_scalar_tensor_is_of_the_default_dtype() -> None:
    assert treadle.scalar_tensor(2).dtype == treadle.float32
    assert treadle.scalar_tensor(True).dtype == treadle.float32
    assert treadle.scalar_tensor(2, dtype=treadle.int64).dtype == treadle.int64


def test_the_class_keeps_a_tensor_as_it_is() -> None:
    t = treadle.arange(3)
    same = treadle.Tensor(t)
    assert same.dtype == treadle.int64 and same is not t
    same[0] = 7
    assert t.tolist() == [7, 1, 2]


def test_an_array_that_needs_a_copy_is_refused_without_one() -> None:
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        return  # asarray() has no argument `copy`
    t = treadle.ones(3)
    with pytest.raises(
        ValueError,
        match="__array__: expected dtype treadle.float32 with copy=False, as another needs a copy, "
        "got float64",
    ):
        np.asarray(t, dtype=np.float64, copy=False)
    shared = np.asarray(t, copy=False)
    shared[0] = 5
    assert t[0] == 5


def test_an_array_is_written_by_the_operators_in_place() -> None:
    a = np.ones(4)
    alias = a
    a += treadle.full((4,), 2.0)
    assert a is alias and a.tolist() == [3, 3, 3, 3]
    a *= treadle.arange(4)
    assert a is alias and a.tolist() == [0, 3, 6, 9]
    counts = np.ones(2, dtype=np.int64)
    with pytest.raises(TypeError):
        counts += treadle.full((2,), 0.5)
    assert counts.tolist() == [1, 1]


def test_an_operator_with_an_array_on_the_left_is_the_tensors() -> None:
    x = treadle.full((3,), 2.0, requires_grad=True)
    a = np.arange(3, dtype=np.float32)
    (a * x).sum().backward()
    assert x.grad.tolist() == [0, 1, 2]
    y = x.detach()
    assert (a - y).tolist() == [-2, -1, 0] and (y - a).tolist() == [2, 1, 0]
    assert (a < y).tolist() == [True, True, False] and (np.float64(3) / y).tolist() == [1.5] * 3
    assert type(a + y) is treadle.Tensor


def test_functions_of_numpy_give_tensors() -> None:
    x = treadle.tensor([0.0, 1.0, 4.0])
    for result in (np.sqrt(x), np.add(x, 1), np.maximum(np.ones(3), x), np.isnan(x)):
        assert type(result) is treadle.Tensor
    assert np.sqrt(x).tolist() == [0, 1, 2]
    whole, fraction = np.modf(x)
    assert type(whole) is treadle.Tensor and type(fraction) is treadle.Tensor
    out = np.zeros(3)
    assert np.add(x, x, out=out) is out and out.tolist() == [0, 2, 8]
    with pytest.raises(TypeError):
        np.add(x, x, out=x)


def test_an_index_does_not_ask_numpy_for_old_names() -> None:
    x = treadle.ones(4, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x[0, :].shape == (4,) and x[1:, ..., None].shape == (3, 4, 1)
        assert x[np.bool_(True), 0].shape == (1, 4)


def test_an_integer_has_no_negative_power() -> None:
    x = treadle.tensor([1, 2, 3])
    for name, exponent, call in (
        ("pow", -1, lambda: x**-1),
        ("pow", -2, lambda: treadle.pow(x, -2)),
        ("pow_", -1, lambda: x.pow_(-1)),
    ):
        with pytest.raises(RuntimeError) as info:
            call()
        assert str(info.value) == (
            f"{name}: expected an exponent >= 0 for integers, "
            f"got self.dtype() = treadle.int64, exponent = {exponent}"
        )
    assert x.tolist() == [1, 2, 3]
    assert (x**-1.0).tolist() == pytest.approx([1, 1 / 2, 1 / 3])
    assert (x.float() ** -1).tolist() == pytest.approx([1, 1 / 2, 1 / 3])
    assert (x**2).tolist() == [1, 4, 9] and (x**0).tolist() == [1, 1, 1]


def test_numpy_where_nothing_is_recorded() -> None:
    x = treadle.ones(2, requires_grad=True)
    with treadle.no_grad():
        x.numpy()[0] = 5
    assert x.tolist() == [5.0, 1.0]
    with pytest.raises(RuntimeError, match="got one that requires grad; use tensor.detach"):
        x.numpy()

"""Exchange with NumPy and by DLPack: no copy, lifetimes kept, writes seen on both sides, odd
layouts.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import gc
import sys
import time
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import treadle
from treadle_testing.sample import NUMPY_TYPES

DTYPES = [d for d in NUMPY_TYPES if d != "bfloat16"]
# DLPack as NumPy speaks it has these.
# NumPy gives bool away from 1.25 on.
OLD_NUMPY = np.lib.NumpyVersion(np.__version__) < "1.25.0"
DLPACK_DTYPES = [n for n in DTYPES if not (OLD_NUMPY and n == "bool")]


def _dtype(name: str) -> treadle.dtype:
    return getattr(treadle, name)


def _address(a: np.ndarray) -> int:
    return a.__array_interface__["data"][0]


# ---- From NumPy ----


@pytest.mark.parametrize("dtype", DTYPES)
def test_from_numpy_shares_memory(dtype: str) -> None:
    a = np.arange(6).reshape(2, 3).astype(NUMPY_TYPES[dtype])
    t = treadle.from_numpy(a)
    assert t.dtype == _dtype(dtype) and t.shape == (2, 3)
    assert t.data_ptr() == _address(a)
    a[0, 0] = 1
    assert t[0, 0].item() == 1
    t[1, 2] = 0
    assert a[1, 2] == 0


@pytest.mark.parametrize("kind", [np.longlong, np.ulonglong, np.intc, np.uintc])
def test_types_of_c_that_share_a_size(kind: type) -> None:
    a = np.arange(3).astype(kind)
    t = treadle.from_numpy(a)
    assert t.tolist() == [0, 1, 2] and t.data_ptr() == _address(a)
    assert t.element_size() == a.itemsize and t.dtype.is_signed == (a.dtype.kind == "i")


def test_array_is_let_go_with_the_last_tensor() -> None:
    a = np.zeros(3)
    before = sys.getrefcount(a)
    t = treadle.from_numpy(a)
    view = t[1:]
    assert sys.getrefcount(a) == before + 1
    del t
    assert sys.getrefcount(a) == before + 1
    del view
    assert sys.getrefcount(a) == before
    treadle.from_numpy(a[:0])
    with pytest.raises(ValueError):
        treadle.from_numpy(np.zeros(10, np.uint8)[1:9].view(np.float64))
    assert sys.getrefcount(a) == before


def test_warning_that_changes_the_array(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.zeros(4, np.float32)
    a.flags.writeable = False

    def change(*args: Any, **kwargs: Any) -> None:
        a.shape = (2, 2)

    monkeypatch.setattr(warnings, "showwarning", change)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", change)
        assert treadle.from_numpy(a).shape == (2, 2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_shares_memory(dtype: str) -> None:
    t = treadle.ones(2, 3, dtype=_dtype(dtype))
    a = t.numpy()
    assert a.dtype == NUMPY_TYPES[dtype] and a.shape == (2, 3)
    assert t.data_ptr() == _address(a)
    a[0, 1] = 0
    assert t[0, 1].item() == 0
    t.zero_()
    assert not a.any()


LAYOUTS = [
    lambda a: a,
    lambda a: a.T,
    lambda a: a[::2],
    lambda a: a[:, 1:3],
    lambda a: a[1],
    lambda a: a[1, 2],
    lambda a: a[:0],
    lambda a: a[:, None],
    lambda a: np.broadcast_to(a[0], (3, 4)).copy()[:, ::3],
    lambda a: a.reshape(2, 2, 3).transpose(2, 0, 1),
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_both_ways(layout: Any) -> None:
    a = np.asarray(layout(np.arange(12.0).reshape(3, 4)))
    t = treadle.from_numpy(a)
    np.testing.assert_array_equal(t.numpy(), a)
    if a.size:
        assert t.data_ptr() == _address(a)
    assert t.numpy().strides == a.strides or a.size <= 1
    d = np.from_dlpack(t)
    np.testing.assert_array_equal(d, a)


@pytest.mark.parametrize(
    "layout", [lambda a: a[::-1], lambda a: a[:, ::-2], lambda a: a[::-1, ::-1]]
)
def test_negative_strides(layout: Any) -> None:
    base = np.arange(12.0).reshape(3, 4)
    a = layout(base)
    t = treadle.from_numpy(a)
    np.testing.assert_array_equal(t.numpy(), a)
    np.testing.assert_array_equal((t + 1).numpy(), a + 1)
    t.mul_(2)
    np.testing.assert_array_equal(layout(base), a)
    np.testing.assert_array_equal(t.sum(0).numpy(), a.sum(0))


def test_the_array_may_go_first() -> None:
    a = np.arange(100_000.0)
    t = treadle.from_numpy(a[10:])
    del a
    gc.collect()
    np.empty(100_000).fill(-1)
    assert t[0].item() == 10 and t.sum().item() == sum(range(10, 100_000))


def test_the_tensor_may_go_first() -> None:
    t = treadle.arange(100_000)
    a = t[10:].numpy()
    del t
    gc.collect()
    treadle.full((100_000,), -1)
    assert a[0] == 10 and a.sum() == sum(range(10, 100_000))


class _Watched(np.ndarray):
    """An array that can be watched by a weak reference."""


def test_memory_goes_back_when_the_last_user_goes() -> None:
    a = np.arange(10.0).view(_Watched)
    alive = weakref.ref(a)
    t = treadle.from_numpy(a)
    view = t[2:]
    del a, t
    gc.collect()
    assert alive() is not None
    del view
    gc.collect()
    assert alive() is None


def test_exchange_takes_constant_time() -> None:
    def seconds(n: int) -> float:
        a, t = np.zeros(n, dtype=np.uint8), treadle.zeros(n, dtype=treadle.uint8)
        best = 1.0
        for _ in range(50):
            start = time.perf_counter()
            treadle.from_numpy(a), t.numpy(), treadle.from_dlpack(a), np.from_dlpack(t)
            best = min(best, time.perf_counter() - start)
        return best

    small, large = seconds(10), seconds(200_000_000)
    # Copying 200 MB takes tens of milliseconds.
    assert large < small + 5e-3


def test_read_only_arrays() -> None:
    a = np.arange(3.0)
    a.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable|read-only|writable"):
        t = treadle.from_numpy(a)
    np.testing.assert_array_equal(t.numpy(), a)
    # A copy is nobody else's.
    t = treadle.tensor(a)
    t[0] = 5
    assert a[0] == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.array(["a", "b"]),
        lambda: np.array([object()]),
        lambda: np.array([1], dtype="datetime64[s]"),
        lambda: np.zeros(2, dtype=[("x", "f4")]),
        lambda: np.array([1.0], dtype=np.longdouble),
    ],
)
def test_dtypes_that_do_not_exist_are_refused(make: Any) -> None:
    with pytest.raises(TypeError) as info:
        treadle.from_numpy(make())
    assert "from_numpy: expected" in str(info.value) and "got" in str(info.value)


def test_foreign_byte_order_is_refused_or_converted() -> None:
    a = np.arange(3, dtype=">i4")
    with pytest.raises((TypeError, ValueError)):
        treadle.from_numpy(a)
    assert treadle.tensor(a).tolist() == [0, 1, 2]


def test_strides_that_are_no_multiple_of_the_element_are_refused() -> None:
    a = np.zeros(3, dtype=[("x", "u1"), ("y", "f4")])["y"]
    with pytest.raises((ValueError, TypeError)):
        treadle.from_numpy(a)


def test_elements_of_other_sizes_that_would_not_be_aligned_are_refused() -> None:
    memory = bytearray(65)
    start = 1 - np.frombuffer(memory, np.uint8).__array_interface__["data"][0] % 8
    bytes_ = treadle.frombuffer(memory, dtype=treadle.uint8, offset=start % 8)
    text = (
        "expected memory in which elements of int32 are aligned, got memory of another library "
        "that begins 1 byte off; clone it first"
    )
    with pytest.raises(RuntimeError) as error:
        bytes_[:8].view(treadle.int32)
    assert str(error.value) == "view: " + text
    with pytest.raises(RuntimeError, match=text):
        treadle.empty(0, dtype=treadle.int32).set_(bytes_.untyped_storage(), 0, (2,))
    assert bytes_[:8].clone().view(treadle.int32).tolist() == [0, 0]
    assert bytes_[:8].view(treadle.int8).tolist() == [0] * 8


def test_elements_that_are_not_aligned_are_refused() -> None:
    """Kernels read whole elements, which at such an address is undefined."""
    memory = np.zeros(17, np.uint8)
    array = memory[1:].view(np.float32)
    assert not array.flags.aligned
    for make in (treadle.from_numpy, treadle.as_tensor, treadle.asarray, treadle.from_dlpack):
        with pytest.raises(ValueError, match="expected aligned elements; copy the (array|tensor)"):
            make(array)
    with pytest.raises(ValueError, match="expected an offset at which elements of 4 bytes are"):
        treadle.frombuffer(memory, dtype=treadle.float32, offset=1)
    assert treadle.tensor(array).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("value", [None, 1, "a", [1, 2], treadle.ones(2)])
def test_from_numpy_takes_arrays_only(value: Any) -> None:
    with pytest.raises(TypeError, match="from_numpy"):
        treadle.from_numpy(value)


def test_numpy_of_a_tensor_that_requires_grad_is_refused() -> None:
    x = treadle.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires.grad"):
        x.numpy()
    np.testing.assert_array_equal(x.detach().numpy(), [1, 1])


def test_numpy_of_a_meta_tensor_is_refused() -> None:
    with pytest.raises((TypeError, RuntimeError, NotImplementedError, ValueError)):
        treadle.ones(2, device="meta").numpy()


def test_bfloat16_has_no_numpy_type() -> None:
    with pytest.raises(TypeError, match="bfloat16"):
        treadle.ones(2, dtype=treadle.bfloat16).numpy()


def test_numpy_functions_take_tensors() -> None:
    x = treadle.tensor([1.0, 4.0])
    np.testing.assert_array_equal(np.asarray(x), [1, 4])
    np.testing.assert_array_equal(np.asarray(x, dtype=np.float64), [1, 4])
    np.testing.assert_array_equal(np.sqrt(x), [1, 2])
    assert np.asarray(x).__array_interface__["data"][0] == x.data_ptr()
    np.testing.assert_array_equal(np.array(x), [1, 4])
    assert _address(np.array(x)) != x.data_ptr()


def test_tensor_of_arrays_copies() -> None:
    a = np.arange(4.0)
    t = treadle.tensor(a)
    a[0] = 9
    assert t.tolist() == [0, 1, 2, 3] and t.dtype == treadle.float64
    assert treadle.as_tensor(a).data_ptr() == _address(a)


def test_arithmetic_between_tensors_and_arrays() -> None:
    x, a = treadle.tensor([1.0, 2.0]), np.array([3.0, 4.0], dtype=np.float32)
    np.testing.assert_array_equal(np.asarray(x + treadle.from_numpy(a)), [4, 6])
    assert (x * np.float32(2)).tolist() == [2, 4]
    assert (np.float32(2) * x).tolist() == [2, 4]
    assert (x + np.int64(1)).dtype == treadle.float32


# ---- DLPack ----


@pytest.mark.parametrize("dtype", DLPACK_DTYPES)
def test_dlpack_both_ways(dtype: str) -> None:
    t = treadle.ones(2, 3, dtype=_dtype(dtype))
    a = np.from_dlpack(t)
    assert a.dtype == NUMPY_TYPES[dtype] and _address(a) == t.data_ptr()
    source = np.ones((2, 3), dtype=NUMPY_TYPES[dtype])
    back = treadle.from_dlpack(source)
    assert back.dtype == _dtype(dtype) and back.data_ptr() == _address(source)
    source[0, 0] = 0
    assert back[0, 0].item() == 0
    back[1, 1] = 0
    assert source[1, 1] == 0


@pytest.mark.parametrize("dtype", list(NUMPY_TYPES))
def test_dlpack_between_tensors(dtype: str) -> None:
    t = treadle.ones(3, 4, dtype=_dtype(dtype))[:, 1::2]
    u = treadle.from_dlpack(t)
    assert (
        u.dtype == t.dtype
        and u.shape == t.shape
        and u.stride() == t.stride()
        and u.data_ptr() == t.data_ptr()
    )
    u.zero_()
    assert not t.any().item()


def test_dlpack_device() -> None:
    assert tuple(treadle.ones(2).__dlpack_device__()) == (1, 0)


def test_a_capsule_is_used_once() -> None:
    capsule = treadle.ones(3).__dlpack__()
    t = treadle.from_dlpack(capsule)
    with pytest.raises((RuntimeError, ValueError, TypeError)):
        treadle.from_dlpack(capsule)
    del capsule
    gc.collect()
    assert t.tolist() == [1, 1, 1]


def test_a_capsule_nobody_takes_frees_its_memory() -> None:
    a = np.arange(10.0).view(_Watched)
    alive = weakref.ref(a)
    capsule = treadle.from_numpy(a).__dlpack__()
    del a
    gc.collect()
    assert alive() is not None
    del capsule
    gc.collect()
    assert alive() is None


def test_dlpack_lifetimes() -> None:
    t = treadle.arange(1000)
    a = np.from_dlpack(t)
    del t
    gc.collect()
    assert a.sum() == 499_500
    b = np.arange(1000)
    u = treadle.from_dlpack(b)
    del b
    gc.collect()
    assert u.sum().item() == 499_500


def test_dlpack_of_a_tensor_that_requires_grad_is_refused() -> None:
    with pytest.raises((RuntimeError, BufferError)):
        treadle.ones(2, requires_grad=True).__dlpack__()


class _Liar:
    """Says it speaks DLPack and hands over something else."""

    def __init__(self, value: Any):
        self.value = value

    def __dlpack__(self, **_: Any) -> Any:
        if isinstance(self.value, Exception):
            raise self.value
        return self.value

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.mark.parametrize("value", [None, 1, "capsule", object(), ValueError("no")])
def test_wrong_producers_are_refused(value: Any) -> None:
    with pytest.raises((TypeError, RuntimeError, ValueError, AttributeError)):
        treadle.from_dlpack(_Liar(value))


@pytest.mark.parametrize("value", [None, 1, [1.0], "a", object()])
def test_from_dlpack_takes_producers_only(value: Any) -> None:
    with pytest.raises((TypeError, AttributeError)):
        treadle.from_dlpack(value)

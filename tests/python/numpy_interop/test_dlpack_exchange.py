"""DLPack 1.3: the table of C functions, versions and flags of capsules, and all dtypes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest

import treadle


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.PYFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [
    ("version", ctypes.c_uint32 * 2),
    ("context", ctypes.c_void_p),
    ("deleter", _Deleter),
    ("flags", ctypes.c_uint64),
    ("tensor", _DLTensor),
]
_SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
_ManagedOut = ctypes.POINTER(ctypes.POINTER(_Managed))


class _Api(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("previous", ctypes.c_void_p),
        (
            "allocate",
            ctypes.CFUNCTYPE(
                ctypes.c_int, ctypes.POINTER(_DLTensor), _ManagedOut, ctypes.c_void_p, _SetError
            ),
        ),
        ("from_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, _ManagedOut)),
        (
            "to_object",
            ctypes.PYFUNCTYPE(
                ctypes.c_int, ctypes.POINTER(_Managed), ctypes.POINTER(ctypes.py_object)
            ),
        ),
        (
            "borrow",
            ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_DLTensor)),
        ),
        (
            "current_stream",
            ctypes.PYFUNCTYPE(
                ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
            ),
        ),
    ]


def _pointer(capsule: object, name: bytes) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, name)


def _api() -> _Api:
    capsule = treadle.Tensor.__dlpack_c_exchange_api__
    return _Api.from_address(_pointer(capsule, b"dlpack_exchange_api"))


def _managed(capsule: object) -> _Managed:
    return _Managed.from_address(_pointer(capsule, b"dltensor_versioned"))


def test_the_table_says_its_version() -> None:
    api = _api()
    assert tuple(api.version) == (1, 3) and not api.previous

    class Mine(treadle.Tensor):
        pass

    assert Mine.__dlpack_c_exchange_api__ is treadle.Tensor.__dlpack_c_exchange_api__


def test_a_tensor_is_borrowed_without_a_reference() -> None:
    t = treadle.arange(12.0).reshape(3, 4)[:, 1::2]
    described = _DLTensor()
    assert _api().borrow(t, described) == 0
    assert described.data == t.data_ptr() and described.ndim == 2
    assert described.shape[:2] == [3, 2] and described.strides[:2] == [4, 2]
    assert (described.dtype.code, described.dtype.bits, described.dtype.lanes) == (2, 32, 1)
    assert (described.device.type, described.device.id) == (1, 0)
    empty = treadle.empty(0, 3)
    assert _api().borrow(empty, described) == 0 and described.data is None
    # A kernel is given parameters as well.
    assert _api().borrow(treadle.ones(2, requires_grad=True), described) == 0


def test_what_cannot_be_borrowed_is_an_exception() -> None:
    described = _DLTensor()
    for value, kind, message in (
        (3, TypeError, "__dlpack_c_exchange_api__: expected a Tensor, got int"),
        (
            treadle.empty(2, device="meta"),
            BufferError,
            "__dlpack__: expected a tensor on the cpu, got one on meta",
        ),
        (
            treadle.ones(2, dtype=treadle.complex64).conj(),
            RuntimeError,
            "__dlpack__: expected a tensor whose bytes are its values, got one whose is_conj() or "
            "is_neg() is True; use resolve_conj() or resolve_neg()",
        ),
    ):
        with pytest.raises(kind) as error:
            _api().borrow(value, described)
        assert str(error.value) == message


def test_tensors_go_to_others_and_come_back() -> None:
    api, t = _api(), treadle.arange(6).reshape(2, 3).t()
    managed = ctypes.POINTER(_Managed)()
    assert api.from_object(t, managed) == 0
    assert tuple(managed.contents.version) == (1, 3) and managed.contents.flags == 0
    address = t.data_ptr()
    back = ctypes.py_object()
    assert api.to_object(managed, back) == 0
    u = back.value
    ctypes.pythonapi.Py_DecRef(back)  # the new reference that was given
    assert u.data_ptr() == address and u.stride() == t.stride()
    del t
    gc.collect()
    assert u.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_another_library_allocates_tensors() -> None:
    api, shape = _api(), (ctypes.c_int64 * 2)(3, 5)
    errors = []
    set_error = _SetError(lambda _, kind, message: errors.append((kind, message)))
    prototype = _DLTensor(None, _Device(1, 0), 2, _DataType(4, 16, 1), shape, None, 0)
    managed = ctypes.POINTER(_Managed)()
    assert api.allocate(prototype, managed, None, set_error) == 0 and not errors
    back = ctypes.py_object()
    assert api.to_object(managed, back) == 0
    assert back.value.shape == (3, 5) and back.value.dtype == treadle.bfloat16
    ctypes.pythonapi.Py_DecRef(back)
    prototype.dtype.code = 99
    assert api.allocate(prototype, managed, None, set_error) == -1
    prototype.dtype.code, prototype.device.type = 4, 2
    assert api.allocate(prototype, managed, None, set_error) == -1
    prototype.device.type, prototype.ndim = 1, -1
    assert api.allocate(prototype, managed, None, set_error) == -1
    where = b"__dlpack_c_exchange_api__: "
    assert errors == [
        (
            b"RuntimeError",
            where + b"expected an element type that is a dtype, got type code 99 with 16 bits and "
            b"1 lanes",
        ),
        (b"RuntimeError", where + b"expected a tensor on the cpu, got device type 2"),
        (b"RuntimeError", where + b"expected 0 to 64 dimensions with their sizes, got -1"),
    ]


def test_a_tensor_without_its_sizes_is_refused() -> None:
    managed = ctypes.POINTER(_Managed)()
    assert _api().from_object(treadle.ones(2), managed) == 0
    described = managed.contents.tensor
    sizes, described.shape = described.shape, None
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
    name = ctypes.c_char_p(b"dltensor_versioned")
    made = capsule(managed, name, None)
    with pytest.raises(ValueError) as error:
        treadle.from_dlpack(made)
    assert str(error.value) == ("from_dlpack: expected 0 to 64 dimensions with their sizes, got 1")
    del sizes


def test_the_cpu_has_no_stream() -> None:
    stream = ctypes.c_void_p(1)
    assert _api().current_stream(1, 0, stream) == 0 and stream.value is None
    with pytest.raises(ValueError, match="expected the cpu, got device type 2"):
        _api().current_stream(2, 0, stream)


CODES = {
    "bool": (6, 8, 1),
    "uint16": (1, 16, 1),
    "int64": (0, 64, 1),
    "float16": (2, 16, 1),
    "bfloat16": (4, 16, 1),
    "complex32": (5, 32, 1),
    "complex128": (5, 128, 1),
    "float8_e4m3fn": (10, 8, 1),
    "float8_e4m3fnuz": (11, 8, 1),
    "float8_e5m2": (12, 8, 1),
    "float8_e5m2fnuz": (13, 8, 1),
    "float8_e8m0fnu": (14, 8, 1),
    "float4_e2m1fn_x2": (17, 4, 2),
}


def test_dtypes_in_the_terms_of_dlpack() -> None:
    for name, code in CODES.items():
        dtype = getattr(treadle, name)
        t = treadle.empty(3, dtype=treadle.uint8).view(dtype) if dtype.itemsize == 1 else None
        t = treadle.zeros(3, dtype=dtype) if t is None else t
        described = _DLTensor()
        assert _api().borrow(t, described) == 0
        got = described.dtype
        assert (got.code, got.bits, got.lanes) == code, name
        back = treadle.from_dlpack(t.__dlpack__(max_version=(1, 3)))
        assert back.dtype is dtype and back.data_ptr() == t.data_ptr()
    with pytest.raises(
        BufferError, match="expected a dtype that others know, got treadle.bcomplex32"
    ):
        treadle.empty(2, dtype=treadle.float32).view(treadle.bcomplex32).__dlpack__()


def test_capsules_have_the_version_that_the_consumer_knows() -> None:
    t = treadle.ones(2)
    versions = {(1, 0): (1, 0), (1, 2): (1, 2), (1, 9): (1, 3), (2, 0): (1, 3)}
    for asked, given in versions.items():
        assert tuple(_managed(t.__dlpack__(max_version=asked)).version) == given
    for asked in (None, (0, 8)):
        assert '"dltensor"' in repr(t.__dlpack__(max_version=asked))


def test_flags_say_what_is_read_only_and_what_is_a_copy() -> None:
    array = np.arange(3.0)
    array.flags.writeable = False
    with pytest.warns(UserWarning):
        read_only = treadle.from_numpy(array)
    assert _managed(read_only.__dlpack__(max_version=(1, 0))).flags == 1
    with pytest.raises(BufferError) as error:
        read_only.__dlpack__()
    assert str(error.value) == (
        "__dlpack__: expected max_version = (1, 0) or later for a tensor that is read-only"
    )
    copied = read_only.__dlpack__(max_version=(1, 3), copy=True)
    assert _managed(copied).flags == 2
    assert _managed(copied).tensor.data != read_only.data_ptr()
    assert not np.from_dlpack(read_only).flags.writeable


def test_devices_of_capsules() -> None:
    t = treadle.ones(2)
    same = t.__dlpack__(max_version=(1, 3), dl_device=(1, 0), copy=False)
    assert _managed(same).tensor.data == t.data_ptr()
    with pytest.raises(BufferError) as error:
        t.__dlpack__(dl_device=(2, 0))
    assert str(error.value) == "__dlpack__: expected dl_device (1, 0), the cpu, got (2, 0)"


def test_from_dlpack_copies_as_it_is_told() -> None:
    array = np.arange(4.0)
    assert treadle.from_dlpack(array, copy=False).data_ptr() == array.ctypes.data
    copied = treadle.from_dlpack(array, copy=True)
    array[0] = 7
    assert copied[0] == 0
    # What is not aligned cannot be shared.
    unaligned = np.zeros(17, np.uint8)[1:].view(np.float32)
    with pytest.raises(ValueError, match="expected aligned elements; copy the tensor first"):
        treadle.from_dlpack(unaligned)
    assert treadle.from_dlpack(unaligned, copy=True).tolist() == [0, 0, 0, 0]
    t = treadle.arange(3)
    assert treadle.from_dlpack(t, device="cpu").data_ptr() == t.data_ptr()
    np.testing.assert_array_equal(np.from_dlpack(t, copy=True), [0, 1, 2])

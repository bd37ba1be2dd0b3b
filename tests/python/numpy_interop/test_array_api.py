"""The array API standard: every name, its signature, dtypes, the inspection interface, the array
object. The values of the functions are tested in test_array_api_values.py.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import array
import inspect
import operator
from typing import Any

import numpy as np
import pytest

import treadle

xp = treadle.array_api

# The standard's signatures, version 2025.12.
UNARY = (
    "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag "
    "isfinite isinf isnan log log10 log1p log2 logical_not negative positive real reciprocal round "
    "sign signbit sin sinh sqrt square tan tanh trunc"
).split()
BINARY = (
    "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign "
    "divide equal floor_divide greater greater_equal hypot less less_equal logaddexp logical_and "
    "logical_or logical_xor maximum minimum multiply nextafter not_equal pow remainder subtract"
).split()
SIGNATURES = (
    """
__array_namespace_info__()
all(x, /, *, axis=None, keepdims=False)
any(x, /, *, axis=None, keepdims=False)
arange(start, /, stop=None, step=1, *, dtype=None, device=None)
argmax(x, /, *, axis=None, keepdims=False)
argmin(x, /, *, axis=None, keepdims=False)
argsort(x, /, *, axis=-1, descending=False, stable=True)
asarray(obj, /, *, dtype=None, device=None, copy=None)
astype(x, dtype, /, *, copy=True, device=None)
broadcast_arrays(*arrays)
broadcast_shapes(*shapes)
broadcast_to(x, /, shape)
can_cast(from_, to, /)
clip(x, /, min=None, max=None)
concat(arrays, /, *, axis=0)
count_nonzero(x, /, *, axis=None, keepdims=False)
cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)
cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)
diff(x, /, *, axis=-1, n=1, prepend=None, append=None)
empty(shape, *, dtype=None, device=None)
empty_like(x, /, *, dtype=None, device=None)
expand_dims(x, /, axis=0)
eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)
finfo(type, /)
flip(x, /, *, axis=None)
from_dlpack(x, /, *, device=None, copy=None)
full(shape, fill_value, *, dtype=None, device=None)
full_like(x, /, fill_value, *, dtype=None, device=None)
iinfo(type, /)
isdtype(dtype, kind)
isin(x1, x2, /, *, invert=False)
linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)
matmul(x1, x2, /)
matrix_transpose(x, /)
max(x, /, *, axis=None, keepdims=False)
mean(x, /, *, axis=None, keepdims=False)
meshgrid(*arrays, indexing='xy')
min(x, /, *, axis=None, keepdims=False)
moveaxis(x, source, destination, /)
nonzero(x, /)
ones(shape, *, dtype=None, device=None)
ones_like(x, /, *, dtype=None, device=None)
permute_dims(x, /, axes)
prod(x, /, *, axis=None, dtype=None, keepdims=False)
repeat(x, repeats, /, *, axis=None)
reshape(x, /, shape, *, copy=None)
result_type(*arrays_and_dtypes)
roll(x, /, shift, *, axis=None)
searchsorted(x1, x2, /, *, side='left', sorter=None)
sort(x, /, *, axis=-1, descending=False, stable=True)
squeeze(x, /, axis)
stack(arrays, /, *, axis=0)
std(x, /, *, axis=None, correction=0.0, keepdims=False)
sum(x, /, *, axis=None, dtype=None, keepdims=False)
take(x, indices, /, *, axis=None)
take_along_axis(x, indices, /, *, axis=-1)
tensordot(x1, x2, /, *, axes=2)
tile(x, repetitions, /)
tril(x, /, *, k=0)
triu(x, /, *, k=0)
unique_all(x, /)
unique_counts(x, /)
unique_inverse(x, /)
unique_values(x, /)
unstack(x, /, *, axis=0)
var(x, /, *, axis=None, correction=0.0, keepdims=False)
vecdot(x1, x2, /, *, axis=-1)
where(condition, x1, x2, /)
zeros(shape, *, dtype=None, device=None)
zeros_like(x, /, *, dtype=None, device=None)
linalg.cholesky(x, /, *, upper=False)
linalg.cross(x1, x2, /, *, axis=-1)
linalg.det(x, /)
linalg.diagonal(x, /, *, offset=0)
linalg.eig(x, /)
linalg.eigh(x, /)
linalg.eigvals(x, /)
linalg.eigvalsh(x, /)
linalg.inv(x, /)
linalg.matmul(x1, x2, /)
linalg.matrix_norm(x, /, *, keepdims=False, ord='fro')
linalg.matrix_power(x, n, /)
linalg.matrix_rank(x, /, *, rtol=None)
linalg.matrix_transpose(x, /)
linalg.outer(x1, x2, /)
linalg.pinv(x, /, *, rtol=None)
linalg.qr(x, /, *, mode='reduced')
linalg.slogdet(x, /)
linalg.solve(x1, x2, /)
linalg.svd(x, /, *, full_matrices=True)
linalg.svdvals(x, /)
linalg.tensordot(x1, x2, /, *, axes=2)
linalg.trace(x, /, *, offset=0, dtype=None)
linalg.vecdot(x1, x2, /, *, axis=-1)
linalg.vector_norm(x, /, *, axis=None, keepdims=False, ord=2)
fft.fft(x, /, *, n=None, axis=-1, norm='backward')
fft.ifft(x, /, *, n=None, axis=-1, norm='backward')
fft.fftn(x, /, *, s=None, axes=None, norm='backward')
fft.ifftn(x, /, *, s=None, axes=None, norm='backward')
fft.rfft(x, /, *, n=None, axis=-1, norm='backward')
fft.irfft(x, /, *, n=None, axis=-1, norm='backward')
fft.rfftn(x, /, *, s=None, axes=None, norm='backward')
fft.irfftn(x, /, *, s=None, axes=None, norm='backward')
fft.hfft(x, /, *, n=None, axis=-1, norm='backward')
fft.ihfft(x, /, *, n=None, axis=-1, norm='backward')
fft.fftfreq(n, /, *, d=1.0, dtype=None, device=None)
fft.rfftfreq(n, /, *, d=1.0, dtype=None, device=None)
fft.fftshift(x, /, *, axes=None)
fft.ifftshift(x, /, *, axes=None)
""".split("\n")[1:-1]
    + [f"{n}(x, /)" for n in UNARY]
    + [f"{n}(x1, x2, /)" for n in BINARY]
)
DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
).split()
INTEGERS = DTYPES[1:9]
KINDS = {
    "bool": DTYPES[:1],
    "signed integer": DTYPES[1:5],
    "unsigned integer": DTYPES[5:9],
    "integral": INTEGERS,
    "real floating": DTYPES[9:11],
    "complex floating": DTYPES[11:],
    "numeric": DTYPES[1:],
}


@pytest.mark.parametrize("text", SIGNATURES)
def test_signature(text: str) -> None:
    name, _, rest = text.partition("(")
    signature = inspect.signature(operator.attrgetter(name)(xp))
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    assert str(inspect.Signature(bare)) == "(" + rest
    assert operator.attrgetter(name)(xp).__doc__


def test_nothing_else_is_public() -> None:
    """A name that the standard lacks would make a program depend on Treadle by mistake."""
    names = {text.partition("(")[0] for text in SIGNATURES}
    names |= {"e", "inf", "nan", "newaxis", "pi", "fft", "linalg", *DTYPES}
    public = {n for n in vars(xp) if not n.startswith("_")}
    assert public - names <= {"annotations"}
    assert set(xp.linalg.__all__) == {n[7:] for n in names if n.startswith("linalg.")}
    assert set(xp.fft.__all__) == {n[4:] for n in names if n.startswith("fft.")}


def test_constants() -> None:
    assert (xp.e, xp.inf, xp.pi, xp.newaxis) == (np.e, np.inf, np.pi, None)
    assert np.isnan(xp.nan)


def test_version() -> None:
    assert xp.__array_api_version__ == "2025.12"
    assert treadle.__array_api_version__ == "2025.12"


# ---- dtypes ----


@pytest.mark.parametrize("name", DTYPES)
def test_dtype(name: str) -> None:
    x = xp.zeros((2, 3), dtype=getattr(xp, name))
    assert x.dtype == getattr(xp, name)
    assert x.dtype != getattr(xp, DTYPES[DTYPES.index(name) - 1])
    assert x.numpy().dtype == np.dtype(name)


@pytest.mark.parametrize("kind", KINDS)
def test_isdtype(kind: str) -> None:
    assert [n for n in DTYPES if xp.isdtype(getattr(xp, n), kind)] == KINDS[kind]


def test_isdtype_of_dtypes_and_tuples() -> None:
    assert xp.isdtype(xp.int8, xp.int8) and not xp.isdtype(xp.int8, xp.int16)
    assert xp.isdtype(xp.bool, ("integral", "bool"))
    assert xp.isdtype(xp.int8, (xp.float32, ("complex floating", xp.int8)))
    with pytest.raises(ValueError, match="isdtype: expected a dtype or one of"):
        xp.isdtype(xp.int8, "int")
    with pytest.raises(TypeError, match="isdtype: expected a dtype, got 'int8'"):
        xp.isdtype("int8", "integral")


def _promotable() -> list[tuple[str, str]]:
    """Pairs for which the standard says what they promote to: of one kind, or floating ones."""
    groups = [DTYPES[:1], DTYPES[9:], INTEGERS]
    pairs = [(a, b) for g in groups for a in g for b in g]
    # No integer dtype holds both.
    return [p for p in pairs if "uint64" not in p or not {*p} & {*KINDS["signed integer"]}]


@pytest.mark.parametrize("a, b", _promotable())
def test_promotion(a: str, b: str) -> None:
    expected = getattr(xp, np.result_type(np.dtype(a), np.dtype(b)).name)
    x, y = (xp.ones((2,), dtype=getattr(xp, n)) for n in (a, b))
    scalar = xp.ones((), dtype=y.dtype)
    assert xp.result_type(x.dtype, y.dtype) == expected
    assert xp.result_type(x, scalar) == expected
    assert xp.can_cast(x.dtype, expected) and xp.can_cast(y, expected)
    assert xp.can_cast(x.dtype, y.dtype) == (expected == y.dtype)
    assert xp.equal(x, y).dtype == xp.bool
    assert xp.where(x != 0, x, scalar).dtype == expected
    assert xp.concat([x, y]).dtype == expected
    if a != "bool":
        # A 0-dim array counts as much as one with dimensions.
        assert xp.multiply(x, scalar).dtype == expected
        assert xp.matmul(x, y).dtype == expected


def test_promotion_with_numbers() -> None:
    assert xp.add(xp.ones(2, dtype=xp.int8), 1).dtype == xp.int8
    assert xp.add(1, xp.ones(2, dtype=xp.uint8)).dtype == xp.uint8
    assert xp.multiply(xp.ones(2, dtype=xp.float32), 2.5).dtype == xp.float32
    assert xp.subtract(1j, xp.ones(2, dtype=xp.float64)).dtype == xp.complex128
    assert xp.result_type(xp.float32, 1j) == xp.complex64
    assert xp.result_type(xp.int16, 3, True) == xp.int16
    assert xp.maximum(xp.asarray([1, 5]), 3).tolist() == [3, 5]
    assert xp.where(xp.asarray([True, False]), 1, xp.asarray([2.0, 3.0])).tolist() == [1, 3]
    with pytest.raises(TypeError, match="add: expected at least one array, got"):
        xp.add(1, 2)
    with pytest.raises(TypeError, match="add: expected arrays and numbers, got 'a'"):
        xp.add(xp.ones(2), "a")
    with pytest.raises(ValueError, match="result_type: expected at least one array or dtype"):
        xp.result_type(1, 2.0)


@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize("b", DTYPES)
def test_astype(a: str, b: str) -> None:
    x = xp.asarray([0, 1, 2]).to(getattr(xp, a))
    if a.startswith("complex") and not b.startswith(("complex", "bool")):
        with pytest.raises(TypeError, match="astype: expected a complex dtype"):
            xp.astype(x, getattr(xp, b))
        return
    y = xp.astype(x, getattr(xp, b))
    assert y.dtype == getattr(xp, b) and y is not x
    np.testing.assert_array_equal(y.numpy(), x.numpy().astype(b))
    assert (xp.astype(x, getattr(xp, b), copy=False) is x) == (a == b)


@pytest.mark.parametrize("name", INTEGERS)
def test_iinfo(name: str) -> None:
    reference = np.iinfo(name)
    for argument in (getattr(xp, name), xp.zeros(1, dtype=getattr(xp, name))):
        limits = xp.iinfo(argument)
        assert (limits.bits, limits.min, limits.max) == (
            reference.bits,
            reference.min,
            reference.max,
        )
        assert limits.dtype == getattr(xp, name)


@pytest.mark.parametrize("name", ["float32", "float64", "complex64", "complex128"])
def test_finfo(name: str) -> None:
    reference = np.finfo(name)
    for argument in (getattr(xp, name), xp.zeros(1, dtype=getattr(xp, name))):
        limits = xp.finfo(argument)
        for field in ("bits", "eps", "max", "min", "smallest_normal"):
            assert type(getattr(limits, field)) in (int, float)
            assert getattr(limits, field) == getattr(reference, field)
        assert limits.dtype == getattr(xp, reference.dtype.name)


# ---- inspection ----


def test_info() -> None:
    info = xp.__array_namespace_info__()
    assert info.capabilities() == {
        "boolean indexing": True,
        "data-dependent shapes": True,
        "max dimensions": None,
    }
    assert info.default_device() == treadle.device("cpu")
    assert info.default_device() in info.devices()
    assert info.default_dtypes() == {
        "real floating": xp.float32,
        "complex floating": xp.complex64,
        "integral": xp.int64,
        "indexing": xp.int64,
    }
    assert info.dtypes() == {n: getattr(xp, n) for n in DTYPES}
    assert info.dtypes(device=info.default_device()) == info.dtypes()
    for kind, names in KINDS.items():
        assert list(info.dtypes(kind=kind)) == names
    assert set(info.dtypes(kind=("bool", "signed integer"))) == {"bool", *KINDS["signed integer"]}
    assert treadle.__array_namespace_info__().dtypes() == info.dtypes()


@pytest.mark.parametrize(
    "name, parameters",
    [
        ("capabilities", "()"),
        ("default_device", "()"),
        ("default_dtypes", "(*, device=None)"),
        ("devices", "()"),
        ("dtypes", "(*, device=None, kind=None)"),
    ],
)
def test_signature_of_info(name: str, parameters: str) -> None:
    signature = inspect.signature(getattr(xp.__array_namespace_info__(), name))
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    assert str(inspect.Signature(bare)) == parameters


# ---- the array object ----


@pytest.mark.parametrize(
    "name, parameters",
    [
        ("__array_namespace__", "(self, /, *, api_version=None)"),
        ("to_device", "(self, device, /, *, stream=None)"),
    ],
)
def test_signature_of_method(name: str, parameters: str) -> None:
    signature = inspect.signature(getattr(treadle.Tensor, name))
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    assert str(inspect.Signature(bare)) == parameters


def test_methods_of_the_array() -> None:
    names = (
        "abs add and array_namespace bool complex dlpack dlpack_device eq float floordiv ge "
        "getitem gt index int invert le lshift lt matmul mod mul ne neg or pos pow rshift setitem "
        "sub truediv xor"
    ).split()
    twofold = "add and floordiv lshift matmul mod mul or pow rshift sub truediv xor".split()
    names += [f"{side}{name}" for side in "ri" for name in twofold]
    assert [n for n in names if not hasattr(treadle.Tensor, f"__{n}__")] == []
    attributes = "T device dtype mT ndim shape to_device".split()
    assert [n for n in attributes if not hasattr(treadle.Tensor, n)] == []


def test_namespace() -> None:
    x = xp.ones(3)
    assert x.__array_namespace__() is xp
    assert x.__array_namespace__(api_version="2024.12") is xp
    assert x.__array_namespace__(api_version="2022.12") is xp
    with pytest.raises(ValueError, match="__array_namespace__: expected api_version in"):
        x.__array_namespace__(api_version="1999.01")


def test_attributes() -> None:
    x = xp.reshape(xp.arange(24), (2, 3, 4))
    assert x.dtype == xp.int64 and x.device == treadle.device("cpu")
    assert x.ndim == 3 and tuple(x.shape) == (2, 3, 4)
    assert tuple(x.mT.shape) == (2, 4, 3)
    assert tuple(x[0].T.shape) == (4, 3)
    # PyTorch's method, where the standard has the number of elements.
    assert tuple(x.size()) == (2, 3, 4) and x.numel() == 24


def test_to_device() -> None:
    x = xp.ones(3)
    assert x.to_device("cpu").device == x.device
    assert x.to_device(x.device).tolist() == [1, 1, 1]
    assert x.to_device("meta").device == treadle.device("meta")
    with pytest.raises(ValueError, match="to_device: expected stream = None"):
        x.to_device("cpu", stream=1)
    with pytest.raises(RuntimeError):
        x.to_device("nowhere")


@pytest.mark.parametrize(
    "name",
    "add and eq floordiv ge gt le lshift lt matmul mod mul ne or pow rshift sub truediv "
    "xor".split(),
)
def test_operators(name: str) -> None:
    f = getattr(operator, f"{name}_" if name in ("and", "or") else name)
    integer = name in ("and", "or", "xor", "lshift", "rshift")
    dtype = np.int64 if integer else np.float64
    a, b = np.asarray([[5, 2], [3, 4]], dtype), np.asarray([[1, 2], [2, 3]], dtype)
    x, y = xp.asarray(a), xp.asarray(b)
    np.testing.assert_allclose(f(x, y).numpy(), f(a, b))
    if name != "matmul":
        np.testing.assert_allclose(f(x, 2).numpy(), f(a, 2))
        np.testing.assert_allclose(f(3, y).numpy(), f(3, b))
    if name in ("eq", "ge", "gt", "le", "lt", "ne"):
        return
    in_place = getattr(operator, f"i{name}")
    z = xp.asarray(a.copy())
    before = z
    z = in_place(z, y)
    assert z is before
    np.testing.assert_allclose(z.numpy(), f(a, b))
    assert f"__r{name}__" in dir(x) and f"__i{name}__" in dir(x)


def test_in_place_product_keeps_the_shape() -> None:
    x = xp.ones((2, 3))
    with pytest.raises(ValueError, match="__imatmul__: expected a product of shape"):
        x @= xp.ones((3, 4))
    assert x.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_unary_operators() -> None:
    x = xp.asarray([1.5, -2.0])
    assert (+x).tolist() == [1.5, -2] and (-x).tolist() == [-1.5, 2] and abs(x).tolist() == [1.5, 2]
    assert (~xp.asarray([1, 2])).tolist() == [-2, -3]
    assert (~xp.asarray([True, False])).tolist() == [False, True]


@pytest.mark.parametrize("dtype", DTYPES)
def test_conversions(dtype: str) -> None:
    x = xp.asarray(1).to(getattr(xp, dtype))
    assert bool(x) is True and complex(x) == 1 + 0j
    if dtype.startswith("complex"):
        with pytest.raises((TypeError, RuntimeError)):
            float(x)
    else:
        assert int(x) == 1 and float(x) == 1.0
    if dtype in INTEGERS:
        assert operator.index(x) == 1 and [5, 6][x] == 6
    else:
        with pytest.raises(TypeError):
            operator.index(xp.asarray(1.5))
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        bool(xp.ones(2))


def test_dlpack() -> None:
    x = xp.arange(4)
    assert x.__dlpack_device__() == (1, 0)
    same = xp.from_dlpack(np.asarray(x))
    same[0] = 9
    assert x[0] == 9
    other = xp.from_dlpack(x, copy=True)
    other[0] = 1
    assert x[0] == 9
    assert xp.from_dlpack(x, device="cpu", copy=False).tolist() == [9, 1, 2, 3]
    with pytest.raises(ValueError, match="from_dlpack: expected device cpu without a copy"):
        xp.from_dlpack(x, device="meta", copy=False)
    assert x.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=True) is not None
    moved = xp.from_dlpack(x, device="meta")
    assert moved.device == treadle.device("meta") and moved.shape == x.shape
    for source in (x, x.numpy()):
        for copy in (None, False):
            assert xp.from_dlpack(source, copy=copy).data_ptr() == x.data_ptr()
        assert xp.from_dlpack(source, copy=True).data_ptr() != x.data_ptr()


def test_what_dlpack_refuses() -> None:
    x = xp.ones(3)
    with pytest.raises(BufferError, match="__dlpack__: expected dl_device"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="__dlpack__: expected a tensor on the cpu, got"):
        x.to_device("meta").__dlpack__()
    with pytest.raises(BufferError, match="__dlpack__: expected a tensor that does not req"):
        treadle.ones(3, requires_grad=True).__dlpack__()
    with pytest.raises(ValueError, match="__dlpack__: expected stream = None on the cpu"):
        x.__dlpack__(stream=1)
    for arguments in ({"dl_device": 1}, {"dl_device": (1,)}, {"max_version": 1}):
        with pytest.raises(TypeError, match="__dlpack__: expected"):
            x.__dlpack__(**arguments)
    with pytest.raises(TypeError):
        x.__dlpack__(None)  # keywords only
    for nothing in (object(), [1.0], None):
        with pytest.raises(AttributeError, match="from_dlpack: expected an object with __dlpack__"):
            xp.from_dlpack(nothing)


@pytest.mark.parametrize("code, name", [*zip("bhqBHQfd", DTYPES[1:3] + DTYPES[4:7] + DTYPES[8:11])])
def test_asarray_of_a_buffer(code: str, name: str) -> None:
    numbers = array.array(code, [1, 2, 3, 4])
    x = xp.asarray(numbers)
    assert x.dtype == getattr(xp, name) and x.tolist() == [1, 2, 3, 4]
    numbers[0] = 7
    assert x[0] == 7 and xp.asarray(numbers, copy=False)[0] == 7
    apart = xp.asarray(numbers, copy=True)
    numbers[0] = 1
    assert apart[0] == 7
    assert xp.asarray(numbers, dtype=xp.complex128).tolist() == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="asarray: expected"):
        xp.asarray(numbers, dtype=xp.complex128, copy=False)
    view = memoryview(numbers)
    assert xp.asarray(view[::2]).tolist() == [1, 3] and xp.asarray(view[:0]).shape == (0,)
    assert xp.asarray(view.cast("B").cast(code, (2, 2))).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match="asarray: expected a contiguous buffer"):
        xp.asarray(view[::2], copy=False)


def test_asarray_of_a_buffer_that_is_no_array_of_numbers() -> None:
    assert xp.asarray(b"ab").tolist() == [97, 98] and xp.asarray(b"ab").dtype == xp.uint8
    with pytest.raises(ValueError, match="asarray: expected a contiguous buffer"):
        xp.asarray(b"ab", copy=False)
    flags = memoryview(bytearray([1, 0])).cast("?")
    assert xp.asarray(flags).dtype == xp.bool and xp.asarray(flags).tolist() == [True, False]
    with pytest.raises(TypeError, match="asarray: expected a buffer of numbers, got format 'c'"):
        xp.asarray(memoryview(b"ab").cast("c"))


def test_asarray_of_numbers_never_shares() -> None:
    for numbers in (1.5, [1, 2], [[True], [False]]):
        with pytest.raises(ValueError, match="asarray: expected data that needs no copy"):
            xp.asarray(numbers, copy=False)
        assert xp.asarray(numbers, copy=True).tolist() == numbers


@pytest.mark.parametrize("device", ["cpu", "meta", treadle.device("cpu")])
def test_device_of_new_arrays(device: Any) -> None:
    x = xp.ones((2, 2))
    wanted = treadle.device(device)
    for made in (
        xp.arange(3, device=device),
        xp.asarray([1.0], device=device),
        xp.astype(x, xp.float64, device=device),
        xp.empty(2, device=device),
        xp.empty_like(x, device=device),
        xp.eye(2, k=1, device=device),
        xp.eye(2, device=device),
        xp.from_dlpack(x, device=device),
        xp.full(2, 1, device=device),
        xp.full_like(x, 2, device=device),
        xp.linspace(0, 1, 3, endpoint=False, device=device),
        xp.ones(2, device=device),
        xp.ones_like(x, device=device),
        xp.zeros(2, device=device),
        xp.zeros_like(x, device=device),
        xp.fft.fftfreq(4, device=device),
        xp.fft.rfftfreq(4, device=device),
        x.to_device(device),
    ):
        assert made.device == wanted
    assert xp.zeros_like(x.to_device(device)).device == wanted


def test_indexing() -> None:
    a = np.arange(24).reshape(2, 3, 4)
    x = xp.asarray(a)
    keys: list[Any] = [
        1, (0, 1), (0, 1, 2), slice(0, 2), (slice(None), 1),
        (..., 0), None, (slice(None), None, 2), (slice(1, None), slice(None, None, 2)), (),
    ]  # fmt: skip
    for key in keys:
        np.testing.assert_array_equal(x[key].numpy(), a[key])
    mask = a > 11
    np.testing.assert_array_equal(x[xp.asarray(mask)].numpy(), a[mask])
    rows, columns = np.asarray([0, 2, 1]), np.asarray([3, 0, 3])
    np.testing.assert_array_equal(
        x[1, xp.asarray(rows), xp.asarray(columns)].numpy(), a[1, rows, columns]
    )
    x[xp.asarray(mask)] = 0
    assert int(xp.max(x)) == 11
    x[0, ...] = xp.full((3, 4), 7)
    assert int(xp.min(x[0])) == 7
    with pytest.raises(IndexError):
        x[2]


def test_the_operators_of_an_array_are_the_standards() -> None:
    x, wide = xp.ones(2), xp.asarray(1.0, dtype=xp.float64)
    for result in (x + wide, wide + x, x - wide, x / wide, xp.asarray(2, dtype=xp.int8) ** x):
        assert result.dtype in (xp.float64, xp.float32)
    assert (x + wide).dtype == (wide * x).dtype == xp.float64
    small, large = xp.ones(2, dtype=xp.int8), xp.asarray(1, dtype=xp.int32)
    assert (small & large).dtype == (small << large).dtype == xp.int32
    assert (x + 1).dtype == (2.0 * x).dtype == xp.float32
    assert xp.all((x == 1) & (x >= wide)) and hash(x) == hash(x)
    inf = xp.asarray(xp.inf)
    assert float(inf // 1.0) == xp.inf and str(float(xp.asarray(1.0) // -inf)) == "-0.0"


def test_an_operator_in_place_keeps_the_dtype() -> None:
    x = xp.ones(2)
    alias = x
    x += xp.asarray(2.0)
    x //= 2.0
    assert x is alias and x.tolist() == [1, 1]
    with pytest.raises(
        TypeError, match="__iadd__: expected a result of dtype treadle.float32, got"
    ):
        x += xp.asarray(1.0, dtype=xp.float64)
    with pytest.raises(TypeError):
        x + "1"


def test_what_is_made_and_computed_is_an_array() -> None:
    made = (
        xp.arange(3.0), xp.asarray([1.0]), xp.empty(2), xp.eye(2), xp.full((2,), 1.0),
        xp.linspace(0, 1, 3), xp.ones(2), xp.zeros(2), xp.from_dlpack(np.ones(2)),
        xp.eye(2, k=1), xp.fft.fftfreq(4), xp.fft.rfftfreq(4),
    )  # fmt: skip
    for x in made:
        assert type(x) is type(xp.ones(1)) and isinstance(x, treadle.Tensor)
        assert type(xp.exp(x)) is type(x[:1]) is type(xp.sum(x)) is type(x)
    assert type(xp.exp(treadle.ones(2))) is treadle.Tensor


def test_steps_go_back() -> None:
    x = xp.reshape(xp.arange(12), (3, 4))
    a = np.arange(12).reshape(3, 4)
    keys = (np.s_[::-1], np.s_[:, ::-2], np.s_[2:0:-1, 3:-5:-1], np.s_[..., 1::-1], np.s_[5:9:-1])
    for key in keys:
        assert xp.asarray(x[key]).tolist() == a[key].tolist()
    x[::-1, 0] = xp.asarray([7, 8, 9])
    assert x[:, 0].tolist() == [9, 8, 7]


def test_edges_of_creation_and_casts() -> None:
    for args in ((1.0, 0, 1), (1, 0.0, 1), (1, 0, 1.0)):
        assert xp.arange(*args).dtype == xp.float32 and xp.arange(*args).shape == (0,)
    assert xp.arange(1, 0, 1).dtype == xp.int64
    assert not xp.can_cast(xp.uint64, xp.int8) and not xp.can_cast(xp.int8, xp.uint64)
    assert xp.can_cast(xp.uint8, xp.uint64) and xp.can_cast(xp.uint32, xp.int64)
    assert xp.full((), 1e39j).imag == xp.inf


def test_an_empty_mask_names_nothing() -> None:
    x = xp.ones((2, 3))
    for mask, shape in (((0,), (0, 3)), ((0, 3), (0,)), ((2, 0), (0,)), ((0, 0), (0,))):
        assert x[xp.zeros(mask, dtype=xp.bool)].shape == shape
    with pytest.raises(IndexError):
        x[xp.zeros((0, 4), dtype=xp.bool)]


def test_zeros_of_complex_functions() -> None:
    y = xp.expm1(xp.asarray(complex(-0.0, 0.0)))
    assert str(float(y.real)) == "0.0"
    y = xp.tanh(xp.asarray(complex(xp.inf, 2.0)))
    assert str(complex(y)) == "(1+0j)"


def test_expand_dims_takes_several_axes() -> None:
    x = xp.ones(2)
    assert xp.expand_dims(x, axis=(0, -1)).shape == (1, 2, 1)
    assert xp.expand_dims(x, axis=()).shape == (2,)
    with pytest.raises(IndexError, match=r"expand_dims: expected axis in \[-2, 1\], got axis = 2"):
        xp.expand_dims(x, axis=2)
    with pytest.raises(ValueError, match=r"expected different axes, got axis = \(0, -3\)"):
        xp.expand_dims(x, axis=(0, -3))


def test_isin_and_broadcast_shapes() -> None:
    assert xp.isin(xp.asarray([1, 2]), 2).tolist() == [False, True]
    assert xp.isin(2, xp.asarray([1, 3]), invert=True).tolist() is True
    assert xp.broadcast_shapes((2, 1), (3,)) == (2, 3) and xp.broadcast_shapes() == ()
    with pytest.raises(ValueError, match="broadcast_shapes: expected shapes that broadcast"):
        xp.broadcast_shapes((2,), (3,))

"""The array API standard's promotion: arrays with arrays, and arrays with numbers of Python.

The tables are written out, as the standard has them; every function that takes two arrays keeps to
them, whatever the number of dimensions of either.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import operator
from typing import Any, Callable

import pytest
from array_api_dtypes import ALL, COMPLEX, FLOATS, INTEGERS, NUMBERS, REAL, SIGNED, UNSIGNED

import treadle

xp = treadle.array_api

TABLES = """
        int8    int16   int32   int64
int8    int8    int16   int32   int64
int16   int16   int16   int32   int64
int32   int32   int32   int32   int64
int64   int64   int64   int64   int64

        uint8   uint16  uint32  uint64
uint8   uint8   uint16  uint32  uint64
uint16  uint16  uint16  uint32  uint64
uint32  uint32  uint32  uint32  uint64
uint64  uint64  uint64  uint64  uint64

        uint8   uint16  uint32
int8    int16   int32   int64
int16   int16   int32   int64
int32   int32   int32   int64
int64   int64   int64   int64

           float32    float64    complex64  complex128
float32    float32    float64    complex64  complex128
float64    float64    float64    complex128 complex128
complex64  complex64  complex128 complex64  complex128
complex128 complex128 complex128 complex128 complex128

     bool
bool bool
"""


def promotions() -> dict[tuple[str, str], str]:
    """(a, b): what they become, in either order."""
    found = {}
    for table in TABLES.strip("\n").split("\n\n"):
        head, *lines = table.splitlines()
        for line in lines:
            first, *results = line.split()
            for second, result in zip(head.split(), results):
                found[first, second] = found[second, first] = result
    return found


PROMOTIONS = promotions()

# Functions of two arrays: the dtypes they take, whether the result is bool.
FUNCTIONS: dict[str, tuple[tuple[str, ...], bool]] = {
    **{n: (NUMBERS, False) for n in ("add", "multiply", "subtract", "pow")},
    **{n: (REAL, False) for n in ("floor_divide", "maximum", "minimum", "remainder")},
    **{n: (FLOATS, False) for n in ("atan2", "copysign", "hypot", "logaddexp", "nextafter")},
    "divide": (FLOATS + COMPLEX, False),
    **{n: (("bool", *INTEGERS), False) for n in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    **{n: (INTEGERS, False) for n in ("bitwise_left_shift", "bitwise_right_shift")},
    **{n: (ALL, True) for n in ("equal", "not_equal")},
    **{n: (REAL, True) for n in ("greater", "greater_equal", "less", "less_equal")},
    **{n: (("bool",), True) for n in ("logical_and", "logical_or", "logical_xor")},
}
# The operators of Python that the same functions are.
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "pow": operator.pow,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "less": operator.lt,
    "less_equal": operator.le,
}
IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.iadd,
    "subtract": operator.isub,
    "multiply": operator.imul,
    "divide": operator.itruediv,
    "floor_divide": operator.ifloordiv,
    "remainder": operator.imod,
    "pow": operator.ipow,
    "bitwise_and": operator.iand,
    "bitwise_or": operator.ior,
    "bitwise_xor": operator.ixor,
    "bitwise_left_shift": operator.ilshift,
    "bitwise_right_shift": operator.irshift,
}


def dtype(name: str) -> Any:
    return getattr(xp, name)


def ones(shape: tuple[int, ...], name: str) -> Any:
    return xp.ones(shape, dtype=dtype(name))


@pytest.mark.parametrize("a, b", PROMOTIONS)
def test_arrays(a: str, b: str) -> None:
    wanted = dtype(PROMOTIONS[a, b])
    assert xp.result_type(dtype(a), dtype(b)) == wanted
    assert xp.result_type(ones((2,), a), dtype(b)) == wanted
    assert xp.result_type(ones((2,), a), ones((), b)) == wanted
    assert xp.can_cast(dtype(a), wanted) and xp.can_cast(ones((1,), b), wanted)
    assert xp.can_cast(dtype(a), dtype(b)) == (wanted == dtype(b))
    # Arrays of no elements, of one, and of many dimensions: all count alike.
    shapes = [((2,), (2,)), ((2,), ()), ((), (3, 2)), ((), ()), ((0,), (1,)), ((4, 1), (2,))]
    for name, (dtypes, is_bool) in FUNCTIONS.items():
        if a not in dtypes or b not in dtypes:
            continue
        for first, second in shapes:
            result = getattr(xp, name)(ones(first, a), ones(second, b))
            assert result.dtype == (xp.bool if is_bool else wanted), (name, first, second)


@pytest.mark.parametrize("a, b", PROMOTIONS)
def test_functions_of_several_arrays(a: str, b: str) -> None:
    wanted = dtype(PROMOTIONS[a, b])
    x, y, scalar = ones((2, 2), a), ones((2, 2), b), ones((), b)
    for condition in (xp.asarray(True), xp.asarray([[True, False], [False, True]])):
        assert xp.where(condition, x, y).dtype == wanted
        assert xp.where(condition, x, scalar).dtype == wanted
        assert xp.where(condition, scalar, x).dtype == wanted
    assert xp.concat([x, y]).dtype == xp.stack([x, y], axis=1).dtype == wanted
    assert xp.concat([ones((0,), b), ones((2,), a)]).dtype == wanted
    assert xp.concat([x, scalar], axis=None).dtype == wanted
    assert xp.stack([ones((), a), scalar]).dtype == wanted
    assert [v.dtype for v in xp.broadcast_arrays(x, scalar)] == [x.dtype, scalar.dtype]
    if a in NUMBERS:
        for product in (xp.matmul, xp.vecdot, xp.tensordot, xp.linalg.matmul, xp.linalg.vecdot):
            assert product(x, y).dtype == wanted
        assert xp.linalg.outer(x[0, :], y[0, :]).dtype == wanted
        assert xp.linalg.cross(ones((3,), a), ones((3,), b)).dtype == wanted
    if a in REAL and b in REAL:
        places = xp.searchsorted(ones((3,), a), ones((2,), b))
        assert places.dtype == xp.int64 and places.tolist() == [0, 0]
    if a in FLOATS + COMPLEX:
        assert xp.linalg.solve(xp.eye(2, dtype=dtype(a)), y).dtype == wanted


@pytest.mark.parametrize("signed", SIGNED)
def test_no_integer_holds_both(signed: str) -> None:
    with pytest.raises(TypeError, match="cast one of them first"):
        xp.result_type(dtype(signed), xp.uint64)
    assert not xp.can_cast(dtype(signed), xp.uint64) and not xp.can_cast(xp.uint64, dtype(signed))
    with pytest.raises(TypeError, match="cast one of them first"):
        xp.add(ones((2,), "uint64"), ones((2,), signed))


def test_promotion_of_many() -> None:
    assert xp.result_type(xp.int8) == xp.int8
    assert xp.result_type(xp.uint8, xp.int8, xp.uint16, 7) == xp.int32
    assert xp.result_type(xp.uint8, ones((), "int8"), xp.int64, True) == xp.int64
    assert xp.result_type(xp.float32, ones((2,), "complex64"), xp.float64, 1) == xp.complex128


# ---- numbers of Python ----

NUMBERS_OF_PYTHON = {"bool": True, "int": 2, "float": 2.0, "complex": 2 + 0j}


def with_number(name: str, kind: str) -> Any:
    """The dtype of an array with a number of Python; None where the standard is silent."""
    floating = FLOATS + COMPLEX
    takes = {"bool": ("bool",), "int": NUMBERS, "float": floating, "complex": floating}
    if name not in takes[kind]:
        return None
    wider = {"float32": "complex64", "float64": "complex128"}
    return wider.get(name, name) if kind == "complex" else name


MIXED = [(d, k) for d in ALL for k in NUMBERS_OF_PYTHON if with_number(d, k)]


def mixed_calls() -> list[tuple[str, str, str]]:
    """(function, dtype, number) where the function takes both that dtype and the common one."""
    return [
        (function, name, kind)
        for function, (dtypes, _) in FUNCTIONS.items()
        for name, kind in MIXED
        if name in dtypes and with_number(name, kind) in dtypes
    ]


@pytest.mark.parametrize("function, name, kind", mixed_calls())
def test_mixed(function: str, name: str, kind: str) -> None:
    """As if the number were an array without dimensions, of the dtype of the other."""
    is_bool = FUNCTIONS[function][1]
    wanted, number = with_number(name, kind), NUMBERS_OF_PYTHON[kind]
    elements = [[1, 0, 1], [1, 1, 0]] if name == "bool" else [[1, 2, 3], [4, 5, 6]]
    x = xp.astype(xp.asarray(elements), dtype(name))
    same = xp.asarray(number, dtype=dtype(wanted))
    f = getattr(xp, function)
    for result, full in [(f(x, number), f(x, same)), (f(number, x), f(same, x))]:
        assert result.dtype == full.dtype == (xp.bool if is_bool else dtype(wanted))
        assert result.shape == x.shape and result.tolist() == full.tolist()
    if function not in OPERATORS:
        return
    g = OPERATORS[function]
    for result, full in [(g(x, number), f(x, same)), (g(number, x), f(same, x))]:
        assert result.dtype == full.dtype and result.tolist() == full.tolist()
    scalar = x[0, 0]
    assert g(scalar, number).dtype == g(number, scalar).dtype == f(x, same).dtype
    if function in IN_PLACE and wanted == name:
        z = xp.asarray(x, copy=True)
        after = IN_PLACE[function](z, number)
        assert after is z and z.dtype == x.dtype and z.tolist() == f(x, same).tolist()


@pytest.mark.parametrize("name, kind", MIXED)
def test_mixed_elsewhere(name: str, kind: str) -> None:
    wanted, number = dtype(with_number(name, kind)), NUMBERS_OF_PYTHON[kind]
    x = ones((3,), name)
    assert xp.result_type(x, number) == xp.result_type(number, dtype(name)) == wanted
    assert xp.result_type(dtype(name), number, number) == wanted
    condition = xp.asarray([True, False, True])
    assert xp.where(condition, x, number).dtype == xp.where(condition, number, x).dtype == wanted
    assert xp.where(condition, number, x)[1] == 1 and xp.where(condition, number, x)[0] == number
    if name in REAL and kind in ("int", "float"):
        three = ones((), name) * 3
        for limits in [(number, None), (None, number), (number, number), (number, three)]:
            assert xp.clip(x, *limits).dtype == x.dtype
        assert xp.clip(x, number).tolist() == [2, 2, 2]


@pytest.mark.parametrize("name", FLOATS)
def test_a_number_widens_nothing(name: str) -> None:
    """Not even one that the dtype holds only roughly."""
    x = ones((2,), name)
    for number in (0.1, 1e300, 10**15, 2**53 + 1):
        assert (x + number).dtype == xp.add(x, number).dtype == x.dtype
    assert xp.result_type(xp.int8, 1) == xp.int8


def test_one_has_to_be_an_array() -> None:
    for name in FUNCTIONS:
        with pytest.raises(TypeError, match=f"{name}: expected at least one array"):
            getattr(xp, name)(1, True)
        with pytest.raises(TypeError, match=f"{name}: expected arrays and numbers, got 'a'"):
            getattr(xp, name)(xp.ones(2), "a")
    with pytest.raises(TypeError, match="where: expected at least one array"):
        xp.where(xp.asarray([True]), 1, 2)
    with pytest.raises(ValueError, match="result_type: expected at least one array or dtype"):
        xp.result_type(1, 2.0)


@pytest.mark.parametrize("function", [n for n, (d, _) in FUNCTIONS.items() if n in OPERATORS])
def test_operators_promote_arrays(function: str) -> None:
    """Arrays with dimensions promote by the operators of Python as by the functions."""
    dtypes, is_bool = FUNCTIONS[function]
    for (a, b), wanted in PROMOTIONS.items():
        if a in dtypes and b in dtypes:
            result = OPERATORS[function](ones((2,), a), ones((2,), b))
            assert result.dtype == (xp.bool if is_bool else dtype(wanted)), (a, b)


@pytest.mark.parametrize("a, b", [p for p in PROMOTIONS if "bool" not in p])
def test_in_place_keeps_the_dtype(a: str, b: str) -> None:
    """A result of another dtype than the array it goes into is refused, and changes nothing."""
    x = ones((2,), a)
    if (x + ones((2,), b)).dtype != dtype(a):
        with pytest.raises(TypeError, match="__iadd__: expected a result of dtype"):
            x += ones((2,), b)
        assert x.dtype == dtype(a) and x.tolist() == [1, 1]
    else:
        x += ones((2,), b)
        assert x.dtype == dtype(a) and x.tolist() == [2, 2]


# ---- the dtype of a result that is not that of the argument ----


@pytest.mark.parametrize("name", ALL)
def test_totals(name: str) -> None:
    x = ones((2, 3), name)
    widest = {**dict.fromkeys(SIGNED, "int64"), **dict.fromkeys(UNSIGNED, "uint64")}
    total = dtype(widest.get(name, name))
    wider = {"float32": ("float64", "complex128"), "int8": ("int64", "int16")}
    if name != "bool":
        for f in (xp.sum, xp.prod):
            assert f(x).dtype == f(x, axis=0).dtype == f(x, axis=()).dtype == total
        for f in (xp.cumulative_sum, xp.cumulative_prod):
            assert f(x, axis=1).dtype == f(x, axis=1, include_initial=True).dtype == total
        assert xp.linalg.trace(x).dtype == total
        for wide in wider.get(name, ()):
            assert xp.sum(x, dtype=dtype(wide)).dtype == dtype(wide)
            assert xp.prod(x, dtype=dtype(wide)).dtype == dtype(wide)
            assert xp.cumulative_sum(x, axis=0, dtype=dtype(wide)).dtype == dtype(wide)
    assert xp.count_nonzero(x).dtype == xp.nonzero(x)[0].dtype == xp.int64
    assert xp.all(x).dtype == xp.any(x).dtype == xp.bool
    if name in REAL:
        assert xp.max(x).dtype == xp.min(x).dtype == xp.sort(x).dtype == x.dtype
        assert xp.argmax(x).dtype == xp.argmin(x).dtype == xp.argsort(x).dtype == xp.int64
    counts = xp.unique_all(x)
    assert counts.values.dtype == x.dtype
    assert counts.indices.dtype == counts.inverse_indices.dtype == counts.counts.dtype == xp.int64


@pytest.mark.parametrize("name", ALL)
def test_functions_of_one(name: str) -> None:
    x = ones((2,), name)
    part = {"complex64": "float32", "complex128": "float64"}.get(name, name)
    if name in NUMBERS:
        for f in ("conj", "negative", "positive", "round", "sign", "square"):
            assert getattr(xp, f)(x).dtype == x.dtype, f
        assert xp.abs(x).dtype == xp.real(x).dtype == dtype(part)
        for f in ("isfinite", "isinf", "isnan"):
            assert getattr(xp, f)(x).dtype == xp.bool
    if name in REAL:
        for f in ("ceil", "floor", "trunc"):
            assert getattr(xp, f)(x).dtype == x.dtype
    if name in FLOATS:
        assert xp.signbit(x).dtype == xp.bool
        assert xp.var(x).dtype == xp.std(x).dtype == xp.mean(x).dtype == x.dtype
        assert xp.fft.rfft(x).dtype == dtype(with_number(name, "complex"))
    if name in COMPLEX:
        assert xp.imag(x).dtype == dtype(part)
        assert xp.fft.irfft(x).dtype == xp.fft.hfft(x).dtype == dtype(part)
        assert xp.fft.fft(x).dtype == xp.mean(x).dtype == x.dtype
    if name in FLOATS + COMPLEX:
        m = xp.eye(2, dtype=x.dtype)
        for f in (
            "acos acosh asin asinh atan atanh cos cosh exp expm1 log log10 log1p log2 reciprocal "
            "sin sinh sqrt tan tanh"
        ).split():
            assert getattr(xp, f)(x).dtype == x.dtype, f
        for f in ("svdvals", "eigvalsh", "matrix_norm", "vector_norm"):
            assert getattr(xp.linalg, f)(m).dtype == dtype(part), f
        for f in ("cholesky", "det", "inv", "pinv"):
            assert getattr(xp.linalg, f)(m).dtype == x.dtype, f
        assert xp.linalg.matrix_rank(m).dtype == xp.int64
    if name not in FLOATS + COMPLEX:
        assert xp.bitwise_invert(x).dtype == x.dtype
    if name == "bool":
        assert xp.logical_not(x).dtype == xp.bool

"""The array API standard: what each function computes, against NumPy, which implements it too."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from array_api_dtypes import ALL, COMPLEX, FLOATS, INTEGERS, NUMBERS, REAL, UNSIGNED

import treadle

xp = treadle.array_api


def array(shape: Any, dtype: str, low: float = -3, high: float = 4, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *np.atleast_1d(shape)])
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype in INTEGERS:
        first = max(int(low), 0) if dtype in UNSIGNED else int(low)
        return np.asarray(rng.integers(first, int(high), shape)).astype(dtype)
    values = rng.uniform(low, high, shape)
    if dtype in COMPLEX:
        values = values + 1j * rng.uniform(low, high, shape)
    return np.asarray(values).astype(dtype)


def to(a: Any) -> Any:
    """An array of NumPy as one of Treadle; anything else as it is."""
    if not isinstance(a, (np.ndarray, np.generic)):
        return a
    return xp.from_dlpack(np.array(a, order="C"))


def same(result: Any, expected: Any, loose: float = 8) -> None:
    """Equal in number, shape, dtype and, up to rounding, value."""
    if isinstance(expected, (tuple, list)):
        assert len(result) == len(expected)
        for r, e in zip(result, expected):
            same(r, e, loose)
        return
    expected = np.asarray(expected)
    assert tuple(result.shape) == expected.shape
    assert result.dtype == getattr(xp, expected.dtype.name)
    if expected.dtype.kind in "fc":
        eps = np.finfo(expected.dtype).eps * loose
        np.testing.assert_allclose(result.numpy(), expected, rtol=eps, atol=eps)
    else:
        np.testing.assert_array_equal(result.numpy(), expected)


def agree(name: str, *args: Any, loose: float = 8, **kwargs: Any) -> None:
    """The function gives what NumPy's of the same name gives."""
    function: Any = xp
    reference: Any = np
    for part in name.split("."):
        function, reference = getattr(function, part), getattr(reference, part)
    same(function(*map(to, args), **kwargs), reference(*args, **kwargs), loose)


# ---- one element ----

# Name: dtypes, range of the arguments.
UNARY: dict[str, tuple[tuple[str, ...], float, float]] = {
    **{n: (NUMBERS, -3, 4) for n in ("abs", "negative", "positive", "square", "isfinite", "isinf")},
    **{n: (NUMBERS, -3, 4) for n in ("isnan", "sign", "real", "conj", "round")},
    **{n: (FLOATS + COMPLEX, -3, 4) for n in ("asinh", "atan", "cos", "cosh", "exp", "expm1")},
    **{n: (FLOATS + COMPLEX, -3, 4) for n in ("sin", "sinh", "tan", "tanh", "reciprocal")},
    **{n: (FLOATS + COMPLEX, 0.1, 4) for n in ("log", "log10", "log1p", "log2", "sqrt")},
    **{n: (FLOATS + COMPLEX, -0.9, 0.9) for n in ("acos", "asin", "atanh")},
    **{n: (REAL, -3, 4) for n in ("ceil", "floor", "trunc")},
    "acosh": (FLOATS + COMPLEX, 1.1, 4),
    "bitwise_invert": (("bool", *INTEGERS), -3, 4),
    "imag": (COMPLEX, -3, 4),
    "logical_not": (("bool",), 0, 1),
    "signbit": (FLOATS, -3, 4),
}
BINARY: dict[str, tuple[tuple[str, ...], float, float]] = {
    **{n: (NUMBERS, -3, 4) for n in ("add", "multiply", "subtract")},
    **{n: (ALL, -3, 4) for n in ("equal", "not_equal")},
    **{n: (REAL, -3, 4) for n in ("greater", "greater_equal", "less", "less_equal")},
    **{n: (REAL, -3, 4) for n in ("maximum", "minimum")},
    **{n: (FLOATS, -3, 4) for n in ("atan2", "copysign", "hypot", "logaddexp", "nextafter")},
    **{n: (("bool", *INTEGERS), -3, 4) for n in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    **{n: (("bool",), 0, 1) for n in ("logical_and", "logical_or", "logical_xor")},
    **{n: (INTEGERS, 1, 4) for n in ("bitwise_left_shift", "bitwise_right_shift")},
    **{n: (REAL, 1, 5) for n in ("floor_divide", "remainder")},
    "divide": (FLOATS + COMPLEX, 1, 4),
    "pow": (NUMBERS, 1, 4),
}


@pytest.mark.parametrize("name, dtype", [(n, d) for n, v in UNARY.items() for d in v[0]])
def test_unary(name: str, dtype: str) -> None:
    _, low, high = UNARY[name]
    for shape in [(3, 5), (), (0, 2)]:
        x = array(shape, dtype, low, high)
        reference = getattr(np, name)(x)
        if name == "round" and dtype in INTEGERS:
            reference = x
        same(getattr(xp, name)(to(x)), reference.astype(x.dtype) if name == "sign" else reference)


@pytest.mark.parametrize("name, dtype", [(n, d) for n, v in BINARY.items() for d in v[0]])
def test_binary(name: str, dtype: str) -> None:
    _, low, high = BINARY[name]
    for a, b in [((3, 5), (3, 5)), ((3, 5), (5,)), ((), (4,)), ((2, 1), (1, 3)), ((0, 2), (2,))]:
        agree(name, array(a, dtype, low, high), array(b, dtype, low, high, seed=1))


@pytest.mark.parametrize("dtype", REAL)
def test_clip(dtype: str) -> None:
    x = array((3, 5), dtype)
    low, high = array((5,), dtype, 0, 1), array((3, 1), dtype, 2, 4)
    for args in [(1, 2), (1, None), (None, 2), (low, high), (low, 2), (None, None)]:
        same(xp.clip(to(x), *map(to, args)), np.clip(x, *args))
    same(xp.clip(to(x), max=to(high)), np.minimum(x, high))


# ---- creation ----


@pytest.mark.parametrize("dtype", ALL)
def test_filled(dtype: str) -> None:
    d = getattr(xp, dtype)
    for shape in [(), 3, (2, 3), (0, 2)]:
        same(xp.zeros(shape, dtype=d), np.zeros(shape, dtype))
        same(xp.ones(shape, dtype=d, device="cpu"), np.ones(shape, dtype))
        same(xp.full(shape, 1, dtype=d), np.full(shape, 1, dtype))
        assert xp.empty(shape, dtype=d).shape == xp.zeros(shape).shape
        x = array(shape, dtype)
        for name in ("zeros_like", "ones_like"):
            agree(name, x)
        agree("full_like", x, 1)
        assert xp.empty_like(to(x)).dtype == d
        same(xp.ones_like(to(x), dtype=xp.int16), np.ones(shape, np.int16))


def test_default_dtypes() -> None:
    assert xp.zeros(2).dtype == xp.ones(2).dtype == xp.empty(2).dtype == xp.float32
    assert xp.full(2, 1).dtype == xp.int64 and xp.full(2, True).dtype == xp.bool
    assert xp.full(2, 1.5).dtype == xp.float32 and xp.full(2, 1j).dtype == xp.complex64
    assert xp.arange(3).dtype == xp.int64 and xp.arange(3.0).dtype == xp.float32
    assert xp.linspace(0, 1, 3).dtype == xp.eye(2).dtype == xp.float32
    assert xp.asarray([1, 2]).dtype == xp.int64 and xp.asarray([True]).dtype == xp.bool
    assert xp.asarray(1.5).dtype == xp.float32 and xp.asarray([1j]).dtype == xp.complex64


@pytest.mark.parametrize("dtype", [None, "int32", "float64"])
def test_arange(dtype: Any) -> None:
    d = None if dtype is None else getattr(xp, dtype)
    for args in [(5,), (0,), (-3,), (2, 7), (7, 2), (1, 8, 3), (8, 1, -3), (1, 8, -1), (8, 1, 2)]:
        same(xp.arange(*args, dtype=d), np.arange(*args, dtype=dtype or np.int64))
    same(xp.arange(0, 1, 0.25, dtype=xp.float64), np.arange(0, 1, 0.25))


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
def test_linspace(dtype: str) -> None:
    end: Any = 2 + 1j if dtype in COMPLEX else 2
    for num in (0, 1, 2, 7):
        for endpoint in (True, False):
            got = xp.linspace(-1, end, num, dtype=getattr(xp, dtype), endpoint=endpoint)
            same(got, np.linspace(-1, end, num, endpoint=endpoint).astype(dtype))


def test_eye() -> None:
    for args in [(3,), (2, 4), (4, 2), (0,), (0, 3)]:
        for k in (-9, -1, 0, 1, 2, 9):
            same(xp.eye(*args, k=k, dtype=xp.int32), np.eye(*args, k=k, dtype=np.int32))


@pytest.mark.parametrize("dtype", ALL)
def test_triangles(dtype: str) -> None:
    for name in ("tril", "triu"):
        for k in (-1, 0, 2):
            agree(name, array((2, 3, 4), dtype), k=k)


@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_meshgrid(indexing: str) -> None:
    for sizes in [(3,), (3, 4), (2, 3, 4), ()]:
        arrays = [array((s,), "int64") for s in sizes]
        got = xp.meshgrid(*map(to, arrays), indexing=indexing)
        same(got, list(np.meshgrid(*arrays, indexing=indexing)))  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="meshgrid: expected arrays of one dtype"):
        xp.meshgrid(xp.ones(2), xp.arange(2))


def test_asarray() -> None:
    x = xp.asarray([[1, 2], [3, 4]])
    same(x, np.asarray([[1, 2], [3, 4]]))
    assert xp.asarray(x) is x or xp.asarray(x).data_ptr() == x.data_ptr()
    assert xp.asarray(x, copy=False).data_ptr() == x.data_ptr()
    assert xp.asarray(x, copy=True).data_ptr() != x.data_ptr()
    same(xp.asarray(x, dtype=xp.float64), np.asarray([[1.0, 2.0], [3.0, 4.0]]))
    with pytest.raises(ValueError):
        xp.asarray(x, dtype=xp.float64, copy=False)
    same(xp.asarray(np.arange(3, dtype=np.int16)), np.arange(3, dtype=np.int16))
    same(xp.asarray([1, 2.5, True]), np.asarray([1, 2.5, 1], np.float32))


# ---- manipulation ----


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float32", "complex128"])
def test_manipulation(dtype: str) -> None:
    x = array((2, 3, 4), dtype)
    for axis in (None, 0, -1, (0, 2), (), (1, -1)):
        agree("flip", x, axis=axis)
    for shift, axis in [(2, None), (1, 0), (-1, (0, 1)), ((1, 2), (0, -1)), (7, 2)]:
        agree("roll", x, shift, axis=axis)
    for axis in (0, 1, -1, 3):
        agree("expand_dims", x, axis=axis)
        agree("expand_dims", x, axis)
    for axis in (0, -1, (0, 2), ()):
        same(xp.squeeze(to(x[:1, :, :1]), axis), np.squeeze(x[:1, :, :1], axis))
    agree("permute_dims", x, (2, 0, 1))
    agree("moveaxis", x, 0, -1)
    agree("moveaxis", x, (0, 1), (2, 0))
    agree("reshape", x, (4, -1))
    agree("reshape", x, (4, 6), copy=True)
    agree("broadcast_to", x, (5, 2, 3, 4))
    agree("tile", x, (2, 1))
    agree("tile", x, (2, 1, 1, 2))
    agree("unstack", x)
    agree("unstack", x, axis=-1)
    agree("matrix_transpose", x)
    y = array((2, 3, 4), dtype, seed=1)
    for axis in (0, 1, -1):
        same(xp.stack([to(x), to(y)], axis=axis), np.stack([x, y], axis))
        same(xp.concat((to(x), to(y)), axis=axis), np.concat([x, y], axis))
    same(xp.concat([to(x), to(y)], axis=None), np.concat([x, y], None))
    same(
        xp.broadcast_arrays(to(x), to(y[:, :1, 0])[..., None]),
        [x, np.broadcast_to(y[:, :1, 0][..., None], x.shape)],
    )
    several = np.asarray([1, 0, 2])
    for repeats, axis in [(2, None), (3, 1), (0, 0), (several, 1), (np.asarray(2), 0)]:
        agree("repeat", x, repeats, axis=axis)


def test_manipulation_errors() -> None:
    x = xp.zeros((2, 1, 3))
    for error, call in [
        (ValueError, lambda: xp.squeeze(x, 0)),
        ((ValueError, IndexError), lambda: xp.squeeze(x, 5)),
        (IndexError, lambda: xp.expand_dims(x, axis=4)),
        (IndexError, lambda: xp.expand_dims(x, axis=-5)),
        (ValueError, lambda: xp.broadcast_to(x, (2, -1, 3))),
        (ValueError, lambda: xp.reshape(xp.zeros((2, 3)).mT, (6,), copy=False)),
        (ValueError, lambda: xp.take(x, xp.asarray([0]))),
        (ValueError, lambda: xp.unstack(xp.zeros(()))),
        (ValueError, lambda: xp.repeat(x, xp.ones((1, 1), dtype=xp.int64), axis=0)),
        (ValueError, lambda: xp.cumulative_sum(x)),
        (ValueError, lambda: xp.nonzero(xp.zeros(()))),
        (ValueError, lambda: xp.vecdot(x, x, axis=0)),
        (ValueError, lambda: xp.vecdot(x, xp.zeros(2))),
    ]:
        with pytest.raises(error):  # type: ignore[call-overload]
            call()


@pytest.mark.parametrize("dtype", ALL)
def test_take(dtype: str) -> None:
    x = array((3, 4), dtype)
    for axis in (0, 1, -1):
        agree("take", x, np.asarray([2, 0, 2]), axis=axis)
        places = np.asarray([[2, 0, 1, 1]] if axis == 0 else [[2], [0], [1]])
        agree("take_along_axis", x, places, axis=axis)
    agree("take", x[0], np.asarray([3, 0], np.int32))
    agree("take", x[0], np.asarray([-1, 0, -4], np.int8))
    agree("take_along_axis", x, np.asarray([[1, 0]]))
    agree("take_along_axis", x, np.asarray([[-1, -3], [0, 2], [1, -4]]))


# ---- reductions ----

AXES = (None, 0, -1, (0, 2), (), (1, 0))


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(dtype: str, keepdims: bool) -> None:
    x = array((2, 3, 4), dtype)
    for axis in AXES:
        kw = {"axis": axis, "keepdims": keepdims}
        for name in ("all", "any"):
            agree(name, x, **kw)
        same(xp.count_nonzero(to(x), **kw), np.asarray(np.count_nonzero(x, **kw), np.int64))
        if dtype in REAL:
            agree("max", x, **kw)
            agree("min", x, **kw)
        if dtype != "bool":
            agree("sum", x, **kw, loose=32)
            agree("prod", x, **kw, loose=64)
            to_wide = "complex128" if dtype in COMPLEX else "float64"
            same(
                xp.sum(to(x), dtype=getattr(xp, to_wide), **kw), np.sum(x, dtype=to_wide, **kw), 32
            )
        if dtype in FLOATS + COMPLEX:
            agree("mean", x, **kw, loose=32)
        if dtype in FLOATS:
            for correction in (0, 1.0, 0.5):
                if axis == () and correction == 1:
                    continue  # 0 / 0
                for name in ("var", "std"):
                    agree(name, x, correction=correction, **kw, loose=32)


@pytest.mark.parametrize("dtype", REAL)
def test_reductions_of_little(dtype: str) -> None:
    for x in (array((), dtype), array((0,), dtype), array((3, 0), dtype)):
        for name in ("sum", "prod", "all", "any"):
            agree(name, x)
        if x.size:
            agree("max", x)
        else:
            with pytest.raises((ValueError, IndexError, RuntimeError)):
                xp.max(to(x))
    agree("sum", array((3, 0), dtype), axis=0)


def test_reductions_of_nan() -> None:
    x = np.asarray([1.0, np.nan, -np.inf])
    for name in ("max", "min", "sum", "prod", "mean", "any", "all"):
        agree(name, x)
    assert xp.any(xp.asarray([float("nan")]))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_cumulative(dtype: str) -> None:
    x = array((3, 4), dtype, 1, 3)
    for name in ("cumulative_sum", "cumulative_prod"):
        for axis in (0, -1):
            for initial in (False, True):
                agree(name, x, axis=axis, include_initial=initial, loose=32)
        agree(name, x[0])
        agree(name, x[0], include_initial=True)
    if dtype in REAL:
        same(
            xp.cumulative_sum(to(x[0]), dtype=xp.float64), np.cumulative_sum(x[0], dtype=np.float64)
        )
    for n, axis in [(1, -1), (2, 0), (0, 1), (9, 1)]:
        same(xp.diff(to(x), n=n, axis=axis), np.diff(x, n, axis))
    same(xp.diff(to(x), prepend=to(x[:, :1]), append=to(x)), np.diff(x, prepend=x[:, :1], append=x))


# ---- searching, sorting, sets ----


@pytest.mark.parametrize("dtype", REAL)
def test_order(dtype: str) -> None:
    x = array((3, 6), dtype)
    for axis in (0, 1, -1):
        same(xp.sort(to(x), axis=axis), np.sort(x, axis))
        same(xp.sort(to(x), axis=axis, descending=True), np.flip(np.sort(x, axis), axis))
        same(xp.argsort(to(x), axis=axis), np.argsort(x, axis, kind="stable"))
        down = np.argsort(-x.astype(np.float64), axis, kind="stable")
        same(xp.argsort(to(x), axis=axis, descending=True), down)
        for keepdims in (False, True):
            agree("argmax", x, axis=axis, keepdims=keepdims)
            agree("argmin", x, axis=axis, keepdims=keepdims)
    agree("argmax", x)
    agree("argmin", x, keepdims=True)
    row = np.sort(x[0])
    for side in ("left", "right"):
        agree("searchsorted", row, x, side=side)
    order = np.argsort(x[1])
    same(
        xp.searchsorted(to(x[1]), to(x[0]), sorter=to(order)),
        np.searchsorted(x[1], x[0], sorter=order),
    )


@pytest.mark.parametrize("dtype", ALL)
def test_positions_and_choice(dtype: str) -> None:
    x, y = array((3, 4), dtype), array((4,), dtype, seed=1)
    agree("nonzero", x)
    agree("nonzero", np.zeros((0, 2), dtype))
    condition = array((3, 4), "bool")
    agree("where", condition, x, y)
    agree("where", condition, x, True if dtype == "bool" else 1)


@pytest.mark.parametrize("dtype", ALL)
def test_unique(dtype: str) -> None:
    for shape in [(20,), (3, 7), (), (0,)]:
        x = array(shape, dtype)
        if dtype in FLOATS + COMPLEX:
            x = np.round(x)
        for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values"):
            result, expected = getattr(xp, name)(to(x)), getattr(np, name)(x)
            if name == "unique_values":
                same(result, np.sort(expected))  # NumPy's own may come in any order
                continue
            same(tuple(result), tuple(expected))
            assert type(result)._fields == type(expected)._fields


def test_unique_nan() -> None:
    result = xp.unique_all(xp.asarray([np.nan, 1.0, np.nan, 0.0, -0.0]))
    assert result.values.tolist()[:2] == [0, 1] and result.counts.tolist() == [2, 1, 1, 1]
    assert xp.isnan(result.values[2:]).tolist() == [True, True]
    assert result.inverse_indices.tolist()[1] == 1


# ---- products ----


@pytest.mark.parametrize("dtype", NUMBERS)
def test_products(dtype: str) -> None:
    def make(*shape: int) -> np.ndarray:
        return array(shape, dtype)

    for a, b in [((3, 4), (4, 2)), ((4,), (4,)), ((2, 3, 4), (4,)), ((5, 1, 2, 3), (4, 3, 2))]:
        agree("matmul", make(*a), make(*b), loose=64)
    for a, b, axes in [((3, 4), (4, 2), 1), ((2, 3, 4), (3, 4, 5), 2), ((2,), (3,), 0)]:
        agree("tensordot", make(*a), make(*b), axes=axes, loose=64)
    agree("tensordot", make(2, 3, 4), make(4, 5, 2), axes=((0, 2), (2, 0)), loose=64)
    for a, b, axis in [((3, 4), (3, 4), -1), ((4,), (3, 4), -1), ((3, 4), (2, 3, 4), -2)]:
        agree("vecdot", make(*a), make(*b), axis=axis, loose=64)


# ---- linalg ----

LINALG = ("float32", "float64", "complex64", "complex128")


def positive_definite(dtype: str) -> np.ndarray:
    x = array((2, 3, 3), dtype)
    return x @ np.conj(np.swapaxes(x, -1, -2)) + 2 * np.eye(3, dtype=dtype)


@pytest.mark.parametrize("dtype", LINALG)
def test_linalg(dtype: str) -> None:
    p, x = positive_definite(dtype), array((2, 3, 3), dtype) + 3 * np.eye(3, dtype=dtype)
    loose = 4000
    agree("linalg.cholesky", p, loose=loose)
    agree("linalg.cholesky", p, upper=True, loose=loose)
    agree("linalg.det", x, loose=loose)
    agree("linalg.inv", x, loose=loose)
    agree("linalg.eigvalsh", p, loose=loose)
    agree("linalg.slogdet", x, loose=loose)
    agree("linalg.svdvals", x, loose=loose)
    agree("linalg.pinv", x, loose=loose)
    agree("linalg.pinv", x, rtol=0.2, loose=loose)
    for n in (0, 1, 3, -2):
        agree("linalg.matrix_power", x, n, loose=loose)
    agree("linalg.solve", x, array((2, 3, 4), dtype), loose=loose)
    agree("linalg.solve", x, array((3,), dtype), loose=loose)
    agree("linalg.solve", x, array((3, 2), dtype), loose=loose)
    for ord_ in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        agree("linalg.matrix_norm", x, ord=ord_, loose=loose)
    agree("linalg.matrix_norm", x, keepdims=True, loose=loose)
    for ord_ in (0, 1, 2, 3.5, np.inf, -np.inf):
        for axis in (None, 0, (0, 1), -1):
            agree("linalg.vector_norm", x, ord=ord_, axis=axis, keepdims=True, loose=loose)
    same(xp.linalg.matrix_rank(to(x)), np.linalg.matrix_rank(x))
    same(xp.linalg.matrix_rank(to(x * 0)), np.linalg.matrix_rank(x * 0))
    values, vectors = xp.linalg.eigh(to(p))
    same(values, np.linalg.eigvalsh(p), loose)
    same(xp.matmul(to(p), vectors), (vectors * values[:, None, :].to(vectors.dtype)).numpy(), loose)
    tall = array((2, 4, 3), dtype)
    for mode, shapes in [("reduced", ((2, 4, 3), (2, 3, 3))), ("complete", ((2, 4, 4), (2, 4, 3)))]:
        q, r = xp.linalg.qr(to(tall), mode=mode)
        assert (tuple(q.shape), tuple(r.shape)) == shapes
        same(xp.matmul(q, r), tall, loose)
    for full, k in ((True, 4), (False, 3)):
        u, s, vh = xp.linalg.svd(to(tall), full_matrices=full)
        assert tuple(u.shape) == (2, 4, k)
        same(xp.matmul(u[..., :3] * s[:, None, :].to(u.dtype), vh), tall, loose)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_linalg_of_numbers(dtype: str) -> None:
    x = array((2, 3, 4), dtype)
    for offset in (-1, 0, 2):
        agree("linalg.diagonal", x, offset=offset)
        same(
            xp.linalg.trace(to(x), offset=offset),
            np.sum(np.diagonal(x, offset, -2, -1), -1),
            64,
        )
    agree("linalg.matrix_transpose", x)
    agree("linalg.outer", array((3,), dtype), array((4,), dtype, seed=1))
    if dtype not in UNSIGNED:
        agree("linalg.cross", array((2, 3), dtype), array((2, 3), dtype, seed=1), loose=64)
        agree("linalg.cross", array((3, 2), dtype), array((3, 2), dtype, seed=1), axis=-2, loose=64)
        for a, b in [((4, 3), (3,)), ((3,), (2, 4, 3)), ((2, 1, 3), (4, 3))]:
            agree("linalg.cross", array(a, dtype), array(b, dtype, seed=1), loose=64)
    agree("linalg.matmul", x, np.swapaxes(x, 1, 2), loose=64)
    agree("linalg.vecdot", x, x, loose=64)
    agree("linalg.tensordot", x, x, axes=3, loose=64)


# ---- fft ----


@pytest.mark.parametrize("dtype", LINALG)
def test_fft(dtype: str) -> None:
    x = array((4, 6), dtype)
    real = dtype in FLOATS
    names = ["fft", "ifft", "irfft", "hfft"] + ["rfft", "ihfft"] * real
    for name in names:
        for kwargs in ({}, {"n": 5}, {"axis": 0}, {"norm": "ortho"}, {"norm": "forward"}):
            agree(f"fft.{name}", x, **kwargs, loose=64)
    for name in ["fftn", "ifftn", "irfftn"] + ["rfftn"] * real:
        for kwargs in ({}, {"s": (3, 8), "axes": (0, 1)}, {"axes": (1,)}, {"norm": "ortho"}):
            agree(f"fft.{name}", x, **kwargs, loose=64)
    for name in ("fftshift", "ifftshift"):
        for axes in (None, 0, (0, 1)):
            agree(f"fft.{name}", x, axes=axes)


def test_frequencies() -> None:
    for name in ("fftfreq", "rfftfreq"):
        same(getattr(xp.fft, name)(7, d=0.5, dtype=xp.float64), getattr(np.fft, name)(7, 0.5))
        assert getattr(xp.fft, name)(4).dtype == xp.float32

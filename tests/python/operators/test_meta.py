"""treadle.meta against Python's own arithmetic: random expressions, each way in which the kernels
walk over elements, and what is refused.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast
import random
import re
from typing import Any, Iterator, Sequence

import numpy as np
import pytest

import treadle
from treadle import meta, nn
from treadle_testing.families.meta_operators import elements


def read(x: np.ndarray, shape: Sequence[int], indices: list, value: Any = 0) -> np.ndarray:
    y = np.full(shape, value, dtype=x.dtype)
    for at, place in elements(indices, tuple(shape), x.shape):
        y[at] = x[place]
    return y


def added(y: np.ndarray, shape: Sequence[int], indices: list) -> np.ndarray:
    x = np.zeros(shape, dtype=y.dtype)
    for at, place in elements(indices, y.shape, tuple(shape)):
        x[place] += y[at]
    return x


def numbered(*shape: int) -> np.ndarray:
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.int64).reshape(shape)


# ---- random expressions --------------------------------------------------------------------------


def expression(rng: random.Random, loops: int, depth: int) -> str:
    if depth == 0 or rng.random() < 0.2:
        names = [*(f"i{k}" for k in range(loops)), "xshape0", f"yshape{loops - 1}"]
        return rng.choice(names) if rng.random() < 0.7 else str(rng.randrange(0, 9))
    if rng.random() < 0.1:
        return f"-({expression(rng, loops, depth - 1)})"
    op = rng.choice(["+", "-", "*", "+", "-", "//", "%", "/"])
    left, right = (expression(rng, loops, depth - 1) for _ in range(2))
    if op in ("//", "%", "/") and rng.random() < 0.7:
        right = str(rng.choice([1, 2, 3, 5]))
    return f"({left}) {op} ({right})"


def cases(count: int) -> Iterator[tuple[tuple, tuple, list]]:
    rng = random.Random(7)
    for _ in range(count):
        loops = rng.randrange(1, 4)
        shape = tuple(rng.choice([1, 2, 3, 5, 7, 40]) for _ in range(loops))
        extents = tuple(rng.choice([1, 2, 4, 6]) for _ in range(rng.randrange(1, 3)))
        yield shape, extents, [expression(rng, loops, rng.randrange(0, 4)) for _ in extents]


def test_random_expressions() -> None:
    """Both operators; a divisor that is 0 for some element is an error."""
    done = 0
    for shape, extents, indices in cases(400):
        texts = [re.sub(r"/+", "//", text) for text in indices]
        x, y = numbered(*extents), numbered(*shape)
        call = f"{shape}, {extents}, {indices}"
        try:
            wanted = read(x, shape, texts, -1)
        except ZeroDivisionError:
            with pytest.raises(ValueError, match="expected a divisor other than 0, got '"):
                meta.reindex(treadle.tensor(x), shape, indices, -1)
            continue
        np.testing.assert_array_equal(
            meta.reindex(treadle.tensor(x), shape, indices, -1).numpy(), wanted, call
        )
        np.testing.assert_array_equal(
            meta.reindex_reduce(treadle.tensor(y), "sum", extents, indices).numpy(),
            added(y, extents, texts),
            call,
        )
        done += 1
    assert done > 250


# Sizes and expressions for each kind of walk, with parts of rows and blocks at the ends.
WALKS: list[tuple[tuple, tuple, list]] = [
    ((70,), (90,), ["i0 - 3"]),
    ((5, 70), (4, 90), ["i1 - i0", "i0 + i1"]),
    ((3, 20_000), (3, 9_000), ["i0", "2 * i1 - i0"]),
    ((3, 20_000), (3, 9_000), ["2 - i0", "9000 - i1 + i0"]),
    ((6, 8, 9, 3, 3), (6, 8, 9), ["i0", "i1 + i3 - 1", "i2 + i4 - 1"]),
    ((700, 3), (701, 4), ["i0 + i1 - 1", "i1 + i0 - i0"]),
    ((13, 11, 7, 3), (13, 11), ["i0 + i3 - 1", "i1 + i2 // 2 - i3"]),
    ((4, 60, 50), (4, 30, 25), ["i0", "i1 // 2", "i2 // 2"]),
    ((6, 3000), (6, 1500), ["i0", "i1 // 2 - i0"]),
    ((40, 40, 5), (3, 40), ["(i0 + i1 + i2) % 3", "(i0 * i1) // (i2 + 1)"]),
    ((3000, 30), (50,), ["(i0 * 7 + i1 * 3) % 50"]),
    ((90_000,), (2,), ["i0 % 2"]),
    ((3, 0, 4), (2,), ["i0 + i1"]),
    ((3, 4), (0,), ["i0"]),
    ((5, 50), (3, 3), ["i0 + 7", "i1"]),
]


def at_once(shape: tuple, extents: tuple, indices: list) -> tuple[np.ndarray, np.ndarray]:
    """The offset of each element in the target, and whether it is inside, by NumPy's integers."""
    names: dict = {f"i{k}": i for k, i in enumerate(np.indices(shape, dtype=np.int64))}
    places = [np.broadcast_to(eval(text, {}, names), shape) for text in indices]
    inside = np.ones(shape, bool)
    for place, size in zip(places, extents):
        inside &= (place >= 0) & (place < size)
    offset = np.zeros(shape, np.int64)
    for place, size in zip(places, extents):
        offset = offset * size + np.where(inside, place, 0)
    return offset, inside


@pytest.fixture(params=[1, 2, 3, 8])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = treadle.get_num_threads()
    treadle.set_num_threads(request.param)
    yield request.param
    treadle.set_num_threads(before)


@pytest.mark.parametrize("shape, extents, indices", WALKS, ids=str)
def test_walks(shape: tuple, extents: tuple, indices: list, threads: int) -> None:
    x, y = numbered(*extents), numbered(*shape)
    offset, inside = at_once(shape, extents, indices)
    wanted = np.where(inside, x.reshape(-1)[offset] if x.size else 0, -5)
    np.testing.assert_array_equal(
        meta.reindex(treadle.tensor(x), shape, indices, -5).numpy(), wanted
    )
    sums = np.bincount(offset[inside], y[inside], minlength=x.size).astype(np.int64)
    np.testing.assert_array_equal(
        meta.reindex_reduce(treadle.tensor(y), "sum", extents, indices).numpy(),
        sums.reshape(extents),
    )


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("dtype", [treadle.float32, treadle.bfloat16, treadle.complex64], ids=str)
def test_same_bits_at_any_thread_count(op: str, dtype: treadle.dtype) -> None:
    if dtype.is_complex and op in ("max", "min"):
        return
    treadle.manual_seed(0)
    before = treadle.get_num_threads()
    maps = [
        ((40, 30, 50, 5), (40, 30, 54), ["i0", "i1", "i2 + i3"]),  # few to each, by groups
        ((400, 30, 50), (7, 9), ["(i0 + i1) % 7", "(i1 + i2) % 9"]),  # many to each
        ((600_000,), (50_000,), ["i0 * i0 // 7200000"]),
    ]
    try:
        for shape, extents, indices in maps:
            y = (1 + 0.01 * treadle.randn(shape)).to(dtype)
            treadle.set_num_threads(1)
            first = meta.reindex_reduce(y, op, extents, indices)
            for count in (2, 3, 8):
                treadle.set_num_threads(count)
                assert treadle.equal(meta.reindex_reduce(y, op, extents, indices), first)
    finally:
        treadle.set_num_threads(before)


# ---- layouts and dtypes --------------------------------------------------------------------------

DTYPES = [
    treadle.bool,
    treadle.uint8,
    treadle.int8,
    treadle.int16,
    treadle.int64,
    treadle.uint64,
    treadle.float16,
    treadle.bfloat16,
    treadle.float64,
    treadle.complex64,
    treadle.complex128,
    treadle.float8_e4m3fn,
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype: treadle.dtype) -> None:
    x = treadle.tensor([[1, 0, 1], [0, 1, 1]]).to(dtype)
    y = meta.reindex(x, (3, 3), ["i1", "i0"], overflow_value=1)
    assert y.dtype == dtype
    wanted = [[1, 0, 1], [0, 1, 1], [1, 1, 1]]
    assert treadle.equal(
        y.to(treadle.complex64).real, treadle.tensor(wanted, dtype=treadle.float32)
    )


@pytest.mark.parametrize("indices", [["i1", "i0"], ["i1 + i0 - 1", "i0"], ["i1 * i0", "i0 // 2"]])
def test_any_strides(indices: list) -> None:
    base = treadle.arange(48).reshape(6, 8)
    for x in (base.t(), base[::2, ::3], base[:, ::-1], base[::-1, 1:], base[:1].expand(5, 8)):
        wanted = read(x.numpy(), (7, 9), indices, -1)
        np.testing.assert_array_equal(meta.reindex(x, (7, 9), indices, -1).numpy(), wanted)
        sums = added(x.numpy(), (6, 7), indices)
        np.testing.assert_array_equal(meta.reindex_reduce(x, "sum", (6, 7), indices).numpy(), sums)


def test_lazy_conjugates() -> None:
    x = treadle.tensor([1 + 2j, 3 - 1j])
    assert meta.reindex(x.conj(), (3,), ["i0 - 1"]).tolist() == [0, 1 - 2j, 3 + 1j]
    assert meta.reindex_reduce(x.conj(), "sum", (1,), ["0"]).tolist() == [4 - 1j]


@pytest.mark.parametrize(
    "op, dtype, empty",
    [
        ("sum", treadle.float32, 0.0),
        ("prod", treadle.int8, 1),
        ("max", treadle.float16, float("-inf")),
        ("max", treadle.int16, -(2**15)),
        ("max", treadle.uint8, 0),
        ("min", treadle.float64, float("inf")),
        ("min", treadle.uint64, 2**64 - 1),
        ("max", treadle.bool, False),
        ("min", treadle.bool, True),
        ("logical_and", treadle.float32, True),
        ("logical_or", treadle.complex64, False),
    ],
)
def test_what_is_combined_with_nothing(op: str, dtype: treadle.dtype, empty: Any) -> None:
    result = meta.reindex_reduce(treadle.ones(3, dtype=dtype), op, (2,), ["i0 + 5"])
    assert result.tolist() == [empty, empty]
    assert result.dtype == (treadle.bool if op.startswith("logical") else dtype)


def test_special_values() -> None:
    nan = float("nan")
    y = treadle.tensor([1.0, nan, 3.0, 0.0])
    assert str(meta.reindex_reduce(y, "max", (2,), ["i0 // 2"]).tolist()) == "[nan, 3.0]"
    assert str(meta.reindex_reduce(y, "min", (2,), ["i0 // 2"]).tolist()) == "[nan, 0.0]"
    assert meta.reindex_reduce(y, "logical_and", (2,), ["i0 // 2"]).tolist() == [True, False]
    assert meta.reindex_reduce(y, "logical_or", (2,), ["i0 % 2"]).tolist() == [True, True]
    assert meta.reindex_reduce(
        treadle.tensor([100, 100], dtype=treadle.int8), "sum", (1,), ["0"]
    ).tolist() == [-56]


def test_long_sums_are_exact() -> None:
    ones = treadle.ones(70_000, dtype=treadle.float16)
    assert meta.reindex_reduce(ones, "sum", (2,), ["i0 % 2"]).tolist() == [35_008, 35_008]


def test_meta_device() -> None:
    x = treadle.empty(2**20, 2**20, device="meta", dtype=treadle.int16)
    y = meta.reindex(x, (2**30, 5), ["i0 // 2", "i1 % xshape1"])
    assert y.shape == (2**30, 5) and y.dtype == treadle.int16 and y.device.type == "meta"
    z = meta.reindex_reduce(x, "logical_or", (3,), ["i0 + i1"])
    assert z.shape == (3,) and z.dtype == treadle.bool and z.device.type == "meta"


# ---- compositions and gradients ------------------------------------------------------------------


def convolution(
    x: treadle.Tensor, w: treadle.Tensor, stride: tuple, padding: tuple, groups: int
) -> treadle.Tensor:
    n, channels, height, width = x.shape
    out, each, kh, kw = w.shape
    rows = (height + 2 * padding[0] - kh) // stride[0] + 1
    columns = (width + 2 * padding[1] - kw) // stride[1] + 1
    loops = (n, out, rows, columns, each, kh, kw)
    indices = [
        "i0",
        f"i1 // {out // groups} * {each} + i4",
        f"i2 * {stride[0]} + i5 - {padding[0]}",
        f"i3 * {stride[1]} + i6 - {padding[1]}",
    ]
    return (x.reindex(loops, indices) * w.broadcast(loops, dims=(0, 2, 3))).sum((4, 5, 6))


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("stride, padding", [((1, 1), (0, 0)), ((2, 1), (1, 2)), ((3, 2), (2, 0))])
def test_convolution(stride: tuple, padding: tuple, groups: int) -> None:
    treadle.manual_seed(1)
    x = treadle.randn(2, 4, 9, 8, dtype=treadle.float64, requires_grad=True)
    w = treadle.randn(8, 4 // groups, 3, 2, dtype=treadle.float64, requires_grad=True)
    y = convolution(x, w, stride, padding, groups)
    z = nn.functional.conv2d(x, w, stride=stride, padding=padding, groups=groups)
    assert treadle.allclose(y, z)
    weights = treadle.randn_like(y)
    for ours, theirs in zip(
        treadle.autograd.grad((y * weights).sum(), (x, w)),
        treadle.autograd.grad((z * weights).sum(), (x, w)),
    ):
        assert treadle.allclose(ours, theirs)


def test_convolution_as_written_by_the_output() -> None:
    """With the loops over the input: each product goes to the output that it belongs to."""
    x, w = treadle.randn(2, 3, 6, 6), treadle.randn(4, 3, 3, 3)
    loops = (2, 4, 6, 6, 3, 3, 3)
    products = meta.reindex(x, loops, ["i0", "i4", "i2", "i3"]) * meta.broadcast(
        w, loops, (0, 2, 3)
    )
    y = meta.reindex_reduce(products, "sum", (2, 4, 4, 4), ["i0", "i1", "i2 - i5", "i3 - i6"])
    assert treadle.allclose(y, nn.functional.conv2d(x, w), atol=1e-5)


def test_the_two_are_each_others_gradient() -> None:
    indices = ["i0 + i1 - 1", "i1 // 2"]
    x = treadle.randn(5, 3, dtype=treadle.float64, requires_grad=True)
    y = treadle.randn(6, 7, dtype=treadle.float64, requires_grad=True)
    (of_x,) = treadle.autograd.grad((meta.reindex(x, (6, 7), indices) * y.detach()).sum(), x)
    assert treadle.equal(of_x, meta.reindex_reduce(y, "sum", (5, 3), indices))
    (of_y,) = treadle.autograd.grad(
        (meta.reindex_reduce(y, "sum", (5, 3), indices) * x.detach()).sum(), y
    )
    assert treadle.equal(of_y, meta.reindex(x, (6, 7), indices))


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min"])
def test_gradients(op: str) -> None:
    treadle.manual_seed(2)
    y = treadle.randn(4, 5, dtype=treadle.float64, requires_grad=True)

    def f(t: treadle.Tensor) -> treadle.Tensor:
        return meta.reindex_reduce(t, op, (3, 2), ["i0 + i1 - 2", "i1 % 2"])

    def inside(t: treadle.Tensor) -> treadle.Tensor:  # without what no element reaches
        return treadle.where(treadle.isfinite(f(t)), f(t), 0.0)

    assert treadle.autograd.gradcheck(inside, (y,))
    assert treadle.autograd.gradgradcheck(inside, (y,))


def test_gradients_at_ties_and_zeros() -> None:
    y = treadle.tensor([2.0, 2.0, 1.0, 0.0, 3.0, 4.0], requires_grad=True)
    meta.reindex_reduce(y, "max", (2,), ["i0 // 3"]).sum().backward()
    assert y.grad.tolist() == [0.5, 0.5, 0, 0, 0, 1]
    y.grad = None
    meta.reindex_reduce(y, "prod", (2,), ["i0 // 3"]).sum().backward()
    assert y.grad.tolist() == [2, 2, 4, 12, 0, 0]
    assert not meta.reindex_reduce(y, "logical_or", (2,), ["i0 // 3"]).requires_grad


def test_broadcast_is_a_view() -> None:
    w = treadle.randn(4, 3, requires_grad=True)
    view = meta.broadcast(w, (2, 4, 5, 3), dims=(0, -2))
    assert view.data_ptr() == w.data_ptr() and view.stride() == (0, 3, 0, 1)
    assert treadle.equal(view, w.unsqueeze(0).unsqueeze(2).expand(2, 4, 5, 3))
    view.sum().backward()
    assert w.grad.tolist() == [[10.0] * 3] * 4


# ---- what is refused -----------------------------------------------------------------------------

X = treadle.arange(6).reshape(2, 3)
IN_USE = "the names are i0 to i1, xshape0 to xshape1, yshape0 to yshape1"
REFUSED: list[tuple[list, type, str]] = [
    (
        ["i0"],
        ValueError,
        "reindex: expected one index expression for each of the 2 dimensions of x, got 1",
    ),
    (
        ["i0", ""],
        ValueError,
        "reindex: expected an expression as indices[1], got an empty text",
    ),
    (
        ["i0", "i1; 1"],
        ValueError,
        "reindex: expected one expression as indices[1], got 'i1; 1'",
    ),
    (["i0", 1], TypeError, "reindex: expected a text as indices[1], got int"),
    (
        ["i0", "i2 - 1"],
        ValueError,
        f"reindex: indices[1]:1:1: error: unknown name 'i2'; {IN_USE}\ni2 - 1\n^",
    ),
    (
        ["i00", "i1"],
        ValueError,
        f"reindex: indices[0]:1:1: error: unknown name 'i00'; {IN_USE}\ni00\n^",
    ),
    (
        ["i0", "i1 -"],
        ValueError,
        "reindex: indices[1]:1:5: error: expected an expression, got the end\ni1 -\n    ^",
    ),
    (
        ["i0", "(i1 + 1"],
        ValueError,
        "reindex: indices[1]:1:8: error: expected ')', got the end\n(i1 + 1\n       ^",
    ),
    (
        ["i0", "i1 @ 2"],
        ValueError,
        "reindex: indices[1]:1:4: error: unexpected character '@'\ni1 @ 2\n   ^",
    ),
    (
        ["i0", "max(i1, 2)"],
        ValueError,
        "reindex: indices[1]:1:1: error: expected integers, names and + - * // %, got "
        "'max(i1, 2)'\nmax(i1, 2)\n^",
    ),
    (
        ["i0", "2 + (i1 < 2)"],
        ValueError,
        "reindex: indices[1]:1:6: error: expected integers, names and + - * // %, got 'i1 < 2'\n"
        "2 + (i1 < 2)\n     ^",
    ),
    (
        ["i0", "i1 * 0.5"],
        ValueError,
        "reindex: indices[1]:1:6: error: expected integers, names and + - * // %, got '0.5'\n"
        "i1 * 0.5\n     ^",
    ),
    (
        ["i0", "9223372036854775808"],
        ValueError,
        "reindex: indices[1]:1:1: error: integer 9223372036854775808 does not fit into 64 bits\n"
        "9223372036854775808\n^",
    ),
    (
        ["i0", "i1 // (xshape0 - 2)"],
        ValueError,
        "reindex: indices[1]:1:8: error: expected a divisor other than 0, got 'xshape0 - 2' = 0\n"
        "i1 // (xshape0 - 2)\n       ^",
    ),
    (
        ["i0", "i1 % (i0 - 1)"],
        ValueError,
        "reindex: expected a divisor other than 0, got 'i0 - 1' = 0 at i0 = 1, i1 = 0",
    ),
]


@pytest.mark.parametrize("indices, kind, message", REFUSED, ids=lambda v: str(v)[:30])
def test_refused_expressions(indices: list, kind: type, message: str) -> None:
    with pytest.raises(kind) as caught:
        meta.reindex(X, (2, 3), indices)
    assert str(caught.value) == message


@pytest.mark.parametrize("indices", ["i0", None, 3])
def test_refused_lists(indices: Any) -> None:
    with pytest.raises(TypeError) as caught:
        meta.reindex_reduce(X, "sum", (2,), indices)
    name = type(indices).__name__
    assert (
        str(caught.value)
        == f"reindex_reduce: expected a list of expressions as indices, got {name}"
    )


def test_refused_calls() -> None:
    for call, kind, message in [
        (
            lambda: meta.reindex(X, (2, -3), ["i0", "i1"]),
            RuntimeError,
            "reindex: expected shape >= 0, got shape = (2, -3)",
        ),
        (
            lambda: meta.reindex(X, (2**40, 2**40), ["i0", "i1"]),
            RuntimeError,
            "reindex: expected sizes whose bytes can be counted in 63 bits, got sizes = "
            "(1099511627776, 1099511627776)",
        ),
        (
            lambda: meta.reindex(X.to(treadle.int8), (2, 3), ["i0", "i1"], 300),
            RuntimeError,
            "reindex: expected a value that fits int8, got 300",
        ),
        (
            lambda: meta.reindex_reduce(X, "mean", (2,), ["i0"]),
            RuntimeError,
            "reindex_reduce: expected op in ('sum', 'prod', 'max', 'min', 'logical_and', "
            "'logical_or'), got op = 'mean'",
        ),
        (
            lambda: meta.reindex_reduce(X, "sum", (2,), ["i0", "i1"]),
            ValueError,
            "reindex_reduce: expected one index expression for each of the 1 dimensions of the "
            "result, got 2",
        ),
        (
            lambda: meta.reindex_reduce(X.to(treadle.complex64), "max", (2,), ["i0"]),
            RuntimeError,
            "reindex_reduce: expected a dtype with an order for op = 'max', got complex64",
        ),
        (
            lambda: meta.broadcast(X, (2, 3, 4), (0, 1)),
            ValueError,
            "broadcast: expected as many dims as shape has dimensions more than x, got dims = "
            "(0, 1) for shape = (2, 3, 4) and x of shape (2, 3)",
        ),
        (
            lambda: meta.broadcast(X, (2, 3, 4), (0,)),
            ValueError,
            "broadcast: expected x of sizes that are 1 or those of shape outside of dims, got "
            "shape (2, 3) for shape = (2, 3, 4), dims = (0,)",
        ),
        (
            lambda: meta.broadcast(X, (2, 3, 4), (3,)),
            IndexError,
            "broadcast: Dimension out of range (expected to be in range of [-3, 2], but got 3)",
        ),
    ]:
        with pytest.raises(kind) as caught:
            call()
        assert str(caught.value) == message


def test_long_and_deep_expressions() -> None:
    x = treadle.arange(4)
    deep = "(" * 150 + "i0" + ")" * 150
    assert meta.reindex(x, (4,), [deep]).tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="nested more than 200 levels deep"):
        meta.reindex(x, (4,), ["(" * 100_000 + "i0" + ")" * 100_000])
    with pytest.raises(ValueError, match="nested more than 200 levels deep"):
        meta.reindex(x, (4,), [" + ".join(["i0"] * 100_000)])
    wide = "i0"
    for _ in range(6):
        wide = f"({wide}) + ({wide})"
    assert meta.reindex(x, (4,), [f"({wide}) // 64"]).tolist() == [0, 1, 2, 3]
    for _ in range(4):
        wide = f"({wide}) + ({wide})"
    with pytest.raises(ValueError, match="at most 1000 names, numbers and operators"):
        meta.reindex(x, (4,), [wide])


LIMIT = 2**63


@pytest.mark.parametrize(
    "index",
    [
        f"i0 * {LIMIT - 1}",
        f"i0 * {LIMIT // 2} * 2",
        f"i0 + {LIMIT - 2}",
        f"{LIMIT - 1} + i0 - {LIMIT - 1}",
        f"-{LIMIT - 1} - i0 + {LIMIT - 1}",
        f"-(-{LIMIT - 1} - i0 * i0)",
        f"(-{LIMIT - 1} - i0) // (i0 - 5)",
        f"(-{LIMIT - 1} - i0) // -1 - {LIMIT - 1}",
        f"(-{LIMIT - 1} - 1 + 0 * i0) % -1",
        f"(-{LIMIT - 1} - 1 + i0) % (i0 - 5)",
        f"(i0 + {LIMIT - 2}) % 4",
        f"{LIMIT - 1} * {LIMIT - 1} + i0",
        f"(i0 - 2) * (i0 + 2) * {LIMIT // 8} * {LIMIT // 8}",
        f"i0 * {LIMIT // 4} // {LIMIT // 4}",
    ],
)
@pytest.mark.parametrize("rest", [1, 100])
def test_overflow_is_outside(index: str, rest: int) -> None:
    """The oracle evaluates by integers without bounds, and looks at each step."""

    def value(node: ast.expr, i: int) -> int:
        if isinstance(node, ast.Constant):
            return int(node.value)  # type: ignore[arg-type]
        if isinstance(node, ast.Name):
            return i
        if isinstance(node, ast.UnaryOp):
            result = -value(node.operand, i)
        else:
            assert isinstance(node, ast.BinOp)
            a, b = value(node.left, i), value(node.right, i)
            kind = type(node.op)
            result = {
                ast.Add: lambda: a + b,
                ast.Sub: lambda: a - b,
                ast.Mult: lambda: a * b,
                ast.FloorDiv: lambda: a // b,
                ast.Mod: lambda: a % b,
            }[kind]()
        if not -LIMIT <= result < LIMIT:
            raise OverflowError
        return result

    x = treadle.arange(1, 5)
    tree = ast.parse(index, mode="eval").body
    wanted = []
    for i in range(5):
        try:
            at = value(tree, i)
            wanted.append(at + 1 if 0 <= at < 4 else -7)
        except OverflowError:
            wanted.append(-7)
    got = meta.reindex(x, (5, rest), [index], -7)
    assert got.tolist() == [[v] * rest for v in wanted]
    sums = [0] * 4
    for v in wanted:
        if v > 0:
            sums[v - 1] += rest
    ones = treadle.ones(5, rest, dtype=treadle.int64)
    assert meta.reindex_reduce(ones, "sum", (4,), [index]).tolist() == sums


@pytest.mark.parametrize("extent", [2**62, 2**63 - 1])
def test_targets_of_any_extent(extent: int) -> None:
    """A tensor of one element, expanded."""
    x = treadle.ones(1, dtype=treadle.uint8).expand(extent)
    for index, wanted in [
        (f"i0 + {extent - 2}", [1, 1, 0, 0]),
        (f"{extent + 1 - 2**60} + i0 + {2**60 - 4}", [1, 1, 1, 0]),
        ("i0 - 2", [0, 0, 1, 1]),
        ("1 - i0", [1, 1, 0, 0]),
        (f"i0 * {extent // 2}", [1, 1, extent % 2, 0]),
        ("i0 // 2 - 1", [0, 0, 1, 1]),
    ]:
        assert meta.reindex(x, (4,), [index]).tolist() == wanted, index
        rows = meta.reindex(x, (4, 50), [f"{index} + 0 * i1"])
        assert rows.tolist() == [[value] * 50 for value in wanted], index


def test_many_dimensions() -> None:
    x = treadle.arange(2**10).reshape((2,) * 10)
    indices = [f"i{k}" for k in reversed(range(10))]
    assert treadle.equal(
        meta.reindex(x, (2,) * 10, indices), x.permute(*reversed(range(10))).contiguous()
    )


def test_every_name_of_the_module_is_documented() -> None:
    for name in meta.__all__:
        assert "Example" in (getattr(meta, name).__doc__ or ""), name

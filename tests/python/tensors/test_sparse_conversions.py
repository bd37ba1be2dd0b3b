"""Conversions between all sparse layouts and strided tensors, at sizes that take each way through
the kernels: short, long and empty rows, few and many entries, values of every size, batches, blocks
and dense dimensions. The reference is NumPy. Products with vectors by columns are here, too.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator, Tuple

import numpy as np
import pytest

import treadle
from treadle.testing import assert_close

LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc")
# Rows, columns, entries.
SHAPES = (
    (1, 1, 1),
    (7, 5, 9),
    (3, 2000, 5000),
    (900, 700, 20_000),
    (700, 9000, 5000),
    (5, 9, 0),
    (0, 3, 0),
    (4, 0, 0),
    (2000, 1000, 160_000),
)


def _array(n: int, m: int, count: int, dtype: Any = np.float32) -> Any:
    rng = np.random.default_rng(0)
    out = np.zeros((n, m), dtype)
    if count:
        at = rng.integers(0, n * m, count)
        out.reshape(-1)[at] = rng.integers(1, 100, count).astype(dtype)
    return out


def _in(layout: str, x: treadle.Tensor) -> treadle.Tensor:
    return x.to_sparse(layout=getattr(treadle, layout))


def _parts(s: treadle.Tensor) -> Tuple[Any, ...]:
    if s.layout is treadle.sparse_coo:
        return s._indices().numpy(), s._values().numpy()
    if s.layout is treadle.sparse_csr:
        return s.crow_indices().numpy(), s.col_indices().numpy(), s.values().numpy()
    return s.ccol_indices().numpy(), s.row_indices().numpy(), s.values().numpy()


def _expected(layout: str, x: Any) -> Tuple[Any, ...]:
    """The parts of the tensor of an array, with entries in order."""
    rows, columns = np.nonzero(x)
    if layout == "sparse_coo":
        return np.stack([rows, columns]), x[rows, columns]
    lines, others = (rows, columns) if layout == "sparse_csr" else (columns, rows)
    order = np.lexsort((others, lines))
    lines, others = lines[order], others[order]
    starts = np.searchsorted(lines, np.arange(x.shape[layout == "sparse_csc"] + 1))
    return starts, others, x[rows[order], columns[order]]


@pytest.fixture(params=[1, 3])
def threads(request: Any) -> Iterator[int]:
    before = treadle.get_num_threads()
    treadle.set_num_threads(request.param)
    yield request.param
    treadle.set_num_threads(before)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("source", (*LAYOUTS, "strided"))
def test_conversions(source: str, shape: Tuple[int, int, int], threads: int) -> None:
    x = _array(*shape)
    given = treadle.tensor(x) if source == "strided" else _in(source, treadle.tensor(x))
    assert np.array_equal(given.to_dense().numpy(), x)
    for layout in LAYOUTS:
        made, expected = _in(layout, given), _expected(layout, x)
        parts = _parts(made.coalesce() if layout == "sparse_coo" else made)
        assert [p.dtype for p in parts] == [*[np.dtype(np.int64)] * (len(parts) - 1), x.dtype]
        assert all(np.array_equal(p, e) for p, e in zip(parts, expected)), layout


@pytest.mark.parametrize(
    "dtype", [np.bool_, np.int16, np.float32, np.float64, np.complex128], ids=str
)
def test_conversions_of_values_of_each_size(dtype: Any, threads: int) -> None:
    x = _array(600, 500, 150_000, dtype)
    s = _in("sparse_csr", treadle.tensor(x))
    for layout in LAYOUTS:
        made = _in(layout, s)
        parts = _parts(made.coalesce() if layout == "sparse_coo" else made)
        assert all(np.array_equal(p, e) for p, e in zip(parts, _expected(layout, x))), layout
        assert np.array_equal(made.to_dense().numpy(), x)


def test_entries_in_few_rows_and_in_the_last_one() -> None:
    """Rows that begin at each place of a group of entries, and rows without entries between."""
    for first in range(70):
        x = np.zeros((9, 200), np.float32)
        x[1, : 5 + first] = 1
        x[4, 60:] = 2
        x[8, : 1 + first] = 3
        coo = _in("sparse_coo", treadle.tensor(x))
        assert np.array_equal(
            _in("sparse_csr", coo).crow_indices().numpy(), _expected("sparse_csr", x)[0]
        )
        assert np.array_equal(
            _in("sparse_csr", coo).to_sparse_coo().indices().numpy(), np.stack(np.nonzero(x))
        )


@pytest.mark.parametrize("layout", ["sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
@pytest.mark.parametrize("batches", [(), (2,), (3, 2)], ids=str)
@pytest.mark.parametrize("dense", [(), (2,), (2, 3)], ids=str)
def test_tensors_with_more_dimensions(
    layout: str, batches: Tuple[int, ...], dense: Tuple[int, ...]
) -> None:
    rng = np.random.default_rng(0)
    # As many entries in each matrix of a batch: the pattern is one, and the values are others.
    pattern = np.repeat(np.repeat(rng.random((3, 4)) < 0.4, 2, 0), 3, 1)
    pattern[0, 0] = True
    pattern = pattern.reshape(6, 12, *[1] * len(dense))
    x = rng.normal(size=(*batches, 6, 12, *dense)) * pattern
    blocks = {"blocksize": (2, 3)} if layout in ("sparse_bsr", "sparse_bsc") else {}
    kind = {"layout": getattr(treadle, layout), "dense_dim": len(dense), **blocks}
    s = treadle.tensor(x).to_sparse(**kind)
    assert s.layout is getattr(treadle, layout)
    assert np.array_equal(s.to_dense().numpy(), x) and s.to_dense().is_contiguous()
    assert np.array_equal(s.to_sparse_coo().to_dense().numpy(), x)
    at = len(batches)
    turned = s.transpose(at, at + 1)
    other = layout[:-1] + ("c" if layout.endswith("r") else "r")
    assert turned.layout is getattr(treadle, other)
    assert np.array_equal(turned.to_dense().numpy(), np.swapaxes(x, at, at + 1))
    if batches:
        assert s[1].layout is s.layout and np.array_equal(s[1].to_dense().numpy(), x[1])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_strided_copy_has_gradients_of_two_orders(layout: str) -> None:
    x = treadle.tensor(_array(5, 4, 9, np.float64))
    s = _in(layout, x)
    values = s._values() if layout == "sparse_coo" else s.values()
    parts = [treadle.tensor(p) for p in _parts(s)[:-1]]

    def dense(v: treadle.Tensor) -> treadle.Tensor:
        if layout == "sparse_coo":
            made = treadle.sparse_coo_tensor(*parts, v, (5, 4), is_coalesced=True)
        else:
            made = getattr(treadle, layout + "_tensor")(*parts, v, (5, 4))
        return made.to_dense().exp()

    leaf = values.detach().clone().requires_grad_()
    assert treadle.autograd.gradcheck(dense, (leaf,))
    assert treadle.autograd.gradgradcheck(dense, (leaf,))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.complex64, np.int32])
def test_products_with_a_vector_by_columns(shape: Tuple[int, int, int], dtype: Any) -> None:
    n, m, _ = shape
    x = _array(*shape, dtype)
    s = _in("sparse_csc", treadle.tensor(x))
    right, left = ((np.arange(k) % 7).astype(dtype) for k in (m, n))
    wide = complex if dtype == np.complex64 else float
    for found, expected in (
        (s @ treadle.tensor(right), x.astype(wide) @ right.astype(wide)),
        (treadle.tensor(left) @ _in("sparse_csr", s), left.astype(wide) @ x.astype(wide)),
    ):
        rtol = {np.float16: 1e-3, np.float64: 1e-13}.get(dtype, 1e-6)
        assert_close(found, treadle.tensor(expected).to(found.dtype), rtol=rtol, atol=0)


def test_products_by_columns_have_the_same_bits_with_more_threads() -> None:
    rng = np.random.default_rng(0)
    s = _in("sparse_csc", treadle.tensor(_array(2000, 1000, 400_000)))
    vector = treadle.tensor(rng.normal(size=1000).astype(np.float32))
    before = treadle.get_num_threads()
    try:
        found = []
        for count in (1, 2, 3):
            treadle.set_num_threads(count)
            found.append((s @ vector).numpy())
    finally:
        treadle.set_num_threads(before)
    assert all(np.array_equal(found[0], other) for other in found)


def test_a_product_by_columns_has_gradients_of_two_orders() -> None:
    s = _in("sparse_csc", treadle.tensor(_array(5, 4, 9, np.float64)))
    ccol, row = s.ccol_indices(), s.row_indices()

    def product(values: treadle.Tensor, vector: treadle.Tensor) -> treadle.Tensor:
        return treadle.sparse_csc_tensor(ccol, row, values, (5, 4)) @ vector

    leaves = s.values().clone().requires_grad_(), treadle.randn(4, dtype=treadle.float64)
    leaves[1].requires_grad_()
    assert treadle.autograd.gradcheck(product, leaves)
    assert treadle.autograd.gradgradcheck(product, leaves)


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.to_dense(),
        lambda s: treadle.ones(700) @ s,
        lambda s: s.t().to_dense(),
        lambda s: s.to_sparse_csc(),
    ],
    ids=["strided", "vector", "strided by columns", "by columns"],
)
@pytest.mark.parametrize("index", [-1, 600, -(2**63), 2**63 - 1])
def test_a_column_that_is_changed_later_is_refused(call: Any, index: int) -> None:
    s = _in("sparse_csr", treadle.tensor(_array(700, 600, 90_000)))
    s.col_indices()[12_345] = index
    with pytest.raises(RuntimeError) as error:
        call(s)
    assert str(error.value).endswith(f"expected indices from 0 to 599, got {index}")


@pytest.mark.parametrize("place", [0, 1, 350, 700])
@pytest.mark.parametrize("start", [-1, 200_000, 2**62, 1])
def test_an_offset_that_is_changed_later_is_refused(place: int, start: int) -> None:
    s = _in("sparse_csr", treadle.tensor(_array(700, 600, 90_000)))
    s.crow_indices()[place] = start
    for call in (s.to_sparse_coo, s.to_sparse_csc, s.to_dense):
        if place == 1 and start == 1:
            call()  # one entry, which offsets may say
            continue
        with pytest.raises(RuntimeError, match="expected offsets"):
            call()

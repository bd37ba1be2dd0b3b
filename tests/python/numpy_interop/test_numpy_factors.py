"""Factors of matrices: what they multiply to is as near to the matrix as with NumPy's LAPACK, which
computes with doubles. Errors are counted in the roundings of the type.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle

Array = Any  # of NumPy
# Around the sizes from which factors are computed by blocks, and those of the blocks.
SIZES = [(64, 64), (65, 64), (129, 129), (300, 200), (150, 320), (400, 3), (5000, 8), (700, 12)]
KINDS = ["random", "huge", "tiny", "graded", "nearly singular"]


def _matrix(kind: str, m: int, n: int, dtype: str) -> Array:
    rng = np.random.default_rng(m * n)
    a = rng.standard_normal((m, n))
    if kind == "huge":
        a *= 1e25
    if kind == "tiny":
        a *= 1e-25
    if kind == "graded":
        a *= np.geomspace(1, 1e-9, n)
    if kind == "nearly singular":
        a[:, n // 2 :] = a[:, : n - n // 2] + 1e-6 * a[:, n // 2 :]
    return a.astype(dtype)


def _symmetric(kind: str, n: int, dtype: str) -> Array:
    a = _matrix("random" if kind == "graded" else kind, n, n, "float64")
    a = (a + a.T) / 2
    if kind == "graded":
        scale = np.geomspace(1, 1e-5, n)
        a = a * scale * scale[:, None]
    return a.astype(dtype)


def _residual(product: Array, a: Array, dtype: str) -> float:
    """The largest relative error of a column."""
    size = np.abs(a.astype(np.float64)).max(0)
    return float((np.abs(product - a).max(0) / size).max() / np.finfo(dtype).eps)


def _backward_error(a: Array, x: Array, b: Array, dtype: str) -> float:
    """That of a x = b."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    size = np.abs(a).sum(1).max() * np.abs(x).max() + np.abs(b).max()
    return float(np.abs(a @ x - b).max() / size / np.finfo(dtype).eps)


def _wide(*tensors: treadle.Tensor) -> list[Array]:
    return [t.numpy().astype(np.float64) for t in tensors]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_qr(dtype: str, kind: str) -> None:
    for m, n in SIZES:
        a = _matrix(kind, m, n, dtype)
        q, r = np.linalg.qr(a.astype(np.float64))
        allowed = 3 * _residual(q @ r, a, "float64") + 3
        mine = _wide(*treadle.linalg.qr(treadle.from_numpy(a)))
        assert _residual(mine[0] @ mine[1], a, dtype) < allowed, (m, n)
        packed, tau = treadle.geqrf(treadle.from_numpy(a))
        rows = min(m, n)
        if m < n:
            continue
        product, upper = _wide(
            treadle.linalg.householder_product(packed, tau), packed[:rows].triu()
        )
        assert _residual(product @ upper, a, dtype) < allowed, (m, n)
        error = np.abs(product.T @ product - np.eye(rows)).max() / np.finfo(dtype).eps
        assert error < 10 + m**0.5, (m, n)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lu_and_solutions(dtype: str, kind: str) -> None:
    for m, n in SIZES:
        a = _matrix(kind, m, n, dtype)
        lu, pivots = treadle.linalg.lu_factor(treadle.from_numpy(a))
        p, lower, upper = _wide(*treadle.lu_unpack(lu, pivots))
        assert np.abs(lower).max() <= 1
        assert _residual(p @ (lower @ upper), a, dtype) < 5 * min(m, n), (m, n)
    for n in (64, 100, 257):
        a, b = _matrix(kind, n, n, dtype), _matrix("random", n, 7, dtype)
        for left in (True, False):
            matrix = a if left else a.T.copy()
            sides = treadle.from_numpy(b if left else b.T.copy())
            (mine,) = _wide(treadle.linalg.solve(treadle.from_numpy(matrix), sides, left=left))
            theirs = np.linalg.solve(a.astype(np.float64), b.astype(np.float64))
            error = _backward_error(a, mine if left else mine.T, b, dtype)
            assert error < 3 * _backward_error(a, theirs, b, "float64") + 1, (n, left)


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_least_squares_of_tall_matrices(dtype: str, driver: str) -> None:
    for kind in ("random", "huge", "tiny"):
        for m, n, k in [(300, 3, 2), (256, 7, 1), (500, 20, 30), (9000, 4, 5)]:
            a, b = _matrix(kind, m, n, dtype), _matrix(kind, m + 1, k, dtype)[1:]
            given = treadle.from_numpy(a), treadle.from_numpy(b.copy())
            found = treadle.linalg.lstsq(*given, driver=driver)
            x, distances, rank, _ = np.linalg.lstsq(a.astype(float), b.astype(float), rcond=None)
            rounding = 100 * np.finfo(dtype).eps
            np.testing.assert_allclose(found.solution.numpy(), x, rtol=rounding, atol=rounding)
            if driver != "gelsy":
                # The squares of huge numbers of float have no place in it, nor those of tiny ones.
                if kind == "random" or dtype == "float64":
                    np.testing.assert_allclose(found.residuals.numpy(), distances, rtol=rounding)
            if driver != "gels":
                assert found.rank.item() == rank
    a[:, 1] = a[:, 0]
    found = treadle.linalg.lstsq(treadle.from_numpy(a), treadle.from_numpy(b), driver=driver)
    if driver != "gels":
        assert found.rank.item() == n - 1
        (x,) = _wide(found.solution)
        np.testing.assert_allclose(x[0], x[1], rtol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ldl(dtype: str, kind: str) -> None:
    for n in (64, 127, 128, 200, 333):
        a = _symmetric(kind, n, dtype)
        packed, pivots = treadle.linalg.ldl_factor(treadle.from_numpy(a))
        assert not packed.triu(1).any()
        b = _matrix("random", n, 3, dtype)
        (mine,) = _wide(treadle.linalg.ldl_solve(packed, pivots, treadle.from_numpy(b)))
        theirs = np.linalg.solve(a.astype(np.float64), b.astype(np.float64))
        error = _backward_error(a, mine, b, dtype)
        assert error < 3 * _backward_error(a, theirs, b, "float64") + 1, n


@pytest.mark.parametrize("kind", ["random", "huge", "tiny"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("upper", [True, False])
def test_cholesky(upper: bool, dtype: str, kind: str) -> None:
    for n in (64, 65, 129, 300):
        g = _matrix("random", n, n, "float64")
        scale = {"random": 1, "huge": 1e25, "tiny": 1e-25}[kind]
        a = ((g @ g.T / n + np.eye(n)) * scale).astype(dtype)
        # The other triangle is not read.
        given = np.where(np.tri(n, dtype=bool).T == upper, a, np.nan)
        np.fill_diagonal(given, np.diagonal(a))
        factor = treadle.linalg.cholesky(treadle.from_numpy(given.astype(dtype)), upper=upper)
        (mine,) = _wide(factor)
        product = mine.T @ mine if upper else mine @ mine.T
        assert _residual(product, a, dtype) < 10, n
        assert not np.tril(mine, -1).any() if upper else not np.triu(mine, 1).any()
        a[n // 2, n // 2] = -scale
        _, info = treadle.linalg.cholesky_ex(treadle.from_numpy(a), upper=upper)
        assert info.item() == n // 2 + 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigh(uplo: str, dtype: str, kind: str) -> None:
    for n in (127, 128, 161, 300):
        a = _symmetric(kind, n, dtype)
        given = np.tril(a) if uplo == "L" else np.triu(a)
        values, vectors = treadle.linalg.eigh(treadle.from_numpy(given), UPLO=uplo)
        w, v = _wide(values, vectors)
        size = np.abs(w).max() * np.finfo(dtype).eps
        assert np.abs(a @ v - v * w).max() < 10 * size, n
        assert np.abs(v.T @ v - np.eye(n)).max() < 20 * np.finfo(dtype).eps, n
        assert np.abs(w - np.linalg.eigvalsh(a.astype(np.float64))).max() < n * size, n
        (alone,) = _wide(treadle.linalg.eigvalsh(treadle.from_numpy(given), UPLO=uplo))
        assert np.abs(w - alone).max() < n * size, n


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("full", [True, False])
def test_svd(full: bool, dtype: str, kind: str) -> None:
    for m, n in [(128, 128), (127, 200), (170, 130), (130, 170), (257, 257), (400, 130)]:
        a = _matrix(kind, m, n, dtype)
        k, eps = min(m, n), np.finfo(dtype).eps
        u, s, vh = _wide(*treadle.linalg.svd(treadle.from_numpy(a), full_matrices=full))
        assert u.shape == (m, m if full else k) and vh.shape == (n if full else k, n)
        assert np.abs((u[:, :k] * s) @ vh[:k] - a).max() < 10 * s[0] * eps, (m, n)
        for q in (u, vh.T):
            assert np.abs(q.T @ q - np.eye(q.shape[1])).max() < 40 * eps, (m, n)
        theirs = np.linalg.svd(a.astype(np.float64), compute_uv=False)
        assert (np.diff(s) <= 0).all() and np.abs(s - theirs).max() < 40 * s[0] * eps, (m, n)


def test_sums_that_overflow() -> None:
    a = treadle.from_numpy(_matrix("random", 200, 200, "float32")) * 1e38
    lu, pivots = treadle.linalg.lu_factor(a)
    assert not lu.isfinite().all()
    assert 1 <= pivots.min().item() and pivots.max().item() <= 200
    assert treadle.linalg.ldl_factor(a)[0].shape == a.shape
    assert not treadle.geqrf(a)[0].isfinite().all()
    assert treadle.linalg.cholesky_ex(a)[0].shape == a.shape

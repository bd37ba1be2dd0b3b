"""Linear algebra: factors, solutions, spectra, norms.

Matrices are well away from singular ones and have eigenvalues that differ, so that results are
determined well. The signs and phases of vectors, which are not determined, are settled before
results are compared.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Iterator

import numpy as np
import scipy.linalg

import treadle

from ..sample import Maker, Sample, samples

SHAPES: tuple[tuple[int, ...], ...] = ((3, 3), (1, 1), (2, 4, 4), (0, 0), (0, 3, 3), (2, 0, 0))
OBLONG: tuple[tuple[int, ...], ...] = ((3, 3), (4, 2), (2, 4), (2, 3, 2), (0, 2), (2, 0), (0, 2, 3))


def _adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def regular(make: Maker, shape: tuple[int, ...]) -> Any:
    """Square matrices with an inverse, and eigenvalues that differ."""
    n = shape[-1]
    x = make(shape, -1, 1)
    return (x + np.diag(np.arange(2.0, n + 2.0) * (-1) ** np.arange(n)) * 1.5).astype(x.dtype)


def hermitian(make: Maker, shape: tuple[int, ...]) -> Any:
    x = regular(make, shape)
    return ((x + _adjoint(x)) / 2).astype(x.dtype)


def positive(make: Maker, shape: tuple[int, ...]) -> Any:
    x = make(shape, -1, 1)
    return (x @ _adjoint(x) + np.diag(np.arange(1.0, shape[-1] + 1))).astype(x.dtype)


def oblong(make: Maker, shape: tuple[int, ...]) -> Any:
    """Matrices of full rank with singular values that differ."""
    x = make(shape, -1, 1)
    return (x + 2 * np.eye(*shape[-2:]) * np.arange(1, shape[-1] + 1)).astype(x.dtype)


def symmetrised(x: treadle.Tensor) -> treadle.Tensor:
    return (x + x.mH) / 2


def by_matrix(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one matrix for a batch of them."""

    def g(x: Any, *args: Any, **kwargs: Any) -> Any:
        flat = x.reshape(-1, *x.shape[-2:])
        results = [f(m, *args, **kwargs) for m in flat]
        return np.stack(results).reshape(*x.shape[:-2], *np.shape(results[0]))

    return g


def turned(vectors: Any) -> Any:
    """Columns with the phase of their first entries taken out."""
    return vectors * vectors[..., :1, :].conj()


# ---- Factors


@samples("linalg_cholesky", "cholesky")
def cholesky(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, upper: bool = False) -> Any:
        factor = np.linalg.cholesky(x)
        return _adjoint(factor) if upper else factor

    for shape in SHAPES:
        for upper in (False, True):
            yield Sample(
                positive(make, shape), upper=upper, expect=expect, domain=symmetrised, loose=4
            )
    yield Sample(positive(make, (3, 3)), expect=expect, domain=symmetrised, loose=4)


@samples("linalg_cholesky_ex")
def cholesky_ex(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, **_: Any) -> Any:
        return np.linalg.cholesky(x), np.zeros(x.shape[:-2], dtype=np.int32)

    for shape in SHAPES:
        yield Sample(
            positive(make, shape), check_errors=True, expect=expect, domain=symmetrised, loose=4
        )
    failing = -np.eye(3, dtype=make((1,)).dtype)
    yield Sample(
        failing,
        grad=False,
        settle=lambda r: r[1],
        expect=lambda x: np.asarray(1, dtype=np.int32),
    )


@samples("cholesky_solve")
def cholesky_solve(make: Maker) -> Iterator[Sample]:
    def expect(b: Any, factor: Any, upper: bool = False) -> Any:
        a = _adjoint(factor) @ factor if upper else factor @ _adjoint(factor)
        return np.linalg.solve(a, b)

    for shape, sides in [
        ((3, 3), (3, 2)),
        ((2, 3, 3), (3, 1)),
        ((3, 3), (2, 3, 2)),
        ((0, 0), (0, 2)),
    ]:
        factor = np.linalg.cholesky(positive(make, shape)).astype(make((1,)).dtype)
        yield Sample(make(sides), factor, expect=expect, loose=20)
        yield Sample(
            make(sides), np.ascontiguousarray(_adjoint(factor)), True, expect=expect, loose=20
        )


@samples("cholesky_inverse")
def cholesky_inverse(make: Maker) -> Iterator[Sample]:
    def expect(factor: Any, upper: bool = False) -> Any:
        return np.linalg.inv(_adjoint(factor) @ factor if upper else factor @ _adjoint(factor))

    for shape in SHAPES:
        factor = np.linalg.cholesky(positive(make, shape)).astype(make((1,)).dtype)
        yield Sample(factor, expect=expect, loose=20)
        yield Sample(np.ascontiguousarray(_adjoint(factor)), True, expect=expect, loose=20)


def _lu(x: Any) -> tuple[Any, Any]:
    """Packed factors and the exchanges, from 1."""
    if 0 in x.shape:
        return x, np.zeros((*x.shape[:-2], min(x.shape[-2:])), dtype=np.int32)
    flat = [scipy.linalg.lu_factor(m) for m in x.reshape(-1, *x.shape[-2:])]
    lu = np.stack([f for f, _ in flat]).reshape(x.shape)
    pivots = np.stack([p + 1 for _, p in flat]).astype(np.int32)
    return lu, pivots.reshape(*x.shape[:-2], -1)


def _lu_samples(make: Maker, expect: Callable[..., Any], **kwargs: Any) -> Iterator[Sample]:
    for shape in OBLONG:
        yield Sample(oblong(make, shape), expect=expect, loose=20, **kwargs)


@samples("linalg_lu_factor")
def lu_factor(make: Maker) -> Iterator[Sample]:
    yield from _lu_samples(make, _lu)


@samples("linalg_lu_factor_ex", "_lu_with_info")
def lu_factor_ex(make: Maker) -> Iterator[Sample]:
    yield from _lu_samples(make, lambda x: (*_lu(x), np.zeros(x.shape[:-2], dtype=np.int32)))


def _unpacked(lu: Any, pivots: Any) -> tuple[Any, Any, Any]:
    m, n = lu.shape[-2:]
    k = min(m, n)
    order = np.empty((*lu.shape[:-2], m), dtype=np.int64)
    for index in np.ndindex(*lu.shape[:-2]):
        row = np.arange(m)
        for i, p in enumerate(pivots[index]):
            row[[i, p - 1]] = row[[p - 1, i]]
        order[index] = row
    p = (order[..., None, :] == np.arange(m)[:, None]).astype(lu.dtype)
    return p, np.tril(lu[..., :k], -1) + np.eye(m, k, dtype=lu.dtype), np.triu(lu[..., :k, :])


@samples("linalg_lu")
def lu(make: Maker) -> Iterator[Sample]:
    yield from _lu_samples(make, lambda x: _unpacked(*_lu(x)))


@samples("lu_unpack")
def lu_unpack(make: Maker) -> Iterator[Sample]:
    for shape in OBLONG:
        factors, pivots = _lu(oblong(make, shape))
        yield Sample(factors.astype(make((1,)).dtype), pivots, expect=_unpacked, loose=4)
    factors, pivots = _lu(oblong(make, (3, 2)))
    none = np.zeros((0,), dtype=make((1,)).dtype)
    yield Sample(
        factors.astype(make((1,)).dtype),
        pivots,
        False,
        expect=lambda x, p, _: (_unpacked(x, p)[0], none, none),
        loose=4,
    )
    yield Sample(
        factors.astype(make((1,)).dtype),
        pivots,
        unpack_pivots=False,
        expect=lambda x, p, unpack_pivots: (none, *_unpacked(x, p)[1:]),
        loose=4,
    )


@samples("linalg_lu_solve")
def linalg_lu_solve(make: Maker) -> Iterator[Sample]:
    def expect(lu: Any, pivots: Any, b: Any, left: bool = True, adjoint: bool = False) -> Any:
        p, lower, u = _unpacked(lu, pivots)
        a = p @ lower @ u
        a = _adjoint(a) if adjoint else a
        return (
            np.linalg.solve(a, b) if left else _adjoint(np.linalg.solve(_adjoint(a), _adjoint(b)))
        )

    for shape, sides in [
        ((3, 3), (3, 2)),
        ((2, 3, 3), (3, 3)),
        ((3, 3), (2, 3, 3)),
        ((0, 0), (0, 0)),
    ]:
        factors, pivots = _lu(regular(make, shape))
        factors = factors.astype(make((1,)).dtype)
        for left in (True, False):
            b = make(sides if left else (*sides[:-2], sides[-1], sides[-2]))
            for adjoint in (False, True):
                yield Sample(
                    factors, pivots, b, left=left, adjoint=adjoint, expect=expect, loose=40
                )


@samples("lu_solve")
def lu_solve(make: Maker) -> Iterator[Sample]:
    factors, pivots = _lu(regular(make, (2, 3, 3)))
    p, lower, u = _unpacked(factors, pivots)
    yield Sample(
        make((2, 3, 2)),
        factors.astype(make((1,)).dtype),
        pivots,
        expect=lambda b, f, q: np.linalg.solve(p @ lower @ u, b),
        loose=40,
    )


@samples("linalg_qr")
def linalg_qr(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, mode: str = "reduced") -> Any:
        if mode == "r":
            return np.zeros((0,), dtype=x.dtype), np.linalg.qr(x, "r")
        return tuple(np.linalg.qr(x, mode))

    for shape in OBLONG:
        x = oblong(make, shape)
        yield Sample(x, expect=expect, loose=20)
        yield Sample(x, "complete", expect=expect, loose=20, grad=shape[-2] <= shape[-1])
        yield Sample(x, mode="r", expect=expect, loose=20, grad=False)


@samples("qr")
def qr(make: Maker) -> Iterator[Sample]:
    for some in (True, False):
        yield Sample(
            oblong(make, (3, 2)),
            some,
            expect=lambda x, some: tuple(np.linalg.qr(x, "reduced" if some else "complete")),
            loose=20,
            grad=some,
        )


def _raw_qr(x: Any) -> tuple[Any, Any]:
    flat = [scipy.linalg.qr(m, mode="raw")[0] for m in x.reshape(-1, *x.shape[-2:])]
    k = min(x.shape[-2:])
    a = np.stack([np.ascontiguousarray(f[0]) for f in flat]).reshape(x.shape)
    return a, np.stack([f[1] for f in flat]).reshape(*x.shape[:-2], k)


@samples("geqrf")
def geqrf(make: Maker) -> Iterator[Sample]:
    for shape in [(3, 3), (4, 2), (2, 4), (2, 3, 2)]:
        yield Sample(oblong(make, shape), expect=_raw_qr, grad=False, loose=20)


def _reflected(vectors: Any, tau: Any) -> Any:
    """All of the product of the reflections."""
    m = vectors.shape[-2]
    out = np.broadcast_to(np.eye(m, dtype=vectors.dtype), (*vectors.shape[:-2], m, m)).copy()
    for i in range(tau.shape[-1]):
        v = vectors[..., :, i].copy()
        v[..., :i], v[..., i] = 0, 1
        h = np.eye(m) - tau[..., i, None, None] * v[..., :, None] * v[..., None, :].conj()
        out = out @ h
    return out


@samples("linalg_householder_product", "orgqr")
def householder_product(make: Maker) -> Iterator[Sample]:
    def expect(vectors: Any, tau: Any) -> Any:
        return _reflected(vectors, tau)[..., : vectors.shape[-1]]

    for shape, k in [((3, 3), 3), ((4, 2), 2), ((4, 3), 2), ((2, 3, 2), 2), ((3, 2), 0)]:
        yield Sample(make(shape), make((*shape[:-2], k)), expect=expect, loose=40)


@samples("ormqr")
def ormqr(make: Maker) -> Iterator[Sample]:
    def expect(vectors: Any, tau: Any, x: Any, left: bool = True, transpose: bool = False) -> Any:
        q = _reflected(vectors, tau)
        q = _adjoint(q) if transpose else q
        return q @ x if left else x @ q

    for shape, other in [((3, 3), (3, 2)), ((4, 2), (4, 3)), ((2, 3, 2), (2, 3, 1))]:
        vectors, tau = make(shape, -1, 1), make((*shape[:-2], shape[-1]), -1, 1)
        for transpose in (False, True):
            yield Sample(vectors, tau, make(other), True, transpose, expect=expect, loose=40)
            turned_other = make((*other[:-2], other[-1], other[-2]))
            yield Sample(vectors, tau, turned_other, False, transpose, expect=expect, loose=40)


def _ldl_rebuilt(result: Any) -> Any:
    """L D L^T of factors without exchanges, as those of the samples are."""
    ld = result[0]
    unit = treadle.eye(ld.shape[-1], dtype=ld.dtype)
    lower = ld.tril(-1) + unit
    return lower @ treadle.diag_embed(ld.diagonal(0, -2, -1)) @ lower.mT


@samples("linalg_ldl_factor", "linalg_ldl_factor_ex")
def ldl_factor(make: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        x = positive(make, shape)
        x = (x + 10 * np.diag(np.arange(shape[-1], 0, -1))).astype(x.dtype)
        x = ((x + np.swapaxes(x, -1, -2)) / 2).astype(x.dtype)
        yield Sample(x, settle=_ldl_rebuilt, expect=lambda x: x, grad=False, loose=40)


@samples("linalg_ldl_solve")
def ldl_solve(make: Maker) -> Iterator[Sample]:
    for shape, sides in [((4, 4), (4, 2)), ((2, 3, 3), (3, 1)), ((3, 3), (2, 3, 2))]:
        a = hermitian(make, shape)
        for is_hermitian in (True, False):
            matrix = a if is_hermitian else ((a + np.swapaxes(a, -1, -2)) / 2).astype(a.dtype)
            ld, pivots = treadle.linalg.ldl_factor(
                treadle.from_numpy(matrix), hermitian=is_hermitian
            )
            yield Sample(
                ld.numpy(),
                pivots.numpy(),
                make(sides),
                hermitian=is_hermitian,
                expect=lambda _, __, b, hermitian, a=matrix.astype(np.complex128): _real_if(
                    np.linalg.solve(a, b), b
                ),
                grad=False,
                loose=100,
            )


def _real_if(x: Any, like: Any) -> Any:
    return x if np.iscomplexobj(like) else x.real


# ---- Solutions


SYSTEMS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((3, 3), (3,)),
    ((3, 3), (3, 2)),
    ((2, 3, 3), (2, 3)),
    ((2, 3, 3), (2, 3, 1)),
    ((2, 3, 3), (3, 4)),
    ((3, 3), (2, 3, 2)),
    ((2, 1, 3, 3), (4, 3, 2)),
    ((0, 0), (0, 2)),
    ((0, 0), (0,)),
    ((2, 2), (2, 0)),
    ((0, 2, 2), (0, 2, 1)),
)


def _solved(a: Any, b: Any, left: bool = True, **_: Any) -> Any:
    if not left:
        return np.swapaxes(_solved(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)
    if b.ndim == 1 or b.shape == a.shape[:-1]:
        return np.linalg.solve(a, b[..., None])[..., 0]
    return np.linalg.solve(a, b)


@samples("linalg_solve")
def solve(make: Maker) -> Iterator[Sample]:
    for a, b in SYSTEMS:
        yield Sample(regular(make, a), make(b), expect=_solved, loose=20)
    yield Sample(regular(make, (3, 3)), make((2, 3)), left=False, expect=_solved, loose=20)
    yield Sample(regular(make, (2, 3, 3)), make((4, 3)), left=False, expect=_solved, loose=20)


@samples("linalg_solve_ex")
def solve_ex(make: Maker) -> Iterator[Sample]:
    def expect(a: Any, b: Any, **kwargs: Any) -> Any:
        return _solved(a, b, **kwargs), np.zeros(a.shape[:-2], dtype=np.int32)

    for a, b in SYSTEMS:
        yield Sample(regular(make, a), make(b), check_errors=True, expect=expect, loose=20)
    yield Sample(
        np.zeros((2, 2), dtype=make((1,)).dtype),
        make((2,)),
        expect=lambda a, b: (np.full(2, np.nan, dtype=a.dtype), np.asarray(1, dtype=np.int32)),
        grad=False,
    )


@samples("linalg_solve_triangular")
def solve_triangular(make: Maker) -> Iterator[Sample]:
    def expect(a: Any, b: Any, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
        a = np.triu(a) if upper else np.tril(a)
        if unitriangular:
            n = a.shape[-1]
            a = a * (1 - np.eye(n)) + np.eye(n)
        return _solved(a, b, left) if b.shape != a.shape[:-1] else None

    for a, b in [((3, 3), (3, 2)), ((2, 3, 3), (3, 1)), ((3, 3), (2, 3, 2)), ((0, 0), (0, 2))]:
        for upper in (False, True):
            for unit in (False, True):
                for left in (True, False):
                    sides = b if left else (*b[:-2], b[-1], b[-2])
                    yield Sample(
                        regular(make, a),
                        make(sides),
                        upper=upper,
                        left=left,
                        unitriangular=unit,
                        expect=expect,
                        loose=40,
                    )


@samples("triangular_solve")
def triangular_solve(make: Maker) -> Iterator[Sample]:
    def expect(b: Any, a: Any, upper: bool, transpose: bool, unit: bool) -> Any:
        t = np.triu(a) if upper else np.tril(a)
        if unit:
            t = t * (1 - np.eye(3)) + np.eye(3)
        return np.linalg.solve(np.swapaxes(t, -1, -2) if transpose else t, b), a

    for upper in (False, True):
        for transpose in (False, True):
            yield Sample(
                make((3, 2)),
                regular(make, (3, 3)),
                upper,
                transpose,
                upper,
                expect=expect,
                loose=40,
            )


@samples("linalg_inv", "inverse")
def inv(make: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample(regular(make, shape), expect=np.linalg.inv, loose=20)


@samples("linalg_inv_ex")
def inv_ex(make: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample(
            regular(make, shape),
            check_errors=True,
            expect=lambda x, check_errors: (
                np.linalg.inv(x),
                np.zeros(x.shape[:-2], dtype=np.int32),
            ),
            loose=20,
        )


@samples("linalg_det", "det")
def det(make: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample(regular(make, shape), expect=np.linalg.det, loose=20)
    singular = np.ones((3, 3), dtype=make((1,)).dtype)
    yield Sample(singular, expect=lambda x: np.zeros((), dtype=x.dtype), grad=False)


@samples("linalg_slogdet", "slogdet")
def slogdet(make: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample(regular(make, shape), expect=lambda x: tuple(np.linalg.slogdet(x)), loose=20)


@samples("logdet")
def logdet(make: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample(positive(make, shape), expect=lambda x: np.log(np.linalg.det(x)), loose=20)


@samples("linalg_lstsq")
def lstsq(make: Maker) -> Iterator[Sample]:
    def expect(a: Any, b: Any, driver: Any = None, **_: Any) -> Any:
        vector = b.ndim == a.ndim - 1
        sides = b[..., None] if vector else b
        x = np.linalg.pinv(a) @ sides
        m, n = a.shape[-2:]
        none = np.zeros((0,))
        s = np.linalg.svd(a, compute_uv=False)
        residuals = np.sum(np.abs(a @ x - sides) ** 2, -2)
        if vector:
            x, residuals = x[..., 0], residuals[..., 0]
        return (
            x,
            residuals if m > n and driver not in (None, "gelsy") else none,
            np.full(x.shape[: a.ndim - 2], min(m, n), dtype=np.int64)
            if driver != "gels"
            else np.zeros((0,), dtype=np.int64),
            s if driver in ("gelsd", "gelss") else none,
        )

    for driver in (None, "gels", "gelsy", "gelsd", "gelss"):
        for a, b in [((4, 2), (4, 3)), ((2, 4), (2, 1)), ((2, 3, 2), (2, 3, 2)), ((4, 2), (4,))]:
            yield Sample(
                oblong(make, a),
                make(b),
                driver=driver,
                expect=expect,
                grad=driver is None,
                loose=40,
            )


@samples("linalg_pinv.atol_rtol_float", "linalg_pinv.atol_rtol_tensor", "pinverse")
def pinv(make: Maker) -> Iterator[Sample]:
    for shape in OBLONG:
        yield Sample(oblong(make, shape), expect=np.linalg.pinv, loose=20)


@samples("linalg_pinv")
def pinv_rcond(make: Maker) -> Iterator[Sample]:
    for shape in [(3, 2), (2, 3, 3)]:
        yield Sample(oblong(make, shape), 1e-4, expect=np.linalg.pinv, loose=20)
    yield Sample(
        hermitian(make, (3, 3)),
        1e-4,
        True,
        expect=lambda x, r, h: np.linalg.pinv(x),
        domain=symmetrised,
        loose=20,
    )


@samples("linalg_pinv.rcond_tensor")
def pinv_rcond_tensor(make: Maker) -> Iterator[Sample]:
    yield Sample(
        oblong(make, (2, 3, 2)),
        np.asarray([0.9, 1e-4]),
        expect=lambda x, r: np.stack([np.linalg.pinv(m, c) for m, c in zip(x, r)]),
        grad=False,
        loose=20,
    )


@samples("linalg_matrix_rank.atol_rtol_float")
def matrix_rank(make: Maker) -> Iterator[Sample]:
    for shape in OBLONG:
        yield Sample(
            oblong(make, shape),
            expect=lambda x: np.full(
                x.shape[:-2], 0 if 0 in x.shape[-2:] else min(x.shape[-2:]), dtype=np.int64
            ),
            grad=False,
        )
    low = np.ones((2, 3, 3), dtype=make((1,)).dtype)
    yield Sample(low, expect=lambda x: np.ones(2, dtype=np.int64), grad=False)
    yield Sample(
        low, hermitian=True, expect=lambda x, hermitian: np.ones(2, dtype=np.int64), grad=False
    )


@samples("linalg_matrix_rank.atol_rtol_tensor")
def matrix_rank_tensors(make: Maker) -> Iterator[Sample]:
    x = np.stack([np.diag([3.0, 1.0, 0.1])] * 2).astype(make((1,)).dtype)
    absolute, relative = np.asarray([0.05, 0.5]), np.asarray(0.2)
    for ranks, tolerances in [
        ([3, 2], {"atol": absolute}),
        ([2, 2], {"rtol": relative}),
        ([2, 2], {"atol": absolute, "rtol": relative, "hermitian": True}),
    ]:
        yield Sample(x, **tolerances, expect=lambda x, r=ranks, **_: np.asarray(r), grad=False)


@samples("linalg_matrix_rank")
def matrix_rank_tol(make: Maker) -> Iterator[Sample]:
    x = np.diag([3.0, 1.0, 0.1]).astype(make((1,)).dtype)
    for tol, rank in [(0.05, 3), (0.5, 2), (5.0, 0)]:
        yield Sample(x, tol, expect=lambda x, t, r=rank: np.asarray(r, dtype=np.int64), grad=False)


@samples("linalg_matrix_rank.tol_tensor")
def matrix_rank_tol_tensor(make: Maker) -> Iterator[Sample]:
    x = np.stack([np.diag([3.0, 1.0, 0.1])] * 2).astype(make((1,)).dtype)
    yield Sample(x, np.asarray([0.05, 0.5]), expect=lambda x, t: np.asarray([3, 2]), grad=False)


# ---- Spectra


def _settled_eigh(result: Any) -> Any:
    return result[0], turned(result[1])


@samples("linalg_eigh")
def eigh(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, UPLO: str = "L") -> Any:
        values, vectors = np.linalg.eigh(x, UPLO)
        return values, turned(vectors)

    for shape in SHAPES:
        for triangle in ("L", "U"):
            yield Sample(
                hermitian(make, shape),
                triangle,
                expect=expect,
                settle=_settled_eigh,
                domain=symmetrised,
                loose=20,
            )
    yield Sample(
        hermitian(make, (3, 3)),
        expect=expect,
        settle=_settled_eigh,
        domain=symmetrised,
        loose=20,
    )


@samples("linalg_eigvalsh")
def eigvalsh(make: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample(
            hermitian(make, shape), expect=np.linalg.eigvalsh, domain=symmetrised, loose=20
        )


@samples("symeig")
def symeig(make: Maker) -> Iterator[Sample]:
    yield Sample(
        hermitian(make, (2, 3, 3)),
        True,
        expect=lambda x, _: (np.linalg.eigh(x)[0], turned(np.linalg.eigh(x)[1])),
        settle=_settled_eigh,
        domain=symmetrised,
        loose=20,
    )
    yield Sample(
        hermitian(make, (3, 3)),
        expect=lambda x: (np.linalg.eigvalsh(x), np.zeros((0,), dtype=x.dtype)),
        domain=symmetrised,
        loose=20,
    )


def _real_order(values: Any) -> Any:
    return np.argsort(values.real, axis=-1)


def _sorted_values(values: treadle.Tensor) -> treadle.Tensor:
    return values.gather(-1, values.detach().real.argsort(-1))


def _sorted_eig(result: Any) -> Any:
    values, vectors = result
    order = values.detach().real.argsort(-1)
    return values.gather(-1, order), turned(
        vectors.gather(-1, order.unsqueeze(-2).expand(vectors.shape))
    )


@samples("linalg_eig")
def eig(make: Maker) -> Iterator[Sample]:
    def expect(x: Any) -> Any:
        values, vectors = np.linalg.eig(x)
        order = _real_order(values)
        return (
            np.take_along_axis(values, order, -1).astype(np.complex128),
            turned(np.take_along_axis(vectors, order[..., None, :], -1)).astype(np.complex128),
        )

    for shape in SHAPES:
        yield Sample(regular(make, shape), expect=expect, settle=_sorted_eig, loose=40)


@samples("linalg_eigvals")
def eigvals(make: Maker) -> Iterator[Sample]:
    def expect(x: Any) -> Any:
        values = np.linalg.eigvals(x)
        return np.take_along_axis(values, _real_order(values), -1).astype(np.complex128)

    for shape in SHAPES:
        yield Sample(regular(make, shape), expect=expect, settle=_sorted_values, loose=40)


def _settled_svd(result: Any) -> Any:
    """U and Vh share a phase for each value: a product of the two, and U without it."""
    u, s, vh = result
    k = s.shape[-1]
    return turned(u[..., :k]), s, u[..., :k] @ vh[..., :k, :]


@samples("linalg_svd")
def svd(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, full_matrices: bool = True) -> Any:
        u, s, vh = np.linalg.svd(x, full_matrices=False)
        return turned(u) if u.shape[-2] else u, s, u @ vh

    for shape in OBLONG:
        for full in (False, True):
            yield Sample(
                oblong(make, shape),
                full,
                expect=expect,
                settle=_settled_svd,
                grad=not full or shape[-1] == shape[-2],
                loose=40,
            )
    yield Sample(oblong(make, (3, 3)), expect=expect, settle=_settled_svd, loose=40)


@samples("svd")
def old_svd(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, *_: Any) -> Any:
        u, s, vh = np.linalg.svd(x, full_matrices=False)
        return turned(u), s, u @ vh

    def settle(result: Any) -> Any:
        u, s, v = result
        return _settled_svd((u, s, v.mH))

    yield Sample(oblong(make, (3, 2)), expect=expect, settle=settle, loose=40)
    yield Sample(oblong(make, (2, 3)), True, True, expect=expect, settle=settle, loose=40)
    yield Sample(
        oblong(make, (3, 2)),
        compute_uv=False,
        expect=lambda x, compute_uv: (
            np.zeros((3, 3), dtype=x.dtype),
            np.linalg.svd(x, compute_uv=False),
            np.zeros((2, 2), dtype=x.dtype),
        ),
        loose=40,
    )


@samples("linalg_svdvals")
def svdvals(make: Maker) -> Iterator[Sample]:
    for shape in OBLONG:
        yield Sample(
            oblong(make, shape),
            expect=lambda x: (
                np.linalg.svd(x, compute_uv=False)
                if x.size
                else np.zeros((*x.shape[:-2], min(x.shape[-2:])))
            ),
            loose=40,
        )


@samples("linalg_matrix_exp", "matrix_exp")
def matrix_exp(make: Maker) -> Iterator[Sample]:
    def expect(x: Any) -> Any:
        return by_matrix(scipy.linalg.expm)(x) if x.size else x

    for shape in SHAPES:
        yield Sample(make(shape, -1, 1), expect=expect, loose=40)
    # Far from 0, where the result is reached by squaring.
    yield Sample(
        (make((2, 3, 3), -1, 1) * np.asarray(6)).astype(make((1,)).dtype),
        expect=expect,
        grad=False,
        loose=1000,
    )


@samples("linalg_matrix_power", "matrix_power")
def matrix_power(make: Maker) -> Iterator[Sample]:
    inverses = () if make.is_integral or "float16" in make.dtype else (-1, -3)
    for n in (0, 1, 2, 5, *inverses):
        for shape in [(3, 3), (2, 2, 2), (0, 0)]:
            yield Sample(
                (regular(make, shape) / np.asarray(2)).astype(make((1,)).dtype),
                n,
                expect=np.linalg.matrix_power,
                loose=100,
            )

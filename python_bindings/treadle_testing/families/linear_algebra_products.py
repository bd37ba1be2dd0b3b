"""Products of vectors, matrices and tensors."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Iterator

import numpy as np
import scipy.linalg

from ..sample import Maker, Sample, samples
from .linear_algebra import regular


@samples("trace")
def trace(make: Maker) -> Iterator[Sample]:
    for shape in [(3, 3), (2, 4), (0, 3)]:
        yield Sample(make(shape), expect=np.trace)


@samples("linalg_diagonal")
def linalg_diagonal(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
        return np.diagonal(x, offset, dim1, dim2)

    yield Sample(make((2, 3, 4)), expect=expect)
    yield Sample(make((2, 3, 4)), offset=-1, dim1=0, dim2=1, expect=expect)


@samples("linalg_matmul")
def linalg_matmul(make: Maker) -> Iterator[Sample]:
    yield Sample(make((2, 3, 4)), make((4, 2)), expect=np.matmul, loose=4)


@samples("linalg_vecdot")
def vecdot(make: Maker) -> Iterator[Sample]:
    def expect(a: Any, b: Any, dim: int = -1) -> Any:
        return np.sum(np.conj(a) * b, dim)

    for a, b, dim in [
        ((3,), (3,), -1),
        ((2, 3), (3,), -1),
        ((3, 2), (3, 1), 0),
        ((2, 0), (2, 0), 1),
    ]:
        yield Sample(make(a), make(b), dim=dim, expect=expect, loose=4)


@samples("vdot")
def vdot(make: Maker) -> Iterator[Sample]:
    for n in (4, 1, 0):
        yield Sample(make((n,)), make((n,)), expect=np.vdot, loose=4)


@samples("inner")
def inner(make: Maker) -> Iterator[Sample]:
    for a, b in [((3,), (3,)), ((2, 3), (4, 3)), ((), (2, 2)), ((2, 1, 3), (3,)), ((2, 0), (3, 0))]:
        yield Sample(make(a), make(b), expect=np.inner, loose=4)


CHAINS: tuple[tuple[tuple[int, ...], ...], ...] = (
    ((2, 3), (3, 4)),
    ((2, 3), (3, 4), (4, 1)),
    ((2, 5), (5, 1), (1, 4), (4, 3)),
)


@samples("linalg_multi_dot")
def multi_dot(make: Maker) -> Iterator[Sample]:
    for shapes in (*CHAINS, ((3,), (3, 2)), ((2, 3), (3,)), ((3,), (3, 2), (2,))):
        yield Sample(
            [make(s) for s in shapes],
            expect=lambda ms: np.linalg.multi_dot(ms) if len(ms) > 2 else ms[0] @ ms[1],
            loose=20,
        )


@samples("chain_matmul")
def chain_matmul(make: Maker) -> Iterator[Sample]:
    for shapes in (*CHAINS, ((2, 3),)):
        yield Sample(
            [make(s) for s in shapes],
            expect=lambda ms: np.linalg.multi_dot(ms) if len(ms) > 1 else ms[0],
            loose=20,
        )


@samples("linalg_cross")
def linalg_cross(make: Maker) -> Iterator[Sample]:
    def expect(a: Any, b: Any, dim: int = -1) -> Any:
        return np.cross(a, b, axis=dim).astype(a.dtype)

    for a, b, dim in [
        ((3,), (3,), -1),
        ((2, 3), (2, 3), 1),
        ((3, 2), (3, 2), 0),
        ((2, 3), (1, 3), -1),
    ]:
        yield Sample(make(a), make(b), dim=dim, expect=expect, loose=4)
    yield Sample(make((0, 3)), make((0, 3)), expect=expect)


@samples("cross")
def cross(make: Maker) -> Iterator[Sample]:
    yield Sample(
        make((3, 2)),
        make((3, 2)),
        expect=lambda a, b: np.cross(a, b, axis=0).astype(a.dtype),
        loose=4,
    )
    yield Sample(
        make((3, 3)),
        make((3, 3)),
        -1,
        expect=lambda a, b, d: np.cross(a, b).astype(a.dtype),
        loose=4,
    )


@samples("linalg_tensorinv")
def tensorinv(make: Maker) -> Iterator[Sample]:
    for shape, ind in [((4, 2, 2), 1), ((2, 3, 6), 2)]:
        n = math.prod(shape[:ind])
        yield Sample(
            regular(make, (n, n)).reshape(shape), ind=ind, expect=np.linalg.tensorinv, loose=40
        )


@samples("linalg_tensorsolve")
def tensorsolve(make: Maker) -> Iterator[Sample]:
    yield Sample(
        regular(make, (6, 6)).reshape(2, 3, 6),
        make((2, 3)),
        expect=np.linalg.tensorsolve,
        loose=40,
    )
    yield Sample(
        np.ascontiguousarray(np.moveaxis(regular(make, (4, 4)).reshape(2, 2, 4), 2, 0)),
        make((2, 2)),
        dims=[0],
        expect=lambda a, b, dims: np.linalg.tensorsolve(a, b, axes=dims),
        loose=40,
    )
    # The sizes in front are not those of the other, but hold as many elements.
    yield Sample(
        regular(make, (6, 6)).reshape(2, 3, 6),
        make((2, 3)),
        dims=[0, 2],
        expect=lambda a, b, dims: np.linalg.solve(
            np.moveaxis(a, dims, [1, 2]).reshape(6, 6), b.reshape(6)
        ),
        loose=40,
    )


@samples("linalg_vander")
def vander(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, N: Any = None) -> Any:
        n = x.shape[-1] if N is None else N
        return x[..., None] ** np.arange(n, dtype=np.uint64 if x.dtype == np.uint64 else np.int64)

    yield Sample(make((4,)), expect=expect, loose=20)
    yield Sample(make((2, 3)), N=5, expect=expect, loose=20)
    yield Sample(make((3,)), N=1, expect=expect)
    yield Sample(make(()), N=3, expect=lambda x, N: expect(x.reshape(1), N), loose=20)


EQUATIONS: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...] = (
    ("ij,jk->ik", ((2, 3), (3, 4))),
    ("bij,bjk->bik", ((2, 2, 3), (2, 3, 2))),
    ("ii", ((3, 3),)),
    ("ii->i", ((3, 3),)),
    ("ij->ji", ((2, 3),)),
    ("ij->", ((2, 3),)),
    ("i,j->ij", ((2,), (3,))),
    ("i,i", ((3,), (3,))),
    ("...ij,...jk->...ik", ((2, 2, 3), (3, 2))),
    ("...i->...", ((2, 3),)),
    ("b...,b...->b...", ((2, 3), (2, 3))),
    ("ij,jk,kl->il", ((2, 3), (3, 2), (2, 3))),
    ("bn,anm,bm->ba", ((2, 2), (3, 2, 3), (2, 3))),
    ("iij,jk->ik", ((2, 2, 3), (3, 2))),
    ("iji->ij", ((2, 3, 2),)),
    ("iii->i", ((2, 2, 2),)),
    (" i j , j k -> i k ", ((2, 3), (3, 4))),
    ("ab,cd", ((2, 3), (2, 2))),
    ("ba", ((2, 3),)),
    (",ij->ij", ((), (2, 2))),
    ("ij,ij->ij", ((2, 1), (2, 3))),
    ("ij,jk->ik", ((0, 3), (3, 2))),
    ("ij,jk->ik", ((2, 0), (0, 3))),
)


def _einsum(equation: str, operands: Any, **_: Any) -> Any:
    if equation == "ij,ij->ij":  # NumPy does not broadcast a label
        return operands[0] * operands[1]
    if equation in ("ii", "ij->", "...i->...") and operands[0].dtype.kind in "bui":
        operands = [operands[0].astype(np.int64)]  # what is summed in the end is so as by sum()
    return np.asarray(np.einsum(equation, *operands))


@samples("einsum")
def einsum(make: Maker) -> Iterator[Sample]:
    for equation, shapes in EQUATIONS:
        yield Sample(equation, [make(s) for s in shapes], expect=_einsum, loose=20)
    yield Sample(
        "ij,jk,kl->il",
        [make((2, 3)), make((3, 2)), make((2, 3))],
        path=[1, 2, 0, 1],
        expect=_einsum,
        loose=20,
    )


@samples("tensordot")
def tensordot(make: Maker) -> Iterator[Sample]:
    for a, b, of_a, of_b in [
        ((2, 3), (3, 4), [1], [0]),
        ((2, 3, 4), (4, 3), [1, 2], [1, 0]),
        ((2, 3), (4, 2), [-2], [-1]),
        ((2,), (3,), [], []),
        ((), (3,), [], []),
        ((2, 0), (0, 3), [1], [0]),
    ]:
        x, y = make(a), make(b)
        yield Sample(
            x,
            y,
            of_a,
            of_b,
            expect=lambda a, b, m, n: np.tensordot(a, b, (m, n)),
            loose=20,
            as_written=(x, y, (of_a, of_b)),
        )


@samples("kron")
def kron(make: Maker) -> Iterator[Sample]:
    for a, b in [((2, 3), (3, 2)), ((2,), (3,)), ((2,), (2, 2)), ((), (3,)), ((0, 2), (2, 2))]:
        yield Sample(make(a), make(b), expect=np.kron)


def _added(self: Any, product: Any, beta: Any, alpha: Any) -> Any:
    if product.dtype == bool:
        return (self & bool(beta)) | (product & bool(alpha))
    return (0 if beta == 0 else beta * self) + alpha * product


@samples("addmv")
def addmv(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, m: Any, v: Any, beta: Any = 1, alpha: Any = 1) -> Any:
        return _added(x, m @ v, beta, alpha)

    for shape in [(3,), (1,), ()]:
        yield Sample(make(shape), make((3, 2)), make((2,)), expect=expect, loose=8)
        yield Sample(make(shape), make((3, 2)), make((2,)), beta=2, alpha=3, expect=expect, loose=8)
    yield Sample(make((3,)), make((3, 2)), make((2,)), beta=0, expect=expect, loose=8)


@samples("addr")
def addr(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Any:
        return _added(x, np.outer(a, b), beta, alpha)

    for shape in [(3, 2), (2,), ()]:
        yield Sample(make(shape), make((3,)), make((2,)), expect=expect, loose=8)
        yield Sample(make(shape), make((3,)), make((2,)), beta=2, alpha=3, expect=expect, loose=8)
    yield Sample(make((3, 2)), make((3,)), make((2,)), beta=0, expect=expect, loose=8)


@samples("addbmm")
def addbmm(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Any:
        return _added(x, np.sum(a @ b, 0), beta, alpha)

    for shape in [(3, 2), (2,), ()]:
        yield Sample(make(shape), make((2, 3, 4)), make((2, 4, 2)), expect=expect, loose=20)
    yield Sample(
        make((3, 2)), make((2, 3, 4)), make((2, 4, 2)), beta=2, alpha=3, expect=expect, loose=20
    )
    yield Sample(make((3, 2)), make((0, 3, 4)), make((0, 4, 2)), expect=expect, loose=20)


@samples("block_diag")
def block_diag(make: Maker) -> Iterator[Sample]:
    for shapes in [((2, 3), (1, 1), (3, 2)), ((2,), (), (2, 2)), ((2, 2),), ((0, 2), (2, 1))]:
        yield Sample(
            [make(s) for s in shapes],
            expect=lambda blocks: scipy.linalg.block_diag(*blocks),
        )


@samples("cartesian_prod")
def cartesian_prod(make: Maker) -> Iterator[Sample]:
    def expect(vectors: Any) -> Any:
        if len(vectors) == 1:
            return vectors[0]
        grids = np.meshgrid(*vectors, indexing="ij")
        return np.stack(grids, -1).reshape(-1, len(vectors))

    for sizes in [(2, 3), (2, 1, 3), (3,), (2, 0)]:
        yield Sample([make((n,)) for n in sizes], expect=expect)

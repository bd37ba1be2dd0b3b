"""Norms, condition numbers and distances."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator

import numpy as np
from scipy.spatial import distance

import treadle

from ..sample import Maker, Sample, samples
from .linear_algebra import oblong, regular

ORDERS = (1, -1, 2, -2, float("inf"), float("-inf"))


def _norm(x: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, **_: Any) -> Any:
    axis = tuple(dim) if isinstance(dim, (list, tuple)) else dim
    if axis is None and ord is None:
        result = np.linalg.norm(x.reshape(-1))
        return np.full((1,) * x.ndim, result) if keepdim else np.asarray(result)
    if isinstance(axis, tuple) and len(axis) == 1:
        axis = axis[0]
    if axis is not None and not isinstance(axis, tuple) and ord == "fro":
        ord = None
    return np.asarray(np.linalg.norm(x, ord, axis, keepdim))


@samples("linalg_matrix_norm")
def matrix_norm(make: Maker) -> Iterator[Sample]:
    for order in ORDERS:
        x = oblong(make, (2, 3, 4))
        for dim, keepdim in [((-2, -1), False), ((0, 2), True), ((2, 1), False)]:
            yield Sample(x, order, dim, keepdim, expect=_norm, loose=40)


@samples("linalg_matrix_norm.str_ord")
def matrix_norm_str(make: Maker) -> Iterator[Sample]:
    for order in ("fro", "nuc"):
        for dim, keepdim in [((-2, -1), False), ((0, 2), True), ((2, 1), False)]:
            yield Sample(oblong(make, (2, 3, 4)), order, dim, keepdim, expect=_norm, loose=40)
    yield Sample(oblong(make, (3, 2)), expect=lambda x: _norm(x, "fro"), loose=40)


@samples("linalg_norm")
def linalg_norm(make: Maker) -> Iterator[Sample]:
    for shape in [(5,), (3, 2), (2, 3, 2), ()]:
        yield Sample(make(shape, 0.5, 2), expect=_norm, loose=20)
        yield Sample(make(shape, 0.5, 2), keepdim=True, expect=_norm, loose=20)
    for order in ORDERS:
        yield Sample(oblong(make, (3, 2)), order, expect=_norm, loose=40)
        convention = "a zero makes a norm of negative order 0, with no second derivative"
        options: Any = {"expect": _norm, "loose": 20, "convention": convention if order < 0 else ""}
        yield Sample(make((5,), 0.5, 2), order, **options)
        yield Sample(make((2, 3), 0.5, 2), order, [1], True, **options)
    yield Sample(make((2, 3), 0.5, 2), dim=[0], expect=_norm, loose=20)


@samples("linalg_norm.ord_str")
def linalg_norm_str(make: Maker) -> Iterator[Sample]:
    for order in ("fro", "nuc"):
        yield Sample(oblong(make, (3, 2)), order, expect=_norm, loose=40)
        yield Sample(oblong(make, (2, 3, 2)), order, [-2, -1], True, expect=_norm, loose=40)


@samples("norm.str_dim")
def norm_str(make: Maker) -> Iterator[Sample]:
    yield Sample(oblong(make, (3, 2)), "nuc", expect=_norm, loose=40)
    yield Sample(oblong(make, (2, 3)), "fro", expect=lambda x, p: _norm(x), loose=40)
    yield Sample(make((2, 3), 0.5, 2), dim=[1], expect=_norm, loose=40)


@samples("norm.optional_dim")
def norm_optional(make: Maker) -> Iterator[Sample]:
    yield Sample(make((2, 3), 0.5, 2), None, None, expect=_norm, loose=20)
    yield Sample(
        make((2, 3), 0.5, 2), 1, None, expect=lambda x, *_: np.asarray(np.abs(x).sum()), loose=20
    )
    # The norm of a number is that of a vector, over two dimensions too.
    for p, dim, keepdim in [(2, [0], False), (1, [-1], True), (3, [0, 1], False)]:
        yield Sample(
            make((2, 3), 0.5, 2),
            p,
            dim,
            keepdim,
            dtype=treadle.complex128 if make.is_complex else treadle.float64,
            expect=lambda x, p, dim, keepdim, dtype: (
                (abs(x) ** p).sum(axis=tuple(dim), keepdims=keepdim) ** (1 / p)
            ),
            loose=20,
        )


@samples("linalg_cond")
def cond(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, p: Any = None) -> Any:
        return np.asarray(np.linalg.cond(x, p))

    for shape in [(3, 3), (2, 2, 2)]:
        for order in (None, *ORDERS):
            yield Sample(regular(make, shape), order, expect=expect, loose=100)
    yield Sample(oblong(make, (3, 2)), expect=expect, loose=100)
    yield Sample(
        np.zeros((2, 2), dtype=make((1,)).dtype),
        1,
        expect=lambda x, p: np.asarray(np.inf),
        grad=False,
    )


@samples("linalg_cond.p_str")
def cond_str(make: Maker) -> Iterator[Sample]:
    for order in ("fro", "nuc"):
        yield Sample(
            regular(make, (2, 3, 3)), order, expect=lambda x, p: np.linalg.cond(x, p), loose=100
        )


def _minkowski(a: Any, b: Any, p: float) -> Any:
    """The p-norm of the difference along the last dimension."""
    d = np.abs(a - b)
    if p == 0:
        return np.sum(d != 0, -1).astype(d.dtype)
    return np.max(d, -1) if p == float("inf") else np.sum(d**p, -1) ** (1 / p)


@samples("cdist")
def cdist(make: Maker) -> Iterator[Sample]:
    def expect(a: Any, b: Any, p: float = 2.0, _: Any = None) -> Any:
        return _minkowski(a[..., :, None, :], b[..., None, :, :], p)

    for p in (0.0, 1.0, 1.5, 2.0, 3.0, float("inf")):
        for a, b in [((3, 2), (4, 2)), ((2, 3, 2), (2, 1, 2)), ((2, 1, 3, 2), (2, 2, 2))]:
            yield Sample(make(a), make(b), p, expect=expect, grad=p > 0, loose=20)
    yield Sample(make((0, 3)), make((2, 3)), expect=expect)
    yield Sample(make((3, 0)), make((2, 0)), expect=lambda a, b: np.zeros((3, 2)))
    yield Sample(make((3, 2)), make((2, 2)), 2.0, 1, expect=expect, loose=20)


@samples("pdist")
def pdist(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, p: float = 2.0) -> Any:
        i, j = np.triu_indices(x.shape[0], 1)
        return _minkowski(x[i], x[j], p)

    for p in (1.0, 2.0, 3.0, float("inf")):
        yield Sample(make((4, 3)), p, expect=expect, loose=20)
    yield Sample(make((5, 2)), expect=lambda x: distance.pdist(x), loose=20)
    yield Sample(make((1, 2)), expect=expect)
    yield Sample(make((0, 2)), expect=expect)


@samples("pairwise_distance")
def pairwise_distance(make: Maker) -> Iterator[Sample]:
    def expect(a: Any, b: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
        result = _minkowski(a + eps, b, p)
        return result[..., None] if keepdim else result

    for a, b in [((3, 4), (3, 4)), ((4,), (4,)), ((2, 3, 4), (4,))]:
        for p in (1.0, 2.0, 3.0):
            yield Sample(make(a), make(b), p, 1e-3, True, expect=expect, loose=20)
    yield Sample(make((3, 4)), make((3, 4)), expect=expect, loose=20)


@samples("cosine_similarity")
def cosine_similarity(make: Maker) -> Iterator[Sample]:
    def expect(a: Any, b: Any, dim: int = 1, eps: float = 1e-8) -> Any:
        a, b = np.broadcast_arrays(a, b)
        norms = [np.maximum(np.linalg.norm(x, axis=dim), eps) for x in (a, b)]
        return np.sum(a * b, dim) / (norms[0] * norms[1])

    for a, b, dim in [
        ((3, 4), (3, 4), 1),
        ((3, 4), (1, 4), 0),
        ((5,), (5,), 0),
        ((2, 3, 4), (3, 4), -1),
    ]:
        yield Sample(make(a), make(b), dim, expect=expect, loose=20)
    yield Sample(make((3, 4)), make((3, 4)), eps=100.0, expect=expect, loose=20)

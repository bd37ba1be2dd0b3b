"""Covariances and correlations from their definitions, and distances of tensors."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Iterator

import numpy as np

from ..sample import Maker, Sample, samples

SHAPES: tuple[tuple[int, ...], ...] = ((3, 5), (5,), (1, 4), (3, 2), (4, 1), (), (0, 3), (2, 0))


def _cov(x: Any, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    rows = np.atleast_2d(x)
    f = np.ones(rows.shape[1]) if fweights is None else np.atleast_1d(fweights).astype(np.float64)
    a = np.ones(rows.shape[1]) if aweights is None else np.atleast_1d(aweights)
    weights = f * a
    total = weights.sum()
    centred = rows - (rows * weights).sum(1, keepdims=True) / total
    lost = correction if aweights is None else correction * (weights * a).sum() / total
    result = (centred * weights) @ centred.conj().T / np.float64(max(total - lost, 0))
    return result.reshape(()) if len(rows) == 1 else result


@samples("cov")
def cov(make: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample(make(shape), expect=_cov, loose=4, grad=np.prod(shape) > 1 and shape[-1] > 1)
    for correction in (0, 2, -1):
        yield Sample(make((3, 5)), correction=correction, expect=_cov, loose=4)
    # No degrees of freedom are left. Complex zeros, or what rounding left there, times infinity are
    # no numbers that could be compared.
    if not make.is_complex:
        yield Sample(make((2, 3)), correction=7, grad=False, expect=_cov)
    often = np.array([1, 0, 3, 2])
    much = Maker("float64")((4,), 0.5, 1.5)
    if make.dtype == "float32":
        much = much.astype(np.float32)
    for shape in [(3, 4), (4,)]:
        for correction in (0, 1):
            yield Sample(make(shape), correction=correction, fweights=often, expect=_cov, loose=8)
            yield Sample(make(shape), correction=correction, aweights=much, expect=_cov, loose=8)
            yield Sample(
                make(shape),
                correction=correction,
                fweights=often,
                aweights=much,
                expect=_cov,
                loose=8,
            )
    yield Sample(make(()), correction=0, fweights=np.array(2), expect=_cov, grad=False)


@samples("corrcoef")
def corrcoef(make: Maker) -> Iterator[Sample]:
    def expect(x: Any) -> Any:
        c = np.asarray(_cov(x))
        if c.ndim == 0:
            return c / c
        deviation = np.sqrt(np.diagonal(c).real)
        c = c / deviation[:, None] / deviation
        if np.iscomplexobj(c):
            return c.real.clip(-1, 1) + 1j * c.imag.clip(-1, 1)
        return c.clip(-1, 1)

    for shape in SHAPES:
        usable = len(shape) == 2 and shape[0] > 1 and shape[1] > 2
        yield Sample(make.distinct(shape), expect=expect, loose=8, grad=usable)
    # A row that does not vary correlates with nothing.
    x = make((3, 4))
    x[1] = 1
    yield Sample(x, expect=expect, loose=8, grad=False)


def _norm(x: Any, p: Any, axis: Any = None) -> Any:
    x = abs(x)
    if p == math.inf:
        return x.max(axis=axis)
    if p == 0:
        return np.count_nonzero(x, axis=axis).astype(np.float64)
    return (x**p).sum(axis=axis) ** (1 / p)


@samples("dist")
def dist(make: Maker) -> Iterator[Sample]:
    def expect(a: Any, b: Any, p: Any = 2) -> Any:
        return _norm(a - b, p)

    for a, b in [((3, 4), (3, 4)), ((3, 4), (4,)), ((2, 1), (1, 3)), ((), ()), ((), (3,))]:
        yield Sample(make(a, 0, 1), make(b, 2, 3), expect=expect, loose=4)
        for p in (1, 3, 2.5, math.inf, 0):
            # The count of differing elements has steps, which finite differences see.
            yield Sample(make(a, 0, 1), make(b, 2, 3), p, expect=expect, loose=8, grad=p != 0)
    yield Sample(make((0, 3)), make((3,)), expect=expect)


@samples("renorm")
def renorm(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, p: Any, dim: int, most: Any) -> Any:
        slices = np.moveaxis(x, dim, 0).reshape(x.shape[dim], -1)
        norm = _norm(slices, p, 1) if x.size else np.zeros(x.shape[dim])
        # The small number is a part of the definition.
        factor = np.where(norm > most, most / (norm + 1e-7), 1)
        return np.moveaxis(np.moveaxis(x, dim, -1) * factor, -1, dim)

    for shape, dim in [((3, 4), 0), ((3, 4), -1), ((2, 3, 4), 1), ((0, 3), 1)]:
        for p in (2, 1, 3.5):
            for most in (1.5, 2, 100):
                yield Sample(make(shape), p, dim, most, expect=expect, loose=4)
    yield Sample(make((3, 4)), 2, 1, 0, expect=expect, grad=False)
    yield Sample(make((3, 4)), math.inf, 0, 0.75, expect=expect, loose=4)

"""Matrix products."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from ..sample import Maker, Sample, samples


def _product(a: Any, b: Any, *_: Any) -> Any:
    if a.dtype == bool:
        return (a.astype(np.int64) @ b.astype(np.int64)) > 0
    return a @ b


@samples("mm")
def mm(make: Maker) -> Iterator[Sample]:
    for n, k, m in [(3, 4, 5), (1, 1, 1), (0, 3, 2), (2, 0, 3), (70, 33, 65)]:
        yield Sample(make((n, k)), make((k, m)), expect=_product, grad=n < 10, loose=4)


@samples("bmm")
def bmm(make: Maker) -> Iterator[Sample]:
    for b, n, k, m in [(2, 3, 4, 5), (0, 2, 2, 2), (3, 2, 0, 2)]:
        yield Sample(make((b, n, k)), make((b, k, m)), expect=_product, loose=4)


def _added(self: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    if self.dtype == bool:
        return self | _product(a, b)
    return beta * self + alpha * (a @ b)


@samples("addmm")
def addmm(make: Maker) -> Iterator[Sample]:
    for shape in [(3, 5), (5,), (3, 1), ()]:
        yield Sample(make(shape), make((3, 4)), make((4, 5)), expect=_added, loose=4)
    if make.dtype != "bool":
        yield Sample(
            make((3, 5)), make((3, 4)), make((4, 5)), beta=2, alpha=3, expect=_added, loose=8
        )
        yield Sample(make((3, 5)), make((3, 4)), make((4, 5)), beta=0, expect=_added, loose=4)


@samples("baddbmm")
def baddbmm(make: Maker) -> Iterator[Sample]:
    for shape in [(2, 3, 5), (3, 5), (1,)]:
        yield Sample(make(shape), make((2, 3, 4)), make((2, 4, 5)), expect=_added, loose=4)


@samples("matmul")
def matmul(make: Maker) -> Iterator[Sample]:
    shapes = [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((2, 3), (3, 4)),
        ((5, 2, 3), (3, 4)),
        ((5, 2, 3), (5, 3, 4)),
        ((5, 1, 2, 3), (4, 3, 2)),
        ((2, 3), (5, 3, 4)),
        ((3,), (5, 3, 4)),
        ((5, 2, 3), (3,)),
    ]
    for a, b in shapes:
        yield Sample(make(a), make(b), expect=np.matmul, loose=4)


@samples("dot")
def dot(make: Maker) -> Iterator[Sample]:
    yield Sample(make((7,)), make((7,)), expect=lambda a, b: np.sum(a * b), loose=4)


@samples("mv")
def mv(make: Maker) -> Iterator[Sample]:
    yield Sample(make((3, 4)), make((4,)), expect=np.matmul, loose=4)


@samples("outer", "ger")
def outer(make: Maker) -> Iterator[Sample]:
    yield Sample(make((3,)), make((4,)), expect=lambda a, b: a[:, None] * b)


@samples("linear")
def linear(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, w: Any, b: Any = None) -> Any:
        return x @ w.T + (0 if b is None else b)

    for shape in [(4,), (3, 4), (2, 3, 4), (0, 4)]:
        yield Sample(make(shape), make((5, 4)), make((5,)), expect=expect, loose=4)
        yield Sample(make(shape), make((5, 4)), expect=expect, loose=4)

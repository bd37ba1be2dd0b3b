"""Tensors put together."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Iterator

import numpy as np

from ..sample import Maker, Sample, samples


def _cat(make: Maker) -> Iterator[Sample]:
    for shapes, dim in [
        ([(2, 3), (4, 3)], 0),
        ([(2, 3), (2, 1), (2, 2)], -1),
        ([(3,)], 0),
        ([(0, 3), (2, 3)], 0),
        ([(40,), (30,)], 0),
    ]:
        yield Sample([make(s) for s in shapes], dim, expect=np.concatenate)
    # A tensor of shape (0,) is passed over whatever the others' shape.
    yield Sample([make((2, 3)), make((0,))], 1, expect=lambda x, d: x[0])
    if make.dtype == "int64":
        yield Sample([make((2,)), Maker("float64")((3,))], 0, grad=False, expect=np.concatenate)
        yield Sample([make((2,)), Maker("bool")((3,))], 0, expect=np.concatenate)


for _name in ("cat", "concat", "concatenate"):
    samples(_name)(_cat)


@samples("stack")
def stack(make: Maker) -> Iterator[Sample]:
    for shape, count, dim in [
        ((2, 3), 2, 0),
        ((2, 3), 3, -1),
        ((2, 3), 2, 1),
        ((), 4, 0),
        ((0, 2), 2, 2),
    ]:
        yield Sample([make(shape) for _ in range(count)], dim, expect=np.stack)


def _along(
    reference: Callable[..., Any], *groups: list[tuple[int, ...]]
) -> Callable[[Maker], Iterator[Sample]]:
    def make_samples(make: Maker) -> Iterator[Sample]:
        for shapes in groups:
            yield Sample([make(s) for s in shapes], expect=reference)

    return make_samples


samples("hstack")(
    _along(np.hstack, [(2,), (3,)], [(2, 3), (2, 1)], [(), ()], [(2, 1, 2), (2, 2, 2)])
)
for _name in ("vstack", "row_stack"):
    samples(_name)(_along(np.vstack, [(3,), (3,)], [(2, 3), (1, 3)], [(), ()], [(3,), (2, 3)]))
samples("dstack")(
    _along(np.dstack, [(3,), (3,)], [(2, 3), (2, 3)], [(2, 3, 1), (2, 3, 2)], [(), ()])
)
samples("column_stack")(_along(np.column_stack, [(3,), (3,)], [(3,), (3, 2)], [(2, 3), (2, 1)]))


@samples("_chunk_cat")
def chunk_cat(make: Maker) -> Iterator[Sample]:
    def expect(tensors: Any, dim: int, chunks: int) -> Any:
        dim, rows = dim % tensors[0].ndim, []
        for t in tensors:
            pad = [(0, 0)] * t.ndim
            pad[dim] = (0, -t.shape[dim] % chunks)
            rows.append(np.pad(t, pad).reshape(*t.shape[:dim], chunks, -1))
        return np.concatenate(rows, axis=dim + 1)

    for shapes, dim, chunks in [
        ([(2, 3), (2, 4)], 1, 2),
        ([(5, 3), (2,), (4, 1, 2)], 0, 2),
        ([(1, 2, 3), (1, 2, 3)], -1, 5),
        ([(6,)], 0, 3),
    ]:
        yield Sample([make(s) for s in shapes], dim, chunks, expect=expect)

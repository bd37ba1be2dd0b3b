"""Tensors with at least so many dimensions, pieces along a fixed dimension, and sums down to a
shape.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Iterator

import numpy as np

from ..sample import Maker, Sample, samples

SHAPES: tuple[tuple[int, ...], ...] = ((), (3,), (2, 3), (2, 3, 4), (2, 1, 2, 2), (0,), (2, 0))


def _each(reference: Callable[..., Any]) -> Callable[[Maker], Iterator[Sample]]:
    def make_samples(make: Maker) -> Iterator[Sample]:
        for shape in SHAPES:
            yield Sample(make(shape), expect=reference)

    return make_samples


def _listed(reference: Callable[..., Any]) -> Callable[[Maker], Iterator[Sample]]:
    def make_samples(make: Maker) -> Iterator[Sample]:
        for shapes in [((3,), ()), ((), (3,), (2, 3), (2, 3, 4)), ((2, 0),)]:
            yield Sample(
                [make(s) for s in shapes], expect=lambda x: [reference(part) for part in x]
            )

    return make_samples


for _name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    samples(_name)(_each(getattr(np, _name)))
    samples(f"{_name}.Sequence")(_listed(getattr(np, _name)))


def _pieces(
    reference: Callable[..., Any], *calls: tuple[tuple[int, ...], Any]
) -> Callable[[Maker], Iterator[Sample]]:
    def make_samples(make: Maker) -> Iterator[Sample]:
        for shape, where in calls:
            yield Sample(make(shape), where, expect=reference)

    return make_samples


samples("hsplit.int")(
    _pieces(np.hsplit, ((6,), 3), ((2, 4), 2), ((3, 4, 2), 4), ((2, 3), 1), ((2, 0), 2))
)
samples("hsplit.array")(
    _pieces(np.hsplit, ((6,), [1, 4]), ((2, 5), [2]), ((2, 5), [1, 1, 9]), ((2, 3), []))
)
samples("vsplit.int")(_pieces(np.vsplit, ((4, 3), 2), ((6, 1, 2), 3), ((3, 2), 1), ((0, 2), 2)))
samples("vsplit.array")(
    _pieces(np.vsplit, ((5, 2), [2]), ((5, 2), [1, 1, 9]), ((3, 2), []), ((5, 2), [-2]))
)
samples("dsplit.int")(_pieces(np.dsplit, ((2, 3, 4), 2), ((1, 2, 3, 2), 3), ((2, 1, 0), 2)))
samples("dsplit.array")(
    _pieces(np.dsplit, ((2, 3, 4), [1]), ((2, 1, 5), [2, 4]), ((1, 2, 3), [-1]))
)


@samples("sum_to_size")
def sum_to_size(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, size: Any) -> Any:
        if not size:
            return x.sum()
        lead = x.ndim - len(size)
        gone = (*range(lead), *(lead + d for d, n in enumerate(size) if n == 1))
        gone = tuple(d for d in gone if d < lead or x.shape[d] != 1)
        return x.sum(gone, keepdims=True).reshape(size) if gone else x

    for shape, size in [
        ((3, 4), [3, 1]),
        ((2, 3, 4), [4]),
        ((2, 3, 4), [3, 1]),
        ((2, 3), []),
        ((2, 3), [2, 3]),
        ((1, 3), [3]),
        ((), []),
        ((0, 3), [1, 3]),
        ((2, 0), [0]),
    ]:
        yield Sample(make(shape), size, expect=expect)

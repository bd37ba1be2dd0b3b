"""Activations with weights or chance in them, glu, bilinear and embedding_bag."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from ..sample import Maker, Sample, samples


@samples("prelu")
def prelu(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, w: Any) -> Any:
        if w.size > 1:
            w = w.reshape((1, -1) + (1,) * (x.ndim - 2))
        return np.where(x > 0, x, w * x).reshape(x.shape)

    yield Sample(make((2, 3, 2)), make((3,)), expect=expect)
    yield Sample(make((4, 3)), make((1,)), expect=expect)
    yield Sample(make((4,)), make((1,)), expect=expect)
    yield Sample(make(()), make(()), expect=expect)
    yield Sample(make((0, 3)), make((3,)), expect=expect, grad=False)


@samples("glu")
def glu(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, dim: int = -1) -> Any:
        a, b = np.split(x, 2, dim)
        return a / (1 + np.exp(-b))

    yield Sample(make((3, 4)), expect=expect, loose=4)
    yield Sample(make((2, 3, 2)), 0, expect=expect, loose=4)
    yield Sample(make((3, 0)), expect=expect, grad=False)


@samples("rrelu", "rrelu_")
def rrelu(make: Maker) -> Iterator[Sample]:
    yield Sample(
        make((3, 4)), 0.1, 0.3, False, expect=lambda x, a, b, t: np.where(x > 0, x, x * (a + b) / 2)
    )
    yield Sample(
        make((3, 4)), 0.25, 0.25, True, expect=lambda x, a, b, t: np.where(x > 0, x, x * a)
    )
    yield Sample(make((30, 4)), 0.1, 0.3, True)


@samples("bilinear")
def bilinear(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, y: Any, w: Any, b: Any = None) -> Any:
        out = np.einsum("...i,kij,...j->...k", x, w, y)
        return out if b is None else out + b

    yield Sample(make((3, 2)), make((3, 4)), make((2, 2, 4)), make((2,)), expect=expect, loose=8)
    yield Sample(make((2,)), make((3,)), make((4, 2, 3)), expect=expect, loose=8)
    yield Sample(make((2, 2, 2)), make((2, 2, 1)), make((3, 2, 1)), expect=expect, loose=8)
    yield Sample(make((0, 2)), make((0, 3)), make((4, 2, 3)), expect=expect, grad=False)


def _bags(
    weight: Any,
    indices: Any,
    offsets: Any,
    by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    factors: Any = None,
    include_last_offset: bool = False,
    padding_idx: Any = None,
) -> Any:
    """The four results of `embedding_bag`."""
    bounds = list(offsets) if include_last_offset else [*offsets, len(indices)]
    bags = len(bounds) - 1
    out = np.zeros((bags, weight.shape[1]))
    where = np.full((bags if mode == 2 else 0, weight.shape[1]), -1, dtype=np.int64)
    bag_of = np.full(len(indices), max(0, bags - 1), dtype=np.int64)
    size = np.zeros(bags, dtype=np.int64)
    padding = None if padding_idx is None else padding_idx % len(weight)
    for b in range(bags):
        places = np.arange(bounds[b], bounds[b + 1])
        bag_of[places] = b
        used = [p for p in places if indices[p] != padding]
        size[b] = len(used)
        if not used:
            continue
        rows = weight[indices[used]]
        if factors is not None:
            rows = rows * factors[used][:, None]
        out[b] = (rows.sum(0), rows.mean(0), rows.max(0))[mode]
        if mode == 2:
            where[b] = indices[used][rows.argmax(0)]
    return out, bag_of, size, where


@samples("embedding_bag")
def embedding_bag(make: Maker) -> Iterator[Sample]:
    index = make.index((7,), 5)
    offsets = np.array([0, 3, 3, 5], dtype=np.int64)
    for mode in (0, 1):
        yield Sample(make((5, 3)), index, offsets, False, mode, expect=_bags, loose=4)
        yield Sample(make((5, 3)), index, offsets, True, mode, expect=_bags, loose=4, grad=False)
    yield Sample(make.distinct((5, 3)), index, offsets, False, 2, expect=_bags)
    yield Sample(make((5, 2)), index, offsets, False, 0, False, make((7,)), expect=_bags, loose=4)
    yield Sample(
        make((5, 2)),
        index,
        np.array([0, 3, 7], dtype=np.int64),
        include_last_offset=True,
        expect=_bags,
        loose=4,
    )
    none = np.zeros((0,), dtype=np.int64)
    yield Sample(make((5, 2)), none, np.zeros((2,), dtype=np.int64), expect=_bags)


@samples("embedding_bag.padding_idx")
def embedding_bag_padding_idx(make: Maker) -> Iterator[Sample]:
    index = make.index((7,), 5)
    offsets = np.array([0, 3, 3, 5], dtype=np.int64)
    for mode, padding in ((1, int(index[0]) - 5), (0, int(index[0])), (0, None)):
        yield Sample(
            make((5, 2)), index, offsets, False, mode, False, None, False, padding,
            expect=_bags, loose=4,
        )  # fmt: skip

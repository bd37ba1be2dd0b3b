"""Copies in which the part that a view shows is replaced, and diagonals that are written. NumPy's
assignment to the same part of a copy is the reference.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Iterator

import numpy as np

from ..sample import Maker, Sample, samples


def _scatter(
    part: Callable[..., Any], *calls: tuple[Any, ...], strides: bool = False
) -> Callable[[Maker], Iterator[Sample]]:
    """Samples of an operator that replaces `part(x, ...)`; each call is a shape and arguments."""

    def replaced(x: Any, src: Any, *args: Any) -> Any:
        out = np.array(x)
        part(out, *args)[...] = src
        return out

    def make_samples(make: Maker) -> Iterator[Sample]:
        for shape, *rest in calls:
            src = make(part(np.empty(shape), *rest).shape)
            yield Sample(make(shape), src, *rest, expect=replaced, strides=strides)

    return make_samples


def _selected(x: Any, dim: int, index: int) -> Any:
    return x[(slice(None),) * (dim % x.ndim) + (index, ...)]


def _sliced(x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)]


def _diagonal(x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    shown = np.diagonal(x, offset, dim1, dim2)
    shown.setflags(write=True)
    return shown


def _strided(x: Any, size: Any, stride: Any, offset: Any = None) -> Any:
    item = x.itemsize
    return np.lib.stride_tricks.as_strided(
        x.reshape(-1)[offset or 0 :], size, [s * item for s in stride]
    )


samples("select_scatter")(
    _scatter(_selected, ((3, 4), 0, 1), ((3, 4), -1, -1), ((2, 3, 4), 1, 0), ((5,), 0, 2))
)
samples("slice_scatter")(
    _scatter(
        _sliced,
        ((5, 4),),
        ((5, 4), 0, 1, 3),
        ((5, 4), -1, None, None, 2),
        ((5, 4), 0, -2),
        ((5, 4), 0, 4, 2),
        ((7,), 0, -9, 9, 3),
        ((0, 4), 1, 1, 2),
        ((5, 4), 0, None, None, -1),
        ((5, 4), 1, 2, None, -2),
        ((7,), 0, 9, 1, -3),
    )
)
samples("diagonal_scatter")(
    _scatter(
        _diagonal,
        ((3, 4),),
        ((3, 4), 1),
        ((3, 4), -2),
        ((3, 4), 9),
        ((2, 3, 4), 0, 1, 2),
        ((2, 3, 4), 1, -1, 0),
        ((0, 3),),
    )
)
samples("as_strided_scatter")(
    _scatter(
        _strided,
        ((3, 4), [2, 2], [4, 1]),
        ((3, 4), [2, 2], [1, 4], 2),
        ((3, 4), [0, 3], [1, 1]),
        ((3, 4), [], [], 7),
        ((6,), [2, 3], [3, 1]),
        strides=True,
    )
)


@samples("diagflat")
def diagflat(make: Maker) -> Iterator[Sample]:
    for shape, *offset in [((3,),), ((2, 2),), ((3,), 1), ((2, 2), -2), ((),), ((0,), 1)]:
        yield Sample(make(shape), *offset, expect=np.diagflat)


@samples("fill_diagonal_")
def fill_diagonal_(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, value: Any, wrap: bool = False) -> Any:
        out = np.array(x)
        if out.size:
            np.fill_diagonal(out, value, wrap)
        return out

    for shape, *wrap in [
        ((3, 3),),
        ((3, 4),),
        ((4, 3),),
        ((3, 3, 3),),
        ((0, 3),),
        ((9, 2),),
        ((9, 2), True),
        ((8, 3), True),
        ((4, 3), True),
        ((7, 3), True),
        ((2, 5), True),
    ]:
        yield Sample(make(shape), make.scalar(), *wrap, expect=expect)

"""Operators whose indices are expressions: reindex, reindex_reduce, broadcast."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Iterator

import numpy as np

from ..sample import Maker, Sample, samples


def elements(
    indices: list[str], loops: tuple[int, ...], extents: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Each index in the loops whose expressions are inside of the extents, and these. Python's own
    arithmetic is that of the expressions, but has no bounds.
    """
    names = {f"xshape{d}": n for d, n in enumerate(extents)}
    names.update({f"yshape{d}": n for d, n in enumerate(loops)})
    code = compile("(" + "".join(f"({text})," for text in indices) + ")", "indices", "eval")
    for at in np.ndindex(*loops):
        place = eval(code, {**names, **{f"i{k}": i for k, i in enumerate(at)}})
        if all(0 <= i < n for i, n in zip(place, extents)):
            yield at, place


def _texts(indices: str) -> list[str]:
    return [text for text in indices.split(";") if text.strip()]


def _reindex(x: Any, shape: Any, indices: str, overflow_value: Any = 0) -> Any:
    y = np.full(shape, overflow_value, dtype=x.dtype)
    for at, place in elements(_texts(indices), tuple(shape), x.shape):
        y[at] = x[place]
    return y


_MAPS: list[tuple[tuple[int, ...], tuple[int, ...], list[str]]] = [
    ((3, 4), (4, 3), ["i1", "i0"]),
    ((3, 4), (3, 6), ["i0", "i1 - 1"]),
    ((3, 4), (2, 5), ["2 * i0", "xshape1 - 1 - i1"]),
    ((2, 5, 5), (2, 3, 3, 3, 3), ["i0", "i1 + i3", "2 * i2 - 1 + i4"]),
    ((3, 2), (6, 4), ["i0 // 2", "(i1 + 1) % xshape1"]),
    ((7,), (3, 4), ["i0 * i1 - i0 // (i1 + 1)"]),
    ((3,), (40,), ["(yshape0 - i0) // 13"]),
    ((), (2, 2), []),
    ((3, 0), (2, 2), ["i0", "i1"]),
    ((3,), (), ["1"]),
]


@samples("reindex")
def reindex(make: Maker) -> Iterator[Sample]:
    for extents, shape, indices in _MAPS:
        x, text = make(extents), "; ".join(indices)
        yield Sample(x, shape, text, expect=_reindex, exact=True, as_written=(x, shape, indices))
    x, texts = make((3,)), ["i0 - 1"]
    yield Sample(
        x,
        (5,),
        texts[0],
        make.scalar(),
        expect=_reindex,
        exact=True,
        as_written=(x, (5,), texts, make.scalar()),
    )


def _lowest(dtype: Any) -> Any:
    if np.issubdtype(dtype, np.bool_):
        return False
    return -np.inf if np.issubdtype(dtype, np.floating) else np.iinfo(dtype).min


def _highest(dtype: Any) -> Any:
    if np.issubdtype(dtype, np.bool_):
        return True
    return np.inf if np.issubdtype(dtype, np.floating) else np.iinfo(dtype).max


def _sum(a: Any, b: Any) -> Any:
    return a | b if isinstance(a, np.bool_) else a + b


def _product(a: Any, b: Any) -> Any:
    return a & b if isinstance(a, np.bool_) else a * b


_OPERATIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "sum": (lambda dtype: 0, _sum),
    "prod": (lambda dtype: 1, _product),
    "max": (_lowest, np.maximum),
    "min": (_highest, np.minimum),
    "logical_and": (lambda dtype: True, lambda a, b: a and bool(b)),
    "logical_or": (lambda dtype: False, lambda a, b: a or bool(b)),
}


def _reindex_reduce(y: Any, op: str, shape: Any, indices: str) -> Any:
    start, combine = _OPERATIONS[op]
    dtype = bool if op.startswith("logical") else y.dtype
    x = np.full(shape, start(dtype), dtype=dtype)
    with np.errstate(over="ignore"):
        for at, place in elements(_texts(indices), y.shape, tuple(shape)):
            x[place] = combine(x[place], y[at])
    return x


@samples("reindex_reduce")
def reindex_reduce(make: Maker) -> Iterator[Sample]:
    for op in _OPERATIONS:
        if make.is_complex and op in ("max", "min"):
            continue
        for extents, shape, indices in _MAPS:
            y = make.distinct(shape) if op in ("max", "min") else make(shape)
            text = "; ".join(indices)
            # The maximum of nothing is infinite, so that it has no finite differences.
            reached = {place for _, place in elements(indices, shape, extents)}
            finite = op in ("sum", "prod") or len(reached) == int(np.prod(extents))
            yield Sample(
                y,
                op,
                extents,
                text,
                expect=_reindex_reduce,
                grad=finite and not op.startswith("logical"),
                loose=4,  # sums of some elements, in another order of rounding
                as_written=(y, op, extents, indices),
            )


def _broadcast(x: Any, shape: Any, dims: Any) -> Any:
    wrapped = [d % len(shape) for d in dims]
    return np.broadcast_to(np.expand_dims(x, tuple(wrapped)), shape)


@samples("broadcast")
def broadcast(make: Maker) -> Iterator[Sample]:
    for extents, shape, dims in [
        ((3,), (2, 3), (0,)),
        ((3,), (3, 2), (-1,)),
        ((2, 4), (2, 3, 4, 2), (3, 1)),
        ((2, 3), (2, 3), ()),
        ((1, 3), (2, 3, 2), (2,)),
        ((), (2, 2), (0, 1)),
        ((3,), (0, 3), (0,)),
    ]:
        yield Sample(make(extents), shape, dims, expect=_broadcast, exact=True)

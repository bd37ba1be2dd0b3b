"""Reading and writing by index."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Iterator

import numpy as np

from ..sample import Maker, Sample, samples


def _at(indices: Any, ndim: int) -> tuple[Any, ...]:
    full = [slice(None) if i is None else i for i in indices]
    return tuple(
        full
        + [slice(None)]
        * (0 if any(getattr(i, "dtype", None) == np.bool_ for i in full) else ndim - len(full))
    )


def _indices(make: Maker) -> Iterator[tuple[tuple[int, ...], list[Any]]]:
    """Shapes, and indices into them, as `index` and `index_put` take them."""
    yield (3, 4), [make.index((2, 3), 3)]
    yield (3, 4), [make.index((5,), 3) - 3, make.index((5,), 4)]
    yield (3, 4), [None, make.index((2,), 4)]
    yield (2, 3, 4), [make.index((2, 1), 2), None, make.index((3,), 4)]
    yield (2, 3, 4), [None, make.index((2,), 3), make.index((2,), 4)]
    yield (3, 4), [make.mask((3, 4))]
    yield (3, 4), [make.mask((3,))]
    yield (3, 4), [make.index((0,), 3)]
    yield (5,), [make.index((), 5)]


@samples("index.Tensor")
def index(make: Maker) -> Iterator[Sample]:
    for shape, indices in _indices(make):
        yield Sample(make(shape), indices, expect=lambda x, i: x[_at(i, x.ndim)])


def _put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    out = x.copy()
    if accumulate and out.dtype == bool:
        np.logical_or.at(out, _at(indices, x.ndim), values)
    elif accumulate:
        np.add.at(out, _at(indices, x.ndim), values)
    else:
        out[_at(indices, x.ndim)] = values
    return out


def _index_put(make: Maker) -> Iterator[Sample]:
    for shape, indices in _indices(make):
        yield Sample(make(shape), indices, make(()), expect=_put, grad=False)
        taken = np.zeros(shape)[_at(indices, len(shape))].shape
        # A gradient is defined where no place is written twice, or where all writes add.
        yield Sample(make(shape), indices, make(taken), expect=_put, grad=False)
        yield Sample(make(shape), indices, make(taken), True, expect=_put)


samples("index_put")(_index_put)
samples("index_put_")(_index_put)


@samples("index_select")
def index_select(make: Maker) -> Iterator[Sample]:
    for shape, dim, n in [
        ((3, 4), 0, 5),
        ((3, 4), -1, 2),
        ((2, 3, 4), 1, 3),
        ((3, 4), 0, 0),
        ((3,), 0, 2),
    ]:
        yield Sample(
            make(shape), dim, make.index((n,), shape[dim]), expect=lambda x, d, i: np.take(x, i, d)
        )
    yield Sample(
        make((3, 4)),
        1,
        make.index((6,), 4).astype(np.int32),
        expect=lambda x, d, i: np.take(x, i, d),
    )


def _lines(x: Any, dim: int) -> Any:
    """A view whose first dimension is `dim`."""
    return np.moveaxis(x, dim, 0)


def _index_add(x: Any, dim: int, index: Any, source: Any, alpha: Any = 1) -> Any:
    out = x.copy()
    for i, n in enumerate(np.atleast_1d(index)):
        line, added = _lines(out, dim), alpha * _lines(source, dim)[i]
        line[n] = line[n] | added.astype(bool) if x.dtype == bool else line[n] + added
    return out


@samples("index_add")
def index_add(make: Maker) -> Iterator[Sample]:
    for shape, dim, n in [((3, 4), 0, 5), ((3, 4), -1, 2), ((2, 3, 4), 1, 4), ((3, 4), 0, 0)]:
        source = list(shape)
        source[dim] = n
        yield Sample(
            make(shape),
            dim,
            make.index((n,), shape[dim]),
            make(tuple(source)),
            expect=_index_add,
            loose=2,
        )
    yield Sample(
        make((3, 4)),
        0,
        make.index((2,), 3),
        make((2, 4)),
        alpha=make.scalar(),
        expect=_index_add,
        loose=2,
    )


def _index_copy(x: Any, dim: int, index: Any, source: Any) -> Any:
    out = x.copy()
    for i, n in enumerate(np.atleast_1d(index)):
        _lines(out, dim)[n] = _lines(source, dim)[i]
    return out


@samples("index_copy")
def index_copy(make: Maker) -> Iterator[Sample]:
    for shape, dim, index in [
        ((3, 4), 0, [2, 0]),
        ((3, 4), -1, [1]),
        ((2, 3, 4), 1, [2, 0, 1]),
        ((3, 4), 0, []),
    ]:
        source = list(shape)
        source[dim] = len(index)
        yield Sample(
            make(shape),
            dim,
            np.array(index, dtype=np.int64),
            make(tuple(source)),
            expect=_index_copy,
        )
    yield Sample(make((3, 4)), 0, np.array([1, 1]), make((2, 4)), expect=_index_copy, grad=False)


def _index_fill(x: Any, dim: int, index: Any, value: Any) -> Any:
    out = x.copy()
    _lines(out, dim)[index] = value
    return out


@samples("index_fill.int_Scalar")
def index_fill(make: Maker) -> Iterator[Sample]:
    for shape, dim, n in [((3, 4), 0, 2), ((3, 4), -1, 3), ((3, 4), 1, 0), ((5,), 0, 2)]:
        yield Sample(
            make(shape), dim, make.index((n,), shape[dim]), make.scalar(), expect=_index_fill
        )


@samples("index_fill.int_Tensor")
def index_fill_tensor(make: Maker) -> Iterator[Sample]:
    yield Sample(make((3, 4)), 1, make.index((2,), 4), make(()), expect=_index_fill)


def _gather(x: Any, dim: int, index: Any) -> Any:
    if x.ndim == 0:
        return np.full(index.shape, x)
    out = np.zeros(index.shape, dtype=x.dtype)
    for at in np.ndindex(*index.shape):
        source = list(at)
        source[dim % x.ndim] = index[at]
        out[at] = x[tuple(source)]
    return out


@samples("gather")
def gather(make: Maker) -> Iterator[Sample]:
    for shape, dim, index in [
        ((3, 4), 0, (2, 4)),
        ((3, 4), -1, (3, 2)),
        ((3, 4), 1, (2, 6)),
        ((2, 3, 4), 1, (2, 5, 4)),
        ((3, 4), 0, (0, 4)),
        ((5,), 0, (3,)),
    ]:
        yield Sample(make(shape), dim, make.index(index, shape[dim]), expect=_gather)
    yield Sample(make(()), 0, make.index((), 1), expect=_gather)


def _scattered(combine: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def expect(x: Any, dim: int, index: Any, src: Any, *_: Any, **__: Any) -> Any:
        out = x.copy()
        for at in np.ndindex(*index.shape):
            to = list(at)
            to[dim % x.ndim] = index[at]
            out[tuple(to)] = combine(out[tuple(to)], src[at] if np.ndim(src) else src)
        return out

    return expect


def _sum(a: Any, b: Any) -> Any:
    return a | bool(b) if isinstance(a, np.bool_) else a + b


def _product(a: Any, b: Any) -> Any:
    return a & bool(b) if isinstance(a, np.bool_) else a * b


def _places(make: Maker) -> Iterator[tuple[tuple[int, ...], int, Any]]:
    yield (3, 4), 0, make.index((2, 4), 3)
    yield (3, 4), -1, make.index((3, 2), 4)
    yield (2, 3, 4), 1, make.index((2, 2, 3), 3)
    yield (3, 4), 1, make.index((3, 0), 4)
    yield (5,), 0, make.index((9,), 5)


@samples("scatter.src")
def scatter_src(make: Maker) -> Iterator[Sample]:
    for shape, dim, index in _places(make):
        yield Sample(
            make(shape),
            dim,
            index,
            make(index.shape),
            expect=_scattered(lambda a, b: b),
            grad=False,
        )
    # Each place once, so that the gradient is defined.
    yield Sample(
        make((3, 4)), 0, np.array([[2, 0, 1, 1]]), make((2, 4)), expect=_scattered(lambda a, b: b)
    )


@samples("scatter.value")
def scatter_value(make: Maker) -> Iterator[Sample]:
    for shape, dim, index in _places(make):
        yield Sample(make(shape), dim, index, make.scalar(), expect=_scattered(lambda a, b: b))


@samples("scatter.reduce")
def scatter_with(make: Maker) -> Iterator[Sample]:
    for shape, dim, index in _places(make):
        yield Sample(
            make(shape),
            dim,
            index,
            make(index.shape),
            reduce="add",
            expect=_scattered(_sum),
            loose=2,
            grad=False,
        )
        yield Sample(
            make(shape),
            dim,
            index,
            make(index.shape),
            reduce="multiply",
            expect=_scattered(_product),
            loose=4,
            grad=False,
        )


@samples("scatter.value_reduce")
def scatter_value_with(make: Maker) -> Iterator[Sample]:
    for shape, dim, index in _places(make):
        yield Sample(
            make(shape),
            dim,
            index,
            make.scalar(),
            reduce="add",
            expect=_scattered(_sum),
            loose=2,
            grad=False,
        )
        yield Sample(
            make(shape),
            dim,
            index,
            make.scalar(),
            reduce="multiply",
            expect=_scattered(_product),
            loose=4,
            grad=False,
        )


@samples("scatter_add")
def scatter_add(make: Maker) -> Iterator[Sample]:
    for shape, dim, index in _places(make):
        yield Sample(make(shape), dim, index, make(index.shape), expect=_scattered(_sum), loose=2)


def _scatter_reduce(
    x: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool = True
) -> Any:
    groups: dict[tuple[int, ...], list[Any]] = {}
    for at in np.ndindex(*index.shape):
        to = list(at)
        to[dim % x.ndim] = int(index[at])
        groups.setdefault(tuple(to), []).append(src[at])
    out = x.copy()
    for at, values in groups.items():
        array = np.array(([x[at]] if include_self else []) + values)
        whole = array.dtype.kind in "iu"
        total = array.any() if array.dtype == bool else array.sum(dtype=array.dtype)
        out[at] = {
            "sum": lambda: total,
            "prod": lambda: array.all() if array.dtype == bool else array.prod(dtype=array.dtype),
            "mean": lambda: total // len(array) if whole else total / len(array),
            "amax": lambda: array.max(),
            "amin": lambda: array.min(),
        }[reduce]()
    return out


@samples("scatter_reduce.two")
def scatter_reduce(make: Maker) -> Iterator[Sample]:
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        if make.dtype == "bool" and reduce == "mean":
            continue
        for shape, dim, index in _places(make):
            for include in (True, False):
                # Distinct values: at a tie the gradient of a maximum is not what finite differences
                # say.
                values = (
                    make.distinct((index.size + int(np.prod(shape)),))
                    if reduce in ("amax", "amin")
                    else make((index.size + int(np.prod(shape)),), 0.5, 2)
                )
                x, src = (
                    values[index.size :].reshape(shape),
                    values[: index.size].reshape(index.shape),
                )
                yield Sample(
                    x,
                    dim,
                    index,
                    src,
                    reduce,
                    include_self=include,
                    expect=_scatter_reduce,
                    loose=8,
                )


@samples("masked_select")
def masked_select(make: Maker) -> Iterator[Sample]:
    for a, b in [((3, 4), (3, 4)), ((3, 4), (4,)), ((4,), (3, 4)), ((0, 2), (2,)), ((), ())]:
        yield Sample(
            make(a),
            make.mask(b),
            expect=lambda x, m: np.broadcast_arrays(x, m)[0][np.broadcast_arrays(x, m)[1]],
        )


@samples("masked_scatter")
def masked_scatter(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, mask: Any, source: Any) -> Any:
        out = x.copy()
        mask = np.broadcast_to(mask, x.shape)
        out[mask] = source.reshape(-1)[: mask.sum()]
        return out

    for a, b in [((3, 4), (3, 4)), ((3, 4), (4,)), ((0, 2), (2,))]:
        yield Sample(make(a), make.mask(b), make((20,)), expect=expect)


@samples("nonzero")
def nonzero(make: Maker) -> Iterator[Sample]:
    for shape in [(3, 4), (5,), (0, 3), (2, 3, 2)]:
        x = np.where(make.mask(shape), make(shape), 0).astype(make(()).dtype)
        yield Sample(x, grad=False, expect=lambda x: np.argwhere(x))
    yield Sample(
        make((), 1, 2), grad=False, expect=lambda x: np.zeros((int(x != 0), 0), dtype=np.int64)
    )


def _coordinates(make: Maker) -> Iterator[Sample]:
    for shape in [(3, 4), (5,), (0, 3)]:
        yield Sample(make(shape), grad=False, expect=lambda x: np.nonzero(x))


samples("nonzero_numpy")(_coordinates)


@samples("where")
def where(make: Maker) -> Iterator[Sample]:
    yield from _coordinates(make)


@samples("take")
def take(make: Maker) -> Iterator[Sample]:
    for shape, index in [((3, 4), (2, 3)), ((5,), (0,)), ((3, 4), ())]:
        yield Sample(
            make(shape), make.index(index, int(np.prod(shape))), expect=lambda x, i: np.take(x, i)
        )
        yield Sample(
            make(shape),
            np.asarray(make.index(index, int(np.prod(shape))) - int(np.prod(shape))),
            expect=lambda x, i: np.take(x, i),
        )


@samples("put")
def put(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
        return _put(x.reshape(-1), [index.reshape(-1)], source.reshape(-1), accumulate).reshape(
            x.shape
        )

    yield Sample(make((3, 4)), np.array([[1, 5], [-1, 0]]), make((2, 2)), expect=expect)
    yield Sample(make((3, 4)), np.array([1, 5, 1]), make((3,)), True, expect=expect)
    yield Sample(make((3, 4)), make.index((0,), 12), make((0,)), expect=expect)


@samples("take_along_dim")
def take_along_dim(make: Maker) -> Iterator[Sample]:
    yield Sample(make((3, 4)), make.index((3, 2), 4), 1, expect=np.take_along_axis)
    yield Sample(
        make((3, 4)),
        make.index((2, 1), 3),
        0,
        expect=lambda x, i, d: np.take_along_axis(x, np.broadcast_to(i, (2, 4)), d),
    )
    yield Sample(
        make((3, 4)), make.index((5,), 12), expect=lambda x, i: x.reshape(-1)[i.reshape(-1)]
    )


@samples("embedding")
def embedding(make: Maker) -> Iterator[Sample]:
    for index in [(3,), (2, 3), (), (0,)]:
        yield Sample(make((5, 4)), make.index(index, 5), expect=lambda w, i: w[i])
    yield Sample(make((5, 4)), np.array([0, 2, 4]), 1, expect=lambda w, i, p: w[i])


@samples("embedding_dense_backward")
def embedding_dense_backward(make: Maker) -> Iterator[Sample]:
    def expect(grad: Any, index: Any, rows: int, padding: int, by_frequency: bool) -> Any:
        out = np.zeros((rows, grad.shape[-1]), dtype=grad.dtype)
        for at in np.ndindex(*index.shape):
            if index[at] != padding:
                out[index[at]] += grad[at] / (
                    np.count_nonzero(index == index[at]) if by_frequency else 1
                )
        return out

    index = make.index((2, 6), 4)
    for padding, by_frequency in [(-1, False), (1, False), (-1, True)]:
        yield Sample(make((2, 6, 3)), index, 5, padding, by_frequency, expect=expect, loose=4)


@samples("one_hot")
def one_hot(make: Maker) -> Iterator[Sample]:
    yield Sample(make.index((2, 3), 4), 5, expect=lambda i, n: np.eye(n, dtype=np.int64)[i])
    yield Sample(np.array([0, 3, 1]), expect=lambda i: np.eye(4, dtype=np.int64)[i])
    yield Sample(make.index((0,), 4), 3, expect=lambda i, n: np.zeros((0, 3), dtype=np.int64))


@samples("flip")
def flip(make: Maker) -> Iterator[Sample]:
    for shape, dims in [
        ((3, 4), [0]),
        ((3, 4), [0, -1]),
        ((2, 3, 4), [1]),
        ((3, 4), []),
        ((0, 4), [0]),
    ]:
        yield Sample(make(shape), dims, expect=lambda x, d: np.flip(x, tuple(d)))


@samples("fliplr")
def fliplr(make: Maker) -> Iterator[Sample]:
    yield Sample(make((3, 4)), expect=np.fliplr)


@samples("flipud")
def flipud(make: Maker) -> Iterator[Sample]:
    for shape in [(3, 4), (3,)]:
        yield Sample(make(shape), expect=np.flipud)


@samples("roll")
def roll(make: Maker) -> Iterator[Sample]:
    for shape, shifts, dims in [
        ((3, 4), [1], [0]),
        ((3, 4), [-1, 6], [0, 1]),
        ((3, 4), [2], [-1]),
        ((0, 4), [1], [0]),
    ]:
        yield Sample(make(shape), shifts, dims, expect=lambda x, s, d: np.roll(x, s, d))
    yield Sample(make((3, 4)), 5, expect=lambda x, s: np.roll(x, s))


@samples("rot90")
def rot90(make: Maker) -> Iterator[Sample]:
    yield Sample(make((3, 4)), expect=np.rot90)
    for k, dims in [(2, [0, 1]), (-1, [0, 1]), (3, [1, 2]), (4, [0, -1])]:
        yield Sample(make((2, 3, 4)), k, dims, expect=lambda x, k, d: np.rot90(x, k, d))


def _tiled(make: Maker) -> Iterator[Sample]:
    for shape, times in [
        ((3, 4), [2, 1]),
        ((3,), [2, 2]),
        ((), [3]),
        ((2, 2), [0, 1]),
        ((2, 1), [1, 1, 3]),
    ]:
        yield Sample(make(shape), times, expect=np.tile)


samples("repeat")(_tiled)


@samples("tile")
def tile(make: Maker) -> Iterator[Sample]:
    yield from _tiled(make)
    yield Sample(make((2, 3)), [2], expect=np.tile)


@samples("repeat_interleave.Tensor")
def repeat_interleave_counts(make: Maker) -> Iterator[Sample]:
    for shape in [(5,), (0,)]:
        counts = abs(make(shape))
        yield Sample(counts, expect=lambda n: np.repeat(np.arange(len(n)), n))
        yield Sample(
            counts,
            output_size=int(counts.sum()),
            expect=lambda n, output_size: np.repeat(np.arange(len(n)), n),
        )


@samples("repeat_interleave.self_Tensor")
def repeat_interleave_tensor(make: Maker) -> Iterator[Sample]:
    yield Sample(make((3, 4)), np.array([1, 0, 2]), 0, expect=np.repeat)
    yield Sample(make((3, 4)), np.array([2]), -1, expect=np.repeat)
    yield Sample(make((2, 2)), np.array([1, 2, 0, 1]), expect=np.repeat)


@samples("repeat_interleave.self_int")
def repeat_interleave_int(make: Maker) -> Iterator[Sample]:
    for shape, n, dim in [((3, 4), 2, 0), ((3, 4), 3, -1), ((3, 4), 0, 1), ((0, 2), 2, 0)]:
        yield Sample(make(shape), n, dim, expect=np.repeat)
    yield Sample(make((2, 3)), 2, expect=np.repeat)


def _masked_places(mask: Any, indices: Any) -> Any:
    """The indices, 0 where the mask is false."""
    return tuple(np.where(mask, i, 0) for i in indices)


def _under_masks(make: Maker) -> Iterator[tuple[Any, Any, Any]]:
    for shape, taken in [((4, 3), (5,)), ((4, 3), (2, 3)), ((6,), (4,))]:
        indices = [make.index(taken, n) - n // 2 for n in shape]
        mask = make.mask(taken)
        mask.flat[0], mask.flat[-1] = True, False
        indices[0].flat[-1] = 99  # out of range, where the mask is false
        yield shape, mask, indices


@samples("_unsafe_masked_index")
def unsafe_masked_index(make: Maker) -> Iterator[Sample]:
    for shape, mask, indices in _under_masks(make):
        yield Sample(
            make(shape), mask, indices, make.scalar(),
            expect=lambda x, m, i, v: np.where(m, x[_masked_places(m, i)], np.asarray(v, x.dtype)),
        )  # fmt: skip


@samples("_unsafe_masked_index_put_accumulate")
def unsafe_masked_index_put(make: Maker) -> Iterator[Sample]:
    for shape, mask, indices in _under_masks(make):
        yield Sample(
            make(shape), mask, indices, make(mask.shape),
            expect=lambda x, m, i, v: _put(
                x, list(_masked_places(m, i)), np.where(m, v, 0).astype(x.dtype), True
            ),
        )  # fmt: skip

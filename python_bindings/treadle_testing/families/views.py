"""Views and changes of shape. A view's values are NumPy's; that it shares memory is tested in
tests/python/tensors/test_views.py.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Iterator

import numpy as np

import treadle

from ..sample import NUMPY_TYPES, Maker, Sample, of_cpu, samples


def _view(
    expect: Callable[..., Any], *calls: tuple[Any, ...], strides: bool = False
) -> Callable[[Maker], Iterator[Sample]]:
    """Samples of a view: each call is the shape of `self` and the other arguments."""

    def make_samples(make: Maker) -> Iterator[Sample]:
        for shape, *rest in calls:
            yield Sample(make(shape), *rest, expect=expect, strides=strides)

    return make_samples


def _strided(x: Any, size: Any, stride: Any, offset: Any = None) -> Any:
    flat, at = x.reshape(-1), offset or 0
    out = np.zeros(tuple(size), dtype=x.dtype)
    for index in np.ndindex(*size):
        out[index] = flat[at + sum(i * s for i, s in zip(index, stride))]
    return out


STRIDED = (
    ((3, 4), [2, 2], [4, 1]),
    ((3, 4), [2, 2], [1, 4], 2),
    ((3, 4), [3], [0], 5),
    ((3, 4), [0, 3], [1, 1]),
    ((3, 4), [], [], 7),
    ((6,), [4, 3], [1, 1]),
)
samples("as_strided", "as_strided_copy")(_view(_strided, *STRIDED, strides=True))
samples("as_strided_")(_view(_strided, *STRIDED, strides=True))

RESHAPES = (
    ((3, 4), [4, 3]),
    ((3, 4), [-1]),
    ((2, 3, 4), [6, -1]),
    ((), [1, 1]),
    ((0, 4), [4, 0]),
    ((1,), []),
)
samples("view", "view_copy")(_view(lambda x, s: x.reshape(s), *RESHAPES))
samples("reshape")(_view(lambda x, s: x.reshape(s), *RESHAPES))


def _reshape_like(make: Maker) -> Iterator[Sample]:
    for a, b in [((3, 4), (2, 6)), ((0, 2), (0,)), ((), (1, 1))]:
        yield Sample(
            make(a), make(b), grad=False, strides=True, expect=lambda x, y: x.reshape(y.shape)
        )


samples("view_as")(_reshape_like)
samples("reshape_as")(_reshape_like)


# A dtype for each size of element in bytes.
OF_SIZE = {1: "int8", 2: "int16", 4: "int32", 8: "int64", 16: "complex128"}


@samples("view.dtype", "view_copy.dtype")
def view_dtype(make: Maker) -> Iterator[Sample]:
    """The same bytes, with wider, narrower and equally wide elements."""
    item = 2 if make.dtype == "bfloat16" else np.dtype(NUMPY_TYPES[make.dtype]).itemsize

    def seen_as(x: Any, dtype: treadle.dtype) -> Any:
        memory = x.astype(NUMPY_TYPES[make.dtype], order="C")
        if make.dtype == "bfloat16":  # the upper half of a float32
            memory = (memory.view(np.uint32) >> 16).astype(np.uint16)
        return memory.view(NUMPY_TYPES[str(dtype).removeprefix("treadle.")])

    for shape, size in [
        ((3, 4), item),
        ((3, 4), item // 2),
        ((3, 4), 1),
        ((3, 4), item * 2),
        ((0, 4), item),
        ((), item),
    ]:
        if size in OF_SIZE:
            seen = getattr(treadle, OF_SIZE[size])
            yield Sample(make(shape), seen, grad=False, strides=True, expect=seen_as)


SWAPS = (((3, 4), 0, 1), ((2, 3, 4), 0, -1), ((2, 3, 4), -2, -1), ((2, 0), 1, 0), ((3,), 0, 0))
for _name in ("transpose.int", "swapaxes", "swapdims"):
    samples(_name)(_view(np.swapaxes, *SWAPS))
samples("transpose_copy.int")(_view(np.swapaxes, *SWAPS))
for _name in ("transpose_", "swapaxes_", "swapdims_"):
    samples(_name)(_view(np.swapaxes, *SWAPS))
samples("t", "t_copy")(_view(np.transpose, ((3, 4),), ((3,),), ((),), ((0, 2),)))
samples("t_")(_view(np.transpose, ((3, 4),), ((3,),), ((),)))
samples("adjoint")(
    _view(
        lambda x: (
            np.conj(np.swapaxes(x, -2, -1)) if x.dtype.kind == "c" else np.swapaxes(x, -2, -1)
        ),
        ((3, 4),),
        ((2, 3, 4),),
        ((0, 2),),
    )
)
samples("permute", "permute_copy")(
    _view(
        np.transpose,
        ((2, 3, 4), [2, 0, 1]),
        ((2, 3, 4), [-1, 0, 1]),
        ((3,), [0]),
        ((), []),
        ((0, 2), [1, 0]),
    )
)
for _name in ("movedim.intlist", "moveaxis.intlist"):
    samples(_name)(
        _view(np.moveaxis, ((2, 3, 4), [0, 1], [2, 0]), ((2, 3, 4), [-1], [0]), ((2, 3), [], []))
    )
for _name in ("movedim.int", "moveaxis.int"):
    samples(_name)(_view(np.moveaxis, ((2, 3, 4), 0, 2), ((2, 3, 4), -1, 0), ((3,), 0, 0)))


def _expanded(x: Any, size: Any, **_: Any) -> Any:
    lead = len(size) - x.ndim
    return np.broadcast_to(
        x, tuple(x.shape[i - lead] if n == -1 else n for i, n in enumerate(size))
    )


EXPANSIONS = (((3, 1), [3, 4]), ((3, 1), [2, -1, 5]), ((), [2, 3]), ((1,), [0]), ((0, 1), [0, 3]))
samples("expand", "expand_copy")(_view(_expanded, *EXPANSIONS))
samples("broadcast_to")(_view(_expanded, *EXPANSIONS))


@samples("expand_as")
def expand_as(make: Maker) -> Iterator[Sample]:
    for a, b in [((3, 1), (3, 4)), ((), (2, 2)), ((4,), (2, 3, 4))]:
        yield Sample(make(a), make(b), grad=False, expect=lambda x, y: np.broadcast_to(x, y.shape))


@samples("broadcast_tensors")
def broadcast_tensors(make: Maker) -> Iterator[Sample]:
    for shapes in [((3, 1), (4,)), ((), (2, 2), (2, 1)), ((0, 1), (3,))]:
        yield Sample([make(s) for s in shapes], expect=lambda x: np.broadcast_arrays(*x))


def _squeezed(x: Any, dims: Any = None) -> Any:
    dims = range(x.ndim) if dims is None else [dims] if isinstance(dims, int) else dims
    gone = {d % x.ndim for d in dims if x.shape[d] == 1} if x.ndim else set()
    return x.reshape([n for i, n in enumerate(x.shape) if i not in gone])


samples("squeeze", "squeeze_copy")(
    _view(_squeezed, ((1, 3, 1),), ((3, 4),), ((),), ((1, 1),), ((0, 1),))
)
samples("squeeze.dim", "squeeze_copy.dim")(
    _view(_squeezed, ((1, 3, 1), 0), ((1, 3, 1), -1), ((1, 3), 1), ((0, 1), 1))
)
samples("squeeze.dims", "squeeze_copy.dims")(
    _view(_squeezed, ((1, 3, 1), [0, -1]), ((1, 3, 1), [0, 1]), ((2, 1), []))
)
samples("squeeze_")(_view(_squeezed, ((1, 3, 1),), ((3, 4),), ((),)))
samples("squeeze_.dims")(_view(_squeezed, ((1, 3, 1), [0, -1]), ((2, 1), [])))
samples("squeeze_.dim")(_view(_squeezed, ((1, 3, 1), 0), ((1, 3), -1)))
UNSQUEEZED = (((3, 4), 0), ((3, 4), -1), ((3, 4), 2), ((), 0), ((), -1), ((0, 2), 1))
samples("unsqueeze", "unsqueeze_copy")(_view(np.expand_dims, *UNSQUEEZED))
samples("unsqueeze_")(_view(np.expand_dims, *UNSQUEEZED))


def _flattened(x: Any, start: int = 0, end: int = -1) -> Any:
    if x.ndim == 0:
        return x.reshape(1)
    start, end = start % x.ndim, end % x.ndim
    # NumPy cannot infer a size beside a zero.
    return x.reshape(
        (*x.shape[:start], int(np.prod(x.shape[start : end + 1])), *x.shape[end + 1 :])
    )


samples("flatten.using_ints")(
    _view(
        _flattened,
        ((2, 3, 4),),
        ((2, 3, 4), 1),
        ((2, 3, 4), 0, 1),
        ((2, 3, 4), -2, -1),
        ((),),
        ((2, 0, 3), 1),
        ((3,), 0, 0),
    )
)
samples("ravel")(_view(np.ravel, ((2, 3),), ((),), ((0, 2),)))


def _unflattened(x: Any, dim: int, sizes: Any) -> Any:
    dim %= x.ndim
    return x.reshape((*x.shape[:dim], *sizes, *x.shape[dim + 1 :]))


samples("unflatten.int")(
    _view(
        _unflattened,
        ((6, 2), 0, [2, 3]),
        ((2, 6), -1, [3, -1]),
        ((4,), 0, [4, 1]),
        ((2, 0), 1, [0, 3]),
    )
)


def _sliced(x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)]


samples("narrow", "narrow_copy")(
    _view(
        lambda x, d, s, n: _sliced(
            x, d, s % max(x.shape[d], 1) if s < 0 else s, (s % x.shape[d] if s < 0 else s) + n
        ),
        ((5, 4), 0, 1, 3),
        ((5, 4), -1, 0, 4),
        ((5, 4), 0, -2, 2),
        ((5, 4), 1, 4, 0),
        ((5, 4), 1, 2, 0),
    )
)
samples("select.int", "select_copy.int")(
    _view(
        lambda x, d, i: np.take(x, i, d),
        ((3, 4), 0, 1),
        ((3, 4), -1, -1),
        ((2, 3, 4), 1, 0),
        ((5,), 0, -5),
    )
)
samples("slice.Tensor", "slice_copy.Tensor")(
    _view(
        _sliced,
        ((5, 4),),
        ((5, 4), 0, 1, 3),
        ((5, 4), -1, None, None, 2),
        ((5, 4), 0, -2),
        ((5, 4), 0, 4, 2),
        ((5, 4), 0, -9, 9, 3),
        ((7,), 0, 1, None, 3),
        ((0, 4), 0, 0, 2),
        ((5, 4), 0, None, None, -1),
        ((5, 4), 1, 2, None, -2),
        ((7,), 0, 9, 1, -3),
    )
)
DIAGONALS = (
    ((3, 4),),
    ((3, 4), 1),
    ((3, 4), -2),
    ((3, 4), 9),
    ((2, 3, 4), 0, 1, 2),
    ((2, 3, 4), 1, -1, 0),
    ((0, 3),),
)
samples("diagonal", "diagonal_copy")(_view(np.diagonal, *DIAGONALS))


@samples("narrow.Tensor")
def narrow_tensor(make: Maker) -> Iterator[Sample]:
    for shape, dim, start, length in [((5, 4), 0, 1, 3), ((5, 4), -1, -2, 2), ((5,), 0, 4, 0)]:
        yield Sample(
            make(shape),
            dim,
            np.asarray(start),
            length,
            expect=lambda x, d, s, n: _sliced(x, d, s % x.shape[d], s % x.shape[d] + n),
        )


def _embedded(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    n = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], n, n), dtype=x.dtype)
    for i in range(x.shape[-1]):
        out[..., i + max(-offset, 0), i + max(offset, 0)] = x[..., i]
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


samples("diag_embed")(
    _view(
        _embedded,
        ((3,),),
        ((2, 3),),
        ((2, 3), 1),
        ((2, 3), -2),
        ((2, 3), 0, 0, 2),
        ((2, 3), 1, -1, 0),
        ((0,), 1),
    )
)
samples("diag")(
    _view(np.diag, ((3,),), ((3, 4),), ((3,), 1), ((3,), -2), ((3, 4), 1), ((3, 4), -1), ((0,),))
)


def _unfolded(x: Any, dim: int, size: int, step: int) -> Any:
    if x.ndim == 0:
        return x.reshape(1)[:size] if size else x.reshape(1)[:0]
    return np.moveaxis(np.lib.stride_tricks.sliding_window_view(x, size, axis=dim), dim, dim)[
        (slice(None),) * (dim % x.ndim) + (slice(None, None, step),)
    ]


samples("unfold", "unfold_copy")(
    _view(
        _unfolded,
        ((7,), 0, 3, 1),
        ((7,), 0, 3, 2),
        ((2, 7), 1, 2, 3),
        ((7, 2), 0, 7, 1),
        ((2, 7), -1, 3, 4),
    )
)


def _pieces(x: Any, sizes: Any, dim: int) -> list[Any]:
    ends = np.cumsum(sizes)
    return [_sliced(x, dim, int(e - n), int(e)) for e, n in zip(ends, sizes)]


def _split(x: Any, size: int, dim: int = 0) -> list[Any]:
    n = x.shape[dim]
    if n == 0:
        return [x]
    return _pieces(x, [min(size, n - i) for i in range(0, n, size)], dim)


samples("split.Tensor", "unsafe_split.Tensor", "split_copy.Tensor")(
    _view(_split, ((7, 2), 3), ((7, 2), 7), ((2, 6), 2, 1), ((2, 5), 9, -1), ((0, 2), 3))
)
for _name in (
    "split.sizes",
    "split_with_sizes",
    "unsafe_split_with_sizes",
    "split_with_sizes_copy",
):
    samples(_name)(
        _view(
            lambda x, s, d=0: _pieces(x, s, d),
            ((7, 2), [3, 4]),
            ((2, 6), [1, 0, 5], 1),
            ((2, 5), [5], -1),
            ((0, 2), [0, 0]),
        )
    )


def _chunk(x: Any, chunks: int, dim: int = 0) -> list[Any]:
    n = x.shape[dim]
    return [x] * chunks if n == 0 else _split(x, -(-n // chunks), dim)


samples("chunk", "unsafe_chunk")(
    _view(_chunk, ((7, 2), 3), ((6, 2), 3), ((2, 5), 9, 1), ((2, 5), 2, -1), ((0, 2), 3))
)
samples("tensor_split.sections")(
    _view(np.array_split, ((7, 2), 3), ((2, 5), 2, -1), ((2,), 4), ((0, 2), 2))
)
samples("tensor_split.indices")(
    _view(
        np.array_split,
        ((7, 2), [2, 5]),
        ((2, 5), [1, 1, 4], 1),
        ((5,), [-2]),
        ((5,), [3, 9]),
        ((5,), []),
    )
)


@samples("tensor_split.tensor_indices_or_sections")
def tensor_split_tensor(make: Maker) -> Iterator[Sample]:
    for shape, where, dim in [
        ((7, 2), 3, 0),
        ((2, 5), 2, -1),
        ((2, 5), [1, 1, 4], 1),
        ((5,), [-2], 0),
        ((5,), [], 0),
    ]:
        indices = of_cpu(np.asarray(where, dtype=np.int64))
        yield Sample(make(shape), indices, dim, expect=np.array_split)


samples("unbind.int", "unbind_copy.int")(
    _view(
        lambda x, d=0: list(np.moveaxis(x, d, 0)), ((3, 2),), ((2, 3), 1), ((2, 3, 4), -1), ((3,),)
    )
)
samples("alias", "alias_copy")(_view(lambda x: x, ((3, 4),), ((),), ((0,),)))


@samples("detach", "detach_copy")
def detach(make: Maker) -> Iterator[Sample]:
    for shape in [(3, 4), (), (0,)]:
        yield Sample(make(shape), grad=False, expect=lambda x: x)


@samples("view_as_real", "view_as_real_copy")
def view_as_real(make: Maker) -> Iterator[Sample]:
    for shape in [(3, 4), (), (0, 2)]:
        yield Sample(make(shape), expect=lambda x: np.stack([x.real, x.imag], -1))


@samples("view_as_complex", "view_as_complex_copy")
def view_as_complex(make: Maker) -> Iterator[Sample]:
    for shape in [(3, 2), (2,), (0, 2), (2, 3, 2)]:
        yield Sample(make(shape), strides=True, expect=lambda x: x[..., 0] + 1j * x[..., 1])


@samples("real")
def real(make: Maker) -> Iterator[Sample]:
    for shape in [(3, 4), (), (0,)]:
        yield Sample(make(shape), expect=lambda x: x.real)


@samples("imag")
def imag(make: Maker) -> Iterator[Sample]:
    for shape in [(3, 4), (), (0,)]:
        yield Sample(make(shape), expect=lambda x: x.imag)


def _written(reference: Callable[..., Any], *cases: Any) -> Callable[[Maker], Iterator[Sample]]:
    """Pieces that are written to a list of tensors: to one without elements, to others that fit."""

    def make_samples(make: Maker) -> Iterator[Sample]:
        for shape, *rest in cases:
            x = make(shape)
            pieces = reference(x, *rest)
            out = [make((0,)) if i == 0 else make(p.shape) for i, p in enumerate(pieces)]
            yield Sample(
                x, *rest, out=out, grad=False,
                expect=lambda x, *rest, out: list(reference(x, *rest)),
            )  # fmt: skip

    return make_samples


samples("split_copy.Tensor_out")(_written(_split, ((7, 2), 3), ((2, 6), 2, 1)))
samples("split_with_sizes_copy.out")(
    _written(lambda x, s, d=0: _pieces(x, s, d), ((7, 2), [3, 4]), ((2, 5), [1, 3, 1], -1))
)
samples("unbind_copy.int_out")(
    _written(lambda x, d=0: list(np.moveaxis(x, d, 0)), ((3, 2),), ((2, 3), 1))
)

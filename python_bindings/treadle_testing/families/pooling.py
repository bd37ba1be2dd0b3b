"""Pooling over one to three dimensions: maxima with their indices, means, adaptive windows."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Iterator

import numpy as np

from ..sample import Maker, Sample, samples
from ..windows import many


def sliding(
    size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool
) -> list[tuple[list[int], int]]:
    """For each window along one dimension its places inside, and its size with the padding."""
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    count = room // stride + 1
    if ceil_mode and room % stride and count * stride < size + padding:
        count += 1
    out = []
    for i in range(count):
        start = i * stride - padding
        places = range(start, start + dilation * (kernel - 1) + 1, dilation)
        extent = min(start + kernel, size + padding) - start
        out.append(([p for p in places if 0 <= p < size], extent))
    return out


def adaptive(size: int, count: int) -> list[tuple[list[int], int]]:
    out = []
    for i in range(count):
        places = list(range(i * size // count, -((-(i + 1) * size) // count)))
        out.append((places, len(places)))
    return out


def pool(x: Any, axes: list, reduce: Callable[[Any, tuple[int, ...], tuple[int, ...]], Any]) -> Any:
    """reduce(window, sizes with padding, places of the window within a plane) for all windows."""
    dims = len(axes)
    size = tuple(len(a) for a in axes)
    plane = np.arange(int(np.prod(x.shape[-dims:]))).reshape(x.shape[-dims:])
    results = {}
    for place in np.ndindex(*size):
        chosen = [axes[d][place[d]] for d in range(dims)]
        grid = np.ix_(*(c[0] for c in chosen))
        window = x[(..., *grid)].reshape(
            *x.shape[:-dims], int(np.prod([len(c[0]) for c in chosen]))
        )
        results[place] = reduce(window, tuple(c[1] for c in chosen), plane[grid].reshape(-1))
    first = next(iter(results.values()))
    out = np.zeros((*first.shape, *size), dtype=first.dtype)
    for place, value in results.items():
        out[(..., *place)] = value
    return out


def slide(
    x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, dims: int
) -> list:
    kernel = many(kernel, dims)
    stride = many(stride, dims) if stride not in (None, [], ()) else kernel
    padding, dilation = many(padding, dims), many(dilation, dims)
    return [
        sliding(x.shape[d - dims], kernel[d], stride[d], padding[d], dilation[d], ceil_mode)
        for d in range(dims)
    ]


def top(x: Any, axes: list) -> tuple[Any, Any]:
    values = pool(x, axes, lambda w, extent, at: w.max(-1))
    indices = pool(x, axes, lambda w, extent, at: at[w.argmax(-1)])
    return values, indices


def mean(x: Any, axes: list, include: bool, divisor: Any) -> Any:
    def reduce(w: Any, extent: Any, at: Any) -> Any:
        count = divisor or (np.prod(extent) if include else max(1, at.size))
        return w.sum(-1) / count

    return pool(x, axes, reduce)


def _max_samples(make: Maker, dims: int, indices: bool) -> Iterator[Sample]:
    def expect(
        x: Any,
        kernel: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Any:
        both = top(x, slide(x, kernel, stride, padding, dilation, ceil_mode, dims))
        return both if indices else both[0]

    shape = {1: (2, 3, 7), 2: (1, 2, 4, 6), 3: (1, 1, 4, 4, 5)}[dims]
    kernel = (3, 2, 2)[:dims]
    yield Sample(make.distinct(shape), (2,) * dims, expect=expect)
    yield Sample(
        make.distinct(shape[1:]), kernel, (2, 1, 3)[:dims], (1, 0, 1)[:dims], expect=expect
    )
    yield Sample(
        make.distinct(shape), kernel, (2,) * dims, 0, (1, 2, 1)[:dims], True, expect=expect
    )
    yield Sample(make((0, 3, *shape[2:])), (2,) * dims, expect=expect, grad=False)
    if not indices and make.is_floating:  # NaN wins, and a window of -inf has a value
        x = make.distinct(shape)
        x.reshape(-1)[5] = np.nan
        x[..., :2] = -np.inf
        yield Sample(x, (2,) * dims, expect=expect, grad=False)


def _avg_samples(make: Maker, dims: int) -> Iterator[Sample]:
    def expect(
        x: Any,
        kernel: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: Any = None,
    ) -> Any:
        axes = slide(x, kernel, stride, padding, 1, ceil_mode, dims)
        found = mean(x, axes, count_include_pad, divisor_override)
        return np.trunc(found).astype(x.dtype) if make.is_integral else found

    shape = {1: (2, 3, 7), 2: (1, 2, 4, 6), 3: (1, 1, 4, 4, 5)}[dims]
    kernel = (3, 2, 2)[:dims]
    yield Sample(make(shape), (2,) * dims, expect=expect)
    yield Sample(make(shape[1:]), kernel, (2, 1, 3)[:dims], (1, 0, 1)[:dims], True, expect=expect)
    yield Sample(make(shape), kernel, [], (1,) * dims, count_include_pad=False, expect=expect)
    if dims > 1:
        yield Sample(make(shape), (2,) * dims, divisor_override=3, expect=expect)


def _adaptive_samples(make: Maker, dims: int, reduce: Callable, distinct: bool) -> Iterator[Sample]:
    def expect(x: Any, size: Any) -> Any:
        sizes = many(size, dims)
        return reduce(x, [adaptive(x.shape[d - dims], sizes[d]) for d in range(dims)])

    shape = {1: (2, 2, 7), 2: (1, 2, 5, 4), 3: (1, 1, 4, 3, 3)}[dims]
    fill = make.distinct if distinct else make
    yield Sample(fill(shape), (3, 2, 2)[:dims], expect=expect)
    yield Sample(fill(shape[1:]), (1,) * dims, expect=expect)
    yield Sample(fill(shape), (4, 5, 3)[:dims], expect=expect)


def _register(dims: int) -> None:
    samples(f"max_pool{dims}d")(lambda make: _max_samples(make, dims, False))
    samples(f"max_pool{dims}d_with_indices")(lambda make: _max_samples(make, dims, True))
    samples(f"avg_pool{dims}d")(lambda make: _avg_samples(make, dims))
    samples(f"adaptive_avg_pool{dims}d")(
        lambda make: _adaptive_samples(make, dims, lambda x, a: mean(x, a, True, None), False)
    )
    samples(f"adaptive_max_pool{dims}d")(lambda make: _adaptive_samples(make, dims, top, True))


for _dims in (1, 2, 3):
    _register(_dims)


def _unpool(x: Any, indices: Any, size: Any, *_: Any) -> Any:
    out = np.zeros((*x.shape[: -len(size)], *size), dtype=x.dtype)
    flat = out.reshape(-1, int(np.prod(size)))
    rows = np.arange(flat.shape[0])[:, None]
    flat[rows, indices.reshape(flat.shape[0], -1)] = x.reshape(flat.shape[0], -1)
    return out


@samples("max_unpool2d")
def max_unpool2d(make: Maker) -> Iterator[Sample]:
    at = np.array([[[0, 3], [9, 11]], [[5, 6], [7, 8]]])
    yield Sample(make((2, 2, 2)), at, (3, 4), expect=_unpool)
    yield Sample(make((1, 2, 2, 2)), at[None], (4, 3), expect=_unpool)


@samples("max_unpool3d")
def max_unpool3d(make: Maker) -> Iterator[Sample]:
    at = np.array([[[[0, 3], [9, 23]]]])
    yield Sample(make((1, 1, 2, 2)), at, (2, 3, 4), (2, 2, 2), (0, 0, 0), expect=_unpool)

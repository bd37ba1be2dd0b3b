"""Convolution and its transpose over one to three dimensions; images as columns."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from ..sample import Maker, Sample, samples
from ..windows import many, padded, windows


def convolve(
    x: Any,
    w: Any,
    b: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Cross-correlation, one window at a time."""
    dims = w.ndim - 2
    stride, padding, dilation = (many(v, dims) for v in (stride, padding, dilation))
    single = x.ndim == dims + 1
    x = padded(x[None] if single else x, padding, padding)
    out = None
    for size, place, window in windows(x, w.shape[2:], stride, dilation):
        if out is None:
            out = np.zeros((x.shape[0], w.shape[0], *size), dtype=x.dtype)
        for o in range(w.shape[0]):
            first = o // (w.shape[0] // groups) * w.shape[1]
            part = window[:, first : first + w.shape[1]] * w[o]
            out[(slice(None), o, *place)] = part.sum(tuple(range(1, part.ndim)))
    assert out is not None
    if b is not None:
        out = out + b.reshape((-1,) + (1,) * dims)
    return out[0] if single else out


def transpose(
    x: Any,
    w: Any,
    b: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """The transpose: each input element adds its multiple of the kernel to the output."""
    dims = w.ndim - 2
    stride, padding, dilation, extra = (
        many(v, dims) for v in (stride, padding, dilation, output_padding)
    )
    single = x.ndim == dims + 1
    x = x[None] if single else x
    span = [d * (k - 1) + 1 for k, d in zip(w.shape[2:], dilation)]
    size = [(n - 1) * s + m + e for n, s, m, e in zip(x.shape[2:], stride, span, extra)]
    out = np.zeros((x.shape[0], w.shape[1] * groups, *size), dtype=x.dtype)
    per = w.shape[0] // groups
    for c in range(w.shape[0]):
        first = c // per * w.shape[1]
        for place in np.ndindex(*x.shape[2:]):
            cut = tuple(
                slice(p * s, p * s + m, d) for p, s, m, d in zip(place, stride, span, dilation)
            )
            value = x[(slice(None), c, *place)].reshape((-1,) + (1,) * (dims + 1))
            out[(slice(None), slice(first, first + w.shape[1]), *cut)] += value * w[c]
    keep = tuple(slice(p, n - p) for p, n in zip(padding, size))
    out = out[(..., *keep)]
    if b is not None:
        out = out + b.reshape((-1,) + (1,) * dims)
    return out[0] if single else out


def general(
    x: Any,
    w: Any,
    b: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    extra: Any,
    groups: int,
) -> Any:
    if transposed:
        return transpose(x, w, b, stride, padding, extra, groups, dilation)
    return convolve(x, w, b, stride, padding, dilation, groups)


@samples("convolution")
def convolution(make: Maker) -> Iterator[Sample]:
    yield Sample(
        make((1, 2, 5)),
        make((2, 2, 3)),
        None,
        [1],
        [0],
        [1],
        False,
        [0],
        1,
        expect=general,
        loose=8,
    )
    yield Sample(
        make((2, 4, 3, 4)), make((4, 1, 2, 2)), make((2,)), [2, 1], [1], [1, 2], True, [1, 0], 2,
        expect=general, loose=8,
    )  # fmt: skip
    yield Sample(
        make((0, 2, 4)),
        make((3, 2, 3)),
        None,
        [1],
        [0],
        [1],
        False,
        [0],
        1,
        expect=general,
        grad=False,
    )
    # Output padding beyond the stride, and a padding as wide as the kernel.
    yield Sample(
        make((1, 1, 3)), make((1, 1, 2)), None, [2], [1], [3], True, [2], 1, expect=general, loose=8
    )
    yield Sample(
        make((1, 2, 3)), make((2, 2, 2)), make((2,)), [3], [5], [1], False, [0], 1, expect=general,
        loose=8,
    )  # fmt: skip


@samples("conv1d")
def conv1d(make: Maker) -> Iterator[Sample]:
    yield Sample(make((2, 3, 6)), make((4, 3, 3)), make((4,)), expect=convolve, loose=8)
    yield Sample(make((2, 5)), make((2, 1, 2)), None, 2, 1, 2, 2, expect=convolve, loose=8)


@samples("conv2d")
def conv2d(make: Maker) -> Iterator[Sample]:
    yield Sample(make((1, 3, 4, 5)), make((2, 3, 3, 2)), make((2,)), expect=convolve, loose=8)
    yield Sample(make((3, 5, 5)), make((2, 3, 3, 3)), expect=convolve, loose=8)
    yield Sample(
        make((1, 4, 5, 5)), make((4, 2, 3, 3)), make((4,)), (2, 1), (1, 0), (1, 2), 2,
        expect=convolve, loose=8,
    )  # fmt: skip
    yield Sample(make((1, 2, 4, 4)), make((2, 1, 1, 1)), None, 1, 0, 1, 2, expect=convolve, loose=8)
    yield Sample(make((0, 2, 4, 4)), make((2, 2, 3, 3)), expect=convolve, grad=False)


@samples("conv3d")
def conv3d(make: Maker) -> Iterator[Sample]:
    yield Sample(make((1, 2, 3, 3, 4)), make((2, 2, 2, 2, 2)), make((2,)), expect=convolve, loose=8)
    yield Sample(
        make((2, 3, 4, 3)), make((2, 1, 2, 3, 1)), None, (1, 2, 1), (0, 1, 2), (2, 1, 1), 2,
        expect=convolve, loose=8,
    )  # fmt: skip


@samples("conv1d.padding")
def conv1d_padding(make: Maker) -> Iterator[Sample]:
    def same(x: Any, w: Any, b: Any, s: Any, p: Any, d: Any) -> Any:
        return convolve(np.pad(x, ((0, 0), (0, 0), (1, 2))), w, b, s, 0, d)

    yield Sample(make((1, 2, 6)), make((2, 2, 2)), make((2,)), 1, "same", 3, expect=same, loose=8)


@samples("conv2d.padding")
def conv2d_padding(make: Maker) -> Iterator[Sample]:
    x, w = make((1, 2, 5, 5)), make((2, 2, 3, 3))
    yield Sample(
        x, w, None, 1, "valid", expect=lambda x, w, b, s, p: convolve(x, w), loose=8, grad=False
    )
    yield Sample(
        x, w, None, 1, "same", expect=lambda x, w, b, s, p: convolve(x, w, padding=1), loose=8
    )

    def even(x: Any, w: Any, b: Any, s: Any, p: Any) -> Any:
        return convolve(np.pad(x, ((0, 0), (0, 0), (0, 1), (1, 2))), w)

    yield Sample(make((1, 1, 4, 5)), make((2, 1, 2, 4)), None, 1, "same", expect=even, loose=8)


@samples("conv3d.padding")
def conv3d_padding(make: Maker) -> Iterator[Sample]:
    def same(x: Any, w: Any, b: Any, s: Any, p: Any) -> Any:
        return convolve(x, w, b, s, (1, 0, 1))

    yield Sample(
        make((1, 1, 3, 3, 4)), make((1, 1, 3, 1, 3)), None, 1, "same", expect=same, loose=8
    )


@samples("conv_transpose1d")
def conv_transpose1d(make: Maker) -> Iterator[Sample]:
    yield Sample(make((2, 3, 4)), make((3, 2, 3)), make((2,)), expect=transpose, loose=8)
    yield Sample(make((2, 4)), make((2, 1, 2)), None, 3, 1, 2, 2, 2, expect=transpose, loose=8)


@samples("conv_transpose2d.input")
def conv_transpose2d(make: Maker) -> Iterator[Sample]:
    yield Sample(make((1, 2, 3, 2)), make((2, 3, 2, 3)), make((3,)), expect=transpose, loose=8)
    yield Sample(
        make((4, 3, 3)), make((4, 1, 3, 2)), make((2,)), (2, 1), (1, 0), (1, 0), 2, (1, 2),
        expect=transpose, loose=8,
    )  # fmt: skip


@samples("conv_transpose3d.input")
def conv_transpose3d(make: Maker) -> Iterator[Sample]:
    yield Sample(
        make((1, 2, 2, 3, 2)), make((2, 2, 2, 2, 1)), make((2,)), expect=transpose, loose=8
    )
    yield Sample(
        make((2, 2, 2, 2)), make((2, 1, 1, 2, 3)), None, (1, 2, 2), (0, 1, 1), (0, 1, 1), 2,
        expect=transpose, loose=8,
    )  # fmt: skip


def columns(x: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    single = x.ndim == 3
    x = padded(x[None] if single else x, padding, padding)
    found = [w.reshape(w.shape[0], -1) for _, _, w in windows(x, kernel, stride, dilation)]
    out = np.stack(found, -1)
    return out[0] if single else out


def image(x: Any, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    """The transpose of `columns`, from the columns of an image of positions."""
    single = x.ndim == 2
    x = x[None] if single else x
    channels = x.shape[1] // (kernel[0] * kernel[1])
    positions = np.arange(1, channels * size[0] * size[1] + 1).reshape(1, channels, *size)
    at = columns(positions, kernel, dilation, padding, stride)[0]
    out = np.zeros((x.shape[0], channels * size[0] * size[1] + 1), dtype=x.dtype)
    for n in range(x.shape[0]):
        np.add.at(out[n], at, x[n])  # position 0 is the padding
    out = out[:, 1:].reshape(x.shape[0], channels, *size)
    return out[0] if single else out


@samples("im2col")
def im2col(make: Maker) -> Iterator[Sample]:
    yield Sample(make((2, 2, 4, 5)), (2, 3), (1, 1), (0, 0), (1, 1), expect=columns)
    yield Sample(make((1, 5, 4)), (2, 2), (2, 1), (1, 2), (2, 1), expect=columns)


@samples("col2im")
def col2im(make: Maker) -> Iterator[Sample]:
    yield Sample(make((2, 8, 12)), (4, 5), (2, 2), (1, 1), (0, 0), (1, 1), expect=image, loose=4)
    yield Sample(make((4, 15)), (5, 4), (2, 2), (2, 1), (1, 1), (2, 1), expect=image, loose=4)

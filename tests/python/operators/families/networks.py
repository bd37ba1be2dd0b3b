"""Convolution, pooling, normalisation, dropout."""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from ..sample import Maker, Sample, samples

FLOATS = ("float32", "float64")


def _conv(
    x: Any,
    w: Any,
    b: Any = None,
    stride: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    groups: int = 1,
) -> Any:
    """Cross-correlation, one output pixel at a time."""
    pair = lambda v: (v, v) if isinstance(v, int) else tuple(v)
    stride, padding, dilation = pair(stride), pair(padding), pair(dilation)
    single = x.ndim == 3
    x = x[None] if single else x
    x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    span = [dilation[i] * (w.shape[i + 2] - 1) + 1 for i in range(2)]
    size = [(x.shape[i + 2] - span[i]) // stride[i] + 1 for i in range(2)]
    out = np.zeros((x.shape[0], w.shape[0], *size))
    per = w.shape[0] // groups
    for o in range(w.shape[0]):
        channels = x[:, (o // per) * w.shape[1] : (o // per + 1) * w.shape[1]]
        for i in range(size[0]):
            for j in range(size[1]):
                y, z = i * stride[0], j * stride[1]
                window = channels[
                    :, :, y : y + span[0] : dilation[0], z : z + span[1] : dilation[1]
                ]
                out[:, o, i, j] = (window * w[o]).sum((1, 2, 3))
    if b is not None:
        out += b[:, None, None]
    return out[0] if single else out


@samples("conv2d")
def conv2d(make: Maker) -> Iterator[Sample]:
    yield Sample(make((2, 3, 5, 6)), make((4, 3, 3, 2)), make((4,)), expect=_conv, loose=8)
    yield Sample(make((3, 5, 5)), make((2, 3, 3, 3)), expect=_conv, loose=8)
    yield Sample(
        make((2, 4, 6, 6)),
        make((4, 2, 3, 3)),
        make((4,)),
        (2, 1),
        (1, 0),
        (1, 2),
        2,
        expect=_conv,
        loose=8,
    )
    yield Sample(make((1, 2, 4, 4)), make((2, 1, 1, 1)), None, 1, 0, 1, 2, expect=_conv, loose=8)
    yield Sample(make((0, 2, 4, 4)), make((2, 2, 3, 3)), expect=_conv, grad=False)


@samples("conv2d.padding", dtypes=FLOATS)
def conv2d_padding(make: Maker) -> Iterator[Sample]:
    yield Sample(
        make((1, 2, 5, 5)),
        make((2, 2, 3, 3)),
        None,
        1,
        "valid",
        expect=lambda x, w, b, s, p: _conv(x, w),
        loose=8,
    )
    yield Sample(
        make((1, 2, 5, 5)),
        make((2, 2, 3, 3)),
        None,
        1,
        "same",
        expect=lambda x, w, b, s, p: _conv(x, w, padding=1),
        loose=8,
    )

    def even(x: Any, w: Any, b: Any, s: Any, p: Any) -> Any:
        return _conv(np.pad(x, ((0, 0), (0, 0), (0, 1), (1, 2))), w)

    yield Sample(make((1, 2, 5, 5)), make((2, 2, 2, 4)), None, 1, "same", expect=even, loose=8)


def _windows(
    x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, fill: float
) -> Iterator[Any]:
    x = np.pad(
        x, [(0, 0)] * (x.ndim - 2) + [(padding[0],) * 2, (padding[1],) * 2], constant_values=fill
    )
    span = [dilation[i] * (kernel[i] - 1) + 1 for i in range(2)]
    size = [(x.shape[i - 2] - span[i]) // stride[i] + 1 for i in range(2)]
    for i in range(size[0]):
        for j in range(size[1]):
            y, z = i * stride[0], j * stride[1]
            yield size, (i, j), x[..., y : y + span[0] : dilation[0], z : z + span[1] : dilation[1]]


def _pool(
    x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, reduce: Any, fill: float
) -> Any:
    out = None
    for size, (i, j), window in _windows(x, kernel, stride or kernel, padding, dilation, fill):
        out = np.zeros((*x.shape[:-2], *size)) if out is None else out
        out[..., i, j] = reduce(window, axis=(-2, -1))
    return out


def _max_pool(
    x: Any, kernel: Any, stride: Any = None, padding: Any = (0, 0), dilation: Any = (1, 1)
) -> Any:
    return _pool(
        x,
        kernel,
        stride,
        padding,
        dilation,
        np.max,
        np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -1e9,
    ).astype(x.dtype)


@samples("max_pool2d", dtypes=FLOATS)
def max_pool2d(make: Maker) -> Iterator[Sample]:
    yield Sample(make.distinct((2, 3, 4, 6)), (2, 2), expect=_max_pool)
    yield Sample(make.distinct((3, 5, 5)), (3, 2), (2, 1), (1, 1), expect=_max_pool)
    yield Sample(make.distinct((1, 2, 7, 7)), (2, 2), (2, 2), (0, 0), (2, 2), expect=_max_pool)


@samples("max_pool2d_with_indices")
def max_pool2d_with_indices(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, kernel: Any) -> Any:
        plane = np.arange(x.shape[-2] * x.shape[-1]).reshape(x.shape[-2:])
        values = _max_pool(x, kernel)
        index = np.zeros(values.shape, dtype=np.int64)
        for _, (i, j), w in _windows(x, kernel, kernel, (0, 0), (1, 1), 0):
            at = plane[
                i * kernel[0] : (i + 1) * kernel[0], j * kernel[1] : (j + 1) * kernel[1]
            ].reshape(-1)
            index[..., i, j] = at[w.reshape(*w.shape[:-2], -1).argmax(-1)]
        return values, index

    yield Sample(make.distinct((2, 2, 4, 4)), (2, 2), expect=expect)


@samples("avg_pool2d")
def avg_pool2d(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, kernel: Any, stride: Any = None, padding: Any = (0, 0), **_: Any) -> Any:
        return _pool(x, kernel, stride, padding, (1, 1), np.mean, 0)

    yield Sample(make((2, 3, 4, 6)), (2, 3), expect=expect)
    yield Sample(make((3, 5, 5)), (3, 2), (2, 1), (1, 1), expect=expect)
    yield Sample(
        make((1, 1, 4, 4)),
        (2, 2),
        divisor_override=3,
        expect=lambda x, k, **_: expect(x, k) * 4 / 3,
    )


@samples("constant_pad_nd", dtypes=("float32", "float64", "int64"))
def constant_pad_nd(make: Maker) -> Iterator[Sample]:
    yield Sample(
        make((2, 3)),
        [1, 2],
        1,
        expect=lambda x, p, v: np.pad(x, ((0, 0), (1, 2)), constant_values=v),
    )
    yield Sample(make((2, 3)), [0, 1, 2, 0], expect=lambda x, p: np.pad(x, ((2, 0), (0, 1))))
    yield Sample(make((2, 4)), [-1, -1], expect=lambda x, p: x[:, 1:-1])


@samples("dropout", dtypes=FLOATS)
def dropout(make: Maker) -> Iterator[Sample]:
    yield Sample(make((3, 4)), 0.5, False, expect=lambda x, p, t: x)
    yield Sample(make((3, 4)), 1.0, True, expect=lambda x, p, t: x * 0)
    yield Sample(make((50, 40)), 0.3, True)


@samples("dropout_", dtypes=FLOATS)
def dropout_inplace(make: Maker) -> Iterator[Sample]:
    yield Sample(make((3, 4)), 0.5, False, expect=lambda x, p, t: x)
    yield Sample(make((3, 4)), 1.0, True, expect=lambda x, p, t: x * 0)


def _normalised(x: Any, axes: Any, eps: float) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


@samples("batch_norm", dtypes=FLOATS)
def batch_norm(make: Maker) -> Iterator[Sample]:
    def train(x: Any, w: Any, b: Any, *_: Any) -> Any:
        shape = (1, -1) + (1,) * (x.ndim - 2)
        y = _normalised(x, (0, *range(2, x.ndim)), 1e-5)
        return (y if w is None else y * w.reshape(shape)) + (0 if b is None else b.reshape(shape))

    def evaluate(x: Any, w: Any, b: Any, mean: Any, var: Any, *_: Any) -> Any:
        shape = (1, -1) + (1,) * (x.ndim - 2)
        return (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + 1e-5) * w.reshape(
            shape
        ) + b.reshape(shape)

    for shape in [(4, 3), (2, 3, 4), (2, 3, 2, 2)]:
        yield Sample(
            make(shape),
            make((3,)),
            make((3,)),
            None,
            None,
            True,
            0.1,
            1e-5,
            True,
            expect=train,
            loose=8,
        )
        yield Sample(
            make(shape), None, None, None, None, True, 0.1, 1e-5, True, expect=train, loose=8
        )
    yield Sample(
        make((4, 3)),
        make((3,)),
        make((3,)),
        make((3,)),
        make((3,), 0.5, 2),
        False,
        0.1,
        1e-5,
        True,
        expect=evaluate,
        loose=8,
    )


@samples("native_layer_norm")
def native_layer_norm(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, shape: Any, w: Any, b: Any, eps: float) -> Any:
        axes = tuple(range(x.ndim - len(shape), x.ndim))
        rstd = 1 / np.sqrt(x.var(axes, keepdims=True) + eps)
        y = _normalised(x, axes, eps)
        return (
            (y if w is None else y * w) + (0 if b is None else b),
            x.mean(axes, keepdims=True),
            rstd,
        )

    yield Sample(make((3, 4)), [4], make((4,)), make((4,)), 1e-5, expect=expect, loose=8)
    yield Sample(make((2, 3, 4)), [3, 4], None, None, 1e-5, expect=expect, loose=8)


@samples("layer_norm", dtypes=FLOATS)
def layer_norm(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, shape: Any, w: Any = None, b: Any = None) -> Any:
        y = _normalised(x, tuple(range(x.ndim - len(shape), x.ndim)), 1e-5)
        return (y if w is None else y * w) + (0 if b is None else b)

    yield Sample(make((3, 4)), [4], expect=expect, loose=8)
    yield Sample(make((2, 5, 4)), [4], make((4,)), make((4,)), expect=expect, loose=8)

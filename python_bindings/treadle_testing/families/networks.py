"""Normalisation, dropout."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from ..sample import Maker, Sample, samples


@samples("dropout")
def dropout(make: Maker) -> Iterator[Sample]:
    yield Sample(make((3, 4)), 0.5, False, expect=lambda x, p, t: x)
    if make.is_floating or make.is_complex:
        yield Sample(make((3, 4)), 1.0, True, expect=lambda x, p, t: x * 0)
        yield Sample(make((50, 40)), 0.3, True)


@samples("dropout_")
def dropout_inplace(make: Maker) -> Iterator[Sample]:
    yield Sample(make((3, 4)), 0.5, False, expect=lambda x, p, t: x)
    yield Sample(make((3, 4)), 1.0, True, expect=lambda x, p, t: x * 0)


def _normalised(x: Any, axes: Any, eps: float) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


@samples("batch_norm")
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


def _native_batch_norms(has_training: bool, statistics: bool) -> Any:
    """Samples of the forms that give the statistics of the batch as well."""

    def expect(x: Any, w: Any, b: Any, *rest: Any) -> Any:
        axes, shape = (0, *range(2, x.ndim)), (1, -1) + (1,) * (x.ndim - 2)
        training = rest[2 if statistics else 0] if has_training else True
        none = np.zeros((0,), x.dtype)
        if training:
            mean, var = x.mean(axes), x.var(axes)
            more = [mean, 1 / np.sqrt(var + 1e-5)]
        else:
            mean, var = rest[:2]
            more = [none, none]
        y = (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + 1e-5)
        y = y if w is None else y * w.reshape(shape) + b.reshape(shape)
        return [y, *more, *([] if has_training else [np.zeros((0,), np.uint8)])]

    def make_samples(make: Maker) -> Iterator[Sample]:
        for training in (True, False):
            if not training and not (has_training and statistics):
                continue
            for affine in (True, False):
                running = [make((3,)), make((3,), 0.5, 2)] if statistics else []
                yield Sample(
                    make((4, 3, 2)), *([make((3,)), make((3,))] if affine else [None, None]),
                    *running, *([training] if has_training else []), 0.1, 1e-5,
                    expect=expect, loose=8, grad=training and not statistics,
                )  # fmt: skip

    return make_samples


samples("native_batch_norm")(_native_batch_norms(True, True))
samples("_native_batch_norm_legit")(_native_batch_norms(True, True))
samples("_native_batch_norm_legit.no_stats")(_native_batch_norms(True, False))
samples("_batch_norm_with_update")(_native_batch_norms(False, True))


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


@samples("layer_norm")
def layer_norm(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, shape: Any, w: Any = None, b: Any = None) -> Any:
        y = _normalised(x, tuple(range(x.ndim - len(shape), x.ndim)), 1e-5)
        return (y if w is None else y * w) + (0 if b is None else b)

    yield Sample(make((3, 4)), [4], expect=expect, loose=8)
    yield Sample(make((2, 5, 4)), [4], make((4,)), make((4,)), expect=expect, loose=8)

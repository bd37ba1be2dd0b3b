"""Group, instance and root-mean-square normalisation, weight norm, dropout of channels."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from ..sample import Maker, Sample, samples


def _per_channel(t: Any, rank: int) -> Any:
    return t.reshape((1, -1) + (1,) * (rank - 2))


def _group_norm(x: Any, groups: int, w: Any = None, b: Any = None, eps: float = 1e-5) -> Any:
    rows = x.reshape(x.shape[0], groups, int(np.prod(x.shape[1:])) // groups)
    y = (rows - rows.mean(2, keepdims=True)) / np.sqrt(rows.var(2, keepdims=True) + eps)
    y = y.reshape(x.shape)
    y = y if w is None else y * _per_channel(w, x.ndim)
    return y if b is None else y + _per_channel(b, x.ndim)


@samples("group_norm")
def group_norm(make: Maker) -> Iterator[Sample]:
    yield Sample(make((2, 4, 3)), 2, make((4,)), make((4,)), expect=_group_norm, loose=8)
    yield Sample(make((3, 6)), 3, None, None, 1e-2, expect=_group_norm, loose=8)
    yield Sample(make((2, 2, 2, 3)), 1, make((2,)), expect=_group_norm, loose=8)
    yield Sample(make((1, 4, 2, 2, 2)), 4, None, make((4,)), expect=_group_norm, loose=8)
    yield Sample(make((0, 4, 3)), 2, expect=_group_norm, grad=False)


@samples("native_group_norm")
def native_group_norm(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, w: Any, b: Any, n: int, c: int, hw: int, g: int, eps: float) -> Any:
        rows = x.reshape(n, g, -1)
        return (
            _group_norm(x, g, w, b, eps),
            rows.mean(2),
            1 / np.sqrt(rows.var(2) + eps),
        )

    yield Sample(make((2, 4, 3)), make((4,)), make((4,)), 2, 4, 3, 2, 1e-5, expect=expect, loose=8)
    yield Sample(make((2, 6, 2, 2)), None, None, 2, 6, 4, 3, 1e-3, expect=expect, loose=8)


@samples("instance_norm")
def instance_norm(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, w: Any, b: Any, mean: Any, var: Any, use: bool, *_: Any) -> Any:
        axes = tuple(range(2, x.ndim))
        m = x.mean(axes, keepdims=True) if use else _per_channel(mean, x.ndim)
        v = x.var(axes, keepdims=True) if use else _per_channel(var, x.ndim)
        y = (x - m) / np.sqrt(v + 1e-5)
        y = y if w is None else y * _per_channel(w, x.ndim)
        return y if b is None else y + _per_channel(b, x.ndim)

    rest = (True, 0.1, 1e-5, False)
    if make.dtype in ("float16", "bfloat16"):
        loose = 16.0  # the scale is rounded before it is used
    else:
        loose = 8.0
    w, b = make((3,)), make((3,))
    yield Sample(make((2, 3, 4)), None, None, None, None, *rest, expect=expect, loose=loose)
    yield Sample(make((2, 3, 2, 2)), w, b, None, None, *rest, expect=expect, loose=loose)
    yield Sample(
        make((2, 3, 4)),
        w,
        b,
        make((3,)),
        make((3,), 0.5, 2),
        False,
        0.1,
        1e-5,
        False,
        expect=expect,
        loose=loose,
    )


@samples("rms_norm")
def rms_norm(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, shape: Any, w: Any = None, eps: Any = None) -> Any:
        axes = tuple(range(x.ndim - len(shape), x.ndim))
        y = x / np.sqrt((x * x).mean(axes, keepdims=True) + (eps or 0))
        return y if w is None else y * w

    yield Sample(make((3, 4), 0.5, 2), [4], expect=expect, loose=8)
    yield Sample(make((2, 3, 4)), [3, 4], make((3, 4)), 1e-2, expect=expect, loose=8)
    yield Sample(make((5,)), [5], make((5,)), 0.1, expect=expect, loose=8)
    yield Sample(make((0, 4)), [4], make((4,)), 0.1, expect=expect, grad=False)


def _norm_except(v: Any, p: int = 2, dim: int = 0) -> Any:
    if dim == -1:
        return (np.abs(v) ** p).sum() ** (1 / p)
    axes = tuple(d for d in range(v.ndim) if d != dim)
    return (np.abs(v) ** p).sum(axes, keepdims=True) ** (1 / p)


@samples("norm_except_dim")
def norm_except_dim(make: Maker) -> Iterator[Sample]:
    yield Sample(make((3, 4)), expect=_norm_except, loose=4)
    yield Sample(make((3, 2, 2)), 2, 1, expect=_norm_except, loose=4)
    yield Sample(make((3, 2)), 2, -1, expect=_norm_except, loose=4)
    yield Sample(make((5,)), expect=lambda v: np.abs(v), loose=4)


@samples("_weight_norm")
def weight_norm(make: Maker) -> Iterator[Sample]:
    def expect(v: Any, g: Any, dim: int = 0) -> Any:
        return v * g / _norm_except(v, 2, dim)

    yield Sample(make((3, 4)), make((3, 1)), expect=expect, loose=8)
    yield Sample(make((3, 2, 2)), make((1, 2, 1)), 1, expect=expect, loose=8)
    yield Sample(make((3, 2)), make(()), -1, expect=expect, loose=8)


@samples("feature_dropout", "feature_dropout_")
def feature_dropout(make: Maker) -> Iterator[Sample]:
    yield Sample(make((3, 4)), 0.5, False, expect=lambda x, p, t: x)
    if make.is_floating or make.is_complex:
        yield Sample(make((3, 4, 2)), 1.0, True, expect=lambda x, p, t: x * 0)
        yield Sample(make((20, 30, 2)), 0.3, True)


@samples("alpha_dropout", "alpha_dropout_")
def alpha_dropout(make: Maker) -> Iterator[Sample]:
    yield Sample(make((3, 4)), 0.5, False, expect=lambda x, p, t: x)
    if make.is_floating or make.is_complex:
        yield Sample(make((3, 4)), 1.0, True, expect=lambda x, p, t: x * 0)
        yield Sample(make((50, 40)), 0.3, True)


@samples("feature_alpha_dropout", "feature_alpha_dropout_")
def feature_alpha_dropout(make: Maker) -> Iterator[Sample]:
    yield Sample(make((3, 4)), 0.5, False, expect=lambda x, p, t: x)
    if make.is_floating or make.is_complex:
        yield Sample(make((3, 4, 2)), 1.0, True, expect=lambda x, p, t: x * 0)
        yield Sample(make((20, 30, 2)), 0.3, True)


@samples("native_dropout_backward")
def native_dropout_backward(make: Maker) -> Iterator[Sample]:
    yield Sample(
        make((3, 4)), make.mask((3, 4)), 2.0, grad=make.is_floating or make.is_complex,
        expect=lambda g, m, s: g * m * s,
    )  # fmt: skip

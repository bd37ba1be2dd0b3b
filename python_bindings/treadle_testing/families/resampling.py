"""Padding, interpolation, sampling at points of a grid, and pixels moved among the channels."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
import math
from typing import Any, Iterator

import numpy as np

from ..sample import Maker, Sample, samples

MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


# ---- padding -----------------------------------------------------------------------------------


def _width(x: Any, pad: Any) -> list:
    sides = [(pad[2 * i], pad[2 * i + 1]) for i in range(len(pad) // 2)]
    return [(0, 0)] * (x.ndim - len(sides)) + sides[::-1]


def _padded(x: Any, pad: Any, mode: str) -> Any:
    """NumPy pads, then negative amounts cut."""
    width = _width(x, pad)
    out = np.pad(x, [(max(a, 0), max(b, 0)) for a, b in width], mode=MODES[mode])
    cut = tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(width, out.shape))
    return out[cut]


@samples("constant_pad_nd")
def constant_pad_nd(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, pad: Any, value: Any = 0) -> Any:
        if not pad:
            return x
        width = _width(x, pad)
        out = np.pad(x, [(max(a, 0), max(b, 0)) for a, b in width], constant_values=value)
        return out[tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(width, out.shape))]

    yield Sample(make((2, 3)), [1, 2], 1, expect=expect)
    yield Sample(make((2, 3)), [0, 1, 2, 0], expect=expect)
    yield Sample(make((2, 4)), [-1, -1], expect=expect)
    yield Sample(make((2, 4)), [-1, 2, 1, -2], expect=expect)
    yield Sample(make(()), [], expect=expect)
    yield Sample(make((0, 2)), [1, 1], expect=expect, grad=False)


@samples("pad")
def pad(make: Maker) -> Iterator[Sample]:
    yield Sample(
        make((2, 3)), [1, 2], "constant", 1.0,
        expect=lambda x, p, m, v: np.pad(x, ((0, 0), (1, 2)), constant_values=1),
    )  # fmt: skip
    yield Sample(make((2, 3)), [1, 2], expect=lambda x, p: np.pad(x, ((0, 0), (1, 2))))
    for mode in MODES:
        yield Sample(make((2, 4)), [2, 1], mode, expect=_padded)
        yield Sample(make((1, 2, 3, 4)), [1, 2, 2, 0], mode, expect=_padded)
        yield Sample(make((1, 2, 3, 3)), [2, 2, 0, 1, 1, 0], mode, expect=_padded)
        for amounts in ([-1, 2], [2, -1]):
            yield Sample(make((2, 5)), amounts, mode, expect=_negative)


def _negative(x: Any, pad: Any, mode: str) -> Any:
    """A cut and a border at once: positions beyond the ends are those of the whole line, but what
    is repeated in circles is what was left."""
    n = x.shape[-1]
    at = np.arange(-pad[0], n + pad[1])
    if mode == "reflect":
        at = (n - 1) - abs((n - 1) - abs(at))
    elif mode == "replicate":
        at = np.clip(at, 0, n - 1)
    else:
        first, end = max(0, -pad[0]), n + min(0, pad[1])
        at = first + (at - first) % (end - first)
    return x[..., at]


@samples("_pad_circular")
def pad_circular(make: Maker) -> Iterator[Sample]:
    yield Sample(make((2, 3)), [3, 1], expect=lambda x, p: _padded(x, p, "circular"))


def _pad_samples(make: Maker, dims: int, mode: str) -> Iterator[Sample]:
    pads = [1, 2, 2, 1, 0, 1][: 2 * dims]
    shape = (2, 3, 4, 3)[: dims + 1]
    yield Sample(make(shape), pads, expect=lambda x, p: _padded(x, p, mode))
    yield Sample(make((1, *shape)), pads, expect=lambda x, p: _padded(x, p, mode))


for _dims in (1, 2, 3):
    for _name, _mode in (("reflection", "reflect"), ("replication", "replicate")):
        samples(f"{_name}_pad{_dims}d")(
            lambda make, dims=_dims, mode=_mode: _pad_samples(make, dims, mode)
        )


# ---- interpolation -----------------------------------------------------------------------------


def _cubic(x: float, a: float) -> float:
    x = abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0


def _matrix(mode: str, n: int, m: int, corners: bool = False, scale: Any = None) -> Any:
    """How each of m outputs is made of n inputs."""
    w = np.zeros((m, n))
    step = 1 / scale if scale else n / m
    if corners:
        step = (n - 1) / (m - 1) if m > 1 else 0.0
    for o in range(m):
        if mode == "nearest":
            w[o, min(math.floor(o * step), n - 1)] = 1
        elif mode == "nearest-exact":
            w[o, min(math.floor((o + 0.5) * step), n - 1)] = 1
        elif mode in ("linear", "cubic"):
            at = o * step if corners else (o + 0.5) * step - 0.5
            at = max(at, 0.0) if mode == "linear" else at
            left = math.floor(at)
            taps = (
                {0: 1 - (at - left), 1: at - left}
                if mode == "linear"
                else {k: _cubic(at - left - k, -0.75) for k in (-1, 0, 1, 2)}
            )
            for k, value in taps.items():
                w[o, min(max(left + k, 0), n - 1)] += value
        else:
            wide, half = max(step, 1.0), 1.0 if mode == "linear-antialias" else 2.0
            centre = step * (o + 0.5)
            first = max(int(centre - half * wide + 0.5), 0)
            last = min(int(centre + half * wide + 0.5), n)
            for i in range(first, last):
                x = (i - centre + 0.5) / wide
                w[o, i] = max(0.0, 1 - abs(x)) if half == 1.0 else _cubic(x, -0.5)
            w[o] /= w[o].sum()
    return w


def _resampled(x: Any, size: Any, mode: str, corners: bool, scales: Any) -> Any:
    out = x.astype(np.float64)
    for d, m in enumerate(size):
        matrix = _matrix(mode, x.shape[d + 2], m, corners, scales[d])
        out = np.moveaxis(np.tensordot(matrix, out, ([1], [d + 2])), 0, d + 2)
    if x.dtype == np.uint8:
        out = np.clip(np.rint(out), 0, 255)
    return out.astype(x.dtype)


def _upsample_samples(make: Maker, dims: int, mode: str) -> Iterator[Sample]:
    shape = (2, 1, 3, 4, 3)[: dims + 2] if dims < 3 else (1, 1, 3, 2, 3)
    has_corners = not mode.startswith("nearest")

    def sample(size: Any, scales: Any, corners: bool) -> Sample:
        def expect(x: Any, size: Any, *_: Any) -> Any:
            return _resampled(x, size, mode, corners, scales or [None] * dims)

        flags = (corners,) if has_corners else ()
        x = make(shape)
        if x.dtype == np.uint8:
            # Means of few such numbers are whole, not half way between two.
            x = x // 16 * 16
        return Sample(x, size, *flags, *(scales or []), expect=expect, loose=4)

    for corners in (False, True) if has_corners else (False,):
        yield sample((5, 7, 4)[:dims], None, corners)
        yield sample((2, 3, 1)[:dims], None, corners)
        yield sample((1, 4, 3)[:dims], None, corners)
    scales = [1.7, 0.6, 2.5][:dims]
    yield sample([math.floor(n * s) for n, s in zip(shape[2:], scales)], scales, False)


for _name, _dims, _mode in (
    ("upsample_nearest1d", 1, "nearest"),
    ("upsample_nearest2d", 2, "nearest"),
    ("upsample_nearest3d", 3, "nearest"),
    ("_upsample_nearest_exact1d", 1, "nearest-exact"),
    ("_upsample_nearest_exact2d", 2, "nearest-exact"),
    ("_upsample_nearest_exact3d", 3, "nearest-exact"),
    ("upsample_linear1d", 1, "linear"),
    ("upsample_bilinear2d", 2, "linear"),
    ("upsample_trilinear3d", 3, "linear"),
    ("upsample_bicubic2d", 2, "cubic"),
    ("_upsample_bilinear2d_aa", 2, "linear-antialias"),
    ("_upsample_bicubic2d_aa", 2, "cubic-antialias"),
):
    samples(_name)(lambda make, dims=_dims, mode=_mode: _upsample_samples(make, dims, mode))


@samples("_upsample_bilinear2d_aa.vec")
def _upsample_by_factors(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, size: Any, corners: bool, scales: Any) -> Any:
        size = size or [math.floor(n * s) for n, s in zip(x.shape[2:], scales)]
        return _resampled(x, size, "linear-antialias", corners, scales or [None, None])

    x = make((2, 1, 3, 4))
    x = x // 16 * 16 if x.dtype == np.uint8 else x
    yield Sample(x, [5, 2], False, None, expect=expect, loose=4)
    yield Sample(x, None, False, [1.7, 0.6], expect=expect, loose=4)


# ---- sampling ----------------------------------------------------------------------------------


def _position(at: float, size: int, padding: int, corners: bool) -> float:
    if padding == 2:
        low, span = (0.0, size - 1.0) if corners else (-0.5, float(size))
        if span == 0:
            return 0.0
        distance = abs(at - low)
        extra, turns = math.fmod(distance, span), math.floor(distance / span)
        at = low + (extra if turns % 2 == 0 else span - extra)
    return min(max(at, 0.0), size - 1.0) if padding else at


def _taps(x: float, size: int, mode: int, padding: int, corners: bool) -> dict[int, float]:
    at = (x + 1) / 2 * (size - 1) if corners else ((x + 1) * size - 1) / 2
    if mode == 2:
        left = math.floor(at)
        pairs = [
            (int(_position(left + k, size, padding, corners)), _cubic(at - left - k, -0.75))
            for k in (-1, 0, 1, 2)
        ]
    else:
        at = _position(at, size, padding, corners)
        left = math.floor(at)
        pairs = [(round(at), 1.0)] if mode else [(left, 1 - (at - left)), (left + 1, at - left)]
    out: dict[int, float] = {}
    for i, w in pairs:
        if 0 <= i < size:
            out[i] = out.get(i, 0.0) + w
    return out


def _sampled(x: Any, grid: Any, mode: int, padding: int, corners: bool) -> Any:
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for place in np.ndindex(*grid.shape[:-1]):
        point = grid[place]
        taps = [
            _taps(point[-1 - d], x.shape[d + 2], mode, padding, corners).items()
            for d in range(x.ndim - 2)
        ]
        for chosen in itertools.product(*taps):
            at = tuple(i for i, _ in chosen)
            weight = math.prod(w for _, w in chosen)
            out[(place[0], slice(None), *place[1:])] += weight * x[(place[0], slice(None), *at)]
    return out


def _sampler_samples(make: Maker, dims: int, modes: tuple[int, ...]) -> Iterator[Sample]:
    shape, points = ((1, 2, 3, 4), (1, 2, 3)) if dims == 2 else ((1, 1, 2, 3, 2), (1, 1, 2, 2))
    for mode in modes:
        for padding in (0, 1, 2):
            for corners in (False, True):
                # Off the pixels and their edges, where a slope is not defined.
                steps = make.rng.integers(-14, 14, (*points, dims)) * 0.125 + 0.0546875
                grid = steps.astype(make((1,)).dtype)
                yield Sample(
                    make(shape), grid, mode, padding, corners, expect=_sampled, loose=8,
                    grad=mode != 1,
                    convention="where backward is recorded, the slope of the cubic kernel is made "
                    "in steps: an infinite pixel gives inf - inf" if mode == 2 else "",
                )  # fmt: skip


samples("grid_sampler_2d")(lambda make: _sampler_samples(make, 2, (0, 1, 2)))
samples("grid_sampler_3d")(lambda make: _sampler_samples(make, 3, (0, 1)))


@samples("grid_sampler")
def grid_sampler(make: Maker) -> Iterator[Sample]:
    for dims in (2, 3):
        yield next(iter(_sampler_samples(make, dims, (0,))))


@samples("affine_grid_generator")
def affine_grid_generator(make: Maker) -> Iterator[Sample]:
    def expect(theta: Any, size: Any, corners: bool) -> Any:
        axes = []
        for n in size[2:]:
            ends = np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
            axes.append(ends if corners else ends * (n - 1) / n)
        mesh = np.meshgrid(*axes, indexing="ij")
        base = np.stack([*mesh[::-1], np.ones_like(mesh[0])], -1)
        return np.einsum("...k,njk->n...j", base, theta)

    for corners in (False, True):
        yield Sample(make((2, 2, 3)), [2, 1, 3, 4], corners, expect=expect, loose=4)
        yield Sample(make((1, 3, 4)), [1, 1, 2, 1, 3], corners, expect=expect, loose=4)


# ---- shuffling ---------------------------------------------------------------------------------


@samples("pixel_shuffle")
def pixel_shuffle(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, r: int) -> Any:
        *lead, c, h, w = x.shape
        y = x.reshape(-1, c // (r * r), r, r, h, w).transpose(0, 1, 4, 2, 5, 3)
        return y.reshape(*lead, c // (r * r), h * r, w * r)

    yield Sample(make((1, 8, 2, 3)), 2, expect=expect)
    yield Sample(make((9, 1, 2)), 3, expect=expect)


@samples("pixel_unshuffle")
def pixel_unshuffle(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, r: int) -> Any:
        *lead, c, h, w = x.shape
        y = x.reshape(-1, c, h // r, r, w // r, r).transpose(0, 1, 3, 5, 2, 4)
        return y.reshape(*lead, c * r * r, h // r, w // r)

    yield Sample(make((1, 2, 4, 2)), 2, expect=expect)
    yield Sample(make((1, 3, 6)), 3, expect=expect)


@samples("channel_shuffle")
def channel_shuffle(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, groups: int) -> Any:
        y = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
        return np.swapaxes(y, 1, 2).reshape(x.shape)

    yield Sample(make((1, 6, 2, 2)), 3, expect=expect)
    yield Sample(make((2, 4, 3)), 2, expect=expect)

"""Integrals and derivatives of sampled functions, against SciPy and numpy.gradient."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator

import numpy as np
from scipy import integrate

from ..sample import NUMPY_TYPES, Maker, Sample, samples

CALLS: tuple[tuple[tuple[int, ...], int], ...] = (
    ((5,), 0),
    ((3, 4), 0),
    ((3, 4), -1),
    ((2, 3, 4), 1),
    ((2, 3, 4), -3),
    ((3, 1), 1),
    ((0, 3), 1),
)


def _whole(y: Any) -> Any:
    """Integers as float64, whose sums and differences are exact."""
    return y.astype(np.float64) if y.dtype.kind in "iu" else y


def _points(make: Maker, shape: tuple[int, ...], dim: int = -1) -> Any:
    """Ascending along a dimension, at unequal distances."""
    if make.is_integral:
        return np.cumsum(Maker("int64")(shape, 1, 3), axis=dim).astype(NUMPY_TYPES[make.dtype])
    steps = Maker("float64")(shape, 0.5, 1.5)
    return np.cumsum(steps, axis=dim).astype(NUMPY_TYPES[make.dtype])


def _ordinates(make: Maker, shape: tuple[int, ...]) -> Any:
    # Neighbours of a narrow dtype are added in it.
    return make(shape, 0, 4) if make.is_unsigned else make(shape)


def _at_points(cumulative: bool) -> Any:
    f = integrate.cumulative_trapezoid if cumulative else integrate.trapezoid

    def make_samples(make: Maker) -> Iterator[Sample]:
        def expect(y: Any, x: Any, dim: int = -1) -> Any:
            return f(_whole(y), _whole(x), axis=dim)

        for shape, dim in CALLS:
            yield Sample(
                _ordinates(make, shape),
                _points(make, (shape[dim],)),
                dim=dim,
                expect=expect,
                loose=4,
            )
            yield Sample(
                _ordinates(make, shape), _points(make, shape, dim), dim=dim, expect=expect, loose=4
            )
        yield Sample(_ordinates(make, (2, 5)), _points(make, (5,)), expect=expect, loose=4)
        # Points for the last dimensions only.
        yield Sample(
            _ordinates(make, (2, 3, 4)),
            _points(make, (3, 4), 0),
            dim=1,
            loose=4,
            expect=lambda y, x, dim: expect(y, np.broadcast_to(x, y.shape), dim),
        )
        yield Sample(
            _ordinates(make, (0,)),
            _points(make, (0,)),
            expect=lambda y, x: _whole(y) if cumulative else _whole(y).sum(),
        )

    return make_samples


def _at_distance(cumulative: bool) -> Any:
    f = integrate.cumulative_trapezoid if cumulative else integrate.trapezoid

    def make_samples(make: Maker) -> Iterator[Sample]:
        def expect(y: Any, dx: Any = 1, dim: int = -1) -> Any:
            return f(_whole(y), dx=dx, axis=dim)

        for shape, dim in CALLS:
            yield Sample(_ordinates(make, shape), dim=dim, expect=expect, loose=4)
            yield Sample(_ordinates(make, shape), dx=0.75, dim=dim, expect=expect, loose=4)
        yield Sample(_ordinates(make, (2, 5)), expect=expect, loose=4)
        # More than a narrow integer holds.
        yield Sample(_ordinates(make, (2, 5)), dx=200, expect=expect, loose=4)
        yield Sample(
            _ordinates(make, (0,)),
            expect=lambda y: _whole(y) if cumulative else _whole(y).sum(),
        )

    return make_samples


for _name in ("trapezoid", "trapz"):
    samples(_name + ".x")(_at_points(cumulative=False))
    samples(_name + ".dx")(_at_distance(cumulative=False))
samples("cumulative_trapezoid.x")(_at_points(cumulative=True))
samples("cumulative_trapezoid.dx")(_at_distance(cumulative=True))


def _gradient(x: Any, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> Any:
    x = _whole(x)
    dims = list(range(x.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    if not isinstance(spacing, list):
        spacing = [1 if spacing is None else spacing] * len(dims)
    return [np.gradient(x, s, axis=d, edge_order=edge_order) for d, s in zip(dims, spacing)]


@samples("gradient.scalarint")
def gradient_of_step(make: Maker) -> Iterator[Sample]:
    for shape, dim in [((5,), None), ((3, 4), None), ((3, 4), -1), ((2, 3, 4), 1), ((3, 0), 0)]:
        for spacing in (None, 2, 0.75):
            yield Sample(make(shape), spacing=spacing, dim=dim, expect=_gradient, loose=4)
    for shape in [(5,), (3, 4)]:
        yield Sample(make(shape), spacing=0.75, edge_order=2, expect=_gradient, loose=4)
    yield Sample(make((4, 3)), dim=0, edge_order=2, expect=_gradient, loose=4)
    yield Sample(make((2,)), expect=_gradient, loose=4)
    yield Sample(make((3, 4)), expect=_gradient, loose=4)
    if make.is_complex:
        yield Sample(make((5,)), spacing=0.5 + 1j, expect=_gradient, loose=4)


def _both_orders(
    make: Maker, shape: tuple[int, ...], spacing: Any, dim: Any, loose: float = 4
) -> Iterator[Sample]:
    """With edges of the first and of the second order."""
    for order in (1, 2):
        yield Sample(
            make(shape), spacing=spacing, dim=dim, edge_order=order, expect=_gradient, loose=loose
        )


@samples("gradient.scalararray")
def gradient_of_step_along(make: Maker) -> Iterator[Sample]:
    for shape, dim in [((5,), [0]), ((3, 4), [1, 0]), ((3, 4, 3), [-1, 0]), ((3, 4), [])]:
        yield from _both_orders(make, shape, 0.75, dim)
    yield Sample(make((3, 4)), spacing=-2, dim=[0], expect=_gradient, loose=4)


@samples("gradient.array")
def gradient_along(make: Maker) -> Iterator[Sample]:
    for shape, dim in [((5,), [0]), ((3, 4), [1, 0]), ((3, 4, 3), [-1, 0]), ((2, 2), [0, 1])]:
        yield Sample(make(shape), dim=dim, expect=_gradient, loose=4)
    yield Sample(make((3, 4)), dim=[0, -1], edge_order=2, expect=_gradient, loose=4)


@samples("gradient.scalarrayint")
def gradient_of_steps(make: Maker) -> Iterator[Sample]:
    for shape, spacing, dim in [
        ((5,), [0.5], None),
        ((3, 4), [0.5, 2.0], None),
        ((3, 4), [0.75], 1),
        ((3, 4, 3), [0.75], -3),
    ]:
        yield from _both_orders(make, shape, spacing, dim)


@samples("gradient.scalarrayarray")
def gradient_of_steps_along(make: Maker) -> Iterator[Sample]:
    for shape, spacing, dim in [
        ((5,), [0.5], [0]),
        ((3, 4), [0.5, 2.0], [1, 0]),
        ((3, 4, 3), [0.75, 0.5], [-3, 2]),
    ]:
        yield from _both_orders(make, shape, spacing, dim)


def _at_coordinates(make: Maker, shape: tuple[int, ...], dims: Any) -> Any:
    return [_points(make, (shape[d],)) for d in dims]


@samples("gradient.tensorarrayint")
def gradient_at(make: Maker) -> Iterator[Sample]:
    for shape, dim in [((5,), None), ((3, 4), None), ((3, 4), 1), ((3, 4, 3), -3)]:
        dims = range(len(shape)) if dim is None else [dim]
        yield from _both_orders(make, shape, _at_coordinates(make, shape, dims), dim, 16)
    yield Sample(make((2,)), spacing=[_points(make, (2,))], expect=_gradient, loose=4)


@samples("gradient.tensorarray")
def gradient_at_along(make: Maker) -> Iterator[Sample]:
    for shape, dim in [((5,), [0]), ((3, 4), [1, 0]), ((3, 4, 3), [-3, 2])]:
        yield from _both_orders(make, shape, _at_coordinates(make, shape, dim), dim, 16)

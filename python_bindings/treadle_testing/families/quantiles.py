"""Quantiles, against NumPy's methods of the same names."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
from typing import Any, Callable, Iterator

import numpy as np

from ..sample import NUMPY_TYPES, Maker, Sample, samples

METHODS = ("linear", "lower", "higher", "midpoint", "nearest")
# Between two ranks of every length below, so that small changes of them do not matter.
INSIDE = (0.13, 0.37, 0.81)
AT_RANKS = "at a rank itself the derivative by q is 0"
CALLS: tuple[tuple[tuple[int, ...], Any, bool], ...] = (
    ((3, 4), None, False),
    ((3, 4), None, True),
    ((3, 4), 0, False),
    ((5, 4), -1, True),
    ((2, 4, 3), 1, False),
    ((2, 4, 3), -2, True),
    ((17,), 0, False),
    ((), 0, True),
    ((), None, False),
    ((3, 1), 1, False),
)


def _of(reference: Callable[..., Any]) -> Callable[..., Any]:
    def expect(
        x: Any, q: Any, dim: Any = None, keepdim: bool = False, interpolation: str = "linear"
    ) -> Any:
        axis = dim if x.ndim else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where there is nothing but NaN
            return reference(x, q, axis=axis, keepdims=keepdim, method=interpolation)

    return expect


def _quantiles(
    reference: Callable[..., Any],
) -> tuple[Callable[[Maker], Iterator[Sample]], Callable[[Maker], Iterator[Sample]]]:
    expect = _of(reference)

    def holed(make: Maker) -> Any:
        x = make.distinct((4, 5))
        x[0, 2] = x[1, :] = np.nan
        return x

    def several(make: Maker) -> Iterator[Sample]:
        number = NUMPY_TYPES[make.dtype]
        for shape, dim, keepdim in CALLS:
            for method in METHODS:
                for q in (np.array(INSIDE, number), np.array(0.37, number)):
                    yield Sample(
                        make.distinct(shape),
                        q,
                        dim,
                        keepdim,
                        interpolation=method,
                        expect=expect,
                        loose=4,
                        convention=AT_RANKS,
                    )
        # At ranks themselves the derivative has two sides.
        corners = np.array([1, 0, 0.5, 0.25, 0.5], number)
        for method in METHODS:
            yield Sample(
                make.distinct((3, 5)), corners, 1, interpolation=method, grad=False, expect=expect
            )
            for dim in (0, 1, None):
                yield Sample(
                    holed(make), corners, dim, interpolation=method, grad=False, expect=expect
                )
        yield Sample(
            make.distinct((3, 4)), np.array(INSIDE, number), expect=expect, loose=4,
            convention=AT_RANKS,
        )  # fmt: skip
        yield Sample(
            make.distinct((3, 4)),
            np.zeros((0,), number),
            1,
            expect=lambda x, q, dim: np.zeros((0, 3)),
        )

    def one(make: Maker) -> Iterator[Sample]:
        for shape, dim, keepdim in CALLS:
            for method in METHODS:
                x = make.distinct(shape)
                yield Sample(x, 0.37, dim, keepdim, interpolation=method, expect=expect, loose=4)
        for q in (0.0, 0.25, 0.5, 1.0):
            yield Sample(make.distinct((3, 5)), q, 1, expect=expect, loose=4)
            yield Sample(holed(make), q, 1, grad=False, expect=expect)
        yield Sample(make.distinct((7,)), 1, expect=expect)

    return several, one


for _name, _reference in (("quantile", np.quantile), ("nanquantile", np.nanquantile)):
    _several, _one = _quantiles(_reference)
    samples(_name)(_several)
    samples(_name + ".scalar")(_one)

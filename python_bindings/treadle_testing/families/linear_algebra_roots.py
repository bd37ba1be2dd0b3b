"""Square roots and the polar decomposition of matrices."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from ..sample import Maker, Sample, samples
from .linear_algebra import oblong, symmetrised


def _positive(make: Maker, shape: tuple[int, ...]) -> Any:
    x = make(shape)
    return (x @ np.swapaxes(x, -1, -2).conj() + 4 * np.eye(shape[-1])).astype(x.dtype)


def _root(x: Any) -> Any:
    values, vectors = np.linalg.eigh(x)
    return (vectors * np.sqrt(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2).conj()


@samples("linalg_matrix_sqrth")
def matrix_sqrth(make: Maker) -> Iterator[Sample]:
    for shape in [(3, 3), (2, 2, 2), (1, 1), (0, 0)]:
        yield Sample(_positive(make, shape), expect=_root, domain=symmetrised, loose=20)


@samples("linalg_polar")
def polar(make: Maker) -> Iterator[Sample]:
    def expect(x: Any) -> Any:
        u, s, vh = np.linalg.svd(x, full_matrices=False)
        v = np.swapaxes(vh, -1, -2).conj()
        return u @ vh, (v * s[..., None, :]) @ vh

    for shape in [(3, 3), (4, 2), (2, 3, 2)]:
        yield Sample(oblong(make, shape), expect=expect, loose=40)

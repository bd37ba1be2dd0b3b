"""Windows that slide over the last dimensions of an array: what the references of convolution and
pooling share."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator

import numpy as np


def many(value: Any, dims: int) -> tuple[int, ...]:
    """A setting with one entry for each dimension."""
    entries = (value,) if isinstance(value, int) else tuple(value)
    return entries * dims if len(entries) == 1 else entries


def padded(x: Any, before: Any, after: Any, fill: Any = 0) -> Any:
    """A border around the last dimensions."""
    width = [(0, 0)] * (x.ndim - len(before)) + list(zip(before, after))
    return np.pad(x, width, constant_values=fill)


def windows(x: Any, kernel: Any, stride: Any, dilation: Any) -> Iterator[tuple[Any, Any, Any]]:
    """(output size, place, window) for each place at which the kernel fits."""
    dims = len(kernel)
    span = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    size = tuple((x.shape[i - dims] - span[i]) // stride[i] + 1 for i in range(dims))
    for place in np.ndindex(*size):
        cut = tuple(slice(p * s, p * s + n, d) for p, s, n, d in zip(place, stride, span, dilation))
        yield size, place, x[(..., *cut)]

"""Fractional pooling: the largest value of windows whose places are drawn, so that sizes shrink by
any factor. Graham (2014)."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Optional

from treadle import _C
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad

from .._tuples import tuple_of


def _starts(sample: Tensor, size: int, kernel: int, count: int) -> Tensor:
    """Where `count` windows begin along a dimension, for each sample in [0, 1): the last one ends
    with the input, the others follow each other at a fractional distance."""
    last = _C.full((*sample.shape, 1), size - kernel, dtype=_C.int64)
    if count == 1:
        return last
    # In the dtype of the samples, as every window depends on how the products are rounded.
    distance = _C.tensor((size - kernel) / (count - 1), dtype=sample.dtype)
    places = _C.arange(count - 1, dtype=sample.dtype)
    at = ((places + sample.unsqueeze(-1)) * distance).to(_C.int64)
    return _C.cat([at - (sample * distance).to(_C.int64).unsqueeze(-1), last], -1)


def _entries(name: str, what: str, given: Any, dims: int) -> tuple:
    entries = tuple_of(given, dims)
    if len(entries) != dims:
        raise RuntimeError(
            f"{name}: expected {what} to be a number or {dims} numbers, got {entries}"
        )
    return entries


def _pool(
    name: str, dims: int, input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any,
    samples: Optional[Tensor],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if input.dim() not in (dims + 1, dims + 2):
        raise IndexError(f"{name}: expected {dims + 1} or {dims + 2} dimensions, got {input.dim()}")
    single = input.dim() == dims + 1
    x = input.unsqueeze(0) if single else input
    sizes = x.shape[2:]
    kernel = _entries(name, "kernel_size", kernel_size, dims)
    if output_size is None:
        ratio = _entries(name, "output_ratio", output_ratio, dims)
        output_size = tuple(int(size * part) for size, part in zip(sizes, ratio))
    output = _entries(name, "output_size", output_size, dims)
    for size, window, count in zip(sizes, kernel, output):
        if window < 1 or count < 0 or count + window - 1 > size:
            raise RuntimeError(
                f"{name}: expected windows of at least 1 and outputs of at least 0 with output + "
                f"kernel - 1 <= input, got output_size = {output}, kernel_size = {kernel}, "
                f"input {tuple(sizes)}"
            )
    shape = (*x.shape[:2], dims)
    if samples is None:
        samples = _C.rand(shape, dtype=x.dtype, device=x.device)
    elif samples.dim() == 3 and samples.shape[0] > shape[0]:
        samples = samples[: shape[0]]  # of more images than there are
    if tuple(samples.shape) != shape or samples.dtype != x.dtype:
        raise RuntimeError(
            f"{name}: expected _random_samples of shape {shape} and dtype {x.dtype}, got "
            f"{tuple(samples.shape)} and {samples.dtype}"
        )
    if not math.prod((*x.shape[:2], *output)):
        # Nothing is chosen; the empty slice keeps the result in the graph.
        empty = x.flatten()[:0].reshape(*x.shape[:2], *output)
        nowhere = _C.empty_like(empty, dtype=_C.int64)
        return (empty.squeeze(0), nowhere.squeeze(0)) if single else (empty, nowhere)
    # The place of every element of every window in the input, one dimension after the other.
    batch = x.shape[:2]
    flat = _C.zeros((*batch, *[1] * (2 * dims)), dtype=_C.int64)
    # The samples of images begin with the width, those of volumes with the depth.
    order = (1, 0) if dims == 2 else tuple(range(dims))
    with no_grad():
        for d in range(dims):
            starts = _starts(samples[..., order[d]].cpu(), sizes[d], kernel[d], output[d])
            at = starts.unsqueeze(-1) + _C.arange(kernel[d])
            view = [*batch, *[1] * (2 * dims)]
            view[2 + d], view[2 + dims + d] = output[d], kernel[d]
            flat = flat * sizes[d] + at.reshape(view)
        flat = flat.reshape(*batch, *output, math.prod(kernel)).to(x.device)
    found = x.flatten(2).gather(2, flat.flatten(2)).reshape(flat.shape)
    values, places = found.max(-1)
    indices = flat.gather(-1, places.unsqueeze(-1)).squeeze(-1)
    return (values.squeeze(0), indices.squeeze(0)) if single else (values, indices)


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Optional[Tensor] = None,
) -> tuple[Tensor, Tensor]:
    """The largest values of windows at drawn places, (C, H, W) or (N, C, H, W), and where in the
    plane they stand. The output has `output_size`, or `output_ratio` of the input's.
    `_random_samples` (N, C, 2), in [0, 1), say the places."""
    return _pool(
        "fractional_max_pool2d", 2, input, kernel_size, output_size, output_ratio, _random_samples
    )


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Optional[Tensor] = None,
) -> tuple[Tensor, Tensor]:
    """The same over volumes, ([N,] C, D, H, W), with samples (N, C, 3)."""
    return _pool(
        "fractional_max_pool3d", 3, input, kernel_size, output_size, output_ratio, _random_samples
    )


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Optional[Tensor] = None,
) -> Any:
    """As `fractional_max_pool2d_with_indices`; the values alone unless `return_indices`."""
    found = fractional_max_pool2d_with_indices(
        input, kernel_size, output_size, output_ratio, True, _random_samples
    )
    return found if return_indices else found[0]


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Optional[Tensor] = None,
) -> Any:
    """As `fractional_max_pool3d_with_indices`; the values alone unless `return_indices`."""
    found = fractional_max_pool3d_with_indices(
        input, kernel_size, output_size, output_ratio, True, _random_samples
    )
    return found if return_indices else found[0]

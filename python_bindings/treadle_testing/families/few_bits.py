"""Products with weights of few bits."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from ..sample import Maker, Sample, samples


@samples("_weight_int8pack_mm")
def weight_int8pack_mm(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, weight: Any, scales: Any) -> Any:
        return x @ (weight * scales[:, None]).T

    for m, n, k in [(1, 5, 70), (7, 9, 35), (20, 4, 3), (0, 2, 3), (2, 0, 3), (2, 3, 0)]:
        weight = make.rng.integers(-128, 128, (n, k)).astype(np.int8)
        yield Sample(make((m, k)), weight, make((n,), 0.001, 0.01), expect=expect, grad=False)


def packed(numbers: np.ndarray) -> Any:
    """The numbers 0 to 15, two in a byte, in the order of the kernels."""
    n, k = numbers.shape
    # [block][unit][row][pair] and the halves of a byte
    parts = numbers.reshape(n // 16, 16, k // 8, 4, 2).transpose(0, 2, 1, 3, 4)
    return (parts[..., 0] | parts[..., 1] << 4).astype(np.uint8).reshape(n, k // 2)


@samples("_convert_weight_to_int4pack_for_cpu")
def convert_weight_to_int4pack(make: Maker) -> Iterator[Sample]:
    for n, k in [(16, 8), (48, 40), (0, 8), (16, 0)]:
        numbers = make.rng.integers(0, 16, (n, k)).astype(np.int32)
        yield Sample(numbers, 1, expect=lambda q, _: packed(q), grad=False, exact=True)


@samples("_weight_int4pack_mm_for_cpu")
def weight_int4pack_mm(make: Maker) -> Iterator[Sample]:
    for m, n, k, group in [
        (1, 80, 64, 32),
        (3, 16, 128, 128),
        (4, 64, 256, 256),
        (15, 48, 512, 64),
        (0, 16, 32, 32),
        (2, 0, 32, 32),
        (2, 16, 0, 32),
    ]:
        numbers = make.rng.integers(0, 16, (n, k)).astype(np.int32)

        def expect(x: Any, _: Any, group: int, factors: Any, numbers: Any = numbers) -> Any:
            scale, zero = (np.repeat(factors[..., i].T, group, axis=1) for i in (0, 1))
            return x @ ((numbers - 8) * scale + zero).T

        factors = make((k // group, n, 2), 0.01, 0.1)
        yield Sample(make((m, k)), packed(numbers), group, factors, expect=expect, grad=False)


FLOAT4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


@samples("_float4_values")
def float4_values(make: Maker) -> Iterator[Sample]:
    def expect(x: Any) -> Any:
        codes = np.stack((x & 15, x >> 4), -1).reshape(*x.shape[:-1], 2 * x.shape[-1])
        return (np.where(codes & 8, -1.0, 1.0) * FLOAT4[codes & 7]).astype(np.float32)

    for bytes in (np.arange(256, dtype=np.uint8), make((3, 5)), make((0, 2))):
        yield Sample(bytes, expect=expect, exact=True)


@samples("_float4_bytes")
def float4_bytes(make: Maker) -> Iterator[Sample]:
    def expect(x: Any) -> Any:
        # No value of the samples is half way between two numbers.
        codes = np.abs(np.abs(x)[..., None] - FLOAT4).argmin(-1) | np.signbit(x) * 8
        pairs = codes.reshape(*x.shape[:-1], x.shape[-1] // 2, 2)
        return (pairs[..., 0] | pairs[..., 1] << 4).astype(np.uint8)

    yield Sample(make((3, 6), -8, 8), expect=expect, exact=True, grad=False)
    yield Sample(make((0, 2)), expect=expect, exact=True, grad=False)

"""Copies between elements side by side and elements apart: each element, and none between them."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle

DTYPES = [treadle.int8, treadle.int32, treadle.float32, treadle.float64, treadle.complex64]


def numbers(dtype: Any, count: int) -> treadle.Tensor:
    return treadle.arange(count).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("step", [1, 2, 3])
def test_from_elements_apart(dtype: Any, step: int) -> None:
    for count in [1, 2, 7, 8, 9, 15, 16, 17, 40]:
        # The last element ends the memory: nothing may be read after it.
        whole = numbers(dtype, 2 * ((count - 1) * step + 1)).view(2, -1)
        assert np.array_equal(whole[:, ::step].clone().numpy(), whole.numpy()[:, ::step])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("step", [1, 2, 3])
def test_to_elements_apart(dtype: Any, step: int) -> None:
    for count in [1, 2, 7, 8, 9, 15, 16, 17, 40]:
        whole = numbers(dtype, 2 * ((count - 1) * step + 1)).view(2, -1)
        source = numbers(dtype, 2 * count).view(2, count) + 50
        expected = whole.numpy().copy()
        expected[:, ::step] = source.numpy()
        whole[:, ::step] = source
        assert np.array_equal(whole.numpy(), expected)


@pytest.mark.parametrize("dtype", DTYPES + [treadle.int16, treadle.complex128], ids=str)
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 15, 16, 17, 40])
def test_backwards(dtype: Any, count: int) -> None:
    whole = numbers(dtype, 3 * count).view(3, count)
    for dims in [(1,), (0, 1)]:
        assert np.array_equal(whole.flip(dims).numpy(), np.flip(whole.numpy(), dims))
    if not dtype.is_complex:
        reversed_view = treadle.from_numpy(whole.numpy()[:, ::-1])
        assert np.array_equal(reversed_view.clone().numpy(), whole.numpy()[:, ::-1])

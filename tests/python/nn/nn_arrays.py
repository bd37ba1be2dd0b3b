"""Common parts of the tests of nn: random inputs, functions of NumPy arrays to compare with."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import numpy as np

import treadle

rng = np.random.default_rng(0)


def array(*shape: int) -> np.ndarray:
    """Normal float64 values as an array."""
    return rng.normal(size=shape)


def normal(*shape: int) -> treadle.Tensor:
    """Normal float64 values as a tensor."""
    return treadle.randn(shape, dtype=treadle.float64)


def to_numpy(t: treadle.Tensor) -> np.ndarray:
    return t.detach().numpy()


def check(actual: treadle.Tensor, expected: Any, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(to_numpy(actual), expected, rtol=tolerance, atol=tolerance)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def softmax(x: Any, axis: int = -1) -> Any:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def reduced(values: Any, how: str) -> Any:
    """The loss of its elements: reduction "none", "mean" or "sum"."""
    return {"none": values, "mean": values.mean(), "sum": values.sum()}[how]

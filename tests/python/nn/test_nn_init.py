"""Initial values: what layers start from, and nn.init."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math

import numpy as np
import pytest

import treadle
import treadle.nn.functional as F
from treadle import nn


def bounds(layer_bound, values):
    largest = values.abs().max().item()
    return 0.8 * layer_bound < largest <= layer_bound


def test_default_initial_values():
    treadle.manual_seed(0)
    linear, conv = nn.Linear(100, 50), nn.Conv2d(8, 16, 5)
    assert bounds(1 / 10, linear.weight) and bounds(1 / 10, linear.bias)
    assert bounds(1 / math.sqrt(200), conv.weight) and bounds(1 / math.sqrt(200), conv.bias)
    embedding = nn.Embedding(200, 50)
    assert abs(embedding.weight.std().item() - 1) < 0.05
    treadle.manual_seed(0)
    assert treadle.equal(nn.Linear(100, 50).weight, linear.weight)


def test_init_functions():
    treadle.manual_seed(0)
    w = treadle.empty((200, 100))
    assert bounds(math.sqrt(6 / 300), nn.init.xavier_uniform_(w))
    assert abs(nn.init.xavier_normal_(w, gain=2).std().item() / (2 * math.sqrt(2 / 300)) - 1) < 0.05
    assert bounds(
        math.sqrt(2) * math.sqrt(3 / 100), nn.init.kaiming_uniform_(w, nonlinearity="relu")
    )
    spread = nn.init.kaiming_normal_(w, mode="fan_out", nonlinearity="relu").std().item()
    assert abs(spread / math.sqrt(2 / 200) - 1) < 0.05
    assert nn.init.constant_(w, 3.0).min().item() == 3.0
    assert nn.init.ones_(w).sum().item() == 20000 and nn.init.zeros_(w).sum().item() == 0
    assert nn.init.eye_(treadle.empty((2, 3))).tolist() == [[1, 0, 0], [0, 1, 0]]
    values = nn.init.trunc_normal_(w, std=1.0, a=-0.5, b=1.0)
    assert values.min().item() >= -0.5 and values.max().item() <= 1.0
    assert 2.9 < nn.init.uniform_(w, 1.0, 3.0).max().item() < 3.0
    for size in ((3, 5), (5, 3), (4, 2, 3)):
        q = (
            nn.init.orthogonal_(treadle.empty(size, dtype=treadle.float64))
            .numpy()
            .reshape(size[0], -1)
        )
        product = q @ q.T if q.shape[0] <= q.shape[1] else q.T @ q
        np.testing.assert_allclose(product, np.eye(len(product)), atol=1e-12)
    x = treadle.randn((1, 2, 5, 5))
    delta = nn.init.dirac_(treadle.empty((2, 2, 3, 3)))
    assert treadle.equal(F.conv2d(x, delta, padding=1), x)


def test_sparse_and_deprecated_names() -> None:
    treadle.manual_seed(0)
    t = nn.init.sparse_(treadle.empty(10, 8), 0.3)
    assert bool(((t == 0).sum(0) == 3).all())
    with pytest.warns(FutureWarning, match="deprecated in favor of nn.init.constant_"):
        assert bool((nn.init.constant(treadle.empty(2), 3.0) == 3).all())
    with pytest.warns(FutureWarning):
        assert nn.init.kaiming_normal(treadle.empty(3, 4)).shape == (3, 4)


def test_gain():
    assert nn.init.calculate_gain("relu") == math.sqrt(2)
    assert nn.init.calculate_gain("leaky_relu", 0.2) == math.sqrt(2 / 1.04)
    assert nn.init.calculate_gain("tanh") == 5 / 3
    with pytest.raises(ValueError, match="Unsupported nonlinearity cubic"):
        nn.init.calculate_gain("cubic")
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        nn.init.xavier_uniform_(treadle.empty(3))


@pytest.mark.parametrize(
    "a, b",
    [
        (-2, 2),
        (6, 7),
        (-7, -6),
        (50, 51),
        (-1e5, -9e4),
        (-math.inf, math.inf),
        (3, math.inf),
        (-1e-9, 1e-9),
    ],
)
def test_truncated_normal_within_any_bounds(a: float, b: float) -> None:
    from scipy import stats

    treadle.manual_seed(0)
    values = nn.init.trunc_normal_(treadle.empty(20_000, dtype=treadle.float64), 0.0, 1.0, a, b)
    assert a <= values.min().item() and values.max().item() <= b
    if abs(a) < 1e3 or math.isinf(a):
        expected = stats.truncnorm(a, b)
        assert stats.kstest(values.numpy(), expected.cdf).statistic < 0.02


def test_truncated_normal_of_other_means_dtypes_and_mistakes() -> None:
    for dtype in (treadle.float16, treadle.bfloat16, treadle.float32):
        values = nn.init.trunc_normal_(treadle.empty(1000, dtype=dtype), 0.0, 0.02, 1.0, 2.0)
        assert 1.0 <= values.min().item() <= values.max().item() < 1.1
    generator = treadle.Generator().manual_seed(3)
    first = nn.init.trunc_normal_(treadle.empty(5), generator=generator)
    assert treadle.equal(
        first, nn.init.trunc_normal_(treadle.empty(5), generator=generator.manual_seed(3))
    )
    for arguments, message in (
        ((0, 1, 2, 2), "trunc_normal_: expected a < b, got a = 2, b = 2"),
        ((0, 0), "trunc_normal_: expected a finite mean and std > 0, got mean = 0, std = 0"),
    ):
        with pytest.raises(ValueError) as raised:
            nn.init.trunc_normal_(treadle.empty(3), *arguments)
        assert str(raised.value) == message
    with pytest.raises(ValueError) as raised:
        nn.init.trunc_normal_(treadle.empty(3, dtype=treadle.int64))
    assert str(raised.value) == (
        "trunc_normal_: expected a floating-point tensor, got treadle.int64"
    )

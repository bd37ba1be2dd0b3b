"""On a CUDA device: within autocast products are of 16 bits, and what these are too few for is of
float32; networks learn in it, as in float32.

    pytest tests/gpu/on_autocast.py        # ./dev gpu says how, on a machine with a GPU

tests/python/amp/test_amp_policies.py --device cuda tests the policy of each operator.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

import treadle
from treadle import nn
from treadle.nn import functional as F


def test_dtypes_along_a_network() -> None:
    net = nn.Linear(8, 5).to("cuda")
    x, target = treadle.randn(3, 8, device="cuda"), treadle.tensor([0, 1, 4], device="cuda")
    with treadle.autocast("cuda"):
        scores = net(x)
        assert scores.dtype == treadle.float16
        assert F.relu(scores).dtype == treadle.float16
        assert F.layer_norm(scores, (5,)).dtype == treadle.float32
        assert F.softmax(scores, -1).dtype == scores.sum().dtype == treadle.float32
        assert F.cross_entropy(scores, target).dtype == treadle.float32
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            F.binary_cross_entropy(scores.sigmoid(), treadle.zeros_like(scores))
    with treadle.autocast("cuda", dtype=treadle.bfloat16):
        assert net(x).dtype == treadle.bfloat16


def test_large_16_bit_numbers_are_summed_in_float32() -> None:
    x = treadle.full((1000,), 300.0, device="cuda", dtype=treadle.float16)
    with treadle.autocast("cuda"):
        assert x.sum().item() == 300_000
        assert x.exp().isinf().all() and (x / 10).exp().isfinite().all()
    assert x.sum().isinf()


def test_kernels_of_linear_algebra_are_not_cast() -> None:
    a = treadle.randn(200, 200, device="cuda").tril() + 20 * treadle.eye(200, device="cuda")
    b = treadle.randn(200, 3, device="cuda")
    expected = treadle.linalg.solve_triangular(a, b, upper=False)
    with treadle.autocast("cuda"):
        got = treadle.linalg.solve_triangular(a, b, upper=False)
    assert got.dtype == treadle.float32 and treadle.equal(got, expected)


@pytest.mark.parametrize("dtype", [treadle.float16, treadle.bfloat16], ids=str)
def test_a_network_learns(dtype: treadle.dtype) -> None:
    treadle.manual_seed(0)
    net = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 4)).to("cuda")
    optimizer = treadle.optim.Adam(net.parameters(), lr=0.01)
    scaler = treadle.amp.GradScaler("cuda", enabled=dtype == treadle.float16)
    x = treadle.randn(256, 16, device="cuda")
    target = (x[:, :4]).argmax(1)
    losses = []
    for _ in range(100):
        optimizer.zero_grad()
        with treadle.autocast("cuda", dtype=dtype):
            loss = F.cross_entropy(net(x), target)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert all(p.dtype == p.grad.dtype == treadle.float32 for p in net.parameters())
    assert losses[-1] < 0.3 * losses[0]

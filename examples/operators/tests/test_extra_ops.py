"""Every operator of extra_ops: against NumPy, in all its forms, dtypes and layouts, with gradients,
on the meta device, and with arguments that do not fit.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator, Optional

import extra_ops
import numpy as np
import pytest

import treadle
from treadle_testing import Maker, OperatorTests, Sample, samples


class TestExtraOps(OperatorTests):
    library = "extra_ops"


# ---- samples -------------------------------------------------------------------------------------


def rotary_in_numpy(x: Any, cos: Any, sin: Any, interleaved: bool = False) -> Any:
    half = x.shape[-1] // 2
    first = slice(0, None, 2) if interleaved else slice(0, half)
    second = slice(1, None, 2) if interleaved else slice(half, None)
    a, b, out = x[..., first], x[..., second], np.empty_like(x)
    out[..., first], out[..., second] = a * cos - b * sin, b * cos + a * sin
    return out


@samples("extra_ops::rotary")
def rotary(make: Maker) -> Iterator[Sample]:
    for shape in ((3, 4), (2, 3, 2), (2, 1, 5, 6), (0, 3, 4)):
        angles = shape[-2], shape[-1] // 2
        for interleaved in (False, True):
            parts = make(shape), make(angles), make(angles)
            yield Sample(*parts, interleaved, expect=rotary_in_numpy, loose=4)


def selective_scan_in_numpy(u: Any, delta: Any, a: Any, b: Any, c: Any, d: Any = None) -> Any:
    h = np.zeros((u.shape[0], *a.shape))
    out = np.empty_like(u)
    for t in range(u.shape[2]):
        dt = delta[:, :, t, None]
        h = np.exp(dt * a) * h + dt * b[:, None, :, t] * u[:, :, t, None]
        out[:, :, t] = (c[:, None, :, t] * h).sum(-1)
    return out if d is None else out + d[:, None] * u


@samples("extra_ops::selective_scan")
def selective_scan(make: Maker) -> Iterator[Sample]:
    for batch, channels, length, state in ((2, 3, 4, 2), (1, 1, 1, 1), (1, 18, 3, 2), (2, 2, 0, 3)):
        sizes = (batch, channels, length)
        parts = [
            make(sizes),
            make(sizes, 0.1, 1),
            make((channels, state), -1, -0.1),
            make((batch, state, length)),
            make((batch, state, length)),
        ]
        yield Sample(*parts, expect=selective_scan_in_numpy, loose=8)
        yield Sample(*parts, make((channels,)), expect=selective_scan_in_numpy, loose=8)


def linear_cross_entropy_in_numpy(
    x: Any,
    w: Any,
    target: Any,
    bias: Optional[Any] = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Any:
    logits = x @ w.T + (0 if bias is None else bias)
    most = logits.max(1, keepdims=True)
    log_sum = most[:, 0] + np.log(np.exp(logits - most).sum(1))
    counts = target != ignore_index
    losses = np.where(counts, log_sum - logits[np.arange(len(x)), np.where(counts, target, 0)], 0)
    total = {"none": losses, "sum": losses.sum(), "mean": losses.sum() / counts.sum()}
    return total[reduction]


@samples("extra_ops::linear_cross_entropy")
def linear_cross_entropy(make: Maker) -> Iterator[Sample]:
    def sample(*more: Any, target: Any = np.array([0, 3, -100, 1, 3]), **kwargs: Any) -> Sample:
        return Sample(
            make((5, 3)), make((4, 3)), target, *more,
            expect=linear_cross_entropy_in_numpy, loose=16, **kwargs,
        )  # fmt: skip

    yield sample()
    yield sample(make((4,)))
    yield sample(make((4,)), 1, "sum", target=np.array([0, 3, 1, 2, 1]))
    yield sample(None, -100, "none")


# ---- what samples do not say ---------------------------------------------------------------------


def test_refusals_say_who_expected_what() -> None:
    x, angles = treadle.ones(3, 4), treadle.ones(3, 2)
    with pytest.raises(RuntimeError) as info:
        extra_ops.rotary(x, angles, treadle.ones(3, 4))
    assert str(info.value) == "rotary: expected sin of shape (3, 2), got (3, 4)"
    # The kernel would read the bytes of `cos` as numbers of the dtype of `x`, eight for each one.
    for changed in ("cos", "sin"):
        given = {"cos": angles.double(), "sin": angles.double(), changed: angles.to(treadle.int8)}
        with pytest.raises(RuntimeError) as info:
            extra_ops.rotary(x.double(), **given)
        assert str(info.value) == (
            f"rotary: expected self and {changed} of one dtype, got {treadle.float64} and "
            f"{treadle.int8}"
        )
    with pytest.raises(IndexError) as info:
        extra_ops.linear_cross_entropy(x, x, treadle.tensor([0, 1, 3]))
    assert str(info.value) == (
        "linear_cross_entropy: expected target in [0, 3) or ignore_index = -100, got target = 3"
    )
    with pytest.raises((RuntimeError, ValueError)) as info:
        extra_ops.linear_cross_entropy(x, x, treadle.tensor([0, 1, 2]), reduction="max")
    assert "expected reduction in ('none', 'mean', 'sum')" in str(info.value)


def test_linear_cross_entropy_agrees_with_its_parts_piece_by_piece() -> None:
    """Enough classes that the rows are taken in several pieces."""
    treadle.manual_seed(0)
    x = treadle.randn(40, 8, requires_grad=True)
    w = treadle.randn(400_000, 8, requires_grad=True)
    target = treadle.randint(0, 400_000, (40,))
    loss = extra_ops.linear_cross_entropy(x, w, target)
    parts = treadle.nn.functional.cross_entropy(treadle.nn.functional.linear(x, w), target)
    treadle.testing.assert_close(loss, parts)
    for mine, theirs in zip(
        treadle.autograd.grad(loss, (x, w)), treadle.autograd.grad(parts, (x, w))
    ):
        treadle.testing.assert_close(mine, theirs)


def test_a_model_that_uses_them_trains() -> None:
    treadle.manual_seed(0)
    tokens = treadle.randint(0, 16, (64,))
    table = treadle.randn(16, 8, requires_grad=True)
    head = treadle.randn(16, 8, requires_grad=True)
    angles = treadle.arange(64)[:, None] / 10 ** treadle.arange(4)
    optimizer = treadle.optim.Adam([table, head], lr=0.05)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        x = extra_ops.rotary(table[tokens], angles.cos(), angles.sin())
        loss = extra_ops.linear_cross_entropy(x, head, tokens)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2

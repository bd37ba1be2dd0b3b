"""Exceptions whose type depends on what does not fit, as programs that catch them expect."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable

import pytest

import treadle
from treadle.nn import functional as F

ZERO = treadle.zeros(())
EMPTY = treadle.zeros(5, 0, 5)
ONE_LINE = treadle.ones(1, 1, 3)


@pytest.mark.parametrize(
    "call, error, said",
    [
        (
            lambda: treadle.cat([]),
            ValueError,
            "cat: expected a non-empty list of tensors, got an empty one",
        ),
        (
            lambda: treadle.stack([]),
            RuntimeError,
            "stack: expected a non-empty list of tensors, got an empty one",
        ),
        (
            lambda: treadle.unbind(ZERO),
            IndexError,
            "unbind: expected at least one dimension, got a 0-dim tensor",
        ),
        (
            lambda: treadle.roll(ZERO, 0, 0),
            IndexError,
            "roll: expected at least one dimension with dims, got a 0-dim tensor",
        ),
        (
            lambda: treadle.amax(EMPTY),
            RuntimeError,
            "amax: expected a non-empty dimension to reduce, got shape (5, 0, 5)",
        ),
        (
            lambda: treadle.amax(EMPTY, dim=1),
            IndexError,
            "amax: expected a non-empty dimension to reduce, got shape (5, 0, 5)",
        ),
        (
            lambda: treadle.empty_permuted([2], [0, 1]),
            RuntimeError,
            "empty_permuted: expected a place for each of 1 dimensions, got physical_layout = "
            "(0, 1)",
        ),
        (
            lambda: treadle.empty_permuted([2], [-1]),
            RuntimeError,
            "empty_permuted: expected physical_layout with entries in [0, 1), got physical_layout "
            "= (-1,)",
        ),
        (
            lambda: F.adaptive_avg_pool2d(treadle.ones(1, 2, 3, 4), ()),
            RuntimeError,
            "adaptive_avg_pool2d: expected output_size to have 2 entries, got ()",
        ),
        (
            lambda: F.conv1d(ONE_LINE, ONE_LINE, stride=2, padding="same"),
            RuntimeError,
            'conv1d: expected a stride of 1 with padding "same", got stride = (2,)',
        ),
        (
            lambda: F.rrelu(treadle.ones(3), 0.3, 0.1),
            RuntimeError,
            "rrelu: expected lower <= upper, got 0.3 and 0.1",
        ),
        (
            lambda: F.embedding(treadle.tensor([0]), ZERO),
            RuntimeError,
            "embedding: expected a weight of two dimensions, got shape ()",
        ),
    ],
)
def test_the_type_and_the_text(call: Callable[[], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error) as info:
        call()
    assert type(info.value) is error and str(info.value) == said


def test_numbers_are_looked_up_with_out() -> None:
    out = treadle.empty((), dtype=treadle.int64)
    sequence = treadle.tensor([1, 3, 5], dtype=treadle.int8)
    assert treadle.searchsorted(sequence, 4, out=out) is out and out.item() == 2
    assert treadle.bucketize(6, sequence, out=out) is out and out.item() == 3


def test_margin_losses_of_one_score() -> None:
    score = treadle.tensor(0.5, requires_grad=True)
    for loss in (F.multi_margin_loss, F.multilabel_margin_loss):
        found = loss(score, treadle.tensor(0))
        assert found.shape == () and found.item() == 0.0
        found.backward()
    assert score.grad is not None and score.grad.item() == 0.0
    for reduction in ("none", "sum"):
        assert F.multi_margin_loss(score, treadle.tensor(0), reduction=reduction).shape == ()

"""Padding in circles where a negative amount cuts the tensor first."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

import treadle
import treadle.nn.functional as F


def test_what_is_left_is_repeated() -> None:
    x = treadle.arange(4.0).view(1, 1, 4)
    assert F.pad(x, (-1, 2), mode="circular").flatten().tolist() == [1, 2, 3, 1, 2]
    assert F.pad(x, (2, -1), mode="circular").flatten().tolist() == [1, 2, 0, 1, 2]


def test_nothing_left_to_repeat() -> None:
    with pytest.raises(RuntimeError) as info:
        F.pad(treadle.zeros(1, 2), (-2, 1), mode="circular")
    assert str(info.value) == (
        "pad: expected pad that leaves an element to repeat, got pad = (-2, 1) for shape (1, 2)"
    )

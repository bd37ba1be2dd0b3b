"""Settings with one entry for each dimension: a single number stands for all of them."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any


def tuple_of(value: Any, count: int) -> tuple:
    """`value` as a tuple: (3, 3) from 3."""
    if isinstance(value, (int, float)):
        return (value,) * count
    return tuple(value)

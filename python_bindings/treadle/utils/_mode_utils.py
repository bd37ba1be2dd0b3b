"""Helpers of code with modes over operators, beside the modes themselves."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, ContextManager, Sequence

from treadle import _C


def no_dispatch() -> ContextManager:
    """A block in which neither modes nor classes of tensors take over operators."""
    return _C._DisableTorchDispatch()


def all_same_mode(modes: Sequence[Any]) -> bool:
    """Whether the modes are equal to the first of them."""
    return all(mode == modes[0] for mode in modes)

"""How much programs of several processes want to be told: TORCH_DISTRIBUTED_DEBUG. Nothing is
printed here at any level; the level is for the program itself."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
import os


class DebugLevel(enum.IntEnum):
    """The levels."""

    OFF = 0
    INFO = 1
    DETAIL = 2


_VARIABLE = "TORCH_DISTRIBUTED_DEBUG"


def _level_of(text: str) -> DebugLevel:
    if text.upper() not in DebugLevel.__members__:
        raise ValueError(f"{_VARIABLE}: expected OFF, INFO or DETAIL, got {text}")
    return DebugLevel[text.upper()]


_level = None


def get_debug_level() -> DebugLevel:
    """The level that was set, or else that of the variable; by default OFF."""
    return _level_of(os.environ.get(_VARIABLE, "OFF")) if _level is None else _level


def set_debug_level(level: DebugLevel) -> None:
    """Set it."""
    global _level
    _level = DebugLevel(level)


def set_debug_level_from_env() -> None:
    """Go back to that of the variable; ValueError where it names none."""
    set_debug_level(_level_of(os.environ.get(_VARIABLE, "OFF")))


__all__ = ["DebugLevel", "get_debug_level", "set_debug_level", "set_debug_level_from_env"]

"""Settings of deterministic mode, beside the choice of algorithms.

Example:

    treadle.use_deterministic_algorithms(True)
    treadle.empty(2)                                                 # nan, nan
    treadle.utils.deterministic.fill_uninitialized_memory = False    # whatever the memory holds
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import sys
import types
from typing import Any

from treadle._functions import settings


class _Module(types.ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether `empty` and its kin fill new memory in deterministic mode: with NaN, the largest
        integer, or True."""
        return settings.fills_new_memory()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, value: Any) -> None:
        if not isinstance(value, bool):
            raise RuntimeError(
                "fill_uninitialized_memory: expected a bool, got " + type(value).__name__
            )
        settings.fill_new_memory_where_asked(value)


sys.modules[__name__].__class__ = _Module

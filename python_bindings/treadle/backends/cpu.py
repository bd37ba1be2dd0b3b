"""The processor."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from treadle import __config__


def get_cpu_capability() -> str:
    """The instructions that operators are compiled for: "AVX512", "AVX2" or "DEFAULT"."""
    return __config__.cpu_capability()

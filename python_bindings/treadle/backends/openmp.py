"""OpenMP, whose pool of threads all operators share."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations


def is_available() -> bool:
    """Whether operators run on OpenMP's threads."""
    return True

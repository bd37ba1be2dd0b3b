"""cuSPARSELt, a library of products with sparse matrices for CUDA: nothing here calls it."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Optional


def is_available() -> bool:
    """Whether the library is there."""
    return False


def version() -> Optional[int]:
    """Its version: None."""
    return None


def get_max_alg_id() -> Optional[int]:
    """How many algorithms it has: None."""
    return None

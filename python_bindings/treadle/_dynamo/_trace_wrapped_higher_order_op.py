"""Indexing by mapped numbers where vmap traces, which is always possible here."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any


class TransformGetItemToIndex:
    """A context in which x[i] takes tensors without dimensions as i inside vmap. vmap calls the
    function for each sample, whose i is a number, so there is nothing to change."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc_info: Any) -> None:
        return None

"""Errors between processes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Optional


class DistError(RuntimeError):
    """Any of them. `rank` is the rank of the group that did not do its part, where it is known."""

    rank: Optional[int] = None


class DistBackendError(DistError):
    """The processes do not agree on what they exchange, or the transport cannot do it."""


class DistNetworkError(DistError):
    """A process is gone, cannot be reached, or did not answer in time."""


class DistStoreError(DistError):
    """A value of a store was not there in time."""


class QueueEmptyError(DistStoreError):
    """A queue of a store is empty."""


# In the order of the engine's kinds of failures.
_KINDS = (
    DistNetworkError,
    DistBackendError,
    DistNetworkError,
    DistNetworkError,
    DistBackendError,
)


def from_engine(kind: int, text: str, rank: int) -> DistError:
    """The exception for a failure of the engine."""
    error = _KINDS[kind](text)
    error.rank = None if rank < 0 else rank
    return error

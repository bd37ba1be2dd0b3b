"""Errors between processes."""

# SPDX-License-Identifier: Apache-2.0


class DistError(RuntimeError):
    """Any of them."""


class DistBackendError(DistError):
    """The processes do not agree on what they exchange."""


class DistNetworkError(DistError):
    """A process is gone, cannot be reached, or did not answer in time."""


class DistStoreError(DistError):
    """A value of a store was not there in time."""

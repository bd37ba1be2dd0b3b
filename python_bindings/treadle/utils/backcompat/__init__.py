"""Warnings of what older programs may mean otherwise; results do not depend on them."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations


class Warning:  # noqa: A001
    """Whether such a warning is wanted. It is remembered; there is nothing to warn of."""

    def __init__(self) -> None:
        self.enabled = False


broadcast_warning = Warning()
keepdim_warning = Warning()

__all__ = ["broadcast_warning", "keepdim_warning"]

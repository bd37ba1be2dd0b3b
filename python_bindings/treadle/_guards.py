"""Questions to a compiler that looks at the program: there is none."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations


def active_fake_mode() -> None:
    """The mode in which tensors have no memory while a program is looked at: none."""
    return None


class TracingContext:
    """A compiler's look at a program: there is none."""

    @staticmethod
    def try_get() -> None:
        """The one that goes on: none."""
        return None

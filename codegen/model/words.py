"""Words of opmodel.json that are one of a few."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from enum import Enum


class Word(str, Enum):
    """It prints as it is written in the file."""

    def __str__(self) -> str:
        return str(self.value)

    @property
    def enumerator(self) -> str:
        """The same in an enum of C++: AsCalled for as_called."""
        return "".join(map(str.capitalize, self.value.split("_")))

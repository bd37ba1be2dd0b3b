"""The functions of the package by the module that layers of older programs take them from:
`torch._VF.lstm`."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle import _names


def __getattr__(name: str) -> Any:
    found = None if name.startswith("__") else getattr(_names.package(), name, None)
    if found is None:
        raise _names.missing(__name__, name)
    return found

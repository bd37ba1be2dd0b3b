"""Devices from outside, the libraries beneath the operators, and the switches that programs set on
them.

    treadle.load_backend("libmine.so")           # a device that Treadle does not have itself
    print(treadle.backends.coverage("mine"))     # who answered its operators, and how often
    treadle.backends.allow_fallback("mine", False)
    treadle.backends.cudnn.benchmark = True      # time a convolution's algorithms once
    treadle.backends.mkldnn.is_available()       # True: convolutions run on oneDNN

A switch of a library that is not there keeps what a program sets. docs/backends.md is about
devices.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
from typing import Any

from treadle import _names

# Names imported at their first use, beside the modules of the package.
_LAZY = {
    "Coverage": "_coverage",
    "allow_fallback": "_coverage",
    "coverage": "_coverage",
    "loaded": "_loading",
}

_attribute = _names.attributes_of(__name__)


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        return _attribute(name)
    value = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    globals()[name] = value
    return value

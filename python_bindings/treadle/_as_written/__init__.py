"""Requests to compile, and their answer: programs run as they are written.

treadle.compile(net), treadle.jit.script(net)      # each warns, the first of them only
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
import weakref
from typing import Any

_said = False

# Modules that went through jit.script or jit.trace, and what they would have elsewhere.
_scripted: weakref.WeakSet = weakref.WeakSet()
_OF_SCRIPTED = ("code", "code_with_constants", "graph", "graph_for", "inlined_graph", "save")


def warn(name: str, details: str = "") -> None:
    """Say, once in a process, that nothing is compiled."""
    global _said
    if _said:
        return
    _said = True
    warnings.warn(
        f"{name}: there is no compiler here, so that the program runs as it is written{details} "
        "(this is said once)",
        stacklevel=3,
    )


def mark_scripted(module: Any) -> None:
    """Have missing_of() speak for the module."""
    _scripted.add(module)


def missing_of(module: Any, name: str) -> str:
    """The text that completes the error for an attribute that the module lacks."""
    if name not in _OF_SCRIPTED or module not in _scripted:
        return ""
    return (
        ": jit.script and jit.trace give the module itself, which has no compiled form; "
        "jit.save(module, path) saves it"
    )

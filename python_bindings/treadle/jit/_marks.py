"""What programs say to TorchScript's compiler of a function: to keep it, or to leave it out."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any


class FunctionModifiers:
    """The marks of functions: the values of their `_torchscript_modifier`."""

    UNUSED = "unused"
    IGNORE = "ignore"
    EXPORT = "export"
    DEFAULT = "default"
    COPY_TO_SCRIPT_WRAPPER = "copy to script wrapper"


def mark(fn: Any, modifier: str) -> Any:
    """The function with a mark, where it can be set."""
    target: Any = fn.fget if isinstance(fn, property) else fn
    try:
        target._torchscript_modifier = modifier
    except (AttributeError, TypeError):  # what takes no attributes
        pass
    return fn

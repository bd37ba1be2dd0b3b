"""Hooks that make a weight anew before each forward: one of a kind for a parameter."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional

from ..modules.module import Module


def _find(module: Module, kind: Any, name: str) -> Optional[int]:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, kind) and hook.name == name:
            return key
    return None


def check_first(module: Module, kind: type, name: str, what: str) -> None:
    """RuntimeError where the parameter has a hook of this kind already."""
    if _find(module, kind, name) is not None:
        raise RuntimeError(f"Cannot register two {what} hooks on the same parameter {name}")


def remove(module: Module, kind: type, name: str, what: str) -> None:
    """Let the hook put the weight back. ValueError where the parameter has none of this kind."""
    key = _find(module, kind, name)
    if key is None:
        raise ValueError(f"{what} of '{name}' not found in {module}")
    module._forward_pre_hooks[key].remove(module)
    del module._forward_pre_hooks[key]

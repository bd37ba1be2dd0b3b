"""jit.save and jit.load: a module with its class's name, in the format of treadle.save.

Elsewhere the file also holds the program, and loads where the class is not known. Here it loads in
a program that has the class.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional

from treadle import nn


def save(m: nn.Module, f: Any, _extra_files: Optional[dict] = None) -> None:
    """Write a module to a path or a file. Its class is written as a name."""
    from treadle.serialization import save as _save

    if not isinstance(m, nn.Module):
        raise TypeError(f"jit.save: expected a module, got {type(m).__name__}")
    if _extra_files:
        raise NotImplementedError("jit.save: expected no _extra_files, which have no place here")
    _save(m, f)


def load(
    f: Any,
    map_location: Any = None,
    _extra_files: Optional[dict] = None,
    _restore_shapes: bool = False,
) -> nn.Module:
    """Read a module that save() wrote, in a program that has its class. RuntimeError for a file
    with compiled code, which cannot be run."""
    from treadle.serialization import load as _load

    if _extra_files:
        raise NotImplementedError("jit.load: expected no _extra_files, which have no place here")
    loaded = _load(f, map_location=map_location, weights_only=False)
    if not isinstance(loaded, nn.Module):
        raise RuntimeError(f"jit.load: expected a file with a module, got {type(loaded).__name__}")
    return loaded

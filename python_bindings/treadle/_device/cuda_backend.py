"""Finds the CUDA backend when a CUDA device is first asked for: the package treadle-cuda brings it,
and the driver of NVIDIA's devices makes it work. `import treadle` looks for neither.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
import importlib.util
from typing import Optional

from treadle import _C

_reason: Optional[str] = None  # why there is no backend, once that is known


def find() -> str:
    """Load the backend: '' where there is one now, else why there is none."""
    global _reason
    if "cuda" in _C._backends():
        return ""
    if _reason is None:
        _reason = _load()
    return _reason


def _load() -> str:
    if importlib.util.find_spec("treadle_cuda") is None:
        return "the package treadle-cuda is not installed"
    from treadle.backends._loading import load_backend

    library = importlib.import_module("treadle_cuda").LIBRARY
    try:
        load_backend(library)
    except RuntimeError as error:
        # The error says what was expected, which callers say themselves, and what was found.
        return str(error).split("expected a CUDA device, got none: ")[-1]
    return ""

"""Imports modules of tools/, whose folders are no packages, beside other modules of their names."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

from source_tree import ROOT


@contextmanager
def importing(*folders: str) -> Iterator[Callable[[str], ModuleType]]:
    """Imports modules by their names from folders of tools/ ("dev"). Afterwards `sys.path` and
    `sys.modules` have what they had before, but for modules from elsewhere, which stay."""
    places = [ROOT / "tools" / folder for folder in folders]
    names = {path.stem for place in places for path in place.glob("*.py")} - {"__main__"}
    hidden = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    path = sys.path[:]
    sys.path[:0] = map(str, places)
    before = set(sys.modules)
    try:
        yield importlib.import_module
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(f"{ROOT}/tools/"):
                del sys.modules[name]
        sys.modules.update(hidden)

"""Which module a program is in: `with ModuleTracker() as tracker: ... tracker.parents`."""

from __future__ import annotations

import weakref
from typing import Any, List, Set

from treadle.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)


class ModuleTracker:
    """Within its block `parents` has the names of the modules whose forward pass runs, from
    "Global" on; those of a module's children come after it with a dot."""

    def __init__(self) -> None:
        self.parents: Set[str] = {"Global"}
        self._names: "weakref.WeakKeyDictionary[Any, str]" = weakref.WeakKeyDictionary()
        self._entered: List[str] = []
        self._handles: List[Any] = []

    def _name_of(self, module: Any) -> str:
        if module not in self._names:
            root = type(module).__name__
            for path, part in module.named_modules():
                self._names.setdefault(part, f"{root}.{path}" if path else root)
        return self._names[module]

    def _before(self, module: Any, inputs: Any) -> None:
        name = self._name_of(module)
        self._entered.append(name)
        self.parents.add(name)

    def _after(self, module: Any, inputs: Any, output: Any) -> None:
        name = self._entered.pop()
        if name not in self._entered:
            self.parents.discard(name)

    def __enter__(self) -> "ModuleTracker":
        self._handles = [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after, always_call=True),
        ]
        return self

    def __exit__(self, *error: Any) -> None:
        for handle in self._handles:
            handle.remove()
        self.parents, self._entered = {"Global"}, []


__all__ = ["ModuleTracker"]

"""The module a program is in: `with ModuleTracker() as tracker: ... tracker.parents`."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import weakref
from typing import Any, List, Set

from treadle import _C
from treadle.autograd.graph import register_multi_grad_hook
from treadle.utils._pytree import tree_leaves


class ModuleTracker:
    """Within its block `parents` has the names of the modules that run, from "Global" on; those of
    a module's children come after it with a dot.

    A module runs in its forward pass, and in a backward pass from where the gradients of its
    results have come to where those of its arguments have; the pass ends all. `is_bw` is whether a
    backward pass runs.
    """

    def __init__(self) -> None:
        self.parents: Set[str] = {"Global"}
        self._names: "weakref.WeakKeyDictionary[Any, str]" = weakref.WeakKeyDictionary()
        self._entered: List[str] = []
        self._handles: List[Any] = []
        self._is_end_awaited = False

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass runs on this thread."""
        return _C._current_backward() != -1

    def _changed(self) -> None:
        """Called after each change of `parents`."""

    def _name_of(self, module: Any) -> str:
        if module not in self._names:
            root = type(module).__name__
            for path, part in module.named_modules():
                self._names.setdefault(part, f"{root}.{path}" if path else root)
        return self._names[module]

    def _add(self, name: str) -> None:
        self.parents.add(name)
        self._changed()

    def _discard(self, name: str) -> None:
        self.parents.discard(name)
        self._changed()

    def _before(self, module: Any, inputs: Any) -> None:
        name = self._name_of(module)
        self._entered.append(name)
        self._add(name)
        self._at_gradients(inputs, lambda *gradients: self._discard(name))

    def _after(self, module: Any, inputs: Any, output: Any) -> None:
        name = self._entered.pop()
        if name not in self._entered:
            self._discard(name)

        def enter(*gradients: Any) -> None:
            if not self._is_end_awaited:
                self._is_end_awaited = True
                _C._queue_callback(self._end_of_backward)
            self._add(name)

        self._at_gradients(output, enter)

    def _at_gradients(self, values: Any, function: Any) -> None:
        """Call a function in a backward pass when the gradients of the tensors among some values
        have come."""
        leaves = tree_leaves(values)
        tensors = [x for x in leaves if isinstance(x, _C.Tensor) and x.requires_grad]
        if tensors:
            self._handles.append(register_multi_grad_hook(tensors, function))

    def _end_of_backward(self) -> None:
        self._is_end_awaited = False
        self.parents = {"Global", *self._entered}
        self._changed()

    def __enter__(self) -> "ModuleTracker":
        from treadle.nn.modules import module

        self._handles = [
            module.register_module_forward_pre_hook(self._before),
            module.register_module_forward_hook(self._after, always_call=True),
        ]
        return self

    def __exit__(self, *error: Any) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self.parents, self._entered, self._is_end_awaited = {"Global"}, [], False


__all__ = ["ModuleTracker"]

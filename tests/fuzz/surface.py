"""Functions that programs call and the model does not have: methods and functions by hand, such as
`Tensor.__getitem__` and `treadle.tensor`. Their arguments are values of any type.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import inspect
from functools import lru_cache
from types import ModuleType
from typing import Any, Callable, Mapping

import treadle
from treadle_testing.catalogue import Operator, by_id, operators

# Functions that change the state of the process, read or write files, or make no call of their own.
ASIDE = (
    "set_", "save", "load", "manual_seed", "seed", "explain", "register_", "share_memory",
    "fork_rng",
)  # fmt: skip
# Objects have these without our doing, or Python itself calls them.
OF_OBJECTS = set(dir(object)) | {
    "__array_priority__", "__array_ufunc__", "__array_wrap__", "__deepcopy__", "__del__",
    "__dict__", "__module__", "__weakref__", "__torch_function__", "__slots__",
}  # fmt: skip
OF_OBJECTS -= {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__repr__", "__format__"}
MOST_ARGUMENTS = 4


class Binding(Operator):
    """A function written by hand, as if the model had it."""

    def __init__(self, id: str, function: Callable[..., Any], json: Mapping[str, Any]):
        super().__init__(json)
        object.__setattr__(self, "_id", id)
        self.__dict__["function"] = function

    @property
    def id(self) -> str:
        return self.__dict__["_id"]


def _argument(name: str, base: str, writes: bool = False, default: bool = True) -> dict[str, Any]:
    return {
        "name": name,
        "type": {
            "base": base, "optional": False, "list": False, "list_size": None,
            "element_optional": False, "alias": {"write": True} if writes else None,
        },
        "default": {"value": None, "text": ""} if default else None,
        "kwarg_only": False,
    }  # fmt: skip


def _binding(id: str, function: Callable[..., Any], method: bool) -> Binding:
    name = id.rsplit(".", 1)[1]
    # __iadd__ is __add__ in place; __int__ has no __nt__.
    in_place = name.startswith("__i") and hasattr(treadle.Tensor, "__" + name[3:])
    in_place |= name in ("__setitem__", "__delitem__", "module_load")
    in_place |= name.endswith("_") and not name.endswith("__")
    writes = method and in_place
    args = [_argument("self", "Tensor", writes, False)] if method else []
    for i in range(MOST_ARGUMENTS - len(args)):
        args.append(_argument(f"argument_{i}", "Any", default=i > 0 or method))
    json = {
        "name": name, "overload": "", "kind": "binding", "tags": ["random"], "args": args,
        "doc": "",
        "variants": ["function"], "forms": [], "check": [], "dtypes": None, "python_module": None,
        "returns": [{"type": {"list": False}}], "derivative": None,
    }  # fmt: skip
    return Binding(id, function, json)


def _functions(module: ModuleType, known: set[str]) -> list[tuple[str, Callable[..., Any]]]:
    return [
        (f"{module.__name__}.{name}", value)
        for name, value in sorted(vars(module).items())
        if not name.startswith("_") and name not in known and not name.startswith(ASIDE)
        and (inspect.isbuiltin(value) or inspect.isfunction(value))
        and (value.__module__ or "treadle").startswith("treadle")
    ]  # fmt: skip


@lru_cache(maxsize=None)
def bindings() -> Mapping[str, Binding]:
    """All of them, by id: treadle.Tensor.__getitem__, treadle.as_tensor, ..."""
    known = {op.name for op in operators()} | {op.name + "_" for op in operators()}
    found = {}
    for name in sorted(dir(treadle.Tensor)):
        method = getattr(treadle.Tensor, name)
        private = name.startswith("_") and not name.startswith("__")
        if name in known or name in OF_OBJECTS or private or name.startswith(ASIDE):
            continue
        if callable(method) and not inspect.isclass(method):
            id = f"treadle.Tensor.{name}"
            found[id] = _binding(id, method, True)
    for module in (treadle, treadle.nn.functional):
        for id, function in _functions(module, known):
            found[id] = _binding(id, function, False)
    return found


def find(id: str) -> Operator:
    """The operator or the binding of an id."""
    return by_id()[id] if id in by_id() else bindings()[id]

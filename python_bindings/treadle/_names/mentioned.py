"""Names that programs mention and that do not work here, so that the programs can be imported.

    from treadle.distributed.tensor import DTensor      # imports
    isinstance(x, DTensor)                              # False
    DTensor.from_local(x)                               # raises, and says what is missing

The rows are in table.py. A module that has no file of its own and is in the table is made of it; a
module that has one is asked for such a name after all else. Nothing of this is loaded before a
program asks for a name that is not there.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
import importlib.util
import sys
from abc import ABCMeta
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional

from treadle import _names
from treadle._names.table import MISSING, MOVED_MODULES, SAME_MODULES, VALUES

_ORIGIN = "names only"


# By module: its names, and the reason for each.
_reasons: Dict[str, Dict[str, str]] = {}
for _reason, _modules_of_reason in MISSING.items():
    for _module, _names_of_module in _modules_of_reason.items():
        _reasons.setdefault(_module, {}).update(dict.fromkeys(_names_of_module.split(), _reason))


def reason_of(full: str) -> str:
    """Why a name of the table does not work."""
    module, _, name = full.rpartition(".")
    return _reasons[module][name]


def message(full: str) -> str:
    """The message of the error for a use of such a name."""
    name = f"{_names.spoken()}.{full}"
    return f"{name}: only the name exists: {reason_of(full)}; see {_names.PAGE}"


class _ClassOfNames(ABCMeta):
    """The type of the classes: asking one for a member says what is missing. A class may be derived
    from such a one, beside abstract classes and modules too."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        raise AttributeError(f"{message(_root(cls)._mentioned)} (asked for its {name})")


def _root(cls: type) -> Any:
    """The class of the table that a class is or is derived from."""
    return next(base for base in cls.__mro__ if "_mentioned" in base.__dict__)


def _refuse(cls: type, *args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError(message(_root(cls)._mentioned))


def _class(full: str, name: str) -> type:
    doc = f"Only a name: {full}."
    body: dict[str, Any] = {"_mentioned": full, "__module__": _module_of(full), "__doc__": doc}
    if name.endswith(("Error", "Warning", "Exception")):
        return type(name, (Warning if name.endswith("Warning") else RuntimeError,), body)
    body["__new__"] = _refuse
    body["__class_getitem__"] = classmethod(lambda cls, item: cls)
    return _ClassOfNames(name, (), body)


def _function(full: str, name: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(message(full))

    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = _module_of(full), f"Only a name: {full}."
    return function


def _module_of(full: str) -> str:
    return f"{_names.spoken()}.{full}".rpartition(".")[0]


def names_in(module: str) -> List[str]:
    """The names that the table has for a module, `distributed.tensor`."""
    rows = [path.rpartition(".") for path in VALUES]
    return [*_reasons.get(module, {}), *(name for path, _, name in rows if path == module)]


_with_values = {path.rpartition(".")[0] for path in VALUES}
_modules = {*_reasons, *SAME_MODULES, *_with_values} - {""}
_targets = {**SAME_MODULES, **MOVED_MODULES}


def _is_in_table(module: str) -> bool:
    return any(m == module or m.startswith(module + ".") for m in _modules)


def attribute(module: str, name: str) -> Optional[Any]:
    """The module's attribute of that name; None where the table does not have it."""
    path = module.partition(".")[2]
    full = f"{path}.{name}" if path else name
    if name not in names_in(path):
        # The extension module has the classes that the package shows.
        shown = path == "_C" and name in names_in("")
        return getattr(sys.modules[_names.PACKAGE], name) if shown else None
    if full in VALUES:
        return VALUES[full]
    return _class(full, name) if name.lstrip("_")[:1].isupper() else _function(full, name)


class _Loader(Loader):
    """Makes a module whose names are made when they are asked for."""

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        path = module.__name__.partition(".")[2]
        module.__doc__ = f"Only names of {path}."
        module.__dict__["__all__"] = [n for n in names_in(path) if not n.startswith("_")]
        module.__dict__["__getattr__"] = _names.attributes_of(module.__name__)
        module.__dict__["__dir__"] = lambda: sorted({*module.__dict__, *names_in(path)})


class _OtherName(Loader):
    """Loads a module that is another by an older name."""

    def __init__(self, target: str) -> None:
        self._target = target

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        # The import system takes what is here in place of the empty module it made.
        sys.modules[module.__name__] = importlib.import_module(self._target)


def _target_of(path: str) -> Optional[str]:
    """The module that `quantization.observer` is; None for a path of its own."""
    known = [old for old in _targets if path == old or path.startswith(old + ".")]
    if not known:
        return None
    old = max(known, key=len)
    new = f"{_targets[old]}{path[len(old) :]}"
    return _target_of(new) or new


def spec_of(fullname: str) -> Optional[ModuleSpec]:
    """How to load a module of the table; None for another."""
    path = fullname.partition(".")[2]
    target = _target_of(path)
    if target is not None and importlib.util.find_spec(f"{_names.PACKAGE}.{target}") is not None:
        other = _OtherName(f"{_names.PACKAGE}.{target}")
        return ModuleSpec(fullname, other, origin=_ORIGIN, is_package=True)
    if not _is_in_table(path):
        return None
    return ModuleSpec(fullname, _Loader(), origin=_ORIGIN, is_package=True)


def keep(module: str, name: str, value: Any) -> Any:
    """Let the module have the value from now on, so that a class is made once."""
    sys.modules[module].__dict__[name] = value
    return value

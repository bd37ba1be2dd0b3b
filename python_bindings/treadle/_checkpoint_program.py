"""What `weights_only=False` adds to the names that a checkpoint may use: the classes of this
package and of the running program, as data.

PyTorch then lets a file import and call anything. Here a file can still run nothing: a class must
exist in the program already; its instance is made without its `__init__`, and filled without
methods of the class. Classes that do something when they die, and classes of Python's own library
except a few that are plain data, are not taken.
"""

from __future__ import annotations

import argparse
import datetime
import decimal
import enum
import fractions
import importlib
import pathlib
import sys
import sysconfig
import types
from collections import OrderedDict
from typing import Any, Callable, Optional

import treadle
from treadle import _checkpoint_names as names
from treadle._checkpoint_names import Entry, expect, give_state
from treadle._checkpoint_paths import PACKAGE_IN_FILES, PUBLIC_MODULES, class_named, module_here

# Now, so that no file makes anything be imported later.
for _name in PUBLIC_MODULES:
    importlib.import_module(f"treadle.{_name}")

_MADE_BY_A_CLASS_STATEMENT = 1 << 9  # Py_TPFLAGS_HEAPTYPE
# Built-in types whose subclasses are taken; the most special ones first.
_BASES = (OrderedDict, dict, list, set, frozenset, tuple, str, bytes, int, float, complex, object)


def find(module: str, name: str) -> Optional[Entry]:
    """What the name stands for, or None if a checkpoint may not use it."""
    entry = names.find(module, name)
    if entry is not None:
        return entry
    full = f"{module}.{name}"
    entry = _plain_data().get(full)
    if entry is not None:
        return entry
    if full.startswith("numpy."):
        from treadle import _checkpoint_numpy

        return _checkpoint_numpy.entries().get(full)
    value = class_named(full)
    if value is None:
        value = _existing(module, name)
    if isinstance(value, type):
        return _entry_of_class(value)
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
        return Entry(value)  # to keep, not to call
    return None


# ---- what is taken from the running program ------------------------------------------------------


def _existing(module: str, name: str) -> Optional[Any]:
    """The class or function of that name if its module is loaded, looked up without running
    anything."""
    loaded = module_here(module)
    if not isinstance(loaded, types.ModuleType):
        return None
    value: Any = loaded
    for part in name.split("."):
        value = vars(value).get(part) if isinstance(value, (type, types.ModuleType)) else None
    if module.partition(".")[0] == PACKAGE_IN_FILES:
        is_operator = isinstance(value, types.BuiltinFunctionType)
        return value if is_operator or isinstance(value, type) and _is_own(value) else None
    if _is_standard_library(loaded) or getattr(value, "__module__", None) != module:
        return None
    if isinstance(value, type):
        own = not _is_installed(loaded) or issubclass(value, treadle.nn.Module)
        return value if own else None
    is_function = isinstance(value, types.FunctionType)
    return value if is_function and not _is_installed(loaded) else None


def _is_own(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == treadle.__name__


def _is_standard_library(module: types.ModuleType) -> bool:
    name = module.__name__.partition(".")[0]
    if name == "__main__":
        return False
    if name in sys.builtin_module_names or name in getattr(sys, "stdlib_module_names", ()):
        return True
    path = getattr(module, "__file__", None) or ""
    home = sysconfig.get_path("stdlib")
    return not path or path.startswith(home) and not _is_installed(module)


def _is_installed(module: types.ModuleType) -> bool:
    path = getattr(module, "__file__", None) or ""
    return "site-packages" in path or "dist-packages" in path


def _entry_of_class(cls: type) -> Optional[Entry]:
    if not cls.__flags__ & _MADE_BY_A_CLASS_STATEMENT or _runs_something(cls):
        return None
    if issubclass(cls, enum.Enum):
        return Entry(cls, call=_member_of(cls))
    if issubclass(cls, treadle.Tensor):
        return Entry(cls)
    base = next((base for base in _BASES if issubclass(cls, base)), object)
    return Entry(cls, make=_maker(cls, base), state=_state_setter(cls), trusted=False)


def _runs_something(cls: type) -> bool:
    """Whether an instance filled by a file would run code of its own by being read or dropped."""
    for base in cls.__mro__:
        if "__del__" in vars(base):
            return True
        if "__setstate__" in vars(base) and not _is_own(base):
            return True
        if not base.__flags__ & _MADE_BY_A_CLASS_STATEMENT and base not in _BASES:
            return True
        module = sys.modules.get(base.__module__)
        known = base in _BASES or base.__module__ in ("abc", "typing", "enum", "collections.abc")
        if not known and (module is None or _is_standard_library(module)):
            return True
    return False


def _maker(cls: type, base: type) -> Callable:
    def make(*args: Any) -> Any:
        if base is object or base in (dict, OrderedDict, list, set):
            expect(not args, f"expected no arguments for {cls.__name__}, got {len(args)}")
            return base.__new__(cls)
        fields = getattr(cls, "_fields", None)
        if base is tuple and fields is not None:
            expect(
                len(args) == len(fields),
                f"expected {len(fields)} fields for {cls.__name__}, got {len(args)}",
            )
            return tuple.__new__(cls, args)
        expect(
            len(args) <= 1 and all(type(arg) in (base, list, tuple) for arg in args),
            f"expected a plain value for {cls.__name__}",
        )
        return base.__new__(cls, *args)

    return make


def _state_setter(cls: type) -> Callable[[Any, Any], None]:
    if hasattr(cls, "__setstate__"):
        return lambda target, state: target.__setstate__(state)  # one of this package
    slots = {
        name
        for base in cls.__mro__
        for name, value in vars(base).items()
        if isinstance(value, types.MemberDescriptorType)
    }

    def set_state(target: Any, state: Any) -> None:
        parts = state if type(state) is tuple and len(state) == 2 else (state, None)
        give_state(target, parts[0])
        given = parts[1] if parts[1] is not None else {}
        expect(type(given) is dict and given.keys() <= slots, "expected slots of the class")
        for name, value in given.items():
            object.__setattr__(target, name, value)

    return set_state


def _member_of(cls: type) -> Callable:
    def find_member(value: Any) -> Any:
        members = vars(cls)["_value2member_map_"]
        expect(
            type(value) in (int, str, float, tuple) and value in members,
            f"expected a value of {cls.__name__}",
        )
        return members[value]

    return find_member


# ---- plain data of Python's library --------------------------------------------------------------

_plain: dict[str, Entry] = {}


def _of_types(cls: type, *allowed: type) -> Callable:
    def make(*args: Any) -> Any:
        expect(
            len(args) <= 16 and all(type(arg) in allowed for arg in args),
            f"expected plain values for {cls.__name__}",
        )
        return cls(*args)

    return make


def _of_short_text(cls: type) -> Callable:
    def make(text: Any) -> Any:
        expect(type(text) is str and len(text) < 4000, f"expected text for {cls.__name__}")
        return cls(text)

    return make


def _attribute(owner: Any, name: Any) -> Any:
    """Pickles name PyTorch's operators as attributes of one class."""
    expect(owner is _Operators and type(name) is str, "expected the name of an operator")
    value = vars(treadle._C).get(name)
    expect(isinstance(value, types.BuiltinFunctionType), "expected the name of an operator")
    return value


class _Operators:
    """Stands for the class in PyTorch that has the operators as methods."""


def _plain_data() -> dict[str, Entry]:
    if _plain:
        return _plain
    dates = (int, bytes, datetime.timezone, datetime.timedelta)
    _plain.update(
        {
            "argparse.Namespace": Entry(
                argparse.Namespace,
                make=_of_types(argparse.Namespace),
                state=give_state,
                trusted=False,
            ),
            "types.SimpleNamespace": Entry(
                types.SimpleNamespace,
                call=_of_types(types.SimpleNamespace),
                state=give_state,
                trusted=False,
            ),
            "decimal.Decimal": Entry(decimal.Decimal, call=_of_short_text(decimal.Decimal)),
            "fractions.Fraction": Entry(
                fractions.Fraction, call=_of_types(fractions.Fraction, int)
            ),
            "builtins.slice": Entry(slice, call=_of_types(slice, int, type(None))),
            "builtins.range": Entry(range, call=_of_types(range, int)),
            "builtins.getattr": Entry(_attribute, call=_attribute),
            "torch._C._VariableFunctionsClass": Entry(_Operators),
        }
    )
    for cls in (datetime.datetime, datetime.date, datetime.time, datetime.timedelta):
        _plain[f"datetime.{cls.__name__}"] = Entry(cls, call=_of_types(cls, *dates))
    _plain["datetime.timezone"] = Entry(
        datetime.timezone, call=_of_types(datetime.timezone, datetime.timedelta, str)
    )
    for cls in (pathlib.PurePosixPath, pathlib.PureWindowsPath, type(pathlib.Path())):
        for module in ("pathlib", "pathlib._local"):
            _plain[f"{module}.{cls.__name__}"] = Entry(cls, call=_of_types(cls, str))
    for cls in (object, bytes):
        _plain[f"builtins.{cls.__name__}"] = Entry(cls)
    for name in dir(treadle.nn.functional):
        value = getattr(treadle.nn.functional, name)
        if callable(value) and not name.startswith("_") and not isinstance(value, type):
            _plain[f"torch.nn.functional.{name}"] = Entry(value)
            _plain[f"torch._C._nn.{name}"] = Entry(value)
    return _plain

"""The classes of this package and of the running program that a checkpoint may use, as data.

PyTorch lets a file import and call anything once `weights_only` is off. Here a file runs nothing.
A name stands for something in a table, or for a class whose own `__module__` and `__qualname__` say
that name; it is never followed through a module, and functions are those of the tables. An instance
is made without its `__init__` and given its attributes by `give_state`, past every method and
property of its class. Classes that would run code of their own when they are filled or dropped are
refused, and so are hooks of layers, which would run later.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import abc
import argparse
import datetime
import decimal
import enum
import fractions
import functools
import importlib
import pathlib
import sys
import sysconfig
import types
from collections import OrderedDict, defaultdict
from typing import Any, Callable, Optional, Union

from treadle import _C, _names, nn
from treadle._C import Tensor
from treadle._names.pytorch_paths import PACKAGE_IN_FILES, PUBLIC_MODULES, class_named, module_here
from treadle.nn.modules.conv import _ConvNd
from treadle.nn.modules.module import Module
from treadle.nn.modules.rnn import RNNBase
from treadle.optim.adamw import AdamW
from treadle.optim.optimizer import Optimizer
from treadle.serialization import _safe_globals as names
from treadle.serialization._safe_globals import ALLOW, Entry, expect, give_state

# Now, so that no file makes anything be imported later.
for _name in PUBLIC_MODULES:
    importlib.import_module(f"treadle.{_name}")
_STANDARD_LIBRARY = sysconfig.get_path("stdlib")

_MADE_BY_A_CLASS_STATEMENT = 1 << 9  # Py_TPFLAGS_HEAPTYPE
# Built-in types whose subclasses are taken; the most special ones first.
_BASES = (OrderedDict, dict, list, set, frozenset, tuple, str, bytes, int, float, complex, object)
# Classes of classes that answer questions about a class without code of the program.
_METACLASSES = (type, abc.ABCMeta, enum.EnumMeta, type(nn.Parameter))
# The parts of this package whose classes are data that programs save.
_PARTS = ("nn", "ao", "optim", "utils.data", "distributions", "amp")
# Methods of this package that give an instance its state: what they do is safe once the state was
# looked at by the functions of `_state_setter`.
_OWN_SETTERS = (
    Module.__setstate__,
    _ConvNd.__setstate__,
    RNNBase.__setstate__,
    Optimizer.__setstate__,
    AdamW.__setstate__,
)


def find(module: str, name: str, installed: bool = False) -> Union[Entry, str]:
    """The entry of the name, or what to do about it if a checkpoint may not use it.

    installed: whether classes of installed packages that are not layers are taken, too.
    """
    full = f"{module}.{name}"
    entry = names.known(module, name) or _plain_data().get(full)
    if entry is not None:
        return entry
    if module == PACKAGE_IN_FILES and name in _operators():
        return Entry(_operators()[name])  # to keep, not to call
    if full.startswith("numpy."):
        from treadle.serialization import _numpy

        return _numpy.entries().get(full) or ALLOW
    cls = class_named(full) or _class_of_program(module, name)
    if cls is None:
        return _remedy(module)
    reason = _reason_to_refuse(cls, installed)
    return _entry_of_class(cls) if reason is None else reason


# ---- what is taken from the running program ------------------------------------------------------


def _class_of_program(module: str, name: str) -> Optional[type]:
    """The class that says of itself that this is its module and name, if its module is loaded."""
    loaded = module_here(module)
    if not isinstance(loaded, types.ModuleType):
        return None
    value: Any = loaded
    for part in name.split("."):
        value = vars(value).get(part)
        if not issubclass(type(value), type) or type(value) not in _METACLASSES:
            return None
    named = vars(value).get("__module__") == loaded.__name__ and value.__qualname__ == name
    return value if named else None


def _remedy(module: str) -> str:
    loaded = module_here(module)
    if loaded is None and module.partition(".")[0] != PACKAGE_IN_FILES:
        return f"Where it is a class of yours, import {module} before the file is loaded."
    return f"A class must have this name itself, and functions are not loaded. {ALLOW}"


def _is_own(cls: type) -> bool:
    return _names.is_own(cls.__module__)


def _is_standard_library(module: types.ModuleType) -> bool:
    name = module.__name__.partition(".")[0]
    if name == "__main__":
        return False
    if name in sys.builtin_module_names or name in getattr(sys, "stdlib_module_names", ()):
        return True
    path = getattr(module, "__file__", None) or ""
    return not path or path.startswith(_STANDARD_LIBRARY) and not _is_installed(module)


def _is_installed(module: types.ModuleType) -> bool:
    path = getattr(module, "__file__", None) or ""
    return "site-packages" in path or "dist-packages" in path


def _reason_to_refuse(cls: type, installed: bool) -> Optional[str]:
    """Why a file may not have instances of a class, with the remedy; None if it may."""
    if _is_own(cls):
        part = cls.__module__.partition(".")[2]
        if not any(part == known or part.startswith(f"{known}.") for known in _PARTS):
            return f"It is no data that programs save. {ALLOW}"
    else:
        module = sys.modules[cls.__module__]
        if _is_standard_library(module):
            return f"It is a class of Python's own library. {ALLOW}"
        always = issubclass(cls, (Module, enum.Enum, Tensor)) or _fields_of(cls) is not None
        if _is_installed(module) and not always and not installed:
            return f"Classes of installed packages are loaded with weights_only=False. {ALLOW}"
    for base in cls.__mro__:
        method = next((name for name in ("__del__", "__setstate__") if name in vars(base)), None)
        if method is not None and vars(base)[method] not in _OWN_SETTERS:
            return f"Its class {base.__qualname__} has a method {method}, which would run. {ALLOW}"
        if base in _BASES or issubclass(cls, (enum.Enum, Tensor)):
            continue
        if base.__module__ in ("abc", "typing", "collections.abc") or _is_own(base):
            continue
        module = sys.modules.get(base.__module__)  # type: ignore[assignment]
        if (
            not base.__flags__ & _MADE_BY_A_CLASS_STATEMENT
            or module is None
            or _is_standard_library(module)
        ):
            return f"It is made of {base.__qualname__}, which is more than data. {ALLOW}"
    return None


def _entry_of_class(cls: type) -> Entry:
    if issubclass(cls, enum.Enum):
        return Entry(cls, call=_member_of(cls), trusted=False)
    if issubclass(cls, Tensor):
        return Entry(cls, trusted=False)
    base = next((base for base in _BASES if issubclass(cls, base)), object)
    return Entry(cls, make=_maker(cls, base), state=_state_setter(cls), trusted=False, free_from=0)


def _fields_of(cls: type) -> Optional[tuple]:
    """The names of a named tuple's fields; None for other classes."""
    found = next((vars(base)["_fields"] for base in cls.__mro__ if "_fields" in vars(base)), None)
    return found if type(found) is tuple and issubclass(cls, tuple) else None


def _maker(cls: type, base: type) -> Callable:
    def make(*args: Any) -> Any:
        if base is object or base in (dict, OrderedDict, list, set):
            expect(not args, f"expected no arguments for {cls.__name__}, got {len(args)}")
            return base.__new__(cls)
        fields = _fields_of(cls)
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
    if issubclass(cls, Module):
        return _set_state_of_module
    if issubclass(cls, Optimizer):
        return _set_state_of_optimizer
    return give_state


def _set_state_of_module(module: Module, state: Any) -> None:
    expect(type(state) is dict, "expected a dictionary of a layer's attributes")
    # A file of an older version lacks attributes that came later.
    fresh = vars(Module()) | ({"padding_mode": "zeros"} if isinstance(module, _ConvNd) else {})
    if isinstance(module, RNNBase):
        # PyTorch's lists of the weights, which are here in `_parameters` alone.
        state = {k: v for k, v in state.items() if not k.startswith("_flat_weight")}
    state = state | {name: value for name, value in fresh.items() if name not in state}
    for name, empty in vars(Module()).items():
        given = state[name]
        kinds = (dict, OrderedDict) if isinstance(empty, dict) else (type(empty),)
        expect(type(given) in kinds, f"expected {kinds[0].__name__} as {name} of a layer")
        expect(
            not name.endswith("_hooks") or all(_is_own_hook(hook) for hook in given.values()),
            f"expected a layer without hooks, got {name}; remove them before saving, and register "
            "them again after loading",
        )
    give_state(module, state)


def _is_own_hook(hook: Any) -> bool:
    """Whether it is one that the functions of nn.utils register, such as weight_norm."""
    from treadle import nn

    return type(hook).__module__.startswith(f"{nn.utils.__name__}.")


def _set_state_of_optimizer(optimizer: Optimizer, state: Any) -> None:
    expect(
        type(state) is dict
        and state.keys() <= {"defaults", "state", "param_groups"}
        and _is_plain(state)
        and type(state.get("defaults")) is dict
        and type(state.get("state")) in (dict, defaultdict)
        and type(state.get("param_groups")) is list
        and all(type(values) is dict for values in state["state"].values())
        and all(type(group) is dict for group in state["param_groups"]),
        "expected the state and the groups of parameters of an optimizer",
    )
    type(optimizer).__setstate__(optimizer, state)


def _is_plain(value: Any) -> bool:
    """Whether all parts are numbers, text, tensors and plain containers, so that no method of
    another class can run."""
    from treadle import nn

    left, seen = [value], set()
    while left:
        item = left.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if type(item) in (dict, defaultdict, OrderedDict):
            left.extend(item.keys())
            left.extend(item.values())
        elif type(item) in (list, tuple):
            left.extend(item)
        elif type(item) not in (
            bool, int, float, complex, str, type(None), Tensor, nn.Parameter
        ):  # fmt: skip
            return False
    return True


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
    value = _operators().get(name)
    expect(value is not None, "expected the name of an operator")
    return value


class _Operators:
    """Stands for the class in PyTorch that has the operators as methods."""


@functools.lru_cache(maxsize=None)
def _operators() -> dict[str, types.BuiltinFunctionType]:
    """The functions of operators by name, without those that are parts of others."""
    listed = {full.partition("::")[2].partition(".")[0] for full in _C._operator_names()}
    return {
        name: value
        for name, value in vars(_C).items()
        if name in listed and name[0] != "_" and type(value) is types.BuiltinFunctionType
    }


def _namespace(cls: type) -> Entry:
    make = _of_types(cls)
    return Entry(cls, call=make, make=make, state=give_state, trusted=False)


def _plain_data() -> dict[str, Entry]:
    from treadle import nn

    if _plain:
        return _plain
    dates = (int, bytes, datetime.timezone, datetime.timedelta)
    _plain.update(
        {
            "argparse.Namespace": _namespace(argparse.Namespace),
            "types.SimpleNamespace": _namespace(types.SimpleNamespace),
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
    for cls in (pathlib.PurePosixPath, pathlib.PureWindowsPath, type(pathlib.Path())):  # type: ignore[assignment]
        for module in ("pathlib", "pathlib._local"):
            _plain[f"{module}.{cls.__name__}"] = Entry(cls, call=_of_types(cls, str))
    for cls in (object, bytes):  # type: ignore[assignment]
        _plain[f"builtins.{cls.__name__}"] = Entry(cls)
    for name in nn.functional.__all__:
        value = getattr(nn.functional, name)
        _plain[f"torch.nn.functional.{name}"] = Entry(value)
        _plain[f"torch._C._nn.{name}"] = Entry(value)
    return _plain

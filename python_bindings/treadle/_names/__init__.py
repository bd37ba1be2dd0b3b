"""How the package calls itself, and what it says of a name that it does not have.

The package is `treadle`; to a program that imports it as `torch` (treadle.run) it is `torch`, in
messages as in the text of dtypes and sizes:

    >>> treadle.nn.Foo                    # by itself
    AttributeError: module 'treadle.nn' has no attribute 'Foo'
    >>> torch.nn.Foo                      # under treadle.run
    AttributeError: torch.nn.Foo does not exist in Treadle; see docs/coming-from-pytorch.md
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec
from typing import Any, Callable, Dict, Optional, Sequence

PACKAGE = "treadle"
PAGE = "docs/coming-from-pytorch.md"

_spoken = PACKAGE


def spoken() -> str:
    """The name by which the program knows the package: treadle or torch."""
    return _spoken


def speak_as(name: str) -> None:
    """Set that name."""
    global _spoken
    _spoken = name
    _extension._speak_as(name)


def package() -> Any:
    """The package itself, for those who look a name up in it when they are called: that of a module
    above theirs, for example, which may import them."""
    return sys.modules[PACKAGE]


def is_own(module: str) -> bool:
    """Whether a module is of the package, under whichever name."""
    return module.partition(".")[0] in (PACKAGE, _spoken)


def in_words_of_the_program(name: str) -> str:
    """`treadle.nn.Linear` as the program writes it."""
    return _spoken + name[len(PACKAGE) :] if name.split(".")[0] == PACKAGE else name


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that a module of the package does not have."""
    if _spoken == PACKAGE:
        error = AttributeError(f"module '{module}' has no attribute '{name}'")
    else:
        asked = f"{in_words_of_the_program(module)}.{name}"
        error = AttributeError(f"{asked} does not exist in Treadle; see {PAGE}")
    # For the suggestions that Python adds: "Did you mean: ...?"
    error.name, error.obj = name, sys.modules.get(module)
    return error


def _is_module(full: str) -> bool:
    if full in sys.modules:
        return True
    spec = importlib.util.find_spec(full)
    return spec is not None and spec.origin is not None  # a folder alone has none


def submodule(module: str, name: str) -> Optional[Any]:
    """The submodule of that name, imported; None where there is none."""
    is_special = name.startswith("__") and name != "__config__"
    if is_special or not hasattr(sys.modules.get(module), "__path__"):
        return None
    for package in dict.fromkeys((module, in_words_of_the_program(module))):
        full = f"{package}.{name}"
        if _is_module(full):
            return importlib.import_module(full)
    return None


def otherwise(module: str, name: str) -> Optional[Any]:
    """The value of a name that is not written in a module: the submodule, imported, or what
    stands for a name that programs only mention; None where there is neither."""
    found = submodule(module, name)
    if found is None and not name.startswith("__"):
        from treadle._names import mentioned

        found = mentioned.attribute(module, name)
        if found is not None:
            mentioned.keep(module, name, found)
    return found


def attributes_of(module: str, lazy: Optional[Dict[str, str]] = None) -> Callable[[str], Any]:
    """A `__getattr__` for a module: its submodules are imported when they are first used, and names
    are taken from the submodules that `lazy` says."""

    def __getattr__(name: str) -> Any:
        if lazy is not None and name in lazy:
            value = getattr(importlib.import_module(f"{module}.{lazy[name]}"), name)
            sys.modules[module].__dict__[name] = value
            return value
        found = otherwise(module, name)
        if found is None:
            raise missing(module, name)
        return found

    return __getattr__


class _Mentioned:
    """The last finder: modules of which there are only names."""

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]] = None, target: Any = None
    ) -> Optional[ModuleSpec]:
        if not fullname.startswith(PACKAGE + ".") or fullname.startswith(f"{PACKAGE}._names"):
            return None
        from treadle._names import mentioned

        return mentioned.spec_of(fullname)


def _attribute_of_extension(name: str) -> Any:
    """An attribute of the extension module that is written in Python: see _extension."""
    full = f"{PACKAGE}._C"
    if not name.startswith("__"):
        written = importlib.import_module(f"{PACKAGE}._extension")
        found = getattr(written, name, None) if name in written.__all__ else otherwise(full, name)
        if found is not None:
            return found
    raise missing(full, name)


def _attribute_of_layers(name: str) -> Any:
    """The same for `_C._nn`: see _extension.layers."""
    if not name.startswith("__"):
        written = importlib.import_module(f"{PACKAGE}._extension.layers")
        if name in written.__all__:
            return getattr(written, name)
    raise missing(f"{PACKAGE}._C._nn", name)


sys.meta_path.append(_Mentioned())
_extension = sys.modules[f"{PACKAGE}._C"]
# Programs import modules from below it, as if it were a folder.
_root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_extension.__path__ = [os.path.join(_root, "_extension")]
_extension.__getattr__ = _attribute_of_extension
_extension._nn.__getattr__ = _attribute_of_layers

"""The import hook that makes `import torch` give treadle; what `treadle.run` installs.

A finder in front of all others answers for `torch` and its submodules with the module objects of
the package, so that `torch.nn is treadle.nn`, whichever name was imported first. While it is there
the package speaks of itself as torch: torch.float32, torch.Size([2, 3]), <class 'torch.Tensor'>.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, FunctionType, ModuleType
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple

from treadle import _C, _names, _stable_abi
from treadle._names import pytorch_paths

ALIAS = "torch"
# A folder with a torch.py that installs the hook, for processes that begin without it.
FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "_as_torch")


def _is_below(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def _renamed(name: str, package: str) -> str:
    """`torch.nn` as `treadle.nn`, and the other way."""
    return ".".join([package, *name.split(".")[1:]])


class _Alias(Loader):
    """Loads `torch.nn` as the module treadle.nn, which it imports."""

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        # The import system takes what is here in place of the empty module it made.
        name = module.__name__
        sys.modules[name] = importlib.import_module(_renamed(name, _names.PACKAGE))

    def get_code(self, fullname: str) -> Optional[CodeType]:
        """The code of the module, for `python -m torch.distributed.run`."""
        spec = importlib.util.find_spec(_renamed(fullname, _names.PACKAGE))
        get_code = getattr(spec and spec.loader, "get_code", None)
        return get_code(spec.name) if spec is not None and get_code is not None else None


class _Source(SourceFileLoader):
    """Loads a module of the package, which then is there under both names."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _adopt(module)


class _Elsewhere(Loader):
    """Loads a module that the package does not have, whose classes it has in others: of
    torch.nn.modules.upsampling the class Upsample is in treadle.nn."""

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__.update(pytorch_paths.classes_of(module.__name__))
        module.__dict__["__getattr__"] = _names.attributes_of(
            _renamed(module.__name__, _names.PACKAGE)
        )


# The kinds of objects that say a module.
_SAY_A_MODULE = (type, FunctionType, _C._OverridableFunction)
# The renamed objects, each with the attribute that says a name and its old value.
_original: List[Tuple[Any, str, str]] = []


def _rename(thing: Any, attribute: str, name: str) -> None:
    _original.append((thing, attribute, getattr(thing, attribute)))
    setattr(thing, attribute, name)


def _adopt(module: ModuleType) -> None:
    """Make a module of the package known as torch's, with all that torch's has in it: it, its
    classes and functions say that they are torch's, and so do messages of missing names."""
    name = module.__name__
    if not _is_below(name, _names.PACKAGE):
        return  # adopted by another name before
    sys.modules[_renamed(name, ALIAS)] = module
    module.__dict__.setdefault("__getattr__", _attributes_of(name))
    for value in list(vars(module).values()):
        home = getattr(value, "__module__", None)
        if isinstance(value, _SAY_A_MODULE) and home and _is_below(home, _names.PACKAGE):
            path = pytorch_paths.path_in_files(value, value.__qualname__)
            _rename(value, "__module__", path)
    _rename(module, "__name__", _renamed(name, ALIAS))


def _attributes_of(module: str) -> Callable[[str], Any]:
    path, otherwise = _renamed(module, ALIAS), _names.attributes_of(module)

    def __getattr__(name: str) -> Any:
        if name == "__all__" and _is_below(path, f"{ALIAS}.nn.modules"):
            layers = pytorch_paths.classes_of(path)
            if layers:
                return sorted(layers)
        full = f"{path}.{name}"
        if pytorch_paths.classes_of(full) and importlib.util.find_spec(full) is not None:
            return importlib.import_module(full)
        found = pytorch_paths.class_named(full)
        return otherwise(name) if found is None else found

    return __getattr__


class _Distribution(importlib.metadata.Distribution):
    """The distribution that `importlib.metadata.version("torch")` finds."""

    def read_text(self, filename: str) -> Optional[str]:
        version = importlib.import_module("treadle.version").__version__
        texts = {"METADATA": f"Metadata-Version: 2.1\nName: {ALIAS}\nVersion: {version}\n"}
        return texts.get(filename)

    def locate_file(self, path: Any) -> Any:
        return os.path.join(os.path.dirname(FOLDER), path)


class _Finder(importlib.metadata.DistributionFinder):
    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]] = None, target: Any = None
    ) -> Optional[ModuleSpec]:
        if _is_below(fullname, _names.PACKAGE):
            spec = PathFinder.find_spec(fullname, path)
            if spec is not None and type(spec.loader) is SourceFileLoader:
                spec.loader = _Source(fullname, spec.loader.path)
            return spec
        if not _is_below(fullname, ALIAS):
            return None
        spec = importlib.util.find_spec(_renamed(fullname, _names.PACKAGE))
        if spec is None and pytorch_paths.classes_of(fullname):
            return ModuleSpec(fullname, _Elsewhere(), origin="classes of other modules")
        if spec is None:
            return None
        if spec.origin is None:  # a folder without code, which a later finder would take
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        is_package = spec.submodule_search_locations is not None
        return ModuleSpec(fullname, _Alias(), origin=spec.origin, is_package=is_package)

    def find_distributions(
        self, context: Any = importlib.metadata.DistributionFinder.Context()
    ) -> Iterator[_Distribution]:
        return iter([_Distribution()] if context.name == ALIAS else [])


_finder = _Finder()
# Undoes what install() does about extension modules.
_end_watch: List[Callable[[], None]] = []


def install() -> None:
    """From here on `import torch` gives treadle, in this process and in those that it starts by
    `multiprocessing`. RuntimeError if another torch is imported already. Once is enough; more do
    nothing.
    """
    if _finder in sys.meta_path:
        return
    package = _names.package()
    if sys.modules.get(ALIAS, package) is not package:
        raise RuntimeError("install: expected that torch is not imported yet, but it is")
    sys.meta_path.insert(0, _finder)
    _end_watch.append(_stable_abi.watch_extension_modules())
    if FOLDER not in sys.path:
        sys.path.insert(1, FOLDER)
    for name, module in list(sys.modules.items()):
        if _is_below(name, _names.PACKAGE) and isinstance(module, ModuleType):
            _adopt(module)
    _names.speak_as(ALIAS)
    package.__version__ = importlib.import_module("treadle.version").__version__
    # torch.torch is torch, as some programs write it.
    setattr(package, ALIAS, package)


def uninstall() -> None:
    """Undo install(). The program keeps what it has imported by then."""
    if _finder not in sys.meta_path:
        return
    sys.meta_path.remove(_finder)
    _end_watch.pop()()
    sys.path[:] = [folder for folder in sys.path if folder != FOLDER]
    for name in [name for name in sys.modules if _is_below(name, ALIAS)]:
        del sys.modules[name]
    _names.speak_as(_names.PACKAGE)
    while _original:
        thing, name, value = _original.pop()
        setattr(thing, name, value)
    package = _names.package()
    package.__version__ = importlib.import_module("treadle._version").__version__
    delattr(package, ALIAS)

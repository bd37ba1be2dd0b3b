"""The import hook that makes `import torch` give treadle; what `treadle.run` installs.

A finder in front of all others answers for `torch` and its submodules with the module objects of
the package, so that `torch.nn is treadle.nn`, whichever name was imported first. While it is there
the package speaks of itself as torch: torch.float32, torch.Size([2, 3]).
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, Optional, Sequence

import treadle
from treadle import _checkpoint_paths, _names

ALIAS = "torch"
# A folder with a torch.py that installs the hook, for processes that begin without it.
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_as_torch")

# The types whose text begins with the name of the package, and how each makes it.
_TEXTS: Dict[type, Callable[[Any], str]] = {
    kind: kind.__repr__
    for kind in (treadle.dtype, treadle.layout, treadle.memory_format, treadle.Size)
}


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
        module.__dict__.update(_checkpoint_paths.classes_of(module.__name__))
        module.__dict__["__getattr__"] = _names.attributes_of(
            _renamed(module.__name__, _names.PACKAGE)
        )


def _adopt(module: ModuleType) -> None:
    """Make a module of the package known as torch's, with all that torch's has in it; its missing
    names speak of torch."""
    sys.modules[_renamed(module.__name__, ALIAS)] = module
    module.__dict__.setdefault("__getattr__", _attributes_of(module.__name__))


def _attributes_of(module: str) -> Callable[[str], Any]:
    path, otherwise = _renamed(module, ALIAS), _names.attributes_of(module)

    def __getattr__(name: str) -> Any:
        full = f"{path}.{name}"
        if _checkpoint_paths.classes_of(full) and importlib.util.find_spec(full) is not None:
            return importlib.import_module(full)
        found = _checkpoint_paths.class_named(full)
        return otherwise(name) if found is None else found

    return __getattr__


class _Distribution(importlib.metadata.Distribution):
    """What `importlib.metadata.version("torch")` finds."""

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
        if spec is None and _checkpoint_paths.classes_of(fullname):
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


def _spell(name: str) -> None:
    """Make the text of dtypes, sizes and the like begin with the name, and modules speak of it."""
    _names.speak_as(name)
    for kind, text in _TEXTS.items():
        kind.__repr__ = text if name == _names.PACKAGE else _respelled(text, name)  # type: ignore


def _respelled(text: Callable[[Any], str], name: str) -> Callable[[Any], str]:
    return lambda self: text(self).replace(_names.PACKAGE, name, 1)


_finder = _Finder()


def install() -> None:
    """From here on `import torch` gives treadle, in this process and in those that it starts by
    `multiprocessing`. RuntimeError if another torch is imported already. Once is enough; more do
    nothing.
    """
    if _finder in sys.meta_path:
        return
    if sys.modules.get(ALIAS, treadle) is not treadle:
        raise RuntimeError("install: expected that torch is not imported yet, but it is")
    sys.meta_path.insert(0, _finder)
    if FOLDER not in sys.path:
        sys.path.insert(1, FOLDER)
    for name, module in list(sys.modules.items()):
        if _is_below(name, _names.PACKAGE) and isinstance(module, ModuleType):
            _adopt(module)
    _spell(ALIAS)
    treadle.__version__ = importlib.import_module("treadle.version").__version__


def uninstall() -> None:
    """Undo install(). What the program has imported by then it keeps."""
    if _finder not in sys.meta_path:
        return
    sys.meta_path.remove(_finder)
    sys.path[:] = [folder for folder in sys.path if folder != FOLDER]
    for name in [name for name in sys.modules if _is_below(name, ALIAS)]:
        del sys.modules[name]
    _spell(_names.PACKAGE)
    treadle.__version__ = importlib.import_module("treadle._version").__version__

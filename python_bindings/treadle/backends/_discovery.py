"""Finds the backends that are to be there after `import treadle`: those of installed packages, by
their entry points, and those that the environment names.

    [project.entry-points."treadle.backends"]      # in pyproject.toml of such a package
    mine = "treadle_mine:library"                  # a function that returns the library's path,
                                                   # or a module with the path as LIBRARY

    TREADLE_BACKENDS=/opt/mine.so:/opt/other.so    # paths, with os.pathsep between them
    TREADLE_AUTOLOAD_BACKENDS=0                    # none of either kind

A backend that cannot be loaded gives one warning, and is left out. CUDA's is looked for when a
device of its is first asked for (treadle/_device/cuda_backend.py).
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Callable, Iterator, Tuple

from treadle import _C

GROUP = "treadle.backends"


def autoload() -> None:
    """Load them all; what fails is a RuntimeWarning."""
    if os.environ.get("TREADLE_AUTOLOAD_BACKENDS", "1").lower() in ("0", "false", "no", "off"):
        return
    for name, target in entry_points():
        _try(f"backend '{name}' (entry point {target})", functools.partial(_library, target))
    for path in os.environ.get("TREADLE_BACKENDS", "").split(os.pathsep):
        if path:
            _try(f"backend {path} (of TREADLE_BACKENDS)", functools.partial(str, path))


def entry_points() -> Iterator[Tuple[str, str]]:
    """(name, "module:function") of each entry point of the group.

    importlib.metadata would import twenty modules and read every file of every package for this,
    which is more than the rest of `import treadle`.
    """
    seen = set()
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for package in names:
            if not package.endswith((".dist-info", ".egg-info")):
                continue
            for name, target in _in_file(os.path.join(folder, package, "entry_points.txt")):
                if name not in seen:
                    seen.add(name)
                    yield name, target


def _in_file(path: str) -> Iterator[Tuple[str, str]]:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError):
        return
    if GROUP not in text:
        return
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[] ")
        elif section == GROUP and "=" in line and line[0] not in "#;":
            name, _, target = line.partition("=")
            yield name.strip(), target.split("[")[0].strip()


def _library(target: str) -> Any:
    """The path that an entry point gives."""
    import importlib

    module, _, name = target.partition(":")
    place: Any = importlib.import_module(module)
    for part in name.split(".") if name else ():
        place = getattr(place, part)
    path = place.LIBRARY if hasattr(place, "LIBRARY") else place() if callable(place) else place
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(
            f"expected {target} to be a function that returns the path of a library, or a module "
            f"with one as LIBRARY, got {type(path).__name__}"
        )
    return path


def _try(what: str, path: Callable[[], Any]) -> None:
    try:
        from treadle.backends._loading import load_backend

        load_backend(path())
    except (Exception, SystemExit) as error:
        import warnings

        reason = str(error) or "no reason"
        warnings.warn(
            f"import treadle: {what} was left out: {type(error).__name__}: {reason}",
            RuntimeWarning,
            stacklevel=3,
        )


def _find_cuda() -> str:
    """Load the backend of CUDA devices: '' where that went well, else why there is none."""
    from treadle._device import cuda_backend

    return cuda_backend.find()


_C._set_backend_finder("cuda", _find_cuda)

"""Loads backends: shared libraries that bring devices. Each device then has its module,
`treadle.NAME`.

    treadle.load_backend("build/libmine.so")
    x = treadle.zeros(3, device="mine")
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Tuple, Union

from treadle import _C


class Loaded(NamedTuple):
    """A library that was loaded."""

    name: str
    version: str
    path: str
    interface_version: int
    devices: Tuple[str, ...]


_devices_of: Dict[str, Tuple[str, ...]] = {}  # by the path of the library


def load_backend(path: Union[str, "os.PathLike[str]"]) -> Tuple[str, ...]:
    """Load the shared library of a backend, and return the names of its devices. A library that was
    loaded before is not loaded again.

    RuntimeError for a file that is no plug-in, or one for another version of the plug-in interface,
    and where it cannot start: a device of its name is there already, say. Nothing of it is then
    registered.
    """
    before = set(_C._backends())
    library = _C._load_plugin(os.path.abspath(os.fspath(path)))[2]
    new = tuple(name for name in _C._backends() if name not in before)
    if library not in _devices_of:
        _devices_of[library] = new
    if new:
        from treadle._device import install

        for name in new:
            install.install(name)
    return _devices_of[library]


def loaded() -> List[Loaded]:
    """The libraries that were loaded, with the devices of each, in the order of loading."""
    plugins: Dict[str, Any] = {plugin[2]: plugin for plugin in _C._loaded_plugins()}
    return [Loaded(*plugins[path], devices) for path, devices in _devices_of.items()]  # type: ignore[call-arg]

"""Additions of a new device to the package: its module `treadle.NAME`, and the methods and
properties of tensors, layers and packed sequences that are named after it.

    treadle.mine.synchronize()
    x.mine(), x.is_mine, net.mine()

A name that the package has already keeps its meaning: of a device called "sum" there is
`treadle.get_device_module("sum")`, and no method.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import sys
from typing import Any, Callable

from treadle import _C, _names
from treadle._device import registry
from treadle._device.module import DeviceModule


def install(name: str) -> None:
    """Make a device that was just registered known to the package."""
    package = _names.package()
    module = registry.modules[name] = _module_type(name)(name)
    # A module that only says that there is no such device gives way.
    if name in registry.ABSENT or not hasattr(package, name):
        _publish(module)
        setattr(package, name, module)
    elif name == "cuda":
        _fill(package.cuda, module)
    _add(_C.Tensor, name, _to_device(name))
    _add(_C.Tensor, f"is_{name}", property(lambda self: self.device.type == name))
    layers = sys.modules.get("treadle.nn.modules.module")
    if layers is not None:
        install_on_modules(layers.Module)
    sequences = sys.modules.get("treadle.nn.utils.rnn")
    if sequences is not None:
        install_on_sequences(sequences.PackedSequence)


def _module_type(name: str) -> Any:
    if name != "cuda":
        return DeviceModule
    from treadle.cuda._device import CudaModule

    return CudaModule


def install_on_modules(cls: Any) -> None:
    """Give the class of layers a method for each device."""
    for name in _C._backends():
        _add(cls, name, _module_to_device(name))


def _is_on(name: str) -> property:
    return property(lambda self: self.data.device.type == name)


def install_on_sequences(cls: Any) -> None:
    """Give the class of packed sequences a method and a property for each device."""
    for name in _C._backends():
        _add(cls, name, _to_device(name))
        _add(cls, f"is_{name}", _is_on(name))


def _fill(place: Any, module: DeviceModule) -> None:
    """Let the functions of a device take the place of those of a module that programs have imported
    before there was one."""
    keys = ["Stream", "Event", "StreamContext", "device", "device_of"]
    for cls in type(module).__mro__:
        if not _names.is_own(cls.__module__):
            break
        keys += [key for key in vars(cls) if not key.startswith("_")]
    # A submodule has the attributes of the module.
    for part in (place, place.memory, place.random, place.streams):
        for key in keys:
            if part is place or key in part.__all__:
                setattr(part, key, getattr(module, key))


def _publish(module: DeviceModule) -> None:
    for part in (module, module.amp):
        sys.modules[part.__name__] = part
        alias = "torch" + part.__name__[len("treadle") :]
        if sys.modules.get("torch") is _names.package():
            sys.modules[alias] = part


def _add(cls: Any, name: str, value: Any) -> None:
    # A device that was taken back and comes again finds its own there.
    if not hasattr(cls, name):
        setattr(cls, name, value)


def _place(name: str, device: Any) -> _C.device:
    place = _C.device(name, device) if isinstance(device, int) else _C.device(device or name)
    if place.type != name:
        raise RuntimeError(f"{name}: expected a device of {name}, got {place}")
    return place


def _to_device(name: str) -> Callable[..., Any]:
    def move(self: Any, device: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        return self.to(device=_place(name, device), non_blocking=non_blocking, **kwargs)

    move.__name__ = move.__qualname__ = name
    move.__doc__ = f"On a device of {name}: the current one, or the one given."
    return move


def _module_to_device(name: str) -> Callable[..., Any]:
    def move(self: Any, device: Any = None) -> Any:
        place = _place(name, device)
        return self._apply(lambda tensor: tensor.to(place))

    move.__name__ = move.__qualname__ = name
    move.__doc__ = f"Move to a device of {name}: the current one, or the one given."
    return move

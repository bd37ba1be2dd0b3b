"""What the namespaces of devices that are known by name (treadle.cuda, mps, xpu, accelerator) ask
the library, and which module is a device's.

A device is there if a tensor can be made on it, which takes a backend for it. A function that needs
one says so where there is none:

    RuntimeError: cuda.synchronize: expected a CUDA device, got none: the package treadle-cuda is
    not installed

What a program may as well do without a device, such as seeding its generator or emptying its cache,
does nothing.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Optional

from treadle import _C

# Devices that the package knows but does not have: a backend may bring them.
ABSENT = ("mps", "xpu")

_TITLES = {
    "accelerator": "a device beside the CPU",
    "cuda": "a CUDA device",
    "mps": "an MPS device",
    "xpu": "an XPU device",
}


def is_available(place: str) -> bool:
    """Whether tensors can be made on a device: "cuda", "cuda:1"."""
    try:
        _C.empty((0,), device=place)
    except (RuntimeError, NotImplementedError):
        return False
    return True


def count(kind: str) -> int:
    """How many devices of a kind there are."""
    number = 0
    while is_available(f"{kind}:{number}"):
        number += 1
    return number


def only_backend() -> Optional[str]:
    """The kind of device that has a backend, where there is one such kind; else None."""
    names = _C._backends()
    return names[0] if len(names) == 1 else None


def get_device_module(device: Any = None) -> Any:
    """The module with the functions of a device's kind: treadle.cpu, treadle.cuda, treadle.NAME.
    None is the accelerator, or the CPU where there is none. RuntimeError for a device without a
    module."""
    import importlib

    from treadle import accelerator

    place = (accelerator.current_accelerator() or "cpu") if device is None else device
    kind = _C.device(place).type
    if kind in _C._backends():
        from treadle._device.install import module_of

        return module_of(kind)
    if kind not in ("cpu", "cuda", *ABSENT):
        raise RuntimeError(f"get_device_module: expected a device with a module, got {kind}")
    return importlib.import_module(f"treadle.{kind}")


def no_device(function: str) -> RuntimeError:
    """The error of a function such as "cuda.synchronize" where there is no device."""
    kind = function.split(".")[0]
    reason = "no backend for one is loaded"
    if kind == "cuda":
        from treadle.cuda import _loading

        reason = _loading.find() or reason
    return RuntimeError(f"{function}: expected {_TITLES[kind]}, got none: {reason}")


def of_backend(namespace: str, name: str) -> Optional[Callable[..., Any]]:
    """The function of that name of a backend's module, if one is loaded: what was imported before
    it was loaded finds it, too."""
    if namespace != "cuda":
        return None
    from treadle.cuda import _loading

    if _loading.find():
        return None
    from treadle._device.install import module_of

    return getattr(module_of(namespace), name, None)


def refusals(namespace: str) -> Callable[[str], Callable[..., Any]]:
    """Makes the functions of a namespace that need one of its devices:
    `refused = refusals("cuda")`, `synchronize = refused("synchronize")`.
    """

    def refused(name: str) -> Callable[..., Any]:
        def function(*args: Any, **kwargs: Any) -> Any:
            answer = of_backend(namespace, name)
            if answer is None:
                if namespace in _C._backends():
                    raise NotImplementedError(f"{namespace}.{name}: not implemented")
                raise no_device(f"{namespace}.{name}")
            return answer(*args, **kwargs)

        function.__name__ = function.__qualname__ = name
        function.__module__ = f"treadle.{namespace}"
        function.__doc__ = f"Needs {_TITLES[namespace]}: RuntimeError where there is none."
        return function

    return refused

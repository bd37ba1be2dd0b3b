"""The parts of the namespaces of devices that are known by name: treadle.cuda, xpu, mps, and
accelerator, which is the device that there is.

    is_available, device_count, *_ = facade.questions("xpu")
    synchronize = facade.refused("xpu", "synchronize")

A device may not be there. A question then has an answer; what a program may as well do without a
device, such as seeding its generator or emptying its cache, does nothing; and a function that needs
one says so:

    RuntimeError: cuda.synchronize: expected a CUDA device, got none: the package treadle-cuda is
    not installed
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Callable, Dict, NamedTuple, Optional, TypeVar

from treadle import _C
from treadle._device import cuda_backend, registry

F = TypeVar("F", bound=Callable[..., Any])


class _Words(NamedTuple):
    """How documentation and messages speak of a kind of device."""

    title: str
    one: str = "one"
    several: str = ""
    kind: str = "one"


_WORDS = {
    "accelerator": _Words("a device beside the CPU"),
    "cuda": _Words("a CUDA device", "a CUDA device", "CUDA devices ", "CUDA"),
    "mps": _Words("an MPS device"),
    "xpu": _Words("an XPU device"),
}


def _documented(function: F, module: str, name: str, doc: str) -> F:
    """The function, as if it were written in a module of the package."""
    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = f"treadle.{module}", doc
    return function


# ---- functions that need a device ----------------------------------------------------------------


def no_device(function: str) -> RuntimeError:
    """The error of a function such as "cuda.synchronize" where there is no device."""
    kind = function.split(".")[0]
    reason = "no backend for one is loaded"
    if kind == "cuda":
        reason = cuda_backend.find() or reason
    return RuntimeError(f"{function}: expected {_WORDS[kind].title}, got none: {reason}")


def of_backend(namespace: str, name: str) -> Optional[Callable[..., Any]]:
    """The function of that name of a backend's module, if one is loaded: what was imported before
    it was loaded finds it, too."""
    if namespace != "cuda" or cuda_backend.find():
        return None
    return getattr(registry.module_of(namespace), name, None)


def refused(namespace: str, name: str) -> Callable[..., Any]:
    """A function of a namespace that needs one of its devices."""

    def function(*args: Any, **kwargs: Any) -> Any:
        answer = of_backend(namespace, name)
        if answer is None:
            if namespace in _C._backends():
                raise NotImplementedError(f"{namespace}.{name}: not implemented")
            raise no_device(f"{namespace}.{name}")
        return answer(*args, **kwargs)

    doc = f"Needs {_WORDS[namespace].title}: RuntimeError where there is none."
    return _documented(function, namespace, name, doc)


def stream_type(namespace: str, module: str) -> Any:
    """The class of streams where there is no device; `module` is the one that has it."""

    class Stream:
        """A queue of work on a device. RuntimeError where there is no device."""

        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            found = of_backend(namespace, cls.__name__)
            if found is None:
                raise no_device(f"{namespace}.{cls.__name__}")
            return found(*args, **kwargs)

    Stream.__module__, Stream.__qualname__ = f"treadle.{module}", "Stream"
    return Stream


# ---- what has an answer without a device ---------------------------------------------------------


class Questions(NamedTuple):
    """Questions about the devices of a kind."""

    is_available: Callable[[], bool]
    device_count: Callable[[], int]
    is_initialized: Callable[[], bool]
    is_bf16_supported: Callable[..., bool]


def questions(kind: str) -> Questions:
    """Whether there are devices of a kind, and how many."""
    words = _WORDS[kind]

    def is_available() -> bool:
        return registry.is_available(kind)

    def device_count() -> int:
        return registry.count(kind)

    def is_initialized() -> bool:
        return is_available()

    def is_bf16_supported(including_emulation: bool = True) -> bool:
        return is_available()

    return Questions(
        _documented(
            is_available, kind, "is_available", f"Whether tensors can be made on {words.one}."
        ),
        _documented(device_count, kind, "device_count", f"How many {words.several}there are."),
        _documented(
            is_initialized,
            kind,
            "is_initialized",
            f"Whether {words.kind} has been used: never where there is none.",
        ),
        _documented(
            is_bf16_supported,
            kind,
            "is_bf16_supported",
            f"Whether {words.one} computes in bfloat16.",
        ),
    )


class Seeds(NamedTuple):
    """Seeding, which programs do for all devices that they know."""

    manual_seed: Callable[[int], None]
    manual_seed_all: Callable[[int], None]
    seed: Callable[[], None]
    seed_all: Callable[[], None]


def seeds(module: str, generator: str = "the generator of the current device") -> Seeds:
    """The functions that seed generators: they check a seed, and do nothing without a device."""

    def manual_seed(seed: int) -> None:
        int(seed)

    def manual_seed_all(seed: int) -> None:
        int(seed)

    def seed() -> None:
        pass

    def seed_all() -> None:
        pass

    return Seeds(
        _documented(manual_seed, module, "manual_seed", f"Seed {generator}, if there is one."),
        _documented(
            manual_seed_all, module, "manual_seed_all", "Seed the generators of all devices."
        ),
        _documented(seed, module, "seed", f"Seed {generator} from the system, if there is one."),
        _documented(
            seed_all, module, "seed_all", "Seed the generators of all devices from the system."
        ),
    )


class Memory(NamedTuple):
    """The memory of devices."""

    memory_allocated: Callable[..., int]
    memory_stats: Callable[..., Dict[str, Any]]
    empty_cache: Callable[[], None]
    reset_peak_memory_stats: Callable[..., None]


def memory(module: str) -> Memory:
    """The functions about memory where there is no device: none is in use."""

    def memory_allocated(device: Any = None) -> int:
        return 0

    def memory_stats(device: Any = None) -> Dict[str, Any]:
        return OrderedDict()

    def empty_cache() -> None:
        pass

    def reset_peak_memory_stats(device: Any = None) -> None:
        pass

    return Memory(
        _documented(
            memory_allocated, module, "memory_allocated", "Bytes that tensors take on a device."
        ),
        _documented(
            memory_stats,
            module,
            "memory_stats",
            "Numbers about the allocator of a device: there is none.",
        ),
        _documented(empty_cache, module, "empty_cache", "Nothing is kept for later on a device."),
        _documented(
            reset_peak_memory_stats, module, "reset_peak_memory_stats", "Nothing was counted."
        ),
    )


# ---- the device beside the CPU, whichever it is --------------------------------------------------


def accelerator(function: str) -> Any:
    """The module of the device that there is; RuntimeError where there is none."""
    found = registry.current_accelerator()
    if found is None:
        raise no_device(f"accelerator.{function}")
    return registry.get_device_module(found)


def asked(name: str, module: str = "accelerator.random") -> Callable[..., Any]:
    """A function that asks the device's module for the one of its name."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return getattr(accelerator(name), name)(*args, **kwargs)

    doc = f"{name}() of the module of the device; RuntimeError where there is none."
    return _documented(function, module, name, doc)


def bytes_of_memory(name: str, doc: str) -> Callable[..., int]:
    """A function that asks the device's module about its memory; 0 where there is no device."""

    def function(device_index: Any = None) -> int:
        if registry.current_accelerator() is None:
            return 0
        return getattr(accelerator(name), name)(device_index)

    return _documented(function, "accelerator", name, doc)


def reset_of_memory(name: str, doc: str) -> Callable[..., None]:
    """A function that starts a count of the device's module again; it does nothing without one."""

    def function(device_index: Any = None) -> None:
        if registry.current_accelerator() is not None:
            getattr(accelerator(name), name)(device_index)

    return _documented(function, "accelerator", name, doc)

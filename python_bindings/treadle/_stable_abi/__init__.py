"""Extensions that were compiled for PyTorch, by its stable ABI: loaded as they are.

Such a file needs libtorch.so and others of PyTorch's libraries, of which it calls C functions only.
The folder `lib/stable_abi` of the package has libraries with those names and functions. They are
loaded when the first extension is, and are found by the system's loader because it takes a library
that is loaded already for one of the same name.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import ctypes
import functools
import glob
import os
import sys
import threading
from typing import Any, Callable, Dict, Iterator, List, Optional

from treadle import _C
from treadle._stable_abi._elf import Needs, needs_of

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib/stable_abi")
ABI = "libtorch_cpu.so"  # the library that has the functions; the others lead to it
_RUNTIME = "libcudart.so."  # CUDA's, of which there may be a real one

_lock = threading.RLock()
# Why a file could not be loaded: the system keeps it, and would not run its start again.
_refused: Dict[str, str] = {}
# The Python module that a namespace's operators are completed by, as their extension says.
module_of: Dict[str, str] = {}


def is_for_pytorch(needs: Needs) -> bool:
    """Whether a file needs a library of PyTorch's."""
    return any(name in _our_libraries() for name in needs.libraries)


@functools.lru_cache(maxsize=None)
def _our_libraries() -> List[str]:
    """The names of PyTorch's libraries that the folder has."""
    names = os.listdir(FOLDER) if os.path.isdir(FOLDER) else []
    return sorted(name for name in names if not name.startswith(_RUNTIME))


@functools.lru_cache(maxsize=None)
def _our_functions() -> Any:
    provides: set = set()
    for name in os.listdir(FOLDER):
        provides |= needs_of(os.path.join(FOLDER, name)).provides
    return frozenset(provides)


def _is_of_pytorch(symbol: str) -> bool:
    """Whether a function's name is one of PyTorch's: a C function, or one of its C++ namespaces."""
    return symbol.startswith(("aoti_", "torch_")) or any(
        symbol.startswith(prefix + name)
        for prefix in ("_ZN", "_ZNK", "_ZTIN", "_ZTVN", "_ZTSN")
        for name in ("3c10", "2at", "5torch", "5caffe2", "8caffe2")
    )


def why_not(path: str, needs: Optional[Needs] = None) -> str:
    """The functions that a file needs of PyTorch and that are not here, as a sentence; empty where
    there is none."""
    needs = needs or needs_of(path)
    missing = sorted(name for name in needs.functions - _our_functions() if _is_of_pytorch(name))
    if not missing:
        return ""
    from treadle.utils.operator_library import demangled

    inner = [name for name in missing if name.startswith("_Z")]
    if inner:
        return (
            "expected an extension that calls PyTorch by its stable ABI, got one that needs "
            f"{len(inner)} of its C++ functions, such as\n  {demangled(inner[0])}"
        )
    shown = ", ".join(missing[:6]) + (f" and {len(missing) - 6} more" if missing[6:] else "")
    return (
        f"expected functions of the stable ABI as PyTorch {_version()} has it, got {shown}; they "
        "are of a newer version, or are for programs that PyTorch compiles ahead of time"
    )


def _version() -> str:
    """The version of PyTorch whose ABI this is."""
    number = _abi().aoti_torch_abi_version()
    return f"{number >> 56}.{number >> 48 & 0xFF}"


@functools.lru_cache(maxsize=None)
def _abi() -> ctypes.CDLL:
    """The library of the ABI. ImportError where PyTorch's own is in the process."""
    with contextlib.suppress(OSError):
        ctypes.CDLL(ABI, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        raise ImportError(
            f"expected a process without PyTorch, got one that has loaded its {ABI}: an extension "
            "would find functions of both"
        )
    abi = ctypes.CDLL(os.path.join(FOLDER, ABI))
    for name in _our_libraries():
        ctypes.CDLL(os.path.join(FOLDER, name))
    functions = ctypes.c_void_p(_C._library_stable_abi_functions())
    abi.treadle_stable_abi_set_python(functions)
    abi.aoti_torch_abi_version.restype = ctypes.c_uint64
    abi.treadle_stable_abi_end_load.restype = ctypes.c_char_p
    return abi


@functools.lru_cache(maxsize=None)
def _load_runtime(name: str) -> None:
    """CUDA's runtime: the system's, that of a package of NVIDIA's, or the one in its place."""
    with contextlib.suppress(OSError):
        ctypes.CDLL(name)
        return
    packages = (os.path.join(folder, "nvidia", "*", "lib", name) for folder in sys.path)
    found = next((path for pattern in packages for path in glob.glob(pattern)), None)
    here = os.path.join(FOLDER, name)
    if found is not None or os.path.exists(here):
        ctypes.CDLL(found or here)


def _keys() -> bytes:
    from treadle._library.keys import ALL_KEYS, EVERYWHERE, read_key

    lines = []
    for key in {*ALL_KEYS, *(k for k in EVERYWHERE if k)}:
        with contextlib.suppress(RuntimeError):
            place = read_key(key)
            lines.append(f"{key} {place.kind} {place.device or '*'}")
    return "\n".join(lines).encode()


@contextlib.contextmanager
def registrations(path: str, needs: Needs) -> Iterator[None]:
    """Within it a file is loaded, and may register operators.

    ImportError where it needs what is not here; RuntimeError where an operator or a kernel is
    refused: then nothing of the file stays registered.
    """
    name = os.path.basename(path)
    with _lock:
        if path in _refused:
            raise RuntimeError(_refused[path])
        reason = why_not(path, needs)
        if reason:
            raise ImportError(f"{name}: {reason}", name=name, path=path)
        abi = _abi()
        for library in needs.libraries:
            if library.startswith(_RUNTIME):
                _load_runtime(library)
        abi.treadle_stable_abi_set_keys(_keys())
        abi.treadle_stable_abi_begin_load()
        try:
            yield
        finally:
            said = abi.treadle_stable_abi_end_load().decode("utf-8", "replace")
        if said.startswith("error "):
            _refused[path] = f"{name}: {said.removeprefix('error ')}"
            raise RuntimeError(_refused[path])
        _tell(said.splitlines())


def _tell(facts: List[str]) -> None:
    """Make known to treadle.ops what was registered."""
    from treadle import Tag
    from treadle._ops import ops, tags_of

    for fact in facts:
        kind, name, *more = fact.split()
        if kind == "module":
            module_of[name] = more[0]
            continue
        namespace, _, base = name.partition("::")
        if more:
            tags_of[name] = [getattr(Tag, tag) for tag in more]
        getattr(ops, namespace)._changed(base.partition(".")[0])


def load(path: str, needs: Needs) -> None:
    """Load an extension for as long as the program runs. OSError where the system cannot."""
    with registrations(path, needs):
        _C._library_load(path)


def watch_extension_modules() -> Callable[[], None]:
    """From here on modules that Python imports may be extensions, too. Gives the function that ends
    that."""
    from importlib.machinery import ExtensionFileLoader as Loader

    create = Loader.create_module

    def create_module(self: Any, spec: Any) -> Any:
        needs = needs_of(spec.origin)
        if not is_for_pytorch(needs):
            return create(self, spec)
        with registrations(spec.origin, needs):
            return create(self, spec)

    Loader.create_module = create_module  # type: ignore[method-assign]
    return lambda: setattr(Loader, "create_module", create)

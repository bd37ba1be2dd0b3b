"""The kernel that is checked: where it is, and how it is called.

    load("kernels.py:relu", op)         a Python function
    load("libmine.so", op)              a library that registers the operator's kernel, or a plug-in
    load("libmine.so:my_ops::relu", op) an operator that a library defines, for PyTorch or Treadle
    load("kernels.cc:relu", op)         C++ code, which is compiled (treadle.utils.cpp_extension)
    load("tvm_ffi:libmine.so:relu", op) a function of the tvm-ffi interface
    load("", op)                        the operator itself

A function has the operator's arguments and returns its results. One with a parameter `out` writes
to it: a contiguous tensor for each result, a list of them where there are several.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import treadle

from ..catalogue import Operator


@dataclass(frozen=True)
class Kernel:
    """The function under test."""

    name: str
    function: Callable[..., Any]
    writes_out: bool = False  # the results are tensors that it is given
    is_operator: bool = False  # it is the operator itself, so that that is no reference for it
    device: str = "cpu"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def _file_module(path: Path) -> Any:
    name = f"_checked_{re.sub(r'[^A-Za-z0-9_]', '_', path.stem)}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"check-kernel: expected a Python file, got {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _function(owner: Any, name: str, where: str) -> Callable[..., Any]:
    found = owner
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise ValueError(f"check-kernel: expected a function {name} in {where}, got {found!r}")
    return found


def _of_function(function: Callable[..., Any], name: str) -> Kernel:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        parameters = {}  # type: ignore[assignment]
    return Kernel(name, function, writes_out="out" in parameters)


def _load_library(path: str) -> str:
    """Loads a library; the device of a plug-in, else the CPU."""
    contents = Path(path).read_bytes()
    if b"treadle_plugin_entry" in contents:
        devices = treadle.load_backend(path)
        return devices[0] if devices else "cpu"
    treadle.ops.load_library(path)
    return "cpu"


def operator_function(op: Operator) -> Callable[..., Any]:
    """The functional form of an operator, as programs call it."""
    return op.function


def _split(spec: str) -> tuple[str, str]:
    """A file or a module, and the name in it: "libmine.so:my_ops::relu", "kernels.py:relu"."""
    if spec.endswith((".so", ".cc", ".cpp")):
        return spec, ""
    if found := re.match(r"(.*\.(?:so|cc|cpp|py)):(.*)", spec):
        return found[1], found[2]
    path, _, name = spec.rpartition(":")
    return path, name


def _compiled(path: Path, name: str) -> Any:
    """The module of C++ code; a file that makes none becomes one with the function `name`."""
    from treadle.utils import cpp_extension

    stem = re.sub(r"\W", "_", path.stem)
    text = path.read_text()
    if not name or re.search(r"\b(TREADLE|PYBIND11)_MODULE\b", text):
        return cpp_extension.load(stem, [str(path)], is_python_module=bool(name))
    return cpp_extension.load_inline(
        stem, text, functions=name, extra_include_paths=[str(path.parent.resolve())]
    )


def load(spec: str, op: Operator) -> Kernel:
    """The kernel of a specification, as above.

    ValueError for a specification that names none; what importing, compiling or loading raises.
    """
    if not spec:
        return Kernel(op.id, operator_function(op), is_operator=True)
    if spec.startswith("tvm_ffi:"):
        from treadle.utils import tvm_ffi

        path, _, symbol = spec.removeprefix("tvm_ffi:").rpartition(":")
        return Kernel(spec, tvm_ffi.load_kernel(path, symbol), writes_out=True)
    path, name = _split(spec)
    suffix = Path(path).suffix
    if suffix == ".so":
        device = _load_library(path)
        if not name:
            return Kernel(op.id, operator_function(op), is_operator=True, device=device)
        return _of_function(_function(treadle.ops, name.replace("::", "."), path), spec)
    if suffix in (".cc", ".cpp"):
        module = _compiled(Path(path), name)
        if not name:
            return Kernel(op.id, operator_function(op), is_operator=True)
        return _of_function(_function(module, name, path), spec)
    if suffix == ".py":
        return _of_function(_function(_file_module(Path(path)), name, path), spec)
    if path and name:
        return _of_function(_function(importlib.import_module(path), name, path), spec)
    raise ValueError(
        f"check-kernel: expected a kernel as FILE.py:NAME, MODULE:NAME, FILE.so, FILE.cc:NAME or "
        f"tvm_ffi:FILE.so:NAME, got {spec!r}"
    )

"""Functions of tvm-ffi (https://github.com/apache/tvm-ffi): those of libraries as kernels, and
Treadle's operators as functions for others.

    relu = load_kernel("libmine.so", "relu_cpu")    # the symbol __tvm_ffi_relu_cpu
    relu(x, out=y)

    treadle.library.impl_tvm_ffi("my_ns::relu", "libmine.so:relu_cpu", device="CPU")

    function("relu")                                # a tvm_ffi.Function

A library can be called without the package apache-tvm-ffi unless it is linked with libtvm_ffi, as
those are that raise errors. function() needs the package.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ctypes
import importlib.util
import os
from pathlib import Path
from typing import Any, Callable, Optional, Tuple

from treadle import _C

__all__ = ["function", "load_kernel", "split_kernel"]

PREFIX = "tvm_ffi:"
_PACKAGE = "the package apache-tvm-ffi (pip install apache-tvm-ffi)"


def split_kernel(text: str) -> Tuple[str, str]:
    """The file and the function of "libmine.so:relu_cpu", with or without "tvm_ffi:" before it.
    ValueError for another text."""
    path, _, name = text.removeprefix(PREFIX).rpartition(":")
    if not path or not name.isidentifier():
        raise ValueError(
            f"tvm_ffi: expected a library and its function, as libmine.so:relu_cpu, got '{text}'"
        )
    return path, name


def load_kernel(path: Any, name: str) -> Callable[..., Any]:
    """The function `name` of a library, the symbol __tvm_ffi_NAME.

    Called with tensors on the CPU, numbers, texts, dtypes, devices, None and lists of these; `out`,
    a tensor or a list of tensors, comes after the others. A list is an Array of tvm-ffi, which the
    function may also take as a Shape; the library must be linked with libtvm_ffi, which makes it.
    Returns what the function returns: None, a number or a tensor. The
    library stays loaded. The function's error is raised with its text.

    RuntimeError for a file that cannot be loaded, with what is missing; ValueError for a library
    without the function.
    """
    file = os.fspath(path)
    try:
        return _C._tvm_ffi_function(file, name)
    except RuntimeError as error:
        if "libtvm_ffi" not in str(error) and "TVMFFI" not in str(error):
            raise
        runtime = _runtime()
        if runtime is None:
            raise RuntimeError(f"{error}\nit needs libtvm_ffi, of {_PACKAGE}") from None
        ctypes.CDLL(str(runtime), mode=ctypes.RTLD_GLOBAL)
        return _C._tvm_ffi_function(file, name)


def _runtime() -> Optional[Path]:
    """libtvm_ffi of the installed package."""
    spec = importlib.util.find_spec("tvm_ffi")
    if spec is None or not spec.submodule_search_locations:
        return None
    library = Path(next(iter(spec.submodule_search_locations)), "lib", "libtvm_ffi.so")
    return library if library.exists() else None


def function(operator: Any) -> Any:
    """An operator as a tvm_ffi.Function, which programs of other frameworks and languages call:
    "relu", "add.Tensor", "my_ns::scale", or an object of treadle.ops. It takes tensors of any
    library that knows DLPack 1.3, numbers and None, and returns tensors.

    ImportError without the package apache-tvm-ffi; ValueError for what is no operator.
    """
    from treadle._ops import find_overload, packet_named

    try:
        import tvm_ffi  # type: ignore[import-not-found]
    except ImportError:
        raise ImportError(f"tvm_ffi.function: expected {_PACKAGE}, got none") from None
    name = find_overload(operator)
    if name is None:
        raise ValueError(
            f"tvm_ffi.function: expected the name of an operator, got {type(operator).__name__}"
        )
    full = name if "::" in name else f"aten::{name}"
    packet, _, overload = full.partition(".")
    try:
        called = packet_named(packet)
        called = getattr(called, overload) if overload else called
    except AttributeError:
        raise ValueError(f"tvm_ffi.function: expected an operator, got '{name}'") from None

    def call(*arguments: Any) -> Any:
        return called(*arguments)

    return tvm_ffi.convert_func(call, tensor_cls=_C.Tensor)

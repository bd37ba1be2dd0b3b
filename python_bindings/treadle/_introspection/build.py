"""Questions of programs about the build: torch.has_mkl and the like."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
import importlib
import os
import warnings
from typing import Any, Callable

from treadle import _names

# The libraries that operators are made with.
has_lapack = True
has_mkl = False
has_openmp = True
has_spectral = True
# How PyTorch loads its own libraries; there is nothing of the kind here.
USE_GLOBAL_DEPS = False
USE_RTLD_GLOBAL_WITH_LIBTORCH = False
PRIVATE_OPS = ("unique_dim",)
# Deprecated names, and the functions of `backends` that answer now.
_ASKED_OF_BACKENDS = {
    "has_cuda": ("cuda", "is_built"),
    "has_cudnn": ("cudnn", "is_available"),
    "has_mkldnn": ("mkldnn", "is_available"),
    "has_mps": ("mps", "is_built"),
}


def __getattr__(name: str) -> bool:
    if name not in _ASKED_OF_BACKENDS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    backend, function = _ASKED_OF_BACKENDS[name]
    instead = f"{_names.spoken()}.backends.{backend}.{function}()"
    warnings.warn(f"{name} is deprecated; ask {instead}", stacklevel=3)
    return getattr(importlib.import_module(f"treadle.backends.{backend}"), function)()


class AggregationType(enum.Enum):
    """How futures of values are put together."""

    __module__ = "treadle"  # what pickles name

    SUM = 0
    AVG = 1


SUM, AVG = AggregationType.SUM, AggregationType.AVG


class qscheme:  # noqa: N801
    """How integers stand for the numbers of a quantized tensor: a name for it."""

    __module__ = "treadle"  # what pickles name

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"{_names.spoken()}.{self._name}"

    def __reduce__(self) -> str:
        # There is one of each name: a copy, and what a pickle gives, is that one.
        return self._name


per_tensor_affine = qscheme("per_tensor_affine")
per_channel_affine = qscheme("per_channel_affine")
per_tensor_symmetric = qscheme("per_tensor_symmetric")
per_channel_symmetric = qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")


class AcceleratorError(RuntimeError):
    """An error of a device."""


class FatalError(Exception):
    """An error after which a program cannot go on."""


class classproperty:  # noqa: N801
    """A property of a class: `@classproperty` over a method of the class."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self._function(type(instance) if owner is None else owner)


def compiled_with_cxx11_abi() -> bool:
    """Whether C++ strings have the newer layout: they have."""
    return True


def is_vulkan_available() -> bool:
    """Whether tensors can be made on a Vulkan device: none can."""
    return False


def get_file_path(*path_components: str) -> str:
    """A path from the folder that the package is in."""
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return os.path.join(here, *path_components)


def prepare_multiprocessing_environment(path: str) -> None:
    """Does nothing: processes find the libraries by themselves."""


def init_num_threads() -> None:
    """Does nothing: threads are there when they are needed."""

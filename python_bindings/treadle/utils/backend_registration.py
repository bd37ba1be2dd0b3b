"""Calls of programs for PyTorch that name a device from outside and give tensors its methods.
Here a backend has its own name, and the methods are there once it is loaded.

    treadle.load_backend("libmine.so")
    treadle.utils.rename_privateuse1_backend("mine")          # checks that it is there
    treadle.utils.generate_methods_for_privateuse1_backend()  # nothing is left to be done
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle import _C


def rename_privateuse1_backend(backend_name: str) -> None:
    """Check that there is a backend for devices of this name. RuntimeError where there is none: a
    name alone makes no device."""
    if backend_name not in _C._backends():
        raise RuntimeError(
            f"rename_privateuse1_backend: expected a device with a backend, got '{backend_name}', "
            "for which none is loaded; see treadle.load_backend"
        )


def generate_methods_for_privateuse1_backend(
    for_tensor: bool = True,
    for_module: bool = True,
    for_packed_sequence: bool = True,
    for_storage: bool = False,
    unsupported_dtype: Any = None,
) -> None:
    """Nothing: every device from outside has its methods. NotImplementedError for those of
    storages, which have none."""
    if for_storage:
        raise NotImplementedError(
            "generate_methods_for_privateuse1_backend: expected for_storage=False, got True"
        )

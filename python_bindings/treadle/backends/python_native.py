"""Kernels that PyTorch takes from compilers for Python: which there are, and which are off.

    python_native.available_dsls                # []
    with python_native.operations_disabled("bmm"):
        ...

The kernels of this library are in C++, so none of these is available, and no operator has a kernel
of one. The switches keep what they are told; there is nothing that they would turn off.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from typing import Dict, Iterator, List, Optional, Set

all_dsls: List[str] = ["cutedsl", "flydsl", "helion", "triton"]
available_dsls: List[str] = []

_off: Dict[str, Set[str]] = {"dsls": set(), "operations": set(), "keys": set()}


class DSLController:
    """The switch of one of the compilers."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def available(self) -> bool:
        """Whether its kernels can be used: they cannot."""
        return False

    @property
    def version(self) -> Optional[str]:
        """Its version; None, as it is not used."""
        return None

    @property
    def enabled(self) -> bool:
        """Whether it is not switched off."""
        return self.name not in _off["dsls"]

    @enabled.setter
    def enabled(self, value: bool) -> None:
        self.enable() if value else self.disable()

    def enable(self) -> None:
        """Switch it on."""
        _off["dsls"].discard(self.name)

    def disable(self) -> None:
        """Switch it off."""
        _off["dsls"].add(self.name)

    @contextlib.contextmanager
    def disabled(self) -> Iterator[None]:
        """A block in which it is off."""
        with _switched("dsls", (self.name,)):
            yield

    def __repr__(self) -> str:
        state = "enabled" if self.enabled else "disabled"
        return f"DSLController({self.name}, unavailable, {state})"


cutedsl, flydsl, helion, triton = map(DSLController, all_dsls)


@contextlib.contextmanager
def _switched(kind: str, names: tuple) -> Iterator[None]:
    before = set(_off[kind])
    _off[kind].update(names)
    try:
        yield
    finally:
        _off[kind] = before


def _checked(function: str, names: tuple) -> tuple:
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{function}: expected names, got {type(name).__name__}")
    return names


def get_dsl_operations(dsl_name: str, lib_symbol: str = "aten") -> List[str]:
    """The operators of a namespace for which a compiler has kernels: none."""
    _checked("get_dsl_operations", (dsl_name, lib_symbol))
    return []


def is_dsl_disabled(dsl_name: str) -> bool:
    """Whether a compiler is switched off."""
    return dsl_name in _off["dsls"]


def is_operation_disabled(op_symbol: str) -> bool:
    """Whether an operator's kernels of this kind are switched off."""
    return op_symbol in _off["operations"]


def disable_operations(*op_symbols: str) -> None:
    """Switch off the kernels of this kind of some operators. TypeError for what is no name."""
    _off["operations"].update(_checked("disable_operations", op_symbols))


def enable_operations(*op_symbols: str) -> None:
    """Switch them on again."""
    _off["operations"].difference_update(_checked("enable_operations", op_symbols))


@contextlib.contextmanager
def operations_disabled(*op_symbols: str) -> Iterator[None]:
    """A block in which the kernels of this kind of some operators are off."""
    with _switched("operations", _checked("operations_disabled", op_symbols)):
        yield


def disable_dispatch_keys(*dispatch_keys: str) -> None:
    """Switch off the kernels of this kind for some dispatch keys, "CUDA" say."""
    _off["keys"].update(_checked("disable_dispatch_keys", dispatch_keys))


def enable_dispatch_keys(*dispatch_keys: str) -> None:
    """Switch them on again."""
    _off["keys"].difference_update(_checked("enable_dispatch_keys", dispatch_keys))

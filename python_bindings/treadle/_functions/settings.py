"""Switches that programs set: accepted, remembered and told when asked for.

On the CPU, what they choose among has one choice, the strictest: matrix products are computed in
the precision of their dtype. On every device an operator gives the same bits each time, at any
number of threads.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import warnings
from typing import Optional, Union

from treadle import _C

_PRECISIONS = ("highest", "high", "medium")
_MODES = ("default", "warn", "error")

_matmul_precision = "highest"
_deterministic_mode = 0  # an index of _MODES
_warns_only = False
_fills_new_memory = True
_warn_always = False
_interop_threads = 0  # 0: never set


def get_float32_matmul_precision() -> str:
    """The last word given to set_float32_matmul_precision(): highest, high or medium."""
    return _matmul_precision


def set_float32_matmul_precision(precision: str) -> None:
    """How exact products of float32 matrices need be: with "high" and "medium" CUDA devices may
    round the factors to TF32; the CPU's always have the highest precision. Warns of another word
    than highest, high and medium, which changes nothing."""
    global _matmul_precision
    if precision not in _PRECISIONS:
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current "
            "set_float32_matmul_precision call has no effect.",
            stacklevel=2,
        )
        return
    _matmul_precision = precision
    _C._set_math_switch("matmul_tf32", precision != "highest")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for operators that give the same bits each time, as all here do, and for new memory
    that holds the same values each time: see `treadle.utils.deterministic`."""
    if not isinstance(mode, bool):
        raise TypeError(
            f"use_deterministic_algorithms: expected mode to be a bool, got {type(mode).__name__}"
        )
    if not isinstance(warn_only, bool):
        raise TypeError(
            "use_deterministic_algorithms: expected warn_only to be a bool, got "
            + type(warn_only).__name__
        )
    global _warns_only
    set_deterministic_debug_mode(("warn" if warn_only else "error") if mode else "default")
    _warns_only = bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether use_deterministic_algorithms() asked for them."""
    return _deterministic_mode != 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether it asked for a warning in place of an error, also where it was turned off."""
    return _warns_only


def set_deterministic_debug_mode(debug_mode: Union[int, str]) -> None:
    """The same as a number or a word: 0 "default", 1 "warn", 2 "error"."""
    global _deterministic_mode, _warns_only
    if isinstance(debug_mode, bool) or not isinstance(debug_mode, (int, str)):
        kind = type(debug_mode).__name__
        raise TypeError(
            f"set_deterministic_debug_mode: expected debug_mode to be str or int, got {kind}"
        )
    mode = _MODES.index(debug_mode) if debug_mode in _MODES else debug_mode
    if mode not in (0, 1, 2):
        raise RuntimeError(
            "set_deterministic_debug_mode: expected debug_mode to be 0, 1 or 2, or one of "
            f"'default', 'warn', 'error', got {debug_mode!r}"
        )
    _deterministic_mode = int(mode)
    _warns_only = mode == 1
    fill_new_memory_where_asked()


def fill_new_memory_where_asked(wanted: Optional[bool] = None) -> None:
    """Have `empty` and its kin fill what they make while deterministic algorithms are asked for;
    `wanted` False keeps them from it from now on."""
    global _fills_new_memory
    if wanted is not None:
        _fills_new_memory = wanted
    _C._set_math_switch("fills_new_memory", _deterministic_mode != 0 and _fills_new_memory)


def fills_new_memory() -> bool:
    """The value that fill_new_memory_where_asked() was last given."""
    return _fills_new_memory


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2; see set_deterministic_debug_mode()."""
    return _deterministic_mode


def set_warn_always(b: bool) -> None:
    """Whether each warning is given every time."""
    global _warn_always
    _warn_always = bool(b)


def is_warn_always_enabled() -> bool:
    """Whether set_warn_always() asked for it."""
    return _warn_always


def set_flush_denormal(mode: bool) -> bool:
    """Whether denormal numbers become zero. False: the processor's setting is not touched."""
    return False


def set_num_interop_threads(num: int) -> None:
    """How many threads run operators beside each other. Here one does, the caller's; the number is
    told when asked for. RuntimeError the second time."""
    global _interop_threads
    if num <= 0:
        raise RuntimeError(f"set_num_interop_threads: expected a number >= 1, got {num}")
    if _interop_threads:
        raise RuntimeError("set_num_interop_threads: expected one call, got a second")
    _interop_threads = num


def get_num_interop_threads() -> int:
    """The number given to set_num_interop_threads(); by default the number of processors."""
    return _interop_threads or os.cpu_count() or 1


__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_warn_always_enabled",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_num_interop_threads",
    "set_warn_always",
    "use_deterministic_algorithms",
]

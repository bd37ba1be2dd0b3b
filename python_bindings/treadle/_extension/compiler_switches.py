"""Switches of the compiler of TorchScript. Programs set them before they run, and some put back
what they found. There is no such compiler here: each keeps what it was given.

    before = treadle._C._jit_set_profiling_executor(False)      # True
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Callable, Dict

_on: Dict[str, bool] = {
    "profiling_executor": True,
    "profiling_mode": True,
    "fuse_on_cpu": False,
    "fuse_on_gpu": False,
    "texpr_fuser": False,
}


def _exchange(switch: str) -> Callable[[bool], bool]:
    def function(value: bool) -> bool:
        """Set a switch; what it was."""
        before, _on[switch] = _on[switch], bool(value)
        return before

    return function


def _setter(switch: str) -> Callable[[bool], None]:
    def function(value: bool) -> None:
        """Set a switch."""
        _on[switch] = bool(value)

    return function


def _getter(switch: str) -> Callable[[], bool]:
    def function() -> bool:
        """Whether a switch is on."""
        return _on[switch]

    return function


_jit_set_profiling_executor = _exchange("profiling_executor")
_jit_set_profiling_mode = _exchange("profiling_mode")
_jit_override_can_fuse_on_cpu = _setter("fuse_on_cpu")
_jit_override_can_fuse_on_gpu = _setter("fuse_on_gpu")
_jit_set_texpr_fuser_enabled = _setter("texpr_fuser")
_jit_can_fuse_on_cpu = _getter("fuse_on_cpu")
_jit_can_fuse_on_gpu = _getter("fuse_on_gpu")
_jit_texpr_fuser_enabled = _getter("texpr_fuser")

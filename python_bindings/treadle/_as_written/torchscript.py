"""Settings and switches of the compiler of TorchScript. Programs set them before they run, and some
put back what they found. There is no such compiler here: each keeps what it was given.

    treadle.jit.enable_onednn_fusion(True)
    before = treadle._C._jit_set_profiling_executor(False)      # True
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Tuple

_onednn_fusion = False
_strategy: List[Tuple[str, int]] = [("STATIC", 2), ("DYNAMIC", 10)]


def enable_onednn_fusion(enabled: bool) -> None:
    """Ask for operators that are fused by oneDNN."""
    global _onednn_fusion
    _onednn_fusion = bool(enabled)


def onednn_fusion_enabled() -> bool:
    """Whether enable_onednn_fusion() asked for it."""
    return _onednn_fusion


def set_fusion_strategy(strategy: List[Tuple[str, int]]) -> List[Tuple[str, int]]:
    """Choose how often fused operators are made anew; returns what was chosen before."""
    global _strategy
    before, _strategy = _strategy, strategy
    return before


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block with or without optimization of compiled programs."""
    yield


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """A block with one of the fusers: "fuser0" to "fuser3"."""
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3"):
        raise Exception(f"unrecognized fuser option (name: {name})")  # the type that PyTorch raises
    yield


class strict_fusion:  # noqa: N801
    """A block whose operators must fuse, as a compiler would check."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        pass


# ---- switches of torch._C ----

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

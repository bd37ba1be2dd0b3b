"""The settings of TorchScript's compiler: accepted, as there is none."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from typing import Any, Iterator, List, Tuple

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

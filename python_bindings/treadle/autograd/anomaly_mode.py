"""Finding where a failing backward comes from: nodes remember the Python stack they were made at.

Example:

    with treadle.autograd.detect_anomaly():
        loss = model(x).log().sum()     # NaN somewhere
        loss.backward()                 # RuntimeError, after a warning that shows the forward call
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import traceback
import warnings
from typing import Any, Optional

from treadle import _C


class set_detect_anomaly:
    """Switches anomaly mode at once; as a context manager it puts back what was before.

    With `check_nan` a backward that computes NaN is a RuntimeError. Every node pays for the stack
    that it keeps: for finding faults only.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = _C._set_anomaly_mode(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        _C._set_anomaly_mode(*self._before)


class detect_anomaly:
    """Anomaly mode for a block, with a warning that it is on."""

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan
        warnings.warn(
            "detect_anomaly: anomaly mode makes forward and backward slower; "
            "use it for finding faults only",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self._before = _C._set_anomaly_mode(True, self._check_nan)

    def __exit__(self, *exc: Any) -> None:
        _C._set_anomaly_mode(*self._before)


def _origin(parent: Optional[_C.Node]) -> dict:
    """The notes of a node that is being made: the stack, and in whose backward it is made."""
    notes: dict = {"traceback_": traceback.format_stack()[:-1]}
    if parent is not None:
        notes["parent_"] = parent
    return notes


def _warn_of(node: _C.Node) -> None:
    """Say where the node was made whose backward failed."""
    stack = node.metadata.get("traceback_")
    if stack is None:
        warnings.warn(
            f"Error detected in {node.name()}. No forward pass information available: switch "
            "anomaly mode on during the forward pass too",
            stacklevel=2,
        )
        return
    text = (
        f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n"
        + "".join(stack)
    )
    parent = node.metadata.get("parent_")
    while parent is not None:
        stack = parent.metadata.get("traceback_")
        text += f"\n\nPrevious calculation was induced by {parent.name()}."
        if stack is not None:
            text += f" Traceback of forward call that induced it:\n{''.join(stack)}"
        parent = parent.metadata.get("parent_")
    warnings.warn(text, stacklevel=2)


set_anomaly_enabled = set_detect_anomaly  # the name in the package itself

__all__ = ["detect_anomaly", "set_detect_anomaly"]

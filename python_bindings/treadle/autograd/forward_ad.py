"""Forward mode: tensors that carry a derivative along a direction.

    with dual_level():
        x = make_dual(point, direction)
        y = f(x)
        primal, tangent = unpack_dual(y)        # f(point) and J(point) direction

The tangent is computed when it is asked for, by differentiating backward twice
(treadle.autograd._derivatives), so that what comes between must be recorded: not in no_grad().
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import threading
from typing import Any, List, NamedTuple, Optional, Tuple

from treadle import _C
from treadle.autograd._derivatives import Pushforward, set_apart
from treadle.autograd.grad_mode import _Mode, enable_grad

Tensor = _C.Tensor


class UnpackedDualTensor(NamedTuple):
    """The values of a tensor, and its derivative or None."""

    primal: Tensor
    tangent: Optional[Tensor]


class _State(threading.local):
    """The dual tensors of the level that is open on this thread; None outside of one."""

    def __init__(self) -> None:
        self.duals: Optional[List[Tuple[Tensor, Tensor]]] = None


_state = _State()


def enter_dual_level() -> int:
    """Open a level; RuntimeError inside another."""
    if _state.duals is not None:
        raise RuntimeError("dual_level: expected no level to be open: they do not nest")
    _state.duals = []
    return 0


def exit_dual_level(*, level: Optional[int] = None) -> None:
    """Close the level; its tensors lose their tangents. RuntimeError outside of one."""
    if _state.duals is None:
        raise RuntimeError("exit_dual_level: expected a level to be open, got none")
    _check_level("exit_dual_level", level)
    _state.duals = None


def _check_level(name: str, level: Optional[int]) -> None:
    if level not in (None, 0):
        raise ValueError(f"{name}: expected level 0, the only one, or None, got {level}")


class dual_level(_Mode):
    """A block in which tensors have tangents."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: Any) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: Optional[int] = None) -> Tensor:
    """A tensor over the elements of `tensor` with a derivative, which must have its shape and
    dtype."""
    if _state.duals is None:
        raise RuntimeError("make_dual: expected to be called inside dual_level()")
    _check_level("make_dual", level)
    for name, value in (("tensor", tensor), ("tangent", tangent)):
        if not (value.dtype.is_floating_point or value.dtype.is_complex):
            raise ValueError(
                f"make_dual: expected {name} of floating or complex dtype, got {value.dtype}"
            )
    if tensor.shape != tangent.shape or tensor.dtype != tangent.dtype:
        raise RuntimeError(
            f"make_dual: expected a tangent of shape {tuple(tensor.shape)} and {tensor.dtype}, got "
            f"{tuple(tangent.shape)} and {tangent.dtype}"
        )
    with enable_grad():
        (dual,) = set_apart((tensor,), connected=True)
    _state.duals.append((dual, tangent))
    return dual


def unpack_dual(tensor: Tensor, *, level: Optional[int] = None) -> UnpackedDualTensor:
    """The values, and the derivative along the tangents of the level's tensors; None for what does
    not depend on them, and outside of a level."""
    _check_level("unpack_dual", level)
    duals = _state.duals or []
    for dual, tangent in duals:
        if tensor is dual:
            return UnpackedDualTensor(tensor.detach(), tangent)
    if not tensor.requires_grad or not duals:
        return UnpackedDualTensor(tensor, None)
    inputs, tangents = zip(*duals)
    (found,) = Pushforward((tensor,), inputs).along(tangents)
    return UnpackedDualTensor(tensor.detach(), found)


__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

"""Shapes, order and places of elements: reshape to unstack, and take."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import builtins
from typing import List, Optional, Tuple, Union

from treadle import _C
from treadle._C import Tensor
from treadle._functions.variadic import broadcast_shapes as _broadcast_shapes

__all__ = [
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip",
    "moveaxis", "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "take",
    "take_along_axis", "tile", "unstack",
]  # fmt: skip

Axes = Union[int, Tuple[int, ...]]


def _tuple(axis: Axes) -> Tuple[int, ...]:
    return (axis,) if isinstance(axis, int) else tuple(axis)


def broadcast_arrays(*arrays: Tensor) -> Tuple[Tensor, ...]:
    """The arrays, each in the shape to which all broadcast."""
    return tuple(_C.broadcast_tensors(list(arrays))) if arrays else ()


def broadcast_shapes(*shapes: Tuple[int, ...]) -> Tuple[int, ...]:
    """The shape to which all broadcast."""
    try:
        return tuple(_broadcast_shapes(*shapes)) if shapes else ()
    except RuntimeError as error:
        raise ValueError(
            f"broadcast_shapes: expected shapes that broadcast, got {shapes}"
        ) from error


def broadcast_to(x: Tensor, /, shape: Tuple[int, ...]) -> Tensor:
    """`x` repeated, without a copy, to a larger shape."""
    if builtins.any(size < 0 for size in shape):
        raise ValueError(f"broadcast_to: expected sizes >= 0, got shape = {tuple(shape)}")
    return _C.broadcast_to(x, shape)


def concat(
    arrays: Union[Tuple[Tensor, ...], List[Tensor]], /, *, axis: Optional[int] = 0
) -> Tensor:
    """The arrays one after the other along `axis`; None: the elements of all."""
    arrays = list(arrays)
    if axis is None:
        arrays, axis = [_C.flatten(a) for a in arrays], 0
    return _C.cat(arrays, axis)


def expand_dims(x: Tensor, /, axis: Axes = 0) -> Tensor:
    """`x` with new dimensions of size 1, at these places of the result.

    The standard first had `axis` as a keyword with a default, then as an argument without one; this
    takes both.
    """
    axes = _tuple(axis)
    rank = x.ndim + len(axes)
    for a in axes:
        if not -rank <= a < rank:
            raise IndexError(
                f"expand_dims: expected axis in [{-rank}, {rank - 1}], got axis = {axis}"
            )
    if len({a % rank for a in axes}) < len(axes):
        raise ValueError(f"expand_dims: expected different axes, got axis = {axis}")
    for a in sorted(a % rank for a in axes):
        x = _C.unsqueeze(x, a)
    return x


def flip(x: Tensor, /, *, axis: Optional[Axes] = None) -> Tensor:
    """The opposite order along `axis`; None: along all."""
    return _C.flip(x, tuple(range(x.ndim)) if axis is None else _tuple(axis))


def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Tensor:
    """`x` with dimensions moved to other places."""
    return _C.moveaxis(x, _tuple(source), _tuple(destination))


def permute_dims(x: Tensor, /, axes: Tuple[int, ...]) -> Tensor:
    """`x` with its dimensions in another order."""
    return _C.permute(x, axes)


def repeat(x: Tensor, repeats: Union[int, Tensor], /, *, axis: Optional[int] = None) -> Tensor:
    """Each element, or slice along `axis`, as many times as `repeats` says."""
    if isinstance(repeats, Tensor):
        if repeats.ndim > 1:
            raise ValueError(f"repeat: expected repeats of at most 1 dimension, got {repeats.ndim}")
        repeats = repeats.to(_C.int64)
    if axis is None:
        x, axis = _C.flatten(x), 0
    return _C.repeat_interleave(x, repeats, axis)


def reshape(
    x: Tensor, /, shape: Tuple[int, ...], *, copy: Optional[builtins.bool] = None
) -> Tensor:
    """The elements in another shape; a view where possible unless `copy` says."""
    if copy:
        return _C.reshape(x.clone(), shape)
    if copy is None:
        return _C.reshape(x, shape)
    try:
        return x.view(shape)
    except RuntimeError as error:
        raise ValueError(f"reshape: expected a shape that needs no copy, got {shape}") from error


def roll(x: Tensor, /, shift: Axes, *, axis: Optional[Axes] = None) -> Tensor:
    """Elements moved along `axis`, those that fall off coming in again; None: all in one row."""
    shifts = _tuple(shift)
    if axis is None:
        return _C.roll(x, shifts)
    axes = _tuple(axis)
    return _C.roll(x, shifts * len(axes) if isinstance(shift, int) else shifts, axes)


def squeeze(x: Tensor, /, axis: Axes) -> Tensor:
    """`x` without dimensions of size 1."""
    axes = _tuple(axis)
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(
                f"squeeze: expected size 1 along dimension {a}, got shape {tuple(x.shape)}"
            )
    return _C.squeeze(x, axes)


def stack(arrays: Union[Tuple[Tensor, ...], List[Tensor]], /, *, axis: int = 0) -> Tensor:
    """The arrays along a new dimension."""
    return _C.stack(list(arrays), axis)


def _from_the_end(indices: Tensor, size: int) -> Tensor:
    """Indices as int64, negative ones counted from the end."""
    indices = indices.to(_C.int64)
    return _C.where(indices < 0, indices + size, indices)


def take(x: Tensor, indices: Tensor, /, *, axis: Optional[int] = None) -> Tensor:
    """The slices of `x` along `axis` that `indices` names."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: expected an axis for {x.ndim} dimensions, got axis = None")
        axis = 0
    return _C.index_select(x, axis, _from_the_end(indices, x.shape[axis]))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """For each place of `indices`, the element of `x` along `axis` that it names."""
    return _C.take_along_dim(x, _from_the_end(indices, x.shape[axis]), axis)


def tile(x: Tensor, repetitions: Tuple[int, ...], /) -> Tensor:
    """`x` repeated as a whole along each dimension."""
    return _C.tile(x, repetitions)


def unstack(x: Tensor, /, *, axis: int = 0) -> Tuple[Tensor, ...]:
    """The slices of `x` along `axis`."""
    if x.ndim == 0:
        raise ValueError("unstack: expected at least 1 dimension, got a 0-dim array")
    return tuple(_C.unbind(x, axis))

"""Whether a call wrote what it may not write: arguments' memory and geometry before and after."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ctypes
from typing import Any, Optional

import numpy as np

from .recipe import Built, Piece, Recipe, TensorNode, written

# Statistics that normalisations update in training, which ATen's schemas do not mark.
RUNNING = "running_"
# Larger memory is not looked at.
MOST_BYTES = 1 << 20


def geometry(tensor: Any) -> Any:
    return (
        tuple(tensor.shape),
        tensor.stride(),
        tensor.storage_offset(),
        tensor.dtype,
        tensor.requires_grad,
    )


def contents(base: Any) -> Optional[bytes]:
    size = base.numel() * base.element_size()
    if base.is_meta or size > MOST_BYTES:
        return None
    return ctypes.string_at(base.data_ptr(), size) if size else b""


class Snapshot:
    """The arguments of a call as they were before it."""

    def __init__(self, recipe: Recipe, built: Built):
        self.pieces = built.pieces
        self.before = [(geometry(p.tensor), contents(p.base)) for p in built.pieces]
        self.written = {i for i, piece in enumerate(built.pieces) if _may_be_written(recipe, piece)}

    def broken(self, failed: bool) -> Optional[str]:
        """The change of memory that a call that `failed` (or did not) may not change."""
        shared = set() if failed else {id(self.pieces[i].base) for i in self.written}
        for i, piece in enumerate(self.pieces):
            shape, memory = self.before[i]
            if id(piece.base) in shared:
                if i in self.written and (place := self._beside(i)):
                    return f"argument {piece.argument}: {place}"
                continue
            now = geometry(piece.tensor)
            if now != shape:
                return f"argument {piece.argument} changed from {_text(shape)} to {_text(now)}"
            if memory is not None and contents(piece.base) != memory:
                return f"argument {piece.argument} was written"
        return None

    def _beside(self, i: int) -> Optional[str]:
        """Whether memory between and around the elements of a tensor was written with them."""
        piece, (shape, memory) = self.pieces[i], self.before[i]
        node = piece.node
        sharing = [p for p in self.pieces if p.base is piece.base]
        if not isinstance(node, TensorNode) or memory is None or len(sharing) > 1:
            return None
        layout = node.effective_layout()
        if layout not in ("offset", "stepped") or geometry(piece.tensor)[:3] != shape[:3]:
            return None
        after = contents(piece.base)
        if after is None or len(after) != len(memory):
            return None
        item = piece.base.element_size()
        old, new = (np.frombuffer(b, dtype=f"V{item}") for b in (memory, after))
        outside = np.r_[0:3, len(old) - 3 : len(old)] if layout == "offset" else slice(1, None, 2)
        if old[outside].tobytes() != new[outside].tobytes():
            return "memory beside the tensor was written"
        return None


def _may_be_written(recipe: Recipe, piece: Piece) -> bool:
    nodes = len(recipe.nodes())
    if recipe.out is not None and piece.argument == nodes - 1:
        return True
    in_place = recipe.form == "inplace"
    op = recipe.operator
    positions, names = written(op.name)
    if piece.argument < len(op.args) and op.args[piece.argument]["name"].startswith(RUNNING):
        return True
    if piece.argument < len(recipe.args):
        return piece.argument in positions or (in_place and piece.argument == 0)
    name = [*recipe.kwargs, "out"][piece.argument - len(recipe.args)]
    if in_place and name in ("self", "input"):
        return True
    if name.startswith(RUNNING):
        return True
    return name in names or name == "out" or (name == "input" and "self" in names)


def _text(shape: Any) -> str:
    return f"shape {shape[0]}, strides {shape[1]}, offset {shape[2]}, {shape[3]}, grad {shape[4]}"

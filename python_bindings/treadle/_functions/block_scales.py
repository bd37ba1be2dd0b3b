"""Matrices of few bits with scales for their rows or blocks, decoded to float32.

An operand is a matrix and its scales as a product has them: the left one [m, k], the right one
[k, n]. It is decoded with its rows along k: [m, k], and the right one transposed, [n, k].

Example, of MXFP8:

    operand = Operand("_scaled_mm_v2", a, True)          # a of float8_e4m3fn, [m, k]
    decoded("scale_a", operand, [scales], [ScalingType.BlockWise1x32], [])     # scales [m, k / 32]
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Sequence, Tuple

from treadle import _C
from treadle._C import Tensor


class ScalingType(IntEnum):
    """The numbers of a matrix that share a scale; blocks are rows x numbers along k.

    TensorWise, RowWise, BlockWise1x128 and BlockWise128x128 have scales of float32, BlockWise1x32
    of float8_e8m0fnu, and BlockWise1x16, which is for float4_e2m1fn_x2, of float8_e4m3fn.
    """

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(IntEnum):
    """The order of the scales of blocks.

    NO_SWIZZLE: a matrix beside its matrix. SWIZZLE_32_4_4: tiles of 128 rows x 4 blocks, which
    NVIDIA's devices read; SWIZZLE_32_8: tiles of 32 rows x 8 blocks, which AMD's read. Swizzled
    scales have whole tiles, and any shape with so many elements.
    """

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1
    SWIZZLE_32_8 = 2


@dataclass(frozen=True)
class _Swizzle:
    rows: int  # of a tile
    blocks: int
    order: Tuple[int, ...]  # the dimensions of a tile in memory, behind those of tiles
    restore: Tuple[int, ...]  # tile rows, its rows, tile columns, its columns


_SWIZZLES = {
    SwizzleType.SWIZZLE_32_4_4: _Swizzle(128, 4, (32, 4, 4), (0, 3, 2, 1, 4)),
    SwizzleType.SWIZZLE_32_8: _Swizzle(32, 8, (4, 16, 2, 2), (0, 5, 3, 1, 4, 2)),
}
# The rows and numbers of a block, and the dtype of its scale.
_BLOCKS = {
    ScalingType.BlockWise1x16: (1, 16, _C.float8_e4m3fn),
    ScalingType.BlockWise1x32: (1, 32, _C.float8_e8m0fnu),
    ScalingType.BlockWise1x128: (1, 128, _C.float32),
    ScalingType.BlockWise128x128: (128, 128, _C.float32),
}


def short_name(dtype: _C.dtype) -> str:
    return str(dtype).partition(".")[2]


@dataclass(frozen=True)
class Operand:
    """A matrix of a product, for the operator `op`."""

    op: str
    matrix: Tensor
    is_left: bool

    @property
    def rows(self) -> int:
        """m of the left matrix, n of the right one."""
        return self.matrix.shape[0 if self.is_left else 1]

    @property
    def terms(self) -> int:
        """k: the numbers of a row."""
        packed = 2 if self.matrix.dtype == _C.float4_e2m1fn_x2 else 1
        return packed * self.matrix.shape[1 if self.is_left else 0]

    def by_rows(self, t: Tensor) -> Tensor:
        return t if self.is_left else t.t()

    def shape(self, rows: int, blocks: int) -> Tuple[int, int]:
        """The shape of scales beside the matrix."""
        return (rows, blocks) if self.is_left else (blocks, rows)

    def values(self) -> Tensor:
        """The numbers without scales, [rows, terms] of float32."""
        matrix = self.by_rows(self.matrix)
        if matrix.dtype == _C.float4_e2m1fn_x2:
            return _C._float4_values(matrix.view(_C.uint8))
        return matrix.to(_C.float32)


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def _require(operand: Operand, name: str, scale: Tensor, fits: bool, expected: str) -> None:
    if not fits:
        raise ValueError(
            f"{operand.op}: expected {name} {expected}, got shape {tuple(scale.shape)} in "
            f"{short_name(scale.dtype)}"
        )


def _unswizzled(flat: Tensor, rows: int, blocks: int, swizzle: _Swizzle) -> Tensor:
    tiles = (_ceil_div(rows, swizzle.rows), _ceil_div(blocks, swizzle.blocks))
    parts = flat.reshape(*tiles, *swizzle.order).permute(swizzle.restore)
    return parts.reshape(tiles[0] * swizzle.rows, tiles[1] * swizzle.blocks)[:rows, :blocks]


def _block_factors(
    name: str, operand: Operand, scale: Tensor, recipe: ScalingType, order: SwizzleType
) -> Tensor:
    """The scale of each number, [rows, terms] of float32."""
    block_rows, block_terms, dtype = _BLOCKS[recipe]
    rows, blocks = _ceil_div(operand.rows, block_rows), _ceil_div(operand.terms, block_terms)
    swizzle = _SWIZZLES.get(order)
    if swizzle is None:
        shape = operand.shape(rows, blocks)
        fits = tuple(scale.shape) == shape
        expected = f"of shape {shape}"
    else:
        tiles = _ceil_div(rows, swizzle.rows) * _ceil_div(blocks, swizzle.blocks)
        count = tiles * swizzle.rows * swizzle.blocks
        fits = scale.numel() == count
        expected = f"of {count} elements, swizzled"
    expected = f"{expected} in {short_name(dtype)}"
    _require(operand, name, scale, fits and scale.dtype == dtype, expected)
    wide = scale.to(_C.float32)
    if swizzle is None:
        wide = operand.by_rows(wide)
    else:
        wide = _unswizzled(wide.reshape(-1), rows, blocks, swizzle)
    if block_rows > 1:
        wide = wide.repeat_interleave(block_rows, 0)[: operand.rows]
    return wide.repeat_interleave(block_terms, 1)[:, : operand.terms]


def _factors(
    name: str, operand: Operand, scale: Tensor, recipe: ScalingType, swizzle: SwizzleType
) -> Tensor:
    """The scales, broadcast to [rows, terms]."""
    if recipe in _BLOCKS:
        return _block_factors(name, operand, scale, recipe, swizzle)
    if swizzle != SwizzleType.NO_SWIZZLE:
        raise ValueError(
            f"{operand.op}: expected NO_SWIZZLE with {recipe.name} for {name}, got {swizzle.name}"
        )
    is_wide = scale.dtype == _C.float32
    if recipe == ScalingType.TensorWise:
        _require(operand, name, scale, is_wide and scale.numel() == 1, "of one number in float32")
        return scale.reshape(1, 1)
    shape = operand.shape(operand.rows, 1)
    fits = is_wide and tuple(scale.shape) == shape
    _require(operand, name, scale, fits, f"of shape {shape} in float32")
    return operand.by_rows(scale)


def decoded(
    name: str,
    operand: Operand,
    scales: Sequence[Tensor],
    recipes: Sequence[int],
    swizzles: Sequence[int],
) -> Tensor:
    """The numbers of the operand times their scales, [rows, terms] of float32.

    ValueError for scales that do not fit, and where there are not as many recipes as scales, or
    swizzles but not as many.
    """
    orders = list(swizzles) or [SwizzleType.NO_SWIZZLE] * len(scales)
    if not (1 <= len(scales) == len(recipes) == len(orders)):
        raise ValueError(
            f"{operand.op}: expected as many recipes and swizzles as scales for {name}, at least "
            f"one, got {len(scales)} scales, {len(recipes)} recipes and {len(orders)} swizzles"
        )
    values = operand.values()
    for scale, recipe, order in zip(scales, recipes, orders):
        values = values * _factors(
            name,
            operand,
            scale,
            _member(operand, ScalingType, recipe),
            _member(operand, SwizzleType, order),
        )
    return values


def _member(operand: Operand, kind: Any, value: int) -> Any:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(f"{m.name} = {m.value}" for m in kind)
        raise ValueError(
            f"{operand.op}: expected a {kind.__name__} ({known}), got {value!r}"
        ) from None


def recipe_of_block_scales(name: str, operand: Operand, scale: Tensor) -> ScalingType:
    """The recipe that a scale without one has by its dtype and shape."""
    if scale.dtype == _C.float8_e8m0fnu:
        return ScalingType.BlockWise1x32
    if scale.dtype == _C.float8_e4m3fn:
        return ScalingType.BlockWise1x16
    if scale.dtype == _C.float32:
        if scale.numel() == 1:
            return ScalingType.TensorWise
        rows, blocks = operand.rows, _ceil_div(operand.terms, 128)
        for recipe, shape in (
            (ScalingType.RowWise, (rows, 1)),
            (ScalingType.BlockWise1x128, (rows, blocks)),
            (ScalingType.BlockWise128x128, (_ceil_div(rows, 128), blocks)),
        ):
            if tuple(scale.shape) == operand.shape(*shape):
                return recipe
    whole = operand.shape(operand.rows, 1)
    raise ValueError(
        f"{operand.op}: expected {name} of one number or of shape {whole}, in float32, or scales "
        f"of blocks, got shape {tuple(scale.shape)} in {scale.dtype}"
    )

"""Products of float8 and float4 matrices with scales beside them."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, List, Tuple

import pytest

import treadle
from treadle import Tensor
from treadle.ao.quantization.block_scaled import pack_float4, to_mxfp8, to_nvfp4, unpack_float4
from treadle.nn import functional as F
from treadle.nn.functional import ScalingType, SwizzleType
from treadle.testing import assert_close

GENERATOR = treadle.Generator().manual_seed(0)
A = treadle.randn(4, 16, generator=GENERATOR).to(treadle.float8_e4m3fn)
B = treadle.randn(8, 16, generator=GENERATOR).to(treadle.float8_e5m2).t()
ONE = treadle.tensor(1.0)
PRODUCT = A.to(treadle.float32) @ B.to(treadle.float32)


def test_scales_of_all_and_of_rows_and_columns() -> None:
    found = treadle._scaled_mm(A, B, ONE * 2, ONE * 3, out_dtype=treadle.float32)
    assert_close(found, PRODUCT * 6)
    rows, columns = treadle.rand(4, 1, generator=GENERATOR), treadle.rand(1, 8, generator=GENERATOR)
    found = treadle._scaled_mm(A, B, rows, columns, treadle.arange(8.0), out_dtype=treadle.float32)
    assert_close(found, PRODUCT * rows * columns + treadle.arange(8.0))


def test_the_dtype_of_the_result() -> None:
    assert treadle._scaled_mm(A, B, ONE, ONE).dtype == treadle.float8_e4m3fn
    assert treadle._scaled_mm(A, B, ONE, ONE, out_dtype=treadle.bfloat16).dtype == treadle.bfloat16
    out = treadle.empty(0, dtype=treadle.float64)
    assert treadle._scaled_mm(A, B, ONE, ONE, out=out) is out
    assert_close(out, PRODUCT.to(treadle.float64))


@pytest.mark.parametrize(
    "arguments, settings, error, said",
    [
        ((A[0], B, ONE, ONE), {}, RuntimeError, "input of two dimensions, got shape (16,)"),
        (
            (A, B.to(treadle.float32), ONE, ONE),
            {},
            ValueError,
            "mat2 of a float8 dtype or float4_e2m1fn_x2, got treadle.float32",
        ),
        (
            (A, B, treadle.ones(4), ONE),
            {},
            ValueError,
            "scale_a of one number or of shape (4, 1), in float32, or scales of blocks, got shape "
            "(4,) in treadle.float32",
        ),
        (
            (A, B, ONE, ONE),
            {"scale_result": ONE},
            NotImplementedError,
            "scale_result = None, got a tensor; divide by it afterwards",
        ),
        (
            (A, B, ONE, ONE),
            {"out": treadle.empty(4, 8), "out_dtype": treadle.bfloat16},
            RuntimeError,
            "out of dtype treadle.bfloat16, got treadle.float32",
        ),
    ],
)
def test_what_does_not_fit(
    arguments: Any, settings: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error) as info:
        treadle._scaled_mm(*arguments, **settings)
    assert str(info.value) == f"_scaled_mm: expected {said}"


# ---- block scales ----

M, N, K = 130, 70, 288  # whole blocks of 16 and 32, no whole tiles of scales, no block of 128
X = treadle.randn(M, K, generator=GENERATOR)
W = treadle.randn(N, K, generator=GENERATOR)
BLOCKS = {
    ScalingType.BlockWise1x16: ((1, 16), treadle.float8_e4m3fn),
    ScalingType.BlockWise1x32: ((1, 32), treadle.float8_e8m0fnu),
    ScalingType.BlockWise1x128: ((1, 128), treadle.float32),
    ScalingType.BlockWise128x128: ((128, 128), treadle.float32),
}


def scale_of(rows: int, blocks: int, dtype: treadle.dtype) -> Tensor:
    """Scales that differ from block to block, and are exact in their dtype."""
    powers = treadle.arange(rows * blocks).reshape(rows, blocks) % 5 - 2.0
    return (2**powers).to(dtype)


def spread(scale: Tensor, rows: int, block: Tuple[int, int]) -> Tensor:
    """The scale of each element, by indices."""
    wide = scale.to(treadle.float32)
    return wide[treadle.arange(rows)[:, None] // block[0], treadle.arange(K) // block[1]]


def swizzled(scale: Tensor, kind: SwizzleType) -> Tensor:
    """The scales in the order of a device, element by element, as its manual describes it."""
    rows, blocks = scale.shape
    tile = (128, 4) if kind == SwizzleType.SWIZZLE_32_4_4 else (32, 8)
    tiles = tuple(-(-have // size) for have, size in zip((rows, blocks), tile))
    out = treadle.zeros(tiles[0] * tiles[1] * tile[0] * tile[1], dtype=treadle.uint8)
    row, block = treadle.arange(rows)[:, None], treadle.arange(blocks)
    start = (row // tile[0] * tiles[1] + block // tile[1]) * (tile[0] * tile[1])
    r, b = row % tile[0], block % tile[1]
    if kind == SwizzleType.SWIZZLE_32_4_4:
        within = r % 32 * 16 + r // 32 * 4 + b
    else:
        within = b % 4 * 64 + r % 16 * 4 + b // 4 * 2 + r // 16
    out[start + within] = scale.view(treadle.uint8)
    return out.view(scale.dtype)


def operands(recipe: ScalingType) -> Tuple[List[Tensor], List[Tensor], List[Tensor]]:
    """The matrices, their scales and what they mean; the right one by its columns."""
    block, dtype = BLOCKS[recipe]
    if recipe == ScalingType.BlockWise1x16:
        matrices = [pack_float4(t) for t in (X, W)]
        values = [unpack_float4(t) for t in matrices]
    else:
        matrices = [t.to(treadle.float8_e4m3fn) for t in (X, W)]
        values = [t.to(treadle.float32) for t in matrices]
    scales = [scale_of(-(-r // block[0]), -(-K // block[1]), dtype) for r in (M, N)]
    wide = [v * spread(s, len(v), block) for v, s in zip(values, scales)]
    return matrices, scales, wide


@pytest.mark.parametrize("recipe", list(BLOCKS))
def test_scales_of_blocks(recipe: ScalingType) -> None:
    (a, b), (scale_a, scale_b), (left, right) = operands(recipe)
    wanted = left @ right.t()
    scales = (scale_a, recipe, scale_b.t(), recipe)
    found = F.scaled_mm(a, b.t(), *scales, output_dtype=treadle.float32)
    assert treadle.equal(found, wanted)
    bias = treadle.arange(float(N))
    found = F.scaled_mm(a, b.t(), *scales, bias=bias)
    assert found.dtype == treadle.bfloat16 and treadle.equal(found, (wanted + bias).bfloat16())


@pytest.mark.parametrize("kind", [SwizzleType.SWIZZLE_32_4_4, SwizzleType.SWIZZLE_32_8])
@pytest.mark.parametrize("recipe", [ScalingType.BlockWise1x16, ScalingType.BlockWise1x32])
def test_swizzled_scales(recipe: ScalingType, kind: SwizzleType) -> None:
    (a, b), scales, (left, right) = operands(recipe)
    sides = [([swizzled(s, kind)], [recipe.value], [kind.value]) for s in scales]
    found = treadle._scaled_mm_v2(
        a, b.t(), *sides[0], *sides[1], None, treadle.float32, [1, 0], False
    )
    assert treadle.equal(found, left @ right.t())
    if kind == SwizzleType.SWIZZLE_32_4_4:
        in_order = [side[0][0] for side in sides]
        found = treadle._scaled_mm(a, b.t(), *in_order, out_dtype=treadle.float32)
        assert treadle.equal(found, left @ right.t())


def test_the_older_function_knows_float32_scales_by_their_shapes() -> None:
    recipes = (ScalingType.BlockWise1x128, ScalingType.BlockWise128x128)
    for of_a in recipes:
        for of_b in recipes:
            (a, _), (scale_a, _), (left, _) = operands(of_a)
            (_, b), (_, scale_b), (_, right) = operands(of_b)
            found = treadle._scaled_mm(a, b.t(), scale_a, scale_b.t(), out_dtype=treadle.float32)
            assert treadle.equal(found, left @ right.t())


def test_two_scales_of_a_matrix_are_multiplied() -> None:
    (a, b), (scale_a, scale_b), (left, right) = operands(ScalingType.BlockWise1x16)
    recipes = [ScalingType.BlockWise1x16, ScalingType.TensorWise]
    found = F.scaled_mm(
        a,
        b.t(),
        [scale_a, ONE * 2],
        recipes,
        [scale_b.t(), ONE * 4],
        recipes,
        output_dtype=treadle.float32,
    )
    assert treadle.equal(found, left @ right.t() * 8)


def test_scales_of_all_and_of_rows_by_recipe() -> None:
    rows, columns = treadle.rand(4, 1, generator=GENERATOR), treadle.rand(1, 8, generator=GENERATOR)
    whole, row = ScalingType.TensorWise, ScalingType.RowWise
    found = F.scaled_mm(A, B, ONE * 2, whole, columns, row, output_dtype=treadle.float32)
    assert_close(found, PRODUCT * 2 * columns)
    found = F.scaled_mm(A, B, rows, row, ONE * 3, whole, output_dtype=treadle.float32)
    assert_close(found, PRODUCT * rows * 3)


def test_matrices_without_elements() -> None:
    recipe = ScalingType.BlockWise1x32
    for m, k, n in [(0, 64, 3), (2, 0, 3), (2, 64, 0)]:
        a, b = (treadle.ones(s).to(treadle.float8_e4m3fn) for s in ((m, k), (k, n)))
        scales = [treadle.ones(s).to(treadle.float8_e8m0fnu) for s in ((m, k // 32), (k // 32, n))]
        found = F.scaled_mm(a, b, scales[0], recipe, scales[1], recipe)
        assert treadle.equal(found, treadle.zeros(m, n).bfloat16())


def test_the_numbers_of_the_enumerations() -> None:
    assert {t.name: t.value for t in ScalingType} == {
        "TensorWise": 0,
        "RowWise": 1,
        "BlockWise1x16": 2,
        "BlockWise1x32": 3,
        "BlockWise1x128": 4,
        "BlockWise128x128": 5,
    }
    assert {t.name: t.value for t in SwizzleType} == {
        "NO_SWIZZLE": 0,
        "SWIZZLE_32_4_4": 1,
        "SWIZZLE_32_8": 2,
    }


@pytest.mark.parametrize("make, block, error", [(to_mxfp8, 32, 2**-3), (to_nvfp4, 16, 0.21)])
def test_tensors_are_made_of_blocks(make: Any, block: int, error: float) -> None:
    x = treadle.cat([treadle.randn(5, 256, generator=GENERATOR), treadle.zeros(1, 256)])
    values, scales = make(x)
    wide = unpack_float4(values) if make is to_nvfp4 else values.to(treadle.float32)
    steps = scales.to(treadle.float32).repeat_interleave(block, 1)
    largest = x.unflatten(1, (-1, block)).abs().amax(2).repeat_interleave(block, 1)
    assert ((wide * steps - x).abs() <= error * largest).all()
    assert not values[-1].view(treadle.uint8).any()


def test_the_scale_of_an_mxfp8_block() -> None:
    rest = [1.0] * 31
    _, scales = to_mxfp8(treadle.tensor([[448.0, *rest], [511.0, *rest], [512.0, *rest]]))
    assert scales.to(treadle.float32).tolist() == [[1.0], [1.0], [2.0]]
    huge, _ = to_mxfp8(treadle.tensor([[float("inf"), float("nan"), -1e38] + [0.0] * 29]))
    found = huge.to(treadle.float32)
    assert found[0, 0] == 448 and found[0, 1].isnan() and found[0, 2] < 0


def mx(**changed: Any) -> Callable[[], Tensor]:
    """A call with these arguments changed."""

    def call() -> Tensor:
        scales = [treadle.ones(s).to(treadle.float8_e8m0fnu) for s in ((4, 2), (2, 8))]
        arguments = {
            "input": treadle.ones(4, 64).to(treadle.float8_e4m3fn),
            "mat2": treadle.ones(64, 8).to(treadle.float8_e4m3fn),
            "scale_a": [scales[0]],
            "recipe_a": [3],
            "swizzle_a": [0],
            "scale_b": [scales[1]],
            "recipe_b": [3],
            "swizzle_b": [],
            "out_dtype": treadle.float32,
        }
        return treadle._scaled_mm_v2(**{**arguments, **changed})

    return call


def test_the_call_that_is_changed_fits() -> None:
    assert treadle.equal(mx()(), treadle.full((4, 8), 64.0))


E8M0, E4M3 = treadle.float8_e8m0fnu, treadle.float8_e4m3fn


@pytest.mark.parametrize(
    "call, error, said",
    [
        (
            mx(scale_a=[treadle.ones(2, 4).to(E8M0)]),
            ValueError,
            "scale_a of shape (4, 2) in float8_e8m0fnu, got shape (2, 4) in float8_e8m0fnu",
        ),
        (
            mx(scale_b=[treadle.ones(2, 8)]),
            ValueError,
            "scale_b of shape (2, 8) in float8_e8m0fnu, got shape (2, 8) in float32",
        ),
        (
            mx(scale_b=[treadle.ones(8, 2).to(E8M0)], swizzle_b=[1]),
            ValueError,
            "scale_b of 512 elements, swizzled in float8_e8m0fnu, got shape (8, 2) in "
            "float8_e8m0fnu",
        ),
        (
            mx(recipe_a=[2]),
            ValueError,
            "scale_a of shape (4, 4) in float8_e4m3fn, got shape (4, 2) in float8_e8m0fnu",
        ),
        (
            mx(recipe_a=[6]),
            ValueError,
            "a ScalingType (TensorWise = 0, RowWise = 1, BlockWise1x16 = 2, BlockWise1x32 = 3, "
            "BlockWise1x128 = 4, BlockWise128x128 = 5), got 6",
        ),
        (
            mx(swizzle_a=[-1]),
            ValueError,
            "a SwizzleType (NO_SWIZZLE = 0, SWIZZLE_32_4_4 = 1, SWIZZLE_32_8 = 2), got -1",
        ),
        (
            mx(scale_a=[]),
            ValueError,
            "as many recipes and swizzles as scales for scale_a, at least one, got 0 scales, 1 "
            "recipes and 1 swizzles",
        ),
        (
            mx(recipe_b=[3, 0]),
            ValueError,
            "as many recipes and swizzles as scales for scale_b, at least one, got 1 scales, 2 "
            "recipes and 1 swizzles",
        ),
        (
            mx(recipe_a=[0], scale_a=[ONE], swizzle_a=[1]),
            ValueError,
            "NO_SWIZZLE with TensorWise for scale_a, got SWIZZLE_32_4_4",
        ),
        (
            mx(recipe_a=[0], scale_a=[treadle.ones(4, 1)]),
            ValueError,
            "scale_a of one number in float32, got shape (4, 1) in float32",
        ),
        (
            mx(recipe_b=[1], scale_b=[treadle.ones(8, 1)]),
            ValueError,
            "scale_b of shape (1, 8) in float32, got shape (8, 1) in float32",
        ),
        (mx(contraction_dim=[0, 1]), RuntimeError, "contraction_dim to be (1, 0), got (0, 1)"),
        (mx(bias=treadle.ones(4)), RuntimeError, "bias of shape (8,), got (4,)"),
        (
            mx(input=treadle.ones(4, 32).to(E4M3)),
            RuntimeError,
            "matrices of shapes (m, k) and (k, n), got (4, 32) in treadle.float8_e4m3fn and "
            "(64, 8) in treadle.float8_e4m3fn",
        ),
        (
            mx(input=treadle.ones(4, 64).to(E8M0)),
            ValueError,
            "input of a float8 dtype or float4_e2m1fn_x2, got treadle.float8_e8m0fnu",
        ),
        (
            mx(out_dtype=treadle.float4_e2m1fn_x2),
            ValueError,
            "an out_dtype of one number in an element, got treadle.float4_e2m1fn_x2",
        ),
    ],
)
def test_block_scales_that_do_not_fit(
    call: Callable[[], Tensor], error: type[Exception], said: str
) -> None:
    with pytest.raises(error) as info:
        call()
    assert str(info.value) == f"_scaled_mm_v2: expected {said}"


@pytest.mark.parametrize("make, block", [(to_mxfp8, 32), (to_nvfp4, 16)])
@pytest.mark.parametrize("shape", [(), (3,), (4, 40)])
def test_no_whole_blocks(make: Any, block: int, shape: Tuple[int, ...]) -> None:
    with pytest.raises(RuntimeError) as info:
        make(treadle.ones(shape))
    assert str(info.value) == (
        f"{make.__name__}: expected a last dimension in multiples of {block}, got shape {shape}"
    )

"""Products of matrices of few bits, which numbers beside them scale.

Example:

    treadle._scaled_mm(a, b, scale_a, scale_b, out_dtype=treadle.bfloat16)    # a, b of float8
    treadle._int_mm(a, b)                                # a, b of int8; the product has int32

A scaled matrix is decoded to float32, with its scales (block_scales.py), and the products of its
elements are summed as those of float32 matrices are.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List, Optional, Sequence

from treadle import _C
from treadle._C import Tensor
from treadle._functions.block_scales import (
    Operand,
    SwizzleType,
    decoded,
    recipe_of_block_scales,
)

_FLOAT8 = (_C.float8_e4m3fn, _C.float8_e5m2, _C.float8_e4m3fnuz, _C.float8_e5m2fnuz)


def _operand(op: str, name: str, matrix: Tensor, is_left: bool) -> Operand:
    if matrix.dim() != 2:
        raise RuntimeError(
            f"{op}: expected {name} of two dimensions, got shape {tuple(matrix.shape)}"
        )
    if matrix.dtype not in (*_FLOAT8, _C.float4_e2m1fn_x2):
        raise ValueError(
            f"{op}: expected {name} of a float8 dtype or float4_e2m1fn_x2, got {matrix.dtype}"
        )
    return Operand(op, matrix, is_left)


def _product(
    op: str,
    left: Operand,
    right: Operand,
    factors: Sequence[Tensor],
    bias: Optional[Tensor],
    out_dtype: Optional[_C.dtype],
    out: Optional[Tensor],
) -> Tensor:
    """The product of the factors, with bias, in the dtype asked for."""
    dtype = out_dtype or (out.dtype if out is not None else left.matrix.dtype)
    if dtype == _C.float4_e2m1fn_x2:
        raise ValueError(f"{op}: expected an out_dtype of one number in an element, got {dtype}")
    if out is not None and dtype != out.dtype:
        raise RuntimeError(f"{op}: expected out of dtype {out_dtype}, got {out.dtype}")
    if bias is not None and tuple(bias.shape) != (right.rows,):
        raise RuntimeError(f"{op}: expected bias of shape ({right.rows},), got {tuple(bias.shape)}")
    product = _C.mm(factors[0], factors[1].t())
    if bias is not None:
        product = product + bias.to(_C.float32)
    if out is None:
        return product.to(dtype)
    if out.shape != product.shape:
        out.resize_(product.shape)
    return out.copy_(product)


def _check_terms(op: str, left: Operand, right: Operand) -> None:
    if left.terms != right.terms:
        raise RuntimeError(
            f"{op}: expected matrices of shapes (m, k) and (k, n), got "
            f"{tuple(left.matrix.shape)} in {left.matrix.dtype} and "
            f"{tuple(right.matrix.shape)} in {right.matrix.dtype}"
        )


def _scaled_mm(
    input: Tensor,
    mat2: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Optional[Tensor] = None,
    scale_result: Optional[Tensor] = None,
    out_dtype: Optional[_C.dtype] = None,
    use_fast_accum: bool = False,
    *,
    out: Optional[Tensor] = None,
) -> Tensor:
    """`(input * scale_a) @ (mat2 * scale_b) + bias`, summed in float32.

    input: [m, k], mat2: [k, n], of float8 dtypes or float4_e2m1fn_x2, whose elements are two
    numbers along k. Each scale is one of these:

    * float32, one number, or one for each row of input and column of mat2: [m, 1], [1, n];
    * float32, one for each 128 numbers along k, or for 128 x 128: [m, k / 128] or [m / 128, k /
      128], and of mat2 [k / 128, n] or [k / 128, n / 128], quotients rounded up;
    * float8_e8m0fnu for 32 numbers along k, or float8_e4m3fn for 16 of float4_e2m1fn_x2, in the
      order of SwizzleType.SWIZZLE_32_4_4.

    The result has `out_dtype`, that of `out`, or input's. ValueError for other dtypes and scales,
    RuntimeError for other shapes, NotImplementedError for scale_result.
    """
    left = _operand("_scaled_mm", "input", input, True)
    right = _operand("_scaled_mm", "mat2", mat2, False)
    _check_terms("_scaled_mm", left, right)
    if scale_result is not None:
        raise NotImplementedError(
            "_scaled_mm: expected scale_result = None, got a tensor; divide by it afterwards"
        )
    factors = []
    for name, operand, scale in (("scale_a", left, scale_a), ("scale_b", right, scale_b)):
        recipe = recipe_of_block_scales(name, operand, scale)
        of_blocks = scale.dtype != _C.float32
        swizzle = SwizzleType.SWIZZLE_32_4_4 if of_blocks else SwizzleType.NO_SWIZZLE
        factors.append(decoded(name, operand, [scale], [recipe], [swizzle]))
    return _product("_scaled_mm", left, right, factors, bias, out_dtype, out)


def _scaled_mm_v2(
    input: Tensor,
    mat2: Tensor,
    scale_a: Sequence[Tensor],
    recipe_a: Sequence[int],
    swizzle_a: Sequence[int],
    scale_b: Sequence[Tensor],
    recipe_b: Sequence[int],
    swizzle_b: Sequence[int],
    bias: Optional[Tensor] = None,
    out_dtype: Optional[_C.dtype] = None,
    contraction_dim: Sequence[int] = (),
    use_fast_accum: bool = False,
    *,
    out: Optional[Tensor] = None,
) -> Tensor:
    """`(input * scale_a) @ (mat2 * scale_b) + bias`, summed in float32.

    input: [m, k], mat2: [k, n], of float8 dtypes or float4_e2m1fn_x2, whose elements are two
    numbers along k. Each matrix has one or several scales, which are multiplied. A scale has a
    ScalingType, which says its dtype and shape, and a SwizzleType, which says its order; no
    swizzles are NO_SWIZZLE. The result has `out_dtype`, that of `out`, or input's. ValueError for
    other dtypes and scales, RuntimeError for other shapes.
    """
    op = "_scaled_mm_v2"
    left, right = _operand(op, "input", input, True), _operand(op, "mat2", mat2, False)
    _check_terms(op, left, right)
    dims = tuple(contraction_dim)
    if dims and (len(dims) != 2 or dims[0] not in (1, -1) or dims[1] not in (0, -2)):
        raise RuntimeError(f"{op}: expected contraction_dim to be (1, 0), got {dims}")
    factors = [
        decoded("scale_a", left, scale_a, recipe_a, swizzle_a),
        decoded("scale_b", right, scale_b, recipe_b, swizzle_b),
    ]
    return _product(op, left, right, factors, bias, out_dtype, out)


def _listed(value: Any) -> List[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def scaled_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Any,
    scale_recipe_a: Any,
    scale_b: Any,
    scale_recipe_b: Any,
    swizzle_a: Any = None,
    swizzle_b: Any = None,
    bias: Optional[Tensor] = None,
    output_dtype: Optional[_C.dtype] = _C.bfloat16,
    contraction_dim: Sequence[int] = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """`(mat_a * scale_a) @ (mat_b * scale_b) + bias`, summed in float32.

    mat_a: [m, k], mat_b: [k, n], of float8 dtypes or float4_e2m1fn_x2. The scales, recipes
    (ScalingType) and swizzles (SwizzleType) of a matrix: one, or a list of each. `use_fast_accum`
    changes nothing on the CPU. Errors: those of `_scaled_mm_v2`.
    """
    return _scaled_mm_v2(
        mat_a,
        mat_b,
        _listed(scale_a),
        _listed(scale_recipe_a),
        _listed(swizzle_a),
        _listed(scale_b),
        _listed(scale_recipe_b),
        _listed(swizzle_b),
        bias,
        output_dtype,
        contraction_dim,
        use_fast_accum,
    )


def _int_mm(self: Tensor, mat2: Tensor, *, out: Optional[Tensor] = None) -> Tensor:
    """`self @ mat2` in int32, which small integers multiply without loss.

    self: [m, k] of int8 or uint8, mat2: [k, n] of int8. RuntimeError for other dtypes and shapes.
    """
    dtypes = (_C.int8, _C.uint8)
    if self.dtype not in dtypes or mat2.dtype != _C.int8:
        raise RuntimeError(
            "_int_mm: expected self of int8 or uint8 and mat2 of int8, got "
            f"{self.dtype} and {mat2.dtype}"
        )
    if self.dim() != 2 or mat2.dim() != 2 or self.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            "_int_mm: expected matrices of shapes (m, k) and (k, n), got "
            f"{tuple(self.shape)} and {tuple(mat2.shape)}"
        )
    return _C.mm(self.to(_C.int32), mat2.to(_C.int32), out=out)

"""Products of matrices of few bits, which numbers beside them scale.

Example:

    treadle._scaled_mm(a, b, scale_a, scale_b, out_dtype=treadle.bfloat16)    # a, b of float8
    treadle._int_mm(a, b)                                # a, b of int8; the product has int32
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Optional

from treadle import _C
from treadle._C import Tensor


def _check_matrix(name: str, matrix: Tensor) -> None:
    if matrix.dim() != 2:
        raise RuntimeError(
            f"_scaled_mm: expected {name} of two dimensions, got shape {tuple(matrix.shape)}"
        )
    if not str(matrix.dtype).partition(".")[2].startswith("float8"):
        raise ValueError(f"_scaled_mm: expected {name} of a float8 dtype, got {matrix.dtype}")


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

    input: [m, k], mat2: [k, n], of float8 dtypes; the scales: float32, one number each, or [m, 1]
    and [1, n]. The result has `out_dtype`, that of `out`, or input's. ValueError for other dtypes
    and scales, RuntimeError for other shapes, NotImplementedError for scale_result.
    """
    _check_matrix("input", input)
    _check_matrix("mat2", mat2)
    rows, columns = input.shape[0], mat2.shape[1]
    for name, scale, whole in (("scale_a", scale_a, (rows, 1)), ("scale_b", scale_b, (1, columns))):
        if scale.dtype != _C.float32 or (scale.numel() != 1 and tuple(scale.shape) != whole):
            raise ValueError(
                f"_scaled_mm: expected {name} of one number or of shape {whole}, in float32, got "
                f"shape {tuple(scale.shape)} in {scale.dtype}"
            )
    if scale_result is not None:
        raise NotImplementedError(
            "_scaled_mm: expected scale_result = None, got a tensor; divide by it afterwards"
        )
    factors = (scale_a.reshape(1, 1) if scale_a.numel() == 1 else scale_a) * scale_b
    product = _C.mm(input.to(_C.float32), mat2.to(_C.float32)) * factors
    if bias is not None:
        product = product + bias.to(_C.float32)
    if out is None:
        return product.to(input.dtype if out_dtype is None else out_dtype)
    if out_dtype is not None and out_dtype != out.dtype:
        raise RuntimeError(f"_scaled_mm: expected out of dtype {out_dtype}, got {out.dtype}")
    if out.shape != product.shape:
        out.resize_(product.shape)
    return out.copy_(product)


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

"""Functions of the package that PyTorch keeps beside newer ones, and what is made of them.

Example:

    treadle.native_dropout(x, 0.5, True)      # what dropout gives, and the mask
    treadle.eig(a)                            # raises: linalg.eig does it
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, NoReturn, Optional, Tuple

from treadle import _C, _names, autograd, linalg
from treadle._C import Tensor
from treadle._functions.overridable import make_overridable
from treadle.autograd.grad_mode import no_grad


def _removed(name: str, instead: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            f"{name}: expected a call of {_names.spoken()}.{instead}, which does this; this "
            "function was removed from PyTorch"
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"RuntimeError: {instead} does it."
    return function


eig = _removed("eig", "linalg.eig")
lstsq = _removed("lstsq", "linalg.lstsq")
matrix_rank = _removed("matrix_rank", "linalg.matrix_rank")
solve = _removed("solve", "linalg.solve")


def get_device(input: Tensor) -> int:
    """The number of the tensor's device; -1 on the CPU."""
    return input.get_device()


def detach_(input: Tensor) -> Tensor:
    """The tensor, cut from what made it."""
    return input.detach_()


def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """Give the tensor the shape of another."""
    settings = {} if memory_format is None else {"memory_format": memory_format}
    return input.resize_as_(the_template, **settings)


def is_distributed(input: Tensor) -> bool:
    """Whether a tensor is spread over processes: none is."""
    return False


def frobenius_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The root of the sum of squares, over all dimensions or over `dim`."""
    return linalg.vector_norm(input, 2, dim=dim or None, keepdim=keepdim)


def nuclear_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The sum of the singular values of a matrix, or of those in two dimensions."""
    return linalg.matrix_norm(input, "nuc", dim=dim or (-2, -1), keepdim=keepdim)


def native_norm(
    input: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """The p-norm over all dimensions or over `dim`."""
    dims = None if dim is None or dim == [] or dim == () else dim
    return linalg.vector_norm(input, 2 if p is None else p, dim=dims, keepdim=keepdim, dtype=dtype)


def native_dropout(input: Tensor, p: float, train: Optional[bool]) -> Tuple[Tensor, Tensor]:
    """The result of dropout, and the mask of what stayed: everything where `train` is False."""
    if train is False:
        return input.clone(), _C.ones_like(input, dtype=_C.bool)
    mask = _C.rand_like(input) >= p
    return input * mask * (1 / (1 - p) if p < 1 else 0.0), mask


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """channel_shuffle()."""
    return _C.channel_shuffle(input, groups)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """A convolution of one dimension over (time, batch, channels) by (time, in, out)."""
    if input.dim() != 3 or weight.dim() != 3 or bias.dim() != 1:
        raise RuntimeError(
            "conv_tbc: expected an input and a weight of three dimensions and a bias of one, got "
            f"{tuple(input.shape)}, {tuple(weight.shape)} and {tuple(bias.shape)}"
        )
    result = _C.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return result.permute(2, 0, 1)


def embedding_renorm_(
    input: Tensor, indices: Tensor, max_norm: float, norm_type: float = 2.0
) -> Tensor:
    """Scale the rows that `indices` names down to a norm of `max_norm`, in place."""
    with no_grad():
        rows = indices.flatten().unique().long()
        norms = linalg.vector_norm(input[rows], norm_type, dim=1)
        scale = (max_norm / (norms + 1e-7)).where(norms > max_norm, 1.0)
        input[rows] = input[rows] * scale[:, None]
    return input


class _FakeQuantize(autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, scale: Tensor, zero_point: Tensor, low: int, high: int
    ) -> Tensor:
        steps = x / scale
        if zero_point.is_floating_point():
            steps = _C.round(steps + zero_point)
        else:
            steps = _C.round(steps) + zero_point
        ctx.save_for_backward((steps >= low) & (steps <= high))
        return ((steps.clamp(low, high) - zero_point) * scale).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Any, ...]:
        (within,) = ctx.saved_tensors
        return grad * within, None, None, None, None


def _check_levels(what: str, low: int, high: int) -> None:
    if low > high:
        raise RuntimeError(f"{what}: expected quant_min <= quant_max, got {low} and {high}")


def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Tensor:
    """The nearest of the numbers (q - zero_point) * scale, q from quant_min to quant_max. The
    gradient is that of the identity, and zero beyond the ends."""
    _check_levels("fake_quantize_per_tensor_affine", quant_min, quant_max)
    scale, zero_point = (_C.as_tensor(v, device=input.device) for v in (scale, zero_point))
    return _FakeQuantize.apply(input, scale.to(input.dtype), zero_point, quant_min, quant_max)


def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """As fake_quantize_per_tensor_affine(), with a scale and a zero point for each channel."""
    _check_levels("fake_quantize_per_channel_affine", quant_min, quant_max)
    channels = input.shape[axis]
    if scale.shape != (channels,) or zero_point.shape != (channels,):
        raise RuntimeError(
            f"fake_quantize_per_channel_affine: expected a scale and a zero point for each of "
            f"{channels} channels, got shapes {tuple(scale.shape)} and {tuple(zero_point.shape)}"
        )
    shape = [channels if d == axis % input.dim() else 1 for d in range(input.dim())]
    scale, zero_point = scale.reshape(shape).to(input.dtype), zero_point.reshape(shape)
    return _FakeQuantize.apply(input, scale, zero_point, quant_min, quant_max)


def indices_copy(input: Tensor) -> Tensor:
    """A copy of a sparse tensor's indices."""
    return input.indices().clone()


def values_copy(input: Tensor) -> Tensor:
    """A copy of a sparse tensor's values."""
    return input.values().clone()


def crow_indices_copy(input: Tensor) -> Tensor:
    """A copy of the offsets of a sparse tensor's rows."""
    return input.crow_indices().clone()


def col_indices_copy(input: Tensor) -> Tensor:
    """A copy of the columns of a sparse tensor's entries."""
    return input.col_indices().clone()


def ccol_indices_copy(input: Tensor) -> Tensor:
    """A copy of the offsets of a sparse tensor's columns."""
    return input.ccol_indices().clone()


def row_indices_copy(input: Tensor) -> Tensor:
    """A copy of the rows of a sparse tensor's entries."""
    return input.row_indices().clone()


def smm(input: Tensor, mat: Tensor) -> Tensor:
    """A sparse matrix times a strided one, as a sparse matrix."""
    return _names.package().sparse.mm(input, mat).to_sparse()


def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """A sparse matrix times a strided one, as a sparse matrix of whole rows."""
    sparse = _names.package().sparse
    rows = mat1.coalesce().indices()[0].unique()
    product = sparse.mm(mat1, mat2)
    return sparse.sparse_coo_tensor(rows[None], product[rows], product.shape)


hsmm = hspmm


def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2) of sparse `input` and `mat1`, as a sparse matrix."""
    sparse = _names.package().sparse
    return (input.to_dense() * beta + sparse.mm(mat1, mat2) * alpha).to_sparse()


def lobpcg(
    A: Tensor,  # noqa: N803
    k: Optional[int] = None,
    B: Optional[Tensor] = None,  # noqa: N803
    X: Optional[Tensor] = None,  # noqa: N803
    n: Optional[int] = None,
    iK: Optional[Tensor] = None,  # noqa: N803
    niter: Optional[int] = None,
    tol: Optional[float] = None,
    largest: Optional[bool] = None,
    method: Optional[str] = None,
    tracker: Any = None,
    ortho_iparams: Any = None,
    ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> Tuple[Tensor, Tensor]:
    """The `k` largest eigenvalues of a symmetric matrix, or the smallest with largest=False, and
    their vectors; with `B` those of A x = e B x. They are of a whole decomposition, whose precision
    is that of the dtype: what steers an iteration (X but for its width, iK, niter, tol, method) is
    taken and changes nothing. ValueError where A has not three times as many rows as k."""
    k = (1 if X is None else X.shape[-1]) if k is None else k
    size = A.shape[-1]
    if size < 3 * (n or k):
        raise ValueError(
            f"LPBPCG algorithm is not applicable when the number of A rows (={size}) is smaller "
            f"than 3 x the number of requested eigenpairs (={n or k})"
        )
    matrix = A.to_dense()
    factor = None
    if B is not None:
        factor = linalg.cholesky(B.to_dense())
        half = linalg.solve_triangular(factor, matrix, upper=False)
        matrix = linalg.solve_triangular(factor, half.mT, upper=False).mT
    values, vectors = linalg.eigh(matrix)
    if largest is None or largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    values, vectors = values[..., :k], vectors[..., :k]
    if factor is not None:
        vectors = linalg.solve_triangular(factor.mT, vectors, upper=True)
    return values, vectors


# Functions of sparse tensors call functions that can be overridden.
make_overridable(
    __name__,
    """conv_tbc detach_ eig embedding_renorm_ fake_quantize_per_channel_affine
    fake_quantize_per_tensor_affine frobenius_norm get_device is_distributed lobpcg lstsq
    matrix_rank native_channel_shuffle native_dropout native_norm nuclear_norm
    resize_as_ solve""".split(),
)


_segment_reduce = _C.segment_reduce


def _shape_as_tensor(self: Tensor) -> Tensor:
    """The sizes, as a tensor of int64."""
    return _C.tensor(tuple(self.shape), dtype=_C.int64)


def _convert_indices_from_coo_to_csr(
    self: Tensor, size: int, *, out_int32: bool = False, out: Optional[Tensor] = None
) -> Tensor:
    """Where each of `size` rows begins among sorted row numbers, and the end: size + 1 numbers."""
    ends = _C.arange(size + 1, device=self.device, dtype=self.dtype)
    return _C.searchsorted(self, ends, out_int32=out_int32, out=out)


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """The row and the column of each element, [2, n], or the column and the row."""
    dtype = _C.int32 if out_int32 else _C.int64
    rows = _C.arange(crow_indices.shape[-1] - 1, device=crow_indices.device)
    rows = rows.repeat_interleave(crow_indices.diff())
    pair = [col_indices, rows] if transpose else [rows, col_indices]
    return _C.stack([part.to(dtype) for part in pair])


def _cast_to(name: str, dtype: _C.dtype) -> Any:
    def cast(self: Tensor, non_blocking: bool = False) -> Tensor:
        return self.to(dtype, non_blocking=non_blocking)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"The tensor in {dtype}, as `to()` makes it; gradients flow between floats."
    return cast


_cast_Byte = _cast_to("_cast_Byte", _C.uint8)  # noqa: N816
_cast_Char = _cast_to("_cast_Char", _C.int8)  # noqa: N816
_cast_Double = _cast_to("_cast_Double", _C.float64)  # noqa: N816
_cast_Float = _cast_to("_cast_Float", _C.float32)  # noqa: N816
_cast_Half = _cast_to("_cast_Half", _C.float16)  # noqa: N816
_cast_Int = _cast_to("_cast_Int", _C.int32)  # noqa: N816
_cast_Long = _cast_to("_cast_Long", _C.int64)  # noqa: N816
_cast_Short = _cast_to("_cast_Short", _C.int16)  # noqa: N816

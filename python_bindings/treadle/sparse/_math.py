"""Products, sums and functions of sparse tensors, beside and with strided ones."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Callable, Optional, Sequence, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle._functions.variadic import broadcast_shapes
from treadle.functional import norm as _norm
from treadle.functional import unique
from treadle.sparse import _coo
from treadle.sparse._tensor import SparseTensor


def _is_sparse(value: Any) -> bool:
    return issubclass(type(value), SparseTensor)


# ---- products ----


def _check_product(name: str, a: Any, b: Any) -> None:
    for x in (a, b):
        if _is_sparse(x) and x.dense_dim():
            raise RuntimeError(
                f"{name}: expected sparse tensors without dense dimensions, got {x.dense_dim()}"
            )
    if a.shape[-1] != b.shape[-2 if b.dim() > 1 else 0]:
        raise RuntimeError(
            f"{name}: expected shapes that multiply, got {tuple(a.shape)} and {tuple(b.shape)}"
        )
    if a.dtype != b.dtype:
        raise RuntimeError(f"{name}: expected the same dtype, got {a.dtype} and {b.dtype}")


def _times_dense(a: SparseTensor, b: Tensor) -> Tensor:
    """(n, k) by (k, m): the rows of b that the columns of entries name, times the values, added up
    in the rows of entries."""
    rows, columns = a._i
    return _coo.grouped(b.index_select(0, columns) * a._v.unsqueeze(1), rows, a.shape[0])


def _times_sparse(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """(n, k) by (k, m), both sparse: each entry of a meets those of b in the row of its column."""
    left, right = _coo.matches(a._i[1], b._i[0], b.shape[0])
    indices = _C.stack([a._i[0].index_select(0, left), b._i[1].index_select(0, right)])
    values = a._v.index_select(0, left) * b._v.index_select(0, right)
    return SparseTensor(indices, values, (a.shape[0], b.shape[1])).coalesce()


def matmul(input: Any, other: Any, *, name: str = "matmul") -> Any:
    """The product of vectors, matrices and batches; one of the two a sparse matrix, or both."""
    if input.dim() == 0 or other.dim() == 0:
        raise RuntimeError(f"{name}: expected tensors with dimensions, got a number")
    _check_product(name, input, other)
    if 3 in [x.dim() for x in (input, other) if _is_sparse(x)]:
        return bmm(input, other)
    if not _is_sparse(other):
        if other.dim() == 1:
            return _times_dense(input, other.unsqueeze(1)).squeeze(1)
        rows = other.movedim(-2, 0)
        product = _times_dense(input, rows.reshape(rows.shape[0], math.prod(rows.shape[1:])))
        return product.reshape(input.shape[0], *rows.shape[1:]).movedim(0, -2)
    if _is_sparse(input):
        return _times_sparse(input, other)
    rows = input.reshape(math.prod(input.shape[:-1]), input.shape[-1])
    product = _times_dense(other.t(), rows.t()).t()
    return product.reshape(*input.shape[:-1], other.shape[1])


def _of_dims(name: str, a: Any, dims_a: int, b: Any, dims_b: int) -> None:
    if (a.dim(), b.dim()) != (dims_a, dims_b):
        raise RuntimeError(
            f"{name}: expected {dims_a} and {dims_b} dimensions, "
            f"got shapes {tuple(a.shape)} and {tuple(b.shape)}"
        )


def mm(input: Any, mat2: Any) -> Any:
    """The product of two matrices; sparse if both are."""
    _of_dims("mm", input, 2, mat2, 2)
    return matmul(input, mat2, name="mm")


def mv(input: Any, vec: Any) -> Any:
    """The product of a matrix and a vector."""
    _of_dims("mv", input, 2, vec, 1)
    return matmul(input, vec, name="mv")


def bmm(input: Any, mat2: Any) -> Tensor:
    """The products of a batch (b, n, k) of sparse matrices and one (b, k, m) of strided ones."""
    _of_dims("bmm", input, 3, mat2, 3)
    if not _is_sparse(input) or _is_sparse(mat2):
        raise NotImplementedError("bmm: expected a sparse tensor and a strided one, in this order")
    _check_product("bmm", input, mat2)
    (b, n, k), m = input.shape, mat2.shape[2]
    if mat2.shape[0] != b:
        raise RuntimeError(f"bmm: expected batches of one size, got {b} and {mat2.shape[0]}")
    batch, row, column = input._i
    blocks = _C.stack([batch * n + row, batch * k + column])  # along a diagonal
    flat = SparseTensor(blocks, input._v, (b * n, b * k))
    return _times_dense(flat, mat2.reshape(b * k, m)).reshape(b, n, m)


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * mat1 @ mat2, of a strided input that broadcasts to the product."""
    if _is_sparse(input) or (_is_sparse(mat1) and _is_sparse(mat2)):
        raise NotImplementedError("addmm: expected a strided input and one sparse factor")
    product = mm(mat1, mat2)
    if alpha != 1:
        product = product * alpha
    return product if beta == 0 else input.expand(product.shape) * beta + product


def linear(input: Any, weight: Any, bias: Optional[Tensor] = None) -> Any:
    """input @ weight.t() + bias."""
    product = matmul(input, weight.t(), name="linear")
    return product if bias is None else product + bias


# ---- element by element ----


def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """input + alpha * other: sparse of two sparse ones, strided of a strided and a sparse one."""
    if not _is_sparse(other):
        raise RuntimeError(
            "add: expected a strided and a sparse tensor in this order, or two sparse ones, got a "
            "sparse one first"
        )
    if tuple(input.shape) != tuple(other.shape):
        raise RuntimeError(
            f"add: expected the same shape, got {tuple(input.shape)} and {tuple(other.shape)}"
        )
    dtype = _C.promote_types(input.dtype, other.dtype)
    values = (other._v if alpha == 1 else other._v * alpha).to(dtype)
    if not _is_sparse(input):
        return _coo.added(input.to(dtype), other._i, values)
    if input.sparse_dim() != other.sparse_dim():
        raise RuntimeError(
            f"add: expected as many sparse dimensions, got {input.sparse_dim()} and "
            f"{other.sparse_dim()}"
        )
    indices = _C.cat([input._i, other._i], 1)
    values = _C.cat([input._v.to(dtype), values])
    return SparseTensor(indices, values, input.shape).coalesce()


def sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """input - alpha * other, of what add() takes."""
    return add(input, other, alpha=-alpha)


def add_(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """input += alpha * other."""
    if _is_sparse(input):
        return input._write("add_", add(input, other, alpha=alpha))
    return input.add_(other.to_dense(), alpha=alpha)


def sub_(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """input -= alpha * other."""
    return add_(input, other, alpha=-alpha)


def _is_number(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.dim() == 0 and not _is_sparse(value)
    return isinstance(value, (bool, int, float, complex))


def mul(input: Any, other: Any) -> SparseTensor:
    """The product of elements: with a number, a strided tensor that broadcasts to the shape of
    the sparse one, or a sparse tensor of the same shape. Sparse."""
    if not _is_sparse(input):
        input, other = other, input
    if _is_number(other):
        return input._with(input._v * other)
    if not _is_sparse(other):
        if broadcast_shapes(input.shape, other.shape) != input.shape:
            raise RuntimeError(
                f"mul: expected a strided tensor that broadcasts to {tuple(input.shape)}, got "
                f"shape {tuple(other.shape)}"
            )
        return input._with(input._v * _coo.picked(other.expand(input.shape), input._i))
    if not input.is_same_size(other) or input.sparse_dim() != other.sparse_dim():
        raise RuntimeError(
            f"mul: expected sparse tensors of the same shape and sparse dimensions, got "
            f"{tuple(input.shape)} with {input.sparse_dim()} and {tuple(other.shape)} with "
            f"{other.sparse_dim()}"
        )
    a, b = input.coalesce(), other.coalesce()
    sizes = a.shape[: a.sparse_dim()]
    left, right = _coo.common(_coo.keys(a._i, sizes), _coo.keys(b._i, sizes))
    values = a._v.index_select(0, left) * b._v.index_select(0, right)
    return SparseTensor(a._i.index_select(1, left), values, a.shape, True)


def div(input: Any, other: Any, *, rounding_mode: Optional[str] = None) -> SparseTensor:
    """The elements divided by a number."""
    if not _is_sparse(input) or not _is_number(other):
        raise RuntimeError("div: expected a sparse tensor and a number, got another divisor")
    if rounding_mode is not None:
        input = input.coalesce()  # rounding is not linear
    return input._with(input._v.div(other, rounding_mode=rounding_mode))


def neg(input: SparseTensor) -> SparseTensor:
    """The negative."""
    return input._with(-input._v)


def pow(input: SparseTensor, exponent: Any) -> SparseTensor:
    """The elements to the power of a number other than 0."""
    if not _is_number(exponent) or exponent == 0:
        raise RuntimeError(f"pow: expected a number other than 0, got {exponent}")
    input = input.coalesce()
    return input._with(input._v.pow(exponent))


# Functions that are 0 at 0.
ELEMENTWISE = (
    "abs absolute asin arcsin asinh arcsinh atan arctan atanh arctanh ceil conj_physical deg2rad "
    "erf erfinv expm1 floor frac isinf isnan isneginf isposinf log1p nan_to_num positive rad2deg "
    "relu round sgn sign signbit sin sinh sqrt square tan tanh trunc"
).split()


def elementwise(name: str) -> Callable[..., SparseTensor]:
    """The function of that name, of each element."""

    def function(input: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        input = input.coalesce()
        return input._with(getattr(input._v, name)(*args, **kwargs))

    function.__name__, function.__doc__ = (name, f"As Tensor.{name}(); of zero it is zero.")
    return function


# ---- over dimensions ----


def _dims(name: str, tensor: SparseTensor, dim: Any) -> Tuple[int, ...]:
    if dim is None or dim == ():
        return tuple(range(tensor.dim()))
    given = (dim,) if isinstance(dim, int) else dim
    dims = tuple(tensor._dim(name, d) for d in given)
    if len(set(dims)) != len(dims):
        raise RuntimeError(f"{name}: expected each dimension once, got {tuple(given)}")
    return dims


def sum_keeping_dtype(input: Any, dim: Any = None, dtype: Any = None, keepdim: bool = False) -> Any:
    """The sum over dimensions: strided when no sparse dimension is left, else sparse. Parts keep
    the dtype."""
    dims = _dims("sum", input, dim)
    values = input._v if dtype is None else input._v.to(dtype)
    count = input.sparse_dim()
    inner = [d - count + 1 for d in dims if d >= count]
    if len(dims) == input.dim() and not keepdim:
        return values.sum(dtype=dtype)
    if inner:
        values = values.sum(inner, keepdim=keepdim, dtype=values.dtype)
    left = [d for d in range(count) if keepdim or d not in dims]
    if not left:
        return values.sum(0, dtype=values.dtype)
    rows = [_C.zeros_like(input._i[d]) if d in dims else input._i[d] for d in left]
    sizes = [1 if d in dims else input.shape[d] for d in left]
    return SparseTensor(_C.stack(rows), values, (*sizes, *values.shape[1:])).coalesce()


def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum over dimensions, of integers as int64."""
    if dtype is None and not (input.is_floating_point() or input.is_complex()):
        dtype = _C.int64
    return sum_keeping_dtype(input, dim, dtype, keepdim)


def norm(
    input: SparseTensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """The norm of all elements."""
    if dim is not None or keepdim:
        raise NotImplementedError(f"norm: expected no dim for a sparse tensor, got {dim}")
    return _norm(input.coalesce()._v.reshape(-1), p, dtype=dtype)


def dropout(input: SparseTensor, p: float = 0.5, train: bool = True) -> SparseTensor:
    """The tensor itself, outside of training."""
    if train:
        raise NotImplementedError("dropout: expected a strided tensor, got a sparse one")
    return input


def softmax(name: str, input: SparseTensor, dim: int, dtype: Any = None) -> SparseTensor:
    """softmax, or log_softmax, over the entries along a dimension; what is not an entry counts as
    minus infinity."""
    input = input.coalesce()
    dim = input._dim(name, dim)
    values = input._v if dtype is None else input._v.to(dtype)
    if not values.is_floating_point():
        raise NotImplementedError(f"{name}: expected a floating dtype, got {values.dtype}")
    if dim >= input.sparse_dim():
        within = getattr(values, name)(dim - input.sparse_dim() + 1)
        return input._with(within)
    others = [d for d in range(input.sparse_dim()) if d != dim]
    lines = _coo.keys(input._i[others], [input.shape[d] for d in others])
    lines, groups = unique(lines, return_inverse=True)
    count = lines.shape[0]
    least = values.new_full((count, *values.shape[1:]), -math.inf)
    highest = least.index_reduce(0, groups, values.detach(), "amax")
    shifted = values - highest.index_select(0, groups)
    total = _coo.grouped(shifted.exp(), groups, count).index_select(0, groups)
    result = shifted - total.log() if name == "log_softmax" else shifted.exp() / total
    return input._with(result)


# ---- several ----


def cat(tensors: Sequence[Any], dim: int = 0) -> SparseTensor:
    """Sparse tensors after each other along a dimension."""
    first = tensors[0]
    for place, t in enumerate(tensors):
        if not _is_sparse(t):
            raise RuntimeError(f"cat: expected sparse tensors, got a strided one at {place}")
        same = t.sparse_dim() == first.sparse_dim() and t.dim() == first.dim()
        dim = first._dim("cat", dim)
        if not same or any(t.shape[d] != first.shape[d] for d in range(t.dim()) if d != dim):
            raise RuntimeError(
                f"cat: expected the same shape except in dimension {dim}, got "
                f"{tuple(first.shape)} and {tuple(t.shape)}"
            )
    if dim >= first.sparse_dim():
        raise NotImplementedError("cat: expected a sparse dimension, got a dense one")
    indices, start = [], 0
    for t in tensors:
        shift = _C.zeros((t.sparse_dim(), 1), dtype=_C.int64, device=t.device)
        shift[dim] = start
        indices.append(t._i + shift)
        start += t.shape[dim]
    size = (*first.shape[:dim], start, *first.shape[dim + 1 :])
    return SparseTensor(_C.cat(indices, 1), _C.cat([t._v for t in tensors]), size)


def stack(tensors: Sequence[Any], dim: int = 0) -> SparseTensor:
    """Sparse tensors along a new dimension."""
    return cat([t.unsqueeze(dim) for t in tensors], dim)

"""Sparse tensors from what programs give: coordinates and values, sizes, strided tensors."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
from typing import Any, Optional, Sequence, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.sparse import _coo
from treadle.sparse._layout import sparse_coo
from treadle.sparse._tensor import SparseTensor, empty


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Optional[Sequence[int]] = None,
    *,
    dtype: Optional[_C.dtype] = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: Optional[bool] = None,
    is_coalesced: Optional[bool] = None,
) -> SparseTensor:
    """A sparse tensor: values at coordinates, zero elsewhere.

    `indices` (sparse dims, nnz) are whole numbers; `values` is (nnz, *dense dims). An entry may
    come more than once: they add up. Without `size` the tensor is as large as the largest indices
    want. sparse_coo_tensor(size) alone has no entries. Gradients flow to `values`.

    RuntimeError for shapes that do not fit each other, or indices outside of `size`; these are
    checked whatever `check_invariants` says.
    """
    name = "sparse_coo_tensor"
    if layout not in (None, sparse_coo):
        raise RuntimeError(f"{name}: expected the layout {sparse_coo}, got {layout}")
    if pin_memory:
        raise NotImplementedError(f"{name}: expected pin_memory=False, got True")
    if values is None:
        return empty(_sizes(name, indices if size is None else size), dtype, device, requires_grad)
    values = _values(values, dtype, device)
    indices = _indices(name, indices, values)
    parts = tuple(values.shape[1:])
    if size is None:
        size = (*_least_sizes(name, indices), *parts)
    size = _sizes(name, size)
    _check(name, indices, values, size)
    made = SparseTensor(indices, _own(values), size, bool(is_coalesced))
    return made.requires_grad_() if requires_grad else made


def _sizes(name: str, size: Any) -> Tuple[int, ...]:
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"{name}: expected size to be a tuple, got {type(size).__name__}")
    size = tuple(int(n) for n in size)
    if any(n < 0 for n in size):
        raise RuntimeError(f"{name}: expected sizes >= 0, got {size}")
    return size


def _values(values: Any, dtype: Any, device: Any) -> Tensor:
    if not isinstance(values, Tensor):
        values = _C.tensor(values, dtype=dtype, device=device)
    else:
        values = values.to(
            dtype=values.dtype if dtype is None else dtype,
            device=values.device if device is None else device,
        )
    return values if values.dim() else values.reshape(1)


def _indices(name: str, indices: Any, values: Tensor) -> Tensor:
    if not isinstance(indices, Tensor):
        indices = _C.tensor(indices)
    if indices.dim() != 2:
        shape = tuple(indices.shape)
        raise RuntimeError(f"{name}: expected indices of shape (sparse dims, nnz), got {shape}")
    return indices.detach().to(device=values.device, dtype=_C.int64)


def _least_sizes(name: str, indices: Tensor) -> Tuple[int, ...]:
    if indices.shape[1] == 0:
        return (0,) * indices.shape[0]
    return tuple(int(row.max()) + 1 for row in indices)


def _check(name: str, indices: Tensor, values: Tensor, size: Tuple[int, ...]) -> None:
    sparse_dims, nnz = indices.shape
    dense_dims = values.dim() - 1
    if nnz != values.shape[0]:
        raise RuntimeError(
            f"{name}: expected as many values as indices, got {nnz} columns of indices and "
            f"{values.shape[0]} values"
        )
    if len(size) != sparse_dims + dense_dims:
        raise RuntimeError(
            f"{name}: expected a size of {sparse_dims} sparse and {dense_dims} dense dimensions, "
            f"got {size}"
        )
    if size[sparse_dims:] != tuple(values.shape[1:]):
        raise RuntimeError(
            f"{name}: expected values of shape {(nnz, *size[sparse_dims:])} for size {size}, "
            f"got {tuple(values.shape)}"
        )
    if nnz == 0 or indices.device.type == "meta":
        return
    for dim, row in enumerate(indices):
        least, largest = int(row.min()), int(row.max())
        if least < 0 or largest >= size[dim]:
            raise RuntimeError(
                f"{name}: expected indices of dimension {dim} from 0 to {size[dim] - 1}, "
                f"got {least if least < 0 else largest}"
            )


def _own(values: Tensor) -> Tensor:
    """The same memory and history, apart from the attributes of the tensor given."""
    return values.view_as(values) if values.requires_grad else values.detach()


def from_dense(
    tensor: Any, sparse_dim: Optional[int] = None, *, layout: Any = None, **blocks: Any
) -> Any:
    """The tensor with its nonzero elements alone kept; with `sparse_dim`, its nonzero parts along
    the first so many dimensions. It is coalesced; gradients flow back to the elements kept."""
    if any(value is not None for value in blocks.values()):
        names = ", ".join(blocks)
        raise NotImplementedError(f"to_sparse: expected no {names}, which sparse_coo has not")
    if layout is not None and layout is not sparse_coo and layout is not _C.strided:
        raise NotImplementedError(f"to_sparse: expected the layout sparse_coo, got {layout}")
    if layout is _C.strided:
        return tensor.to_dense()
    if isinstance(tensor, SparseTensor):
        if sparse_dim not in (None, tensor.sparse_dim()):
            raise RuntimeError(
                f"to_sparse: expected sparse_dim = {tensor.sparse_dim()} of the sparse tensor, "
                f"got {sparse_dim}"
            )
        return tensor
    count = tensor.dim() if sparse_dim is None else sparse_dim
    if not (0 if tensor.dim() == 0 else 1) <= count <= tensor.dim():
        raise RuntimeError(
            f"to_sparse: expected sparse_dim from 1 to {tensor.dim()}, got {sparse_dim}"
        )
    present = tensor.detach() != 0
    if count < tensor.dim():
        present = present.flatten(count).any(-1)
    if count == 0:  # a single number
        indices = _C.zeros((0, int(present)), dtype=_C.int64, device=tensor.device)
    else:
        indices = present.nonzero().t().contiguous()
    return SparseTensor(indices, _own(_coo.picked(tensor, indices)), tuple(tensor.shape), True)


def masked(tensor: Any, mask: Any) -> SparseTensor:
    """The elements of a tensor where a sparse tensor `mask` of the same shape has entries."""
    if not mask.is_sparse:
        raise NotImplementedError("sparse_mask: expected a sparse mask, got a strided one")
    if tuple(tensor.shape) != tuple(mask.shape):
        raise RuntimeError(
            f"sparse_mask: expected a mask of shape {tuple(tensor.shape)}, got {tuple(mask.shape)}"
        )
    indices = mask._indices()
    values = _coo.picked(tensor.to_dense(), indices)
    return SparseTensor(indices, values, tuple(mask.shape), mask.is_coalesced())


class check_sparse_tensor_invariants:  # noqa: N801  a switch that is also a context and a decorator
    """Whether sparse tensors are checked as they are made, in a block, in a function, or by
    enable() and disable(). Kept: they are checked in any case."""

    _enabled = False

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved_state: Optional[bool] = None

    @classmethod
    def is_enabled(cls) -> bool:
        """The value that was set last."""
        return check_sparse_tensor_invariants._enabled

    @classmethod
    def enable(cls) -> None:
        """Set it."""
        check_sparse_tensor_invariants._enabled = True

    @classmethod
    def disable(cls) -> None:
        """Take it back."""
        check_sparse_tensor_invariants._enabled = False

    def __enter__(self) -> None:
        if self.saved_state is not None:
            raise RuntimeError(
                "check_sparse_tensor_invariants: expected to be entered once, got a block in it"
            )
        self.saved_state = self.is_enabled()
        check_sparse_tensor_invariants._enabled = self.state

    def __exit__(self, *_: Any) -> None:
        check_sparse_tensor_invariants._enabled = bool(self.saved_state)
        self.saved_state = None

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return checked

"""Sparse tensors from what programs give: lists, arrays, tensors; sizes that are not given."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
from typing import Any, Optional, Sequence, Tuple

from treadle import _C
from treadle._C import Tensor

COMPRESSED = (_C.sparse_csr, _C.sparse_csc, _C.sparse_bsr, _C.sparse_bsc)


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
) -> Tensor:
    """A sparse tensor: values at coordinates, zero elsewhere.

    `indices` (sparse dims, nnz) are whole numbers; `values` is (nnz, *dense dims). An entry may
    come more than once: they add up. Without `size` the tensor is as large as the largest indices
    want. sparse_coo_tensor(size) alone has no entries. Gradients flow to `values`.

    RuntimeError for shapes that do not fit each other, or indices outside of `size`; these are
    checked whatever `check_invariants` says.
    """
    name = "sparse_coo_tensor"
    if layout not in (None, _C.sparse_coo):
        raise RuntimeError(f"{name}: expected the layout {_C.sparse_coo}, got {layout}")
    if pin_memory:
        raise NotImplementedError(f"{name}: expected pin_memory=False, got True")
    if values is None:
        return empty(_sizes(name, indices if size is None else size), dtype, device, requires_grad)
    values = _values(values, dtype, device)
    indices = indices if isinstance(indices, Tensor) else _C.tensor(indices)
    if indices.dim() != 2:
        shape = tuple(indices.shape)
        raise RuntimeError(f"{name}: expected indices of shape (sparse dims, nnz), got {shape}")
    indices = indices.detach().to(device=values.device, dtype=_C.int64)
    if size is None:
        size = (*_least_sizes(indices), *values.shape[1:])
    made = _C._sparse_coo_tensor(
        indices, _own(values), _sizes(name, size), is_coalesced=bool(is_coalesced)
    )
    return made.requires_grad_() if requires_grad else made


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Optional[Sequence[int]] = None,
    *,
    dtype: Optional[_C.dtype] = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: Optional[bool] = None,
) -> Tensor:
    """A sparse tensor by rows (`layout` sparse_csr, sparse_bsr) or by columns (sparse_csc,
    sparse_bsc).

    `compressed_indices` (*batch, rows + 1) say where rows begin among the entries,
    `plain_indices` (*batch, nnz) are the columns of the entries, in order in each row, and `values`
    is (*batch, nnz, *dense dims), of blocks (*batch, nnz, height, width, *dense dims). Without
    `size` the tensor is as large as the indices want. Gradients flow to `values`.

    RuntimeError for indices that are not those of such a tensor, whatever `check_invariants` says.
    """
    name = "sparse_compressed_tensor"
    if layout not in COMPRESSED:
        raise RuntimeError(
            f"{name}: expected the layout sparse_csr, sparse_csc, sparse_bsr or sparse_bsc, "
            f"got {layout}"
        )
    if pin_memory:
        raise NotImplementedError(f"{name}: expected pin_memory=False, got True")
    values = _values(values, dtype, device)
    compressed, plain = (
        (part if isinstance(part, Tensor) else _C.tensor(part)).detach().to(values.device)
        for part in (compressed_indices, plain_indices)
    )
    if size is None:
        size = _sizes_of_compressed(name, layout, compressed, plain, values)
    made = _C._sparse_compressed_tensor(compressed, plain, _own(values), _sizes(name, size), layout)
    return made.requires_grad_() if requires_grad else made


def _of_layout(layout: Any, parts: str) -> Any:
    name = f"{str(layout).rsplit('.', 1)[-1]}_tensor"

    def make(
        compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, **options: Any
    ) -> Tensor:
        given = options.pop("layout", None)
        if given not in (None, layout):
            raise RuntimeError(f"{name}: expected the layout {layout}, got {given}")
        return sparse_compressed_tensor(
            compressed_indices, plain_indices, values, size, layout=layout, **options
        )

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"sparse_compressed_tensor() of {parts}, with its options."
    return make


sparse_csr_tensor = _of_layout(_C.sparse_csr, "crow_indices, col_indices and values")
sparse_csc_tensor = _of_layout(_C.sparse_csc, "ccol_indices, row_indices and values")
sparse_bsr_tensor = _of_layout(_C.sparse_bsr, "crow_indices, col_indices and blocks")
sparse_bsc_tensor = _of_layout(_C.sparse_bsc, "ccol_indices, row_indices and blocks")


def empty(
    size: Sequence[int], dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A sparse_coo tensor without entries; all its dimensions are sparse."""
    values = _C.zeros((0,), dtype=dtype, device=device)
    indices = _C.zeros((len(size), 0), dtype=_C.int64, device=values.device)
    made = _C._sparse_coo_tensor(indices, values, size, is_coalesced=True)
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


def _least_sizes(indices: Tensor) -> Tuple[int, ...]:
    if indices.shape[1] == 0:
        return (0,) * indices.shape[0]
    return tuple(int(row.max()) + 1 for row in indices)


def _sizes_of_compressed(
    name: str, layout: Any, compressed: Tensor, plain: Tensor, values: Tensor
) -> Tuple[int, ...]:
    batch = tuple(plain.shape[:-1])
    blocked = layout in (_C.sparse_bsr, _C.sparse_bsc)
    if compressed.dim() == 0 or values.dim() < plain.dim() + 2 * blocked:
        raise RuntimeError(
            f"{name}: expected indices and values of {layout}, got shapes "
            f"{tuple(compressed.shape)}, {tuple(plain.shape)} and {tuple(values.shape)}"
        )
    rest = tuple(values.shape[plain.dim() :])
    height, width = rest[:2] if blocked else (1, 1)
    lines = compressed.shape[-1] - 1
    others = int(plain.max()) + 1 if plain.numel() else 0
    rows, columns = (lines, others) if layout in (_C.sparse_csr, _C.sparse_bsr) else (others, lines)
    return (*batch, rows * height, columns * width, *rest[2 * blocked :])


def _own(values: Tensor) -> Tensor:
    """The same memory and history, apart from the attributes of the tensor given."""
    return values.view_as(values) if values.requires_grad else values.detach()


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

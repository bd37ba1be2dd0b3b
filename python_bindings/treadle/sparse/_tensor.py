"""Sparse tensors in coordinate form (COO): the class, its attributes and what leaves entries where
they are.

A sparse tensor is two ordinary tensors: `indices` (sparse dims, nnz) and `values` (nnz, *dense
dims). All that is computed on it is computed on them by differentiable operators, so gradients flow
to the values. The class is no subclass of Tensor, as it has no elements in memory that operators
could be given; to isinstance() it is one, and calls of the library reach it by __torch_function__.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import operator
from typing import Any, Callable, Iterator, Optional, Sequence, Tuple

from treadle import _C, _names
from treadle._C import Tensor
from treadle._tensor import legacy_types
from treadle.sparse import _coo
from treadle.sparse._layout import sparse_coo


def _is_number(part: Any) -> bool:
    if isinstance(part, Tensor):
        return part.dim() == 0 and not part.is_floating_point()
    return hasattr(part, "__index__") and not isinstance(part, bool)


def _dense_only(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"{name}: expected strided tensors, got a sparse one; to_dense() makes it strided"
    )


class SparseTensor:
    """Made by treadle.sparse_coo_tensor() and Tensor.to_sparse()."""

    __class__ = property(lambda self: Tensor)

    is_sparse = True
    is_sparse_csr = is_quantized = is_mkldnn = is_nested = False
    layout = sparse_coo
    names = property(lambda self: (None,) * self.dim())

    def __init__(
        self, indices: Tensor, values: Tensor, size: Sequence[int], is_coalesced: bool = False
    ) -> None:
        self._i = indices
        self._v = values
        self._size = _C.Size(size)
        self._is_coalesced = is_coalesced or values.shape[0] < 2

    @classmethod
    def __torch_function__(
        cls, func: Callable, types: Any, args: Tuple = (), kwargs: Optional[dict] = None
    ) -> Any:
        from treadle.sparse import _dispatch

        return _dispatch.call(func, args, kwargs or {})

    def _with(self, values: Tensor) -> "SparseTensor":
        """Other values at the same places."""
        return SparseTensor(self._i, values, self._size, self._is_coalesced)

    # ---- what it is ----

    shape = property(lambda self: self._size)
    dtype = property(lambda self: self._v.dtype)
    device = property(lambda self: self._v.device)
    ndim = property(lambda self: len(self._size))
    itemsize = property(lambda self: self._v.itemsize)
    is_cuda = property(lambda self: self._v.is_cuda)
    is_meta = property(lambda self: self._v.is_meta)
    is_leaf = property(lambda self: self._v.is_leaf)
    grad_fn = property(lambda self: self._v.grad_fn)

    def size(self, dim: Optional[int] = None) -> Any:
        """All sizes, or that of one dimension."""
        return self._size if dim is None else self._size[self._dim("size", dim)]

    def dim(self) -> int:
        """The number of dimensions, sparse and dense."""
        return len(self._size)

    ndimension = dim

    def numel(self) -> int:
        """The number of elements, zeros included."""
        return self._size.numel()

    nelement = numel

    def sparse_dim(self) -> int:
        """How many dimensions the indices have; they come first."""
        return self._i.shape[0]

    def dense_dim(self) -> int:
        """How many dimensions each value has."""
        return self._v.dim() - 1

    def is_coalesced(self) -> bool:
        """Whether the entries are known to be sorted, with no place twice."""
        return self._is_coalesced

    def _nnz(self) -> int:
        return self._v.shape[0]

    def _indices(self) -> Tensor:
        return self._i

    def _values(self) -> Tensor:
        return self._v.detach()

    def indices(self) -> Tensor:
        """The places of the entries, (sparse dims, nnz), of a coalesced tensor."""
        self._expect_coalesced("indices")
        return self._i

    def values(self) -> Tensor:
        """The values of the entries, (nnz, *dense dims), of a coalesced tensor."""
        self._expect_coalesced("values")
        return self._v.view_as(self._v)

    def _expect_coalesced(self, name: str) -> None:
        if not self._is_coalesced:
            raise RuntimeError(
                f"{name}: expected a coalesced tensor, got one that is not; call coalesce() first"
            )

    def _dim(self, name: str, dim: int) -> int:
        count = max(self.dim(), 1)
        if not -count <= dim < count:
            raise IndexError(
                f"{name}: expected a dimension from {-count} to {count - 1}, got {dim}"
            )
        return dim % count

    def get_device(self) -> int:
        """The number of the device; -1 on the CPU."""
        return self._v.get_device()

    def element_size(self) -> int:
        """Bytes of one element."""
        return self._v.element_size()

    def is_floating_point(self) -> bool:
        """Whether the dtype is a floating one."""
        return self._v.is_floating_point()

    def is_complex(self) -> bool:
        """Whether the dtype is a complex one."""
        return self._v.is_complex()

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """False: there are no strides."""
        return False

    def is_same_size(self, other: Any) -> bool:
        """Whether another tensor has the same shape."""
        return tuple(self.shape) == tuple(other.shape)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of its type, or the tensor as another."""
        if dtype is None:
            module, _, name = self._v.type().rpartition(".")
            return f"{module}.sparse.{name}"
        kind = legacy_types.parse_type(dtype) if isinstance(dtype, str) else dtype
        return self.to(getattr(kind, "dtype", kind))

    # ---- gradients ----

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to the values."""
        return self._v.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._v.requires_grad = value

    def requires_grad_(self, requires_grad: bool = True) -> "SparseTensor":
        """Set whether gradients are wanted."""
        self._v.requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> Optional["SparseTensor"]:
        """The gradient of a leaf, with the same places."""
        if not self.is_leaf or self._v.grad is None:
            return None
        return self._with(self._v.grad)

    @grad.setter
    def grad(self, value: Optional["SparseTensor"]) -> None:
        self._v.grad = None if value is None else value.sparse_mask(self)._v

    def retain_grad(self) -> None:
        """Keep the gradient of a tensor that is no leaf; it is that of its values."""
        self._v.retain_grad()

    def detach(self) -> "SparseTensor":
        """The same entries without history."""
        return self._with(self._v.detach())

    def detach_(self) -> "SparseTensor":
        """Forget the history."""
        self._v = self._v.detach()
        return self

    @property
    def data(self) -> "SparseTensor":
        """The same entries without history."""
        return self.detach()

    @data.setter
    def data(self, value: "SparseTensor") -> None:
        self._take(value.detach().requires_grad_(self.requires_grad))

    # ---- other forms of the same ----

    def coalesce(self) -> "SparseTensor":
        """The tensor with entries in order and each place once; values of one place add up."""
        if self._is_coalesced:
            return self
        indices, values = _coo.coalesced(self._i, self._v, self._size[: self.sparse_dim()])
        return SparseTensor(indices, values, self._size, True)

    def to_dense(self, dtype: Any = None, *, masked_grad: bool = True) -> Tensor:
        """The strided tensor of the same elements."""
        if masked_grad is False and self.requires_grad:
            raise NotImplementedError(
                "to_dense: expected masked_grad=True, got False: gradients flow to entries alone"
            )
        if dtype is not None:
            raise RuntimeError(f"to_dense: expected no dtype for a sparse tensor, got {dtype}")
        zeros = _C.zeros(self._size, dtype=self.dtype, device=self.device)
        return _coo.added(zeros, self._i, self._v)

    def to_sparse(self, sparse_dim: Optional[int] = None, **kwargs: Any) -> Any:
        """The tensor itself; strided with layout=treadle.strided."""
        from treadle.sparse._make import from_dense

        return from_dense(self, sparse_dim, **kwargs)

    def sparse_mask(self, mask: "SparseTensor") -> "SparseTensor":
        """The elements at the places that another sparse tensor has."""
        from treadle.sparse._make import masked

        return masked(self, mask)

    def clone(self, *, memory_format: Any = None) -> "SparseTensor":
        """A copy of indices and values."""
        return SparseTensor(self._i.clone(), self._v.clone(), self._size, self._is_coalesced)

    def to(self, *args: Any, **kwargs: Any) -> "SparseTensor":
        """The tensor with another dtype, or on another device, or both as another tensor has."""
        if args and isinstance(args[0], Tensor):
            args = (args[0].device, args[0].dtype, *args[1:])
        values = self._v.to(*args, **kwargs)
        if values is self._v:
            return self
        indices = self._i.to(values.device)
        return SparseTensor(indices, values, self._size, self._is_coalesced)

    def type_as(self, other: Any) -> "SparseTensor":
        """With the dtype and on the device of another tensor."""
        return self.to(other)

    def cpu(self) -> "SparseTensor":
        """On the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> "SparseTensor":
        """On a CUDA device."""
        self._v.cuda(device)  # says what is missing where there is none
        return self.to("cuda" if device is None else _C.device("cuda", device))

    def new_zeros(self, *size: Any, dtype: Any = None, device: Any = None) -> "SparseTensor":
        """A sparse tensor without entries, by default of the same dtype and device."""
        given = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
        return empty(given, dtype or self.dtype, device or self.device)

    new_empty = new = new_zeros

    def new_tensor(self, data: Any, **kwargs: Any) -> Tensor:
        """A strided tensor of data, by default of the same dtype and device."""
        return self._v.new_tensor(data, **kwargs)

    # ---- dimensions ----

    def permute(self, *dims: Any) -> "SparseTensor":
        """The sparse dimensions in another order, and the dense ones too."""
        given = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
        order = [self._dim("permute", d) for d in given]
        count = self.sparse_dim()
        if sorted(order) != list(range(self.dim())):
            raise RuntimeError(f"permute: expected each dimension once, got {tuple(given)}")
        if any((d < count) != (place < count) for place, d in enumerate(order)):
            raise RuntimeError(
                f"permute: expected {count} sparse dimensions to stay before "
                f"{self.dense_dim()} dense ones, got {tuple(given)}"
            )
        indices = _C.stack([self._i[d] for d in order[:count]]) if count else self._i
        values = self._v.permute(0, *(d - count + 1 for d in order[count:]))
        is_coalesced = self._is_coalesced and order[:count] == list(range(count))
        return SparseTensor(indices, values, [self._size[d] for d in order], is_coalesced)

    def transpose(self, dim0: int, dim1: int) -> "SparseTensor":
        """Two dimensions swapped, both sparse or both dense."""
        a, b = self._dim("transpose", dim0), self._dim("transpose", dim1)
        order = list(range(self.dim()))
        order[a], order[b] = b, a
        return self.permute(*order)

    def t(self) -> "SparseTensor":
        """The transposed matrix."""
        if self.dim() > 2:
            raise RuntimeError(f"t: expected a matrix, got shape {tuple(self.shape)}")
        return self.permute(*reversed(range(self.dim())))

    T = property(lambda self: self.permute(*reversed(range(self.dim()))))
    mT = property(lambda self: self.transpose(-2, -1))

    def unsqueeze(self, dim: int) -> "SparseTensor":
        """With one more dimension, of size 1."""
        if not -self.dim() - 1 <= dim <= self.dim():
            raise IndexError(
                f"unsqueeze: expected a dimension from {-self.dim() - 1} to {self.dim()}, got {dim}"
            )
        dim %= self.dim() + 1
        size = (*self._size[:dim], 1, *self._size[dim:])
        if dim > self.sparse_dim():
            values = self._v.unsqueeze(dim - self.sparse_dim() + 1)
            return SparseTensor(self._i, values, size, self._is_coalesced)
        row = self._i.new_zeros((1, self._nnz()))
        indices = _C.cat([self._i[:dim], row, self._i[dim:]])
        return SparseTensor(indices, self._v, size, self._is_coalesced)

    def select(self, dim: int, index: int) -> Any:
        """One part along a dimension; strided where no sparse dimension is left."""
        dim = self._dim("select", dim)
        if not -self._size[dim] <= index < self._size[dim]:
            raise IndexError(
                f"select: expected an index of dimension {dim} of size {self._size[dim]}, "
                f"got {index}"
            )
        index %= self._size[dim]
        if dim >= self.sparse_dim():
            values = self._v.select(dim - self.sparse_dim() + 1, index)
            size = (*self._size[:dim], *self._size[dim + 1 :])
            return SparseTensor(self._i, values, size, self._is_coalesced)
        there = (self._i[dim] == index).nonzero().reshape(-1)
        values = self._v.index_select(0, there)
        if self.sparse_dim() == 1:
            return values.sum(0, dtype=values.dtype)
        indices = _C.cat([self._i[:dim], self._i[dim + 1 :]]).index_select(1, there)
        size = (*self._size[:dim], *self._size[dim + 1 :])
        return SparseTensor(indices, values, size, self._is_coalesced)

    def index_select(self, dim: int, index: Tensor) -> "SparseTensor":
        """The parts along a dimension that a tensor of indices (n,) names."""
        dim = self._dim("index_select", dim)
        size = self._size[dim]
        if index.dim() != 1:
            raise IndexError(f"index_select: expected a vector, got {tuple(index.shape)}")
        if index.numel() and not 0 <= int(index.min()) <= int(index.max()) < size:
            raise IndexError(f"index_select: expected indices from 0 to {size - 1}, got {index}")
        sizes = (*self._size[:dim], index.shape[0], *self._size[dim + 1 :])
        if dim >= self.sparse_dim():
            values = self._v.index_select(dim - self.sparse_dim() + 1, index)
            return SparseTensor(self._i, values, sizes, self._is_coalesced)
        place, entry = _coo.matches(index.to(_C.int64), self._i[dim], size)
        indices = self._i.index_select(1, entry)
        indices = _C.cat([indices[:dim], place.unsqueeze(0), indices[dim + 1 :]])
        values = self._v.index_select(0, entry)
        return SparseTensor(indices, values, sizes).coalesce()

    def unbind(self, dim: int = 0) -> Tuple[Any, ...]:
        """All parts along a dimension."""
        return tuple(self.select(dim, i) for i in range(self._size[self._dim("unbind", dim)]))

    def __len__(self) -> int:
        if not self._size:
            raise TypeError("len: expected a tensor with dimensions, got one without")
        return self._size[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.unbind())

    def __getitem__(self, item: Any) -> Any:
        found: Any = self
        dim = 0
        for part in item if isinstance(item, tuple) else (item,):
            if part is None:
                found = found.unsqueeze(dim)
                dim += 1
            elif isinstance(part, slice) and part == slice(None):
                dim += 1
            elif not _is_number(part):
                raise _dense_only("indexing by other than numbers, None and whole slices")
            else:
                found = found.select(dim, operator.index(part))
        return found

    # ---- in place ----

    def _take(self, other: "SparseTensor") -> "SparseTensor":
        self._i, self._v = other._i, other._v
        self._size, self._is_coalesced = other._size, other._is_coalesced
        return self

    def _write(self, name: str, other: "SparseTensor") -> "SparseTensor":
        if _C.is_grad_enabled() and self.requires_grad and self.is_leaf:
            raise RuntimeError(f"{name}: expected no leaf that requires grad, got one")
        if not _C.can_cast(other.dtype, self.dtype):
            raise RuntimeError(
                f"{name}: expected a result that casts to {self.dtype}, got {other.dtype}"
            )
        return self._take(other.to(self.device, self.dtype))

    def zero_(self) -> "SparseTensor":
        """Drop all entries."""
        return self._write("zero_", empty(self.shape, self.dtype, self.device))

    def copy_(self, src: "SparseTensor", non_blocking: bool = False) -> "SparseTensor":
        """Take the entries of another sparse tensor of the same shape."""
        if not src.is_sparse or not self.is_same_size(src):
            raise RuntimeError(
                f"copy_: expected a sparse tensor of shape {tuple(self.shape)}, "
                f"got {src.layout} of shape {tuple(src.shape)}"
            )
        return self._write("copy_", src.to(self.device, self.dtype).clone())

    # ---- the language ----

    def __repr__(self) -> str:
        from treadle.sparse._text import sparse_repr

        return sparse_repr(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        from treadle._rebuild import _rebuild_sparse_tensor

        parts = (self._i, self._v.detach(), self._size, self._is_coalesced)
        return _rebuild_sparse_tensor, (sparse_coo, parts)

    def __deepcopy__(self, memo: dict) -> "SparseTensor":
        if not self.is_leaf:
            raise RuntimeError("deepcopy: expected a leaf tensor, got one with a history")
        made = self.detach().clone().requires_grad_(self.requires_grad)
        memo[id(self)] = made
        return made

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("numpy: expected a strided tensor, got a sparse one; call to_dense()")

    numpy = __array__

    def __bool__(self) -> bool:
        return bool(self.item())

    def item(self) -> Any:
        """The number of a tensor of one element."""
        if self.numel() != 1:
            raise RuntimeError(f"item: expected one element, got shape {tuple(self.shape)}")
        return self._v.sum().item()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __eq__(self, other: Any) -> Any:
        raise _dense_only("eq")

    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not callable(getattr(Tensor, name, None)):
            asked = _names.in_words_of_the_program(f"{_names.PACKAGE}.Tensor")
            raise AttributeError(f"a sparse {asked} has no attribute '{name}'")

        def refuse(*args: Any, **kwargs: Any) -> Any:
            raise _dense_only(name)

        return refuse


def empty(
    size: Sequence[int], dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> SparseTensor:
    """A sparse tensor without entries; all its dimensions are sparse."""
    values = _C.zeros((0,), dtype=dtype, device=device)
    indices = _C.zeros((len(size), 0), dtype=_C.int64, device=values.device)
    return SparseTensor(indices, values.requires_grad_(requires_grad), size)


def _converter(name: str) -> Callable[..., SparseTensor]:
    def convert(self: SparseTensor) -> SparseTensor:
        return self.to(getattr(self._v.new_empty(0), name)().dtype)

    convert.__name__, convert.__doc__ = name, f"As Tensor.{name}()."
    return convert


for _name in "double float half bfloat16 long int short char byte bool".split():
    setattr(SparseTensor, _name, _converter(_name))

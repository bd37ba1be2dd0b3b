"""NestedTensor: parts of one tensor whose sizes differ in one dimension, the ragged one.

The values of all parts are one tensor, joined along the ragged dimension, without the dimension of
the parts; offsets say where each part begins. Dimension d of the nested tensor, d >= 1, is
dimension d - 1 of the values. Functions of it are functions of the values, so gradients flow to
them. The class is no subclass of Tensor, as it has no elements in memory that operators could be
given; to isinstance() it is one, and calls of the library reach it by __torch_function__.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple

from treadle import _C
from treadle._C import Tensor

_numbers = itertools.count(1)


class RaggedSize:
    """A size that each part has for itself; equal to that of tensors with the same offsets."""

    def __init__(self, offsets: Tensor) -> None:
        number = vars(offsets).get("_ragged_number")
        if number is None:
            number = offsets._ragged_number = next(_numbers)  # type: ignore[attr-defined]
        self._number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RaggedSize) and self._number == other._number

    def __hash__(self) -> int:
        return hash(self._number)

    def __repr__(self) -> str:
        return f"j{self._number}"


class RaggedShape(tuple):
    """Sizes, one of which is a RaggedSize."""

    def __repr__(self) -> str:
        return f"Size([{', '.join(map(repr, self))}])"


def in_order(name: str, dim: int, count: int) -> int:
    """A dimension, counted from the front. IndexError for one that is not there."""
    if not -count <= dim < count:
        raise IndexError(f"{name}: expected a dimension from {-count} to {count - 1}, got {dim}")
    return dim % count


class NestedTensor:
    """Made by treadle.nested.nested_tensor() and its kin."""

    __class__ = property(lambda self: Tensor)

    is_nested = True
    is_sparse = is_sparse_csr = is_quantized = is_mkldnn = False

    def __init__(
        self,
        values: Tensor,
        offsets: Tensor,
        lengths: Optional[Tensor] = None,
        ragged_idx: int = 1,
        min_seqlen: Optional[int] = None,
        max_seqlen: Optional[int] = None,
        layout: Any = None,
    ) -> None:
        from treadle._C import jagged

        self._values = values
        self._offsets = offsets
        self._lengths = lengths
        self._ragged_idx = ragged_idx
        self._layout = jagged if layout is None else layout
        self._known: dict = {}
        if min_seqlen is not None:
            self._known["min"] = min_seqlen
        if max_seqlen is not None:
            self._known["max"] = max_seqlen

    @classmethod
    def __torch_function__(
        cls, func: Callable, types: Any, args: Tuple = (), kwargs: Optional[dict] = None
    ) -> Any:
        from treadle.nested import _dispatch

        return _dispatch.call(func, args, kwargs or {})

    def __getattr__(self, name: str) -> Any:
        method = None if name.startswith("_") else getattr(Tensor, name, None)
        if not callable(method):
            raise AttributeError(f"'NestedTensor' object has no attribute '{name}'")
        from treadle.nested import _dispatch

        return lambda *args, **kwargs: _dispatch.call(method, (self, *args), kwargs)

    def _like(self, values: Tensor, ragged_idx: Optional[int] = None) -> "NestedTensor":
        """Other values in the same parts."""
        made = NestedTensor(
            values,
            self._offsets,
            self._lengths,
            self._ragged_idx if ragged_idx is None else ragged_idx,
            layout=self._layout,
        )
        made._known = self._known
        return made

    # ---- what it is ----

    dtype = property(lambda self: self._values.dtype)
    device = property(lambda self: self._values.device)
    layout = property(lambda self: self._layout)
    ndim = property(lambda self: self.dim())
    is_cuda = property(lambda self: self._values.is_cuda)
    is_meta = property(lambda self: self._values.is_meta)
    is_leaf = property(lambda self: self._values.is_leaf)
    grad_fn = property(lambda self: self._values.grad_fn)
    itemsize = property(lambda self: self._values.itemsize)

    @property
    def shape(self) -> Any:
        """(parts, ..., ragged size, ...)."""
        sizes: List[Any] = [len(self), *self._values.shape]
        sizes[self._ragged_idx] = RaggedSize(self._offsets)
        return RaggedShape(sizes)

    def size(self, dim: Optional[int] = None) -> Any:
        """All sizes, or that of one dimension."""
        return self.shape if dim is None else self.shape[in_order("size", dim, self.dim())]

    def dim(self) -> int:
        """The number of dimensions, that of the parts included."""
        return self._values.dim() + 1

    ndimension = dim

    def numel(self) -> int:
        """The number of elements of all parts."""
        if self._lengths is None:
            return self._values.numel()
        return sum(part.numel() for part in self.unbind())

    nelement = numel

    def __len__(self) -> int:
        return self._offsets.shape[0] - 1

    def values(self) -> Tensor:
        """The values of all parts, joined."""
        return self._values

    def offsets(self) -> Tensor:
        """Where each part begins, and the last ends: (parts + 1)."""
        return self._offsets

    def lengths(self) -> Optional[Tensor]:
        """How long the parts are, where there are places between them; None otherwise."""
        return self._lengths

    def _bounds(self) -> List[Tuple[int, int]]:
        begins = self._offsets.tolist()
        if self._lengths is None:
            return list(zip(begins, begins[1:]))
        return [(b, b + n) for b, n in zip(begins, self._lengths.tolist())]

    def _sizes(self) -> List[int]:
        return [end - begin for begin, end in self._bounds()]

    def _get_min_seqlen(self) -> int:
        """The smallest ragged size."""
        if "min" not in self._known:
            self._known["min"] = min(self._sizes(), default=0)
        return self._known["min"]

    def _get_max_seqlen(self) -> int:
        """The largest ragged size."""
        if "max" not in self._known:
            self._known["max"] = max(self._sizes(), default=0)
        return self._known["max"]

    _min_seqlen = property(_get_min_seqlen)
    _max_seqlen = property(_get_max_seqlen)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether there are no places between the parts and the values are in order."""
        return self._lengths is None and self._values.is_contiguous()

    def is_same_size(self, other: Any) -> bool:
        """Whether another tensor has the same sizes in every part."""
        return tuple(self.shape) == tuple(other.shape)

    def element_size(self) -> int:
        """Bytes of one element."""
        return self._values.element_size()

    def is_floating_point(self) -> bool:
        """Whether the dtype is a floating one."""
        return self._values.is_floating_point()

    def is_complex(self) -> bool:
        """Whether the dtype is a complex one."""
        return self._values.is_complex()

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        from treadle._C import jagged

        if self._layout != jagged:
            lines = ",\n".join("  " + repr(p).replace("\n", "\n  ") for p in self.unbind())
            return f"nested_tensor([\n{lines}\n])"
        more = ""
        if self.grad_fn is not None:
            more = f", grad_fn={self.grad_fn}"
        elif self.requires_grad:
            more = ", requires_grad=True"
        sizes = ", ".join(map(repr, self.shape))
        return (
            f"NestedTensor(size=({sizes}), offsets={self._offsets}, "
            f"contiguous={self.is_contiguous()}{more})"
        )

    # ---- gradients ----

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to the values."""
        return self._values.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._values.requires_grad = value

    def requires_grad_(self, requires_grad: bool = True) -> "NestedTensor":
        """Set whether gradients are wanted."""
        self._values.requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> Optional["NestedTensor"]:
        """The gradient of a leaf, in the same parts."""
        return None if self._values.grad is None else self._like(self._values.grad)

    @grad.setter
    def grad(self, value: Optional["NestedTensor"]) -> None:
        self._values.grad = None if value is None else value._values

    def retain_grad(self) -> None:
        """Keep the gradient of a tensor that is no leaf; it is that of its values."""
        self._values.retain_grad()

    def backward(self, gradient: Any = None, *args: Any, **kwargs: Any) -> None:
        """Backward from all elements. gradient: nested, in the same parts."""
        given = gradient._values if issubclass(type(gradient), NestedTensor) else gradient
        self._values.backward(given, *args, **kwargs)

    def detach(self) -> "NestedTensor":
        """The same parts without history."""
        return self._like(self._values.detach())

    data = property(detach)

    # ---- parts ----

    def unbind(self, dim: int = 0) -> Tuple[Tensor, ...]:
        """The parts, views of the values."""
        if in_order("unbind", dim, self.dim()) != 0:
            raise RuntimeError(f"unbind: expected dim = 0 for a nested tensor, got {dim}")
        ragged = self._ragged_idx - 1
        return tuple(self._values.narrow(ragged, b, e - b) for b, e in self._bounds())

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.unbind())

    def contiguous(self, memory_format: Any = None) -> "NestedTensor":
        """The same parts, one behind the other in memory."""
        if self.is_contiguous():
            return self
        if self._lengths is None:
            return self._like(self._values.contiguous())
        return joined(self.unbind(), self._ragged_idx, self._layout)

    def _packed(self) -> "NestedTensor":
        """With no places between the parts."""
        return self if self._lengths is None else self.contiguous()

    def _owners(self) -> Tuple[Tensor, Tensor]:
        """For each place along the ragged dimension of the values, its part and where in it."""
        sizes = _C.tensor(self._sizes(), device=self.device, dtype=_C.int64)
        parts = _C.repeat_interleave(_C.arange(len(self), device=self.device), sizes)
        places = _C.arange(parts.shape[0], device=self.device)
        return parts, places - self._offsets.to(_C.int64)[:-1].index_select(0, parts)

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """See treadle.nested.to_padded_tensor()."""
        packed = self._packed()
        ragged = packed._ragged_idx
        largest = packed._get_max_seqlen()
        if output_size is not None:
            if len(output_size) != self.dim():
                raise RuntimeError(
                    f"to_padded_tensor: expected {self.dim()} sizes, got {tuple(output_size)}"
                )
            largest = output_size[ragged]
        values = packed._values.movedim(ragged - 1, 0)
        parts, places = packed._owners()
        within = places < largest
        if not bool(within.all()):
            values, parts, places = values[within], parts[within], places[within]
        padded = values.new_full((len(self), largest, *values.shape[1:]), padding)
        return padded.index_put((parts, places), values).movedim(1, ragged)

    # ---- other forms of the same ----

    def clone(self, *, memory_format: Any = None) -> "NestedTensor":
        """A copy of the values, in the same parts."""
        return self._like(self._values.clone())

    def to(self, *args: Any, **kwargs: Any) -> "NestedTensor":
        """The tensor with another dtype, or on another device."""
        if args and isinstance(args[0], Tensor):
            args = (args[0].device, args[0].dtype, *args[1:])
        values = self._values.to(*args, **kwargs)
        if values is self._values:
            return self
        made = self._like(values)
        if values.device != self.device:
            made._offsets = self._offsets.to(values.device)
            made._lengths = None if self._lengths is None else self._lengths.to(values.device)
        return made

    def __deepcopy__(self, memo: dict) -> "NestedTensor":
        leaf = self._values.detach().clone().requires_grad_(self.requires_grad)
        return self._like(leaf)

    def __reduce_ex__(self, protocol: Any) -> Any:
        given = (self._values, self._offsets, self._lengths, self._ragged_idx)
        return NestedTensor, (*given, None, None, self._layout)

    def __bool__(self) -> bool:
        raise RuntimeError(
            f"bool: expected a tensor of one element, got a nested one of {self.numel()}"
        )

    def tolist(self) -> Any:
        """RuntimeError: parts have lists of different lengths; unbind() gives them."""
        raise RuntimeError("tolist: expected a dense tensor, got a nested one; unbind() it first")

    def numpy(self, *, force: bool = False) -> Any:
        """RuntimeError: parts are different arrays; unbind() gives them."""
        raise RuntimeError("numpy: expected a dense tensor, got a nested one; unbind() it first")


def joined(parts: Sequence[Tensor], ragged_idx: Optional[int] = None, layout: Any = None) -> Any:
    """A nested tensor of parts, through which gradients flow to them. ragged_idx: which dimension
    of it is ragged; without it the one in which the parts differ, 1 where they do not."""
    if not parts:
        raise RuntimeError("nested_tensor: expected at least one part, got none")
    first = parts[0]
    shapes = [tuple(part.shape) for part in parts]
    if first.dim() == 0 or any(part.dim() != first.dim() for part in parts):
        raise RuntimeError(
            f"nested_tensor: expected parts of one number of dimensions, 1 at least, got {shapes}"
        )
    differing = [d for d in range(first.dim()) if len({shape[d] for shape in shapes}) > 1]
    if ragged_idx is None:
        if len(differing) > 1:
            raise RuntimeError(
                f"nested_tensor: expected parts that differ in one size alone, got {shapes}"
            )
        ragged_idx = differing[0] + 1 if differing else 1
    values = _C.cat(list(parts), ragged_idx - 1)
    sizes = [shape[ragged_idx - 1] for shape in shapes]
    offsets = _C.tensor([0, *itertools.accumulate(sizes)], device=values.device)
    return NestedTensor(values, offsets, None, ragged_idx, min(sizes), max(sizes), layout)

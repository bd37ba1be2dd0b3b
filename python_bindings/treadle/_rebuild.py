"""How a tensor is taken apart and put together again, for copying, pickling and checkpoints.

The functions `_rebuild_*` are the only ones that a checkpoint may name; their argument lists are
those of PyTorch's format, so that a file written by either reads in the other. `reduce_tensor` is
the same thing for `copy` and `pickle` inside one program: the elements travel as bytes.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import copyreg
from typing import Any, Callable, Optional

from treadle import _C, _names
from treadle._C import Tensor
from treadle._introspection.build import per_channel_affine, per_tensor_affine
from treadle.autograd.grad_mode import no_grad

# More than any tensor here has; bounds what a file can make the checks below do.
_MOST_DIMENSIONS = 64


def as_view_of(base: Tensor, offset: int, size: tuple, stride: tuple) -> Tensor:
    """A tensor over the memory of `base` (one dimension, contiguous) that autograd does not see as
    a view.

    Every number may come from a hostile file, so each is checked before any memory is looked at.
    """
    if len(size) != len(stride) or len(size) > _MOST_DIMENSIONS:
        raise ValueError(
            f"rebuild_tensor: expected as many strides as sizes, at most {_MOST_DIMENSIONS}, got "
            f"size = {str(size)[:200]}, stride = {str(stride)[:200]}"
        )
    if any(not isinstance(n, int) or n < 0 for n in (*size, *stride, offset)):
        raise ValueError(
            f"rebuild_tensor: expected non-negative integers, got size = {size}, stride = "
            f"{stride}, storage_offset = {offset}"
        )
    last = offset
    if 0 not in size:
        last += 1 + sum((n - 1) * s for n, s in zip(size, stride))
    if base.dim() != 1 or not base.is_contiguous() or last > base.numel():
        raise ValueError(
            f"rebuild_tensor: expected a storage of at least {last} elements for size = {size}, "
            f"stride = {stride}, storage_offset = {offset}, got {base.numel()} elements"
        )
    with no_grad():
        return _C.as_strided(base, size, stride, base.storage_offset() + offset).data


def _rebuild_tensor(storage: Tensor, storage_offset: int, size: tuple, stride: tuple) -> Tensor:
    return as_view_of(storage, storage_offset, tuple(size), tuple(stride))


def _rebuild_tensor_v2(
    storage: Tensor,
    storage_offset: int,
    size: tuple,
    stride: tuple,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:
    tensor = as_view_of(storage, storage_offset, tuple(size), tuple(stride))
    tensor = with_bits(tensor, metadata)
    if requires_grad:
        tensor.requires_grad = True
    return tensor


def _rebuild_tensor_v3(
    storage: Tensor,
    storage_offset: int,
    size: tuple,
    stride: tuple,
    requires_grad: bool,
    backward_hooks: Any,
    dtype: _C.dtype,
    metadata: Any = None,
) -> Tensor:
    """As `_rebuild_tensor_v2`, over a storage of bytes."""
    whole = storage.numel() // dtype.itemsize * dtype.itemsize
    typed = storage[:whole].view(dtype)
    return _rebuild_tensor_v2(
        typed, storage_offset, size, stride, requires_grad, backward_hooks, metadata
    )


def lazy_bits(tensor: Tensor) -> dict[str, bool]:
    """The `metadata` of `with_bits`: whether the tensor is conjugated, and negated, when read."""
    bits = {"conj": tensor.is_conj(), "neg": tensor.is_neg()}
    return {bit: True for bit, is_set in bits.items() if is_set}


def with_bits(tensor: Tensor, metadata: Any) -> Tensor:
    """The tensor, conjugated or negated lazily where `metadata` says so."""
    bits = metadata if isinstance(metadata, dict) else {}
    with no_grad():
        if bits.get("conj"):
            tensor = _C._conj(tensor)
        if bits.get("neg"):
            tensor = _C._neg_view(tensor)
    return tensor.data if bits else tensor


def _rebuild_meta_tensor_no_storage(
    dtype: _C.dtype, size: tuple, stride: tuple, requires_grad: bool
) -> Tensor:
    tensor = _C.empty_strided(tuple(size), tuple(stride), dtype=dtype, device="meta")
    if requires_grad:
        tensor.requires_grad = True
    return tensor


def _rebuild_sparse_tensor(layout: Any, data: Any) -> Tensor:
    """A sparse tensor from its parts, its sizes, and of sparse_coo whether it is coalesced."""
    if layout is _C.sparse_coo:
        indices, values, size, *rest = data
        return _C._layout_tensor(layout, size, [indices, values], [int(bool(rest and rest[0]))])
    if layout not in (_C.sparse_csr, _C.sparse_csc, _C.sparse_bsr, _C.sparse_bsc):
        raise ValueError(f"rebuild_tensor: expected a sparse layout, got {layout}")
    compressed, plain, values, size = data
    return _C._layout_tensor(layout, size, [compressed, plain, values], [])


def sparse_parts(tensor: Tensor) -> tuple:
    """The arguments of `_rebuild_sparse_tensor` for a sparse tensor."""
    parts, fields = (found.values() for found in _C._layout_contents(tensor))
    data = (*(part.detach() for part in parts), tensor.shape, *(bool(f) for f in fields))
    return tensor.layout, data


# ---- layouts and dtypes that a program registered come back by name ----


def _missing(kind: str, name: Any) -> RuntimeError:
    return RuntimeError(
        f"expected a registered {kind}, got {name!r}; register it first, as the program that wrote "
        "it did"
    )


def dtype_named(name: str) -> _C.dtype:
    """A registered dtype by its name. RuntimeError if there is none."""
    found = _C._library_dtype_named(name) if isinstance(name, str) else None
    if found is None:
        raise _missing("dtype", name)
    return found


def layout_named(name: str) -> _C.layout:
    """A layout by its name. RuntimeError if there is none."""
    found = _C._library_layout_named(name) if isinstance(name, str) else None
    if found is None:
        raise _missing("layout", name)
    return found


LAYOUTS_OF_FILES = {
    f"torch.{name}": getattr(_C, name)
    for name in "strided sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc".split()
}


def is_registered(layout: _C.layout) -> bool:
    """Whether the layout is none of those that PyTorch's files name: one that was registered."""
    return layout not in LAYOUTS_OF_FILES.values()


def rebuild_layout_tensor(
    layout: Any, size: Any, parts: list, fields: list, requires_grad: bool
) -> Tensor:
    """A tensor of a registered layout. The layout's check refuses contents that do not fit."""
    tensor = _C._layout_tensor(layout, list(size), list(parts), list(fields))
    return tensor.requires_grad_() if requires_grad else tensor


def parts_of_layout(tensor: Tensor) -> tuple:
    """The arguments of rebuild_layout_tensor for a tensor of a registered layout."""
    parts, fields = (list(found.values()) for found in _C._layout_contents(tensor))
    detached = [part.detach() for part in parts]
    return (tensor.layout, tuple(tensor.shape), detached, fields, tensor.requires_grad)


def quantized_parts(tensor: Tensor) -> tuple:
    """The whole numbers of a quantized tensor, and what `_rebuild_qtensor` is told of their scale:
    the scheme with one scale and zero point, or with those of each channel and the axis."""
    numbers, scales, zero_points = _C._layout_contents(tensor)[0].values()
    if tensor.qscheme() is per_tensor_affine:
        return numbers, (per_tensor_affine, tensor.q_scale(), tensor.q_zero_point())
    return numbers, (per_channel_affine, scales, zero_points, tensor.q_per_channel_axis())


def _rebuild_quantized(numbers: Tensor, parameters: Any) -> Tensor:
    """The quantized tensor of these whole numbers."""
    scheme, scale, zero_point, *axis = parameters
    if scheme is per_tensor_affine and not axis:
        return _C._make_per_tensor_quantized_tensor(numbers, float(scale), int(zero_point))
    if scheme is per_channel_affine and len(axis) == 1:
        return _C._make_per_channel_quantized_tensor(numbers, scale, zero_point, int(axis[0]))
    raise ValueError(f"rebuild_tensor: expected a scheme of quantization, got {scheme}")


def _rebuild_qtensor(
    storage: Tensor,
    storage_offset: int,
    size: tuple,
    stride: tuple,
    quantizer_params: Any,
    requires_grad: bool,
    backward_hooks: Any,
) -> Tensor:
    if not isinstance(quantizer_params, tuple) or len(quantizer_params) not in (3, 4):
        raise ValueError("rebuild_tensor: expected the scheme, the scale and the zero point")
    numbers = as_view_of(storage, storage_offset, tuple(size), tuple(stride))
    return _rebuild_quantized(numbers, quantizer_params)


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Tensor:
    return _names.package().nn.Parameter(data, bool(requires_grad))


def base_from_buffer(buffer: Any, dtype: _C.dtype) -> Tensor:
    """A tensor of one dimension over the whole of `buffer` (which it keeps alive), without
    copying."""
    if len(buffer) == 0:
        return _C.empty((0,), dtype=dtype)
    return _C.frombuffer(buffer, dtype=dtype)


def of_class(cls: type, tensor: Tensor, requires_grad: bool) -> Tensor:
    """The tensor as one of a class, which requires grad or not."""
    if cls is not Tensor:
        return Tensor._make_subclass(cls, tensor, requires_grad)
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_from_bytes(
    buffer: Any,
    dtype: _C.dtype,
    size: tuple,
    requires_grad: bool,
    cls: type,
    device: str = "cpu",
    stride: Optional[tuple] = None,
) -> Tensor:
    """The inverse of `reduce_tensor`. A read-only buffer is copied: nobody may write through it."""
    if memoryview(buffer).readonly:
        buffer = bytearray(buffer)
    size, base = tuple(size), base_from_buffer(buffer, dtype)
    tensor = base.view(size).data if stride is None else as_view_of(base, 0, size, tuple(stride))
    return of_class(cls, tensor if device == "cpu" else tensor.to(device), requires_grad)


def rebuild_without_memory(
    cls: type, dtype: _C.dtype, size: tuple, stride: tuple, requires_grad: bool
) -> Tensor:
    """The inverse of `reduce_tensor` for the meta device."""
    return of_class(cls, _rebuild_meta_tensor_no_storage(dtype, size, stride, False), requires_grad)


def _rebuild_wrapper_subclass(
    cls: type,
    dtype: _C.dtype,
    size: tuple,
    stride: tuple,
    storage_offset: int,
    layout: Any,
    device: Any,
    requires_grad: bool,
) -> Tensor:
    """The inverse of `reduce_tensor` for a tensor that stands for others, which are its
    attributes."""
    return Tensor._make_wrapper_subclass(
        cls,
        size,
        strides=stride,
        storage_offset=storage_offset,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def tensor_bytes(tensor: Tensor) -> memoryview:
    """The elements of `tensor` in row-major order, as bytes; shares its memory where that is
    possible."""
    dense = tensor.detach().cpu().contiguous().resolve_conj().resolve_neg()
    begin = dense.storage_offset() * dense.element_size()
    if dense.numel() == 0:
        return memoryview(b"")
    return memoryview(dense.untyped_storage()).cast("B")[
        begin : begin + dense.numel() * dense.element_size()
    ]


def reduce_bytes(tensor: Tensor) -> tuple[memoryview, tuple]:
    """The elements of `tensor` as bytes, and the other arguments with which `_rebuild_from_bytes`
    makes it again. Its dimensions keep their order in memory; gaps between elements go."""
    ordered, stride = tensor, None
    if not tensor.is_contiguous():
        order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
        ordered = tensor.detach().permute(order).contiguous()
        stride = tuple(ordered.stride(order.index(d)) for d in range(tensor.dim()))
    arguments = (tensor.dtype, tuple(tensor.shape), tensor.requires_grad, type(tensor))
    return tensor_bytes(ordered), (*arguments, str(tensor.device), stride)


def reduce_tensor(tensor: Tensor) -> tuple:
    """The pickled form of a tensor: `(function, arguments)`, and its attributes if it has some.
    A result that requires a gradient comes back as a leaf that does, and on its device, which must
    be there then.
    """
    if _C._is_wrapper(tensor):
        arguments = (tensor.dtype, tuple(tensor.size()), tensor.stride(), tensor.storage_offset())
        place = (tensor.layout, tensor.device, tensor.requires_grad)
        return with_attributes(
            tensor, _rebuild_wrapper_subclass, (type(tensor), *arguments, *place)
        )
    if tensor.is_quantized:
        return with_attributes(tensor, _rebuild_quantized, quantized_parts(tensor))
    if tensor.layout != _C.strided:
        if is_registered(tensor.layout):
            return with_attributes(tensor, rebuild_layout_tensor, parts_of_layout(tensor))
        return with_attributes(tensor, _rebuild_sparse_tensor, sparse_parts(tensor))
    if tensor.device.type == "meta":
        geometry = (tuple(tensor.shape), tensor.stride(), tensor.requires_grad)
        return with_attributes(
            tensor, rebuild_without_memory, (type(tensor), tensor.dtype, *geometry)
        )
    data, arguments = reduce_bytes(tensor)
    return with_attributes(tensor, _rebuild_from_bytes, (bytes(data), *arguments))


def with_attributes(tensor: Tensor, function: Callable, arguments: tuple) -> tuple:
    """The result of `__reduce_ex__`, with the attributes and slots of the tensor as its state."""
    attributes, slots = _attributes(tensor), _slots(tensor)
    if slots:
        return function, arguments, (attributes, slots)
    return (function, arguments, attributes) if attributes else (function, arguments)


def _attributes(tensor: Tensor) -> dict:
    return getattr(tensor, "__dict__", {})


def _slots(tensor: Tensor) -> dict:
    names = copyreg._slotnames(type(tensor))  # type: ignore[attr-defined]
    return {name: getattr(tensor, name) for name in names if hasattr(tensor, name)}


def _require_leaf(tensor: Tensor) -> None:
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "pickle: expected a tensor made by the user (a leaf of the autograd graph), got the "
            "result of an operation that requires grad; call detach() first"
        )


def deepcopy_tensor(tensor: Tensor, memo: dict) -> Tensor:
    """`copy.deepcopy` of a tensor: of the same class, strides, requires_grad and attributes, over a
    copy of its memory. Tensors that shared memory share it again.

    A parameter's gradient is not copied: it belongs to the training that goes on.
    """
    if id(tensor) in memo:
        return memo[id(tensor)]
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "deepcopy: expected a tensor made by the user (a leaf of the autograd graph), got the "
            "result of an operation that requires grad; call detach() first"
        )
    if _C._is_wrapper(tensor):
        copied = _cloned_wrapper(tensor)
    elif tensor.layout != _C.strided:
        copied = of_class(type(tensor), tensor.detach().clone(), tensor.requires_grad)
    else:
        copied = of_class(type(tensor), _over_copied_memory(tensor, memo), tensor.requires_grad)
    memo[id(tensor)] = copied
    # An object that is made anew each time it is asked for, as a gradient is, lives as long as its
    # number in the memo does.
    memo.setdefault(id(memo), []).append(tensor)
    if tensor.grad is not None and not isinstance(tensor, _names.package().nn.Parameter):
        copied.grad = copy.deepcopy(tensor.grad, memo)
    attributes = _attributes(tensor)
    if attributes:
        copied.__dict__.update(copy.deepcopy(attributes, memo))
    for name, value in _slots(tensor).items():
        setattr(copied, name, copy.deepcopy(value, memo))
    return copied


def _cloned_wrapper(tensor: Tensor) -> Tensor:
    """The result of clone() by the class of a tensor that stands for others."""
    with no_grad():
        copied = tensor.clone()
    if type(copied) is not type(tensor):
        raise RuntimeError(
            f"deepcopy: expected clone() of a {type(tensor).__name__} to return one, got "
            f"{type(copied).__name__}"
        )
    return copied.requires_grad_(tensor.requires_grad)


def deepcopy_storage(storage: _C.UntypedStorage, memo: dict) -> _C.UntypedStorage:
    """`copy.deepcopy` of a storage: one copy for all that lies in it."""
    copies = memo.setdefault("treadle.storages", {})
    if storage not in copies:
        copies[storage] = storage._as_tensor(_C.uint8).clone().untyped_storage()
    return copies[storage]


def reduce_storage(storage: _C.UntypedStorage) -> tuple:
    """The pickled form of a storage: its bytes."""
    return _rebuild_storage, (reduce_tensor(storage._as_tensor(_C.uint8)),)


def _rebuild_storage(reduced: tuple) -> _C.UntypedStorage:
    function, arguments = reduced
    return function(*arguments).untyped_storage()


def copy_tensor(tensor: Tensor) -> Tensor:
    """`copy.copy` of a tensor: another one over the same memory, with the same attributes."""
    copied = of_class(type(tensor), tensor.detach().data, tensor.requires_grad)
    if _attributes(tensor):
        copied.__dict__.update(_attributes(tensor))
    for name, value in _slots(tensor).items():
        setattr(copied, name, value)
    return copied


def _over_copied_memory(tensor: Tensor, memo: dict) -> Tensor:
    """A plain tensor that lies in the copy of a storage as `tensor` does in the storage."""
    with no_grad():
        if tensor.is_meta or tensor.numel() == 0:
            return tensor.detach().clone().data
        base = deepcopy_storage(tensor.untyped_storage(), memo)._as_tensor(tensor.dtype)
        copied = base.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).data
        return with_bits(copied, lazy_bits(tensor))

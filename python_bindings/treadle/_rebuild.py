"""How a tensor is taken apart and put together again, for copying, pickling and checkpoints.

The functions `_rebuild_*` are the only ones that a checkpoint may name; their argument lists are
those of PyTorch's format, so that a file written by either reads in the other. `reduce_tensor` is
the same thing for `copy` and `pickle` inside one program: the elements travel as bytes.
"""

from __future__ import annotations

import contextlib
import contextvars
import copyreg
from typing import Any, Iterator, Optional

import treadle

# More than any tensor here has; bounds what a file can make the checks below do.
_MOST_DIMENSIONS = 64


def as_view_of(base: treadle.Tensor, offset: int, size: tuple, stride: tuple) -> treadle.Tensor:
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
    with treadle.no_grad():
        return treadle.as_strided(base, size, stride, base.storage_offset() + offset).data


def _rebuild_tensor(
    storage: treadle.Tensor, storage_offset: int, size: tuple, stride: tuple
) -> treadle.Tensor:
    return as_view_of(storage, storage_offset, tuple(size), tuple(stride))


def _rebuild_tensor_v2(
    storage: treadle.Tensor,
    storage_offset: int,
    size: tuple,
    stride: tuple,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: Any = None,
) -> treadle.Tensor:
    tensor = as_view_of(storage, storage_offset, tuple(size), tuple(stride))
    tensor = _with_bits(tensor, storage, metadata)
    if requires_grad:
        tensor.requires_grad = True
    return tensor


def _rebuild_tensor_v3(
    storage: treadle.Tensor,
    storage_offset: int,
    size: tuple,
    stride: tuple,
    requires_grad: bool,
    backward_hooks: Any,
    dtype: treadle.dtype,
    metadata: Any = None,
) -> treadle.Tensor:
    """As `_rebuild_tensor_v2`, over a storage of bytes."""
    whole = storage.numel() // dtype.itemsize * dtype.itemsize
    typed = storage[:whole].view(dtype)
    return _rebuild_tensor_v2(
        typed, storage_offset, size, stride, requires_grad, backward_hooks, metadata
    )


def _with_bits(tensor: treadle.Tensor, storage: treadle.Tensor, metadata: Any) -> treadle.Tensor:
    """PyTorch may put off a conjugation or a change of sign and keep a bit for it; here it is done,
    in new memory."""
    bits = metadata if isinstance(metadata, dict) else {}
    if not (bits.get("conj") or bits.get("neg")):
        return tensor
    if tensor.numel() > storage.numel():
        raise ValueError(
            f"rebuild_tensor: expected at most {storage.numel()} elements of their own to "
            f"conjugate, got {tensor.numel()}"
        )

    def resolved() -> treadle.Tensor:
        result = treadle.conj_physical(tensor) if bits.get("conj") else tensor
        return treadle.neg(result) if bits.get("neg") else result

    made = resolved()
    waiting = _waiting.get()
    if waiting is not None:
        waiting.append(lambda: made.copy_(resolved()))
    return made


# What is to be done when the storages are filled, where they are filled after the tensors are made.
_waiting: contextvars.ContextVar[Optional[list]] = contextvars.ContextVar("waiting", default=None)


@contextlib.contextmanager
def before_storages_are_filled() -> Iterator[list]:
    """In the block tensors are made over storages that are filled later; then all functions of the
    list are to be called."""
    token = _waiting.set([])
    try:
        yield _waiting.get()
    finally:
        _waiting.reset(token)


def _rebuild_meta_tensor_no_storage(
    dtype: treadle.dtype, size: tuple, stride: tuple, requires_grad: bool
) -> treadle.Tensor:
    tensor = treadle.empty_strided(tuple(size), tuple(stride), dtype=dtype, device="meta")
    if requires_grad:
        tensor.requires_grad = True
    return tensor


def _rebuild_sparse_tensor(layout: Any, data: Any) -> treadle.Tensor:
    indices, values, size, *is_coalesced = data
    if layout is not treadle.sparse_coo:
        raise ValueError(f"rebuild_tensor: expected the layout {treadle.sparse_coo}, got {layout}")
    return treadle.sparse_coo_tensor(
        indices, values, tuple(size), is_coalesced=bool(is_coalesced and is_coalesced[0])
    )


def _rebuild_parameter(
    data: treadle.Tensor, requires_grad: bool, backward_hooks: Any
) -> treadle.Tensor:
    return treadle.nn.Parameter(data, bool(requires_grad))


def base_from_buffer(buffer: Any, dtype: treadle.dtype) -> treadle.Tensor:
    """A tensor of one dimension over the whole of `buffer` (which it keeps alive), without
    copying."""
    if len(buffer) == 0:
        return treadle.empty((0,), dtype=dtype)
    return treadle.frombuffer(buffer, dtype=dtype)


def _rebuild_from_bytes(
    buffer: Any,
    dtype: treadle.dtype,
    size: tuple,
    requires_grad: bool,
    cls: type,
    device: str = "cpu",
) -> treadle.Tensor:
    """The inverse of `reduce_tensor`. A read-only buffer is copied: nobody may write through it."""
    if memoryview(buffer).readonly:
        buffer = bytearray(buffer)
    size = tuple(size)
    tensor = base_from_buffer(buffer, dtype).view(size).data
    if device != "cpu":
        tensor = tensor.to(device)
    if cls is not treadle.Tensor:
        return treadle.Tensor._make_subclass(cls, tensor, requires_grad)
    if requires_grad:
        tensor.requires_grad = True
    return tensor


def tensor_bytes(tensor: treadle.Tensor) -> memoryview:
    """The elements of `tensor` in row-major order, as bytes; shares its memory where that is
    possible."""
    dense = tensor.detach().cpu().contiguous()
    begin = dense.storage_offset() * dense.element_size()
    if dense.numel() == 0:
        return memoryview(b"")
    return memoryview(dense.untyped_storage()).cast("B")[
        begin : begin + dense.numel() * dense.element_size()
    ]


def reduce_tensor(tensor: treadle.Tensor) -> tuple:
    """What `pickle` needs of a tensor: `(function, arguments)`. A result that requires a gradient
    comes back as a leaf that does, and on its device, which must be there then.
    """
    arguments = (
        bytes(tensor_bytes(tensor)),
        tensor.dtype,
        tuple(tensor.shape),
        tensor.requires_grad,
        type(tensor),
    )
    if tensor.device.type != "cpu":
        return _rebuild_from_bytes, (*arguments, str(tensor.device))
    return _rebuild_from_bytes, arguments


def _require_leaf(tensor: treadle.Tensor) -> None:
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "pickle: expected a tensor made by the user (a leaf of the autograd graph), got the "
            "result of an operation that requires grad; call detach() first"
        )


def deepcopy_tensor(tensor: treadle.Tensor, memo: dict) -> treadle.Tensor:
    """`copy.deepcopy` of a tensor: new memory, same strides as `clone`, same requires_grad and
    class."""
    if id(tensor) in memo:
        return memo[id(tensor)]
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "deepcopy: expected a tensor made by the user (a leaf of the autograd graph), got the "
            "result of an operation that requires grad; call detach() first"
        )
    with treadle.no_grad():
        copied = tensor.detach().clone()
    if type(tensor) is not treadle.Tensor:
        copied = treadle.Tensor._make_subclass(type(tensor), copied, tensor.requires_grad)
    elif tensor.requires_grad:
        copied.requires_grad = True
    memo[id(tensor)] = copied
    # An object that is made anew each time it is asked for, as a gradient is, lives as long as its
    # number in the memo does.
    memo.setdefault(id(memo), []).append(tensor)
    if tensor.grad is not None:
        copied.grad = deepcopy_tensor(tensor.grad, memo)
    return copied


def install() -> None:
    """Make `pickle` know plain tensors. Subclasses such as Parameter say it themselves."""
    copyreg.pickle(treadle.Tensor, reduce_tensor)

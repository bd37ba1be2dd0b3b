"""Pairs of functions that take tensors apart for other processes and make them again, under
PyTorch's names, for programs that call them.

    rebuild, arguments = reduce_sparse_tensor(x)      # send both
    rebuild(*arguments)                               # there

The library's own pickles go another way: see `reductions`.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
from typing import Any, Callable, Tuple

from treadle import _C
from treadle._C import Tensor, UntypedStorage
from treadle._rebuild import as_view_of, of_class, rebuild_without_memory
from treadle.multiprocessing.reductions import rebuild_storage, reduce_storage, reduce_tensor
from treadle.nn.parameter import Parameter
from treadle.storage import TypedStorage


def fd_id(fd: int) -> Tuple[int, int]:
    """The identity of a file, the same for all its descriptors: (inode, device)."""
    status = os.fstat(fd)
    return status.st_ino, status.st_dev


# ---- memories that are there already -------------------------------------------------------------


class StorageWeakRef:
    """The identity of a storage, which is not kept by it: two are equal where the storage is the
    same one."""

    def __init__(self, storage: Any) -> None:
        untyped = storage.untyped() if isinstance(storage, TypedStorage) else storage
        self.cdata = untyped._cdata

    def expired(self) -> bool:
        """NotImplementedError: a storage does not tell when it goes."""
        raise NotImplementedError("StorageWeakRef.expired: a storage does not tell when it goes")

    def __hash__(self) -> int:
        return self.cdata

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageWeakRef) and self.cdata == other.cdata


class SharedCache(dict):
    """A map from the identity of a memory to that of a storage. The library puts nothing in: the
    same memory may be under several storages."""

    def free_dead_references(self) -> None:
        """NotImplementedError where something was put in: see StorageWeakRef.expired."""
        for key, reference in list(self.items()):
            if reference.expired():
                del self[key]


shared_cache = SharedCache()


def storage_from_cache(cls: type, key: Any) -> Any:
    """None: storages are not found by the identity of their memory."""
    return None


# ---- storages ------------------------------------------------------------------------------------


def rebuild_storage_empty(cls: Any) -> Any:
    """A storage of no bytes."""
    return cls()


def rebuild_storage_fd(cls: Any, df: Any, size: int) -> UntypedStorage:
    """The storage over the memory of a descriptor, which `df.detach()` gives."""
    return UntypedStorage._new_shared_fd_cpu(df.detach(), size)


def rebuild_storage_filename(
    cls: Any, manager: Any, handle: Any, size: int, dtype: Any = None
) -> Any:
    """The storage over shared memory by its name in the system, of `size` bytes, or numbers where
    there is a dtype."""
    name = os.fsdecode(handle).lstrip("/")
    count = size if dtype is None else size * dtype.itemsize
    storage = UntypedStorage.from_file(f"/dev/shm/{name}", True, count)  # noqa: S108  it is there
    return storage if dtype is None else rebuild_typed_storage(storage, dtype)


def rebuild_typed_storage(storage: UntypedStorage, dtype: Any) -> TypedStorage:
    """The inverse of reduce_typed_storage."""
    return TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


def reduce_typed_storage(storage: Any) -> Tuple[Callable, Tuple]:
    """How a storage of numbers is made of one of bytes."""
    return rebuild_typed_storage, (storage.untyped(), storage.dtype)


def rebuild_typed_storage_child(storage: UntypedStorage, storage_type: Any) -> Any:
    """The inverse of reduce_typed_storage_child."""
    return storage_type(wrap_storage=storage)


def reduce_typed_storage_child(storage: Any) -> Tuple[Callable, Tuple]:
    """How a storage of one dtype, as FloatStorage, is made of one of bytes."""
    return rebuild_typed_storage_child, (storage.untyped(), type(storage))


# ---- tensors -------------------------------------------------------------------------------------


def rebuild_tensor(cls: type, storage: Any, metadata: Tuple) -> Tensor:
    """The tensor over a storage of numbers. metadata: (offset, size, stride, requires_grad)."""
    offset, size, stride, requires_grad = metadata
    base = storage.untyped()._as_tensor(storage.dtype)
    return of_class(cls, as_view_of(base, offset, tuple(size), tuple(stride)), requires_grad)


def rebuild_meta_tensor(
    tensor_cls: type,
    tensor_size: Any,
    tensor_stride: Any,
    tensor_offset: int,
    dtype: Any,
    storage_size_bytes: int,
    requires_grad: bool,
) -> Tensor:
    """The tensor without elements of these sizes."""
    size, stride = tuple(tensor_size), tuple(tensor_stride)
    return rebuild_without_memory(tensor_cls, dtype, size, stride, requires_grad)


def rebuild_sparse_coo_tensor(
    rebuild_indices_func: Callable,
    rebuild_indices_args: Tuple,
    rebuild_values_func: Callable,
    rebuild_values_args: Tuple,
    shape: Any,
    is_coalesced: bool,
) -> Any:
    """The inverse of reduce_sparse_tensor."""
    from treadle.sparse import sparse_coo_tensor

    indices = rebuild_indices_func(*rebuild_indices_args)
    values = rebuild_values_func(*rebuild_values_args)
    return sparse_coo_tensor(indices, values, tuple(shape), is_coalesced=is_coalesced)


def reduce_sparse_tensor(sparse: Any) -> Tuple[Callable, Tuple]:
    """How a sparse tensor is made of its parts. NotImplementedError for a strided one."""
    if sparse.layout == _C.strided:
        raise NotImplementedError(
            f"reduce_sparse_tensor: expected a sparse layout, got {sparse.layout}"
        )
    parts = [reduce_tensor(part.detach())[:2] for part in _C._layout_contents(sparse)[0].values()]
    given = tuple(argument for part in parts for argument in part)
    if sparse.layout == _C.sparse_coo:
        return rebuild_sparse_coo_tensor, (*given, tuple(sparse.shape), sparse.is_coalesced())
    return rebuild_sparse_compressed_tensor, (*given, tuple(sparse.shape), sparse.layout)


def rebuild_sparse_compressed_tensor(
    rebuild_compressed_indices_func: Callable,
    rebuild_compressed_indices_args: Tuple,
    rebuild_plain_indices_func: Callable,
    rebuild_plain_indices_args: Tuple,
    rebuild_values_func: Callable,
    rebuild_values_args: Tuple,
    shape: Any,
    layout: Any,
) -> Any:
    """The inverse of reduce_sparse_tensor."""
    from treadle.sparse import sparse_compressed_tensor

    compressed = rebuild_compressed_indices_func(*rebuild_compressed_indices_args)
    plain = rebuild_plain_indices_func(*rebuild_plain_indices_args)
    values = rebuild_values_func(*rebuild_values_args)
    return sparse_compressed_tensor(compressed, plain, values, tuple(shape), layout=layout)


def rebuild_nested_tensor(
    rebuild_buffer_func: Callable,
    rebuild_buffer_args: Tuple,
    rebuild_sizes_func: Callable,
    rebuild_sizes_args: Tuple,
    rebuild_strides_func: Callable,
    rebuild_strides_args: Tuple,
    rebuild_offsets_func: Callable,
    rebuild_offsets_args: Tuple,
) -> Any:
    """A nested tensor of the parts of one memory: sizes and strides are (parts, dimensions),
    offsets (parts). The parts are copied, as they lie anywhere."""
    from treadle.nested._tensor import joined

    buffer = rebuild_buffer_func(*rebuild_buffer_args)
    sizes = rebuild_sizes_func(*rebuild_sizes_args).tolist()
    strides = rebuild_strides_func(*rebuild_strides_args).tolist()
    offsets = rebuild_offsets_func(*rebuild_offsets_args).tolist()
    parts = [buffer.as_strided(*place) for place in zip(sizes, strides, offsets)]
    return joined(parts, layout=_C.strided)


def reduce_nested_tensor(nt: Any) -> Tuple[Callable, Tuple]:
    """How a nested tensor is made of its memory, and the sizes, strides and offsets of parts."""
    parts = nt.detach().unbind()
    buffer = _C.cat([part.reshape(-1) for part in parts])
    sizes = [list(part.shape) for part in parts]
    strides = [list(_C.empty(part.shape, device="meta").stride()) for part in parts]
    counts = [0, *(part.numel() for part in parts[:-1])]
    offsets = _C.tensor(counts).cumsum(0)
    tensors = (buffer, _C.tensor(sizes), _C.tensor(strides), offsets)
    return rebuild_nested_tensor, tuple(x for t in tensors for x in reduce_tensor(t)[:2])


# ---- devices -------------------------------------------------------------------------------------


def rebuild_event(device: Any, handle: Any) -> Any:
    """The event of another process, on a device whose module has such events."""
    from treadle._device.registry import get_device_module

    module = get_device_module(_C.device(device))
    return module.Event.from_ipc_handle(device, handle)


def rebuild_cuda_tensor(
    tensor_cls: type,
    tensor_size: Any,
    tensor_stride: Any,
    tensor_offset: int,
    storage_cls: Any,
    dtype: Any,
    storage_device: Any,
    storage_handle: Any,
    storage_size_bytes: int,
    storage_offset_bytes: int,
    requires_grad: bool,
    ref_counter_handle: Any,
    ref_counter_offset: int,
    event_handle: Any,
    event_sync_required: bool,
) -> Tensor:
    """The tensor without elements where there is no memory, NotImplementedError for others: the
    memory of devices is not shared by processes."""
    if storage_handle is None or storage_size_bytes == 0:
        made = _C.empty(tuple(tensor_size), dtype=dtype, device=storage_device)
        return Parameter(made, requires_grad) if issubclass(tensor_cls, Parameter) else made
    raise NotImplementedError(
        f"rebuild_cuda_tensor: expected a tensor on the cpu, got one on {storage_device}, whose "
        "memory processes do not share; send tensor.cpu() instead"
    )


__all__ = [
    "SharedCache", "StorageWeakRef", "fd_id", "rebuild_cuda_tensor", "rebuild_event",
    "rebuild_meta_tensor", "rebuild_nested_tensor", "rebuild_sparse_compressed_tensor",
    "rebuild_sparse_coo_tensor", "rebuild_storage", "rebuild_storage_empty", "rebuild_storage_fd",
    "rebuild_storage_filename", "rebuild_tensor", "rebuild_typed_storage",
    "rebuild_typed_storage_child", "reduce_nested_tensor", "reduce_sparse_tensor", "reduce_storage",
    "reduce_typed_storage", "reduce_typed_storage_child", "shared_cache", "storage_from_cache",
]  # fmt: skip

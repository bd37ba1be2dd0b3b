"""How tensors go to another process: their memory moves into shared memory, once, and what is
pickled is how they lie in it.

The memory is a file without a name, known by its descriptor. Where the pickle goes through one of
this package's queues and pipes, descriptors go beside it, through the same connection; so the
sender may end before the receiver looks. Where a process is being started they are inherited, and
everywhere else (a queue of the standard library, say) `multiprocessing` hands them over, for which
the sender must live.

    payload, memories = dumps(tensor)      # send the payload and the descriptors of the memories
    with arriving(descriptors):
        tensor = ForkingPickler.loads(payload)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import os
import threading
from multiprocessing import context, reduction
from multiprocessing.reduction import ForkingPickler
from typing import Any, Iterator, Optional

from treadle import _C, _names
from treadle._C import Tensor, UntypedStorage
from treadle._rebuild import (
    as_view_of,
    lazy_bits,
    of_class,
    rebuild_without_memory,
    with_attributes,
    with_bits,
)
from treadle.nn.parameter import Buffer, Parameter


class _Thread(threading.local):
    # Memories whose descriptors go beside the pickle that is being written; None where they cannot.
    outgoing: Optional[dict[UntypedStorage, int]] = None
    # Descriptors that came beside the pickle that is being read.
    arrived: list[int] = []


_thread = _Thread()


def dumps(obj: Any) -> tuple[Any, list[UntypedStorage]]:
    """The pickle of an object, and the memories whose descriptors are to go with it."""
    before, _thread.outgoing = _thread.outgoing, {}
    try:
        payload = ForkingPickler.dumps(obj)
        return payload, list(_thread.outgoing)
    finally:
        _thread.outgoing = before


@contextlib.contextmanager
def arriving(descriptors: list[int]) -> Iterator[None]:
    """While a pickle is read, the descriptors that came with it; they are closed after."""
    before, _thread.arrived = _thread.arrived, descriptors
    try:
        yield
    finally:
        _thread.arrived = before
        for descriptor in descriptors:
            os.close(descriptor)


# ---- what stands for a memory in a pickle ------------------------------------------------------


class _Beside:
    """A memory whose descriptor comes beside the pickle, as number `index`."""

    def __init__(self, index: int) -> None:
        self.index = index

    def open(self, nbytes: int) -> UntypedStorage:
        descriptor = os.dup(_thread.arrived[self.index])
        return UntypedStorage._new_shared_fd_cpu(descriptor, nbytes)


class _Inherited:
    """A memory whose descriptor `multiprocessing` takes to the other process."""

    def __init__(self, descriptor: int) -> None:
        self.duplicate = reduction.DupFd(descriptor)
        self.storage: Optional[UntypedStorage] = None

    def __getstate__(self) -> dict:
        return {"duplicate": self.duplicate, "storage": None}

    def open(self, nbytes: int) -> UntypedStorage:
        if self.storage is None:
            descriptor = self.duplicate.detach()
            self.storage = UntypedStorage._new_shared_fd_cpu(descriptor, nbytes)
        return self.storage


def _handle(storage: UntypedStorage) -> Any:
    descriptor, _ = storage._share_fd_cpu_()
    if _thread.outgoing is not None:
        return _Beside(_thread.outgoing.setdefault(storage, len(_thread.outgoing)))
    starting = context.get_spawning_popen()
    if starting is None:
        return _Inherited(descriptor)
    # A process inherits a descriptor once, however many tensors lie in its memory.
    known = starting.__dict__.setdefault("_treadle_memories", {})
    if descriptor not in known:
        known[descriptor] = _Inherited(descriptor)
    return known[descriptor]


def _open(handle: Any, nbytes: int) -> UntypedStorage:
    return _C.empty(0).untyped_storage() if handle is None else handle.open(nbytes)


# ---- tensors and storages ----------------------------------------------------------------------


def rebuild_storage(handle: Any, nbytes: int) -> UntypedStorage:
    """The inverse of reduce_storage."""
    return _open(handle, nbytes)


def reduce_storage(storage: UntypedStorage) -> tuple:
    """The pickled form of a storage: its handle and its size."""
    if storage.device.type != "cpu":
        raise RuntimeError(
            "expected a tensor on the cpu to send to another process, got one on "
            f"{storage.device}, whose memory other processes cannot share; "
            "send tensor.cpu() instead"
        )
    nbytes = storage.nbytes()
    return rebuild_storage, (_handle(storage) if nbytes else None, nbytes)


def _rebuild_shared(
    cls: type,
    handle: Any,
    nbytes: int,
    dtype: _C.dtype,
    offset: int,
    size: tuple,
    stride: tuple,
    requires_grad: bool,
    bits: dict[str, bool],
) -> Tensor:
    """The inverse of reduce_tensor: a tensor over the same memory."""
    base = _open(handle, nbytes)._as_tensor(dtype)
    tensor = with_bits(as_view_of(base, offset, size, stride), bits)
    return of_class(cls, tensor, requires_grad)


def _rebuild_of_parts(
    cls: type, requires_grad: bool, layout: Any, size: tuple, parts: list, fields: list
) -> Tensor:
    """The inverse of reduce_tensor for another layout than strided."""
    return of_class(cls, _C._layout_tensor(layout, size, parts, fields), requires_grad)


def reduce_tensor(tensor: Tensor) -> tuple:
    """The pickled form of a tensor: where its memory is, and how it lies there. RuntimeError for
    the result of an operation that requires grad, whose history cannot go with it."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "expected a leaf of the autograd graph to send to another process, got the result of "
            "an operation that requires grad; send tensor.detach() instead"
        )
    if tensor.layout != _C.strided:
        parts, fields = (list(found.values()) for found in _C._layout_contents(tensor))
        made = (tensor.layout, tuple(tensor.shape), [part.detach() for part in parts], fields)
        arguments: tuple = (type(tensor), tensor.requires_grad, *made)
        return with_attributes(tensor, _rebuild_of_parts, arguments)
    place = (tuple(tensor.shape), tensor.stride(), tensor.requires_grad)
    if tensor.device.type == "meta":
        arguments = (type(tensor), tensor.dtype, *place)
        return with_attributes(tensor, rebuild_without_memory, arguments)
    _, (handle, nbytes) = reduce_storage(tensor.untyped_storage())
    offset = tensor.storage_offset()
    arguments = (type(tensor), handle, nbytes, tensor.dtype, offset, *place, lazy_bits(tensor))
    return with_attributes(tensor, _rebuild_shared, arguments)


def init_reductions() -> None:
    """Have `multiprocessing` send tensors this way, from now on."""
    ForkingPickler.register(UntypedStorage, reduce_storage)
    ForkingPickler.register(Tensor, reduce_tensor)
    ForkingPickler.register(Parameter, reduce_tensor)
    ForkingPickler.register(Buffer, reduce_tensor)


init_reductions()


def __getattr__(name: str) -> Any:
    """The functions of PyTorch's pickles, which those of this library do not use."""
    from treadle.multiprocessing import _reductions_of_parts

    if name not in _reductions_of_parts.__all__:
        raise _names.missing(__name__, name)
    return getattr(_reductions_of_parts, name)

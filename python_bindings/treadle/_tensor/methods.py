"""Methods of Tensor that are written in Python: element by element work, forms of old programs, and
what needs a part that this library does not have, which says so.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
import warnings
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

from treadle import _C, _names, meta
from treadle._C import Tensor
from treadle._names import in_words_of_the_program
from treadle._tensor import legacy_types, untyped_storage

_type = Tensor.type
_set = Tensor.set_


def _elements(name: str, *tensors: Tensor) -> None:
    for t in tensors:
        if t.device.type != "cpu":
            raise TypeError(f"{name}: expected tensors on the cpu, got one on {t.device}")
        if t.requires_grad:
            raise RuntimeError(
                f"{name}: expected tensors that do not require grad, got one that does"
            )


def _written(self: Tensor, values: Sequence[Any]) -> Tensor:
    new = _C.tensor(list(values), dtype=self.dtype) if len(values) else self.new_empty((0,))
    return self.copy_(new.reshape(self.shape))


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Write callable(x) to every element x."""
    _elements("apply_", self)
    return _written(self, [callable(x) for x in self.reshape(-1).tolist()])


def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Write callable(x, y) to every element x, with the element y of `tensor`, broadcast."""
    _elements("map_", self, tensor)
    other = tensor.expand(self.shape).reshape(-1).tolist()
    return _written(self, [callable(x, y) for x, y in zip(self.reshape(-1).tolist(), other)])


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """As map_(), with the elements of two other tensors."""
    _elements("map2_", self, x, y)
    lists = (t.expand(self.shape).reshape(-1).tolist() for t in (x, y))
    return _written(self, [callable(*v) for v in zip(self.reshape(-1).tolist(), *lists)])


def type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the tensor's type; or the tensor as another: a dtype, FloatTensor, or its
    name."""
    if dtype is None:
        return in_words_of_the_program(_type(self))
    kind = legacy_types.parse_type(dtype) if isinstance(dtype, str) else dtype
    if isinstance(kind, legacy_types.LegacyTensorType):
        return self.to(device=kind.device_type, dtype=kind.dtype, non_blocking=non_blocking)
    return _type(self, dtype)


def set_(
    self: Tensor,
    source: Any = None,
    storage_offset: int = 0,
    size: Optional[Sequence[int]] = None,
    stride: Optional[Sequence[int]] = None,
) -> Tensor:
    """Make the tensor one over the memory of another, or of a storage, with the given geometry."""
    if not isinstance(self, Tensor):
        raise TypeError(f"set_: expected a tensor, got {type(self).__name__}")
    if source is None:
        return _set(self, self.new_empty((0,)))
    if isinstance(source, _C.UntypedStorage):
        source = source._as_tensor(self.dtype)
    elif hasattr(source, "untyped"):  # a TypedStorage
        source = source.untyped()._as_tensor(source.dtype)
    elif not isinstance(source, Tensor):
        source = _C.frombuffer(source, dtype=self.dtype)
    if size is None:
        return _set(self, source[storage_offset:] if storage_offset else source)
    strides = _contiguous(size) if stride is None or len(stride) == 0 else stride
    if tuple(size) != tuple(self.shape):  # as programs rely on: a tensor of its own shape must fit
        source = _with_room(source, size, strides, storage_offset)
    return _set(self, source.as_strided(size, strides, storage_offset))


def _with_room(source: Tensor, size: Sequence[int], strides: Sequence[int], offset: int) -> Tensor:
    """The tensor over its whole storage, which has grown if the geometry reaches beyond it."""
    valid = len(size) == len(strides) and min((offset, *size, *strides)) >= 0
    if not valid or 0 in size:
        return source
    last = offset + sum((n - 1) * step for n, step in zip(size, strides))
    memory = source.untyped_storage()
    needed = (last + 1) * source.element_size()
    if needed <= memory.nbytes():
        return source
    memory.resize_(needed)
    return memory._as_tensor(source.dtype)


def storage(self: Tensor) -> Any:
    """The numbers under the tensor, which views share: a TypedStorage."""
    from treadle.storage import storage_of

    return storage_of(self)


def storage_type(self: Tensor) -> Any:
    """The class of such storages: FloatStorage and the like; None for a dtype without one."""
    from treadle import storage as storages

    name = storages._dtype_to_storage_type_map().get(self.dtype)
    return None if name is None else getattr(storages, name)


def _contiguous(size: Sequence[int]) -> Tuple[int, ...]:
    strides, step = [], 1
    for n in reversed(size):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """A copy in memory of the CPU from which a device copies faster; the tensor itself where the
    device's backend has no such memory, or where it lies in it already. `device` is the kind of
    device, that of the only backend if it is None. RuntimeError where there is no such device, and
    for a tensor that is not on the CPU."""
    from treadle._device import registry

    if self.device.type != "cpu":
        raise RuntimeError(f"pin_memory: expected a tensor on the cpu, got one on {self.device}")
    name = registry.only_backend() if device is None else _C.device(device).type
    if name not in _C._backends():
        raise RuntimeError(
            f"pin_memory: expected a device that copies from the memory of the CPU, got "
            f"{name or _how_many(len(_C._backends()))}"
        )
    if _C._backend_is_pinned(self):
        return self
    pinned = _C._backend_empty_pinned(name, tuple(self.shape), self.dtype)
    return self if pinned is None else pinned.copy_(self)


def _how_many(backends: int) -> str:
    return f"{backends} of them and no `device`" if backends else "none"


def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether it lies in memory of the CPU that pin_memory() took from a backend."""
    return _C._backend_is_pinned(self)


def record_stream(self: Tensor, stream: Any) -> None:
    """Say that work in a stream uses the tensor: when it is gone, its memory is not used again
    before that work is done. RuntimeError for a tensor on a device without streams, and for a
    stream of another device."""
    if self.device.type not in _C._backends():
        raise RuntimeError(
            f"record_stream: expected a tensor on a device with streams, got one on {self.device}"
        )
    if stream.device != self.device:
        raise RuntimeError(
            f"record_stream: expected a stream of {self.device}, got one of {stream.device}"
        )
    _C._backend_record_stream(self, stream.stream_id)


def _strided_parts(tensor: Tensor) -> List[Tensor]:
    """The tensors in whose memory the tensor lies."""
    if tensor.layout == _C.strided:
        return [tensor]
    return list(_C._layout_contents(tensor)[0].values())


def share_memory_(self: Tensor) -> Tensor:
    """Move the tensor's memory, with all that lie in it, to where other processes can share it; see
    `multiprocessing`. Sent to another process the tensor is then the same memory there."""
    if self.device.type not in ("cpu", "meta"):
        raise RuntimeError(
            f"share_memory_: expected a tensor on the cpu, got one on {self.device}, whose memory "
            "other processes cannot share; use tensor.cpu() first"
        )
    if self.device.type == "cpu":
        from treadle.multiprocessing.reductions import init_reductions

        init_reductions()  # the standard library's queues and processes share tensors, too
        for part in _strided_parts(self):
            part.untyped_storage().share_memory_()
    return self


def is_shared(self: Tensor) -> bool:
    """Whether the tensor's memory is one that other processes can share."""
    return self.device.type == "cpu" and all(
        part.untyped_storage().is_shared() for part in _strided_parts(self)
    )


def dim_order(
    self: Tensor, *, ambiguity_check: Union[bool, List[_C.memory_format]] = False
) -> Tuple[int, ...]:
    """The dimensions from the one with the largest stride to that with the smallest.

    RuntimeError with `ambiguity_check` where the strides allow another order; a list of memory
    formats is for tensors that are in exactly one of them.
    """
    is_list = isinstance(ambiguity_check, list)
    if not isinstance(ambiguity_check, bool) and not (
        is_list and all(isinstance(f, _C.memory_format) for f in ambiguity_check)
    ):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    if ambiguity_check is not False:
        strides = self.stride()
        several = 1 in self.shape or any(a == b for a, b in zip(strides, strides[1:]))
        formats: Any = ambiguity_check if is_list else []
        if several and sum(self.is_contiguous(memory_format=f) for f in formats) != 1:
            raise RuntimeError(
                "The tensor does not have unique dim order, or cannot map to exact one of the "
                "given memory formats."
            )
    return tuple(sorted(range(self.dim()), key=lambda d: -self.stride(d)))


def resize(self: Tensor, *sizes: Any) -> Tensor:
    """The tensor with other sizes, of as many elements; the older form of `reshape`, which warns.
    RuntimeError for another number of elements."""
    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    given = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    if math.prod(given) != self.numel():
        raise RuntimeError(
            f"resize: expected sizes of {self.numel()} elements, got {tuple(given)}; resize_ "
            "changes their number"
        )
    return self.reshape(given)


def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """As resize(), with the sizes of another tensor."""
    return resize(self, tuple(tensor.shape))


def __copy__(self: Tensor) -> Tensor:
    """A tensor over the same memory, with the same attributes: what copy.copy() makes."""
    from treadle._rebuild import copy_tensor

    return copy_tensor(self)


def _deepcopy_storage(self: _C.UntypedStorage, memo: dict) -> _C.UntypedStorage:
    from treadle._rebuild import deepcopy_storage

    return deepcopy_storage(self, memo)


def _reduce_storage(self: _C.UntypedStorage, protocol: int) -> tuple:
    from treadle._rebuild import reduce_storage

    return reduce_storage(self)


def __reversed__(self: Tensor) -> Tensor:
    """The tensor with its first dimension turned round; of no dimensions, the tensor itself."""
    return self.flip(0) if self.dim() else self


def to_sparse_coo(self: Tensor) -> Tensor:
    """A sparse tensor of the nonzero elements."""
    return self.to_sparse()


def to_padded_tensor(self: Tensor, padding: float, output_size: Any = None) -> Tensor:
    """The padded form of a nested tensor; RuntimeError for a dense one."""
    raise RuntimeError("to_padded_tensor: expected a nested tensor, got a dense one")


# Questions about devices and layouts that no tensor here has.
_NEVER = "is_ipu is_maia is_mtia is_vulkan is_xla volatile"
# Methods that are functions of the package, too, which is asked for them when they are called.
_OF_PACKAGE = "eig is_distributed lstsq smm solve sspaddmm"


def _of_package(name: str) -> Callable[..., Any]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return getattr(_names.package(), name)(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"{name}() of this tensor."
    return method


def polygamma_(self: Tensor, n: int) -> Tensor:
    """polygamma(), in place."""
    return self.copy_(_C.polygamma(n, self))


def __rdiv__(self: Tensor, other: Any) -> Tensor:
    """`other` divided by this tensor, as programs from before Python 3 call it."""
    return self.reciprocal() * other


def xpu(
    self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None
) -> Tensor:
    """A copy on an XPU device, in a memory format if one is given."""
    place = "xpu" if device is None else device
    return self.to(place, non_blocking=non_blocking, memory_format=memory_format)


def ipu(self: Tensor, device: Any = None, non_blocking: bool = False) -> Tensor:
    """A copy on an IPU device."""
    return self.to("ipu" if device is None else device, non_blocking=non_blocking)


def mtia(self: Tensor, device: Any = None, non_blocking: bool = False) -> Tensor:
    """A copy on an MTIA device."""
    return self.to("mtia" if device is None else device, non_blocking=non_blocking)


def reinforce(self: Tensor, reward: Any) -> Tensor:
    """RuntimeError: rewards are weighed by treadle.distributions."""
    raise RuntimeError("reinforce: expected treadle.distributions, got a method that was removed")


def _get_grad_dtype(self: Tensor) -> Any:
    return self.dtype


def _set_grad_dtype(self: Tensor, dtype: Any) -> None:
    if dtype != self.dtype:
        raise NotImplementedError(
            f"grad_dtype: expected {self.dtype}, that of the tensor, got {dtype}"
        )


def is_mkldnn(self: Tensor) -> bool:
    """Whether the layout is the one that to_mkldnn() makes."""
    return self.layout is _C.mkldnn


def qscheme(self: Tensor) -> Any:
    """Whether a quantized tensor has one scale (per_tensor_affine) or one for each channel
    (per_channel_affine). RuntimeError for another tensor."""
    if not self.is_quantized:
        raise RuntimeError(f"qscheme: expected a quantized tensor, got one of {self.dtype}")
    from treadle._introspection import build

    per_tensor = _C._layout_contents(self)[1]["axis"] < 0
    return build.per_tensor_affine if per_tensor else build.per_channel_affine


def const_data_ptr(self: Tensor) -> int:
    """Address of the first element, for reading."""
    return self.data_ptr()


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """The tensor that a module keeps for `self`, a parameter or buffer, when `other` is loaded for
    it: a new one. With `assign` it lies in the memory of `other`, otherwise in that of `self`, to
    which the elements are copied. RuntimeError for the latter where `self` is a leaf that requires
    grad, outside of no_grad()."""
    return other.detach() if assign else self.copy_(other).detach()


def _init_subclass(cls: Any, **kwargs: Any) -> None:
    """A class that takes over operators says of which class their results are, and is not asked for
    functions unless it says so."""
    super(Tensor, cls).__init_subclass__(**kwargs)
    if cls.__torch_dispatch__ is _C._disabled_torch_dispatch_impl:
        return
    owner = next(base for base in cls.__mro__ if "__torch_function__" in vars(base))
    if owner is Tensor:
        cls.__torch_function__ = _C._disabled_torch_function_impl


def install() -> None:
    """Adds the methods to Tensor."""
    methods = (
        apply_, map_, map2_, type, set_, pin_memory, is_pinned, share_memory_, is_shared,
        dim_order, record_stream, storage, storage_type, __copy__, __reversed__, __rdiv__,
        resize, resize_as, to_sparse_coo,
        const_data_ptr, module_load, to_padded_tensor, ipu, mtia, qscheme, reinforce,
    )  # fmt: skip
    set_.__doc__ = f"{_set.__doc__}\n\n{set_.__doc__}"
    for method in methods:
        setattr(Tensor, method.__name__, method)
    for name in meta.__all__:
        setattr(Tensor, name, getattr(meta, name))
    Tensor.grad_dtype = property(_get_grad_dtype, _set_grad_dtype)  # type: ignore[assignment]
    for name in _OF_PACKAGE.split():
        setattr(Tensor, name, _of_package(name))
    for name in _NEVER.split():
        setattr(Tensor, name, property(lambda self: False))
    Tensor.is_mkldnn = property(is_mkldnn)  # type: ignore[assignment]
    Tensor.name = None
    Tensor.polygamma_, Tensor.xpu = polygamma_, xpu
    untyped_storage.install()
    _C.UntypedStorage.__deepcopy__ = _deepcopy_storage
    _C.UntypedStorage.__reduce_ex__ = _reduce_storage  # type: ignore[assignment]
    Tensor.__init_subclass__ = classmethod(_init_subclass)  # type: ignore[assignment]

"""The writing half of checkpoints: an object's pickle in PyTorch's vocabulary, and the storages it
refers to.

Tensors become calls of `torch._utils._rebuild_tensor_v2` on a storage that is named by a number;
the bytes of the storages lie beside the pickle, each once, however many tensors share it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import io
import pickle
import sys
import types
from collections import OrderedDict
from typing import Any, Iterator

from treadle import _C, _names
from treadle._C import Tensor
from treadle._introspection.build import per_channel_affine, per_tensor_affine, qscheme
from treadle._names.pytorch_paths import PACKAGE_IN_FILES, path_in_files
from treadle._rebuild import (
    is_registered,
    lazy_bits,
    parts_of_layout,
    quantized_parts,
    reduce_tensor,
    sparse_parts,
)
from treadle._tensor.storage_types import (
    QUANTIZED_STORAGE_NAMES,
    STORAGE_NAMES,
    UNTYPED_NAME,
)
from treadle._tensor.untyped_storage import typed_storages
from treadle.serialization._storages import Placement, location_of


def _location(storage: Any) -> str:
    if Placement.restore is None:
        return location_of(storage.device)
    from treadle.serialization import _locations

    return _locations.location_tag(storage)


class _Global:
    """A name that the reader looks up."""

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __call__(self) -> None:
        """Never called here: the pickler only wants to see that it could be."""
        raise TypeError(f"{self.module}.{self.name} exists in the reader only")


_GLOBALS = {
    name: _Global(module, name)
    for module, name in (
        ("torch._utils", "_rebuild_tensor_v2"),
        ("torch._utils", "_rebuild_tensor_v3"),
        ("torch._utils", "_rebuild_parameter"),
        ("torch._utils", "_rebuild_parameter_with_state"),
        ("torch._utils", "_rebuild_meta_tensor_no_storage"),
        ("torch._utils", "_rebuild_sparse_tensor"),
        ("torch._utils", "_rebuild_qtensor"),
        ("torch._utils", "_rebuild_wrapper_subclass"),
        ("torch._tensor", "_rebuild_from_type_v2"),
        ("torch.serialization", "_get_layout"),
        ("treadle._rebuild", "dtype_named"),
        ("treadle._rebuild", "layout_named"),
        ("treadle._rebuild", "rebuild_layout_tensor"),
        ("torch", "Size"),
        ("torch", "device"),
    )
}
_SCHEMES = {
    scheme: str(scheme).rpartition(".")[2] for scheme in (per_tensor_affine, per_channel_affine)
}
_STORAGE_GLOBALS = {
    name: _Global("torch.storage" if name == UNTYPED_NAME else "torch", name)
    for name in (*STORAGE_NAMES.values(), *QUANTIZED_STORAGE_NAMES.values())
}


class _StorageReference:
    def __init__(self, key: str, name: str, location: str, numel: int) -> None:
        self.key = key
        self.name = name
        self.location = location
        self.numel = numel


def _is_plain(cls: type) -> bool:
    """Whether a class of tensors leaves it to the library how it is written. (How it reduces
    itself is for pickles inside one program.)"""
    from treadle import nn

    known = (Tensor, nn.Parameter, nn.Buffer)
    return any(cls.__reduce_ex__ is base.__reduce_ex__ for base in known)  # type: ignore[comparison-overlap]


# The pickler written in Python, because the one in C insists on importing every name that it
# writes.
class CheckpointPickler(pickle._Pickler):
    """Pickles one object; afterwards `storages` has the storages, in the order of their numbers."""

    dispatch = dict(pickle._Pickler.dispatch)

    def __init__(self, file: io.BytesIO, protocol: int, in_archive: bool = True) -> None:
        super().__init__(file, protocol)
        # The old format names storages with one part more.
        self._in_archive = in_archive
        self.storages: list[Any] = []
        self._references: dict[Any, _StorageReference] = {}

    def stored(self) -> Iterator[tuple[str, int, Any]]:
        """The key, the number of elements and the storage itself, of each storage."""
        for reference in self._references.values():
            yield reference.key, reference.numel, self.storages[int(reference.key)]

    def persistent_id(self, obj: Any) -> Any:
        """A storage is named, not pickled."""
        if isinstance(obj, _C.UntypedStorage):
            obj = self._reference(obj, UNTYPED_NAME, 1)
        elif isinstance(obj, typed_storages()):
            obj = self._reference(obj.untyped(), STORAGE_NAMES[obj.dtype], obj.element_size())
        if not isinstance(obj, _StorageReference):
            return None
        named = ("storage", _STORAGE_GLOBALS[obj.name], obj.key, obj.location, obj.numel)
        return named if self._in_archive else (*named, None)

    def reducer_override(self, obj: Any) -> Any:
        """How the types of this package are written; all others are left to pickle."""
        if isinstance(obj, Tensor):
            return self._reduce_tensor(obj)
        if isinstance(obj, _C.dtype):
            name = str(obj).rpartition(".")[2]
            is_known = obj in STORAGE_NAMES or obj in QUANTIZED_STORAGE_NAMES
            return name if is_known else (_GLOBALS["dtype_named"], (name,))
        if isinstance(obj, qscheme):
            return _SCHEMES[obj]
        if isinstance(obj, _C.Size):
            return _GLOBALS["Size"], (tuple(obj),)
        if isinstance(obj, _C.device):
            index = () if obj.index is None else (obj.index,)
            return _GLOBALS["device"], (obj.type, *index)
        if isinstance(obj, _C.layout):
            if is_registered(obj):
                return _GLOBALS["layout_named"], (str(obj).rpartition(".")[2],)
            return _GLOBALS["_get_layout"], ("torch." + str(obj).rpartition(".")[2],)
        return NotImplemented

    def _reduce_tensor(self, tensor: Tensor) -> Any:
        from treadle import nn

        if tensor.is_quantized:
            return self._reduce_quantized(tensor)
        cls, state = type(tensor), dict(getattr(tensor, "__dict__", None) or {})
        if tensor.layout != _C.strided and cls is not nn.Parameter:
            if is_registered(tensor.layout):
                return _GLOBALS["rebuild_layout_tensor"], parts_of_layout(tensor)
            return _GLOBALS["_rebuild_sparse_tensor"], sparse_parts(tensor)
        if _C._is_wrapper(tensor) and _is_plain(cls):
            _, arguments, *rest = reduce_tensor(tensor)
            made = (_GLOBALS["_rebuild_wrapper_subclass"], cls, arguments, rest[0] if rest else {})
            return _GLOBALS["_rebuild_from_type_v2"], made
        if cls is nn.Parameter:
            arguments = (tensor.data, bool(tensor.requires_grad), OrderedDict())
            if state:
                return _GLOBALS["_rebuild_parameter_with_state"], (*arguments, state)
            return _GLOBALS["_rebuild_parameter"], arguments
        if cls is nn.Buffer:
            # PyTorch's are tensors with two attributes.
            cls, state = Tensor, {**state, "_is_buffer": True}
        elif not _is_plain(cls):
            return NotImplemented
        function, arguments = self._parts_of(tensor)
        if cls is Tensor and not state:
            return function, arguments
        return _GLOBALS["_rebuild_from_type_v2"], (function, cls, arguments, state)

    def _reduce_quantized(self, tensor: Tensor) -> Any:
        numbers, parameters = quantized_parts(tensor)
        name = QUANTIZED_STORAGE_NAMES[tensor.dtype]
        storage = self._reference(numbers.untyped_storage(), name, numbers.element_size())
        geometry = (numbers.storage_offset(), tuple(numbers.shape), tuple(numbers.stride()))
        arguments: tuple = (storage, *geometry, parameters, False, OrderedDict())
        return _GLOBALS["_rebuild_qtensor"], arguments

    def _parts_of(self, tensor: Tensor) -> tuple[_Global, tuple]:
        geometry = (tuple(tensor.shape), tuple(tensor.stride()))
        wants_grad = bool(tensor.requires_grad)
        if tensor.device.type == "meta":
            arguments: tuple = (tensor.dtype, *geometry, wants_grad)
            return _GLOBALS["_rebuild_meta_tensor_no_storage"], arguments
        name = STORAGE_NAMES.get(tensor.dtype, UNTYPED_NAME)
        storage = self._reference(tensor.untyped_storage(), name, tensor.element_size())
        arguments = (storage, tensor.storage_offset(), *geometry, wants_grad, OrderedDict())
        # Said only where it is so, as most readers expect.
        bits = lazy_bits(tensor)
        metadata = (bits,) if bits else ()
        if name == UNTYPED_NAME:
            return _GLOBALS["_rebuild_tensor_v3"], (*arguments, tensor.dtype, *metadata)
        return _GLOBALS["_rebuild_tensor_v2"], (*arguments, *metadata)

    def _reference(self, storage: Any, name: str, element_size: int) -> _StorageReference:
        if name == UNTYPED_NAME:
            element_size = 1
        # A storage without bytes may share its address with others.
        identity = (
            (storage.data_ptr(), str(storage.device)) if storage.nbytes() else (name, "empty")
        )
        known = self._references.get(identity)
        if known is None:
            numel = storage.nbytes() // element_size
            location = sys.intern(_location(storage))  # one text is written once
            known = _StorageReference(str(len(self.storages)), name, location, numel)
            self.storages.append(storage)
            self._references[identity] = known
        elif known.name != name:
            raise RuntimeError(
                "save: expected all tensors over one piece of memory to have the same dtype, got "
                f"{known.name} and {name}; clone one of them first"
            )
        return known

    def save_global(self, obj: Any, name: Any = None) -> None:
        """Write the name of a class or function; those of this package under the name that PyTorch
        has."""
        if isinstance(obj, (_Global, _C.dtype, qscheme)):
            module = obj.module if isinstance(obj, _Global) else PACKAGE_IN_FILES
            self._write_name(module, obj.name if isinstance(obj, _Global) else name)
            self.memoize(obj)  # type: ignore[attr-defined]
            return
        module = getattr(obj, "__module__", None) or ""
        qualified = name or getattr(obj, "__qualname__", "")
        if _names.is_own(module) and "." not in qualified:
            self._write_name(path_in_files(obj, qualified), qualified)
            self.memoize(obj)  # type: ignore[attr-defined]
            return
        super().save_global(obj, name)  # type: ignore[misc]

    def _write_name(self, module: str, name: str) -> None:
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode("utf-8"))  # type: ignore[attr-defined]

    dispatch[_Global] = save_global  # type: ignore[assignment]
    dispatch[types.FunctionType] = save_global  # type: ignore[assignment]

"""The writing half of checkpoints: an object's pickle in PyTorch's vocabulary, and the storages it
refers to.

Tensors become calls of `torch._utils._rebuild_tensor_v2` on a storage that is named by a number;
the bytes of the storages lie beside the pickle, each once, however many tensors share it.
"""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from typing import Any

import treadle
from treadle import Tensor
from treadle._storage_types import STORAGE_NAMES

# What a checkpoint calls the package, so that PyTorch reads it too.
_PACKAGE_IN_FILES = "torch"


class _Global:
    """A name that the reader looks up."""

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __call__(self) -> None:
        """Never called here: the pickler only wants to see that it could be."""
        raise TypeError(f"{self.module}.{self.name} exists in the reader only")


def name_in_files(module: str) -> str:
    """The name by which a checkpoint knows a module of this package; others keep theirs."""
    head, dot, rest = module.partition(".")
    return _PACKAGE_IN_FILES + dot + rest if head == "treadle" else module


_GLOBALS = {
    name: _Global(module, name)
    for module, name in (
        ("torch._utils", "_rebuild_tensor_v2"),
        ("torch._utils", "_rebuild_parameter"),
        ("torch._tensor", "_rebuild_from_type_v2"),
        ("torch.serialization", "_get_layout"),
        ("torch", "Size"),
        ("torch", "device"),
    )
}
_STORAGE_GLOBALS = {name: _Global("torch", name) for name in STORAGE_NAMES.values()}


class _StorageReference:
    def __init__(self, key: str, name: str, location: str, numel: int) -> None:
        self.key = key
        self.name = name
        self.location = location
        self.numel = numel


# The pickler written in Python, because the one in C insists on importing every name that it
# writes.
class CheckpointPickler(pickle._Pickler):
    """Pickles one object; afterwards `storages` has the storages, in the order of their numbers."""

    dispatch = dict(pickle._Pickler.dispatch)

    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.storages: list[Any] = []
        self._references: dict[Any, _StorageReference] = {}

    def persistent_id(self, obj: Any) -> Any:
        """A storage is named, not pickled."""
        if not isinstance(obj, _StorageReference):
            return None
        return ("storage", _STORAGE_GLOBALS[obj.name], obj.key, obj.location, obj.numel)

    def reducer_override(self, obj: Any) -> Any:
        """How the types of this package are written; all others are left to pickle."""
        if isinstance(obj, Tensor):
            return self._reduce_tensor(obj)
        if isinstance(obj, treadle.dtype):
            return str(obj).rpartition(".")[2]
        if isinstance(obj, treadle.Size):
            return _GLOBALS["Size"], (tuple(obj),)
        if isinstance(obj, treadle.device):
            index = () if obj.index is None else (obj.index,)
            return _GLOBALS["device"], (obj.type, *index)
        if isinstance(obj, treadle.layout):
            return _GLOBALS["_get_layout"], ("torch." + str(obj).rpartition(".")[2],)
        return NotImplemented

    def _reduce_tensor(self, tensor: Tensor) -> tuple:
        cls = type(tensor)
        if cls is treadle.nn.Parameter:
            arguments = (tensor.data, bool(tensor.requires_grad), OrderedDict())
            return _GLOBALS["_rebuild_parameter"], arguments
        arguments = (
            self._reference(tensor),
            tensor.storage_offset(),
            tuple(tensor.shape),
            tuple(tensor.stride()),
            bool(tensor.requires_grad),
            OrderedDict(),
        )
        if cls is Tensor:
            return _GLOBALS["_rebuild_tensor_v2"], arguments
        state = dict(getattr(tensor, "__dict__", {}))
        return _GLOBALS["_rebuild_from_type_v2"], (
            _GLOBALS["_rebuild_tensor_v2"],
            cls,
            arguments,
            state,
        )

    def _reference(self, tensor: Tensor) -> _StorageReference:
        if tensor.dtype not in STORAGE_NAMES:
            raise RuntimeError(
                f"save: expected a tensor of a dtype that checkpoints know, got {tensor.dtype}"
            )
        if tensor.device.type == "meta":
            raise RuntimeError("save: expected tensors with data, got one on the meta device")
        name = STORAGE_NAMES[tensor.dtype]
        storage = tensor.untyped_storage()
        # A storage without bytes may share its address with others.
        identity = (storage.data_ptr(), str(tensor.device)) if storage.nbytes() else (name, "empty")
        known = self._references.get(identity)
        if known is None:
            numel = storage.nbytes() // tensor.element_size()
            known = _StorageReference(str(len(self.storages)), name, str(tensor.device), numel)
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
        if isinstance(obj, (_Global, treadle.dtype)):
            module = obj.module if isinstance(obj, _Global) else _PACKAGE_IN_FILES
            self._write_name(module, obj.name if isinstance(obj, _Global) else name)
            self.memoize(obj)
            return
        module = getattr(obj, "__module__", None) or ""
        qualified = name or getattr(obj, "__qualname__", "")
        if module.partition(".")[0] == "treadle" and "." not in qualified:
            self._write_name(name_in_files(module), qualified)
            self.memoize(obj)
            return
        super().save_global(obj, name)

    def _write_name(self, module: str, name: str) -> None:
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode("utf-8"))

    dispatch[_Global] = save_global

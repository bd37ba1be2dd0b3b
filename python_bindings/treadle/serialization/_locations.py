"""Where storages are, as files say it, and what a program adds to that.

    treadle.serialization.register_package(
        5, lambda storage: "mine" if storage in kept else None, lambda storage, place: ...
    )

Those that a program registers are asked in the order of their priorities, of 10 and more after the
CPU's and of 20 and more after those of devices.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import shutil
import tempfile
from operator import itemgetter
from typing import Any, Callable, Iterator, List, Optional, Tuple

from treadle import _C, _names
from treadle.serialization._storages import Placement, location_of

Tagger = Callable[[Any], Optional[str]]
Deserializer = Callable[[Any, str], Any]


def _cpu_tag(storage: Any) -> Optional[str]:
    return "cpu" if storage.device.type == "cpu" else None


def _device_tag(storage: Any) -> Optional[str]:
    return location_of(storage.device)


def _to_cpu(storage: Any, location: str) -> Any:
    return storage if location == "cpu" else None


def _to_device(storage: Any, location: str) -> Any:
    bytes_of_it = storage.untyped()._as_tensor(_C.uint8)
    return Placement(None).place(bytes_of_it, location).untyped_storage()


_packages: List[Tuple[int, Tagger, Deserializer]] = [
    (10, _cpu_tag, _to_cpu),
    (20, _device_tag, _to_device),
]


def register_package(priority: int, tagger: Tagger, deserializer: Deserializer) -> None:
    """Let `tagger(storage)` say where a storage is that is saved, and `deserializer(storage,
    location)` put one that is loaded in its place; each gives None for what is not its own. Both
    are asked for one of bytes."""
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=itemgetter(0))
    Placement.restore = staticmethod(_restored)


def _restored(storage: Any, location: str) -> Any:
    moved = default_restore_location(storage.untyped_storage(), location)
    return moved.untyped()._as_tensor(storage.dtype)


def location_tag(storage: Any) -> str:
    """The place of a storage as a file names it: "cpu", "cuda:0". RuntimeError where no package
    knows it."""
    for _, tagger, _ in _packages:
        found = tagger(storage)
        if found:
            return found
    raise RuntimeError(
        f"location_tag: expected a storage in a known place, got one on {storage.device}"
    )


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage in the place that a file says. RuntimeError where no package knows it, and for a
    device that is not there."""
    for _, _, deserializer in _packages:
        found = deserializer(storage, location)
        if found is not None:
            return found
    raise RuntimeError(f"load: expected a known place of a storage, got {location[:40]!r}")


def _validated(kind: str, location: str) -> int:
    index = _C.device(location).index or 0
    module = getattr(_names.package(), kind, None)
    count = module.device_count() if module is not None else 0
    if index >= count:
        raise RuntimeError(
            f"load: expected one of {count} {kind} devices, got {location!r}; give "
            "map_location='cpu' to load its tensors on the CPU"
        )
    return index


def validate_cuda_device(location: str) -> int:
    """The number of the CUDA device that a file says. RuntimeError where it is not there."""
    return _validated("cuda", location)


def validate_hpu_device(location: str) -> int:
    """The number of the HPU that a file says. RuntimeError: there is none."""
    return _validated("hpu", location)


@contextlib.contextmanager
def mkdtemp() -> Iterator[str]:
    """A folder for the length of a block."""
    path = tempfile.mkdtemp()
    try:
        yield path
    finally:
        shutil.rmtree(path)


class StorageType:
    """Stands for the class of a storage with a dtype, by its name: StorageType("FloatStorage")."""

    def __init__(self, name: str) -> None:
        from treadle.storage import _storage_type_to_dtype_map

        self._dtype = _storage_type_to_dtype_map()[name]

    @property
    def dtype(self) -> Any:
        """The dtype of the numbers in it."""
        return self._dtype

    def __repr__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


def normalize_storage_type(storage_type: type) -> Any:
    """The class of that name at the top of the package."""
    return getattr(_names.package(), storage_type.__name__)


def storage_to_tensor_type(storage: Any) -> Any:
    """The class of tensors, FloatTensor, over storages like this one, a FloatStorage."""
    name = storage.type().rpartition(".")[2]
    return getattr(_names.package(), name.replace("Storage", "Tensor"))

"""The file `.metadata`: a pickle of the classes in `metadata`, under the names that PyTorch reads.

It may come from a stranger. Its reader makes nothing but these classes and plain values, and every
number in it is checked before it is used.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import io
import math
import pathlib
import pickle
from typing import Any, BinaryIO, Callable, Dict, Tuple, Union

from treadle import _C
from treadle.distributed.checkpoint import metadata as classes
from treadle.distributed.checkpoint._global_plan import outside
from treadle.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from treadle.serialization import _safe_globals
from treadle.serialization._reader import CheckpointUnpickler, Reader
from treadle.serialization._safe_globals import Entry, expect
from treadle.serialization._writer import CheckpointPickler

_MODULE = "torch.distributed.checkpoint.metadata"
# Where the first versions of the format had two of the classes.
_OLD_MODULE = "torch.distributed._shard.sharded_tensor.metadata"
_FILES = "torch.distributed.checkpoint.filesystem"


@dataclasses.dataclass
class StorageInfo:
    """The place of a piece: the file, beside `.metadata`, and the bytes in it."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Any = None

    def __getstate__(self) -> Dict[str, Any]:
        return {key: value for key, value in vars(self).items() if value is not None}


# The name in the file.
StorageInfo.__module__ = "treadle.distributed.checkpoint.filesystem"
StorageInfo.__name__ = StorageInfo.__qualname__ = "_StorageInfo"


def _path(*parts: Any) -> str:
    expect(all(type(part) is str for part in parts), "expected a path of text")
    return str(pathlib.PurePath(*parts))


def _record(cls: Any) -> Entry:
    """The entry of a dataclass: it is made empty and given its fields, whose types are checked once
    all is read. Fields of later versions are passed by."""
    names = {field.name for field in dataclasses.fields(cls)}

    def make() -> Any:
        return cls.__new__(cls)

    def give(target: Any, state: Any) -> None:
        expect(type(state) is dict, f"expected the fields of a {cls.__name__}")
        if cls is MetadataIndex:
            # It becomes a key before the end.
            expect(type(state.get("fqn")) is str, "expected a key as text")
            offset = state.get("offset")
            expect(offset is None or _are_numbers(offset), "expected an offset of numbers")
        for name in names & state.keys():
            object.__setattr__(target, name, state[name])

    return Entry(cls, make=make, state=give)


def _entries() -> Dict[Tuple[str, str], Entry]:
    found = {
        (_MODULE, name): _record(getattr(classes, name))
        for name in classes.__all__
        if name != "TensorProperties"
    }
    properties = Entry(
        TensorProperties,
        make=lambda: TensorProperties.__new__(TensorProperties),
        state=lambda target, state: target.__setstate__(state),
    )
    encoding = Entry(classes._MEM_FORMAT_ENCODING, call=classes._MEM_FORMAT_ENCODING)
    found[_MODULE, "TensorProperties"] = found[_OLD_MODULE, "TensorProperties"] = properties
    found[_MODULE, "_MEM_FORMAT_ENCODING"] = found[_OLD_MODULE, "MEM_FORMAT_ENCODING"] = encoding
    found[_FILES, "_StorageInfo"] = _record(StorageInfo)
    for module in ("pathlib", "pathlib._local"):
        for name in ("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath"):
            found[module, name] = Entry(_path, call=_path)
    return found


def _finder() -> Callable[[str, str], Union[Entry, str]]:
    entries = _entries()
    return lambda module, name: entries.get((module, name)) or _safe_globals.find(module, name)


def _are_numbers(values: Any) -> bool:
    return isinstance(values, tuple) and all(type(n) is int and n >= 0 for n in values)


def _check_tensor(fqn: str, saved: Any) -> None:
    properties = getattr(saved, "properties", None)
    expect(
        isinstance(properties, TensorProperties) and isinstance(properties.dtype, _C.dtype),
        f"expected a dtype for {fqn!r}",
    )
    size: Any = getattr(saved, "size", None)
    chunks: Any = getattr(saved, "chunks", None)
    expect(_are_numbers(size) and type(chunks) is list, f"expected shape and boxes for {fqn!r}")
    for chunk in chunks:
        offsets, sizes = getattr(chunk, "offsets", None), getattr(chunk, "sizes", None)
        expect(
            _are_numbers(offsets) and _are_numbers(sizes) and not outside(size, chunk),
            f"expected the boxes of {fqn!r} in the shape {tuple(size)}, got {offsets}, {sizes}",
        )


def _check_info(index: Any, info: Any, known: Dict[str, Any]) -> None:
    expect(isinstance(index, MetadataIndex) and index.fqn in known, "expected pieces of known keys")
    fqn = index.fqn
    expect(isinstance(info, StorageInfo), f"expected where {fqn!r} lies")
    path = info.relative_path
    expect(
        type(path) is str and path not in ("", ".", "..") and not set(path) & set("/\\\0:"),
        f"expected the name of a file beside .metadata for {fqn!r}, got {str(path)[:80]!r}",
    )
    expect(
        _are_numbers((info.offset, info.length)),
        f"expected an offset and a length for {fqn!r}, got {info.offset!r}, {info.length!r}",
    )
    info.transform_descriptors = getattr(info, "transform_descriptors", None)


def _check_lengths(known: Dict[str, Any], pieces: Dict[MetadataIndex, StorageInfo]) -> None:
    """A box takes at least the bytes of its elements, so that a small file asks for no more memory
    than it has."""
    for fqn, saved in known.items():
        if isinstance(saved, BytesStorageMetadata):
            continue
        for chunk in saved.chunks:
            info = pieces.get(MetadataIndex(fqn, chunk.offsets))
            if info is None or info.transform_descriptors:
                continue
            need = math.prod(chunk.sizes) * saved.properties.dtype.itemsize
            expect(
                info.length >= need,
                f"expected at least {need} bytes for {fqn!r} of shape {tuple(chunk.sizes)}, got "
                f"{info.length}",
            )


def _check(metadata: Any) -> None:
    expect(isinstance(metadata, Metadata), f"expected Metadata, got {type(metadata).__name__}")
    for field in dataclasses.fields(Metadata):
        setattr(metadata, field.name, getattr(metadata, field.name, None))
    known, pieces = metadata.state_dict_metadata, metadata.storage_data
    expect(type(known) is dict, "expected a dictionary of keys")
    for fqn, saved in known.items():
        expect(type(fqn) is str, "expected keys as text")
        if isinstance(saved, TensorStorageMetadata):
            _check_tensor(fqn, saved)
        else:
            expect(isinstance(saved, BytesStorageMetadata), f"expected what {fqn!r} is")
    expect(type(pieces) is dict, "expected where the pieces lie")
    for index, info in pieces.items():
        _check_info(index, info, known)
    _check_lengths(known, pieces)
    paths = metadata.planner_data
    expect(paths is None or type(paths) is dict, "expected the paths of the keys")
    for path in (paths or {}).values():
        expect(
            type(path) is tuple and bool(path) and all(type(part) in (str, int) for part in path),
            "expected paths of text and numbers",
        )


def load(content: bytes, name: str) -> Metadata:
    """The metadata in a file, which errors name. pickle.UnpicklingError for anything else."""
    try:
        metadata = CheckpointUnpickler(Reader(content), _finder()).load()
        _check(metadata)
    except (pickle.UnpicklingError, ValueError, AttributeError, TypeError) as error:
        raise pickle.UnpicklingError(
            f"load: expected the metadata of a checkpoint in {name}, got others ({error})"
        ) from error
    return metadata


def dump(metadata: Metadata, file: BinaryIO) -> None:
    """Write the metadata as PyTorch reads it."""
    content = io.BytesIO()
    CheckpointPickler(content, 2).dump(metadata)
    file.write(content.getvalue())


__all__ = ["StorageInfo", "dump", "load"]

"""The safetensors format: named tensors in a file that can hold nothing else.

    save_file({"weight": w, "bias": b}, "net.safetensors", metadata={"epoch": "3"})
    tensors = load_file("net.safetensors")
    with safe_open("net.safetensors", framework="pt") as f:
        w = f.get_tensor("weight")            # reads no more than this one

A file is eight bytes with the length of a header, the header in JSON (of each tensor its element
type, its shape, and where its bytes begin and end), and the bytes. Names and arguments are those of
the packages `safetensors` and `safetensors.torch`.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import io
import json
import math
import os
import struct
from typing import TYPE_CHECKING, Any, BinaryIO, Iterator, Optional, Union

from treadle import _C
from treadle._atomic_file import replacing
from treadle._C import Tensor
from treadle._rebuild import base_from_buffer, tensor_bytes

if TYPE_CHECKING:
    from treadle import nn

__all__ = [
    "SafetensorError", "load", "load_file", "load_model", "safe_open", "save", "save_file",
    "save_model",
]  # fmt: skip

_Path = Union[str, os.PathLike]

# In the order in which writers put them: tensors of wide elements first, so that all are aligned.
_TYPES = {
    "U64": _C.uint64,
    "I64": _C.int64,
    "F64": _C.float64,
    "C64": _C.complex64,
    "F32": _C.float32,
    "U32": _C.uint32,
    "I32": _C.int32,
    "BF16": _C.bfloat16,
    "F16": _C.float16,
    "U16": _C.uint16,
    "I16": _C.int16,
    "F8_E5M2FNUZ": _C.float8_e5m2fnuz,
    "F8_E4M3FNUZ": _C.float8_e4m3fnuz,
    "F8_E8M0": _C.float8_e8m0fnu,
    "F8_E4M3": _C.float8_e4m3fn,
    "F8_E5M2": _C.float8_e5m2,
    "I8": _C.int8,
    "U8": _C.uint8,
    "BOOL": _C.bool,
}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}
_ORDER = {name: place for place, name in enumerate(_TYPES)}
_LARGEST_HEADER = 100_000_000
_METADATA = "__metadata__"


class SafetensorError(Exception):
    """A file that is not in the format, or a tensor that is not in the file."""


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise SafetensorError(f"safetensors: expected {what}")


# ---- reading -------------------------------------------------------------------------------------


class _Place:
    """Where a tensor lies in a file."""

    def __init__(self, name: str, described: Any) -> None:
        _require(isinstance(described, dict), f"a description of {name[:80]!r}")
        dtype, shape = described.get("dtype"), described.get("shape")
        offsets = described.get("data_offsets")
        _require(
            isinstance(dtype, str) and dtype in _TYPES,
            f"an element type that exists here for {name[:80]!r}, got {str(dtype)[:40]!r}",
        )
        _require(
            _are_sizes(shape) and len(shape) <= 64, f"a list of sizes as shape of {name[:80]!r}"
        )
        _require(
            _are_sizes(offsets) and len(offsets) == 2, f"two numbers as offsets of {name[:80]!r}"
        )
        self.type_name = dtype
        self.dtype = _TYPES[dtype]
        self.shape = tuple(shape)
        self.begin, self.end = offsets
        size = math.prod(self.shape) * self.dtype.itemsize
        _require(
            self.end - self.begin == size,
            f"{size} bytes for {name[:80]!r} of shape {self.shape}, got {self.end - self.begin}",
        )


def _are_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 2**63 for n in value)


def _unique(pairs: list) -> dict:
    found = dict(pairs)
    _require(len(found) == len(pairs), "each name once in the header")
    return found


class _Header:
    """The names and places of tensors at the beginning of a file of `size` bytes."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        _require(size >= 8, f"a file of at least 8 bytes, got {size}")
        (length,) = struct.unpack("<Q", file.read(8))
        _require(
            length <= min(size - 8, _LARGEST_HEADER),
            f"a header inside the file of {size} bytes, got one of {length}",
        )
        self.begin = 8 + length
        try:
            read = json.loads(file.read(length).decode("utf-8"), object_pairs_hook=_unique)
        except (ValueError, RecursionError) as error:
            raise SafetensorError(
                f"safetensors: expected a header in JSON, got one with an error: {str(error)[:200]}"
            ) from error
        _require(isinstance(read, dict), "a dictionary as header")
        metadata = read.pop(_METADATA, None)
        _require(
            metadata is None
            or isinstance(metadata, dict)
            and all(isinstance(value, str) for value in metadata.values()),
            "text as metadata",
        )
        self.metadata: Optional[dict[str, str]] = metadata
        places = [(name, _Place(name, described)) for name, described in read.items()]
        places.sort(key=lambda item: (item[1].begin, item[1].end))
        end = 0
        for name, place in places:
            _require(
                place.begin == end, f"tensors side by side, got {name[:80]!r} at {place.begin}"
            )
            end = place.end
        _require(
            self.begin + end == size,
            f"tensors of {size - self.begin} bytes in all, as the file has, got {end}",
        )
        self.places: dict[str, _Place] = dict(places)


class safe_open:  # noqa: N801  a name of the safetensors package
    """A file open for reading one tensor after another.

    `framework` is there for programs written for several; tensors are Treadle's. `device`: where
    the tensors go. Raises SafetensorError for a file that is not in the format.
    """

    def __init__(
        self,
        filename: _Path,
        framework: str = "pt",
        device: Any = "cpu",
        *,
        backend: str = "mmap",
    ) -> None:
        if framework not in ("pt", "torch", "pytorch"):
            raise SafetensorError(f"safe_open: expected framework = 'pt', got {framework!r}")
        if backend != "mmap":
            raise SafetensorError(f"safe_open: expected backend = 'mmap', got {backend!r}")
        file = open(filename, "rb")
        try:
            self._open(file, file.seek(0, os.SEEK_END), device)
        except BaseException:
            file.close()
            raise

    def _open(self, file: BinaryIO, size: int, device: Any) -> None:
        file.seek(0)
        self._file = file
        self._device = _C.device(device)
        self._header = _Header(file, size)

    @classmethod
    def _of_bytes(cls, data: bytes) -> "safe_open":
        opened = cls.__new__(cls)
        opened._open(io.BytesIO(data), len(data), "cpu")
        return opened

    def __enter__(self) -> "safe_open":
        return self

    def __exit__(self, *exception: Any) -> None:
        self._file.close()

    def keys(self) -> list[str]:
        """The names of the tensors, sorted."""
        return sorted(self._header.places)

    def offset_keys(self) -> list[str]:
        """The names of the tensors, in the order in which they lie in the file."""
        return list(self._header.places)

    def metadata(self) -> Optional[dict[str, str]]:
        """The text that was saved beside the tensors."""
        return self._header.metadata

    def _place(self, name: str) -> _Place:
        place = self._header.places.get(name)
        if place is None:
            raise SafetensorError(f"File does not contain tensor {name}")
        return place

    def get_tensor(self, name: str) -> Tensor:
        """The tensor of that name."""
        place = self._place(name)
        content = bytearray(place.end - place.begin)
        self._file.seek(self._header.begin + place.begin)
        view, done = memoryview(content), 0
        while done < len(content):
            count = self._file.readinto(view[done:])  # type: ignore[attr-defined]
            _require(bool(count), "a file that keeps its length while it is read")
            done += count
        tensor = base_from_buffer(content, place.dtype).reshape(place.shape)
        return tensor if self._device.type == "cpu" else tensor.to(self._device)

    def get_tensors(self) -> dict[str, Tensor]:
        """All tensors, by name."""
        return {name: self.get_tensor(name) for name in self.offset_keys()}

    def get_slice(self, name: str) -> "_Slice":
        """A tensor of which only a part is wanted: `f.get_slice("weight")[:, :10]`."""
        return _Slice(self, name, self._place(name))


class _Slice:
    def __init__(self, opened: safe_open, name: str, place: _Place) -> None:
        self._opened = opened
        self._name = name
        self._place = place

    def get_shape(self) -> list[int]:
        """The shape of the whole tensor."""
        return list(self._place.shape)

    def get_dtype(self) -> str:
        """The element type, by its name in the format: "F32"."""
        return self._place.type_name

    def __getitem__(self, index: Any) -> Tensor:
        return self._opened.get_tensor(self._name)[index].clone()


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors in the content of a file."""
    return safe_open._of_bytes(data).get_tensors()


def load_file(filename: _Path, device: Any = "cpu", *, backend: str = "mmap") -> dict[str, Tensor]:
    """The tensors in a file. Raises SafetensorError if it is not in the format."""
    with safe_open(filename, framework="pt", device=device, backend=backend) as file:
        return file.get_tensors()


# ---- writing -------------------------------------------------------------------------------------


def save(tensors: dict[str, Tensor], metadata: Optional[dict[str, str]] = None) -> bytes:
    """The content of a file with these tensors, which are contiguous and share no memory."""
    return b"".join(_parts(tensors, metadata))


def save_file(
    tensors: dict[str, Tensor], filename: _Path, metadata: Optional[dict[str, str]] = None
) -> None:
    """Write tensors, which are contiguous and share no memory, to a file. The file is replaced in
    one step.

    Raises ValueError for what is no contiguous tensor, RuntimeError for shared memory, KeyError for
    an element type that the format does not have.
    """
    parts = _parts(tensors, metadata)
    with replacing(os.fspath(filename)) as file:
        for part in parts:
            file.write(part)


def _parts(tensors: Any, metadata: Any) -> list:
    _check(tensors)
    if metadata is not None and not all(
        isinstance(text, str) for pair in metadata.items() for text in pair
    ):
        raise TypeError("save: expected metadata of text only")
    ordered = sorted(tensors.items(), key=lambda item: (_ORDER[_NAMES[item[1].dtype]], item[0]))
    header: dict[str, Any] = {}
    if metadata is not None:
        header[_METADATA] = dict(sorted(metadata.items()))
    contents, end = [], 0
    for name, tensor in ordered:
        content = tensor_bytes(tensor.cpu())
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [end, end + len(content)],
        }
        end += len(content)
        contents.append(content)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    text += b" " * (-len(text) % 8)
    return [struct.pack("<Q", len(text)), text, *contents]


def _check(tensors: Any) -> None:
    if not isinstance(tensors, dict):
        raise ValueError(f"save: expected a dictionary of tensors, got {type(tensors).__name__}")
    for name, tensor in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"save: expected text as names, got {type(name).__name__}")
        if not isinstance(tensor, Tensor):
            raise ValueError(f"save: expected a tensor as {name!r}, got {type(tensor).__name__}")
        if tensor.dtype not in _NAMES:
            raise KeyError(f"save: expected an element type of the format, got {tensor.dtype}")
    shared = [sorted(names) for names in _sharing(tensors) if len(names) > 1]
    if shared:
        raise RuntimeError(
            f"save: expected tensors that do not share memory, got {shared}.\n"
            "save_model keeps one of those that a network shares."
        )
    for name, tensor in tensors.items():
        if not tensor.is_contiguous():
            raise ValueError(
                f"save: expected contiguous tensors, got {name!r} with strides {tensor.stride()}; "
                "call contiguous() first"
            )


def _sharing(tensors: dict[str, Tensor]) -> Iterator[list[str]]:
    """The names in groups whose tensors have memory in common."""
    spans: dict[Any, list] = {}
    for name, tensor in tensors.items():
        if tensor.device.type != "meta" and tensor.numel():
            begin = tensor.storage_offset() * tensor.element_size()
            last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride()))
            end = begin + (last + 1) * tensor.element_size()
            storage = (str(tensor.device), tensor.untyped_storage().data_ptr())
            spans.setdefault(storage, []).append((begin, end, name))
    for found in spans.values():
        found.sort()
        group, group_end = [found[0][2]], found[0][1]
        for begin, end, name in found[1:]:
            if begin >= group_end:
                yield group
                group = []
            group.append(name)
            group_end = max(group_end, end)
        yield group


def _kept_names(state: dict[str, Tensor], preferred: Any = ()) -> dict[str, list[str]]:
    """The one to keep of tensors that share memory, with the names of the others."""
    kept = {}
    for names in _sharing(state):
        if len(names) < 2:
            continue
        whole = [
            name
            for name in names
            if state[name].numel() * state[name].element_size()
            == state[name].untyped_storage().nbytes()
        ]
        if not whole:
            raise RuntimeError(
                f"save_model: expected one of {sorted(names)}, which share memory, to be all of it"
            )
        keep = min([name for name in whole if name in preferred] or whole)
        kept[keep] = sorted(name for name in names if name != keep)
    return kept


def save_model(
    model: nn.Module,
    filename: _Path,
    metadata: Optional[dict[str, str]] = None,
    force_contiguous: bool = True,
) -> None:
    """Write the state of a network. One of the parameters that share memory is written; the
    metadata say which."""
    state = model.state_dict()
    for keep, others in _kept_names(state).items():
        for name in others:
            metadata = {} if metadata is None else metadata
            metadata.setdefault(name, keep)
            del state[name]
    if force_contiguous:
        state = {name: tensor.contiguous() for name, tensor in state.items()}
    save_file(dict(state), filename, metadata)


def load_model(
    model: nn.Module,
    filename: _Path,
    strict: bool = True,
    device: Any = "cpu",
    *,
    backend: str = "mmap",
) -> tuple[set, list]:
    """Load into a network what `save_model` wrote. Returns the names that were missing in the file
    and those that the network does not have; with strict=True such names are a RuntimeError."""
    state = load_file(filename, device, backend=backend)
    shared = _kept_names(model.state_dict(), state.keys())
    result = model.load_state_dict(state, strict=False)
    missing, unexpected = set(result.missing_keys), list(result.unexpected_keys)
    for name in (name for others in shared.values() for name in others):
        if name in missing:
            missing.remove(name)
        else:
            unexpected.append(name)
    if strict and (missing or unexpected):
        lines = [f"Error(s) in loading state_dict for {type(model).__name__}:"]
        for kind, names in (("Missing", missing), ("Unexpected", unexpected)):
            if names:
                listed = ", ".join(f'"{name}"' for name in sorted(names))
                lines.append(f"    {kind} key(s) in state_dict: {listed}")
        raise RuntimeError("\n".join(lines))
    return missing, unexpected

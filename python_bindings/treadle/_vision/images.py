"""torchvision's operators for image files, by the package Pillow.

    treadle.ops.image.decode_image(data, 0)      # bytes of a file -> (C, H, W), uint8

`mode` is torchvision's ImageReadMode: 0 as the file has it, 1 grey, 2 grey and alpha, 3 RGB, 4 RGB
and alpha.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import io
from typing import Any, Callable, Dict, Tuple

from treadle import _C, library
from treadle._C import Tensor
from treadle.library import Library

_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_FORMATS = {"png": "PNG", "jpeg": "JPEG", "webp": "WEBP", "gif": "GIF"}


def _pillow(what: str) -> Any:
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise RuntimeError(f"{what}: expected the package Pillow, got none: {error}") from None
    return Image, ImageOps


def _bytes(data: Tensor) -> bytes:
    whole = data.detach().cpu().contiguous()
    start = whole.storage_offset()
    return bytes(memoryview(whole.untyped_storage())[start : start + whole.numel()])


def _check_bytes(what: str, data: Tensor) -> None:
    if data.dtype != _C.uint8 or data.dim() != 1 or data.numel() == 0:
        raise RuntimeError(
            f"{what}: expected the bytes of a file, uint8 of one dimension, got {data.dtype} of "
            f"shape {tuple(data.shape)}"
        )


def _check_image(what: str, data: Tensor, channels: Tuple[int, ...]) -> None:
    if data.dtype != _C.uint8:
        raise RuntimeError(f"{what}: expected an image of uint8, got {data.dtype}")
    if data.dim() != 3 or data.shape[0] not in channels:
        wanted = " or ".join(map(str, channels))
        raise RuntimeError(
            f"{what}: expected a shape (C, H, W) of {wanted} channels, got {tuple(data.shape)}"
        )


def _tensor_of(image: Any) -> Tensor:
    """(C, H, W) of a Pillow image; of one with 16 bits uint16."""
    dtype = _C.uint16 if image.mode == "I;16" else _C.uint8
    flat = _C.frombuffer(bytearray(image.tobytes()), dtype=dtype)
    width, height = image.size
    return flat.reshape(height, width, len(image.getbands())).permute(2, 0, 1).contiguous()


def _as_written(image: Any) -> Any:
    """In the mode of torchvision that is the nearest to the file's own."""
    if image.mode in (*_MODES.values(), "I;16"):
        return image
    if image.mode == "1":
        return image.convert("L")
    return image.convert("RGBA" if "transparency" in image.info else "RGB")


def _decoded(what: str, data: Tensor, mode: int, kind: str, turn: bool = False) -> Tensor:
    _check_bytes(what, data)
    if mode not in (0, *_MODES):
        raise RuntimeError(f"{what}: expected a mode from 0 to 4, got {mode}")
    Image, ImageOps = _pillow(what)
    kinds = [kind] if kind else list(_FORMATS.values())
    try:
        image = Image.open(io.BytesIO(_bytes(data)), formats=kinds)
        if mode == 1:
            image.draft("L", image.size)  # a JPEG file has the grey image in it
        image.load()
    except (OSError, SyntaxError, ValueError) as error:
        raise RuntimeError(
            f"{what}: expected an image file, got bytes that are none: {error}"
        ) from None
    if turn:
        image = ImageOps.exif_transpose(image)
    return _tensor_of(image.convert(_MODES[mode]) if mode else _as_written(image))


def _decoder(kind: str) -> Callable[..., Tensor]:
    what = f"decode_{kind}"

    def decode(data: Tensor, mode: int = 0, apply_exif_orientation: bool = False) -> Tensor:
        return _decoded(what, data, mode, _FORMATS[kind], apply_exif_orientation)

    return decode


def decode_image(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    """(C, H, W) of a PNG, JPEG, GIF or WebP file; of an animation (N, C, H, W)."""
    if data.dim() == 1 and _bytes(data[:3]) == b"GIF":
        return decode_gif(data)
    return _decoded("decode_image", data, mode, "", apply_exif_orientation)


def decode_gif(encoded_data: Tensor) -> Tensor:
    """(3, H, W), or (N, 3, H, W) of an animation."""
    _check_bytes("decode_gif", encoded_data)
    Image, _ = _pillow("decode_gif")
    frames = []
    with Image.open(io.BytesIO(_bytes(encoded_data)), formats=["GIF"]) as image:
        for frame in range(image.n_frames):
            image.seek(frame)
            frames.append(_tensor_of(image.convert("RGB")))
    return frames[0] if len(frames) == 1 else _C.stack(frames)


def _encoded(what: str, data: Tensor, kind: str, **settings: int) -> Tensor:
    _check_image(what, data, (1, 3))
    Image, _ = _pillow(what)
    channels, height, width = data.shape
    pixels = _bytes(data.permute(1, 2, 0))
    image = Image.frombytes("L" if channels == 1 else "RGB", (width, height), pixels)
    file = io.BytesIO()
    image.save(file, kind, **settings)
    return _C.frombuffer(bytearray(file.getvalue()), dtype=_C.uint8)


def encode_png(data: Tensor, compression_level: int) -> Tensor:
    """The bytes of a PNG file."""
    if not 0 <= compression_level <= 9:
        raise RuntimeError(f"encode_png: expected a level from 0 to 9, got {compression_level}")
    return _encoded("encode_png", data, "PNG", compress_level=compression_level)


def encode_jpeg(data: Tensor, quality: int) -> Tensor:
    """The bytes of a JPEG file."""
    if not 1 <= quality <= 100:
        raise RuntimeError(f"encode_jpeg: expected a quality from 1 to 100, got {quality}")
    return _encoded("encode_jpeg", data, "JPEG", quality=quality)


def read_file(filename: str) -> Tensor:
    """The bytes of a file. RuntimeError where it cannot be read or is empty."""
    try:
        with open(filename, "rb") as file:
            data = file.read()
    except OSError as error:
        raise RuntimeError(f"read_file: {error}") from None
    if not data:
        raise RuntimeError(f"read_file: expected bytes in the file, got none: {filename}")
    return _C.frombuffer(bytearray(data), dtype=_C.uint8)


def write_file(filename: str, data: Tensor) -> Tensor:
    """Write bytes to a file. RuntimeError where it cannot be written."""
    _check_bytes("write_file", data)
    try:
        with open(filename, "wb") as file:
            file.write(_bytes(data))
    except OSError as error:
        raise RuntimeError(f"write_file: {error}") from None
    return data


_DECODER = "(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor"
_OPERATORS: Dict[str, Callable[..., Any]] = {
    f"decode_image{_DECODER}": decode_image,
    f"decode_png{_DECODER}": _decoder("png"),
    f"decode_jpeg{_DECODER}": _decoder("jpeg"),
    "decode_webp(Tensor encoded_data, int mode) -> Tensor": _decoder("webp"),
    "decode_gif(Tensor encoded_data) -> Tensor": decode_gif,
    "encode_png(Tensor data, int compression_level) -> Tensor": encode_png,
    "encode_jpeg(Tensor data, int quality) -> Tensor": encode_jpeg,
    "read_file(str filename) -> Tensor": read_file,
    "write_file(str filename, Tensor data) -> Tensor": write_file,
    "_jpeg_version() -> int": lambda: -1,
    "_is_compiled_against_turbo() -> bool": lambda: False,
}


@functools.lru_cache(maxsize=None)
def define() -> Library:
    """Define them, for as long as the program runs."""
    own = Library("image", "FRAGMENT")
    for schema, function in _OPERATORS.items():
        library.define(own, schema)(function)
    return own

"""The contents of files, by the ends of their names: texts, numbers, JSON, pictures, sounds.

    decode = Decoder(basichandlers, imagehandler("rgb8"))
    decode(("a/b.json", b"[1, 2]"))        # {"a/b.json": [1, 2]}

A handler is a function of the end of a name (without the point) and the bytes, which returns None
for what is not its own.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
import io
import json
import os
import pickle
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, Union

from treadle import _C

from .common import StreamWrapper

Handler = Callable[[str, Any], Any]

_IMAGES = ("jpg", "jpeg", "png", "ppm", "pgm", "pbm", "pnm")
_VIDEOS = ("mp4", "ogv", "mjpeg", "avi", "mov", "h264", "mpg", "webm", "wmv")
_SOUNDS = ("flac", "mp3", "sox", "wav", "m4a", "ogg", "wma")


def _module(name: str, package: str, kind: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"decode: expected the package {package}, which reads {kind}, to be installed",
            name=error.name,
        ) from error


def basichandlers(extension: str, data: Any) -> Any:
    """Texts (txt, text, transcript), integers (cls, cls2, class, count, index, inx, id; None for
    what is none), JSON (json, jsn), pickles (pyd, pickle) and files of save() (pt)."""
    from treadle.serialization import load as _load

    if extension in ("txt", "text", "transcript"):
        return data.decode("utf-8")
    if extension in ("cls", "cls2", "class", "count", "index", "inx", "id"):
        try:
            return int(data)
        except ValueError:
            return None
    if extension in ("json", "jsn"):
        return json.loads(data)
    if extension in ("pyd", "pickle"):
        return pickle.loads(data)  # noqa: S301  the format's own danger
    if extension == "pt":
        return _load(io.BytesIO(data))
    return None


def handle_extension(extensions: str, f: Callable[[Any], Any]) -> Handler:
    """A handler that gives data to a function where a name has one of the ends, "jpg tar.gz" say,
    whether in capitals or not."""
    ends = [end.split(".") for end in extensions.lower().split()]

    def handler(key: str, data: Any) -> Any:
        parts = key.lower().split(".")
        return f(data) if any(parts[-len(end) :] == end for end in ends) else None

    return handler


def _picture_form(spec: str) -> Tuple[str, str, str]:
    """(kind, dtype, mode) of "torchrgb8", "l", "pilrgba": see ImageHandler."""
    kind = next((k for k in ("torch", "pil") if spec.startswith(k)), "numpy")
    rest = spec[len(kind) :] if kind != "numpy" else spec
    if kind == "pil":
        dtype, mode = "", rest or "rgb"
    else:
        dtype, mode = ("uint8", rest[:-1]) if rest.endswith("8") else ("float32", rest or "rgb")
    if mode not in ("l", "rgb", "rgba") or (rest == "" and kind == "numpy"):
        raise AssertionError(
            "imagehandler: expected l, rgb or rgba, perhaps with 8 behind it, or with torch or pil "
            f"before it, got {spec!r}"
        )
    return kind, dtype, mode.upper()


class ImageHandler:
    """Reads pictures, by Pillow, to what the text says: "l", "rgb" and "rgba" are NumPy arrays
    (height, width[, channels]) of float32 from 0 to 1, with 8 behind of uint8; "torchrgb8" and so
    on are tensors of channels, height and width; "pil" and "pilrgb" are Pillow's. AssertionError
    for another text; ModuleNotFoundError where a package is not there."""

    def __init__(self, imagespec: str) -> None:
        self.form = _picture_form(imagespec.lower())
        self.imagespec = imagespec.lower()

    def __call__(self, extension: str, data: bytes) -> Any:
        if extension.lower() not in _IMAGES:
            return None
        kind, dtype, mode = self.form
        image = _module("PIL.Image", "pillow", "pictures").open(io.BytesIO(data))
        image.load()
        image = image.convert(mode)
        if kind == "pil":
            return image
        import numpy as np

        result = np.asarray(image)
        if dtype == "float32":
            result = result.astype("f") / 255.0
        if kind == "numpy":
            return result
        tensor = _C.tensor(result)
        return tensor.permute(2, 0, 1) if tensor.dim() == 3 else tensor


def imagehandler(imagespec: str) -> ImageHandler:
    """A handler of pictures: see ImageHandler."""
    return ImageHandler(imagespec)


def videohandler(extension: str, data: bytes) -> Any:
    """Videos, as torchvision.io.read_video() gives them."""
    if extension not in _VIDEOS:
        return None
    import tempfile

    read = _module("torchvision.io", "torchvision", "videos").read_video
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"file.{extension}")
        with open(path, "wb") as stream:
            stream.write(data)
        return read(path)


def audiohandler(extension: str, data: bytes) -> Any:
    """Sounds, as torchaudio.load() gives them."""
    if extension not in _SOUNDS:
        return None
    import tempfile

    load = _module("torchaudio", "torchaudio", "sounds").load
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"file.{extension}")
        with open(path, "wb") as stream:
            stream.write(data)
        return load(path)


class MatHandler:
    """Files of MATLAB (mat), as scipy.io.loadmat() gives them with these keywords."""

    def __init__(self, **loadmat_kwargs: Any) -> None:
        self.sio = _module("scipy.io", "scipy", "files of MATLAB")
        self.loadmat_kwargs = loadmat_kwargs

    def __call__(self, extension: str, data: bytes) -> Any:
        if extension != "mat":
            return None
        return self.sio.loadmat(io.BytesIO(data), **self.loadmat_kwargs)


def mathandler(**loadmat_kwargs: Any) -> MatHandler:
    """A handler of files of MATLAB: see MatHandler."""
    return MatHandler(**loadmat_kwargs)


def extension_extract_fn(pathname: str) -> str:
    """The part behind the last point of a file's name, "" where there is none."""
    return os.path.splitext(pathname)[1].lstrip(".")


class Decoder:
    """Decodes pairs of a path and its bytes, or its open file, by the first handler that returns
    something; what none takes stays bytes. key_fn: from a path to what handlers are given."""

    def __init__(
        self, *handler: Optional[Handler], key_fn: Callable[[str], str] = extension_extract_fn
    ) -> None:
        self.handlers: List[Handler] = [h for h in handler if h is not None]
        self.key_fn = key_fn

    def add_handler(self, *handler: Optional[Handler]) -> None:
        """Add handlers behind those that are there."""
        self.handlers += [h for h in handler if h is not None]

    def decode1(self, key: str, data: Any) -> Any:
        """The value of data whose path gave this key."""
        if not data:
            return data
        for handler in self.handlers:
            result = handler(key, data)
            if result is not None:
                return result
        return data

    def decode(
        self, data: Union[Tuple[str, Any], Iterable[Tuple[str, Any]], None]
    ) -> Dict[str, Any]:
        """From each path to its value, for a pair or several. A value whose path begins with an
        underscore is text, as it is."""
        pairs = [data] if isinstance(data, tuple) else data
        result: Dict[str, Any] = {}
        for path, value in pairs or ():
            if path.startswith("_"):
                result[path] = value.decode("utf-8") if isinstance(value, bytes) else value
                continue
            if isinstance(value, (io.BufferedIOBase, io.RawIOBase, StreamWrapper)):
                stream = value
                value = stream.read()  # noqa: PLW2901
                stream.close()
            result[path] = self.decode1(self.key_fn(path), value)
        return result

    __call__ = decode


__all__ = ["Decoder", "ImageHandler", "MatHandler", "audiohandler", "basichandlers",
           "extension_extract_fn", "handle_extension", "imagehandler", "mathandler",
           "videohandler"]  # fmt: skip

"""torchvision's operators for image files."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import treadle
import treadle._vision.images

treadle._vision.images.define()
ops = treadle.ops.image
PIXELS = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)


def _file(mode: str, kind: str, **settings: Any) -> treadle.Tensor:
    file = io.BytesIO()
    Image.fromarray(PIXELS).convert(mode).save(file, kind, **settings)
    return treadle.frombuffer(bytearray(file.getvalue()), dtype=treadle.uint8)


def test_png_keeps_every_pixel() -> None:
    image = ops.decode_png(_file("RGB", "PNG"), 0)
    assert image.dtype == treadle.uint8 and image.is_contiguous()
    assert (image.permute(1, 2, 0).numpy() == PIXELS).all()
    again = ops.decode_image(ops.encode_png(image, 6), 0)
    assert treadle.equal(again, image)
    grey = image[:1]
    assert treadle.equal(ops.decode_png(ops.encode_png(grey, 0), 0), grey)


@pytest.mark.parametrize(("mode", "channels"), [(0, 3), (1, 1), (2, 2), (3, 3), (4, 4)])
def test_modes(mode: int, channels: int) -> None:
    for file, decode in (("PNG", ops.decode_png), ("JPEG", ops.decode_jpeg)):
        assert decode(_file("RGB", file), mode).shape == (channels, 5, 7)


@pytest.mark.parametrize(("mode", "channels"), [("1", 1), ("L", 1), ("P", 3), ("RGBA", 4)])
def test_files_of_other_kinds_are_read_as_they_are(mode: str, channels: int) -> None:
    assert ops.decode_image(_file(mode, "PNG"), 0).shape == (channels, 5, 7)


def test_sixteen_bits() -> None:
    values = np.arange(35, dtype=np.uint16).reshape(5, 7) * 1000
    file = io.BytesIO()
    Image.fromarray(values).save(file, "PNG")
    data = treadle.frombuffer(bytearray(file.getvalue()), dtype=treadle.uint8)
    found = ops.decode_png(data, 0)
    assert found.dtype == treadle.uint16 and (found[0].numpy() == values).all()


def test_jpeg_is_near_and_turns_by_what_the_file_says() -> None:
    smooth = treadle.arange(64, dtype=treadle.uint8).reshape(1, 8, 8).repeat(3, 1, 1)
    found = ops.decode_jpeg(ops.encode_jpeg(smooth, 95), 0)
    assert (found.int() - smooth.int()).abs().max() <= 2
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter
    data = _file("RGB", "JPEG", exif=exif)
    assert ops.decode_jpeg(data, 0).shape == (3, 5, 7)
    assert ops.decode_jpeg(data, 0, True).shape == (3, 7, 5)


def test_animations() -> None:
    frames = [Image.fromarray(PIXELS + shift) for shift in (0, 50)]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    data = treadle.frombuffer(bytearray(file.getvalue()), dtype=treadle.uint8)
    assert ops.decode_image(data, 0).shape == (2, 3, 5, 7)
    assert ops.decode_gif(_file("RGB", "GIF")).shape == (3, 5, 7)


def test_files(tmp_path: Path) -> None:
    path = str(tmp_path / "data")
    data = treadle.arange(10, dtype=treadle.uint8)
    ops.write_file(path, data[3:])
    assert Path(path).read_bytes() == bytes(range(3, 10))
    assert treadle.equal(ops.read_file(path), data[3:])
    Path(path).write_bytes(b"")
    with pytest.raises(RuntimeError) as error:
        ops.read_file(path)
    assert str(error.value) == f"read_file: expected bytes in the file, got none: {path}"
    with pytest.raises(RuntimeError, match=r"^read_file: .*No such file"):
        ops.read_file(str(tmp_path / "none"))
    with pytest.raises(RuntimeError, match=r"^write_file: .*No such file"):
        ops.write_file(str(tmp_path / "none" / "x"), data)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: ops.decode_png(treadle.zeros(3), 0),
            "decode_png: expected the bytes of a file, uint8 of one dimension, got "
            "treadle.float32 of shape (3,)",
        ),
        (
            lambda: ops.decode_png(_file("RGB", "PNG"), 9),
            "decode_png: expected a mode from 0 to 4, got 9",
        ),
        (
            lambda: ops.encode_png(treadle.zeros(2, 3, 3, dtype=treadle.uint8), 6),
            "encode_png: expected a shape (C, H, W) of 1 or 3 channels, got (2, 3, 3)",
        ),
        (
            lambda: ops.encode_png(treadle.zeros(1, 3, 3), 6),
            "encode_png: expected an image of uint8, got treadle.float32",
        ),
        (
            lambda: ops.encode_png(treadle.zeros(1, 3, 3, dtype=treadle.uint8), 10),
            "encode_png: expected a level from 0 to 9, got 10",
        ),
        (
            lambda: ops.encode_jpeg(treadle.zeros(1, 3, 3, dtype=treadle.uint8), 0),
            "encode_jpeg: expected a quality from 1 to 100, got 0",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError) as error:
        call()
    assert str(error.value) == message


def test_bytes_of_no_image_are_refused() -> None:
    with pytest.raises(RuntimeError, match="^decode_jpeg: expected an image file, got bytes that"):
        ops.decode_jpeg(_file("RGB", "PNG"), 0)

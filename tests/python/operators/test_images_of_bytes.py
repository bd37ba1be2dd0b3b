"""Images of bytes, made smaller and larger: the numbers are those of PyTorch 2.15."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import numpy as np
import pytest

import treadle

RESIZED = {
    ("bilinear", (3, 4), True): [53, 46, 68, 98, 165, 82, 97, 157, 114, 128, 88, 136],
    ("bicubic", (3, 4), True): [42, 42, 65, 95, 185, 75, 94, 168, 106, 137, 85, 133],
    ("bilinear", (2, 9), False): [49, 59, 72, 85, 100, 116, 134, 152, 169]
    + [31, 69, 114, 161, 208, 62, 56, 107, 152],
}


@pytest.mark.parametrize("mode, size, antialias", RESIZED)
def test_a_resized_image(mode: str, size: tuple, antialias: bool) -> None:
    numbers = (np.arange(42) ** 2 % 251).astype(np.uint8)
    image = treadle.tensor(numbers).view(1, 1, 6, 7)
    resized = treadle.nn.functional.interpolate(image, size=size, mode=mode, antialias=antialias)
    assert resized.dtype == treadle.uint8
    assert resized.flatten().tolist() == RESIZED[mode, size, antialias]


def test_each_channel_alone_and_in_any_layout() -> None:
    image = treadle.arange(2 * 3 * 6 * 7).to(treadle.uint8).view(2, 3, 6, 7)
    resize = treadle.nn.Upsample(size=(4, 5), mode="bilinear")
    whole = resize(image)
    assert treadle.equal(whole[1, 2], resize(image[1:, 2:])[0, 0])
    last = image.contiguous(memory_format=treadle.channels_last)
    assert treadle.equal(resize(last), whole)

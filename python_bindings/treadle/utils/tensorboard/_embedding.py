"""Points of an embedding, in the files that TensorBoard's projector reads: numbers and labels as
tab-separated lines, pictures as one sheet, and a list of them all.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
import os
from typing import Any, Optional

import numpy as np

from . import _png
from ._arrays import picture, to_array

_LIST = "projector_config.pbtxt"


def write(
    log_dir: str,
    folder: str,
    name: str,
    points: Any,
    labels: Optional[list],
    header: Optional[list],
    pictures: Optional[Any],
) -> None:
    """Write one embedding to `folder` below `log_dir`, and add it to the list."""
    array = to_array(points)
    if array.ndim != 2:
        raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
    path = os.path.join(log_dir, folder)
    os.makedirs(path, exist_ok=True)
    lines = [f'tensor_name: "{name}"', f'tensor_path: "{folder}/tensors.tsv"']
    _write_lines(
        os.path.join(path, "tensors.tsv"), ["\t".join(map(str, row)) for row in array.tolist()]
    )
    if labels is not None:
        if len(labels) != len(array):
            raise AssertionError("#labels should equal with #data points")
        rows = [map(str, row) for row in labels] if header else ([str(label)] for label in labels)
        texts = ["\t".join(header)] if header else []
        texts += ["\t".join(row) for row in rows]
        _write_lines(os.path.join(path, "metadata.tsv"), texts)
        lines.append(f'metadata_path: "{folder}/metadata.tsv"')
    if pictures is not None:
        sheet, height, width = _sheet(to_array(pictures), len(array))
        with open(os.path.join(path, "sprite.png"), "wb") as file:
            file.write(_png.encode(sheet))
        lines += [
            "sprite {",
            f'  image_path: "{folder}/sprite.png"',
            f"  single_image_dim: {width}",
            f"  single_image_dim: {height}",
            "}",
        ]
    with open(os.path.join(log_dir, _LIST), "a", encoding="utf-8") as file:
        file.write("embeddings {\n" + "".join(f"  {line}\n" for line in lines) + "}\n")


def _write_lines(path: str, lines: list[str]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write("".join(line + "\n" for line in lines))


def _sheet(pictures: np.ndarray, count: int) -> tuple[np.ndarray, int, int]:
    """Pictures (of shape NCHW) in a square, as the projector cuts it up again."""
    if len(pictures) != count:
        raise AssertionError("#images should equal with #data points")
    side = math.ceil(math.sqrt(count))
    height, width = pictures.shape[2:]
    rows = []
    padded = np.zeros((side * side, *pictures.shape[1:]), pictures.dtype)
    padded[:count] = pictures
    for begin in range(0, side * side, side):
        row = np.concatenate(list(padded[begin : begin + side]), axis=2)
        rows.append(picture(row, "CHW"))
    return np.concatenate(rows), height, width

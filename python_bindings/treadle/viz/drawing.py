"""The autograd graph of a tensor as a picture: leaves above, operators below, the tensor last."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
from typing import Any, Union

from treadle._atomic_file import replacing
from treadle._C import Tensor

from .boxes import Box, drawn_box, drawn_lines, picture
from .history import Step, named_tensors, steps_of
from .layout import lay_out


class Drawing:
    """A picture, as SVG: notebooks show it, `save` writes it, `svg` is its text."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def save(self, path: Union[str, os.PathLike]) -> None:
        """Write the picture to a file."""
        with replacing(os.fspath(path)) as file:
            file.write(self.svg.encode("utf-8"))

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.svg


def graph(loss: Tensor, params: Any = None) -> Drawing:
    """Draw how `loss` came to be: a box for every operator that backward goes through, and for
    every leaf that gets a gradient.

    params: what leaves are called: a network, a dictionary from names to tensors, or pairs of both.
    Returns a Drawing. TypeError for what is no tensor; RuntimeError for a tensor that backward
    cannot start from.
    """
    if not isinstance(loss, Tensor):
        raise TypeError(f"graph: expected a tensor, got {type(loss).__name__}")
    if not loss.requires_grad:
        raise RuntimeError(
            "graph: expected a tensor with a history, got one that does not require grad"
        )
    names = named_tensors(params)
    steps = steps_of(loss, names)
    boxes = [_box(step) for step in steps]
    inputs = [step.inputs for step in steps]
    if loss.grad_fn is not None:
        boxes.append(Box("result", names.get(id(loss), "result"), (_shape(tuple(loss.shape)),)))
        inputs.append((len(steps) - 1,))
    heights = [box.height for box in boxes]
    layout = lay_out(inputs, [box.width for box in boxes], heights)
    parts = drawn_lines(layout, heights)
    for box, centre in zip(boxes, layout.centres):
        parts += drawn_box(box, *centre)
    return Drawing(picture(parts, layout))


def _shape(shape: tuple) -> str:
    return "(" + ", ".join(map(str, shape)) + ")" if shape else "()"


def _box(step: Step) -> Box:
    return Box(
        step.kind,
        step.name or ("parameter" if step.kind == "parameter" else "tensor"),
        () if step.shape is None else (_shape(step.shape),),
    )

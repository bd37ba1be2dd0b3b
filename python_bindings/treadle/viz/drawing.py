"""The autograd graph of a tensor as a picture: leaves above, operators below, the tensor last."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
from html import escape
from typing import Any, NamedTuple, Union

from treadle._atomic_file import replacing
from treadle._C import Tensor

from .history import Step, named_tensors, steps_of
from .layout import Layout, lay_out

_MARGIN = 16.0
_CHARACTER = 7.3  # the width of one, at the size below, in the fonts that there are
_LINE = 16.0
_STYLE = (
    "text{font:12px ui-monospace,Menlo,Consolas,monospace;text-anchor:middle;fill:#1b1f24}"
    ".shape{fill:#57606a;font-size:11px}"
    "rect{stroke-width:1.2}"
    ".operator{fill:#f6f8fa;stroke:#8c959f}.parameter{fill:#ddf4ff;stroke:#0969da}"
    ".leaf{fill:#dafbe1;stroke:#1a7f37}.result{fill:#fff8c5;stroke:#9a6700}"
    "path{fill:none;stroke:#8c959f;stroke-width:1.2}"
)


class _Box(NamedTuple):
    kind: str
    title: str
    below: str  # the shape

    @property
    def width(self) -> float:
        return max(len(self.title), len(self.below), 4) * _CHARACTER + 20

    @property
    def height(self) -> float:
        return 12 + _LINE * (2 if self.below else 1)


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
        boxes.append(_Box("result", names.get(id(loss), "result"), _shape(tuple(loss.shape))))
        inputs.append((len(steps) - 1,))
    layout = lay_out(inputs, [box.width for box in boxes], [box.height for box in boxes])
    return Drawing(_svg(boxes, layout))


def _shape(shape: tuple) -> str:
    return "(" + ", ".join(map(str, shape)) + ")" if shape else "()"


def _box(step: Step) -> _Box:
    return _Box(
        step.kind,
        step.name or ("parameter" if step.kind == "parameter" else "tensor"),
        "" if step.shape is None else _shape(step.shape),
    )


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _svg(boxes: list[_Box], layout: Layout) -> str:
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_number(width)}" '
        f'height="{_number(height)}" viewBox="0 0 {_number(width)} {_number(height)}">',
        f"<style>{_STYLE}</style>",
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" style="fill:#8c959f;stroke:none"/>'
        "</marker></defs>",
        f'<rect width="{_number(width)}" height="{_number(height)}" fill="#fff" stroke="none"/>',
        f'<g transform="translate({_number(_MARGIN)} {_number(_MARGIN)})">',
    ]
    for source, target, bends in layout.lines:
        x0, y0 = layout.centres[source]
        x1, y1 = layout.centres[target]
        ends = (x0, y0 + boxes[source].height / 2), (x1, y1 - boxes[target].height / 2 - 1)
        parts.append(f'<path marker-end="url(#arrow)" d="{_curve([ends[0], *bends, ends[1]])}"/>')
    for box, (x, y) in zip(boxes, layout.centres):
        parts += _drawn(box, x, y)
    return "\n".join([*parts, "</g>", "</svg>"]) + "\n"


def _curve(points: list[tuple[float, float]]) -> str:
    """A line through the points that leaves and reaches each straight down."""
    (x, y), *rest = points
    path = [f"M{_number(x)} {_number(y)}"]
    for next_x, next_y in rest:
        middle = _number((y + next_y) / 2)
        path.append(f"C{_number(x)} {middle} {_number(next_x)} {middle} "
                    f"{_number(next_x)} {_number(next_y)}")  # fmt: skip
        x, y = next_x, next_y
    return "".join(path)


def _drawn(box: _Box, x: float, y: float) -> list[str]:
    left, top = _number(x - box.width / 2), _number(y - box.height / 2)
    size = f'width="{_number(box.width)}" height="{_number(box.height)}"'
    first = y + 4 - (_LINE / 2 if box.below else 0)
    lines = [
        f'<rect class="{box.kind}" x="{left}" y="{top}" {size} rx="5"/>',
        f'<text x="{_number(x)}" y="{_number(first)}">{escape(box.title)}</text>',
    ]
    if box.below:
        lines.append(
            f'<text class="shape" x="{_number(x)}" y="{_number(first + _LINE)}">'
            f"{escape(box.below)}</text>"
        )
    return lines

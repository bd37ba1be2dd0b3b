"""Groups of fused operators as a picture: what crosses memory, and what stays in the cache."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from .boxes import Box, drawn_box, drawn_lines, number, picture
from .drawing import Drawing
from .layout import Layout, lay_out
from .segments import size_text

if TYPE_CHECKING:
    from treadle._C import dtype
    from treadle.fusion.explanation import ExplainedGroup
    from treadle.fusion.group import Group, Read, Step

_PAD, _TITLE = 14.0, 24.0
_CHARACTER = 7.3  # the width of one in a title
_STYLE = (
    ".group{fill:#fff;stroke:#1b1f24}.cut{fill:#ffebe9;stroke:#cf222e}text.title{text-anchor:start}"
)


class _Pass(NamedTuple):
    """A group with its operators in their places."""

    title: str
    cost: str
    boxes: list[Box]
    layout: Layout

    @property
    def width(self) -> float:
        text = max(len(self.title), len(self.cost)) * _CHARACTER
        return max(self.layout.width, text) + 2 * _PAD

    @property
    def height(self) -> float:
        return self.layout.height + 2 * _TITLE + _PAD

    def drawn(self, x: float, y: float) -> list[str]:
        """The group, with its centre at (x, y)."""
        left, top = x - self.width / 2, y - self.height / 2
        inner = left + (self.width - self.layout.width) / 2
        lines = [
            f'<rect class="group" x="{number(left)}" y="{number(top)}" '
            f'width="{number(self.width)}" height="{number(self.height)}" rx="5"/>',
        ]
        for text, line in (
            (self.title, top + _TITLE - 8),
            (self.cost, top + self.height - 8),
        ):
            lines.append(
                f'<text class="title" x="{number(left + _PAD)}" y="{number(line)}">'
                f"{escape(text)}</text>"
            )
        lines.append(f'<g transform="translate({number(inner)} {number(top + _TITLE + 2)})">')
        lines += drawn_lines(self.layout, [box.height for box in self.boxes])
        for box, centre in zip(self.boxes, self.layout.centres):
            lines += drawn_box(box, *centre)
        return [*lines, "</g>"]


def draw(groups: Sequence[ExplainedGroup]) -> Drawing:
    """Draw each group as a box with its operators in it. The boxes between groups are what crosses
    memory: what a group reads is green, what it writes yellow, and what it reads of another group
    red, with the reason why the two are not one.
    """
    parts: list[Box | _Pass] = []
    inputs: list[tuple[int, ...]] = []
    written: dict[int, int] = {}  # the boxes of values
    for explained in groups:
        group, shapes = explained.group, explained.group.shapes()
        before = len(parts)
        for read in group.reads:
            parts.append(_read_box(read))
            inputs.append((written[read.source],) if read.why_apart else ())
        place = len(parts)
        parts.append(_pass(group, shapes, explained.cost))
        inputs.append(tuple(range(before, place)))
        for step in group.steps:
            if step.is_written:
                written[step.value] = len(parts)
                below = _memory(step.dtype, shapes[step.value])
                parts.append(Box("result", f"%{step.value}", below))
                inputs.append((place,))
    heights = [part.height for part in parts]
    layout = lay_out(inputs, [part.width for part in parts], heights)
    lines = drawn_lines(layout, heights)
    for part, (x, y) in zip(parts, layout.centres):
        lines += part.drawn(x, y) if isinstance(part, _Pass) else drawn_box(part, x, y)
    return Drawing(picture(lines, layout, _STYLE))


def _read_box(read: Read) -> Box:
    below = _memory(read.dtype, read.shape)
    if read.why_apart:
        return Box("cut", f"%{read.value}", (*below, read.why_apart))
    return Box("leaf", f"%{read.value}", below)


def _pass(group: Group, shapes: dict[int, tuple[int, ...]], cost: str) -> _Pass:
    places = {step.value: place for place, step in enumerate(group.steps)}
    boxes = [Box("operator", step.call, (f"{shapes[step.value]}",)) for step in group.steps]
    inputs = [_inside(step, places) for step in group.steps]
    layout = lay_out(inputs, [box.width for box in boxes], [box.height for box in boxes])
    return _Pass(f"group {group.shape}", cost, boxes, layout)


def _inside(step: Step, places: dict[int, int]) -> tuple[int, ...]:
    """The operators of the group that the step reads."""
    return tuple(places[value] for value in step.inputs if value in places)


def _memory(d: dtype, shape: tuple[int, ...]) -> tuple[str, str]:
    name = str(d).rpartition(".")[2]
    return f"{name} {shape}", size_text(_count(shape) * d.itemsize)


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count

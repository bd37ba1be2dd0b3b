"""Boxes and lines of a picture, as SVG: what pictures of graphs share."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from .layout import Layout

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


class Box(NamedTuple):
    """A box with a title, and lines of text below it in grey."""

    kind: str  # its class, for the style
    title: str
    below: tuple[str, ...] = ()

    @property
    def width(self) -> float:
        return max(*map(len, (self.title, *self.below)), 4) * _CHARACTER + 20

    @property
    def height(self) -> float:
        return 12 + _LINE * (1 + len(self.below))


def number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def picture(parts: Iterable[str], layout: Layout, style: str = "") -> str:
    """The text of an SVG file, in which `parts` are drawn. `style` is added to that of all."""
    width, height = number(layout.width + 2 * _MARGIN), number(layout.height + 2 * _MARGIN)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}">',
        f"<style>{_STYLE}{style}</style>",
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" style="fill:#8c959f;stroke:none"/>'
        "</marker></defs>",
        f'<rect width="{width}" height="{height}" fill="#fff" stroke="none"/>',
        f'<g transform="translate({number(_MARGIN)} {number(_MARGIN)})">',
        *parts,
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def drawn_lines(layout: Layout, heights: Sequence[float]) -> list[str]:
    """The lines between boxes of these heights."""
    parts = []
    for source, target, bends in layout.lines:
        x0, y0 = layout.centres[source]
        x1, y1 = layout.centres[target]
        ends = (x0, y0 + heights[source] / 2), (x1, y1 - heights[target] / 2 - 1)
        parts.append(f'<path marker-end="url(#arrow)" d="{_curve([ends[0], *bends, ends[1]])}"/>')
    return parts


def drawn_box(box: Box, x: float, y: float) -> list[str]:
    """The box, with its centre at (x, y)."""
    left, top = number(x - box.width / 2), number(y - box.height / 2)
    size = f'width="{number(box.width)}" height="{number(box.height)}"'
    first = y + 4 - _LINE / 2 * len(box.below)
    lines = [
        f'<rect class="{box.kind}" x="{left}" y="{top}" {size} rx="5"/>',
        f'<text x="{number(x)}" y="{number(first)}">{escape(box.title)}</text>',
    ]
    for place, text in enumerate(box.below, 1):
        lines.append(
            f'<text class="shape" x="{number(x)}" y="{number(first + place * _LINE)}">'
            f"{escape(text)}</text>"
        )
    return lines


def _curve(points: list[tuple[float, float]]) -> str:
    """A line through the points that leaves and reaches each straight down."""
    (x, y), *rest = points
    path = [f"M{number(x)} {number(y)}"]
    for next_x, next_y in rest:
        middle = number((y + next_y) / 2)
        path.append(f"C{number(x)} {middle} {number(next_x)} {middle} "
                    f"{number(next_x)} {number(next_y)}")  # fmt: skip
        x, y = next_x, next_y
    return "".join(path)

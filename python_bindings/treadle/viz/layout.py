"""Where the boxes of a graph go: in layers from top to bottom; lines run down and cross little.

Four steps, each after K. Sugiyama, S. Tagawa and M. Toda, "Methods for visual understanding of
hierarchical system structures" (1981): every box gets a layer below all it depends on; a line that
skips layers gets a bend in each; boxes of a layer are ordered by where their neighbours are; and
each is moved towards its neighbours as far as the others let it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_SWEEPS = 12
_MOST_BOXES = 20_000  # with bends; more take too long
_GAP_X, _GAP_Y = 24.0, 44.0
_BEND = 10.0


class Layout(NamedTuple):
    """Centres of the boxes, the points that each line goes through, and the size of it all."""

    centres: list[tuple[float, float]]
    lines: list[tuple[int, int, list[tuple[float, float]]]]  # from box, to box, bends
    width: float
    height: float


def _layers(inputs: Sequence[Sequence[int]]) -> list[int]:
    """A layer for each box: below its inputs. Boxes without inputs, and those made of nothing else,
    are as low as their outputs allow, so that they lie near where they are used."""
    layer: list[int] = []
    for before in inputs:
        layer.append(1 + max((layer[i] for i in before), default=-1))
    above: list[list[int]] = [[] for _ in inputs]
    for box in reversed(range(len(inputs))):
        if above[box] and not any(inputs[i] for i in inputs[box]):
            layer[box] = min(above[box]) - 1
        for i in inputs[box]:
            above[i].append(layer[box])
    return layer


class _Grid:
    """Boxes and bends in layers, with the lines between neighbouring layers."""

    def __init__(self, inputs: Sequence[Sequence[int]], widths: Sequence[float]) -> None:
        layer = _layers(inputs)
        self.widths = list(widths)
        self.rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
        for box, row in enumerate(layer):
            self.rows[row].append(box)
        self.above: list[list[int]] = [[] for _ in inputs]
        self.below: list[list[int]] = [[] for _ in inputs]
        self.paths: list[tuple[int, int, list[int]]] = []
        lines = [
            (source, box) for box, before in enumerate(inputs) for source in dict.fromkeys(before)
        ]
        lines.sort(key=lambda line: layer[line[1]] - layer[line[0]])
        for source, target in lines:
            self._connect(source, target, layer[source], layer[target])

    def _connect(self, source: int, target: int, first: int, last: int) -> None:
        if len(self.widths) + last - first > _MOST_BOXES:
            self.paths.append((source, target, []))  # the longest lines go straight
            return
        bends, previous = [], source
        for row in range(first + 1, last):
            bend = len(self.widths)
            self.widths.append(_BEND)
            self.above.append([])
            self.below.append([])
            self.rows[row].append(bend)
            self._link(previous, bend)
            bends.append(bend)
            previous = bend
        self._link(previous, target)
        self.paths.append((source, target, bends))

    def _link(self, upper: int, lower: int) -> None:
        self.below[upper].append(lower)
        self.above[lower].append(upper)


def _order(grid: _Grid) -> None:
    """Sorts each row by the middle of its neighbours in the row before, down and up in turn."""
    place = [0] * len(grid.widths)

    def number(row: list[int]) -> None:
        for position, box in enumerate(row):
            place[box] = position

    for row in grid.rows:
        number(row)
    best, fewest = [list(row) for row in grid.rows], _crossings(grid, place)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        neighbours = grid.above if down else grid.below
        for row in grid.rows if down else reversed(grid.rows):
            middle = {
                box: sum(place[n] for n in neighbours[box]) / len(neighbours[box])
                if neighbours[box]
                else place[box]
                for box in row
            }
            row.sort(key=middle.__getitem__)
            number(row)
        crossings = _crossings(grid, place)
        if crossings < fewest:
            best, fewest = [list(row) for row in grid.rows], crossings
        if fewest == 0:
            break
    grid.rows = best


def _crossings(grid: _Grid, place: list[int]) -> int:
    """How often lines between neighbouring rows cross: inversions in the order of their ends."""
    total = 0
    for row in grid.rows:
        ends = [
            end for box in sorted(row, key=place.__getitem__)
            for end in sorted(place[n] for n in grid.below[box])
        ]  # fmt: skip
        total += _inversions(ends)
    return total


def _inversions(values: list[int]) -> int:
    if len(values) < 2:
        return 0
    middle = len(values) // 2
    left, right = values[:middle], values[middle:]
    count = _inversions(left) + _inversions(right)
    left.sort()
    right.sort()
    position = 0
    for value in left:
        while position < len(right) and right[position] < value:
            position += 1
        count += position
    return count


def _closest(wanted: list[float], distances: list[float]) -> list[float]:
    """The positions nearest to `wanted` (by squares) that keep their distances from one to the
    next: neighbours that are too close become a block, which goes where its mean wants."""
    offsets = [0.0]
    for distance in distances:
        offsets.append(offsets[-1] + distance)
    blocks: list[list[float]] = []  # sum, count
    for want, offset in zip(wanted, offsets):
        blocks.append([want - offset, 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    means = [total / count for total, count in blocks for _ in range(int(count))]
    return [mean + offset for mean, offset in zip(means, offsets)]


def _place(grid: _Grid) -> list[float]:
    x = [0.0] * len(grid.widths)
    gaps = [
        [(grid.widths[a] + grid.widths[b]) / 2 + _GAP_X for a, b in zip(row, row[1:])]
        for row in grid.rows
    ]
    for row, gap in zip(grid.rows, gaps):
        for box, position in zip(row, _closest([0.0] * len(row), gap)):
            x[box] = position
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        rows = list(zip(grid.rows, gaps))
        for row, gap in rows if down else reversed(rows):
            wanted = []
            for box in row:
                near = (grid.above[box] if down else grid.below[box]) or [
                    *grid.above[box], *grid.below[box]
                ]  # fmt: skip
                wanted.append(sum(x[n] for n in near) / len(near) if near else x[box])
            for box, position in zip(row, _closest(wanted, gap)):
                x[box] = position
    return x


def lay_out(
    inputs: Sequence[Sequence[int]], widths: Sequence[float], heights: Sequence[float]
) -> Layout:
    """Where boxes of these sizes go. `inputs`: for each box those that lines come from, which are
    earlier in the list."""
    grid = _Grid(inputs, widths)
    _order(grid)
    x = _place(grid)
    left = min((x[box] - grid.widths[box] / 2 for row in grid.rows for box in row), default=0.0)
    y, top = [0.0] * len(x), 0.0
    for row in grid.rows:
        height = max((heights[box] for box in row if box < len(heights)), default=0.0)
        for box in row:
            x[box] -= left
            y[box] = top + height / 2
        top += height + _GAP_Y
    width = max((x[box] + grid.widths[box] / 2 for row in grid.rows for box in row), default=0.0)
    lines = [
        (source, target, [(x[bend], y[bend]) for bend in bends])
        for source, target, bends in grid.paths
    ]
    return Layout(
        [(x[box], y[box]) for box in range(len(inputs))], lines, width, max(top - _GAP_Y, 0.0)
    )

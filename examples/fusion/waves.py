"""The wave equation on a grid: waves run through two slits, and meet behind them.

    python examples/fusion/waves.py            # 4 s on one core
    python examples/fusion/waves.py --small    # 2 s

`treadle.meta.reindex` fetches the neighbours of each point; what is outside of the grid is 0. All
else of a step waits, and is one pass over memory. Behind the slits, the waves of both cancel where
their ways differ by half a wave. The program finds such a place, and draws waves.png.

Reaches: pixels <= 4 (small: <= 4), the distance of the place from where geometry has it
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import math

from _timing import bits_agree, print_times

import treadle
from treadle import Tensor, meta
from treadle.nn import functional

SPEED2 = 0.45  # the square of the points that a wave runs in a step
LENGTH, APART, WIDE = 16, 48, 8  # of a wave; from slit to slit; of a slit; in points
SOURCE, WALL, EDGE = 40, 72, 32  # columns, and the points at each edge that swallow waves
PERIODS = 4


def moved(u: Tensor, down: int, right: int) -> Tensor:
    """The neighbour of each point, and 0 at the edge."""
    return meta.reindex(u, u.shape, [f"i0 - {down}", f"i1 - {right}"])


def around(u: Tensor) -> Tensor:
    """The sum of the four neighbours of each point."""
    return moved(u, 1, 0) + moved(u, -1, 0) + moved(u, 0, 1) + moved(u, 0, -1)


def around_by_convolution(u: Tensor) -> Tensor:
    kernel = treadle.tensor([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])
    return functional.conv2d(u[None, None], kernel[None, None], padding=1)[0, 0]


class Pool:
    """A grid (rows, columns) with a source of waves along a column and a wall with two slits."""

    def __init__(self, rows: int, columns: int) -> None:
        row, column = treadle.arange(rows).unsqueeze(1), treadle.arange(columns)
        from_slit = ((row - rows // 2).abs() - APART // 2).abs()
        self.open = ((column != WALL) | (from_slit < WIDE // 2)).float()
        self.source = (column == SOURCE).float().expand(rows, columns).contiguous()
        to_edge = treadle.minimum(
            treadle.minimum(row, rows - 1 - row), treadle.minimum(column, columns - 1 - column)
        )
        self.kept = 1 - 0.08 * ((EDGE - to_edge).clamp(min=0) / EDGE) ** 2
        # The frequency that has waves of this length on a grid.
        self.frequency = 2 * math.asin(SPEED2**0.5 * math.sin(math.pi / LENGTH))
        self.u = treadle.zeros(rows, columns)
        self.before, self.energy = self.u, self.u

    def after(self, u: Tensor, before: Tensor, push: float, neighbours: Tensor) -> Tensor:
        """The heights a step later."""
        waves = 2 * u - before + SPEED2 * (neighbours - 4 * u) + push * self.source
        return waves * self.open * self.kept

    def step(self, time: int, is_measured: bool) -> None:
        push = 0.1 * math.sin(self.frequency * time)
        u = self.after(self.u, self.before, push, around(self.u))
        self.u, self.before = u, self.u * self.kept
        if is_measured:
            self.energy = self.energy + u * u


def still_places(energy: Tensor, distance: int) -> tuple[float, float]:
    """Rows from the middle, at a distance behind the wall: where there is least energy, and where
    the ways from the two slits differ by half a wave."""
    column = energy[:, WALL + distance]
    middle = len(column) // 2

    def difference(row: float) -> float:
        return math.hypot(row + APART / 2, distance) - math.hypot(row - APART / 2, distance)

    low, high = 0.0, float(APART * 4)
    while high - low > 0.01:
        half = (low + high) / 2
        low, high = (half, high) if difference(half) < LENGTH / 2 else (low, half)
    near = int(2 * low)
    upper, lower = column[middle + 1 : middle + near], column[middle - near : middle].flip(0)
    return 1 + (upper + lower[: near - 1]).argmin().item(), low


def draw(u: Tensor, wall: Tensor, path: str) -> None:
    """Writes the heights as a picture: red is below, blue above, the wall black."""
    import matplotlib
    from matplotlib import image

    heights = u.sign() * u.abs().sqrt()  # so that low waves can be seen beside high ones
    colors = matplotlib.colormaps["RdBu"].resampled(24)((heights * 0.6 + 0.5).clamp(0, 1).numpy())
    colors[wall.numpy() == 0, :3] = 0
    image.imsave(path, colors)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", default="waves.png", help="where the picture goes")
    parser.add_argument("--small", action="store_true", help="a quick run, for tests")
    options = parser.parse_args()
    rows, columns = (400, 336) if options.small else (480, 480)

    pool = Pool(rows, columns)
    period = 2 * math.pi / pool.frequency
    until = int(1.3 * columns / SPEED2**0.5)
    with treadle.fuse():
        for time in range(until):
            pool.step(time, is_measured=time >= until - PERIODS * period)
    draw(pool.u, pool.open, options.plot)
    print(f"{until} steps of {rows} x {columns} points; picture in {options.plot}")

    found = around(pool.u)
    difference = (found - around_by_convolution(pool.u)).abs().max().item()
    print(f"the sums of neighbours are within {difference:.1e} of those of a convolution")

    def rest(u: Tensor, before: Tensor) -> Tensor:
        return pool.after(u, before, 0.0, found)

    state = (pool.u, pool.before)
    print(f"the same bits with fusion and without: {bits_agree(rest, *state)}")
    print("a step:")
    print_times(lambda u, before: pool.after(u, before, 0.0, around(u)), *state)
    print("without fetching the neighbours:")
    print_times(rest, *state)

    place, expected = still_places(pool.energy, columns - WALL - EDGE - 10)
    print(f"the first still place: {place} from the middle; by geometry {expected:.1f}")
    print(f"pixels {abs(place - expected):.1f}")


if __name__ == "__main__":
    main()

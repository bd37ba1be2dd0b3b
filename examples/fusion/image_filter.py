"""A landscape, blurred, sharpened, and reduced to its edges, by windows that are views.

    python examples/fusion/image_filter.py            # 8 s on one core
    python examples/fusion/image_filter.py --small    # 2 s

A filter adds up shifted views of an image. With fusion, the views are read together, in one pass
over memory: no sum of two of them is written. The program draws its four pictures in filtered.png.

Reaches: difference <= 0.00001 (small: <= 0.00001), the largest from convolutions
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

from _timing import bits_agree, print_times

import treadle
from treadle import Tensor
from treadle.nn import functional

RADIUS = 4
# The binomial coefficients, which approach the bell of a normal distribution.
BELL = [math.comb(2 * RADIUS, k) / 4**RADIUS for k in range(2 * RADIUS + 1)]
GRAY = (0.299, 0.587, 0.114)


def landscape(height: int, width: int) -> Tensor:
    """Colours (3, height, width) in [0, 1]: a sun, and hills that are paler as they are farther."""
    y = treadle.linspace(0, 1, height).unsqueeze(1)
    x = treadle.linspace(0, width / height, width)

    def paint(image: Tensor, where: Tensor, color: tuple[float, float, float]) -> Tensor:
        return treadle.where(where, treadle.tensor(color).reshape(3, 1, 1), image)

    top = treadle.tensor([0.25, 0.45, 0.8]).reshape(3, 1, 1)
    horizon = treadle.tensor([1.0, 0.8, 0.6]).reshape(3, 1, 1)
    image = top + (horizon - top) * (y / 0.6).clamp(max=1)
    image = paint(image, (x - 1) ** 2 + (y - 0.3) ** 2 < 0.01, (1, 0.95, 0.7))
    for distance in (3, 2, 1, 0):
        ridge = 0.85 - 0.13 * distance
        for octave in range(6):
            wave = (3 + distance) * 1.7**octave * x + 2 * distance + octave
            ridge = ridge + 0.08 * 0.55**octave * wave.sin()
        pale = 0.2 * distance
        image = paint(image, y > ridge, (0.1 + pale, 0.25 + pale, 0.2 + 1.1 * pale))
    return image


def padded(image: Tensor, by: int) -> Tensor:
    """The image with its outermost rows and columns repeated."""
    return functional.pad(image[None], (by, by, by, by), mode="replicate")[0]


def weighted(views: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """The sum of the views, each times its weight."""
    total = views[0] * weights[0]
    for view, weight in zip(views[1:], weights[1:]):
        total = total.add(view, alpha=weight)
    return total


def blurred(image: Tensor) -> Tensor:
    """Each colour is the mean of its neighbourhood: first down the columns, then along the rows."""
    height, width = image.shape[1:]
    around = padded(image, RADIUS)
    down = weighted([around[:, k : k + height] for k in range(len(BELL))], BELL)
    return weighted([down[:, :, k : k + width] for k in range(len(BELL))], BELL)


def sharpened(image: Tensor) -> Tensor:
    """The image, and once more the detail that blurring takes away."""
    return (image + 1.5 * (image - blurred(image))).clamp(0, 1)


def edges(image: Tensor) -> Tensor:
    """The length of the gradient of the brightness (height, width), by Sobel's differences."""
    height, width = image.shape[1:]
    gray = padded(weighted(list(image), GRAY)[None], 1)[0]
    window = [[gray[i : i + height, j : j + width] for j in range(3)] for i in range(3)]
    (a, b, c), (d, _, e), (f, g, h) = window
    across = (c + 2 * e + h) - (a + 2 * d + f)
    down = (f + 2 * g + h) - (a + 2 * b + c)
    return (across * across + down * down).sqrt()


def blurred_by_convolutions(image: Tensor) -> Tensor:
    bell = treadle.tensor(BELL)
    around = padded(image, RADIUS).unsqueeze(1)
    down = functional.conv2d(around, bell.reshape(1, 1, -1, 1))
    return functional.conv2d(down, bell.reshape(1, 1, 1, -1)).squeeze(1)


def edges_by_convolution(image: Tensor) -> Tensor:
    gray = padded((image * treadle.tensor(GRAY).reshape(3, 1, 1)).sum(0, keepdim=True), 1)
    across = treadle.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    both = functional.conv2d(gray[None], treadle.stack([across, across.t()])[:, None])[0]
    return both.square().sum(0).sqrt()


def draw(pictures: Sequence[Tensor], path: str) -> None:
    """Writes four pictures as one, in two rows."""
    from matplotlib import image

    colors = [p.expand(3, *p.shape[-2:]).permute(1, 2, 0) for p in pictures]
    rows = [treadle.cat(colors[:2], 1), treadle.cat(colors[2:], 1)]
    image.imsave(path, treadle.cat(rows).clamp(0, 1).numpy())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", default="filtered.png", help="where the pictures go")
    parser.add_argument("--small", action="store_true", help="a quick run, for tests")
    options = parser.parse_args()

    image = landscape(360, 480) if options.small else landscape(1080, 1440)
    with treadle.fuse():
        soft, sharp, lines = blurred(image), sharpened(image), edges(image)
    # Every third point, or all.
    step = image.shape[1] // 360
    draw([p[..., ::step, ::step] for p in (image, soft, sharp, 1 - lines)], options.plot)
    print(f"the image, blurred, sharpened, its edges: {options.plot}")

    difference = (soft - blurred_by_convolutions(image)).abs().max().item()
    difference = max(difference, (lines - edges_by_convolution(image)).abs().max().item())
    for program, own in (
        (blurred, blurred_by_convolutions),
        (sharpened, None),
        (edges, edges_by_convolution),
    ):
        agree = bits_agree(program, image)
        print(f"{program.__name__}: the same bits with fusion and without: {agree}")
        print_times(program, image, own=own)
    print(f"difference {difference:.7f}")


if __name__ == "__main__":
    main()

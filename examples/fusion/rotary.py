"""Rotary position embedding: pairs of features are turned by angles that grow with the position.

    python examples/fusion/rotary.py            # 1 s on one core
    python examples/fusion/rotary.py --small    # 1 s

Feature j is paired with feature j + half. The two halves are views, and both turned halves are
computed together. After the turn, the product of a query and a key depends on how far apart they
are, and on nothing else of where they are.

Reaches: difference <= 0.00001 (small: <= 0.00001), the largest from products of complex numbers
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse

from _timing import bits_agree, print_times

import treadle
from treadle import Tensor


def angles(positions: Tensor, width: int) -> Tensor:
    """Those of the pairs, (positions, width / 2), after Su and others, "RoFormer" (2021)."""
    return positions.unsqueeze(1) * 10000.0 ** (-treadle.arange(0, width, 2) / width)


def rotated(x: Tensor, turn: Tensor) -> Tensor:
    """x (batch, heads, positions, width), turned by angles (positions, width / 2)."""
    first, second = x.chunk(2, -1)
    cosine, sine = turn.cos(), turn.sin()
    return treadle.cat([first * cosine - second * sine, first * sine + second * cosine], -1)


def by_complex_numbers(x: Tensor, turn: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    turned = treadle.complex(first, second) * treadle.polar(treadle.ones_like(turn), turn)
    return treadle.cat([turned.real, turned.imag], -1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a quick run, for tests")
    options = parser.parse_args()

    treadle.manual_seed(0)
    batch, heads, length, width = (1, 4, 512, 64) if options.small else (4, 8, 1024, 64)
    x = treadle.randn(batch, heads, length, width)
    turn = angles(treadle.arange(length), width)

    with treadle.fuse():
        found = rotated(x, turn)
    difference = (found - by_complex_numbers(x, turn)).abs().max().item()
    print(f"the same bits with fusion and without: {bits_agree(rotated, x, turn)}")
    print_times(rotated, x, turn, own=by_complex_numbers)

    # A query at the position 3 and a key at 10 have the product that those at 103 and 110 have.
    query, key = treadle.randn(2, 1, 1, 1, width)
    products = []
    for start in (0, 100):
        both = [
            rotated(vector, angles(treadle.tensor([start + place]), width))
            for vector, place in ((query, 3), (key, 10))
        ]
        products.append((both[0] * both[1]).sum().item())
    print(f"the product of a query and a key: {products[0]:.4f}, further on {products[1]:.4f}")
    print(f"difference {difference:.7f}")


if __name__ == "__main__":
    main()

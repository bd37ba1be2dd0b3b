"""A layer with the data it is trained on, for Treadle and PyTorch alike.

Case("Linear", lambda nn: nn.Linear(5, 4), normal(6, 5))
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

# Makes an array from a stream of random numbers.
Maker = Callable[[np.random.RandomState], np.ndarray]


def normal(*shape: int) -> Maker:
    """Normal numbers; floating inputs are trained as parameters are."""
    return lambda rng: rng.standard_normal(shape)


def positive(*shape: int) -> Maker:
    """Numbers in [0.5, 2)."""
    return lambda rng: rng.uniform(0.5, 2.0, shape)


def integers(below: int, *shape: int, first: int = 0) -> Maker:
    """Integers in [first, below)."""
    return lambda rng: rng.randint(first, below, shape).astype(np.int64)


def given(values: Any) -> Maker:
    """These values; floating ones are trained, too."""
    return lambda rng: np.asarray(values)


@dataclass(frozen=True)
class Fixed:
    """An input that is not trained, although it is floating: a target, say."""

    maker: Maker


class Case:
    """The first word of `name` is that of the class.

    Args:
        build: makes the module, from `nn`.
        inputs: makers of the inputs.
        call: `call(module, nn, *inputs)`, instead of `module(*inputs)`.
        lr: the learning rate.
        weights: the standard deviation of the parameters at the beginning.
        buffers: whether floating buffers, too, are drawn at the beginning.
    """

    def __init__(
        self,
        name: str,
        build: Callable[[Any], Any],
        *inputs: Maker | Fixed,
        call: Callable[..., Any] | None = None,
        lr: float = 0.1,
        weights: float = 0.5,
        buffers: bool = False,
    ) -> None:
        self.name = name
        self.build = build
        self.inputs = inputs
        self.call = call
        self.lr = lr
        self.weights = weights
        self.buffers = buffers

    @property
    def cls(self) -> str:
        return self.name.split()[0]

    def __repr__(self) -> str:
        return self.name

"""The handwritten digits of scikit-learn, training on the first 1,200, and accuracy on the others.

Example:

    digits = handwritten_digits(side=8)
    points(train(network, digits, rounds=4, rate=3e-3).eval(), digits)       # 97.5
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Tuple

from sklearn.datasets import load_digits

import treadle
from treadle.nn import functional

_TRAINED = 1200
Digits = Tuple[Any, Any]


def handwritten_digits(side: int = 8) -> Digits:
    """Images (1797, 1, side, side) from 0 to 1, and their digits."""
    found = load_digits()
    images = treadle.tensor(found.images, dtype=treadle.float32)[:, None] / 16
    if side != 8:
        images = functional.interpolate(images, (side, side), mode="bilinear")
    return images, treadle.tensor(found.target)


def train(model: Any, digits: Digits, rounds: int, rate: float, batch: int = 100) -> Any:
    """The model, after some rounds of training."""
    images, targets = digits
    optimizer = treadle.optim.Adam(model.parameters(), lr=rate)
    generator = treadle.Generator().manual_seed(0)
    for _ in range(rounds):
        for rows in treadle.randperm(_TRAINED, generator=generator).split(batch):
            loss = functional.cross_entropy(model(images[rows]), targets[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model


def points(model: Any, digits: Digits) -> float:
    """The percentage of digits that the model reads right, of those that it was not trained on."""
    images, targets = digits
    with treadle.no_grad():
        right = (model(images[_TRAINED:]).argmax(1) == targets[_TRAINED:]).float().mean()
    return 100 * right.item()

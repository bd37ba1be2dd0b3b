"""The cost of a step of data parallel training on many ranks, and the first limits.

Gradients are ready one after the other during the backward pass; a bucket is reduced as soon as it
is full and the one before it is done. What is left after the backward pass is exposed: the step is
longer by it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Dict, List, NamedTuple, Tuple

from communication_model.costs import ALL_REDUCE, Cost, Link


class Model(NamedTuple):
    """A model: parameters, bytes of a gradient's element, seconds of the two passes."""

    name: str
    parameters: float
    element: int
    forward: float
    backward: float


# ResNet-50 with 256 images for each rank at 2,500 images a second; a GPT of 24 layers, 2,048 wide,
# with 16,384 tokens for each rank, 6 operations for each parameter and token, at 4e14 a second.
RESNET50 = Model("ResNet-50", 25.6e6, 4, 0.034, 0.068)
GPT = Model("GPT 1.3 B", 1.3e9, 2, 0.107, 0.213)

# Ethernet of 10 Gb/s between CPUs, and a fabric of 400 Gb/s between accelerators.
ETHERNET = Link(30e-6, 1 / 1.2e9, 5e-6)
FABRIC = Link(5e-6, 1 / 48e9, 0.5e-6)


def exposed(model: Model, bucket: float, cost: Cost, link: Link, ranks: int) -> float:
    """The seconds by which communication lengthens a step, with buckets of so many bytes."""
    total = model.parameters * model.element
    count = max(1, math.ceil(total / bucket))
    done = 0.0
    for index in range(count):
        size = min(bucket, total - index * bucket)
        ready = model.backward * min((index + 1) * bucket, total) / total
        done = max(done, ready) + cost(link, ranks, size)
    return done - model.backward


def efficiency(model: Model, bucket: float, cost: Cost, link: Link, ranks: int) -> float:
    """The share of a step that is computation."""
    step = model.forward + model.backward
    return step / (step + exposed(model, bucket, cost, link, ranks))


def best(model: Model, bucket: float, link: Link, ranks: int) -> Tuple[str, float]:
    """The algorithm that costs least, and its efficiency."""
    name = min(ALL_REDUCE, key=lambda n: exposed(model, bucket, ALL_REDUCE[n], link, ranks))
    return name, efficiency(model, bucket, ALL_REDUCE[name], link, ranks)


def limits(ranks: int, requests: float, jitter: float = 0.02, local: int = 8) -> Dict[str, float]:
    """Quantities that grow with the number of ranks, for each group of all: each rank has two
    connections to each other one, for small messages and for large ones, and asks the store twice
    for each of them, whether its address is there and what it is.

    `requests` is how many requests a second the store answers; a step's time varies by `jitter` of
    itself, as a standard deviation; `local` ranks share a machine.
    """
    return {
        "sockets of a process": 2 * (ranks - 1),
        "sockets of a machine": 2 * local * (ranks - 1),
        "requests to the store": 4 * ranks * (ranks - 1),
        "seconds of the store": 4 * ranks * (ranks - 1) / requests,
        # The largest of n values of a normal distribution.
        "slowest rank": jitter * math.sqrt(2 * math.log(ranks)),
    }


def table(link: Link, models: Tuple[Model, ...], buckets: Tuple[float, ...]) -> List[List[str]]:
    """Rows: model, ranks, and for each bucket the best algorithm and its efficiency."""
    rows = []
    for model in models:
        for ranks in (8, 64, 512, 4096):
            cells = []
            for bucket in buckets:
                name, share = best(model, bucket, link, ranks)
                cells.append(f"{100 * share:.0f} % {name}")
            own = efficiency(model, buckets[1], ALL_REDUCE["direct"], link, ranks)
            rows.append([model.name, f"{ranks:,}", *cells, f"{100 * own:.0f} %"])
    return rows

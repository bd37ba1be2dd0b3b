"""Numbers, lists and words to call operators with: likely ones, and limits of code."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import re
from functools import lru_cache
from random import Random
from typing import Any

import treadle
from treadle_testing.catalogue import Operator

from .values import DTYPES

INT_EDGES = (
    [2**k + d for k in (4, 6, 7, 8, 15, 16, 24, 31, 32, 48, 62, 63, 64) for d in (-1, 0, 1)]
    + [-(2**k) + d for k in (7, 8, 15, 31, 32, 62, 63, 64) for d in (-1, 0, 1)]
    + [100, -100, 1000, 498444555, 2**40, 10**30, -(10**30)]
)
FLOATS = [0.0, 1.0, 0.5, -0.5, 2.0, -1.0, 1e-3, 1e-8, 3.7, -2.5, 10.0, 0.999]
FLOAT_EDGES = [
    float("nan"), float("inf"), float("-inf"), -0.0, 1e308, -1e308, 5e-324, 1e30, 1e-30, 2.0**31,
    2.0**53, 2.0**63, -(2.0**63), 2.0**64, 1e10,
]  # fmt: skip
WORDS = ["", "nonsense", "mean", "sum", "none", "Mean", "é" * 200, "a\nb", " same", "%s%n", "same"]
DEVICES: list[Any] = [
    "cpu", "meta", "cpu:0", "cpu:1", "cpu:-1", "cuda", "cuda:0", "nowhere", "", "cpu:", "cpu:00",
    "meta:1", "cuda:99999999999999999999", 0, -1, 2**63, "cpu\0", treadle.device("meta"),
]  # fmt: skip


def small_int(rng: Random) -> int:
    return rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, -1, -1, -2, -3, -4))


def any_int(rng: Random, op: Operator) -> int:
    choice = rng.random()
    if choice < 0.5:
        return small_int(rng)
    if choice < 0.65 and edges_of(op):
        return rng.choice(edges_of(op))
    return rng.choice(INT_EDGES)


def any_float(rng: Random) -> float:
    return rng.choice(FLOATS if rng.random() < 0.5 else FLOAT_EDGES)


def any_scalar(rng: Random, op: Operator) -> Any:
    kind = rng.randrange(8)
    if kind < 3:
        return any_int(rng, op)
    if kind < 6:
        return any_float(rng)
    if kind < 7:
        return rng.random() < 0.5
    return complex(any_float(rng), any_float(rng))


def int_list(rng: Random, op: Operator, size: int | None) -> Any:
    """A list of integers; `size` entries, where that is known, more often than not."""
    length = rng.choice((0, 1, 1, 2, 2, 3, 4, 5, 9))
    if size is not None and rng.random() < 0.7:
        length = size
    if rng.random() < 0.02:
        length = rng.choice((64, 65, 1000))
    edge = rng.random() < 0.3
    values = [any_int(rng, op) if edge else small_int(rng) for _ in range(length)]
    if rng.random() < 0.1:
        return any_int(rng, op)
    return tuple(values) if rng.random() < 0.5 else values


def any_word(rng: Random, op: Operator) -> str:
    words = words_of(op)
    return rng.choice(words if words and rng.random() < 0.7 else WORDS)


def any_dtype(rng: Random) -> Any:
    return rng.choice(list(DTYPES.values()))


def any_format(rng: Random) -> Any:
    return rng.choice(
        (treadle.contiguous_format, treadle.preserve_format, treadle.channels_last,
         treadle.channels_last_3d, treadle.strided)
    )  # fmt: skip


@lru_cache(maxsize=None)
def edges_of(op: Operator) -> tuple[int, ...]:
    """Numbers in the contract of an operator, and their neighbours."""
    found = {0, 1}
    for check in op.json["check"] or []:
        found |= {int(n) for n in re.findall(r"\b\d{1,18}\b", check["text"])}
    for arg in op.args:
        if arg["default"] and type(arg["default"]["value"]) is int:
            found.add(arg["default"]["value"])
    return tuple(sorted({n + d for n in found for d in (-1, 0, 1)}))


@lru_cache(maxsize=None)
def words_of(op: Operator) -> tuple[str, ...]:
    """Words that the entry of an operator has in quotes."""
    text = json.dumps([op.json["doc"], op.json["check"], [a["default"] for a in op.args]])
    return tuple(sorted(set(re.findall(r'[\\"\'`]([a-z_]{2,20})[\\"\'`]', text))))

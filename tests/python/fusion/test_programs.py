"""Random programs have the same values with fusion and without: results that are kept, dropped,
viewed, written in place and read back in between.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import random
from typing import Any, Callable, List

import pytest

import treadle
from treadle import Tensor

DTYPES = (treadle.float32, treadle.float64, treadle.bfloat16, treadle.int32, treadle.bool)
# Rows are long enough for folds of them to wait.
SHAPES = ((6, 17), (6, 1), (17,), (1, 17), (2, 3, 17), ())


class Program:
    """Draws a step at a time, from the seed alone, and so does the same each time it runs."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        generator = treadle.Generator().manual_seed(seed)
        self.values: List[Tensor] = []
        for shape in SHAPES:
            numbers = treadle.randn(shape, generator=generator) * 3
            self.values.append(numbers.to(self.draw.choice(DTYPES)))
        self.looks: List[Any] = []

    def any(self) -> Tensor:
        return self.draw.choice(self.values)

    def run(self, steps: int) -> List[Any]:
        for _ in range(steps):
            step = self.draw.choice(STEPS)
            try:
                step(self)
            except RuntimeError as error:
                # The messages name shapes and dtypes, which fusion does not change.
                self.looks.append(str(error))
        return self.looks + [(t.shape, t.dtype, t.stride(), _bits(t)) for t in self.values]


def _bits(t: Tensor) -> Any:
    return t.contiguous().reshape(-1).view(treadle.uint8).tolist()


def _unary(p: Program) -> None:
    f: Callable = p.draw.choice(
        [treadle.neg, treadle.abs, treadle.exp, treadle.sigmoid, treadle.square, treadle.relu]
    )
    p.values.append(f(p.any()))


def _binary(p: Program) -> None:
    f: Callable = p.draw.choice(
        [
            treadle.add,
            treadle.mul,
            treadle.sub,
            treadle.maximum,
            treadle.div,
            treadle.eq,
            treadle.lt,
        ]
    )
    p.values.append(f(p.any(), p.any()))


def _with_number(p: Program) -> None:
    f: Callable = p.draw.choice([treadle.add, treadle.mul, treadle.sub, treadle.gt, treadle.pow])
    p.values.append(f(p.any(), p.draw.choice([2, -1, 0.5, 1.7])))


def _divide_by_number(p: Program) -> None:
    f: Callable = p.draw.choice([treadle.floor_divide, treadle.remainder, treadle.fmod])
    p.values.append(f(p.any(), p.draw.choice([3, -1, 0, 1.5])))


def _where(p: Program) -> None:
    p.values.append(treadle.where(p.any() > 0, p.any(), p.any()))


def _cast(p: Program) -> None:
    p.values.append(p.any().to(p.draw.choice(DTYPES)))


def _view(p: Program) -> None:
    t = p.any()
    views: List[Callable[[Tensor], Tensor]] = [
        lambda x: x.t() if x.dim() == 2 else x,
        lambda x: x[1:3] if x.dim() and x.shape[0] >= 3 else x,
        lambda x: x.unsqueeze(0) if x.dim() < 3 else x,
        lambda x: x.expand(6, 17) if x.dim() < 2 and x.shape in ((17,), ()) else x,
        lambda x: x.reshape(-1),
        lambda x: x.detach(),
    ]
    p.values.append(p.draw.choice(views)(t))


def _in_place(p: Program) -> None:
    f: Callable = p.draw.choice([Tensor.add_, Tensor.mul_, Tensor.copy_, Tensor.sub_])
    f(p.any(), p.any())


def _in_place_number(p: Program) -> None:
    f: Callable = p.draw.choice([Tensor.add_, Tensor.mul_, Tensor.fill_])
    f(p.any(), p.draw.choice([2, 3]))


def _out(p: Program) -> None:
    treadle.add(p.any(), p.any(), out=p.any())


def _write_by_index(p: Program) -> None:
    t = p.any()
    if t.dim() and t.shape[0] > 1:
        t[1] = 1


def _reduce(p: Program) -> None:
    t = p.any()
    f: Callable = p.draw.choice(
        [treadle.amax, treadle.amin, treadle.sum, treadle.mean, treadle.prod]
    )
    dim: Any = p.draw.choice([-1, -1, 0]) if f is not treadle.sum or t.dim() < 2 else [-2, -1]
    if t.dim():
        p.values.append(f(t, dim, keepdim=p.draw.random() < 0.7))


def _normalize(p: Program) -> None:
    t = p.any()
    if t.dim() and t.is_floating_point():
        e = (t - t.amax(-1, keepdim=True)).exp()
        p.values.append(e / e.sum(-1, keepdim=True))


def _drop(p: Program) -> None:
    if len(p.values) > 5:
        p.values.pop(p.draw.randrange(len(p.values)))


def _look(p: Program) -> None:
    p.looks.append(_bits(p.any()))


def _numpy(p: Program) -> None:
    """An array that goes on sharing the memory, and writes it."""
    t = p.any()
    if t.dtype is treadle.float32 and t.dim() == 2:
        array = t.numpy()
        p.values.append(t * 2)
        array[0, 0] = 7


STEPS = (
    *(_unary,) * 3,
    *(_binary,) * 5,
    *(_with_number,) * 3,
    _divide_by_number,
    *(_view,) * 3,
    *(_drop,) * 3,
    _where,
    _cast,
    _in_place,
    _in_place,
    _in_place_number,
    _out,
    _write_by_index,
    _reduce,
    _reduce,
    _normalize,
    _look,
    _numpy,
)


def agree(seed: int, steps: int) -> None:
    with treadle.fuse(enabled=False):
        plain = Program(seed).run(steps)
    with treadle.fuse(least=0):
        fused = Program(seed).run(steps)
    assert fused == plain, f"seed {seed}"


@pytest.mark.parametrize("first", range(0, 1000, 100))
def test_random_programs(first: int) -> None:
    for seed in range(first, first + 100):
        agree(seed, 40)


def test_long_programs() -> None:
    for seed in range(10):
        agree(1_000_000 + seed, 700)

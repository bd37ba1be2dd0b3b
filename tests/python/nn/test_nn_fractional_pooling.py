"""Fractional pooling against windows placed in plain Python."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import treadle
from treadle import nn
from treadle.nn import functional as F

RNG = np.random.default_rng(0)


def starts(sample: float, size: int, kernel: int, count: int) -> list[int]:
    if count == 1:
        return [size - kernel]
    step = (size - kernel) / (count - 1)
    return [int((i + sample) * step) - int(sample * step) for i in range(count - 1)] + [
        size - kernel
    ]


@pytest.mark.parametrize(
    "sizes, kernel, output",
    [((9, 11), (2, 3), (4, 5)), ((5, 5), (3, 3), (1, 3)), ((7, 9, 8), (2, 3, 2), (3, 3, 4))],
)
def test_windows(sizes: tuple, kernel: tuple, output: tuple) -> None:
    dims = len(sizes)
    x = RNG.standard_normal((2, 3, *sizes))
    samples = RNG.random((2, 3, dims))
    pool = getattr(F, f"fractional_max_pool{dims}d")
    values, indices = pool(
        treadle.tensor(x), kernel, output_size=output, return_indices=True,
        _random_samples=treadle.tensor(samples),
    )  # fmt: skip
    order = (1, 0) if dims == 2 else (0, 1, 2)
    for n, c in product(range(2), range(3)):
        places = [
            starts(samples[n, c, order[d]], sizes[d], kernel[d], output[d]) for d in range(dims)
        ]
        for at in product(*map(range, output)):
            window = tuple(
                slice(places[d][at[d]], places[d][at[d]] + kernel[d]) for d in range(dims)
            )
            assert values[(n, c, *at)].item() == x[n, c][window].max()
    planes = treadle.tensor(x).flatten(2)
    assert planes.gather(2, indices.flatten(2)).equal(values.flatten(2))


def test_no_images() -> None:
    found = F.fractional_max_pool3d(treadle.ones(0, 1, 4, 5, 4), (2, 2, 1), output_size=2)
    assert found.shape == (0, 1, 2, 2, 2)


def test_layer_and_gradient() -> None:
    samples = treadle.tensor(RNG.random((1, 2, 2)))
    layer = nn.FractionalMaxPool2d(2, output_ratio=0.5, _random_samples=samples)
    x = treadle.tensor(RNG.standard_normal((1, 2, 6, 7)), requires_grad=True)
    assert layer(x).shape == (1, 2, 3, 3)
    assert treadle.autograd.gradcheck(layer, x)
    assert layer(x)[0].equal(layer(x[0]))
    treadle.manual_seed(0)
    first = F.fractional_max_pool3d(treadle.ones(1, 4, 5, 6), 2, output_size=3)
    assert first.shape == (1, 3, 3, 3) and (first == 1).all()


@pytest.mark.parametrize(
    "settings, message",
    [
        ({}, "requires specifying either an output size, or a pooling ratio"),
        ({"output_size": 2, "output_ratio": 0.5}, "only one of output_size and output_ratio may"),
        ({"output_ratio": 1.5}, r"output_ratio must be between 0 and 1 \(got 1.5\)"),
    ],
)
def test_settings(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        nn.FractionalMaxPool2d(3, **settings)


def test_refused() -> None:
    x = treadle.zeros(2, 3, 7, 8)
    with pytest.raises(ValueError, match="requires specifying either an output_size or"):
        F.fractional_max_pool2d(x, 3)
    with pytest.raises(RuntimeError, match="output . kernel - 1 <= input, got output_size = .9, 9"):
        F.fractional_max_pool2d(x, 3, output_size=9)
    with pytest.raises(RuntimeError, match=r"_random_samples of shape \(2, 3, 2\) and dtype"):
        F.fractional_max_pool2d(x, 3, output_size=5, _random_samples=treadle.zeros(2, 3, 3))
    with pytest.raises(IndexError, match="fractional_max_pool2d: expected 3 or 4 dimensions"):
        F.fractional_max_pool2d(x[0, 0], 3, output_size=5)


@pytest.mark.parametrize("dims", [2, 3])
def test_outputs_without_elements(dims: int) -> None:
    pool = getattr(F, f"fractional_max_pool{dims}d")
    x = treadle.ones((2, 3, *[8] * dims), requires_grad=True)
    nothing = pool(x, 2, output_size=(0, *[1] * (dims - 1)))
    assert tuple(nothing.shape) == (2, 3, 0, *[1] * (dims - 1))
    nothing.sum().backward()
    assert treadle.equal(x.grad, treadle.zeros_like(x))
    values, indices = pool(x[:0].detach(), 2, output_size=3, return_indices=True)
    assert tuple(values.shape) == tuple(indices.shape) == (0, 3, *[3] * dims)
    assert indices.dtype == treadle.int64


@pytest.mark.parametrize("name", ["kernel_size", "output_size", "output_ratio"])
def test_settings_of_another_length_are_refused(name: str) -> None:
    settings: dict = {"kernel_size": 2, "output_size": 3, name: (2,)}
    if name == "output_ratio":
        settings["output_size"] = None
    with pytest.raises(RuntimeError) as error:
        F.fractional_max_pool2d(treadle.ones(1, 1, 8, 8), **settings)
    assert str(error.value) == (
        f"fractional_max_pool2d: expected {name} to be a number or 2 numbers, got (2,)"
    )

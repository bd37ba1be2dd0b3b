"""On a CUDA device: convolutions of one input channel to a group by kernels of their own, and all
others by cuDNN's plans, give what the CPU gives, with their gradients; whatever is timed, wherever
images begin in memory.

    pytest tests/gpu/on_convolutions.py    # ./dev gpu says how, on a machine with a GPU
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator

import pytest

import treadle
from treadle.nn import functional as F


@pytest.fixture(autouse=True)
def _exact() -> Iterator[None]:
    with treadle.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield


def results(x: Any, w: Any, b: Any, **options: Any) -> list:
    """The convolution, and the gradients of its sum with fixed weights."""
    leaves = [t.detach().requires_grad_() for t in (x, w, b)]
    y = F.conv2d(*leaves, **options)
    slopes = treadle.linspace(-1, 1, y.numel(), dtype=treadle.float64, device=y.device)
    (y * slopes.view(y.shape).to(y.dtype)).sum().backward()
    return [y.detach(), *(t.grad for t in leaves)]


def close_to_the_cpu(x: Any, w: Any, b: Any, digits: float, **options: Any) -> None:
    expected = results(*(t.double() for t in (x, w, b)), **options)
    for e, g in zip(expected, results(*(t.to("cuda") for t in (x, w, b)), **options)):
        assert g.dtype == x.dtype and g.shape == e.shape
        assert (g.cpu().double() - e).abs().max() <= digits * max(1, e.abs().max().item())


SHAPES = [  # images, inputs, height, width, outputs, window, options
    (2, 6, 9, 11, 6, (3, 3), {"padding": 1}),
    (2, 6, 9, 11, 6, (3, 3), {"stride": 2, "padding": 1}),
    (1, 4, 12, 7, 8, (3, 3), {}),
    (3, 5, 10, 13, 5, (5, 5), {"padding": 2}),
    (2, 3, 11, 10, 6, (5, 5), {"stride": 2, "padding": (1, 2)}),
    (2, 4, 9, 9, 4, (3, 3), {"padding": 4}),
    (2, 4, 9, 8, 4, (2, 4), {"stride": (1, 2), "padding": (1, 0)}),
    (2, 4, 13, 12, 4, (3, 3), {"dilation": 2, "padding": 2}),
    (2, 4, 12, 9, 12, (7, 7), {"stride": 3, "padding": 3}),
    (1, 2, 3, 3, 2, (3, 3), {"stride": (2, 1)}),
    (70, 3, 4, 5, 3, (3, 3), {"padding": 1}),
]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s[:5])))
def test_depthwise(shape: tuple, dtype: str) -> None:
    treadle.manual_seed(0)
    images, inputs, height, width, outputs, window, options = shape
    kind = getattr(treadle, dtype)
    x = treadle.randn(images, inputs, height, width).to(kind)
    w, b = treadle.randn(outputs, 1, *window).to(kind), treadle.randn(outputs).to(kind)
    close_to_the_cpu(x, w, b, 8 * treadle.finfo(kind).eps, groups=inputs, **options)


def test_depthwise_of_lines() -> None:
    x, w = treadle.randn(2, 6, 17), treadle.randn(6, 1, 5)
    y = F.conv1d(x.to("cuda"), w.to("cuda"), stride=2, padding=2, groups=6)
    treadle.testing.assert_close(y.cpu(), F.conv1d(x, w, stride=2, padding=2, groups=6))


def test_depthwise_transposed() -> None:
    x, w = treadle.randn(2, 4, 5, 6), treadle.randn(4, 1, 3, 3)
    options = {"stride": 2, "padding": 1, "output_padding": 1, "groups": 4}
    y = F.conv_transpose2d(x.to("cuda"), w.to("cuda"), **options)
    treadle.testing.assert_close(y.cpu(), F.conv_transpose2d(x, w, **options))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("begin", [0, 1, 3])
def test_images_that_begin_anywhere(begin: int, dtype: str) -> None:
    treadle.manual_seed(1)
    kind = getattr(treadle, dtype)
    x = treadle.randn(3 + 2 * 4 * 9 * 9).to(kind)
    w, b = treadle.randn(8, 4, 3, 3).to(kind), treadle.randn(8).to(kind)
    expected = F.conv2d(x[begin : begin + 648].view(2, 4, 9, 9).double(), w.double(), b.double())
    there = x.to("cuda")[begin : begin + 648].view(2, 4, 9, 9)
    y = F.conv2d(there, w.to("cuda"), b.to("cuda"))
    treadle.testing.assert_close(y.cpu().double(), expected, rtol=0.02, atol=0.1)


def test_the_library_says_its_version() -> None:
    assert treadle.backends.cudnn.version() // 10000 == 9


@pytest.mark.parametrize("limit", [1, 2, 0])
def test_timed_plans(limit: int) -> None:
    treadle.manual_seed(2)
    x, w, b = treadle.randn(2, 4, 9, 9 + limit), treadle.randn(8, 4, 3, 3), treadle.randn(8)
    with treadle.backends.cudnn.flags(
        enabled=True, benchmark=True, benchmark_limit=limit, allow_tf32=False
    ):
        assert treadle.backends.cudnn.benchmark_limit == limit
        close_to_the_cpu(x, w, b, 1e-5, padding=1)
    assert treadle.backends.cudnn.benchmark_limit == 10
    with pytest.raises(ValueError, match="expected at least 0, got -1"):
        treadle.backends.cudnn.benchmark_limit = -1


def test_without_a_batch_and_with_volumes() -> None:
    treadle.manual_seed(3)
    x, w, b = treadle.randn(4, 7, 9), treadle.randn(8, 4, 3, 3), treadle.randn(8)
    y = F.conv2d(x.to("cuda"), w.to("cuda"), b.to("cuda"))
    treadle.testing.assert_close(y.cpu(), F.conv2d(x, w, b))
    x, w = treadle.randn(2, 4, 5, 6, 7), treadle.randn(6, 2, 3, 3, 3)
    y = F.conv3d(x.to("cuda"), w.to("cuda"), padding=1, groups=2)
    treadle.testing.assert_close(y.cpu(), F.conv3d(x, w, padding=1, groups=2))

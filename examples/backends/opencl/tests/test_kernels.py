"""Hand-written kernels: values and gradients agree with the CPU."""

# SPDX-License-Identifier: Apache-2.0

import pytest

import treadle
from treadle import nn

F = nn.functional


def agree(function, *inputs: treadle.Tensor, gradients: bool = True, **tolerance: float) -> None:
    """The results, and the gradients of every floating input, on both devices."""
    here = [x.clone().requires_grad_(gradients and x.is_floating_point()) for x in inputs]
    there = [x.to("opencl").requires_grad_(gradients and x.is_floating_point()) for x in inputs]
    expected, result = function(*here), function(*there)
    assert result.device.type == "opencl"
    treadle.testing.assert_close(result.detach().cpu(), expected.detach(), **tolerance)
    if not gradients:
        return
    weights = treadle.rand(expected.shape, dtype=expected.dtype)
    (expected * weights).sum().backward()
    (result * weights.to("opencl")).sum().backward()
    for x, y in zip(here, there):
        if x.grad is not None:
            treadle.testing.assert_close(y.grad.cpu(), x.grad, **tolerance)


@pytest.mark.parametrize("dtype", [treadle.float16, treadle.float32, treadle.float64])
@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (5, 300, 33), (64, 17, 70), (13, 700, 10)])
def test_products(m: int, k: int, n: int, dtype: treadle.dtype) -> None:
    a, b, c = (treadle.randn(*s).to(dtype) for s in ((m, k), (k, n), (n,)))
    half = dtype == treadle.float16
    loose = {"rtol": 2e-2 if half else 1e-4, "atol": 5e-2 if half else 1e-4}
    agree(lambda a, b: a @ b, a, b, **loose)
    agree(lambda a, b: a.t().contiguous().t() @ b.t().contiguous().t(), a, b, **loose)
    agree(lambda a, b, c: treadle.addmm(c, a, b, beta=0.5, alpha=2), a, b, c, **loose)
    agree(lambda a, b: a.expand(3, -1, -1) @ b.expand(3, -1, -1), a, b, **loose)


def test_whole_products() -> None:
    a, b = treadle.arange(20).reshape(4, 5), treadle.arange(15).reshape(5, 3)
    agree(lambda a, b: a @ b, a, b, gradients=False)


def test_beta_of_zero_ignores_the_bias() -> None:
    bad = treadle.full((2, 2), float("nan"), device="opencl")
    x = treadle.ones(2, 2, device="opencl")
    assert treadle.addmm(bad, x, x, beta=0).tolist() == [[2, 2], [2, 2]]


@pytest.mark.parametrize("dtype", [treadle.float32, treadle.float64, treadle.complex64])
@pytest.mark.parametrize(
    "stride, padding, dilation, groups", [(1, 1, 1, 1), (2, 0, 1, 1), (1, 2, 2, 1), (2, 1, 1, 2)]
)
def test_convolutions(stride: int, padding: int, dilation: int, groups: int, dtype) -> None:
    close = {"rtol": 1e-4, "atol": 1e-4}
    x, w = treadle.randn(3, 4, 9, 8, dtype=dtype), treadle.randn(6, 4 // groups, 3, 3, dtype=dtype)
    b = treadle.randn(6, dtype=dtype)
    agree(lambda x, w, b: F.conv2d(x, w, b, stride, padding, dilation, groups), x, w, b,
          gradients=not dtype.is_complex, **close)  # fmt: skip
    v = treadle.randn(4, 6 // groups, 3, 3, dtype=dtype)
    agree(lambda x, v, b: F.conv_transpose2d(x, v, b, stride, padding, 0, groups, dilation),
          x, v, b, gradients=not dtype.is_complex, **close)  # fmt: skip


def test_convolutions_of_one_and_three_dimensions() -> None:
    close = {"rtol": 1e-4, "atol": 1e-4}
    agree(lambda x, w: F.conv1d(x, w, stride=2, padding=1), treadle.randn(2, 3, 11),
          treadle.randn(5, 3, 4), **close)  # fmt: skip
    agree(lambda x, w: F.conv3d(x, w, padding=1), treadle.randn(2, 2, 4, 5, 6),
          treadle.randn(3, 2, 3, 3, 3), **close)  # fmt: skip
    agree(lambda x, w: F.conv2d(x, w), treadle.randn(3, 6, 6), treadle.randn(2, 3, 3, 3), **close)


@pytest.mark.parametrize(
    "function",
    [lambda x: F.max_pool2d(x, 2), lambda x: F.max_pool2d(x, 3, 1, 1, 2),
     lambda x: F.avg_pool2d(x, 3, 2, 1, True, False), lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
     lambda x: F.adaptive_max_pool2d(x, 2),
     lambda x: F.softmax(x, 1), lambda x: F.log_softmax(x, -1),
     lambda x: F.layer_norm(x, x.shape[2:]), lambda x: x.amax(1),
     lambda x: treadle.cat([x, x * 2], 1), lambda x: treadle.stack([x, x.exp()], 2),
     lambda x: x.tril(-1), lambda x: x.index_select(1, treadle.tensor([2, 0, 2], device=x.device)),
     lambda x: x.max(2).values],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [treadle.bfloat16, treadle.float32, treadle.float64])
def test_layers(function, dtype: treadle.dtype) -> None:
    loose = {"rtol": 4e-2, "atol": 4e-2} if dtype == treadle.bfloat16 else {}
    agree(function, treadle.randn(2, 4, 9, 8).to(dtype), **loose)


def test_batch_norm() -> None:
    agree(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), treadle.randn(5, 3, 4, 4),
          treadle.randn(3), treadle.randn(3), rtol=1e-4, atol=1e-5)  # fmt: skip


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses(reduction: str) -> None:
    target = treadle.tensor([1, 0, -100, 3])
    agree(lambda x, w, t: F.cross_entropy(x, t, w, reduction=reduction), treadle.randn(4, 5),
          treadle.rand(5), target)  # fmt: skip


def test_indices() -> None:
    index = treadle.tensor([[0, 2, 1], [3, 3, 0]])
    agree(lambda x, i: x.gather(0, i), treadle.randn(4, 3), index)
    agree(lambda x, s, i: x.scatter_add(0, i, s), treadle.randn(4, 3), treadle.randn(2, 3), index)
    agree(lambda w, i: F.embedding(i, w), treadle.randn(5, 6), index)
    agree(lambda x: x.argmax(1), treadle.randn(6, 50), gradients=False)
    agree(lambda x: x.argmin(), treadle.randn(6, 50), gradients=False)


@pytest.mark.parametrize(
    "call, text",
    [(lambda x, i: x.index_select(0, i),
      r"index_select: expected index in \[-4, 4\), got index = 7"),
     (lambda x, i: x.gather(0, i[:, None]), r"gather: expected index in \[-4, 4\), got index = 7"),
     (lambda x, i: F.nll_loss(x[:2], i), r"nll_loss: expected target in \[0, 3\)")],
)  # fmt: skip
def test_indices_are_checked(call, text: str, device: treadle.device) -> None:
    with pytest.raises(IndexError, match=text):
        call(treadle.randn(4, 3, device=device), treadle.tensor([0, 7], device=device))


@pytest.mark.parametrize("dtype", [treadle.float32, treadle.float64, treadle.int64, treadle.bool])
def test_random_numbers_are_those_of_the_cpu(dtype: treadle.dtype, device: treadle.device) -> None:
    def draw(device: object) -> list[treadle.Tensor]:
        # A generator of its own on each device, with the same seed.
        generator = treadle.Generator(device).manual_seed(3)
        x = treadle.empty(1001, dtype=dtype, device=device)
        draws = [x.bernoulli_(0.3, generator=generator).cpu().clone()]
        if dtype.is_floating_point:
            draws.append(x.uniform_(-1, 3, generator=generator).cpu().clone())
        elif dtype == treadle.int64:
            draws.append(x.random_(-5, 1000, generator=generator).cpu().clone())
        return draws

    for here, there in zip(draw("cpu"), draw(device)):
        assert treadle.equal(here, there)


def test_normal_numbers(device: treadle.device) -> None:
    x = treadle.randn(100_000, device=device).cpu()
    assert abs(x.mean().item()) < 0.02
    assert x.std().item() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(
    "make",
    [lambda p: treadle.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
     lambda p: treadle.optim.Adam(p, 0.01, amsgrad=True, weight_decay=0.1),
     lambda p: treadle.optim.AdamW(p, 0.01), lambda p: treadle.optim.Adagrad(p, 0.1, lr_decay=0.1)],
)  # fmt: skip
def test_optimisers(make) -> None:
    start, target = treadle.randn(7, 5), treadle.randn(7, 5)
    ends = []
    for device in ("cpu", "opencl"):
        parameter = nn.Parameter(start.clone().to(device))
        optimizer = make([parameter])
        for _ in range(5):
            optimizer.zero_grad()
            (parameter - target.to(device)).square().sum().backward()
            optimizer.step()
        ends.append(parameter.detach().cpu())
    treadle.testing.assert_close(ends[1], ends[0], rtol=1e-5, atol=1e-5)


def test_filling(device: treadle.device) -> None:
    assert treadle.arange(2, 20, 3, device=device).tolist() == list(range(2, 20, 3))
    assert treadle.full((2, 2), 2.5, device=device).tolist() == [[2.5, 2.5]] * 2
    treadle.testing.assert_close(
        treadle.linspace(0, 1, 7, device=device).cpu(), treadle.linspace(0, 1, 7)
    )

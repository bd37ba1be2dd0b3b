"""The backend as its user sees it: tensors, operators, gradients, and what runs where."""

# SPDX-License-Identifier: Apache-2.0

import pytest

import treadle


@pytest.fixture
def x() -> treadle.Tensor:
    return treadle.arange(6.0).reshape(2, 3).to("minimal")


def test_tensors_live_on_the_device(x: treadle.Tensor) -> None:
    assert str(x.device) == "minimal:0"
    assert (x + 1).device == x.device
    assert treadle.equal(x.cpu(), treadle.arange(6.0).reshape(2, 3))


def test_there_are_two_devices(x: treadle.Tensor) -> None:
    y = x.to("minimal:1")
    assert str(y.device) == "minimal:1"
    assert treadle.equal(y.cpu(), x.cpu())


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2 - 1,
        lambda x: x.sum(0),
        lambda x: x.t() @ x,
        lambda x: treadle.nonzero(x > 2),
        lambda x: x.index_select(1, treadle.tensor([2, 0], device=x.device)),
        lambda x: x.sort(descending=True).values,
        lambda x: treadle.linalg.norm(x),
        lambda x: x.softmax(-1),
    ],
)
def test_operators_agree_with_the_cpu(function, x: treadle.Tensor) -> None:
    result, expected = function(x), function(x.cpu())
    assert result.device == x.device
    treadle.testing.assert_close(result.cpu(), expected)


def test_gradients(x: treadle.Tensor) -> None:
    x.requires_grad_()
    (x * x).sum().backward()
    assert treadle.equal(x.grad.cpu(), 2 * x.detach().cpu())


def test_indices_are_checked(x: treadle.Tensor) -> None:
    with pytest.raises(IndexError, match=r"index_select: expected index in \[0, 3\), got 7"):
        x.index_select(1, treadle.tensor([7], device=x.device))

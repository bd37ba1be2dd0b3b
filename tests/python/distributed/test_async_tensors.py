"""Results of the functional collectives: they come while the program goes on, the first use waits,
and gradients go back through them."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, List

import numpy as np
import pytest

import treadle
import treadle.distributed as dist
from process_groups import together
from treadle.distributed import _functional_collectives as functional
from treadle.distributed._async_tensor import AsyncCollectiveTensor


def _later(rank: int) -> AsyncCollectiveTensor:
    """The sum of [[1, 2], [3, 4]] over two processes, of which the second comes when the first has
    gone on."""
    given = treadle.tensor([[1.0, 2.0], [3.0, 4.0]])
    if rank == 1:
        dist.recv(treadle.zeros(1), 0)
    found = functional.all_reduce(given, "sum", dist.group.WORLD)
    given.zero_()
    if rank == 0:
        assert isinstance(found, AsyncCollectiveTensor) and not found.completed
        view = found.view(4)[1:].t()
        assert isinstance(view, AsyncCollectiveTensor) and not found.completed
        assert found.shape == (2, 2) and found.dtype == treadle.float32
        dist.send(treadle.ones(1), 1)
    return found


def _uses(rank: int) -> None:
    expected = [[2.0, 4.0], [6.0, 8.0]]
    uses: List[Callable[[treadle.Tensor], Any]] = [
        lambda t: t.tolist() == expected,
        lambda t: t.numpy().tolist() == expected,
        lambda t: np.asarray(t).tolist() == expected,
        lambda t: (t + 0).tolist() == expected,
        lambda t: t.sum().item() == 20,
        lambda t: t.view(4)[3].item() == 8,
        lambda t: float(t[0, 0]) == 2,
        lambda t: treadle.cat([treadle.zeros(1, 2), t])[1:].tolist() == expected,
        lambda t: t.mul_(2) is t and t[0, 1].item() == 8,
        lambda t: treadle.zeros(2, 2).copy_(t).tolist() == expected,
        lambda t: t.clone().tolist() == t.contiguous().tolist() == expected,
        lambda t: "8." in repr(t) and repr(t).startswith("AsyncCollectiveTensor("),
        lambda t: functional.wait_tensor(t).tolist() == expected,
        lambda t: functional.wait_tensors([t, t])[1].tolist() == expected,
        lambda t: t.wait().tolist() == expected and t.trigger_wait() is t.elem,
        lambda t: functional.all_reduce(t, "max", "0").tolist() == expected,
    ]
    for i, use in enumerate(uses):
        found = _later(rank)
        assert use(found), i
        assert found.completed, i
        assert type(functional.wait_tensor(found)) is treadle.Tensor
    plain = treadle.ones(1)
    assert functional.wait_tensor(plain) is plain
    # A call of the group itself takes its elements.
    found = _later(rank)
    dist.all_reduce(found)
    assert found.tolist() == [[4.0, 8.0], [12.0, 16.0]]
    # One that nobody waits for ends all the same.
    _later(rank)
    dist.barrier()


def _values(rank: int) -> None:
    world = dist.group.WORLD
    x = treadle.arange(8.0).reshape(2, 4) + 10 * rank
    both = [np.arange(8.0).reshape(2, 4) + 10 * r for r in range(2)]
    for dim in (0, 1, -1):
        found = functional.all_gather_tensor(x, dim, world)
        np.testing.assert_array_equal(found.numpy(), np.concatenate(both, dim))
        found = functional.reduce_scatter_tensor(x, "sum", dim, world)
        np.testing.assert_array_equal(found.numpy(), np.split(sum(both), 2, dim)[rank])
    np.testing.assert_array_equal(functional.broadcast(x, 1, world).numpy(), both[1])
    found = functional.all_to_all_single(x, [1, 1], [1, 1], world)
    np.testing.assert_array_equal(found.numpy(), np.stack([b[rank] for b in both]))
    found = functional.permute_tensor(x, [1, 0], world)
    np.testing.assert_array_equal(found.numpy(), both[1 - rank])
    assert functional.all_reduce_coalesced([x, x], "max", world)[1].tolist() == both[1].tolist()
    text = r"all_gather_tensor: expected a tensor with a dimension, got shape \(\)"
    with pytest.raises(ValueError, match=text):
        functional.all_gather_tensor(treadle.ones(()), 0, world)
    text = "reduce_scatter_tensor: expected a dimension that 2 divides, got 3"
    with pytest.raises(ValueError, match=text):
        functional.reduce_scatter_tensor(treadle.ones(3), "sum", 0, world)


def _gradients(rank: int) -> None:
    """Rank r multiplies what it gets by r + 1, so that a sum over the ranks has the gradient 3."""
    world = dist.group.WORLD

    def gradient(x: treadle.Tensor, function: Callable[[treadle.Tensor], treadle.Tensor]) -> Any:
        x.requires_grad_()
        found = function(x)
        assert isinstance(found, AsyncCollectiveTensor) and found.requires_grad
        (functional.wait_tensor(found) * (rank + 1)).sum().backward()
        return x.grad.tolist()

    def reduced(op: Any, values: List[List[float]]) -> Any:
        x = treadle.tensor(values[rank])
        return gradient(x, lambda t: functional.all_reduce(t, op, world))

    plain = [[1.0, 5.0], [2.0, 3.0]]
    assert reduced("sum", plain) == [3, 3]
    assert reduced("avg", plain) == [1.5, 1.5]
    assert reduced(dist._make_nccl_premul_sum(2.0), plain) == [6, 6]
    assert reduced("max", plain) == ([0, 3] if rank == 0 else [3, 0])
    assert reduced("min", plain) == ([3, 0] if rank == 0 else [0, 3])
    assert reduced("max", [[1.0, float("nan")], [1.0, 2.0]]) == [1.5, 3.0 if rank == 0 else 0.0]
    text = "all_reduce: expected sum, avg, premul_sum, min or max for a gradient, got ReduceOp.PROD"
    with pytest.raises(RuntimeError, match=text):
        reduced("product", plain)
    text = "reduce_scatter_tensor: expected sum or avg for a gradient, got ReduceOp.MAX"
    with pytest.raises(RuntimeError, match=text):
        gradient(
            treadle.ones(2), lambda t: functional.reduce_scatter_tensor_autograd(t, "max", 0, world)
        )

    def of_square(function: Callable[[treadle.Tensor], treadle.Tensor]) -> Any:
        return gradient(treadle.ones(2, 2), function)

    assert of_square(lambda t: functional.all_gather_tensor_autograd(t, 0, world)) == [[3, 3]] * 2
    scatter = functional.reduce_scatter_tensor_autograd
    assert of_square(lambda t: scatter(t, "sum", 0, world)) == [[1, 1], [2, 2]]
    assert of_square(lambda t: scatter(t, "avg", 1, world)) == [[0.5, 1], [0.5, 1]]
    turn = functional.all_to_all_single_autograd
    # Rank 0 keeps one row and gives one; rank 1 gives both.
    given, taken = ([1, 1], [1, 2]) if rank == 0 else ([2, 0], [1, 0])
    expected = [[1, 1], [2, 2]] if rank == 0 else [[1, 1], [1, 1]]
    assert of_square(lambda t: turn(t, taken, given, world)) == expected
    # The operator that uses it first, without wait_tensor(), and through a view.
    x = treadle.ones(2, requires_grad=True)
    (functional.all_reduce(x * 2, "sum", world).view(2, 1) ** 2).sum().backward()
    assert x.grad.tolist() == [32, 32]


def _all(rank: int, world: int) -> None:
    _uses(rank)
    _values(rank)
    _gradients(rank)


def test_results_that_come_later() -> None:
    together(2, _all)

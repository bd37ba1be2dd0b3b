"""Optimisers with sparse gradients: the steps of strided ones, or an error before a write."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import pytest

import treadle
from treadle import optim
from treadle.nn import functional as F
from treadle.testing import assert_close

INDICES = ([3, 1, 3], [0, 1, 5], [5, 5, 5])


def tables(sparse: bool, make: Any, steps: int = 6) -> tuple[Any, Any]:
    """A table and another parameter of the group after some steps."""
    table = treadle.linspace(-1, 1, 18).reshape(6, 3).requires_grad_()
    scale = treadle.ones(3, requires_grad=True)
    optimizer = make([table, scale])
    for step in range(steps):
        optimizer.zero_grad()
        rows = F.embedding(treadle.tensor(INDICES[step % 3]), table, sparse=sparse)
        ((rows + 1) ** 2 * scale).sum().backward()
        assert table.grad.is_sparse == sparse
        optimizer.step()
    return table.detach(), scale.detach()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"maximize": True},
        {"momentum": 0.9},
        {"momentum": 0.9, "dampening": 0.5, "maximize": True},
        {"momentum": 0.9, "nesterov": True},
        {"weight_decay": 0.1},
        {"weight_decay": 0.1, "momentum": 0.9},
        {"foreach": True},
        {"fused": True},
    ],
    ids=str,
)
def test_sgd_takes_the_steps_of_strided_gradients(settings: dict[str, Any]) -> None:
    def make(params: Any) -> Any:
        return optim.SGD(params, lr=0.01, **settings)

    assert_close(tables(True, make), tables(False, make))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"lr_decay": 0.1},
        {"maximize": True},
        {"initial_accumulator_value": 0.1, "eps": 0.1},
        {"fused": True},
    ],
    ids=str,
)
def test_adagrad_takes_the_steps_of_strided_gradients(settings: dict[str, Any]) -> None:
    def make(params: Any) -> Any:
        return optim.Adagrad(params, lr=0.1, **settings)

    assert_close(tables(True, make), tables(False, make))


def test_adagrad_refuses_weight_decay_before_a_write() -> None:
    weight = treadle.ones(3, 2, requires_grad=True)
    optimizer = optim.Adagrad([weight], weight_decay=0.1)
    F.embedding(treadle.tensor([1]), weight, sparse=True).sum().backward()
    with pytest.raises(RuntimeError) as error:
        optimizer.step()
    assert str(error.value) == "weight_decay option is not compatible with sparse gradients"
    assert weight.detach().equal(treadle.ones(3, 2))
    assert optimizer.state[weight]["step"].item() == 0


def test_the_functions_take_sparse_gradients() -> None:
    grad = treadle.sparse_coo_tensor([[1, 1]], [[1.0, 2.0], [1.0, 0.0]], (3, 2))
    param, total, step = treadle.zeros(3, 2), treadle.zeros(3, 2), treadle.zeros(())
    optim.functional.adagrad(
        [param], [grad], [total], [step],
        lr=0.5, weight_decay=0.0, lr_decay=0.0, eps=1e-10, maximize=False,
    )  # fmt: skip
    assert_close(param, treadle.tensor([[0, 0], [-0.5, -0.5], [0, 0]]))
    assert total.tolist() == [[0, 0], [4, 4], [0, 0]] and step.item() == 1
    param, velocities = treadle.zeros(3, 2), [None]
    optim.functional.sgd(
        [param], [grad], velocities,
        weight_decay=0.0, momentum=0.5, lr=0.5, dampening=0.0, nesterov=False, maximize=False,
    )  # fmt: skip
    assert param.tolist() == [[0, 0], [-1, -1], [0, 0]]
    assert velocities[0] is not None and velocities[0].tolist() == [[0, 0], [2, 2], [0, 0]]


def test_sgd_goes_on_from_a_sparse_velocity() -> None:
    """As a file of PyTorch's has it."""
    weight = treadle.zeros(3, requires_grad=True)
    optimizer = optim.SGD([weight], lr=1.0, momentum=0.5)
    optimizer.state[weight]["momentum_buffer"] = treadle.sparse_coo_tensor([[0]], [2.0], (3,))
    weight.grad = treadle.sparse_coo_tensor([[2]], [1.0], (3,))
    optimizer.step()
    assert weight.tolist() == [-1, 0, -1]


@pytest.mark.parametrize("dims", [1, 2])
def test_places_along_any_number_of_dimensions(dims: int) -> None:
    """The steps of a table whose rows are the places."""
    indices = treadle.tensor([[2, 0, 2], [1, 1, 1]])[:dims]
    values = treadle.arange(1.0, 4.0).reshape(3, 1).expand(3, 2)
    shape = (3, 2) if dims == 1 else (3, 2, 2)
    places = indices if dims == 1 else (indices[0] * 2 + indices[1]).reshape(1, 3)
    rows = 3 if dims == 1 else 6
    for name in ("SGD", "Adagrad", "SparseAdam"):
        param = treadle.ones(shape, requires_grad=True)
        table = treadle.ones(rows, 2, requires_grad=True)
        optimizers = [getattr(optim, name)([p], lr=0.1) for p in (param, table)]
        for _ in range(3):
            param.grad = treadle.sparse_coo_tensor(indices, values, shape)
            table.grad = treadle.sparse_coo_tensor(places, values, (rows, 2))
            for optimizer in optimizers:
                optimizer.step()
        assert_close(param.detach().reshape(rows, 2), table.detach())
        assert not param.detach().equal(treadle.ones(shape))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (name, f"{name} does not support sparse gradients")
        for name in (
            "Adadelta",
            "Adafactor",
            "Adamax",
            "ASGD",
            "Muon",
            "NAdam",
            "RAdam",
            "RMSprop",
            "Rprop",
        )  # fmt: skip
    ]
    + [
        (name, "Adam does not support sparse gradients, please consider SparseAdam instead")
        for name in ("Adam", "AdamW")
    ],
)
def test_the_others_refuse_sparse_gradients(name: str, said: str) -> None:
    weight = treadle.ones(3, 2, requires_grad=True)
    optimizer = getattr(optim, name)([weight])
    F.embedding(treadle.tensor([1]), weight, sparse=True).sum().backward()
    with pytest.raises(RuntimeError) as error:
        optimizer.step()
    assert str(error.value) == said
    assert weight.detach().equal(treadle.ones(3, 2)) and not optimizer.state[weight]


def test_lbfgs_takes_sparse_gradients() -> None:
    found = []
    for sparse in (True, False):
        weight = treadle.linspace(0, 1, 6).reshape(3, 2).requires_grad_()
        optimizer = optim.LBFGS([weight], lr=0.5, max_iter=3)

        def loss() -> Any:
            optimizer.zero_grad()  # noqa: B023  called within the iteration
            total = (F.embedding(treadle.tensor([0, 2, 2]), weight, sparse=sparse) ** 2).sum()  # noqa: B023
            total.backward()
            return total

        optimizer.step(loss)
        found.append(weight.detach())
    assert_close(*found)


@pytest.mark.parametrize("name", ["SGD", "Adagrad"])
def test_a_scaler_that_leaves_its_work_to_the_step(name: str) -> None:
    found = []
    for scale in (1.0, 8.0):
        weight = treadle.ones(3, 2, requires_grad=True)
        optimizer = getattr(optim, name)([weight], lr=0.1, fused=True)
        scaler = treadle.amp.GradScaler("cpu", init_scale=scale)
        rows = F.embedding(treadle.tensor([1, 1, 2]), weight, sparse=True)
        scaler.scale((rows * treadle.arange(6.0).reshape(3, 2)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        found.append(weight.detach().clone())
        scaler.scale((F.embedding(treadle.tensor([0]), weight, sparse=True) / 0).sum()).backward()
        scaler.step(optimizer)  # of infinite gradients: left out
        assert weight.detach().equal(found[-1])
    assert_close(*found)
    assert not found[0][1:].equal(treadle.ones(2, 2))

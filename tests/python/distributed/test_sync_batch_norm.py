"""Batch normalisation over the batches of several processes: the same as over the whole batch in
one, with all derivatives."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from typing import Any

import pytest

import treadle
from process_groups import together
from treadle import nn

SIZES = [3, 5, 0]  # of the batches of the processes


def _inputs(shape: tuple) -> list:
    generator = treadle.Generator().manual_seed(1)
    return [
        treadle.randn((n, *shape), dtype=treadle.float64, generator=generator) * 3 + 100 * n
        for n in SIZES
    ]


def _module(kind: type) -> Any:
    module = kind(2, momentum=0.25, dtype=treadle.float64)
    with treadle.no_grad():
        module.weight.copy_(treadle.tensor([1.5, -0.5]))
        module.bias.copy_(treadle.tensor([0.25, 2.0]))
    return module


def _loss(output: treadle.Tensor) -> treadle.Tensor:
    return (output**3).sum() + output.sum()


def _normalise(rank: int, world: int, shape: tuple) -> dict:
    module, x = _module(nn.SyncBatchNorm), _inputs(shape)[rank].requires_grad_()
    output = module(x)
    (grad,) = treadle.autograd.grad(_loss(output), x, create_graph=True)
    (second,) = treadle.autograd.grad((grad * grad).sum(), x)
    parameters = treadle.autograd.grad(_loss(module(x)), list(module.parameters()))
    module.eval()
    found = [output, grad, second, *parameters, module.running_mean, module.running_var, module(x)]
    return [t.detach().numpy() for t in found]


@pytest.mark.parametrize("shape", [(2,), (2, 4), (2, 3, 2)])
def test_as_one_batch(shape: tuple) -> None:
    found = together(3, _normalise, shape)
    kind = {1: nn.BatchNorm1d, 2: nn.BatchNorm1d, 3: nn.BatchNorm2d}[len(shape)]
    module, x = _module(kind), treadle.cat(_inputs(shape)).requires_grad_()
    output = module(x)
    (grad,) = treadle.autograd.grad(_loss(output), x, create_graph=True)
    (second,) = treadle.autograd.grad((grad * grad).sum(), x)
    parameters = treadle.autograd.grad(_loss(module(x)), list(module.parameters()))
    module.eval()
    whole = [output, grad, second, module(x)]
    for place, expected in zip((0, 1, 2, 7), whole):
        joined = treadle.cat([treadle.from_numpy(part[place]) for part in found])
        treadle.testing.assert_close(joined, expected.detach())
    for place, expected in zip((3, 4), parameters):  # each process has its share
        total = sum(treadle.from_numpy(part[place]) for part in found)
        treadle.testing.assert_close(total, expected)
    for part in found:
        for place, expected in zip((5, 6), (module.running_mean, module.running_var)):
            treadle.testing.assert_close(treadle.from_numpy(part[place]), expected)


def _one_value(rank: int, world: int) -> str:
    with pytest.raises(ValueError) as raised:
        nn.SyncBatchNorm(2)(treadle.ones(1 if rank else 0, 2))
    return str(raised.value)


def test_one_value_is_too_few() -> None:
    assert together(2, _one_value)[1] == (
        "Expected more than 1 value per channel when training, got input size "
        "treadle.Size([1, 2]) in all processes together"
    )


def test_one_process_alone() -> None:
    x = treadle.randn(4, 2, dtype=treadle.float64)
    treadle.testing.assert_close(_module(nn.SyncBatchNorm)(x), _module(nn.BatchNorm1d)(x))


def test_without_shift() -> None:
    net = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm1d(2, bias=False)))
    assert net[0].bias is None and list(net.state_dict()) == [
        "0.weight",
        "0.running_mean",
        "0.running_var",
        "0.num_batches_tracked",
    ]


def _own_groups(rank: int, world: int) -> Any:
    alone = [treadle.distributed.new_group([each]) for each in range(world)][rank]
    plain = nn.Sequential(nn.BatchNorm1d(2, dtype=treadle.float64), nn.ReLU())
    net = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(plain), alone)
    assert type(net[0]) is nn.SyncBatchNorm and net[0].process_group is alone
    assert nn.SyncBatchNorm.convert_sync_batchnorm(net[0]) is net[0]
    x = _inputs((2,))[0] * (rank + 1)
    treadle.testing.assert_close(net(x), plain(x))
    treadle.testing.assert_close(net[0].running_var, plain[0].running_var)
    net.eval()
    treadle.testing.assert_close(net(x), plain.eval()(x))


def test_groups_of_their_own() -> None:
    together(2, _own_groups)

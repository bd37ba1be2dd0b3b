"""DistributedDataParallel: twenty steps of processes, each with its share of the batch, give
the parameters that one process has with the whole batch, for all options."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, List

import numpy as np
import pytest

import treadle
import treadle.distributed as dist
from process_groups import together
from treadle import nn
from treadle.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from treadle.distributed.optim import ZeroRedundancyOptimizer
from treadle.nn.parallel import DistributedDataParallel

STEPS, BATCH = 20, 8


class Block(nn.Module):
    """A block of ResNet-18."""

    def __init__(self, before: int, after: int, stride: int, norm: Callable) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = norm(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = norm(after)
        self.short = nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x: treadle.Tensor) -> treadle.Tensor:
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (y + self.short(x)).relu()


class Net(nn.Sequential):
    def __init__(self, norm: Callable) -> None:
        super().__init__(Block(2, 4, 1, norm), Block(4, 6, 2, norm))
        self.extend([nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3)])


def model_of(seed: int, norm: Callable = lambda channels: nn.GroupNorm(2, channels)) -> nn.Module:
    treadle.manual_seed(seed)
    return Net(norm).to(treadle.float64)


def batches() -> List[tuple]:
    numbers = np.random.default_rng(0)
    x = numbers.standard_normal((4, BATCH, 2, 6, 6))
    y = numbers.standard_normal((4, BATCH, 3))
    return [(treadle.from_numpy(a), treadle.from_numpy(b)) for a, b in zip(x, y)]


def steps(model: nn.Module, optimizer: Any, share: slice, keep: bool = False) -> Dict[str, Any]:
    data = batches()
    for step in range(STEPS):
        x, y = data[step % len(data)]
        optimizer.zero_grad(set_to_none=not keep)
        (model(x[share]) - y[share]).square().mean().backward()
        optimizer.step()
    module = model.module if isinstance(model, DistributedDataParallel) else model
    return {name: value.numpy().copy() for name, value in module.state_dict().items()}


def sgd(model: nn.Module) -> Any:
    return treadle.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def _zero(model: nn.Module, as_views: bool) -> Any:
    return ZeroRedundancyOptimizer(
        model.parameters(), treadle.optim.Adam, parameters_as_bucket_view=as_views, lr=0.01
    )


def _power_sgd(model: Any, batched: bool) -> None:
    # With a full rank nothing is lost.
    state = powerSGD_hook.PowerSGDState(
        None, 100, 2, min_compression_rate=0, batch_tensors_with_same_shape=True
    )
    hook = powerSGD_hook.batched_powerSGD_hook if batched else powerSGD_hook.powerSGD_hook
    model.register_comm_hook(state, hook)


OPTIONS: Dict[str, dict] = {
    "": {},
    "many buckets": {"bucket_cap_mb": 1e-5},
    "sizes of buckets": {"bucket_cap_mb_list": [1e-4, 2e-3]},
    "views": {"gradient_as_bucket_view": True},
    "views, many": {"gradient_as_bucket_view": True, "bucket_cap_mb": 1e-3},
    "static": {"static_graph": True, "bucket_cap_mb": 4e-3},
    "unused": {"find_unused_parameters": True, "bucket_cap_mb": 4e-3},
    "one copy": {"batched_grad_copy": True, "bucket_cap_mb": 4e-3},
    "one copy, views": {"batched_grad_copy": True, "gradient_as_bucket_view": True},
    "late": {"lazy_bucket_allocation": True, "bucket_cap_mb": 4e-3},
    "late, views": {"lazy_bucket_allocation": True, "gradient_as_bucket_view": True},
    "skip": {"find_unused_parameters": True, "skip_all_reduce_unused_params": True},
}

HOOKS: Dict[str, Callable[[Any], None]] = {
    "mean": lambda model: model.register_comm_hook(None, default_hooks.allreduce_hook),
    "builtin": lambda m: m._register_builtin_comm_hook(dist.BuiltinCommHookType.ALLREDUCE),
    "power": lambda model: _power_sgd(model, False),
    "power of the bucket": lambda model: _power_sgd(model, True),
}


def _train(rank: int, world: int, names: List[str]) -> Dict[str, Any]:
    share = slice(rank * BATCH // world, (rank + 1) * BATCH // world)
    found = {}

    def parallel(**options: Any) -> DistributedDataParallel:
        return DistributedDataParallel(model_of(rank), **options)

    for name in names:
        for keep in {False, "views" in name}:
            model = parallel(**OPTIONS[name])
            found[name, keep] = steps(model, sgd(model), share, keep)
    for name, register in HOOKS.items() if world == 2 else ():
        model = parallel(bucket_cap_mb=4e-3, gradient_as_bucket_view=True)
        register(model)
        found[name, False] = steps(model, sgd(model), share)
    net = nn.SyncBatchNorm.convert_sync_batchnorm(model_of(rank, nn.BatchNorm2d))
    model = DistributedDataParallel(net)
    found["batch norm", False] = steps(model, sgd(model), share)
    for as_views in (False, True):
        model = parallel()
        found["Adam", as_views] = steps(model, _zero(model, as_views), share)
    return found


@pytest.mark.parametrize(
    ("world", "names"), [(2, list(OPTIONS)), (4, ["views, many", "static", "unused"])]
)
def test_the_parameters_are_those_of_one_process(world: int, names: List[str]) -> None:
    found = together(world, _train, names)
    model = model_of(0)
    expected = {"sgd": steps(model, sgd(model), slice(None))}
    model = model_of(0, nn.BatchNorm2d)
    expected["batch norm"] = steps(model, sgd(model), slice(None))
    model = model_of(0)
    adam = treadle.optim.Adam(model.parameters(), lr=0.01)
    expected["Adam"] = steps(model, adam, slice(None))
    assert len(found[0]) == len(names) + sum("views" in n for n in names) + (7 if world == 2 else 3)
    for case, state in found[0].items():
        for name, value in expected.get(case[0], expected["sgd"]).items():
            np.testing.assert_allclose(
                state[name], value, rtol=1e-5, atol=1e-7, err_msg=f"{case} {name}"
            )
            for other in found[1:]:  # the same bits everywhere
                assert other[case][name].tobytes() == state[name].tobytes(), (case, name)

"""Schedulers beside their numbers (test_optim_known.py): what they accept, warn of and refuse."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
import warnings
from typing import Any, Callable

import pytest
from test_optim_known import runs

import treadle
from treadle import nn, optim
from treadle.optim import lr_scheduler, swa_utils


def sgd(lr: Any = 0.5, **settings: Any) -> optim.SGD:
    return optim.SGD([nn.Parameter(treadle.zeros(1))], lr=lr, **settings)


def rates(optimizer: optim.Optimizer, scheduler: Any, epochs: int = 12) -> list[float]:
    """The first group's rate at each epoch; `get_last_lr` agrees."""
    found = []
    for _ in range(epochs):
        found.append(float(optimizer.param_groups[0]["lr"]))
        assert [float(rate) for rate in scheduler.get_last_lr()] == [
            float(group["lr"]) for group in optimizer.param_groups
        ]
        optimizer.step()
        scheduler.step()
    return found


# ---- rates in closed form ------------------------------------------------------------------------

CLOSED: list[tuple[Callable[[Any], Any], Callable[[int], float]]] = [
    (lambda o: lr_scheduler.StepLR(o, 3, 0.1), lambda e: 0.5 * 0.1 ** (e // 3)),
    (
        lambda o: lr_scheduler.MultiStepLR(o, [2, 5], 0.1),
        lambda e: 0.5 * 0.1 ** ((e >= 2) + (e >= 5)),
    ),
    (lambda o: lr_scheduler.ExponentialLR(o, 0.9), lambda e: 0.5 * 0.9**e),
    (lambda o: lr_scheduler.ConstantLR(o, 0.25, 4), lambda e: 0.5 * (0.25 if e < 4 else 1)),
    (
        lambda o: lr_scheduler.LinearLR(o, 0.2, 1.0, 4),
        lambda e: 0.5 * (0.2 + 0.8 * min(e, 4) / 4),
    ),
    (
        lambda o: lr_scheduler.CosineAnnealingLR(o, 4, 0.1),
        lambda e: 0.1 + 0.4 * (1 + math.cos(math.pi * e / 4)) / 2,
    ),
    (lambda o: lr_scheduler.PolynomialLR(o, 8, 2.0), lambda e: 0.5 * max(1 - e / 8, 0) ** 2),
    (lambda o: lr_scheduler.LambdaLR(o, lambda e: 1 / (e + 1)), lambda e: 0.5 / (e + 1)),
    (lambda o: lr_scheduler.MultiplicativeLR(o, lambda e: 0.5), lambda e: 0.5 * 0.5**e),
    (
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 5),
        lambda e: 0.5 * (1 + math.cos(math.pi * (e % 5) / 5)) / 2,
    ),
]
IDS = ["Step", "MultiStep", "Exponential", "Constant", "Linear", "Cosine", "Polynomial", "Lambda"]
IDS += ["Multiplicative", "WarmRestarts"]


@pytest.mark.parametrize("make, expected", CLOSED, ids=IDS)
def test_rates(make: Any, expected: Any) -> None:
    optimizer = sgd()
    found = rates(optimizer, make(optimizer))
    assert found == pytest.approx([expected(epoch) for epoch in range(12)])


@pytest.mark.parametrize("make, expected", CLOSED[:7], ids=IDS[:7])
def test_a_given_epoch(make: Any, expected: Any) -> None:
    """`step(epoch)` goes there at once, and warns that it will not always be there."""
    optimizer = sgd()
    scheduler = make(optimizer)
    optimizer.step()
    for epoch in (7, 2, 5):
        with pytest.warns(UserWarning, match="epoch parameter in `scheduler.step"):
            scheduler.step(epoch)
        assert scheduler.get_last_lr() == pytest.approx([expected(epoch)])
        assert scheduler.last_epoch == epoch


@pytest.mark.parametrize("make, expected", CLOSED, ids=IDS)
def test_a_rate_that_is_a_tensor(make: Any, expected: Any) -> None:
    """It stays the same tensor, in which the value changes."""
    rate = treadle.tensor(0.5, dtype=treadle.float64)
    optimizer = sgd(rate)
    scheduler = make(optimizer)
    found = rates(optimizer, scheduler)
    assert found == pytest.approx([expected(epoch) for epoch in range(12)])
    assert optimizer.param_groups[0]["lr"] is rate
    assert scheduler.base_lrs[0].item() == 0.5


@pytest.mark.parametrize("name", ["CyclicLR", "OneCycleLR", "SequentialLR", "SWALR"])
def test_a_rate_that_is_a_tensor_in_longer_schedules(name: str) -> None:
    plain, tensor = sgd(0.5, momentum=0.9), sgd(treadle.tensor(0.5).double(), momentum=0.9)
    made = [runs.SCHEDULERS[name](lr_scheduler, optimizer) for optimizer in (plain, tensor)]
    assert rates(plain, made[0]) == pytest.approx(rates(tensor, made[1]))
    assert isinstance(tensor.param_groups[0]["lr"], treadle.Tensor)


def test_warm_restarts_within_epochs() -> None:
    """Fractions of epochs, and jumps over several restarts."""
    optimizer = sgd(1.0)
    scheduler = lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2, 2)
    for epoch, at in ((0.5, 0.25), (1.5, 0.75), (3.0, 0.25), (7.0, 0.125), (13.999, 7.999 / 8)):
        scheduler.step(epoch)
        assert scheduler.get_last_lr()[0] == pytest.approx((1 + math.cos(math.pi * at)) / 2)
        assert scheduler.last_epoch == math.floor(epoch)
    with pytest.raises(ValueError, match="Expected non-negative epoch, but got -1"):
        scheduler.step(-1)


def test_changes_by_hand_stay() -> None:
    optimizer = sgd(1.0)
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    scheduler.step()
    optimizer.param_groups[0]["lr"] *= 10
    scheduler.step()
    assert scheduler.get_last_lr() == [2.5]


def test_a_group_that_comes_later_has_a_rate_of_its_own() -> None:
    optimizer = sgd(1.0)
    scheduler = lr_scheduler.StepLR(optimizer, 1, 0.5)
    optimizer.add_param_group({"params": [nn.Parameter(treadle.zeros(1))], "lr": 4.0})
    optimizer.step()
    scheduler.step()
    assert scheduler.get_last_lr() == [0.5, 2.0]


# ---- going on after a break ----------------------------------------------------------------------


@pytest.mark.parametrize("make, expected", CLOSED[:7], ids=IDS[:7])
def test_made_again_in_the_middle(make: Any, expected: Any) -> None:
    """`last_epoch` says how far an earlier scheduler came; the rate in the group is its last."""
    optimizer = sgd()
    scheduler = make(optimizer)
    for _ in range(2):
        optimizer.step()
        scheduler.step()
    group = dict(optimizer.param_groups[0], params=[nn.Parameter(treadle.zeros(1))])
    other = optim.SGD([group], lr=99.0)
    settings = {k: v for k, v in vars(scheduler).items() if not k.startswith("_")}
    for name in ("optimizer", "base_lrs", "last_epoch"):
        del settings[name]
    again = type(scheduler)(other, **settings, last_epoch=scheduler.last_epoch - 1)
    assert again.last_epoch == 2
    if isinstance(again, (lr_scheduler.StepLR, lr_scheduler.MultiStepLR)):
        return  # these take the step to that epoch, whose rate they have already, once more
    for epoch in range(3, 8):
        other.step()
        again.step()
        assert again.get_last_lr() == pytest.approx([expected(epoch)])


def test_without_a_first_rate_there_is_nothing_to_resume() -> None:
    with pytest.raises(KeyError, match=r"'initial_lr' is not specified in param_groups\[0\]"):
        lr_scheduler.StepLR(sgd(), 2, last_epoch=3)


# ---- warnings ------------------------------------------------------------------------------------


def test_stepping_before_the_optimizer() -> None:
    optimizer = sgd(1.0)
    scheduler = lr_scheduler.StepLR(optimizer, 2)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        scheduler.step()


def test_a_step_that_was_replaced() -> None:
    optimizer = sgd(1.0)
    scheduler = lr_scheduler.StepLR(optimizer, 2)
    optimizer.step = lambda: None
    optimizer.step()
    with pytest.warns(UserWarning, match="has been overridden after"):
        scheduler.step()


def test_several_schedulers_of_one_optimizer_warn_of_nothing() -> None:
    optimizer = sgd(1.0)
    first = lr_scheduler.StepLR(optimizer, 2)
    optimizer.step()
    second = lr_scheduler.ExponentialLR(optimizer, 0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first.step()
        second.step()


@pytest.mark.parametrize("name", runs.SCHEDULERS)
def test_asking_for_rates_by_get_lr(name: str) -> None:
    if name.startswith(("Sequential", "Chained")):
        return  # which have no such method of their own
    scheduler = runs.SCHEDULERS[name](lr_scheduler, runs.two_groups(treadle))
    with pytest.warns(UserWarning, match="please use `get_last_lr"):
        scheduler.get_lr()


# ---- refusals ------------------------------------------------------------------------------------

ADAGRAD = [nn.Parameter(treadle.zeros(1))]
REFUSED: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda o: lr_scheduler.StepLR("text", 2), TypeError, "str is not an Optimizer"),
    (lambda o: lr_scheduler.CyclicLR(None, 0.1, 0.2), TypeError, "NoneType is not an Optimizer"),
    (lambda o: lr_scheduler.ReduceLROnPlateau(3), TypeError, "int is not an Optimizer"),
    (
        lambda o: lr_scheduler.LambdaLR(o, [abs, abs]),
        ValueError,
        "Expected 1 lr_lambdas, but got 2",
    ),
    (
        lambda o: lr_scheduler.MultiplicativeLR(o, 0.5),
        TypeError,
        "lr_lambda should be a function, but got float",
    ),
    (
        lambda o: lr_scheduler.ConstantLR(o, 1.5),
        ValueError,
        "Constant multiplicative factor expected to be between 0 and 1",
    ),
    (
        lambda o: lr_scheduler.LinearLR(o, 0.0),
        ValueError,
        "Starting multiplicative factor expected to be greater than 0",
    ),
    (
        lambda o: lr_scheduler.LinearLR(o, 0.5, 2.0),
        ValueError,
        "Ending multiplicative factor expected to be between 0 and 1",
    ),
    (
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 0),
        ValueError,
        "Expected positive integer T_0, but got 0",
    ),
    (
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 2, 1.5),
        ValueError,
        "Expected integer T_mult >= 1, but got 1.5",
    ),
    (
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 2, eta_min="low"),
        ValueError,
        "Expected float or int eta_min, but got low of type",
    ),
    (
        lambda o: lr_scheduler.CyclicLR(o, [0.1, 0.2], 0.3),
        ValueError,
        "base_lr must have the same length as optimizer.param_groups. base_lr has 2 values, "
        "param_groups has 1",
    ),
    (lambda o: lr_scheduler.CyclicLR(o, 0.1, 0.3, mode="?"), ValueError, "mode is invalid"),
    (
        lambda o: lr_scheduler.CyclicLR(optim.Adagrad(ADAGRAD), 0.1, 0.3),
        ValueError,
        "optimizer must support momentum or beta1",
    ),
    (
        lambda o: lr_scheduler.OneCycleLR(optim.Adagrad(ADAGRAD), 0.1, 3),
        ValueError,
        "optimizer must support momentum or beta1",
    ),
    (
        lambda o: lr_scheduler.OneCycleLR(o, 0.1, epochs=3),
        ValueError,
        r"either total_steps OR \(epochs AND steps_per_epoch\)",
    ),
    (
        lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=-1),
        ValueError,
        "Expected positive integer total_steps, but got -1",
    ),
    (
        lambda o: lr_scheduler.OneCycleLR(o, 0.1, epochs=2, steps_per_epoch=0),
        ValueError,
        "Expected positive integer steps_per_epoch, but got 0",
    ),
    (
        lambda o: lr_scheduler.OneCycleLR(o, 0.1, 3, pct_start=2.0),
        ValueError,
        "Expected float between 0 and 1 pct_start, but got 2.0",
    ),
    (
        lambda o: lr_scheduler.OneCycleLR(o, 0.1, 3, anneal_strategy="up"),
        ValueError,
        "anneal_strategy must be one of 'cos' or 'linear', instead got up",
    ),
    (
        lambda o: swa_utils.SWALR(o, 0.1, anneal_strategy="up"),
        ValueError,
        "anneal_strategy must be one of 'cos' or 'linear', instead got up",
    ),
    (
        lambda o: swa_utils.SWALR(o, 0.1, anneal_epochs=-1),
        ValueError,
        "anneal_epochs must be equal or greater than 0, got -1",
    ),
    (lambda o: swa_utils.get_ema_avg_fn(1.5), ValueError, "Invalid decay value 1.5 provided"),
    (
        lambda o: lr_scheduler.ReduceLROnPlateau(o, factor=1.0),
        ValueError,
        "Factor should be < 1.0",
    ),
    (lambda o: lr_scheduler.ReduceLROnPlateau(o, "up"), ValueError, "mode up is unknown"),
    (
        lambda o: lr_scheduler.ReduceLROnPlateau(o, threshold_mode="up"),
        ValueError,
        "threshold mode up is unknown",
    ),
    (
        lambda o: lr_scheduler.ReduceLROnPlateau(o, min_lr=[0.1, 0.2]),
        ValueError,
        "expected 1 min_lrs, got 2",
    ),
    (
        lambda o: lr_scheduler.SequentialLR(o, [], []),
        ValueError,
        "SequentialLR expects at least one scheduler, but got no scheduler",
    ),
    (
        lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.StepLR(o, 1)], [1]),
        ValueError,
        "got number of schedulers 1 and the number of milestones to be equal to 1",
    ),
    (
        lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.StepLR(sgd(), 1)], []),
        ValueError,
        "expects all schedulers to belong to the same optimizer, but got scheduler StepLR at "
        "index 0",
    ),
    (
        lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.ReduceLROnPlateau(o)], []),
        ValueError,
        "does not support `ReduceLROnPlateau`",
    ),
    (
        lambda o: lr_scheduler.SequentialLR(o, ["text"], []),
        TypeError,
        "SequentialLR at index 0 should have `optimizer` as its attribute",
    ),
    (
        lambda o: lr_scheduler.ChainedScheduler([]),
        ValueError,
        "expects at least one scheduler to be chained, but got no scheduler",
    ),
    (
        lambda o: lr_scheduler.ChainedScheduler(
            [lr_scheduler.StepLR(o, 1), lr_scheduler.StepLR(sgd(), 1)]
        ),
        ValueError,
        "ChainedScheduler expects all schedulers to belong to the same optimizer",
    ),
]


@pytest.mark.parametrize("make, error, text", REFUSED)
def test_refused(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make(sgd())


def test_one_cycle_ends() -> None:
    optimizer = sgd(momentum=0.9)
    scheduler = lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=3)
    for _ in range(3):
        optimizer.step()
        scheduler.step()
    with pytest.raises(ValueError, match="Tried to step 4 times. The specified number of total"):
        scheduler.step()


@pytest.mark.parametrize("min_lr", [0.3, [0.3]], ids=str)
def test_a_plateau_of_more_groups_than_bounds(min_lr: Any) -> None:
    optimizer = sgd(1.0)
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.5, min_lr=min_lr)
    optimizer.add_param_group({"params": [nn.Parameter(treadle.zeros(1))], "lr": 0.4})
    scheduler.step(1.0)
    if isinstance(min_lr, list):
        with pytest.raises(RuntimeError, match=r"groups in the `optimizer` \(2\) differs from"):
            scheduler.step(1.0)
    else:
        scheduler.step(1.0)
        assert scheduler.get_last_lr() == [0.5, 0.3]


def test_a_plateau_measured_by_tensors() -> None:
    optimizer = sgd(treadle.tensor(1.0))
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, cooldown=1)
    assert isinstance(scheduler, lr_scheduler.LRScheduler)
    for value in (1.0, 1.0):
        scheduler.step(treadle.tensor(value))
    assert scheduler.in_cooldown and float(optimizer.param_groups[0]["lr"]) == pytest.approx(0.1)


# ---- schedulers of one's own ---------------------------------------------------------------------


@pytest.mark.parametrize("base", [lr_scheduler.LRScheduler, lr_scheduler._LRScheduler])
def test_a_scheduler_of_ones_own(base: type) -> None:
    class Halves(base):
        def __init__(self, optimizer: Any, every: int, last_epoch: int = -1) -> None:
            self.every = every
            super().__init__(optimizer, last_epoch)

        def get_lr(self) -> list[float]:
            return [rate * 0.5 ** (self.last_epoch // self.every) for rate in self.base_lrs]

    optimizer = sgd(1.0)
    assert rates(optimizer, Halves(optimizer, 2), 5) == [1.0, 1.0, 0.5, 0.5, 0.25]
    assert Halves(optimizer, 2).state_dict()["every"] == 2


def test_a_scheduler_that_says_nothing() -> None:
    with pytest.raises(NotImplementedError):
        lr_scheduler.LRScheduler(sgd())


# ---- averages of weights -------------------------------------------------------------------------


def test_one_way_of_averaging() -> None:
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn"):
        swa_utils.AveragedModel(
            nn.Linear(1, 1),
            avg_fn=swa_utils.get_swa_avg_fn(),
            multi_avg_fn=swa_utils.get_swa_multi_avg_fn(),
        )


def test_an_average_of_several_dtypes() -> None:
    net = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2).double()])
    seen = []

    def average(averaged: Any, current: Any, count: Any) -> None:
        seen.append((averaged[0].dtype, len(averaged), int(count)))
        for old, new in zip(averaged, current):
            old.copy_((old + new) / 2)

    mean = swa_utils.AveragedModel(net, multi_avg_fn=average)
    for _ in range(2):
        mean.update_parameters(net)
    assert seen == [(treadle.float32, 2, 1), (treadle.float64, 2, 1)]
    assert mean.module[1].weight.tolist() == net[1].weight.tolist()
    assert mean.module[1].weight.requires_grad


def test_statistics_of_a_network_without_any() -> None:
    net = nn.Linear(2, 1).eval()
    swa_utils.update_bn([treadle.ones(3, 2)], net)
    assert not net.training

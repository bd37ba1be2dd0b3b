"""Optimisers and schedulers that are saved, loaded, copied and pickled in the middle of a training:
they go on as if nothing had happened."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import io
import pickle
from typing import Any, Callable

import numpy as np
import pytest
from test_optim_known import runs

import treadle
from treadle import nn, optim
from treadle.optim import lr_scheduler

Optimizer = optim.Optimizer
FITS = [
    pytest.param(name, settings, id=f"{name}-{runs.key(settings)}")
    for name, each in runs.OPTIMIZERS.items()
    for settings in each
]


def through_file(state: dict[str, Any]) -> dict[str, Any]:
    file = io.BytesIO()
    treadle.save(state, file)
    file.seek(0)
    return treadle.load(file)


def halfway(name: str, settings: dict[str, Any]) -> tuple[runs.Problem, Optimizer]:
    problem = runs.Problem(treadle)
    optimizer = getattr(optim, name)(problem.params, **settings)
    runs.train(optimizer, problem, 10)
    return problem, optimizer


def same_problem(problem: runs.Problem) -> runs.Problem:
    other = runs.Problem(treadle)
    other.params = [p.detach().clone().requires_grad_() for p in problem.params]
    return other


@pytest.mark.parametrize("name, settings", FITS)
def test_the_second_half_after_loading(name: str, settings: dict[str, Any]) -> None:
    problem, first = halfway(name, settings)
    other = same_problem(problem)
    saved = through_file(first.state_dict())
    settings = {**settings, "lr": 7.0}  # which the loaded rate replaces
    second = getattr(optim, name)(other.params, **settings)
    second.load_state_dict(saved)
    assert second.param_groups[0]["lr"] == first.param_groups[0]["lr"]
    # Numbers beside the steps become float64, as the parameters are, and go on with more digits.
    tolerance = 1e-6 if name in ("ASGD", "NAdam") else 0.0
    losses, others = runs.train(first, problem, 10), runs.train(second, other, 10)
    np.testing.assert_allclose(losses, others, rtol=tolerance)
    for mine, theirs in zip(problem.params, other.params):
        np.testing.assert_allclose(mine.detach(), theirs.detach(), rtol=tolerance)
    # Nothing of the file's contents is the optimiser's own.
    assert repr(saved) == repr(
        through_file(halfway(name, settings | first_lr(saved))[1].state_dict())
    )


def first_lr(saved: dict[str, Any]) -> dict[str, Any]:
    return {"lr": saved["param_groups"][0]["lr"]}


@pytest.mark.parametrize("name, settings", FITS)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_the_second_half_of_a_copy(
    name: str, settings: dict[str, Any], copied: Callable[[Any], Any]
) -> None:
    problem, first = halfway(name, settings)
    second = copied(first)
    assert repr(second) == repr(first)
    other = same_problem(problem)
    other.params = second.param_groups[0]["params"]
    assert runs.train(first, problem, 10) == runs.train(second, other, 10)
    assert [p.tolist() for p in problem.params] == [p.tolist() for p in other.params]


def test_state_takes_the_dtype_of_the_parameters() -> None:
    problem, first = halfway("Adam", {"amsgrad": True})
    params = [p.detach().float().requires_grad_() for p in problem.params]
    second = optim.Adam(params, amsgrad=True)
    second.load_state_dict(first.state_dict())
    state = second.state[params[0]]
    assert {name: value.dtype for name, value in state.items()} == {
        "step": treadle.float32,
        "exp_avg": treadle.float32,
        "exp_avg_sq": treadle.float32,
        "max_exp_avg_sq": treadle.float32,
    }
    assert state["step"].item() == 10.0


@pytest.mark.parametrize("name", ["Adam", "Adagrad", "RMSprop", "ASGD"])
def test_older_files_count_steps_by_numbers(name: str) -> None:
    problem, first = halfway(name, {})
    saved = first.state_dict()
    for values in saved["state"].values():
        values["step"] = 10
    for setting in ("maximize", "differentiable"):
        del saved["param_groups"][0][setting]
    second = getattr(optim, name)(problem.params)
    second.load_state_dict(saved)
    step = second.state[problem.params[0]]["step"]
    assert isinstance(step, treadle.Tensor) and step.item() == 10.0
    assert second.param_groups[0]["maximize"] is False
    runs.train(second, problem, 1)


def test_adamw_stays_adamw() -> None:
    problem, first = halfway("Adam", {})
    second = optim.AdamW(problem.params)
    second.load_state_dict(first.state_dict())
    assert second.param_groups[0]["decoupled_weight_decay"] is True


def test_hooks_of_saving_and_loading() -> None:
    seen = []
    optimizer = optim.SGD([nn.Parameter(treadle.ones(1))], lr=0.5)
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("before saving"))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "extra": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, state: seen.append(state.pop("extra")))
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("after loading"))
    saved = optimizer.state_dict()
    optimizer.load_state_dict(saved)
    assert seen == ["before saving", 1, "after loading"] and "extra" in saved


def test_a_group_that_comes_later() -> None:
    """Its state is saved with that of the others, and loaded where it belongs."""
    a, b = nn.Parameter(treadle.ones(2)), nn.Parameter(treadle.ones(3))
    for name in ("Adam", "Adagrad", "SGD"):
        settings = {"momentum": 0.9} if name == "SGD" else {}
        optimizer = getattr(optim, name)([a], lr=0.1, **settings)
        a.grad, b.grad = treadle.ones(2), treadle.ones(3)
        optimizer.step()
        optimizer.add_param_group({"params": [b], "lr": 0.2})
        optimizer.step()
        saved = optimizer.state_dict()
        assert [group["params"] for group in saved["param_groups"]] == [[0], [1]]
        assert [group["lr"] for group in saved["param_groups"]] == [0.1, 0.2]
        if name != "SGD":
            assert [saved["state"][i]["step"].item() for i in (0, 1)] == [2.0, 1.0]
        other = getattr(optim, name)([{"params": [a]}, {"params": [b]}], **settings)
        other.load_state_dict(saved)
        assert repr(other) == repr(optimizer) and repr(other.state) == repr(optimizer.state)


# ---- schedulers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", runs.SCHEDULERS)
def test_the_second_half_of_a_schedule(name: str) -> None:
    whole = runs.follow(treadle, name) if name != "SequentialLR nested" else None
    first = runs.two_groups(treadle)
    scheduler = runs.SCHEDULERS[name](lr_scheduler, first)
    for _ in range(10):
        first.step()
        scheduler.step()
    saved = through_file({"optimizer": first.state_dict(), "scheduler": scheduler.state_dict()})
    second = runs.two_groups(treadle)
    other = runs.SCHEDULERS[name](lr_scheduler, second)
    second.load_state_dict(saved["optimizer"])
    other.load_state_dict(saved["scheduler"])
    assert other.get_last_lr() == scheduler.get_last_lr()
    assert "optimizer" not in saved["scheduler"]
    for epoch in range(10, runs.STEPS):
        assert runs.settings_of(second) == runs.settings_of(first)
        if whole is not None:
            assert runs.plain(runs.settings_of(first)) == whole[epoch]
        for o, s in ((first, scheduler), (second, other)):
            o.step()
            s.step()


@pytest.mark.parametrize("settings", runs.PLATEAUS.values(), ids=list(runs.PLATEAUS))
def test_the_second_half_of_a_plateau(settings: dict[str, Any]) -> None:
    first, second = runs.two_groups(treadle), runs.two_groups(treadle)
    scheduler = lr_scheduler.ReduceLROnPlateau(first, **settings)
    other = lr_scheduler.ReduceLROnPlateau(second, **settings)
    for value in runs.METRICS[:7]:
        scheduler.step(value)
    second.load_state_dict(first.state_dict())
    other.load_state_dict(through_file(scheduler.state_dict()))
    for value in runs.METRICS[7:]:
        scheduler.step(value)
        other.step(value)
        assert runs.settings_of(first) == runs.settings_of(second)


class Growth:
    """A schedule with a setting."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, epoch: float) -> float:
        return self.factor**epoch


@pytest.mark.parametrize(
    "make",
    [
        lambda o, f: lr_scheduler.LambdaLR(o, Growth(f)),
        lambda o, f: lr_scheduler.MultiplicativeLR(o, Growth(f)),
        lambda o, f: lr_scheduler.CyclicLR(o, 0.1, 0.5, 4, scale_fn=Growth(f)),
    ],
)
def test_objects_that_are_called_are_saved_by_attributes(make: Any) -> None:
    first, second = runs.two_groups(treadle), runs.two_groups(treadle)
    scheduler, other = make(first, 0.5), make(second, 0.9)
    other.load_state_dict(through_file(scheduler.state_dict()))
    second.load_state_dict(first.state_dict())
    for _ in range(3):
        for o, s in ((first, scheduler), (second, other)):
            o.step()
            s.step()
    assert runs.settings_of(first) == runs.settings_of(second)


@pytest.mark.parametrize("name", [n for n in runs.SCHEDULERS if "Lambda" not in n])
def test_schedulers_are_copied_with_their_optimizer(name: str) -> None:
    optimizer = runs.two_groups(treadle)
    scheduler = runs.SCHEDULERS[name](lr_scheduler, optimizer)
    optimizer.step()
    scheduler.step()
    both = copy.deepcopy((optimizer, scheduler))
    assert both[1].optimizer is both[0]
    for o, s in ((optimizer, scheduler), both):
        for _ in range(3):
            o.step()
            s.step()
    assert runs.settings_of(both[0]) == runs.settings_of(optimizer)


def test_pickled_schedulers() -> None:
    optimizer = runs.two_groups(treadle)
    scheduler = lr_scheduler.CyclicLR(optimizer, 0.1, 0.5, 4, mode="exp_range", gamma=0.9)
    again, its = pickle.loads(pickle.dumps((scheduler, optimizer)))
    assert again.optimizer is its
    for o, s in ((optimizer, scheduler), (its, again)):
        o.step()
        s.step()
    assert runs.settings_of(its) == runs.settings_of(optimizer)


def test_an_average_is_saved() -> None:
    net = nn.Linear(2, 1)
    average = optim.swa_utils.AveragedModel(net)
    average.update_parameters(net)
    saved = through_file(average.state_dict())
    assert list(saved) == ["n_averaged", "module.weight", "module.bias"]
    other = optim.swa_utils.AveragedModel(nn.Linear(2, 1))
    other.load_state_dict(saved)
    assert other.n_averaged.item() == 1 and other.n_averaged.dtype == treadle.int64
    assert other.module.weight.tolist() == net.weight.tolist()

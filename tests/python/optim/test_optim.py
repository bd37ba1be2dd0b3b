"""Optimisers and schedulers: twenty steps from the same start against float64 computations in
NumPy."""

# SPDX-License-Identifier: Apache-2.0

import copy
import math

import numpy as np
import pytest

import treadle
from treadle import nn, optim
from treadle.optim import lr_scheduler

STEPS = 20


def problem(dtype=treadle.float64):
    """Two parameters and a rule that gives each step's gradients."""
    rng = np.random.default_rng(0)
    start = [rng.normal(size=(3, 4)), rng.normal(size=(5,))]
    targets = [rng.normal(size=(3, 4)), rng.normal(size=(5,))]
    params = [nn.Parameter(treadle.tensor(value, dtype=dtype)) for value in start]
    return start, targets, params


def gradients(values, targets, step):
    return [(value - target) * (1 + 0.1 * step) for value, target in zip(values, targets)]


def run(make, reference, dtype=treadle.float64, tolerance=1e-12):
    start, targets, params = problem(dtype)
    optimizer = make(params)
    values = [value.copy() for value in start]
    update = reference()
    for step in range(STEPS):
        optimizer.zero_grad()
        for param, target in zip(params, targets):
            goal = treadle.tensor(target, dtype=dtype)
            loss = ((param - goal) ** 2).sum() * (0.5 * (1 + 0.1 * step))
            loss.backward()
        optimizer.step()
        values = update(values, gradients(values, targets, step), step)
    for param, value in zip(params, values):
        np.testing.assert_allclose(
            param.detach().to(treadle.float64).numpy(), value, rtol=tolerance, atol=tolerance
        )


def sgd(lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False):
    def make():
        velocity = {}

        def update(values, grads, step):
            result = []
            for i, (value, grad) in enumerate(zip(values, grads)):
                grad = -grad if maximize else grad
                grad = grad + weight_decay * value
                if momentum:
                    if i not in velocity:
                        velocity[i] = grad.copy()
                    else:
                        velocity[i] = momentum * velocity[i] + (1 - dampening) * grad
                    grad = grad + momentum * velocity[i] if nesterov else velocity[i]
                result.append(value - lr * grad)
            return result

        return update

    return make


def adam(
    lr,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.0,
    amsgrad=False,
    decoupled=False,
    maximize=False,
):
    def make():
        mean, square, largest = {}, {}, {}

        def update(values, grads, step):
            result = []
            for i, (value, grad) in enumerate(zip(values, grads)):
                grad = -grad if maximize else grad
                if decoupled:
                    value = value * (1 - lr * weight_decay)
                else:
                    grad = grad + weight_decay * value
                mean[i] = betas[0] * mean.get(i, 0.0) + (1 - betas[0]) * grad
                square[i] = betas[1] * square.get(i, 0.0) + (1 - betas[1]) * grad**2
                used = square[i]
                if amsgrad:
                    used = largest[i] = np.maximum(largest.get(i, 0.0), square[i])
                scale = np.sqrt(used) / math.sqrt(1 - betas[1] ** (step + 1)) + eps
                result.append(value - lr / (1 - betas[0] ** (step + 1)) * mean[i] / scale)
            return result

        return update

    return make


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"momentum": 0.9},
        {"momentum": 0.9, "dampening": 0.3},
        {"momentum": 0.9, "nesterov": True},
        {"weight_decay": 0.1},
        {"momentum": 0.5, "weight_decay": 0.1, "nesterov": True},
        {"maximize": True, "momentum": 0.5},
    ],
    ids=str,
)
def test_sgd(settings):
    lr = 0.01
    run(lambda params: optim.SGD(params, lr=lr, **settings), sgd(lr, **settings))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"betas": (0.5, 0.9), "eps": 1e-3},
        {"weight_decay": 0.1},
        {"amsgrad": True},
        {"maximize": True},
    ],
    ids=str,
)
def test_adam(settings):
    run(lambda params: optim.Adam(params, lr=0.05, **settings), adam(0.05, **settings))


def test_adamw():
    run(lambda params: optim.AdamW(params, lr=0.05), adam(0.05, weight_decay=1e-2, decoupled=True))
    run(
        lambda params: optim.AdamW(params, lr=0.05, weight_decay=0.3, amsgrad=True),
        adam(0.05, weight_decay=0.3, amsgrad=True, decoupled=True),
    )


def test_single_precision_stays_close():
    run(lambda params: optim.Adam(params, lr=0.05), adam(0.05), treadle.float32, 1e-5)
    run(
        lambda params: optim.SGD(params, lr=0.01, momentum=0.9),
        sgd(0.01, momentum=0.9),
        treadle.float32,
        1e-5,
    )


def test_groups_have_their_own_settings():
    a, b = nn.Parameter(treadle.ones(2)), nn.Parameter(treadle.ones(2))
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 1.0}], lr=0.1)
    (a.sum() + b.sum()).backward()
    optimizer.step()
    assert a.tolist() == pytest.approx([0.9, 0.9])
    assert b.tolist() == [0.0, 0.0]
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 1.0]


def test_parameters_without_gradient_stay():
    a, b = nn.Parameter(treadle.ones(2)), nn.Parameter(treadle.ones(2))
    optimizer = optim.Adam([a, b], lr=0.1)
    a.sum().backward()
    optimizer.step()
    assert b.tolist() == [1.0, 1.0] and b not in optimizer.state


def test_zero_grad():
    a = nn.Parameter(treadle.ones(2))
    optimizer = optim.SGD([a], lr=0.1)
    a.sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert a.grad.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert a.grad is None


def test_closure_gives_the_loss():
    a = nn.Parameter(treadle.ones(2))
    optimizer = optim.SGD([a], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (a * a).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 2.0
    assert a.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW])
def test_state_dict_continues_where_it_was(kind):
    settings = {"momentum": 0.9} if kind is optim.SGD else {}

    def steps(optimizer, param, count):
        for _ in range(count):
            optimizer.zero_grad()
            (param * param * param).sum().backward()
            optimizer.step()

    whole = nn.Parameter(treadle.ones(3, dtype=treadle.float64))
    first = kind([whole], lr=0.01, **settings)
    steps(first, whole, 5)
    saved, at = copy.deepcopy(first.state_dict()), whole.detach().clone()
    steps(first, whole, 5)

    again = nn.Parameter(at)
    second = kind([again], lr=99.0, **settings)
    second.load_state_dict(saved)
    assert second.param_groups[0]["lr"] == 0.01
    steps(second, again, 5)
    assert again.tolist() == whole.tolist()
    assert set(saved) == {"state", "param_groups"} and saved["param_groups"][0]["params"] == [0]


def test_state_names():
    param = nn.Parameter(treadle.ones(2))
    optimizer = optim.Adam([param], amsgrad=True)
    param.sum().backward()
    optimizer.step()
    state = optimizer.state_dict()["state"][0]
    assert set(state) == {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"}
    assert state["step"].item() == 1.0


def test_hooks_run_around_a_step():
    seen = []
    optimizer = optim.SGD([nn.Parameter(treadle.ones(1))], lr=0.1)
    before = optimizer.register_step_pre_hook(lambda *args: seen.append("before"))
    optimizer.register_step_post_hook(lambda *args: seen.append("after"))
    optimizer.step()
    before.remove()
    optimizer.step()
    assert seen == ["before", "after", "after"]


def test_repr():
    optimizer = optim.SGD([nn.Parameter(treadle.ones(1))], lr=0.1, momentum=0.5)
    assert repr(optimizer).startswith("SGD (\nParameter Group 0\n    dampening: 0\n")
    assert "    lr: 0.1\n    maximize: False\n    momentum: 0.5\n" in repr(optimizer)


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda p: optim.SGD([], lr=0.1), ValueError, "empty parameter list"),
        (
            lambda p: optim.SGD(p, lr=0.1),
            TypeError,
            "iterable of Tensors or dicts, but got treadle.FloatTensor",
        ),
        (lambda p: optim.SGD([p], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda p: optim.SGD([p], lr=0.1, nesterov=True), ValueError, "Nesterov momentum requires"),
        (lambda p: optim.Adam([p], betas=(1.0, 0.9)), ValueError, "beta parameter at index 0: 1.0"),
        (lambda p: optim.Adam([p], eps=-1.0), ValueError, "Invalid epsilon value"),
        (lambda p: optim.SGD([p * 2], lr=0.1), ValueError, "non-leaf"),
        (lambda p: optim.SGD(["x"], lr=0.1), TypeError, "one of the params is str"),
        (lambda p: optim.SGD({p}, lr=0.1), TypeError, None),
        (
            lambda p: optim.SGD([{"params": [p]}, {"params": [p]}], lr=0.1),
            ValueError,
            "more than one parameter group",
        ),
    ],
)
def test_bad_arguments(make, error, text):
    if text is None:  # a set of parameters has no order of its own
        make = lambda p: optim.SGD([{"params": {p}}], lr=0.1)  # noqa: E731
        text = "ordered collections"
    with pytest.raises(error, match=text):
        make(nn.Parameter(treadle.ones(2)))


def test_duplicates_are_warned_of():
    param = nn.Parameter(treadle.zeros(2))
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optimizer = optim.SGD([param, param], lr=0.25)
    param.grad = treadle.ones(2)
    optimizer.step()
    assert param.tolist() == [-0.5, -0.5]


def test_a_step_that_is_not_written():
    class Nothing(optim.Optimizer):
        pass

    param = nn.Parameter(treadle.zeros(2))
    param.grad = treadle.ones(2)
    with pytest.raises(NotImplementedError, match="Nothing does not say how"):
        Nothing([param], {}).step()


def test_a_step_of_ones_own():
    class Signs(optim.Optimizer):
        def __init__(self, params, lr=0.5):
            super().__init__(params, {"lr": lr})

        @treadle.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for param in group["params"]:
                    param.sub_(param.grad.sign(), alpha=group["lr"])

    param, seen = nn.Parameter(treadle.zeros(2)), []
    optimizer = Signs([param])
    optimizer.register_step_post_hook(lambda *args: seen.append("after"))
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
    for _ in range(2):
        param.grad = treadle.tensor([2.0, -3.0])
        optimizer.step()
        scheduler.step()
    assert param.tolist() == [-0.75, 0.75] and seen == ["after", "after"]


def test_groups_by_name():
    net = nn.Linear(2, 1)
    optimizer = optim.SGD(net.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]
    with pytest.raises(ValueError, match="with/without names. cannot add param group without"):
        optimizer.add_param_group({"params": [nn.Parameter(treadle.ones(1))]})
    with pytest.raises(ValueError, match="Some param names are missing"):
        optim.SGD([("weight", net.weight), net.bias], lr=0.1)


def test_a_group_is_the_dict_that_was_given():
    given = {"params": nn.Parameter(treadle.ones(1))}
    optimizer = optim.SGD([given], lr=0.1)
    assert optimizer.param_groups[0] is given and given["lr"] == 0.1
    refused = {"params": [given["params"][0]]}
    with pytest.raises(ValueError, match="more than one parameter group"):
        optimizer.add_param_group(refused)
    assert list(refused) == ["params"] and len(optimizer.param_groups) == 1


def test_hooks_of_all_optimizers():
    from treadle.optim import optimizer as base

    seen = []
    before = base.register_optimizer_step_pre_hook(lambda o, *_: seen.append(type(o).__name__))
    after = base.register_optimizer_step_post_hook(lambda *_: seen.append("after"))
    try:
        for kind in (optim.SGD, optim.Adam):
            kind([nn.Parameter(treadle.ones(1))], lr=0.1).step()
    finally:
        before.remove()
        after.remove()
    optim.SGD([nn.Parameter(treadle.ones(1))], lr=0.1).step()
    assert seen == ["SGD", "after", "Adam", "after"]


def test_steps_are_seen_by_the_profiler():
    optimizer = optim.SGD([nn.Parameter(treadle.ones(1))], lr=0.1)
    with treadle.profiler.profile() as profile:
        optimizer.zero_grad()
        optimizer.step()
    names = [event.key for event in profile.key_averages()]
    assert "Optimizer.zero_grad#SGD.zero_grad" in names and "Optimizer.step#SGD.step" in names


def test_a_hook_may_change_the_arguments():
    optimizer = optim.SGD([nn.Parameter(treadle.ones(1))], lr=0.1)
    handle = optimizer.register_step_pre_hook(lambda *_: ((lambda: "loss",), {}))
    assert optimizer.step() == "loss"
    handle.remove()
    optimizer.register_step_pre_hook(lambda *_: "nonsense")
    with pytest.raises(RuntimeError, match="None or a tuple of"):
        optimizer.step()


def test_loading_a_state_that_does_not_fit():
    a, b = nn.Parameter(treadle.ones(1)), nn.Parameter(treadle.ones(1))
    one, two = optim.SGD([a], lr=0.1), optim.SGD([a, b], lr=0.1)
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        one.load_state_dict(two.state_dict())
    with pytest.raises(ValueError, match="different number of parameter groups"):
        one.load_state_dict(optim.SGD([{"params": [a]}, {"params": [b]}], lr=1).state_dict())

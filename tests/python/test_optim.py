"""Optimisers and schedulers: twenty steps from the same start against float64 computations in
NumPy."""

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
            "iterable of Tensors or dicts, but got a Tensor",
        ),
        (lambda p: optim.SGD([p], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda p: optim.SGD([p], lr=0.1, nesterov=True), ValueError, "Nesterov momentum requires"),
        (lambda p: optim.Adam([p], betas=(1.0, 0.9)), ValueError, "beta parameter at index 0: 1.0"),
        (lambda p: optim.Adam([p], eps=-1.0), ValueError, "Invalid epsilon value"),
        (lambda p: optim.SGD([p, p], lr=0.1), ValueError, "duplicate parameters"),
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


def test_loading_a_state_that_does_not_fit():
    a, b = nn.Parameter(treadle.ones(1)), nn.Parameter(treadle.ones(1))
    one, two = optim.SGD([a], lr=0.1), optim.SGD([a, b], lr=0.1)
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        one.load_state_dict(two.state_dict())
    with pytest.raises(ValueError, match="different number of parameter groups"):
        one.load_state_dict(optim.SGD([{"params": [a]}, {"params": [b]}], lr=1).state_dict())


def rates(make, epochs=12, lr=0.5):
    optimizer = optim.SGD([nn.Parameter(treadle.ones(1))], lr=lr)
    scheduler = make(optimizer)
    result = []
    for _ in range(epochs):
        result.append(optimizer.param_groups[0]["lr"])
        assert scheduler.get_last_lr() == [result[-1]]
        optimizer.step()
        scheduler.step()
    return result


@pytest.mark.parametrize(
    "make, expected",
    [
        (lambda o: lr_scheduler.StepLR(o, 3, 0.1), lambda e: 0.5 * 0.1 ** (e // 3)),
        (
            lambda o: lr_scheduler.MultiStepLR(o, [2, 5], 0.1),
            lambda e: 0.5 * 0.1 ** ((e >= 2) + (e >= 5)),
        ),
        (lambda o: lr_scheduler.ExponentialLR(o, 0.9), lambda e: 0.5 * 0.9**e),
        (lambda o: lr_scheduler.LambdaLR(o, lambda e: 1 / (e + 1)), lambda e: 0.5 / (e + 1)),
        (lambda o: lr_scheduler.MultiplicativeLR(o, lambda e: 0.5), lambda e: 0.5 * 0.5**e),
        (lambda o: lr_scheduler.ConstantLR(o, 0.25, 4), lambda e: 0.5 * (0.25 if e < 4 else 1)),
        (
            lambda o: lr_scheduler.LinearLR(o, 0.2, 1.0, 4),
            lambda e: 0.5 * (0.2 + 0.8 * min(e, 4) / 4),
        ),
        (
            lambda o: lr_scheduler.CosineAnnealingLR(o, 4, 0.1),
            lambda e: 0.1 + 0.4 * (1 + math.cos(math.pi * e / 4)) / 2,
        ),
    ],
)
def test_schedulers(make, expected):
    assert rates(make) == pytest.approx([expected(epoch) for epoch in range(12)])


def test_plateau():
    optimizer = optim.SGD([nn.Parameter(treadle.ones(1))], lr=1.0)
    scheduler = lr_scheduler.ReduceLROnPlateau(
        optimizer, factor=0.5, patience=1, cooldown=1, min_lr=0.2
    )
    seen = []
    for loss in [1.0, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9]:
        scheduler.step(loss)
        seen.append(optimizer.param_groups[0]["lr"])
    assert seen == [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.2, 0.2]


def test_scheduler_state():
    def pair():
        optimizer = optim.SGD([nn.Parameter(treadle.ones(1))], lr=1.0)
        return optimizer, lr_scheduler.StepLR(optimizer, 2)

    optimizer, scheduler = pair()
    for _ in range(3):
        optimizer.step()
        scheduler.step()
    other_optimizer, other = pair()
    other_optimizer.load_state_dict(optimizer.state_dict())
    other.load_state_dict(scheduler.state_dict())
    other_optimizer.step()
    other.step()
    assert other.last_epoch == 4 and other.get_last_lr() == pytest.approx([0.01])


def test_stepping_before_the_optimizer_warns():
    optimizer = optim.SGD([nn.Parameter(treadle.ones(1))], lr=1.0)
    scheduler = lr_scheduler.StepLR(optimizer, 2)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        scheduler.step()

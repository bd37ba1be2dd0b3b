"""Hooks of all modules at once, and how they go together with a module's own."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, List

import pytest

import treadle
from treadle import nn
from treadle.nn.modules import module as hooks_of_all

REGISTRATIONS = [
    hooks_of_all.register_module_forward_pre_hook,
    hooks_of_all.register_module_forward_hook,
    hooks_of_all.register_module_full_backward_pre_hook,
    hooks_of_all.register_module_full_backward_hook,
    hooks_of_all.register_module_backward_hook,
    hooks_of_all.register_module_parameter_registration_hook,
    hooks_of_all.register_module_buffer_registration_hook,
    hooks_of_all.register_module_module_registration_hook,
]


def test_hooks_around_calls_come_before_the_own_ones() -> None:
    seen: List[Any] = []

    def note(*what: Any) -> Callable:
        return lambda module, *args: seen.append((*what, type(module).__name__))

    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    handles = [
        hooks_of_all.register_module_forward_pre_hook(note("pre", "all")),
        hooks_of_all.register_module_forward_hook(note("post", "all")),
        hooks_of_all.register_module_full_backward_pre_hook(note("back pre", "all")),
        hooks_of_all.register_module_full_backward_hook(note("back", "all")),
        net[1].register_forward_pre_hook(note("pre", "own")),
        net[1].register_forward_hook(note("post", "own")),
        net[1].register_full_backward_pre_hook(note("back pre", "own")),
        net[1].register_full_backward_hook(note("back", "own")),
    ]
    net(treadle.ones(1, 2, requires_grad=True)).sum().backward()
    assert [entry for entry in seen if entry[2] == "Tanh"] == [
        ("pre", "all", "Tanh"),
        ("pre", "own", "Tanh"),
        ("post", "all", "Tanh"),
        ("post", "own", "Tanh"),
        ("back pre", "all", "Tanh"),
        ("back pre", "own", "Tanh"),
        ("back", "all", "Tanh"),
        ("back", "own", "Tanh"),
    ]
    assert len(seen) == 8 + 4 + 4
    for handle in handles:
        handle.remove()
    seen.clear()
    net(treadle.ones(1, 2)).sum().backward()
    assert seen == [] and not hooks_of_all._global_calls


def test_a_hook_of_all_may_change_arguments_and_results() -> None:
    layer = nn.Identity()
    with hooks_of_all.register_module_forward_pre_hook(lambda module, args: args[0] * 2):
        with hooks_of_all.register_module_forward_hook(lambda module, args, out: out + 1):
            assert layer(treadle.ones(1)).item() == 3
    assert layer(treadle.ones(1)).item() == 1


def test_keyword_arguments_and_failures() -> None:
    seen: List[Any] = []

    class Fails(nn.Module):
        def forward(self, *, x: int) -> None:
            raise ValueError(x)

    handle = hooks_of_all.register_module_forward_hook(
        lambda module, args, kwargs, out: seen.append((kwargs, out)),
        with_kwargs=True,
        always_call=True,
    )
    with handle, pytest.raises(ValueError):
        Fails()(x=3)
    assert seen == [({"x": 3}, None)]


def test_registrations() -> None:
    seen: List[Any] = []

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(treadle.ones(1))
            self.register_buffer("state", treadle.zeros(1))
            self.state = treadle.ones(2)
            self.child = nn.Tanh()
            self.add_module("other", nn.ReLU())

    handles = [
        hooks_of_all.register_module_parameter_registration_hook(
            lambda module, name, value: seen.append(name)
        ),
        hooks_of_all.register_module_buffer_registration_hook(
            lambda module, name, value: value * 5
        ),
        hooks_of_all.register_module_module_registration_hook(
            lambda module, name, value: nn.GELU() if name == "child" else None
        ),
    ]
    net = Net()
    for handle in handles:
        handle.remove()
    assert seen == ["weight"] and net.state.tolist() == [5, 5]
    assert type(net.child) is nn.GELU and type(net.other) is nn.ReLU
    assert type(Net().child) is nn.Tanh


@pytest.mark.parametrize("register", REGISTRATIONS)
def test_every_hook_goes_when_it_is_removed(register: Callable) -> None:
    calls: List[Any] = []
    register(lambda *args: calls.append(args) or None).remove()
    nn.Linear(1, 1)(treadle.ones(1, 1, requires_grad=True)).sum().backward()
    nn.BatchNorm1d(1)
    assert calls == []


def test_a_module_has_one_kind_of_backward_hooks() -> None:
    module = nn.Linear(2, 2)
    handle = module.register_backward_hook(lambda *args: None)
    with pytest.raises(RuntimeError) as error:
        module.register_full_backward_hook(lambda *args: None)
    assert str(error.value) == (
        "register_full_backward_hook: cannot use both regular backward hooks and full backward "
        "hooks; register_backward_hook was called before"
    )
    handle.remove()
    module.register_full_backward_hook(lambda *args: None)
    with pytest.raises(RuntimeError) as error:
        module.register_backward_hook(lambda *args: None)
    assert str(error.value) == (
        "register_backward_hook: cannot use both regular backward hooks and full backward hooks; "
        "register_full_backward_hook was called before"
    )
    handle = hooks_of_all.register_module_full_backward_hook(lambda *args: None)
    try:
        with pytest.raises(RuntimeError) as error:
            hooks_of_all.register_module_backward_hook(lambda *args: None)
    finally:
        handle.remove()
    assert str(error.value) == (
        "register_module_backward_hook: cannot use both regular backward hooks and full backward "
        "hooks; register_full_backward_hook was called before"
    )


def test_a_second_backward_past_the_outputs_runs_no_full_hook() -> None:
    seen: List[Any] = []
    module = nn.Tanh()
    module.register_full_backward_hook(lambda *args: seen.append(1))
    x = treadle.ones(1, 2, requires_grad=True)
    (grad,) = treadle.autograd.grad(module(x).sum(), x, create_graph=True)
    assert seen == [1]
    grad.sum().backward()
    assert seen == [1] and x.grad is not None


def test_a_full_hook_without_gradients_of_inputs_warns() -> None:
    module = nn.Linear(2, 2)
    seen: List[Any] = []
    module.register_full_backward_hook(lambda _, inputs, outputs: seen.append(inputs))
    with pytest.warns(UserWarning, match="no input of the module requires grad"):
        module(treadle.ones(1, 2)).sum().backward()
    assert seen == [(None,)]

"""Containers of modules and of parameters."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections import OrderedDict

import pytest

import treadle
from treadle import nn


def test_sequential():
    net = nn.Sequential(OrderedDict([("a", nn.Linear(1, 2)), ("b", nn.ReLU())]))
    assert net.a is net[0] and net[-1] is net.b and len(net[:1]) == 1
    net.append(nn.Tanh())
    assert list(net._modules) == ["a", "b", "2"]
    del net[0]
    assert list(net._modules) == ["0", "1"] and isinstance(net[0], nn.ReLU)
    net.insert(0, nn.Identity())
    assert [type(module).__name__ for module in net] == ["Identity", "ReLU", "Tanh"]
    net[0] = nn.Sigmoid()
    assert isinstance(net.pop(0), nn.Sigmoid) and len(net + net) == 4
    with pytest.raises(IndexError):
        net[5]


def test_module_list():
    layers = nn.ModuleList([nn.Linear(1, 1), nn.ReLU()])
    layers.append(nn.Tanh()).extend([nn.Sigmoid()])
    layers.insert(0, nn.Identity())
    assert [type(layer).__name__ for layer in layers] == [
        "Identity",
        "Linear",
        "ReLU",
        "Tanh",
        "Sigmoid",
    ]
    del layers[0]
    assert (
        isinstance(layers[-1], nn.Sigmoid)
        and len(layers[1:3]) == 2
        and len(list(layers.parameters())) == 2
    )
    layers += [nn.ReLU()]
    assert len(layers) == 5 and nn.Tanh in map(type, layers)


def test_module_dict():
    layers = nn.ModuleDict({"a": nn.Linear(1, 1), "b": nn.ReLU()})
    layers["c"] = nn.Tanh()
    layers.update([("a", nn.Identity())])
    assert list(layers) == ["a", "b", "c"] and "b" in layers and len(layers) == 3
    assert isinstance(layers.pop("a"), nn.Identity) and list(layers.keys()) == ["b", "c"]
    layers.clear()
    assert len(layers) == 0


def test_parameter_containers():
    values = nn.ParameterList([treadle.zeros(1), nn.Parameter(treadle.ones(1))])
    values.append(treadle.ones(2))
    assert len(values) == 3 and all(isinstance(value, nn.Parameter) for value in values)
    assert list(values.state_dict()) == ["0", "1", "2"] and values[-1].shape == (2,)
    values[0] = treadle.ones(4)
    assert values[0].shape == (4,) and len(values[1:]) == 2
    named = nn.ParameterDict({"a": treadle.zeros(1)})
    named["b"] = treadle.ones(1)
    assert list(named.keys()) == ["a", "b"] and "a" in named and named.get("z") is None
    del named["a"]
    assert list(dict(named.named_parameters())) == ["b"]


def test_sequential_times_a_number() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    assert [type(m) for m in net * 2] == [nn.Linear, nn.Tanh] * 2
    assert list((2 * net)._modules) == ["0", "1", "2", "3"] and (net * 2)[2] is net[0]
    same = net
    net *= 3
    assert net is same and len(net) == 6
    net += nn.Sequential(nn.ReLU())
    assert len(net) == 7
    for times, error in ((0, ValueError), (1.5, TypeError)):
        with pytest.raises(error):
            net * times


def test_parameter_dicts_join() -> None:
    first = nn.ParameterDict({"a": treadle.ones(1), "b": treadle.ones(2)})
    second = nn.ParameterDict({"b": treadle.zeros(3), "c": treadle.ones(1)})
    joined = first | second
    assert list(joined) == ["a", "b", "c"] and joined["b"] is second["b"]
    assert list({"z": treadle.ones(1)} | first) == ["z", "a", "b"]
    assert list(reversed(first)) == ["b", "a"]
    copied = first.copy()
    copied |= {"d": treadle.ones(1)}
    assert list(copied) == ["a", "b", "d"] and list(first) == ["a", "b"]
    assert copied.setdefault("a") is first["a"] and copied.popitem()[0] == "d"
    assert list(first.fromkeys(["x", "y"], 3)) == ["x", "y"]
    with pytest.raises(TypeError):
        first | 3


def test_modules_as_often_as_they_are_reached() -> None:
    shared = nn.Tanh()
    net = nn.Sequential(shared, shared)
    assert len(list(net.modules())) == 2 and len(list(net.modules(remove_duplicate=False))) == 3

"""The state of optimisers by the names of parameters, where their own has numbers."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

from treadle._C import Tensor
from treadle.autograd.grad_mode import enable_grad
from treadle.distributed.checkpoint._full_state import zeros_like
from treadle.optim import Optimizer

State = Dict[str, Any]
Names = Dict[Any, str]


def _begin(optimizer: Optimizer) -> None:
    """Make the state of an optimiser that has none: by a step with zeros as gradients and rates of
    zero."""
    if optimizer.state:
        return
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    gradients = [p.grad for p in parameters]
    rates = [group.get("lr") for group in optimizer.param_groups]
    try:
        for parameter in parameters:
            parameter.grad = zeros_like(parameter) if parameter.requires_grad else None
        for group, rate in zip(optimizer.param_groups, rates):
            if rate is not None:
                group["lr"] = zeros_like(rate) if isinstance(rate, Tensor) else 0.0
        with enable_grad():
            optimizer.step(closure=None)
    finally:
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient
        for group, rate in zip(optimizer.param_groups, rates):
            if rate is not None:
                group["lr"] = rate


def _name(names: Names, parameter: Any) -> str:
    if parameter not in names:
        raise RuntimeError(
            "get_optimizer_state_dict: expected parameters of the model in the optimizer, got "
            f"another one of shape {tuple(parameter.shape)}"
        )
    return names[parameter]


def taken(names: Names, optimizers: List[Optimizer]) -> State:
    """The state of all optimisers together."""
    state: State = {"state": {}, "param_groups": []}
    for optimizer in optimizers:
        _begin(optimizer)
        own = optimizer.state_dict()
        number_to_name = {
            number: _name(names, parameter)
            for group, saved in zip(optimizer.param_groups, own["param_groups"])
            for parameter, number in zip(group["params"], saved["params"])
        }
        for number, values in own["state"].items():
            state["state"][number_to_name.get(number, number)] = values
        for saved in own["param_groups"]:
            kept = {key: value for key, value in saved.items() if key != "param_names"}
            kept["params"] = [number_to_name[number] for number in saved["params"]]
            state["param_groups"].append(kept)
    return state


def flattened(state: State) -> State:
    """The state with one level of keys: `state.{name}.{key}`, `param_groups.{name}.{key}`."""
    flat = {
        f"state.{name}.{key}": value
        for name, values in state["state"].items()
        for key, value in values.items()
    }
    for group in state["param_groups"]:
        for name in group["params"]:
            for key, value in group.items():
                if key != "params":
                    flat[f"param_groups.{name}.{key}"] = value
    return flat


def unflattened(flat: State, names: List[str]) -> State:
    """The state of a flat one: each parameter gets a group of its own."""
    state: State = {"state": {}, "param_groups": []}
    groups: Dict[str, State] = {}
    for key, value in flat.items():
        kind, _, rest = key.partition(".")
        # A name has dots as well: the longest that fits is it.
        name = max((n for n in names if rest.startswith(n + ".")), key=len, default=None)
        if name is None or kind not in state:
            continue
        if kind == "state":
            state["state"].setdefault(name, {})[rest[len(name) + 1 :]] = value
        else:
            groups.setdefault(name, {"params": [name]})[rest[len(name) + 1 :]] = value
    state["param_groups"] = list(groups.values())
    return state


def leaves(state: State) -> Iterator[Tuple[tuple, Any]]:
    """The values of a state, each with the keys that lead to it."""
    for name, values in state.get("state", {}).items():
        for key, value in values.items():
            yield ("state", name, key), value
    for place, group in enumerate(state.get("param_groups", ())):
        for key, value in group.items():
            yield ("param_groups", place, key), value


def nested(values: Dict[Any, Any]) -> State:
    """The state of its values."""
    state: State = {"state": {}, "param_groups": []}
    for (kind, name, key), value in values.items():
        if kind == "state":
            state["state"].setdefault(name, {})[key] = value
            continue
        while len(state["param_groups"]) <= name:
            state["param_groups"].append({})
        state["param_groups"][name][key] = value
    return state


def give(names: Names, optimizers: List[Optimizer], state: State, strict: bool) -> None:
    """Give each optimiser the state of its parameters. RuntimeError, if `strict`, for a parameter
    whose state is missing."""
    group_of = {name: group for group in state["param_groups"] for name in group["params"]}
    for optimizer in optimizers:
        _begin(optimizer)
        own: State = {"state": {}, "param_groups": []}
        number = 0
        for group in optimizer.param_groups:
            given: State = {}
            numbers = []
            for parameter in group["params"]:
                name = _name(names, parameter)
                given = given or group_of.get(name, {})
                found = state["state"].get(name)
                if found is not None:
                    own["state"][number] = found
                elif strict and optimizer.state.get(parameter):
                    raise RuntimeError(
                        f"set_optimizer_state_dict: expected the state of {name!r}, got none; "
                        "strict=False allows that"
                    )
                numbers.append(number)
                number += 1
            settings = {key: value for key, value in group.items() if key != "params"}
            settings.update({key: v for key, v in given.items() if key != "params"})
            own["param_groups"].append({**settings, "params": numbers})
        optimizer.load_state_dict(own)


__all__ = ["flattened", "give", "leaves", "nested", "taken", "unflattened"]

"""The state of an optimiser of FullyShardedDataParallel's parameters, by their names, with whole
tensors or DTensors; and as the optimiser takes it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, List, Optional

from treadle import distributed as dist
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.distributed.checkpoint import _optimizer_state
from treadle.distributed.checkpoint._full_state import gathered, received, sharded
from treadle.distributed.fsdp._wrapper_state import without_wrappers
from treadle.nn import Module

State = Dict[str, Any]


def names_of(model: Module) -> Dict[Any, str]:
    """The name of each parameter."""
    return {parameter: without_wrappers(name) for name, parameter in model.named_parameters()}


def by_names(model: Module, optimizer: Any, given: Optional[State]) -> State:
    """The state by names. `given` is what the optimiser's state_dict() returned, or None."""
    if given is None:
        return _optimizer_state.taken(names_of(model), [optimizer])
    names = numbers_to_names(model, optimizer)
    groups = []
    for group in given["param_groups"]:
        groups.append({**group, "params": [names.get(n, n) for n in group["params"]]})
    state = {names.get(number, number): values for number, values in given["state"].items()}
    return {"state": state, "param_groups": groups}


def numbers_to_names(model: Module, optimizer: Any) -> Dict[int, str]:
    """The name of each parameter by its number in the optimiser."""
    names = names_of(model)
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    return {number: names[parameter] for number, parameter in enumerate(parameters)}


def as_wanted(state: State, is_full: bool, rank0_only: bool, to_cpu: bool) -> State:
    """The state with whole tensors or DTensors; empty in the other processes with `rank0_only`."""
    with no_grad():
        found = gathered(state, is_full, False)
        if rank0_only and dist.get_rank() != 0:
            return {}
        return gathered(found, False, True) if to_cpu else found


def spread(model: Module, state: State) -> State:
    """The state with whole tensors replaced by DTensors, as the parameters are."""
    parameters = {name: parameter for parameter, name in names_of(model).items()}
    return _optimizer_state.nested(
        {
            key: _like_parameter(parameters, key, value)
            for key, value in _optimizer_state.leaves(state)
        }
    )


def scattered(model: Module, state: Optional[State]) -> State:
    """The state with DTensors in all processes, of one with whole tensors in the first."""
    parameters = {name: parameter for parameter, name in names_of(model).items()}
    flat: Dict[Any, Any] = {}
    if dist.get_rank() == 0:
        flat = dict(_optimizer_state.leaves(state or {}))
    found = received(flat, lambda key, value: _like_parameter(parameters, key, value))
    return _optimizer_state.nested(found)


def _like_parameter(parameters: Dict[str, Any], key: Any, value: Any) -> Any:
    target = parameters.get(key[1]) if key[0] == "state" else None
    fits = isinstance(value, Tensor) and target is not None and value.shape == target.shape
    return sharded(".".join(map(str, key)), value, target) if fits else value


def by_numbers(model: Module, optimizer: Any, state: State) -> State:
    """The state as the optimiser's load_state_dict() takes it: in its groups, by its numbers."""
    names, groups, number = names_of(model), [], 0
    group_of = {name: group for group in state["param_groups"] for name in group["params"]}
    found: Dict[int, Any] = {}
    for group in optimizer.param_groups:
        numbers: List[int] = []
        settings: State = {key: value for key, value in group.items() if key != "params"}
        for parameter in group["params"]:
            name = names[parameter]
            if name in state["state"]:
                found[number] = state["state"][name]
            given = group_of.get(name, {})
            settings.update({key: v for key, v in given.items() if key != "params"})
            numbers.append(number)
            number += 1
        groups.append({**settings, "params": numbers})
    return {"state": found, "param_groups": groups}


__all__ = [
    "as_wanted",
    "by_names",
    "by_numbers",
    "names_of",
    "numbers_to_names",
    "scattered",
    "spread",
]

"""The state of a model and its optimisers, whatever spreads them over processes: keys are the names
that the parameters have in the model alone.

    model_state, optimizer_state = get_state_dict(model, optimizer)
    save({"model": model_state, "optimizer": optimizer_state}, checkpoint_id=path)
    ...
    set_state_dict(model, optimizer, model_state_dict=..., optim_state_dict=...)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple, Union

from treadle import distributed as dist
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.distributed.checkpoint import _optimizer_state
from treadle.distributed.checkpoint._full_state import gathered, received, sharded
from treadle.nn import Module
from treadle.nn.parallel import DistributedDataParallel
from treadle.optim import Optimizer

Optimizers = Union[Optimizer, Iterable[Optimizer]]
# Names of modules that only wrap another one.
_WRAPPED = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")


@dataclass
class StateDictOptions:
    """How states are taken and given.

    full_state_dict: whether states have whole tensors instead of DTensors.
    cpu_offload: whether tensors go to the CPU; with `full_state_dict` only in the first process,
        and the others get an empty state.
    ignore_frozen_params: whether parameters without gradient are left out.
    keep_submodule_prefixes: with `submodules`, whether keys have the names of these.
    strict: whether all keys have to be there when a state is given.
    broadcast_from_rank0: whether a given state is that of the first process, with whole tensors,
        which the others get from it; needs `full_state_dict`.
    flatten_optimizer_state_dict: whether the state of an optimiser has keys such as
        `state.weight.exp_avg` and `param_groups.weight.lr`.
    dsd_fqn_modifiers: the method by which a module renames its children in keys.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"

    def _checked(self) -> StateDictOptions:
        if self.broadcast_from_rank0 and not self.full_state_dict:
            raise ValueError(
                "StateDictOptions: expected full_state_dict=True with broadcast_from_rank0=True, "
                "got False"
            )
        return self


def _name_without_wrappers(model: Module, key: str, options: StateDictOptions) -> str:
    """The name of a parameter or a buffer in the model alone."""
    place: Any = model
    kept: List[str] = []
    for part in key.split("."):
        is_wrapper = part in _WRAPPED or (
            part == "module" and isinstance(place, DistributedDataParallel)
        )
        renamed: Dict[str, str] = getattr(place, options.dsd_fqn_modifiers, dict)()
        if not is_wrapper and part not in renamed.values():
            kept.append(part)
        place = getattr(place, part, None)
    return ".".join(kept)


def _names(model: Module, options: StateDictOptions) -> Dict[Any, str]:
    """The name of each parameter; of one with several, the first."""
    return {
        parameter: _name_without_wrappers(model, key, options)
        for key, parameter in model.named_parameters()
    }


def _kept(
    state: Dict[str, Any], model: Module, submodules: Optional[Set[Module]], o: StateDictOptions
) -> Dict[str, Any]:
    """The state of some of the submodules."""
    warnings.warn(
        "get_state_dict: submodules is deprecated; choose the keys in the result",
        FutureWarning,
        stacklevel=4,
    )
    prefixes = [
        _name_without_wrappers(model, name, o) + "."
        for name, module in model.named_modules()
        if module in (submodules or ())
    ]
    found = {}
    for key, value in state.items():
        for prefix in prefixes:
            if key.startswith(prefix):
                found[key if o.keep_submodule_prefixes else key[len(prefix) :]] = value
    return found


def _model_state(
    model: Module, submodules: Optional[Set[Module]], o: StateDictOptions
) -> Dict[str, Any]:
    with no_grad():
        state = {
            _name_without_wrappers(model, key, o): value
            for key, value in model.state_dict().items()
        }
        if submodules:
            state = _kept(state, model, submodules, o)
        if o.ignore_frozen_params:
            for parameter, name in _names(model, o).items():
                if not parameter.requires_grad:
                    state.pop(name, None)
        return gathered(state, o.full_state_dict, o.cpu_offload)


def _all(optimizers: Optimizers) -> List[Optimizer]:
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def _optimizer_state_of(
    model: Module, optimizers: Optimizers, o: StateDictOptions
) -> Dict[str, Any]:
    with no_grad():
        state = _optimizer_state.taken(_names(model, o), _all(optimizers))
        if o.flatten_optimizer_state_dict:
            state = _optimizer_state.flattened(state)
        return gathered(state, o.full_state_dict, o.cpu_offload)


def get_model_state_dict(
    model: Module,
    *,
    submodules: Optional[Set[Module]] = None,
    options: Optional[StateDictOptions] = None,
) -> Dict[str, Any]:
    """The state of a model. All processes call it. `submodules`, deprecated, are those whose state
    is wanted."""
    return _model_state(model, submodules, (options or StateDictOptions())._checked())


def get_optimizer_state_dict(
    model: Module,
    optimizers: Optimizers,
    *,
    submodules: Optional[Set[Module]] = None,
    options: Optional[StateDictOptions] = None,
) -> Dict[str, Any]:
    """The state of the optimisers of a model: "state" by the names of parameters, and
    "param_groups" with names as "params". An optimiser without state takes a step that changes
    nothing, to have one. All processes call it."""
    if submodules:
        raise ValueError("get_optimizer_state_dict: expected no submodules, got some")
    return _optimizer_state_of(model, optimizers, (options or StateDictOptions())._checked())


def get_state_dict(
    model: Module,
    optimizers: Optimizers,
    *,
    submodules: Optional[Set[Module]] = None,
    options: Optional[StateDictOptions] = None,
) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """The states of a model and of its optimisers: see the two functions for one of them."""
    o = (options or StateDictOptions())._checked()
    return _model_state(model, submodules, o), _optimizer_state_of(model, optimizers, o)


def _with_names(model: Module, state: Dict[Any, Any], o: StateDictOptions) -> Dict[str, Any]:
    """The state by names, where it is given by submodules, each with the state of its own."""
    if not any(isinstance(key, Module) for key in state):
        return state
    warnings.warn(
        "set_model_state_dict: a state by submodules is deprecated; give one by names",
        FutureWarning,
        stacklevel=3,
    )
    prefixes = {
        module: _name_without_wrappers(model, name, o) + "."
        for name, module in model.named_modules()
    }
    return {
        prefixes[module] + key: value
        for module, values in state.items()
        for key, value in values.items()
    }


def _adapted(given: Dict[str, Any], targets: Dict[str, Any], o: StateDictOptions) -> Dict[str, Any]:
    """Values for the keys of the model, spread as its own are."""
    if o.broadcast_from_rank0:
        if dist.get_rank() == 0:
            _require_plain(given)
        return received(given, lambda key, v: sharded(key, v, targets.get(key)))  # type: ignore
    if o.full_state_dict:
        return {key: sharded(key, value, targets.get(key)) for key, value in given.items()}
    return given


def _require_plain(state: Dict[str, Any]) -> None:
    from treadle.distributed.checkpoint._spread import is_spread

    for key, value in state.items():
        if isinstance(value, Tensor) and is_spread(value):
            raise ValueError(
                f"set_state_dict: expected whole tensors with broadcast_from_rank0=True, got a "
                f"DTensor for {key!r}"
            )


def set_model_state_dict(
    model: Module,
    model_state_dict: Dict[str, Any],
    *,
    options: Optional[StateDictOptions] = None,
) -> Any:
    """Give a model its state; returns the missing and the unexpected keys, as load_state_dict()
    does. All processes call it."""
    o = (options or StateDictOptions())._checked()
    if not model_state_dict and not o.broadcast_from_rank0:
        return model.load_state_dict({}, strict=False)
    model_state_dict = _with_names(model, model_state_dict, o)
    with no_grad():
        own = model.state_dict()
        keys = {_name_without_wrappers(model, key, o): key for key in own}
        targets = {name: own[key] for name, key in keys.items()}
        state = _adapted(model_state_dict, targets, o)
        on_meta = any(isinstance(v, Tensor) and v.is_meta for v in own.values())
        renamed = {keys.get(name, name): value for name, value in state.items()}
        if o.ignore_frozen_params:
            return model.load_state_dict(renamed, strict=False, assign=on_meta)
        return model.load_state_dict(renamed, strict=o.strict, assign=on_meta)


def set_optimizer_state_dict(
    model: Module,
    optimizers: Optimizers,
    optim_state_dict: Dict[str, Any],
    *,
    options: Optional[StateDictOptions] = None,
) -> None:
    """Give the optimisers of a model their state, flat or not. All processes call it."""
    o = (options or StateDictOptions())._checked()
    with no_grad():
        names = _names(model, o)
        parameters = {name: parameter for parameter, name in names.items()}

        def adapt(key: Any, value: Any) -> Any:
            # The state of a parameter is spread as it, where it has its shape.
            target = parameters.get(key[1]) if key[0] == "state" else None
            fits = isinstance(value, Tensor) and target is not None and value.shape == target.shape
            return sharded(".".join(map(str, key)), value, target) if fits else value

        state: Any = optim_state_dict
        if state and "state" not in state:
            state = _optimizer_state.unflattened(state, list(parameters))
        if o.broadcast_from_rank0:
            flat: Dict[Any, Any] = {}
            if dist.get_rank() == 0:
                flat = dict(_optimizer_state.leaves(state))
            state = _optimizer_state.nested(received(flat, adapt))
        elif o.full_state_dict:
            state = _optimizer_state.nested(
                {key: adapt(key, value) for key, value in _optimizer_state.leaves(state)}
            )
        if state:
            _optimizer_state.give(names, _all(optimizers), state, o.strict)


def set_state_dict(
    model: Module,
    optimizers: Optimizers,
    *,
    model_state_dict: Dict[str, Any],
    optim_state_dict: Dict[str, Any],
    options: Optional[StateDictOptions] = None,
) -> Any:
    """Give a model and its optimisers their states: see the two functions for one of them."""
    result = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return result


__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]

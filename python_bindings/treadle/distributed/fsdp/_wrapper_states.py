"""The states of FullyShardedDataParallel's modules and their optimisers: of which type they are,
and the functions of the class that give and take those of optimisers.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Optional

from treadle import distributed as dist
from treadle.distributed.fsdp import _wrapper_optimizer as optimizers
from treadle.distributed.fsdp._wrapper_state import settings_of
from treadle.distributed.fsdp.api import (
    OptimStateDictConfig,
    OptimStateKeyType,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from treadle.nn import Module

StateDict = Dict[str, Any]


def wrappers_in(module: Module) -> List[Any]:
    """The wrappers in a module, itself included."""
    return [m for m in module.modules() if isinstance(m, States)]


def _no_group(function: str, group: Any) -> None:
    if group is not None and group is not dist.group.WORLD:
        raise ValueError(f"{function}: expected the group of all processes, got another")


def _no_input(function: str, optim_input: Any) -> None:
    if optim_input is not None:
        raise ValueError(f"{function}: expected no optim_input, got one; give optim instead")


class States:
    """The functions that FullyShardedDataParallel has for states."""

    @staticmethod
    def set_state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: Optional[StateDictConfig] = None,
        optim_state_dict_config: Optional[OptimStateDictConfig] = None,
    ) -> StateDictSettings:
        """Set what state_dict() of all wrappers in a module gives; returns what it gave before."""
        wrappers = wrappers_in(module)
        before = States.get_state_dict_type(module)
        settings = settings_of(state_dict_type, state_dict_config, optim_state_dict_config)
        for wrapper in wrappers:
            wrapper._settings = settings
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """The result of state_dict() of the wrappers in a module."""
        wrappers = wrappers_in(module)
        if not wrappers:
            return settings_of(StateDictType.FULL_STATE_DICT)
        return wrappers[0]._settings

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: Optional[StateDictConfig] = None,
        optim_state_dict_config: Optional[OptimStateDictConfig] = None,
    ) -> Iterator[None]:
        """A block in which state_dict() gives something else."""
        before = States.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            States.set_state_dict_type(
                module,
                before.state_dict_type,
                before.state_dict_config,
                before.optim_state_dict_config,
            )

    @staticmethod
    def optim_state_dict(
        model: Module,
        optim: Any,
        optim_state_dict: Optional[StateDict] = None,
        group: Any = None,
    ) -> StateDict:
        """The state of an optimiser by the names of parameters, of the type that is set.
        `optim_state_dict` is what its state_dict() returned. All processes call it."""
        _no_group("optim_state_dict", group)
        settings = States.get_state_dict_type(model)
        config: Any = settings.optim_state_dict_config
        return optimizers.as_wanted(
            optimizers.by_names(model, optim, optim_state_dict),
            settings.state_dict_type == StateDictType.FULL_STATE_DICT,
            getattr(config, "rank0_only", False),
            config.offload_to_cpu,
        )

    @staticmethod
    def optim_state_dict_to_load(
        model: Module,
        optim: Any,
        optim_state_dict: StateDict,
        is_named_optimizer: bool = False,
        load_directly: bool = False,
        group: Any = None,
    ) -> StateDict:
        """The argument of load_state_dict() of the optimiser, of a state by names. With
        `rank0_only` in the settings, the state of the first process counts. `load_directly` also
        loads it, `is_named_optimizer` leaves the names."""
        _no_group("optim_state_dict_to_load", group)
        settings = States.get_state_dict_type(model)
        config = settings.optim_state_dict_config
        if getattr(config, "rank0_only", False):
            state = optimizers.scattered(model, optim_state_dict)
        else:
            state = optimizers.spread(model, optim_state_dict)
        if not is_named_optimizer:
            state = optimizers.by_numbers(model, optim, state)
        if load_directly:
            optim.load_state_dict(state)
        return state

    @staticmethod
    def full_optim_state_dict(
        model: Module,
        optim: Any,
        optim_input: Any = None,
        rank0_only: bool = True,
        group: Any = None,
    ) -> StateDict:
        """The state of an optimiser by names, with whole tensors on the CPU."""
        _no_group("full_optim_state_dict", group)
        _no_input("full_optim_state_dict", optim_input)
        state = optimizers.by_names(model, optim, None)
        return optimizers.as_wanted(state, True, rank0_only, True)

    @staticmethod
    def sharded_optim_state_dict(model: Module, optim: Any, group: Any = None) -> StateDict:
        """The state of an optimiser by names, with DTensors."""
        _no_group("sharded_optim_state_dict", group)
        return optimizers.by_names(model, optim, None)

    @staticmethod
    def shard_full_optim_state_dict(
        full_optim_state_dict: StateDict, model: Module, optim_input: Any = None, optim: Any = None
    ) -> StateDict:
        """The argument of load_state_dict() of the optimiser, of a whole state in each process."""
        _no_input("shard_full_optim_state_dict", optim_input)
        state = optimizers.spread(model, full_optim_state_dict)
        return optimizers.by_numbers(model, optim, state)

    @staticmethod
    def flatten_sharded_optim_state_dict(
        sharded_optim_state_dict: StateDict, model: Module, optim: Any
    ) -> StateDict:
        """The argument of load_state_dict() of the optimiser, of a state with DTensors."""
        return optimizers.by_numbers(model, optim, sharded_optim_state_dict)

    @staticmethod
    def scatter_full_optim_state_dict(
        full_optim_state_dict: Optional[StateDict],
        model: Module,
        optim_input: Any = None,
        optim: Any = None,
        group: Any = None,
    ) -> StateDict:
        """The argument of load_state_dict() of the optimiser, of a whole state in the first
        process."""
        _no_group("scatter_full_optim_state_dict", group)
        _no_input("scatter_full_optim_state_dict", optim_input)
        state = optimizers.scattered(model, full_optim_state_dict)
        return optimizers.by_numbers(model, optim, state)

    @staticmethod
    def rekey_optim_state_dict(
        optim_state_dict: StateDict,
        optim_state_key_type: OptimStateKeyType,
        model: Module,
        optim_input: Any = None,
        optim: Any = None,
    ) -> StateDict:
        """The state of an optimiser of a model that is not sharded, by names or by numbers."""
        _no_input("rekey_optim_state_dict", optim_input)
        names: Dict[Any, Any] = dict(optimizers.numbers_to_names(model, optim))
        if optim_state_key_type == OptimStateKeyType.PARAM_ID:
            names = {name: number for number, name in names.items()}
        return {
            "state": {names.get(key, key): v for key, v in optim_state_dict["state"].items()},
            "param_groups": [
                {**group, "params": sorted(names.get(key, key) for key in group["params"])}
                for group in optim_state_dict["param_groups"]
            ],
        }


__all__ = ["StateDict", "States", "wrappers_in"]

"""The forms of FullyShardedDataParallel's state_dict(): whole tensors, DTensors, or the
plain tensors of this process, under names without those of the wrappers.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, Optional

from treadle import distributed as dist
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.distributed.checkpoint._full_state import like, sharded
from treadle.distributed.fsdp.api import (
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    OptimStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from treadle.distributed.tensor import DTensor

WRAPPED = "_fsdp_wrapped_module"
_PREFIX = WRAPPED + "."
_CONFIGS: Dict[StateDictType, Any] = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
}


def settings_of(
    kind: StateDictType,
    config: Optional[StateDictConfig] = None,
    optimizer_config: Optional[OptimStateDictConfig] = None,
) -> StateDictSettings:
    """The settings of a type. RuntimeError for a configuration of another type."""
    classes = _CONFIGS[kind]
    given = (config or classes[0](), optimizer_config or classes[1]())
    for value, cls in zip(given, classes):
        if type(value) is not cls:
            raise RuntimeError(
                f"state_dict_type: expected a {cls.__name__} for {kind}, got a "
                f"{type(value).__name__}"
            )
    return StateDictSettings(kind, *given)


def without_wrappers(name: str) -> str:
    """The name that a parameter has in the model alone."""
    return name.replace(_PREFIX, "")


def _given(value: Any, settings: StateDictSettings) -> Any:
    """A value of a state dictionary as the settings want it; None for one to be left out."""
    kind, config = settings.state_dict_type, settings.state_dict_config
    if not isinstance(value, Tensor):
        return value
    if isinstance(value, DTensor):
        spread: Any = value.detach()
        if kind == StateDictType.FULL_STATE_DICT:
            value = spread.full_tensor()
        elif kind == StateDictType.LOCAL_STATE_DICT:
            value = spread.to_local()
    if config.offload_to_cpu:
        value = value.detach().cpu()
    return value


def after_state_dict(module: Any, state: Dict[str, Any], prefix: str, *args: Any) -> None:
    """Runs when a wrapper's part of a state dictionary is complete."""
    settings = module._settings
    config = settings.state_dict_config
    drops = getattr(config, "rank0_only", False) and dist.get_rank() != 0
    own = prefix + _PREFIX
    with no_grad():
        for key in [key for key in state if key.startswith(own)]:
            value = _given(state.pop(key), settings)
            if not drops:
                state[prefix + key[len(own) :]] = value


def before_load(module: Any, state: Dict[str, Any], prefix: str, *args: Any) -> None:
    """Runs before a wrapper's part of a state dictionary is loaded. Values may be of any type: what
    they are says how to spread them."""
    own = prefix + _PREFIX
    targets = {
        own + without_wrappers(name): parameter
        for name, parameter in module._modules[WRAPPED].named_parameters()
    }
    is_local = module._settings.state_dict_type == StateDictType.LOCAL_STATE_DICT
    with no_grad():
        for key in [k for k in state if k.startswith(prefix) and not k.startswith(own)]:
            value = state.pop(key)
            key = own + key[len(prefix) :]
            target = targets.get(key)
            if is_local and isinstance(target, DTensor) and isinstance(value, Tensor):
                state[key] = value if isinstance(value, DTensor) else like(target, value)
            else:
                state[key] = sharded(key[len(own) :], value, target)


__all__ = ["WRAPPED", "after_state_dict", "before_load", "settings_of", "without_wrappers"]

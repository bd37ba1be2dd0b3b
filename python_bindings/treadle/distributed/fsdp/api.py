"""How FullyShardedDataParallel shards, computes, and gives states."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Optional, Sequence

from treadle import _C
from treadle.nn.modules.batchnorm import _BatchNorm


class ShardingStrategy(Enum):
    """The values that are spread: parameters, gradients and state of optimisers (FULL_SHARD); the
    same, but parameters stay whole between forward and backward (SHARD_GRAD_OP); nothing
    (NO_SHARD). The HYBRID ones shard along the second dimension of a mesh, with copies along the
    first."""

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When backward begins to gather the next parameters: before or after the computation of the
    present gradients. Here it is before in either case."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


@dataclass
class MixedPrecision:
    """The dtypes: of parameters in forward and backward, of gradients while they are averaged, and
    of buffers; None for their own. Inputs are converted in the outermost module with
    `cast_root_forward_inputs`, and in each with `cast_forward_inputs`. Modules of
    `_module_classes_to_ignore` are wrapped apart, with their own dtypes, where a policy wraps."""

    param_dtype: Optional[_C.dtype] = None
    reduce_dtype: Optional[_C.dtype] = None
    buffer_dtype: Optional[_C.dtype] = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[Any] = (_BatchNorm,)


@dataclass
class CPUOffload:
    """Whether sharded parameters are on the CPU; on the CPU they are."""

    offload_params: bool = False


class StateDictType(Enum):
    """The results of state_dict(): whole tensors, the plain tensors of this process, or
    DTensors."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


@dataclass
class StateDictConfig:
    """Whether tensors go to the CPU."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Whether only the first process gets the state."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """The settings of LOCAL_STATE_DICT."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """The settings of SHARDED_STATE_DICT, whose sharded tensors are DTensors."""

    _use_dtensor: bool = True


@dataclass
class OptimStateDictConfig:
    """Whether the tensors of an optimiser's state go to the CPU."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """Whether only the first process gets the state."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """The settings of LOCAL_STATE_DICT for optimisers."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """The settings of SHARDED_STATE_DICT for optimisers, whose sharded tensors are DTensors."""

    _use_dtensor: bool = True


@dataclass
class StateDictSettings:
    """The form of the result of state_dict()."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig


class OptimStateKeyType(Enum):
    """The keys of an optimiser's state: names or numbers of parameters."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "LocalOptimStateDictConfig",
    "LocalStateDictConfig",
    "MixedPrecision",
    "OptimStateDictConfig",
    "OptimStateKeyType",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictSettings",
    "StateDictType",
]

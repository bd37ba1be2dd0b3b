"""Hooks for DistributedDataParallel.register_comm_hook(), which say how gradients are averaged.

Example:

    register_ddp_comm_hook(DDPCommHookType.BF16_COMPRESS, model, process_group)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
import functools
from typing import Any, Callable

from treadle import _names
from treadle.distributed.algorithms.ddp_comm_hooks import debugging_hooks as debugging
from treadle.distributed.algorithms.ddp_comm_hooks import default_hooks as default
from treadle.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powerSGD
from treadle.distributed.algorithms.ddp_comm_hooks import quantization_hooks as quantization

__getattr__ = _names.attributes_of(__name__)


def _register(comm_hook: Callable, model: Any, state: Any) -> None:
    model.register_comm_hook(state, comm_hook)


def _register_power_sgd(comm_hook: Callable, rank: int, model: Any, state: Any) -> None:
    model.register_comm_hook(powerSGD.PowerSGDState(state, rank), comm_hook)


class _Registers:
    """A function as the value of a member, which a function itself cannot be."""

    def __init__(self, function: Callable, *args: Any) -> None:
        self._call = functools.partial(function, *args)

    def __call__(self, model: Any, state: Any) -> None:
        self._call(model=model, state=state)


class DDPCommHookType(enum.Enum):
    """The hooks by name; `value(model=model, state=group)` registers one."""

    ALLREDUCE = _Registers(_register, default.allreduce_hook)
    FP16_COMPRESS = _Registers(_register, default.fp16_compress_hook)
    BF16_COMPRESS = _Registers(_register, default.bf16_compress_hook)
    QUANTIZE_PER_TENSOR = _Registers(_register, quantization.quantization_pertensor_hook)
    QUANTIZE_PER_CHANNEL = _Registers(_register, quantization.quantization_perchannel_hook)
    POWER_SGD = _Registers(_register_power_sgd, powerSGD.powerSGD_hook, 1)
    POWER_SGD_RANK2 = _Registers(_register_power_sgd, powerSGD.powerSGD_hook, 2)
    BATCHED_POWER_SGD = _Registers(_register_power_sgd, powerSGD.batched_powerSGD_hook, 1)
    BATCHED_POWER_SGD_RANK2 = _Registers(_register_power_sgd, powerSGD.batched_powerSGD_hook, 2)
    NOOP = _Registers(_register, debugging.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Register a hook; `state` is the process group, None for that of all processes."""
    comm_hook_type.value(model=model, state=state)


__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]

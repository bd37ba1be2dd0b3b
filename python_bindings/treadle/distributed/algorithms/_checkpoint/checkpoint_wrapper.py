"""Wrappers that save memory in the modules of a model: activations are computed again in backward,
or wait for it in the CPU's memory.

    model.block = checkpoint_wrapper(model.block)
    apply_activation_checkpointing(model, check_fn=lambda module: isinstance(module, Block))

The parameters and the keys of state dictionaries have the same names as without the wrappers.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from enum import Enum, auto
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

from treadle.autograd.graph import save_on_cpu
from treadle.nn import Module, Parameter
from treadle.utils.checkpoint import checkpoint

_WRAPPED = "_checkpoint_wrapped_module"
_PREFIX = _WRAPPED + "."


class CheckpointImpl(Enum):
    """The two ways of utils.checkpoint.checkpoint()."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


def _rename(state: Dict[str, Any], old: str, new: str) -> None:
    """Give the keys that begin with `old` the beginning `new`."""
    for key in [key for key in state if key.startswith(old)]:
        state[new + key[len(old) :]] = state.pop(key)


def _after_state_dict(module: Module, state: Dict[str, Any], prefix: str, *args: Any) -> None:
    _rename(state, prefix + _PREFIX, prefix)


def _before_load(module: Module, state: Dict[str, Any], prefix: str, *args: Any) -> None:
    _rename(state, prefix, prefix + _PREFIX)


class ActivationWrapper(Module, ABC):
    """A module around another one, whose attributes and items it has as well."""

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(_after_state_dict)
        self.register_load_state_dict_pre_hook(_before_load)

    @abstractmethod
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the wrapped module."""

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__(_WRAPPED), name)

    def __getitem__(self, key: int) -> Any:
        return self._checkpoint_wrapped_module[key]  # type: ignore[index]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[Tuple[str, Parameter]]:
        """The parameters, with the names that they have in the model alone."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_PREFIX, ""), parameter


class OffloadWrapper(ActivationWrapper):
    """Activations of the wrapped module wait for backward in the CPU's memory."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """Activations of the wrapped module are computed again in backward; see
    checkpoint_wrapper()."""

    def __init__(
        self,
        mod: Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Optional[Callable] = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            checkpoint_fn = checkpoint
            is_reentrant = checkpoint_impl == CheckpointImpl.REENTRANT
            checkpoint_fn_kwargs = {"use_reentrant": is_reentrant, **checkpoint_fn_kwargs}
        self.checkpoint_fn = functools.partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        module = self._checkpoint_wrapped_module
        if self.checkpoint_impl != CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(module, *args, **kwargs)
        # The reentrant way takes no keyword arguments.
        names, count = tuple(kwargs), len(args)

        def call(*inputs: Any) -> Any:
            return module(*inputs[:count], **dict(zip(names, inputs[count:])))

        return self.checkpoint_fn(call, *args, *kwargs.values())


def offload_wrapper(module: Module) -> Module:
    """A module whose activations wait for backward in the CPU's memory."""
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Optional[Callable] = None,
    **checkpoint_fn_kwargs: Any,
) -> Module:
    """A module whose activations are computed again in backward.

    checkpoint_impl: the way of utils.checkpoint.checkpoint().
    checkpoint_fn: a function in place of that one. Keyword arguments that are left go to it.
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model: Module,
    checkpoint_wrapper_fn: Callable = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda module: True,
    auto_wrap_policy: Any = None,
) -> None:
    """Wrap modules in a model, but not the model itself.

    checkpoint_wrapper_fn: makes the wrapper of a module.
    check_fn: whether a module is wrapped.
    auto_wrap_policy: in place of `check_fn`, a policy of treadle.distributed.fsdp.wrap.
    """
    from treadle.distributed.fsdp import wrap

    if isinstance(auto_wrap_policy, wrap._Policy):
        targets = auto_wrap_policy._run_policy(model, set(), {})
        targets.pop(model, None)
        wrap._wrap_targets(model, targets, checkpoint_wrapper_fn)
        return
    policy = auto_wrap_policy
    if policy is None:
        policy = functools.partial(wrap.lambda_auto_wrap_policy, lambda_fn=check_fn)
    wrap._recursive_wrap(
        model, policy, checkpoint_wrapper_fn, set(), set(), only_wrap_children=True
    )


__all__ = [
    "ActivationWrapper",
    "CheckpointImpl",
    "CheckpointWrapper",
    "OffloadWrapper",
    "apply_activation_checkpointing",
    "checkpoint_wrapper",
    "offload_wrapper",
]

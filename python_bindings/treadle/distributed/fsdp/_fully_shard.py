"""fully_shard(): the parameters of a module are spread over the processes, and each layer is whole
only while it is used.

    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    optimizer = Adam(model.parameters())     # each process updates its rows
    loss(model(share), target).backward()    # gradients are averaged here
    optimizer.step()
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import types
from typing import Any, Callable, Dict, List, Optional, Set, Union

from treadle import distributed as dist
from treadle.distributed.device_mesh import DeviceMesh, init_device_mesh
from treadle.distributed.fsdp._group import ParameterGroup
from treadle.distributed.fsdp._parameter import MeshDims
from treadle.distributed.fsdp._policies import MixedPrecisionPolicy, OffloadPolicy
from treadle.distributed.fsdp._shard import ShardPlacement, apply_to_rows, shard
from treadle.distributed.fsdp._state import State, state_of, states_in
from treadle.nn import Module, ModuleDict, ModuleList, Parameter

_classes: Dict[type, type] = {}


def fully_shard(
    module: Union[Module, List[Module]],
    *,
    mesh: Optional[DeviceMesh] = None,
    reshard_after_forward: Union[bool, int, None] = None,
    shard_placement_fn: Optional[ShardPlacement] = None,
    mp_policy: MixedPrecisionPolicy = MixedPrecisionPolicy(),
    offload_policy: OffloadPolicy = OffloadPolicy(),
    ignored_params: Optional[Set[Parameter]] = None,
) -> Any:
    """Spread the parameters of a module over the processes of a mesh, but for those of modules in
    it that were spread before. All processes call it with modules that have the same values; each
    keeps its rows. The module gets the methods of FSDPModule, and is returned.

    module: a module, or a list of modules whose parameters are gathered together.
    mesh: of one dimension, by default all processes. With two, parameters are sharded along the
        second, and there are copies of the shards along the first.
    reshard_after_forward: whether parameters are freed between forward and backward. None: yes, but
        not in the module that is called first, which backward needs at once. A number n, a divisor
        of the number of processes that shard: n successive processes have all rows between them
        meanwhile, so that backward gathers within those (on one machine, say).
    shard_placement_fn: the dimension along which a parameter is sharded; None for the first.
    ignored_params: parameters that stay as they are.
    Parameters that are DTensors already, on another dimension of the same mesh, are sharded once
    more. ValueError for a parameter without dimensions and for modules that cannot be called.
    """
    modules = [module] if isinstance(module, Module) else list(module)
    for one in modules:
        if isinstance(one, (ModuleList, ModuleDict)) and type(one).forward is Module.forward:
            raise ValueError(
                f"fully_shard does not support containers that do not implement forward: {one}"
            )
        if state_of(one) is not None:
            raise ValueError(
                f"fully_shard: expected a module for the first time, got {type(one).__name__} again"
            )
    if not isinstance(offload_policy, OffloadPolicy):
        raise TypeError(
            "fully_shard: expected offload_policy to be an OffloadPolicy, got "
            f"{type(offload_policy).__name__}"
        )
    if mesh is None:
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    if mesh.device_type != "cpu":
        raise ValueError(f"fully_shard: expected a mesh of the cpu, got {mesh.device_type}")
    dims = MeshDims(mesh)
    shard(
        modules,
        dims,
        _checked_reshard(reshard_after_forward, dims.size),
        shard_placement_fn,
        mp_policy,
        ignored_params or set(),
    )
    for one in modules:
        one.__class__ = _class_of(type(one))
    return module


def _checked_reshard(given: Union[bool, int, None], size: int) -> Union[bool, int, None]:
    """The argument reshard_after_forward; a bool where the number says the same."""
    if given is None or isinstance(given, bool):
        return given
    if not isinstance(given, int) or given < 1 or size % given:
        raise ValueError(
            "fully_shard: expected reshard_after_forward to be a bool, None, or a divisor of the "
            f"{size} processes that shard, got {given!r}"
        )
    return {1: False, size: True}.get(given, given)


def _class_of(cls: type) -> type:
    """The class with the methods of FSDPModule."""
    if cls not in _classes:
        body = {"__deepcopy__": _no_copy, "__module__": cls.__module__, "_fsdp_original": cls}
        _classes[cls] = type(f"FSDP{cls.__name__}", (FSDPModule, cls), body)
    return _classes[cls]


def _no_copy(self: Any, memo: Any) -> Any:
    raise AssertionError(
        f"deepcopy: expected a module that is not sharded, got {type(self).__name__}; copy it "
        "before fully_shard()"
    )


class UnshardHandle:
    """A gather under way."""

    def __init__(self, group: Optional[ParameterGroup]) -> None:
        self._group = group

    def wait(self) -> None:
        """Give the module its whole parameters."""
        if self._group is not None:
            self._group.unshard()
            self._group = None


class FSDPModule:
    """The methods that fully_shard() gives to a module."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A module. A class that fully_shard() made gives one of the original class, which is not
        sharded."""
        original = vars(cls).get("_fsdp_original")
        return super().__new__(cls) if original is None else original(*args, **kwargs)

    def _get_fsdp_state(self) -> State:
        state = state_of(self)
        assert state is not None
        return state

    def _groups(self, recurse: bool) -> List[ParameterGroup]:
        states = states_in(self) if recurse else [self._get_fsdp_state()]  # type: ignore[arg-type]
        return [state.group for state in states if state.group is not None]

    def reshard(self) -> None:
        """Free the whole parameters of this module (not of those in it)."""
        for group in self._groups(recurse=False):
            group.reshard()

    def unshard(self, async_op: bool = False) -> Optional[UnshardHandle]:
        """Gather the parameters of this module (not of those in it); with `async_op` until the
        wait() of the result, or the forward."""
        state = self._get_fsdp_state()
        handle = UnshardHandle(state.group)
        if state.group is not None:
            state.group.begin_unshard()
        if async_op:
            return handle
        handle.wait()
        return None

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Whether the next backward is the last one before the step: it waits for the gradients,
        and forgets the order of forward."""
        self._get_fsdp_state().ready().is_last_backward = is_last_backward

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Whether backward reduces gradients, or only adds to those of this process, which stay
        whole."""
        for group in self._groups(recurse):
            group.reduce_gradients = requires_gradient_sync
            group.requires_all_reduce = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Whether backward averages the gradients of the copies of the shards, or leaves that to a
        later one."""
        for group in self._groups(recurse):
            group.requires_all_reduce = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether parameters are freed between forward and backward."""
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(
                "set_reshard_after_forward: expected a bool, got "
                f"{type(reshard_after_forward).__name__}"
            )
        states = states_in(self) if recurse else [self._get_fsdp_state()]  # type: ignore[arg-type]
        for state in states:
            state.reshard_after_forward = reshard_after_forward

    def set_reshard_after_backward(
        self, reshard_after_backward: bool, *, recurse: bool = True
    ) -> None:
        """Whether parameters are freed after backward. reshard() has to be called before the step
        where they are not."""
        for group in self._groups(recurse):
            group.reshard_after_backward = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules: List[FSDPModule]) -> None:
        """The modules whose gather begins in the forward of this one; by default the one that came
        next in the last forward."""
        self._get_fsdp_state().prefetch_in_forward = _states("forward", modules)

    def set_modules_to_backward_prefetch(self, modules: List[FSDPModule]) -> None:
        """The modules whose gather begins in the backward of this one; by default the one whose
        forward ended before that of this one."""
        self._get_fsdp_state().prefetch_in_backward = _states("backward", modules)

    def set_all_reduce_hook(self, hook: Callable[[Any], None], *, stream: Any = None) -> None:
        """A function that is called with the reduced gradients, which it may change in place."""
        if stream is not None:
            raise ValueError("set_all_reduce_hook: expected no stream on the cpu, got one")
        for group in self._groups(recurse=False):
            group.all_reduce_hook = hook

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Divide the sum of gradients by this, not by the number of processes."""
        for group in self._groups(recurse=False):
            group.divide_factor = factor

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def set_force_sum_reduction_for_comms(self, enable: bool) -> None:
        """Whether gradients are divided before they are sent, and summed, instead of averaged by
        the communication."""
        for group in self._groups(recurse=False):
            group.sums = enable

    def set_reduce_scatter_unused_params(
        self, reduce_scatter_unused_params: bool, *, recurse: bool = True
    ) -> None:
        """Whether parameters that backward did not reach take part with gradients of zeros, for
        programs in which processes use different ones."""
        for group in self._groups(recurse):
            group.reduce_unused = reduce_scatter_unused_params

    def set_keep_unsharded_storage(self, keep: bool, *, recurse: bool = True) -> None:
        """Whether the memory of whole parameters is kept, so that their addresses stay the same."""
        for group in self._groups(recurse):
            group.keep_memory = keep

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Whether backward needs the parameters of this module. That of an embedding does not."""
        for group in self._groups(recurse=False):
            group.unshard_in_backward = unshard_in_backward

    def reset_iter_state(self) -> None:
        """Forget a forward or a backward that an exception ended, and the gradients that are not
        reduced. For the module that is called first. The next forward does it after a backward."""
        self._get_fsdp_state().reset()

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Any:
        base = super()._apply  # type: ignore[misc]
        apply_to_rows(self._get_fsdp_state(), fn, lambda: base(fn, recurse))
        return self


def _states(direction: str, modules: List[Any]) -> List[State]:
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(
                f"set_modules_to_{direction}_prefetch: expected modules of fully_shard(), got "
                f"{type(module).__name__}"
            )
    return [module._get_fsdp_state() for module in modules]


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Make a method of a module gather the parameters, as forward() does. Modules that were not
    sharded stay as they are; AttributeError if there is no such method."""
    if not hasattr(module, method_name):
        raise AttributeError(
            f"register_fsdp_forward_method: expected {type(module).__name__} to have a method "
            f"{method_name!r}, got none"
        )
    state = state_of(module)
    if state is None:
        return
    method = getattr(module, method_name).__func__

    @functools.wraps(method)
    def with_parameters(self: Any, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = state._pre_forward(self, args, kwargs)
        return state._post_forward(self, args, method(self, *args, **kwargs))

    setattr(module, method_name, types.MethodType(with_parameters, module))


def share_comm_ctx(modules: List[FSDPModule]) -> None:
    """Make several roots, such as the stages of a pipeline, end each backward together."""
    states = _states("forward", list(modules))
    for state in states:
        state.ready()
    first = states[0].ready() if states else None
    for state in states[1:]:
        other = state.ready()
        assert first is not None
        for member in other.states:
            member.shared = first
            first.states.append(member)


__all__ = [
    "FSDPModule",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
    "share_comm_ctx",
]

"""FullyShardedDataParallel: the wrapper by which programs sharded modules before fully_shard().

    model = FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({Block}))

It works as fully_shard() does: parameters keep their names and shapes, and are DTensors outside of
forward and backward. Each wrapped module is gathered, freed and reduced as one.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import functools
import math
from typing import Any, Callable, Iterable, Iterator, List, Optional, Tuple

from treadle import _C
from treadle import distributed as dist
from treadle.autograd.grad_mode import no_grad
from treadle.distributed.device_mesh import DeviceMesh
from treadle.distributed.fsdp._parameter import MeshDims
from treadle.distributed.fsdp._shard import apply_to_rows, shard
from treadle.distributed.fsdp._state import State, state_of, states_in
from treadle.distributed.fsdp._summon import summoned
from treadle.distributed.fsdp._wrapper_setup import (
    STAY_WHOLE,
    convert_buffers,
    ignored_of,
    materialise,
    mesh_of,
    policy_of,
    take_from_first,
    wrap_inside,
)
from treadle.distributed.fsdp._wrapper_state import (
    WRAPPED,
    after_state_dict,
    before_load,
    settings_of,
    without_wrappers,
)
from treadle.distributed.fsdp._wrapper_states import States, wrappers_in
from treadle.distributed.fsdp.api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    OptimStateKeyType,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from treadle.nn import Module, Parameter


class FullyShardedDataParallel(States, Module):
    """Calls `module`, whose parameters are spread over the processes.

    process_group, device_mesh: the processes; by default all. For the HYBRID strategies a mesh of
        two dimensions, or a pair of groups: that which shards, and that of the copies. By default
        they shard over the processes of a machine (LOCAL_WORLD_SIZE, which launchers set).
    sharding_strategy: what is spread; FULL_SHARD by default.
    cpu_offload: whether sharded parameters are on the CPU, where they are in any case.
    auto_wrap_policy: which modules inside are wrapped as well, with the same arguments.
    backward_prefetch: None to gather in backward only when parameters are needed.
    forward_prefetch: whether forward gathers the next parameters early.
    mixed_precision: the dtypes.
    ignored_modules, ignored_states: modules, or parameters, that stay as they are.
    param_init_fn: gives memory and values to a module on the device "meta"; by default to_empty()
        and reset_parameters().
    sync_module_states: whether all processes take the values of the first one.
    """

    def __init__(
        self,
        module: Module,
        process_group: Any = None,
        sharding_strategy: Optional[ShardingStrategy] = None,
        cpu_offload: Optional[CPUOffload] = None,
        auto_wrap_policy: Any = None,
        backward_prefetch: Optional[BackwardPrefetch] = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: Optional[MixedPrecision] = None,
        ignored_modules: Optional[Iterable[Module]] = None,
        param_init_fn: Optional[Callable[[Module], None]] = None,
        device_id: Any = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Optional[Iterable[Any]] = None,
        device_mesh: Optional[DeviceMesh] = None,
    ) -> None:
        super().__init__()
        if device_id is not None and _C.device(device_id).type != "cpu":
            raise ValueError(
                f"FullyShardedDataParallel: expected device_id on the cpu, got {device_id}"
            )
        if not dist.is_initialized():
            raise ValueError(
                "Default process group has not been initialized, please make sure to call "
                "init_process_group."
            )
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        self.sharding_strategy = strategy
        self.cpu_offload = cpu_offload or CPUOffload()
        self.mixed_precision = mixed_precision
        mesh = mesh_of(process_group, device_mesh, strategy)
        skipped_modules, skipped = ignored_of(ignored_modules, ignored_states)
        if auto_wrap_policy is not None:
            options = {
                "sharding_strategy": strategy,
                "cpu_offload": cpu_offload,
                "backward_prefetch": backward_prefetch,
                "mixed_precision": mixed_precision,
                "param_init_fn": param_init_fn,
                "sync_module_states": sync_module_states,
                "forward_prefetch": forward_prefetch,
                "ignored_states": list(skipped),
                "device_mesh": mesh,
            }
            wrap_inside(type(self), module, auto_wrap_policy, skipped_modules, skipped, options)
        materialise(module, param_init_fn, skipped)
        if sync_module_states:
            take_from_first(module, skipped)
        self._modules[WRAPPED] = module
        reshards = False if strategy in STAY_WHOLE else None
        dims = MeshDims(mesh)
        state = shard([module], dims, reshards, None, policy_of(mixed_precision), skipped)
        state.casts_as_root = (
            mixed_precision is not None and mixed_precision.cast_root_forward_inputs
        )
        state.prefetches_next = forward_prefetch
        if backward_prefetch is None:
            state.prefetch_in_backward = []
        if mixed_precision is not None and mixed_precision.buffer_dtype is not None:
            convert_buffers(module, mixed_precision.buffer_dtype)
        self._settings = settings_of(StateDictType.FULL_STATE_DICT)
        self._register_state_dict_hook(after_state_dict)
        self.register_load_state_dict_pre_hook(before_load)

    # ---- the module ----

    @property
    def module(self) -> Module:
        """The wrapped module."""
        found = self._modules[WRAPPED]
        assert found is not None
        return found

    def _state(self) -> State:
        state = state_of(self.module)
        assert state is not None
        return state

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__(WRAPPED), name)

    def __getitem__(self, key: int) -> Any:
        return self.module[key]  # type: ignore[index]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the module for this process's share of the batch."""
        return self.module(*args, **kwargs)

    def check_is_root(self) -> bool:
        """Whether no other wrapper is around this one."""
        self._state().ready()
        return self._state().is_root

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> FullyShardedDataParallel:
        base = super()._apply
        apply_to_rows(self._state(), fn, lambda: base(fn, recurse))
        return self

    def apply(self, fn: Callable[[Module], None]) -> FullyShardedDataParallel:
        """Call a function with each module, which has its whole parameters meanwhile. What is
        written to them is kept."""
        with FullyShardedDataParallel.summon_full_params(self, recurse=False):
            super().apply(fn)  # wrappers inside have theirs whole in their own apply()
        return self

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[Tuple[str, Parameter]]:
        """The parameters, with the names that they have in the model alone."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield without_wrappers(name), parameter

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[Tuple[str, Any]]:
        """The buffers, with the names that they have in the model alone."""
        for name, buffer in super().named_buffers(*args, **kwargs):
            yield without_wrappers(name), buffer

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> List[FullyShardedDataParallel]:
        """The wrappers in a module, itself included; with `root_only` those in no other."""
        found = wrappers_in(module)
        if not root_only:
            return found
        inner = {id(m) for outer in found for m in outer.modules() if m is not outer}
        return [m for m in found if id(m) not in inner]

    # ---- gradients ----

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block whose backward() only adds to the gradients of this process; the first one after
        it averages the sums."""
        groups = [state.group for state in states_in(self) if state.group is not None]
        before = [group.reduce_gradients for group in groups]
        for group in groups:
            group.reduce_gradients = False
        try:
            yield
        finally:
            for group, value in zip(groups, before):
                group.reduce_gradients = value

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Any:
        """Scale the gradients so that the norm of all of them, in all processes, is at most
        `max_norm`. Returns the norm. All processes call it. RuntimeError for a wrapper inside
        another one."""
        if not self.check_is_root():
            raise RuntimeError(
                "clip_grad_norm_: expected the outermost wrapper, got one inside another"
            )
        with no_grad():
            sharded: List[Any] = []
            others: List[Any] = []
            for parameter in self.parameters():
                if parameter.grad is not None:
                    spread = hasattr(parameter.grad, "_local_tensor")
                    (sharded if spread else others).append(parameter.grad)
            local = [grad._local_tensor for grad in sharded]
            total = self._reduced_norm(local, others, float(norm_type))
            scale = _C.clamp(float(max_norm) / (total + 1e-6), max=1.0)
            for grad in (*local, *others):
                grad.mul_(scale.to(grad.dtype))
            return total

    def _reduced_norm(self, local: List[Any], others: List[Any], kind: float) -> Any:
        dims = next((s.group.dims for s in states_in(self) if s.group is not None), None)
        is_max = math.isinf(kind)

        def of(tensors: List[Any]) -> Any:
            found = [
                t.abs().max() if is_max else (t.float() if t.dtype != _C.float64 else t)
                .abs().pow(kind).sum()
                for t in tensors
                if t.numel()
            ]  # fmt: skip
            if not found:
                return _C.tensor(0.0)
            stacked = _C.stack([f.to(_C.float64) for f in found])
            return (stacked.max() if is_max else stacked.sum()).to(_C.float32)

        mine = of(local)
        if dims is not None:
            op = dist.ReduceOp.MAX if is_max else dist.ReduceOp.SUM
            dist.all_reduce(mine, op, dims.group)
        rest = of(others)
        return _C.maximum(mine, rest) if is_max else (mine + rest).pow(1.0 / kind)

    def register_comm_hook(self, state: Any, hook: Callable) -> None:
        """Let a function reduce gradients in place of the average.

        hook(state, gradient, output): writes to `output` (n elements) this process's part of the
            sum or average over processes of `gradient` (n times the number of processes).
        hook(state, gradient): with NO_SHARD, changes `gradient` in place.
        RuntimeError for a wrapper inside another one, ValueError for the HYBRID strategies.
        """
        if not self.check_is_root():
            raise RuntimeError(
                "register_comm_hook: expected the outermost wrapper, got one inside another"
            )
        groups = [s.group for s in states_in(self) if s.group is not None]
        if any(group.dims.copies is not None and group.dims.size > 1 for group in groups):
            raise ValueError(
                "register_comm_hook: expected a strategy without both shards and copies, got "
                f"{self.sharding_strategy}"
            )
        for group in groups:
            if group.comm_hook is not None:
                raise AssertionError("register_comm_hook: expected no hook so far, got another")
            group.comm_hook = functools.partial(hook, state)

    # ---- whole parameters ----

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: Module,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Iterator[None]:
        """A block in which the wrapped modules in `module` have whole parameters, and their
        gradients with `with_grads`. What is written to them is kept with `writeback`, which needs
        that all processes have them, and write the same. On the CPU `offload_to_cpu` asks for
        nothing."""
        if writeback and rank0_only and dist.get_world_size() > 1:
            raise NotImplementedError(
                "summon_full_params: expected writeback=False with rank0_only=True, got True"
            )
        if recurse:
            states = states_in(module)
        else:
            inner = module._modules.get(WRAPPED)
            states = [s for s in (state_of(inner),) if s is not None] if inner is not None else []
        with summoned(states, writeback, rank0_only, with_grads):
            yield


__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "FullyShardedDataParallel",
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

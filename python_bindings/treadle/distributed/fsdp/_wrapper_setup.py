"""The setup of FullyShardedDataParallel before it shards: it finds the mesh and the dtypes, wraps
modules inside, and gives parameters their values.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Iterable, List, Optional, Set, Tuple

from treadle import _C
from treadle import distributed as dist
from treadle.autograd.grad_mode import no_grad
from treadle.distributed.device_mesh import DeviceMesh, init_device_mesh
from treadle.distributed.fsdp import wrap as wrapping
from treadle.distributed.fsdp._policies import MixedPrecisionPolicy
from treadle.distributed.fsdp._shard import own_parameters
from treadle.distributed.fsdp._state import converted
from treadle.distributed.fsdp._wrapper_state import WRAPPED
from treadle.distributed.fsdp.api import MixedPrecision, ShardingStrategy
from treadle.nn import Module
from treadle.utils._pytree import tree_leaves, tree_map

_HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
STAY_WHOLE = (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy._HYBRID_SHARD_ZERO2)


_NAMES = ("_fsdp_copies", "_fsdp_shards")


def mesh_of(group: Any, given: Optional[DeviceMesh], strategy: ShardingStrategy) -> DeviceMesh:
    """The mesh of a strategy."""
    if given is not None and group is not None:
        raise ValueError("Cannot pass both process_group and device_mesh at the same time.")
    if strategy in _HYBRID:
        return _hybrid_mesh(group, given, strategy)
    if given is not None and given.ndim != 1 and strategy != ShardingStrategy.NO_SHARD:
        raise ValueError(
            f"FullyShardedDataParallel: expected device_mesh of one dimension for {strategy}, got "
            f"one of {given.ndim}"
        )
    if strategy == ShardingStrategy.NO_SHARD:
        return _copies_mesh(group, given)
    if given is not None:
        return given
    if group is not None and group is not dist.group.WORLD:
        return DeviceMesh.from_group(group, "cpu")
    return init_device_mesh("cpu", (dist.get_world_size(),))


def _hybrid_mesh(group: Any, given: Optional[DeviceMesh], strategy: ShardingStrategy) -> DeviceMesh:
    """A mesh of two dimensions: copies, shards."""
    if given is not None:
        if given.ndim != 2:
            raise ValueError(
                f"FullyShardedDataParallel: expected device_mesh of two dimensions for {strategy}, "
                f"got one of {given.ndim}"
            )
        return given
    if group is None:
        world = dist.get_world_size()
        local = int(os.environ.get("LOCAL_WORLD_SIZE", world))
        if local < 1 or world % local:
            raise ValueError(
                f"FullyShardedDataParallel: expected the same number of processes on each machine "
                f"for {strategy}, got {local} here of {world}; give device_mesh"
            )
        return init_device_mesh("cpu", (world // local, local), mesh_dim_names=_NAMES)
    if not isinstance(group, tuple) or len(group) != 2:
        raise ValueError(
            f"FullyShardedDataParallel: expected a pair of groups, or device_mesh, for {strategy}, "
            f"got {type(group).__name__}"
        )
    shards, copies = group
    mine: List[List[int]] = [[] for _ in range(dist.get_world_size(copies))]
    dist.all_gather_object(mine, dist.get_process_group_ranks(shards), group=copies)
    return DeviceMesh.from_group([copies, shards], "cpu", mine, mesh_dim_names=_NAMES)


def _copies_mesh(group: Any, given: Optional[DeviceMesh]) -> DeviceMesh:
    """A mesh whose second dimension, which shards, is 1."""
    if given is not None and given.ndim == 2 and given.size(1) == 1:
        return given
    copies = given.get_group() if given is not None and given.ndim == 1 else group
    if given is not None and given.ndim > 1:
        raise ValueError(
            "FullyShardedDataParallel: expected device_mesh of one dimension for "
            f"{ShardingStrategy.NO_SHARD}, got one of {given.ndim}"
        )
    if copies is None or copies is dist.group.WORLD:
        return init_device_mesh("cpu", (dist.get_world_size(), 1), mesh_dim_names=_NAMES)
    alone = dist.new_group([dist.get_rank()], use_local_synchronization=True)
    mesh = [[rank] for rank in dist.get_process_group_ranks(copies)]
    return DeviceMesh.from_group([copies, alone], "cpu", mesh, mesh_dim_names=_NAMES)


def policy_of(mixed: Optional[MixedPrecision]) -> MixedPrecisionPolicy:
    if mixed is None:
        return MixedPrecisionPolicy(cast_forward_inputs=False)
    if mixed.keep_low_precision_grads:
        raise ValueError(
            "FullyShardedDataParallel: expected keep_low_precision_grads=False, got True; "
            "gradients have the dtype of their parameters"
        )
    return MixedPrecisionPolicy(
        mixed.param_dtype,
        mixed.reduce_dtype or mixed.param_dtype,
        cast_forward_inputs=mixed.cast_forward_inputs,
    )


def ignored_of(
    modules: Optional[Iterable[Module]], states: Optional[Iterable[Any]]
) -> Tuple[Set[Module], Set[Any]]:
    """The modules and the parameters that stay as they are."""
    if modules is not None and states is not None:
        raise ValueError(
            "Cannot pass both ignored_modules and ignored_states at the same time. Please just "
            "pass ignored_states."
        )
    given = list(modules or ()) + list(states or ())
    found = {m for one in given if isinstance(one, Module) for m in one.modules()}
    parameters = {p for one in given if not isinstance(one, Module) for p in (one,)}
    return found, parameters | {p for m in found for p in m.parameters()}


def wrap_inside(
    cls: Callable,
    module: Module,
    policy: Any,
    modules: Set[Module],
    parameters: Set[Any],
    options: Dict[str, Any],
) -> None:
    """Wrap what the policy says, but for the module itself."""
    mixed: Optional[MixedPrecision] = options["mixed_precision"]
    apart = tuple(mixed._module_classes_to_ignore) if mixed is not None else ()
    overrides = {"mixed_precision": None}
    exempt = [m for m in module.modules() if m is not module and apart and isinstance(m, apart)]
    for one in exempt:
        _keep_dtype(one)
    if isinstance(policy, wrapping._Policy):
        targets = policy._run_policy(module, modules, options)
        targets.pop(module, None)
        targets.update({m: {**options, **overrides} for m in exempt if m not in modules})
        wrapping._wrap_targets(module, targets, cls)
        return
    for one in exempt:
        one._wrap_overrides = overrides

    def decides(module: Module, recurse: bool, nonwrapped_numel: int) -> bool:
        is_apart = not recurse and bool(apart) and isinstance(module, apart)
        return is_apart or policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel)

    wrapping._recursive_wrap(
        module, decides, cls, modules, parameters, only_wrap_children=True, **options
    )


def materialise(
    module: Module, initialise: Optional[Callable[[Module], None]], ignored: Set[Any]
) -> None:
    """Give memory and values to the own modules with parameters on the device "meta"."""
    places = [place for _, places in own_parameters([module], ignored) for place in places]
    owners = {id(m): m for m, name in places if m._parameters[name].is_meta}
    for owner in owners.values():
        if initialise is not None:
            initialise(owner)
            continue
        owner.to_empty(device="cpu", recurse=False)
        if not hasattr(owner, "reset_parameters"):
            raise RuntimeError(
                f"FullyShardedDataParallel: expected {type(owner).__name__} on the device meta to "
                "have reset_parameters(), or param_init_fn, got neither"
            )
        owner.reset_parameters()


def take_from_first(module: Module, ignored: Set[Any]) -> None:
    """Take the values of parameters and buffers from the first process."""
    with no_grad():
        for parameter, _ in own_parameters([module], ignored):
            dist.broadcast(parameter.detach(), src=0)
        for buffer in module.buffers():
            dist.broadcast(buffer.detach(), src=0)


def convert_buffers(module: Module, dtype: _C.dtype) -> None:
    """Convert the floating point buffers that no wrapper inside has."""
    for name, buffer in module._buffers.items():
        if buffer is not None and buffer.is_floating_point():
            module._buffers[name] = buffer.to(dtype)
    for child in module.children():
        if WRAPPED not in child._modules:
            convert_buffers(child, dtype)


def _keep_dtype(module: Module) -> None:
    """Make a module compute in the dtype of its parameters, whatever that of its arguments, which
    its results get again."""
    given: List[_C.dtype] = []

    def before(module: Module, args: tuple, kwargs: dict) -> Any:
        own = next((p.dtype for p in module.parameters() if p.is_floating_point()), _C.float32)
        tensors = [v for v in tree_leaves((args, kwargs)) if isinstance(v, _C.Tensor)]
        given[:] = [v.dtype for v in tensors if v.is_floating_point()][:1]
        return tree_map(lambda v: converted(v, own), (args, kwargs))

    def after(module: Module, args: tuple, output: Any) -> Any:
        return tree_map(lambda v: converted(v, given[0]), output) if given else output

    module.register_forward_pre_hook(before, with_kwargs=True)
    module.register_forward_hook(after)


__all__ = [
    "STAY_WHOLE",
    "convert_buffers",
    "ignored_of",
    "materialise",
    "mesh_of",
    "policy_of",
    "take_from_first",
    "wrap_inside",
]

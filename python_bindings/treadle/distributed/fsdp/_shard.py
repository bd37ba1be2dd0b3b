"""Sharding the parameters of modules: what fully_shard() and FullyShardedDataParallel have in
common.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, Union

from treadle._C import Tensor
from treadle.distributed.fsdp._group import ParameterGroup
from treadle.distributed.fsdp._parameter import MeshDims, Place, ShardedParameter
from treadle.distributed.fsdp._policies import MixedPrecisionPolicy
from treadle.distributed.fsdp._state import State, state_of
from treadle.distributed.tensor.placement_types import Shard
from treadle.nn import Module, Parameter

ShardPlacement = Callable[[Parameter], Optional[Shard]]


def own_parameters(modules: List[Module], ignored: Iterable[Any]) -> List[Tuple[Any, List[Place]]]:
    """The parameters that no module below has taken, with all their places."""
    skipped, seen = {id(p) for p in ignored}, set()
    found: Dict[int, Tuple[Any, List[Place]]] = {}

    def visit(module: Module) -> None:
        if id(module) in seen or state_of(module) is not None:
            return
        seen.add(id(module))
        for name, parameter in module._parameters.items():
            if parameter is not None and id(parameter) not in skipped:
                found.setdefault(id(parameter), (parameter, []))[1].append((module, name))
        for child in module.children():
            visit(child)

    for module in modules:
        visit(module)
    return list(found.values())


def shard(
    modules: List[Module],
    dims: MeshDims,
    reshard_after_forward: Union[bool, int, None],
    placement: Optional[ShardPlacement],
    policy: MixedPrecisionPolicy,
    ignored: Iterable[Any],
) -> State:
    """Shard the parameters of the modules that are used together, and return their state."""
    parameters = []
    for parameter, places in own_parameters(modules, ignored):
        how = placement(parameter) if placement is not None else None
        if how is not None and how.dim < 0:
            how = Shard(how.dim + parameter.dim())
        dtype = policy._dtype_of(parameter) if parameter.is_floating_point() else None
        parameters.append(ShardedParameter(parameter, places, dims, how, dtype))
    group = ParameterGroup(parameters, dims, policy) if parameters else None
    return State(modules, group, policy, reshard_after_forward)


def apply_to_rows(state: State, fn: Callable[[Tensor], Tensor], apply: Callable[[], Any]) -> None:
    """Change a module by `apply`, its _apply() with `fn`: of the parameters that are sharded, `fn`
    changes the rows."""
    group = state.group
    if group is None:
        apply()
        return
    group.reshard()
    for parameter in group.parameters:
        parameter.take_from_module()
        parameter.hide()
    apply()
    for parameter in group.parameters:
        parameter.convert(fn)


__all__ = ["ShardPlacement", "apply_to_rows", "shard"]

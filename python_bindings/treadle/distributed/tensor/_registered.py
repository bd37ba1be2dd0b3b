"""Operators for which a program gives placements: see experimental.register_sharding."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

from treadle._C import Size, Tensor
from treadle.distributed.tensor import _dispatch
from treadle.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from treadle.distributed.tensor._redistribute import redistribute_local_tensor
from treadle.distributed.tensor._strategy import Input
from treadle.distributed.tensor.placement_types import Placement
from treadle.utils import _pytree as pytree

# From full names of operators.
functions: Dict[str, Callable] = {}


def run(func: Any, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    """The result of such an operator."""
    flat, structure = pytree.tree_flatten((args, kwargs))
    mesh = _dispatch.mesh_of(func, [v for v in flat if isinstance(v, Tensor)])
    specs = [_dispatch.spec_of(v, mesh) if isinstance(v, Tensor) else v for v in flat]
    shown_args, shown_kwargs = pytree.tree_unflatten(specs, structure)
    choices = functions[func._name](*shown_args, **shown_kwargs)
    wanted: List[List[Placement]] = [[] for _ in flat]
    given: List[List[Placement]] = []
    for mesh_dim in range(mesh.ndim):
        count = mesh.size(mesh_dim)

        def cost(choice: Any, mesh_dim: int = mesh_dim, count: int = count) -> float:
            found = 0.0
            for value, spec, place in zip(flat, specs, choice[1]):
                if isinstance(value, Tensor):
                    shape = tuple(value.shape)
                    one = Input(spec.placements, shape, value.element_size())
                    found += one.cost(mesh_dim, count, place)
            return found

        outputs, inputs = min(choices, key=cost)
        for i, place in enumerate(inputs[: len(flat)]):
            wanted[i].append(place)
        given = given or [[] for _ in outputs]
        for i, place in enumerate(outputs):
            given[i].append(place)
    locals_ = [
        redistribute_local_tensor(_dispatch.local_of(v), spec, spec.with_placements(places))
        if isinstance(v, Tensor)
        else v
        for v, spec, places in zip(flat, specs, wanted)
    ]
    local_args, local_kwargs = pytree.tree_unflatten(locals_, structure)
    results = func(*local_args, **local_kwargs)
    whole = _whole(func, specs, structure)
    listed = list(results) if isinstance(results, (list, tuple)) else [results]
    made = [
        _dispatch.wrap(local, DTensorSpec(mesh, tuple(places), meta))
        for local, meta, places in zip(listed, whole, given)
    ]
    return tuple(made) if isinstance(results, (list, tuple)) else made[0]


def _whole(func: Any, specs: List[Any], structure: Any) -> List[TensorMeta]:
    """The geometry of the results, from a call without elements."""
    from treadle.distributed.tensor._views import plain

    bare = [
        plain(spec.shape, spec.stride, spec.tensor_meta.dtype)  # type: ignore[union-attr]
        if isinstance(spec, DTensorSpec)
        else spec
        for spec in specs
    ]
    args, kwargs = pytree.tree_unflatten(bare, structure)
    results = func(*args, **kwargs)
    listed = results if isinstance(results, (list, tuple)) else [results]
    return [TensorMeta(Size(t.shape), tuple(t.stride()), t.dtype) for t in listed]


__all__ = ["functions", "run"]

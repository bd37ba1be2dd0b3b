"""An embedding whose rows are cut: each process looks up the rows that it has, and the results are
parts of a sum."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List

from treadle import _C
from treadle._C import Size
from treadle.distributed.device_mesh import DeviceMesh
from treadle.distributed.tensor import _dispatch, _layout
from treadle.distributed.tensor._api import DTensor
from treadle.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from treadle.distributed.tensor._facts import Facts
from treadle.distributed.tensor._labels import Call
from treadle.distributed.tensor._redistribute import redistribute_local_tensor
from treadle.distributed.tensor._utils import contiguous_stride
from treadle.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard


def are_cut(facts: Facts, bound: Any) -> bool:
    """Whether a call is of an embedding with cut rows."""
    weight = bound.args.get("weight")
    if facts.family != "embedding" or not isinstance(weight, DTensor):
        return False
    return any(placement == Shard(0) for placement in weight.placements)


def embedded(bound: Any, facts: Facts, call: Call, mesh: DeviceMesh) -> Any:
    """The rows that indices name. The indices are whole where rows are cut, and as they are on the
    other dimensions of the mesh, where rows are whole."""
    weight, indices = bound.args["weight"], bound.args["indices"]
    spec, other = weight._spec, _dispatch.spec_of(indices, mesh)
    rows: List[Placement] = []
    places: List[Placement] = []
    results: List[Placement] = []
    for mine, theirs in zip(spec.placements, other.placements):
        is_cut = mine == Shard(0)
        rows.append(mine if is_cut else Replicate())
        places.append(theirs if isinstance(theirs, Shard) and not is_cut else Replicate())
        results.append(Partial() if is_cut else places[-1])
    wanted = spec.with_placements(rows)
    local = redistribute_local_tensor(weight._local_tensor, spec, wanted)
    named = redistribute_local_tensor(
        _dispatch.local_of(indices), other, other.with_placements(places)
    )
    coordinate = mesh.get_coordinate()
    assert coordinate is not None
    ranges = _layout.ranges_of(0, spec.shape[0], rows, mesh.shape, coordinate)
    shape = (*indices.shape, *spec.shape[1:])
    if not ranges:
        made = local.new_zeros((*named.shape, *spec.shape[1:]))
    else:
        here = named - ranges[0][0]
        is_here = (here >= 0) & (here < local.shape[0])
        found = bound.called(
            bound.func, {"weight": local, "indices": _C.where(is_here, here, _C.zeros_like(here))}
        )
        made = found.masked_fill(is_here.logical_not().unsqueeze(-1), 0)
    meta = TensorMeta(Size(shape), contiguous_stride(shape), made.dtype)
    return _dispatch.wrap(made, DTensorSpec(mesh, tuple(results), meta))


__all__ = ["are_cut", "embedded"]

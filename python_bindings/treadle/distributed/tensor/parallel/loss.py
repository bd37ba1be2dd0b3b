"""loss_parallel: cross entropy of logits whose classes are spread.

Within the block the classes are not gathered. The processes exchange, for each sample, the largest
logit, the sum of exponentials, and the logit of the target.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from typing import Any, Iterator, List, Tuple

from treadle import _C, _ops
from treadle._C import Size, Tensor
from treadle.distributed.tensor import _collective_utils as comm
from treadle.distributed.tensor import _dispatch, _layout, _special
from treadle.distributed.tensor._api import DTensor, _implicit
from treadle.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from treadle.distributed.tensor._utils import contiguous_stride
from treadle.distributed.tensor.placement_types import Replicate, Shard


@contextlib.contextmanager
def loss_parallel() -> Iterator[None]:
    """A block in which cross_entropy, of logits that are cut along the classes, does not gather
    them. The target holds the numbers of classes; it and the weights of the classes are the same in
    all processes, as replicated DTensors or as plain tensors. The loss is replicated. Backward
    belongs in the block as well.

        with loss_parallel():
            nn.functional.cross_entropy(logits, target).backward()
    """
    was, names = _special.replaced.functions, _implicit.names
    _special.replaced.functions = {**was, **_HANDLERS}
    _implicit.names = names | {"cross_entropy", "nll_loss"}
    try:
        yield
    finally:
        _special.replaced.functions, _implicit.names = was, names


def _cuts(tensor: Any, dim: int) -> List[int]:
    """The dimensions of the mesh that cut a dimension of a DTensor, as Shard; none for others."""
    if not isinstance(tensor, DTensor):
        return []
    places = tensor.placements
    found = _layout.mesh_dims_of(dim % max(tensor.dim(), 1), places)
    return found if all(isinstance(places[i], Shard) for i in found) else []


def _sum(local: Tensor, way: str, tensor: DTensor, mesh_dims: List[int]) -> Tensor:
    for mesh_dim in mesh_dims:
        local = comm.all_reduced(local, way, tensor.device_mesh, mesh_dim)
    return local


def _first(tensor: DTensor, dim: int) -> int:
    """The number of the first class that this process has."""
    mesh = tensor.device_mesh
    coordinate = mesh.get_coordinate()
    assert coordinate is not None
    ranges = _layout.ranges_of(dim, tensor.shape[dim], tensor.placements, mesh.shape, coordinate)
    return ranges[0][0] if ranges else 0


def _like(local: Tensor, tensor: DTensor) -> DTensor:
    """A DTensor that is spread as another one."""
    spec = tensor._spec
    meta = TensorMeta(spec.shape, contiguous_stride(spec.shape), local.dtype)
    return _dispatch.wrap(local, DTensorSpec(spec.mesh, spec.placements, meta))


def _placed(value: Any, like: DTensor, without: int) -> Tensor:
    """What this process has of a tensor whose dimensions are those of `like` without one, cut as
    they are."""
    spec = _dispatch.spec_of(value, like.device_mesh)
    places: List[Any] = []
    for placement in like.placements:
        if isinstance(placement, Shard) and placement.dim != without and spec.ndim:
            places.append(Shard(placement.dim - (placement.dim > without)))
        else:
            places.append(Replicate())
    return _dispatch.redistribute_local_tensor(
        _dispatch.local_of(value), spec, spec.with_placements(places)
    )


def _log_softmax(bound: Any, call: Any) -> Any:
    tensor, dim = bound.args["self"], bound.args["dim"]
    mesh_dims = _cuts(tensor, dim)
    if not mesh_dims:
        return NotImplemented
    local = tensor._local_tensor
    if bound.args["half_to_float"]:
        local = local.float()
    if local.shape[dim]:
        largest = local.amax(dim, keepdim=True)
    else:
        shape = list(local.shape)
        shape[dim] = 1
        largest = local.new_full(shape, float("-inf"))
    shifted = local - _sum(largest, "max", tensor, mesh_dims)
    total = _sum(shifted.exp().sum(dim, keepdim=True), "sum", tensor, mesh_dims)
    return _like(shifted - total.log(), tensor)


def _log_softmax_gradient(bound: Any, call: Any) -> Any:
    grad, output, dim = bound.args["grad_output"], bound.args["output"], bound.args["dim"]
    mesh_dims = _cuts(output, dim)
    if not mesh_dims or not isinstance(grad, DTensor) or grad.placements != output.placements:
        return NotImplemented
    local, values = grad._local_tensor, output._local_tensor
    total = _sum(local.sum(dim, keepdim=True), "sum", output, mesh_dims)
    return _like((local - values.exp() * total).to(bound.args["input_dtype"]), output)


def _targets(bound: Any, tensor: DTensor, dim: int) -> Tuple[Tensor, Tensor, Tensor]:
    """For each sample the place of its class in this process, whether it is here, and the weight of
    the sample."""
    target = _placed(bound.args["target"], tensor, dim)
    here = target - _first(tensor, dim)
    is_here = (here >= 0) & (here < tensor._local_tensor.shape[dim])
    counts = target != bound.args["ignore_index"]
    weight = bound.args["weight"]
    dtype = tensor.dtype
    if weight is None:
        weights = counts.to(dtype)
    else:
        whole = _special.whole_of(weight)
        weights = whole[_C.where(counts, target, _C.zeros_like(target))] * counts.to(dtype)
    return _C.where(is_here & counts, here, _C.zeros_like(here)), is_here & counts, weights


def _nll_loss(bound: Any, call: Any) -> Any:
    tensor = bound.args["self"]
    dim = 1 if tensor.dim() > 1 else 0
    mesh_dims = _cuts(tensor, dim)
    if not mesh_dims:
        return NotImplemented
    local = tensor._local_tensor
    here, is_here, weights = _targets(bound, tensor, dim)
    if local.shape[dim]:
        chosen = local.gather(dim, here.unsqueeze(dim)).squeeze(dim)
        chosen = _C.where(is_here, chosen, _C.zeros_like(chosen))
    else:
        chosen = local.new_zeros(here.shape)
    losses = -_sum(chosen, "sum", tensor, mesh_dims) * weights
    others = [
        i for i, p in enumerate(tensor.placements) if isinstance(p, Shard) and i not in mesh_dims
    ]
    total = _sum(weights.sum(), "sum", tensor, others)
    spec = tensor._spec

    def made(value: Tensor, places: Any, shape: Any) -> DTensor:
        meta = TensorMeta(Size(shape), contiguous_stride(shape), value.dtype)
        return _dispatch.wrap(value, DTensorSpec(spec.mesh, tuple(places), meta))

    whole = [Replicate()] * spec.mesh.ndim
    if bound.args["reduction"] == 0:
        places: List[Any] = [
            Shard(p.dim - (p.dim > dim)) if isinstance(p, Shard) and p.dim != dim else Replicate()
            for p in tensor.placements
        ]
        shape = [size for d, size in enumerate(tensor.shape) if d != dim]
        return made(losses, places, shape), made(total, whole, [])
    loss = _sum(losses.sum(), "sum", tensor, others)
    if bound.args["reduction"] == 1:
        loss = loss / total
    return made(loss, whole, []), made(total, whole, [])


def _nll_loss_gradient(bound: Any, call: Any) -> Any:
    tensor = bound.args["self"]
    dim = 1 if tensor.dim() > 1 else 0
    if not _cuts(tensor, dim):
        return NotImplemented
    local = tensor._local_tensor
    here, is_here, weights = _targets(bound, tensor, dim)
    grad = bound.args["grad"]
    scale = _placed(grad, tensor, dim) if grad.dim() else _special.whole_of(grad)
    values = -(scale * weights)
    if bound.args["reduction"] == 1:
        values = values / _special.whole_of(bound.args["total_weight"])
    values = _C.where(is_here, values, _C.zeros_like(values))
    result = local.new_zeros(local.shape)
    if local.shape[dim]:
        result = result.scatter(dim, here.unsqueeze(dim), values.unsqueeze(dim))
    return _like(result, tensor)


_aten = _ops.ops.aten
_HANDLERS = {
    _aten._log_softmax.default._name: _log_softmax,
    _aten._log_softmax_backward_data.default._name: _log_softmax_gradient,
    _aten.nll_loss_forward.default._name: _nll_loss,
    _aten.nll_loss_backward.default._name: _nll_loss_gradient,
}

__all__ = ["loss_parallel"]

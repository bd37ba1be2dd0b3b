"""The operators of tensors that are spread for which labels are not all: those that make tensors,
draw random numbers, write results to given tensors, take lists, or change a geometry.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
import threading
from typing import Any, Callable, Dict, List, Optional, Sequence

from treadle import _C, _ops
from treadle._C import Size, Tensor
from treadle.distributed.device_mesh import DeviceMesh
from treadle.distributed.tensor import _api, _copied_views, _dispatch, _rows, _views
from treadle.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from treadle.distributed.tensor._facts import Facts, facts_of
from treadle.distributed.tensor._labels import Call, Labelling, dims_of
from treadle.distributed.tensor._redistribute import redistribute_local_tensor
from treadle.distributed.tensor._strategy import Input
from treadle.distributed.tensor._utils import contiguous_stride, identity_of
from treadle.distributed.tensor.placement_types import (
    Placement,
    Replicate,
    Shard,
    _is_shard_like,
)
from treadle.utils._pytree import tree_map_only

DTensor = _api.DTensor
Handler = Callable[[Any, Call], Any]


class _Replaced(threading.local):
    """Functions of operators that a block of this thread computes in a way of its own, by full
    names; they return NotImplemented for calls that they leave."""

    def __init__(self) -> None:
        self.functions: Dict[str, Handler] = {}


replaced = _Replaced()


def handler_of(facts: Facts, bound: Any) -> Optional[Handler]:
    """The function that computes such an operator; None for others."""
    tags = facts.entry["tags"]
    if facts.form == "out":
        return to_out
    if facts.entry["foreach_of"]:
        return of_lists
    if "inplace_view" in tags:
        return changed_geometry
    if facts.is_random:
        return drawn
    if _rows.are_cut(facts, bound):
        return _rows.embedded
    if facts.makes and isinstance(bound.args.get("self"), DTensor):
        return made_like
    if facts.entry["kind"] == "mutating" and len(facts.written) > 1:
        return lists_together
    return None


def on_meta(bound: Any) -> Any:
    """The results of the call on the meta device: their geometry, without elements."""

    def bare(tensor: Tensor) -> Tensor:
        return _views.plain(tensor.shape, tensor.stride(), tensor.dtype)

    changed = {
        name: tree_map_only(Tensor, bare, value)
        for name, value in bound.args.items()
        if name in bound.given
    }
    return bound.called(bound.func, changed)


def whole_of(tensor: Any) -> Any:
    """All of a tensor, in this process."""
    if not isinstance(tensor, DTensor):
        return tensor
    spec = tensor._spec
    places = (Replicate(),) * spec.mesh.ndim
    return redistribute_local_tensor(tensor._local_tensor, spec, spec.with_placements(places))


def whole_arguments(bound: Any) -> Dict[str, Any]:
    """The arguments, with all of each tensor."""
    return {
        name: tree_map_only(Tensor, whole_of, bound.args[name])
        for name in bound.given
        if isinstance(bound.args[name], (Tensor, list, tuple))
    }


def replicated(local: Any, mesh: DeviceMesh) -> Any:
    """A DTensor of a tensor that every process has."""
    meta = TensorMeta(local.shape, tuple(local.stride()), local.dtype)
    return _dispatch.wrap(local, DTensorSpec(mesh, (Replicate(),) * mesh.ndim, meta))


def unknown(bound: Any) -> Any:
    """An operator of a library: all is computed in every process."""
    tensors: List[Tensor] = []
    tree_map_only(Tensor, tensors.append, list(bound.args.values()))
    mesh = _dispatch.mesh_of(bound.func, tensors)
    if any(argument.is_write for argument in bound.func._schema.arguments):
        raise NotImplementedError(
            f"{bound.func}: expected an operator that writes no argument, as its entry does not "
            "say how it is computed in pieces"
        )
    results = bound.called(bound.func, whole_arguments(bound))
    return tree_map_only(Tensor, lambda t: replicated(t, mesh), results)


def outside(bound: Any, mesh: DeviceMesh) -> Any:
    """The results in a process that is not of the mesh: their geometry."""

    def empty(made: Tensor) -> Tensor:
        meta = TensorMeta(made.shape, tuple(made.stride()), made.dtype)
        local = _C.empty(0, dtype=made.dtype, device=mesh.device_type)
        return _dispatch.wrap(local, DTensorSpec(mesh, (Replicate(),) * mesh.ndim, meta))

    for argument in bound.func._schema.arguments:
        if argument.is_write:
            return bound.args[argument.name]
    return tree_map_only(Tensor, empty, on_meta(bound))


# ---- results in given tensors ----


def put(target: Tensor, result: Tensor, name: str = "") -> None:
    """Write a result to a tensor of the same shape, spread in its own way."""
    if tuple(target.shape) != tuple(result.shape):
        raise RuntimeError(
            f"{name}: expected out to have the shape {tuple(result.shape)}, as a DTensor keeps its "
            f"geometry, got {tuple(target.shape)}"
        )
    if not isinstance(target, DTensor):
        target.copy_(whole_of(result))
        return
    spec = target._spec
    source = _dispatch.spec_of(result, spec.mesh)
    local = redistribute_local_tensor(
        _dispatch.local_of(result), source, source.with_placements(spec.placements)
    )
    target._local_tensor.copy_(local)
    _copied_views.write_through(target)


def to_out(bound: Any, call: Call) -> Any:
    """The form with `out`: the functional form, whose results are written."""
    facts = call.facts
    # An entry that writes to lists has this form alone; another entry has the functional one.
    base, _, overload = facts.name.partition(".")
    beside = overload.removesuffix("out").removesuffix("_")
    func = _ops.overload_named(facts.functional or f"{base}.{beside}".rstrip("."))
    args = {name: bound.args[name] for name in bound.given if name not in facts.written}
    inner = _dispatch.Bound(func, {**bound.args, **args}, list(args))
    results = inner.called(func, {})
    listed = results if isinstance(results, (list, tuple)) else [results]
    outs = [bound.args[name] for name in facts.written]
    if len(outs) == 1 and isinstance(outs[0], (list, tuple)):
        outs = list(outs[0])
    for target, result in zip(outs, listed):
        put(target, result, bound.func._opname)
    return outs[0] if len(outs) == 1 else tuple(outs)


# ---- random numbers ----


def drawn(bound: Any, call: Call) -> Any:
    """Random numbers: each process draws those of the whole tensor, as one process would, and takes
    its piece. So the generators of all processes have to be in the same state."""
    facts, mesh = call.facts, call.mesh
    like = next((t for t in call.tensors if isinstance(t, DTensor)), None)
    assert like is not None
    spec = like._spec
    written = facts.written[0] if facts.written else None
    changed = whole_arguments_except(bound, written, facts.makes)
    results = bound.called(bound.func, changed)
    if written is not None:
        target = bound.args[written]
        put(target, changed[written])
        return target

    def placed(whole: Tensor) -> Any:
        source = replicated(whole, mesh)
        if tuple(whole.shape) != tuple(spec.shape):
            return source
        places = [Replicate() if p.is_partial() else p for p in spec.placements]
        return _api.redistributed(whole, source._spec, places)

    return tree_map_only(Tensor, placed, results)


def whole_arguments_except(bound: Any, written: Optional[str], makes: bool) -> Dict[str, Any]:
    """The arguments, with all of each tensor; without elements where these are not read."""
    blank = written or ("self" if makes else None)
    found: Dict[str, Any] = {}
    for name in bound.given:
        value = bound.args[name]
        if name == blank and isinstance(value, Tensor):
            local = _dispatch.local_of(value)
            found[name] = local.new_empty(tuple(value.shape))
        elif isinstance(value, (Tensor, list, tuple)):
            found[name] = tree_map_only(Tensor, whole_of, value)
    return found


# ---- tensors that are made ----


def made_like(bound: Any, call: Call) -> Any:
    """A new tensor that is spread as the argument is, or replicated if it has another shape."""
    facts, mesh = call.facts, call.mesh
    tensor = bound.args["self"]
    spec: DTensorSpec = tensor._spec
    places: List[Placement] = list(spec.placements)
    depends = "differentiable_none" not in facts.entry["tags"]
    dtype = bound.args.get("dtype")
    is_rounded = dtype is not None and not (dtype.is_floating_point or dtype.is_complex)
    for i, placement in enumerate(places):
        if placement.is_partial() and (not depends or is_rounded):
            places[i] = Replicate()
    shape = tuple(spec.shape)
    if "size" in facts.arguments:
        shape = tuple(bound.args["size"])
        if shape != tuple(spec.shape):
            places = [Replicate()] * mesh.ndim
    wanted = spec.with_placements(places)
    local = tensor._local_tensor
    if depends:
        local = redistribute_local_tensor(local, spec, wanted)
    local_shape = wanted.local_shape() if shape == tuple(spec.shape) else shape
    changed: Dict[str, Any] = {"self": local}
    if "size" in facts.arguments:
        changed["size"] = list(local_shape)
    if "stride" in facts.arguments:
        changed["stride"] = list(contiguous_stride(local_shape))
    if "device" in bound.given and bound.args["device"] is None:
        changed["device"] = None
    result = bound.called(bound.func, changed)
    if tuple(result.shape) != tuple(local_shape):
        result = result.new_empty(local_shape) if not depends else result.reshape(local_shape)
    stride = _dispatch.stride_of(result, shape)
    meta = TensorMeta(Size(shape), stride, result.dtype)
    return _dispatch.wrap(result, DTensorSpec(mesh, tuple(places), meta))


# ---- lists ----


def of_lists(bound: Any, call: Call) -> Any:
    """An operator that applies another one to lists: the other one, for each element."""
    facts = call.facts
    rule = facts.entry["foreach_of"]
    inner = _form_of(rule["of"], rule["form"])
    names: Dict[str, str] = rule["arguments"]  # from arguments of the other one
    lists = {name: value for name, value in bound.args.items() if isinstance(value, (list, tuple))}
    count = len(next(lists[name] for name in facts.tensors if name in lists))
    if _spread_alike(call, count) and facts_of(inner._name).family == "pointwise":  # type: ignore[union-attr]
        return _lists_at_once(bound, call)
    results = []
    for i in range(count):
        args = {}
        for argument in inner._schema.arguments:
            name = names.get(argument.name)
            if name is None or name not in bound.given:
                continue
            value = bound.args[name]
            if name in lists:
                value = value[i]
            elif argument.type == "Scalar" and isinstance(value, Tensor):
                value = value[i].item() if value.dim() else value.item()
            args[argument.name] = value
        results.append(_dispatch.Bound(inner, args, list(args)).called(inner, {}))
    return results if facts.entry["returns"] and not facts.written else None


def _form_of(operator: str, form: str) -> Any:
    """The form of an operator that is given by its name, "add.Tensor"."""
    entry = facts_of(f"aten::{operator}")
    assert entry is not None
    found = next(f for f in entry.entry["forms"] if f["form"] == form)
    overload = f".{found['overload']}" if found["overload"] else ""
    return _ops.overload_named(f"aten::{found['name']}{overload}")


def _spread_alike(call: Call, count: int) -> bool:
    """Whether all tensors of each place of the lists have one shape and are spread in one way."""
    if not count or len(call.tensors) % count or len(set(call.names)) * count != len(call.tensors):
        return False
    for i in range(count):
        group = call.tensors[i::count]
        first = group[0]
        if not isinstance(first, DTensor):
            return False
        for tensor in group:
            if not isinstance(tensor, DTensor):
                return False
            if tensor.placements != first.placements or tensor.shape != first.shape:
                return False
        if any(placement.is_partial() for placement in first.placements):
            return False
    return True


def _lists_at_once(bound: Any, call: Call) -> Any:
    changed = {
        name: [_dispatch.local_of(tensor) for tensor in bound.args[name]]
        for name in set(call.names)
    }
    results = bound.called(bound.func, changed)
    if results is None:
        return None
    found = []
    for local, like in zip(results, call.tensors):
        spec = like._spec  # type: ignore[attr-defined]
        meta = TensorMeta(spec.shape, _dispatch.stride_of(local, spec.shape), local.dtype)
        found.append(_dispatch.wrap(local, DTensorSpec(spec.mesh, spec.placements, meta)))
    return found


def lists_together(bound: Any, call: Call) -> Any:
    """An operator that writes several lists: all tensors of a place as the first one is spread,
    with whole tensors in the place of parts of sums."""
    facts, mesh = call.facts, call.mesh
    first = bound.args[facts.tensors[0]]
    changed: Dict[str, Any] = {}
    back = []
    for name in facts.tensors:
        value = bound.args.get(name)
        if not isinstance(value, (list, tuple)):
            changed[name] = whole_of(value)
            continue
        changed[name] = []
        for tensor, leader in zip(value, first):
            spec = _dispatch.spec_of(tensor, mesh)
            alike = tuple(tensor.shape) == tuple(leader.shape)
            places = (_dispatch.spec_of(leader, mesh) if alike else spec).placements
            target = spec.with_placements(
                Replicate() if place.is_partial() else place for place in places
            )
            local = redistribute_local_tensor(_dispatch.local_of(tensor), spec, target)
            changed[name].append(local)
            if name in facts.written and local is not _dispatch.local_of(tensor):
                back.append((tensor, local, target, spec))
    for name in list(changed):
        if name not in bound.given:
            del changed[name]
    bound.called(bound.func, changed)
    for tensor, local, made, spec in back:
        _dispatch.local_of(tensor).copy_(redistribute_local_tensor(local, made, spec))


# ---- geometry ----


def changed_geometry(bound: Any, call: Call) -> Any:
    """An operator that changes the geometry of its argument. A dimension that is cut, and is not
    there any more, or another one, becomes whole."""
    facts, mesh = call.facts, call.mesh
    tensor = bound.args[facts.written[0]]
    spec: DTensorSpec = tensor._spec
    before = _views.plain(spec.shape, contiguous_stride(spec.shape), spec.tensor_meta.dtype)  # type: ignore[union-attr]
    after = before.detach()
    bound.called(bound.func, {facts.written[0]: after})
    labels, result = _views.matched(before, after)
    kept: List[Placement] = []
    places: List[Placement] = []
    for placement in spec.placements:
        if _is_shard_like(placement):
            label = labels[placement.dim]  # type: ignore[attr-defined]
            is_kept = label is not None and isinstance(placement, Shard)
            kept.append(placement if is_kept else Replicate())
            places.append(Shard(result.index(label)) if is_kept else Replicate())
        else:
            kept.append(placement)
            places.append(placement)
    local = redistribute_local_tensor(tensor._local_tensor, spec, spec.with_placements(kept))
    local = local.detach()
    bound.called(bound.func, {facts.written[0]: local})
    with _C._DisableTorchDispatch():
        bound.called(bound.func, {})
    meta = TensorMeta(Size(after.shape), tuple(after.stride()), tensor.dtype)
    tensor._spec = DTensorSpec(mesh, tuple(places), meta)
    tensor._local_tensor = local.reshape(tensor._spec.local_shape())
    return tensor


# ---- reductions ----


def divided(call: Call, labelling: Labelling, inputs: Sequence[Input]) -> Callable:
    """Set how the results of a reduction along cut dimensions become one, where it divides by the
    number of elements. Returns what is to be done with the local result."""
    ndim = len(inputs[0].shape)
    dims = dims_of(call.args.get("dim"), ndim)
    if call.facts.divides:
        cut = {
            placement.dim  # type: ignore[attr-defined]
            for placement in inputs[0].placements
            if _is_shard_like(placement)
        }
        even = all(inputs[0].shape[d] % call.mesh.size() == 0 for d in dims if d in cut)
        labelling.ways = {f"d{d}": "avg" if even else "sum" for d in dims}
        if not even:
            count = math.prod(inputs[0].shape[d] for d in dims)

            def scaled(result: Tensor, local: Tensor) -> Tensor:
                mine = math.prod(local.shape[d] for d in dims)
                if not mine:
                    return _C.zeros_like(result)
                return result * (mine / count) if mine != count else result

            return scaled
    return lambda result, local: result


def not_empty(call: Call, changed: Dict[str, Any]) -> None:
    """Give a reduction that has no value for no elements one that changes nothing."""
    facts, local = call.facts, changed["self"]
    if "init" in facts.entry["reduce"] or local.numel() or facts.way is None:
        return
    dims = dims_of(call.args.get("dim"), local.dim())
    shape = [1 if d in dims and size == 0 else size for d, size in enumerate(local.shape)]
    if not all(call.tensors[0].shape[d] for d in dims):
        return
    changed["self"] = local.new_full(shape, identity_of(facts.way, local.dtype))


__all__ = ["handler_of"]

"""An operator of tensors that are spread: labels, plan, exchange, the operator on what each process
has, and the spread tensor of the results.

Tensors that are no DTensor count as replicated here: the operators that others consist of, and the
formulas of gradients, make some. Functions of the program refuse them (DTensor.__torch_function__).
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import threading
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from treadle import _C
from treadle._C import Size, Tensor
from treadle.distributed.device_mesh import DeviceMesh
from treadle.distributed.tensor import (
    _api,
    _copied_views,
    _decision,
    _labels,
    _layout,
    _registered,
    _special,
)
from treadle.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from treadle.distributed.tensor._facts import facts_of
from treadle.distributed.tensor._labels import Call, Labelling, Labels
from treadle.distributed.tensor._redistribute import redistribute_local_tensor
from treadle.distributed.tensor._strategy import Input, Plan
from treadle.distributed.tensor._utils import compute_local_stride, contiguous_stride
from treadle.distributed.tensor.placement_types import Placement, Replicate
from treadle.utils._python_dispatch import return_and_correct_aliasing

DTensor = _api.DTensor


class _Observers(threading.local):
    """Functions that are told each call of this thread: the operator, the specs of its tensors, and
    the plan."""

    def __init__(self) -> None:
        self.functions: List[Callable[[Any, Sequence[DTensorSpec], Plan], None]] = []


observers = _Observers()


@dataclasses.dataclass
class Bound:
    """The arguments of a call by name, with defaults; `given` are those that the call has."""

    func: Any
    args: Dict[str, Any]
    given: List[str]

    def called(self, func: Any, changed: Dict[str, Any]) -> Any:
        """The result of an operator with the same arguments, except for some."""
        positional: List[Any] = []
        named: Dict[str, Any] = {}
        for argument in self.func._schema.arguments:
            name = argument.name
            if name not in self.given and name not in changed:
                continue
            value = changed.get(name, self.args[name])
            if argument.kwarg_only or len(named):
                named[name] = value
            else:
                positional.append(value)
        return func(*positional, **named)


def bind(func: Any, args: Sequence[Any], kwargs: Dict[str, Any]) -> Bound:
    """The arguments by name."""
    found: Dict[str, Any] = {}
    given = []
    for i, argument in enumerate(func._schema.arguments):
        if i < len(args):
            found[argument.name] = args[i]
        elif argument.name in kwargs:
            found[argument.name] = kwargs[argument.name]
        else:
            found[argument.name] = argument.default_value
            continue
        given.append(argument.name)
    # Arguments before the last given one are passed by their places.
    return Bound(func, found, given)


def spec_of(tensor: Tensor, mesh: DeviceMesh) -> DTensorSpec:
    """How a tensor is spread; one that is no DTensor is replicated."""
    if isinstance(tensor, DTensor):
        return tensor._spec
    meta = TensorMeta(tensor.shape, tuple(tensor.stride()), tensor.dtype)
    return DTensorSpec(mesh, (Replicate(),) * mesh.ndim, meta)


def local_of(tensor: Tensor) -> Tensor:
    """The part of a tensor in this process."""
    return tensor._local_tensor if isinstance(tensor, DTensor) else tensor


def mesh_of(func: Any, tensors: Sequence[Tensor]) -> DeviceMesh:
    """The mesh of the tensors. RuntimeError if there are two."""
    meshes = [t._spec.mesh for t in tensors if isinstance(t, DTensor)]
    for mesh in meshes[1:]:
        if mesh != meshes[0]:
            raise RuntimeError(
                f"{func._opname}: expected tensors on one mesh, got {meshes[0]} and {mesh}"
            )
    return meshes[0]


def run(func: Any, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    """The result of an operator, some of whose arguments are DTensors."""
    if func._name in _registered.functions:
        return _registered.run(func, args, kwargs)
    facts = facts_of(func._name)
    bound = bind(func, args, kwargs)
    if facts is None:
        return _special.unknown(bound)
    mesh = mesh_of(func, [tensor for _, tensor in _labels.tensors_of(facts, bound.args)])
    call = _labels.call_of(facts, bound.args, mesh)
    if not mesh._is_current_rank_part_of_mesh():
        return _special.outside(bound, mesh)
    replacement = _special.replaced.functions.get(func._name)
    if replacement is not None:
        result = replacement(bound, call)
        if result is not NotImplemented:
            return result
    handler = _special.handler_of(facts, bound)
    if handler is not None:
        return handler(bound, call)
    decision = _decision.decided(bound, call)
    if decision.is_composite:
        return _C._call_parts(func, args, kwargs)
    return computed(bound, call, decision)


def computed(bound: Bound, call: Call, decision: _decision.Decision) -> Any:
    """The result by way of labels; without, all is computed in every process."""
    labelling, plan, written = decision.labelling, decision.plan, decision.written
    specs = [spec_of(tensor, call.mesh) for tensor in call.tensors]
    for observer in observers.functions:
        observer(bound.func, specs, plan)
    locals_ = [
        redistribute_local_tensor(local_of(tensor), spec, spec.with_placements(places))
        for tensor, spec, places in zip(call.tensors, specs, plan.inputs)
    ]
    cuts = Cuts(labelling, plan, decision.inputs, call.mesh)
    changed = _filled(call, bound.args, locals_)
    changed.update(cuts.sizes(bound))
    if decision.scale is not None:
        _special.not_empty(call, changed)
    results = bound.called(bound.func, changed)
    if decision.scale is not None:
        results = decision.scale(results, locals_[0])
    if written is not None:
        return _write_back(call.tensors[written], locals_[written], specs[written], plan, results)
    return _wrapped(bound, call, labelling, plan, cuts, results)


def _filled(call: Call, args: Dict[str, Any], locals_: Sequence[Tensor]) -> Dict[str, Any]:
    """The arguments that are tensors, with these in their places."""
    found: Dict[str, Any] = {}
    left = list(locals_)
    for name in call.facts.tensors:
        value = args.get(name)
        if isinstance(value, (list, tuple)):
            found[name] = [left.pop(0) if isinstance(each, Tensor) else each for each in value]
        elif isinstance(value, Tensor):
            found[name] = left.pop(0)
    return found


class Cuts:
    """The lengths that labels have in this process."""

    def __init__(
        self,
        labelling: Optional[Labelling],
        plan: Plan,
        inputs: Sequence[Input],
        mesh: DeviceMesh,
    ) -> None:
        self._labelling, self._mesh = labelling, mesh
        self.choices = plan.choices
        self.lengths: Dict[str, int] = {}
        for labels, given in zip(labelling.inputs if labelling else [], inputs):
            for label, size in zip(labels, given.shape):
                if label:
                    self.lengths[label] = size
        if labelling:
            self.lengths.update(labelling.lengths)

    def is_cut(self, label: Any) -> bool:
        """Whether this process has a piece of it."""
        return label is not None and any(choice.label == label for choice in self.choices)

    def local(self, label: str) -> int:
        """The length of this process's piece."""
        places: List[Placement] = [
            choice.output([label], {}) if choice.label == label else Replicate()
            for choice in self.choices
        ]
        coordinate = self._mesh.get_coordinate()
        assert coordinate is not None
        ranges = _layout.ranges_of(0, self.lengths[label], places, self._mesh.shape, coordinate)
        return _layout.total(ranges)

    def sizes(self, bound: Bound) -> Dict[str, Any]:
        """The arguments that are sizes, as they are for the pieces."""
        found: Dict[str, Any] = {}
        for name, labels in (self._labelling.sizes if self._labelling else {}).items():
            if not any(self.is_cut(label) for label in labels):
                continue
            value = bound.args[name]
            if isinstance(value, int):
                found[name] = self.local(labels[0])  # type: ignore[arg-type]
            else:
                found[name] = [
                    self.local(label) if label is not None and self.is_cut(label) else size
                    for label, size in zip(labels, value)
                ]
        return found

    def shape(self, labels: Labels, local: Sequence[int], whole: bool) -> List[int]:
        """The sizes of a result whose piece has the sizes `local`; of the piece if not `whole`."""
        found = []
        for d, size in enumerate(local):
            label = labels[d] if d < len(labels) and labels[d] != "..." else None
            if label is not None and self.is_cut(label):
                size = self.lengths[label] if whole else self.local(label)
            found.append(size)
        return found


def _write_back(target: Tensor, local: Tensor, spec: DTensorSpec, plan: Plan, results: Any) -> Any:
    """Give the written argument its new elements, where it has them in another way."""
    if isinstance(target, DTensor):
        made = spec.with_placements(plan.outputs[0] if plan.outputs else plan.inputs[0])
        back = redistribute_local_tensor(local, made, spec)
        if back is not target._local_tensor:
            target._local_tensor.copy_(back)
        _copied_views.write_through(target)
    return None if results is None else target


def _wrapped(
    bound: Bound,
    call: Call,
    labelling: Optional[Labelling],
    plan: Plan,
    cuts: Cuts,
    results: Any,
) -> Any:
    """The results as DTensors."""
    mesh = call.mesh
    is_view = call.facts.entry["kind"] == "view"
    meta = _special.on_meta(bound) if is_view else None

    def made(i: int, local: Any) -> Any:
        if not isinstance(local, Tensor):
            return local
        labels: Labels = labelling.outputs[i] if labelling else ["..."]
        if meta is not None and labelling is not None:
            expected = cuts.shape(labels, tuple(meta.shape), whole=False)
            if list(local.shape) != expected:
                local = local.reshape(expected)
            shape, stride = list(meta.shape), tuple(meta.stride())
        else:
            shape = cuts.shape(labels, tuple(local.shape), whole=True)
            stride = stride_of(local, shape)
        places = plan.outputs[i] if i < len(plan.outputs) else plan.outputs[-1]
        # A gradient through a view goes to the place that the view has in the whole tensor.
        offset = _offset(call.tensors[0], meta) if meta is not None else 0
        meta_of = TensorMeta(Size(shape), stride, local.dtype)
        return wrap(local, DTensorSpec(mesh, places, meta_of), offset)

    returns = call.facts.entry["returns"]
    if isinstance(results, (list, tuple)):
        is_list = len(returns) == 1
        out: Any = [made(0 if is_list else i, each) for i, each in enumerate(results)]
        return out if is_list else tuple(out)
    out = made(0, results)
    if is_view and isinstance(out, DTensor) and isinstance(call.tensors[0], DTensor):
        base = call.tensors[0]
        positional = tuple(bound.args[a.name] for a in bound.func._schema.arguments)
        out = return_and_correct_aliasing(bound.func, positional, {}, out)
        if tuple(plan.inputs[0]) != base._spec.placements or _copied_views.is_copied(base):
            _copied_views.follow(out, bound, call.names[0])
    return out


def _offset(base: Tensor, view: Tensor) -> int:
    """Where a view begins in the storage of the whole tensor, in elements of the view."""
    begin = base.storage_offset() * base.element_size() // view.element_size()
    return begin + view.storage_offset()


def stride_of(local: Tensor, shape: Sequence[int]) -> Tuple[int, ...]:
    """The strides of the whole tensor, in whose memory dimensions are in the order of a piece's."""
    if not local.numel() or local.is_contiguous():
        return contiguous_stride(shape)
    return compute_local_stride(local.stride(), shape)


def wrap(local: Tensor, spec: DTensorSpec, offset: int = 0) -> DTensor:
    """A DTensor of what this process has; `offset` is where a view of the whole tensor begins."""
    return DTensor(local, spec, requires_grad=False, storage_offset=offset)


__all__ = ["computed", "observers", "run"]

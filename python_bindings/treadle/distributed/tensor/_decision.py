"""The decisions about a call: the labels of its tensors, the placements that they take, and what is
done with the local result of a reduction.

They depend on the operator, the shape of the mesh, the arguments that are no tensors, and the
shapes, strides, dtypes and placements of the tensors; never on elements. So calls that are alike
are decided once.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Dict, Hashable, List, Optional

from treadle import _ops
from treadle._C import Tensor, device, dtype, layout, memory_format
from treadle.distributed.tensor import _api, _labels, _special, _strategy, _views
from treadle.distributed.tensor._kernel_labels import RULES
from treadle.distributed.tensor._labels import Call, Labelling
from treadle.distributed.tensor._strategy import Input, Plan
from treadle.distributed.tensor.placement_types import Replicate

# The types of arguments that can be compared.
_PLAIN = (
    Tensor, type(None), bool, int, float, complex, str, dtype, device, layout, memory_format
)  # fmt: skip
# The most decisions that are kept.
_MOST = 4096
_decisions: Dict[Hashable, Decision] = {}


@dataclasses.dataclass(frozen=True)
class Decision:
    """A decision; the labelling is None where every process computes all."""

    labelling: Optional[Labelling]
    plan: Plan
    inputs: List[Input]
    written: Optional[int]  # the tensor that the result is written to
    scale: Optional[Callable[[Tensor, Tensor], Tensor]]  # of a reduction: (result, argument)
    is_composite: bool  # without labels: computed by the operators that it consists of


def decided(bound: Any, call: Call) -> Decision:
    """The decision about a call."""
    key = _key_of(bound, call)
    found = _decisions.get(key) if key is not None else None
    if found is None:
        found = _decide(bound, call)
        if key is not None:
            if len(_decisions) >= _MOST:
                _decisions.clear()
            _decisions[key] = found
    return found


def forget_all() -> None:
    """Decide anew from now on: for whoever changes the rules."""
    _decisions.clear()


def _key_of(bound: Any, call: Call) -> Optional[Hashable]:
    """The values that a decision depends on, of which none keeps a mesh, a group or a tensor alive;
    None if there are others."""
    key: List[Any] = [bound.func, call.mesh.shape]
    for tensor in call.tensors:
        spread = isinstance(tensor, _api.DTensor)
        key.append(tensor._spec.placements if spread else None)  # type: ignore[attr-defined]
        key += (tensor.shape, tensor.stride(), tensor.dtype)
    for value in bound.args.values():
        each = value if isinstance(value, (list, tuple)) else [value]
        if not all(isinstance(v, _PLAIN) for v in each):
            return None
        key += [type(value), len(each)]
        for v in each:
            key += [Tensor] if isinstance(v, Tensor) else [type(v), v]
    return tuple(key)


def _decide(bound: Any, call: Call) -> Decision:
    facts, mesh = call.facts, call.mesh
    replicated = (Replicate(),) * mesh.ndim
    inputs = [
        Input(
            tensor._spec.placements if isinstance(tensor, _api.DTensor) else replicated,
            tuple(tensor.shape),
            tensor.element_size(),
        )
        for tensor in call.tensors
    ]
    labelling = _labels_of(bound, call)
    is_composite = labelling is None and facts.entry["kind"] == "composite"
    written = call.of(facts.written[0])[0] if len(facts.written) == 1 else None
    if written is not None and not isinstance(call.tensors[written], _api.DTensor):
        labelling = None  # a tensor of this process is written whole
    scale = None
    if labelling is not None and facts.entry["kind"] == "reduce":
        scale = _special.divided(call, labelling, inputs)
    if labelling is None:
        plan = _strategy.whole(inputs, len(facts.entry["returns"]), mesh)
    else:
        plan = _strategy.plan(labelling, inputs, mesh, written)
    return Decision(labelling, plan, inputs, written, scale, is_composite)


def _labels_of(bound: Any, call: Call) -> Optional[Labelling]:
    """The labels of the call's tensors; None if nothing is known."""
    facts, func = call.facts, bound.func
    kind = facts.entry["kind"]
    if kind == "pointwise":
        return _labels.pointwise(call)
    if kind == "reduce":
        return _labels.reduction(call)
    if kind == "view":
        (name,) = facts.tensors
        return _views.of_view(call, lambda tensor: bound.called(func, {name: tensor}))
    if facts.identity:
        return _labels.identity(call)
    if facts.overwrites:
        return _labels.overwriting(call)
    if facts.view_of is not None and len(call.tensors) == 1:
        return _views.of_gradient(
            call, _ops.overload_named(facts.view_of[0]), _special.on_meta(bound)
        )
    rule = RULES.get(facts.family)
    found = rule(call) if rule is not None and call.tensors else None
    if found is not None:
        found.needs_elements = True
    return found


__all__ = ["Decision", "decided", "forget_all"]

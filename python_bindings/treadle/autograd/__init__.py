"""Automatic differentiation: backward() and grad(), custom functions, modes.

Example:

    g = treadle.autograd.grad(loss, weights)     # a tuple, weights.grad untouched
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any, Optional, Sequence, Tuple, Union

from treadle import _C, _names
from treadle.autograd import _edge, _parts
from treadle.autograd._edge import GradientEdge
from treadle.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled


class SavedTensor:
    """The name of what a node keeps of a tensor. Programs are given the tensor itself,
    `grad_fn._saved_self`: there is no object of this class, and RuntimeError for a call."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "SavedTensor: expected to be made by an operator that saves for backward, got a call"
        )


TensorOrTensors = Union[_C.Tensor, GradientEdge, Sequence[Union[_C.Tensor, GradientEdge]]]


def _as_tuple(tensors: Optional[TensorOrTensors]) -> Tuple[Any, ...]:
    if tensors is None:
        return ()
    return (tensors,) if isinstance(tensors, (_C.Tensor, GradientEdge)) else tuple(tensors)


def _gradients_for(op: str, tensors: Tuple[Any, ...], gradients: Any) -> Tuple[Any, ...]:
    if gradients is None:
        return (None,) * len(tensors)
    given = _as_tuple(gradients)
    if len(given) != len(tensors):
        raise RuntimeError(
            f"{op}: expected {len(tensors)} gradients, one for each tensor, got {len(given)}"
        )
    return given


def backward(
    tensors: TensorOrTensors,
    grad_tensors: Optional[TensorOrTensors] = None,
    retain_graph: Optional[bool] = None,
    create_graph: bool = False,
    grad_variables: Optional[TensorOrTensors] = None,
    inputs: Optional[TensorOrTensors] = None,
) -> None:
    """Add the gradients of `tensors` to `grad` of the leaves (or `inputs`) they were computed from.

    Edges of the graph may stand for tensors; as inputs, those of leaves. `grad_variables` is the
    older name of `grad_tensors`, with a warning; RuntimeError for both.
    """
    if grad_variables is not None:
        warnings.warn(
            "backward: grad_variables is deprecated; use grad_tensors", FutureWarning, stacklevel=2
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "backward: expected one of grad_tensors and grad_variables, got both"
            )
        grad_tensors = grad_variables
    roots = _as_tuple(tensors)
    wanted = _as_tuple(inputs)
    if inputs is not None and not wanted:
        raise RuntimeError("backward: expected at least one tensor in inputs, got none")
    retain = create_graph if retain_graph is None else retain_graph
    starts = _gradients_for("backward", roots, grad_tensors)
    if any(map(_parts.has_parts, (*roots, *wanted))):
        starts = tuple(_parts.start_for(*pair) for pair in zip(roots, starts))
        roots, wanted = tuple(map(_parts.recorded, roots)), tuple(map(_parts.recorded, wanted))
    if _edge.any_edge(roots, wanted):
        _edge.run("backward", roots, starts, wanted, retain, create_graph, True)
    else:
        _C._backward(roots, starts, retain, create_graph, wanted)


def grad(
    outputs: TensorOrTensors,
    inputs: TensorOrTensors,
    grad_outputs: Optional[TensorOrTensors] = None,
    retain_graph: Optional[bool] = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: Optional[bool] = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Tuple[_C.Tensor, ...]:
    """The gradients of `outputs` with respect to each of `inputs`, without touching any `grad`.

    RuntimeError for inputs that the outputs do not depend on, unless `allow_unused` has None in
    the place of their gradients, or `materialize_grads` zeros, which can be differentiated again
    with `create_graph`. With `is_grads_batched` each of `grad_outputs` has one dimension more, the
    first, and so have the results: one gradient for each entry.
    """
    if not only_inputs:
        raise ValueError("grad: expected only_inputs = True; use backward() to add to the leaves")
    if is_grads_batched:
        return _batched_grad(
            outputs, inputs, grad_outputs, create_graph, allow_unused, materialize_grads
        )
    roots, wanted = _as_tuple(outputs), _as_tuple(inputs)
    if not wanted:
        raise RuntimeError("grad: expected at least one input, got none")
    retain = create_graph if retain_graph is None else retain_graph
    unused = materialize_grads if allow_unused is None else allow_unused
    if materialize_grads and not unused:
        raise ValueError(
            "grad: expected allow_unused = True or None beside materialize_grads, got False"
        )
    starts = _gradients_for("grad", roots, grad_outputs)
    given = wanted
    if any(map(_parts.has_parts, (*roots, *wanted))):
        starts = tuple(_parts.start_for(*pair) for pair in zip(roots, starts))
        roots, wanted = tuple(map(_parts.recorded, roots)), tuple(map(_parts.recorded, wanted))
    if _edge.any_edge(roots, wanted):
        found = _edge.run("grad", roots, starts, wanted, retain, create_graph, False)
        if not unused and any(g is None for g in found):
            raise RuntimeError(
                "grad: expected inputs that the outputs depend on, got one that is not used in the "
                "graph; set allow_unused=True if this is the desired behavior"
            )
    else:
        found = _C._grad(roots, wanted, starts, retain, create_graph, unused)
    if wanted is not given:
        found = tuple(_parts.as_gradient_of(*pair) for pair in zip(given, found))
    if not materialize_grads:
        return found
    if any(g is None and isinstance(x, GradientEdge) for g, x in zip(found, wanted)):
        raise RuntimeError(
            "grad: expected tensors among the inputs that are not used, as materialize_grads makes "
            "zeros of their shapes, got an edge"
        )
    return tuple(
        _C.zeros_like(x, requires_grad=create_graph) if g is None else g
        for g, x in zip(found, wanted)
    )


def _batched_grad(
    outputs: TensorOrTensors,
    inputs: TensorOrTensors,
    grad_outputs: Optional[TensorOrTensors],
    create_graph: bool,
    allow_unused: Optional[bool],
    materialize_grads: bool,
) -> Tuple[Any, ...]:
    given = _as_tuple(grad_outputs)
    if not given or any(g is None or g.dim() == 0 for g in given):
        raise RuntimeError(
            "grad: expected grad_outputs with a batch dimension each, as is_grads_batched=True "
            f"says, got {[None if g is None else tuple(g.shape) for g in given]}"
        )
    rows = [
        grad(
            outputs,
            inputs,
            entry,
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=allow_unused,
            materialize_grads=materialize_grads,
        )
        for entry in zip(*(g.unbind(0) for g in given))
    ]
    if not rows:
        return tuple(_C.zeros((0, *x.shape), dtype=x.dtype) for x in _as_tuple(inputs))
    return tuple(None if column[0] is None else _C.stack(column) for column in zip(*rows))


if TYPE_CHECKING:
    from treadle.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
    from treadle.autograd.function import Function, NestedIOFunction
    from treadle.autograd.gradcheck import gradcheck, gradgradcheck
    from treadle.autograd.variable import Variable

# Names that are imported when they are first used.
_LAZY = {
    **dict.fromkeys(("gradcheck", "gradgradcheck"), "treadle.autograd.gradcheck"),
    **dict.fromkeys(
        ("enforce_grad_layout_policy", "is_multithreading_enabled", "set_multithreading_enabled"),
        "treadle.autograd.grad_mode",
    ),
    "ProfilerActivity": "treadle.profiler",
    "has_torch_function": "treadle.functional",
    **dict.fromkeys(("Function", "NestedIOFunction"), "treadle.autograd.function"),
    "Variable": "treadle.autograd.variable",
    **dict.fromkeys(("detect_anomaly", "set_detect_anomaly"), "treadle.autograd.anomaly_mode"),
}
_submodules = _names.attributes_of(__name__)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        module = importlib.import_module(_LAZY[name])
        # All of it at once, over the submodule that has the name of one of its functions.
        for own, place in _LAZY.items():
            if place == _LAZY[name]:
                globals()[own] = getattr(module, own)
        return globals()[name]
    return _submodules(name)


__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]

"""The formulas that count recorded calls of operators; and such calls, made again on tensors that
have shapes and no data.

Example:

    without_data("aten::mm", [[2, 3], [3, 4]], ["float32", "float32"], ["", ""])
    # args and kwargs for treadle.ops.aten.mm, and its result of shape (2, 4), on the meta device
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from treadle import _C
from treadle._ops import OpOverload, packet_named
from treadle.autograd.grad_mode import no_grad

OPERATOR, BACKWARD, RANGE = 0, 1, 2  # the kinds of recorded events
Found = Tuple[Any, Callable[..., int]]  # an operator, and its formula


class Inner(NamedTuple):
    """An operator that runs in place of another, as which it is counted."""

    counted_as: Any
    formula: Callable[..., int]
    only_in_gradients: bool = False


inner: Dict[str, Inner] = {}
# A convolution's gradients are counted by what they are made of.
_GRADIENTS_OF_CONVOLUTION = ("ConvolutionBackward0", "aten::convolution_backward")


def by_name(registry: Dict[Any, Callable[..., int]]) -> Dict[str, Found]:
    """Operators with their formulas by the operators' names."""
    return {
        operator._qualified_op_name: (operator, formula) for operator, formula in registry.items()
    }


def formulas(
    calls: Iterable[Tuple[str, int, int]], known: Dict[str, Found]
) -> Iterator[Optional[Found]]:
    """For each recorded event the formula that counts it, None if none does. calls: each event's
    name, its kind and the place of the event around it (-1: none), which comes first. Nothing is
    counted inside what is counted."""
    # For each event whether it is inside one that was counted, and the node of a backward pass.
    inside: List[bool] = []
    nodes: List[str] = []
    for name, kind, parent in calls:
        counted = parent >= 0 and inside[parent]
        node = nodes[parent] if parent >= 0 else ""
        found = None
        if kind == BACKWARD or name in _GRADIENTS_OF_CONVOLUTION:
            node = name
        elif kind == OPERATOR and not counted:
            instead = inner.get(name)
            if instead and (not instead.only_in_gradients or node in _GRADIENTS_OF_CONVOLUTION):
                found = instead.counted_as, instead.formula
            else:
                found = known.get(name)
        inside.append(counted or found is not None)
        nodes.append(node)
        yield found


def flops_of(
    formula: Callable[..., int], name: str, shapes: list, types: list, values: list
) -> int:
    """The floating-point operations of a recorded call, by its formula."""
    args, kwargs, result = without_data(name, shapes, types, values)
    return formula(*args, **kwargs, out_val=result)


def without_data(
    name: str, shapes: list, types: list, values: list
) -> Tuple[List[Any], Dict[str, Any], Any]:
    """The arguments of a call as the profiler recorded it, by position and by name, and its result;
    None for the result of an operator that has no shape function. Texts and the like, which are not
    recorded, have their defaults."""
    overload = _overload(name, types)
    if overload is None:
        return list(map(_argument, shapes, types, values)), {}, None
    positional: List[Any] = []
    named: Dict[str, Any] = {}
    for argument, *recorded in zip(overload._schema.arguments, shapes, types, values):
        value = _argument(*recorded)
        if value is None and argument.has_default_value():
            value = argument.default_value
        if argument.kwarg_only:
            named[argument.name] = value
        else:
            positional.append(value)
    try:
        with no_grad():
            result = overload(*positional, **named)
    except (RuntimeError, TypeError, ValueError):
        result = None
    return positional, named, result


def _overload(name: str, types: list) -> Optional[OpOverload]:
    """The first overload with as many arguments, and tensors at the same places."""
    packet = packet_named(name)
    for overload_name in packet.overloads():
        overload = getattr(packet, overload_name)
        arguments = overload._schema.arguments
        if len(arguments) == len(types) and all(
            _fits(str(a.type), t) for a, t in zip(arguments, types)
        ):
            return overload
    return None


def _fits(declared: str, recorded: Any) -> bool:
    """Whether a recorded element type can be that of an argument so declared."""
    if not declared.startswith("Tensor"):
        return recorded in ("", "Scalar")
    if declared.endswith("[]"):
        return isinstance(recorded, list)
    return isinstance(recorded, str) and recorded != "Scalar"


def _argument(shape: Any, dtype: Any, value: str) -> Any:
    """A recorded argument; None where there was none."""
    if isinstance(dtype, list):
        return [_argument(s, t, "") for s, t in zip(shape, dtype)]
    if dtype not in ("", "Scalar"):
        return _C.empty(shape, dtype=getattr(_C, dtype), device="meta")
    if value == "":
        return None
    if value in ("inf", "-inf", "nan"):
        return float(value)
    return ast.literal_eval(value)

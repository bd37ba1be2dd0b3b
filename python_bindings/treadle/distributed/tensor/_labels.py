"""How an operator's tensors may be cut together: dimensions with the same label are cut alike.

    mm(n k, k m) -> n m     cut along n: the first argument and the result; along m likewise;
                            along k: both arguments, and the results are parts of a sum

A dimension without a label stays whole. A label that no result has is one along which an operator
adds: `ways` says how the results of the processes become one. In the tensors of a set of `linear`
the results are linear, so these may be parts of a sum, and the results are, too.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from treadle._C import Tensor
from treadle.distributed.device_mesh import DeviceMesh
from treadle.distributed.tensor._facts import Facts

Label = Optional[str]
Labels = List[Label]


@dataclasses.dataclass
class Labelling:
    """The labels of the dimensions of the arguments that are tensors, and of the results."""

    inputs: List[Labels]
    outputs: List[Labels]
    ways: Dict[str, str] = dataclasses.field(default_factory=dict)
    linear: List[FrozenSet[int]] = dataclasses.field(default_factory=list)
    moves: bool = False  # whether elements are only moved: any parts stay such parts
    # Arguments that are sizes of the whole tensor: their labels.
    sizes: Dict[str, Labels] = dataclasses.field(default_factory=dict)
    # The length of a label in the results, where it is another than in the arguments.
    lengths: Dict[str, int] = dataclasses.field(default_factory=dict)
    # Whether every process has to have elements: some kernels refuse to compute nothing.
    needs_elements: bool = False


@dataclasses.dataclass
class Call:
    """A call: the arguments by name, and those that are tensors in one list."""

    facts: Facts
    args: Mapping[str, Any]
    tensors: List[Tensor]  # those given, with those in lists
    names: List[str]  # the name of the argument that each is of
    mesh: DeviceMesh

    def of(self, name: str) -> List[int]:
        """The places of an argument's tensors."""
        return [i for i, each in enumerate(self.names) if each == name]

    def shape(self, i: int) -> Tuple[int, ...]:
        return tuple(self.tensors[i].shape)


def tensors_of(facts: Facts, args: Mapping[str, Any]) -> List[Tuple[str, Tensor]]:
    """The arguments that are tensors, with their names; those in lists one by one."""
    found = []
    for name in facts.tensors:
        value = args.get(name)
        for each in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(each, Tensor):
                found.append((name, each))
    return found


def call_of(facts: Facts, args: Mapping[str, Any], mesh: DeviceMesh) -> Call:
    """A call with these arguments."""
    found = tensors_of(facts, args)
    return Call(facts, args, [tensor for _, tensor in found], [name for name, _ in found], mesh)


def broadcast(shapes: Sequence[Sequence[int]]) -> Tuple[List[Labels], Labels]:
    """The labels of tensors that are broadcast together, and of the result."""
    ndim = max((len(shape) for shape in shapes), default=0)
    sizes = [1] * ndim
    for shape in shapes:
        for i, size in enumerate(shape):
            place = ndim - len(shape) + i
            sizes[place] = size if sizes[place] == 1 else sizes[place]
    found = []
    for shape in shapes:
        start = ndim - len(shape)
        found.append([
            f"d{start + i}" if size == sizes[start + i] else None for i, size in enumerate(shape)
        ])  # fmt: skip
    return found, [f"d{i}" for i in range(ndim)]


def pointwise(call: Call) -> Labelling:
    """Elements are computed from elements."""
    facts = call.facts
    labels, result = broadcast([call.shape(i) for i in range(len(call.tensors))])
    # A number in the place of a tensor is a constant.
    groups = [names for names in facts.linear if all(call.of(name) for name in names)]
    linear = [frozenset(i for name in names for i in call.of(name)) for names in groups]
    return Labelling(labels, [result], linear=linear)


def identity(call: Call) -> Labelling:
    """The result has the values of the argument."""
    labels, result = broadcast([call.shape(0)])
    return Labelling(labels, [result], linear=[frozenset([0])], moves=True)


def overwriting(call: Call) -> Labelling:
    """The written argument takes the values of the other one, or has none of its own."""
    written = call.of(call.facts.written[0])
    labels, _ = broadcast([call.shape(i) for i in range(len(call.tensors))])
    linear = []
    if len(call.tensors) > 1 or len(call.facts.arguments) == 1:  # no number is written
        linear = [frozenset(range(len(call.tensors)))]
    return Labelling(labels, [labels[written[0]]], linear=linear, moves=True)


def dims_of(value: Any, ndim: int) -> List[int]:
    """Dimensions that an argument names; all for None and for none."""
    if value is None or (isinstance(value, (list, tuple)) and not value):
        return list(range(ndim))
    values = value if isinstance(value, (list, tuple)) else [value]
    return [int(v) % ndim if ndim else 0 for v in values]


def without(labels: Labels, dims: Sequence[int], keepdim: bool) -> Labels:
    """The labels of a result that has lost dimensions, or has them with one element."""
    if keepdim:
        return [None if d in dims else label for d, label in enumerate(labels)]
    return [label for d, label in enumerate(labels) if d not in dims]


def reduction(call: Call) -> Labelling:
    """Elements along dimensions become one."""
    facts = call.facts
    shape = call.shape(0)
    labels: Labels = [f"d{i}" for i in range(len(shape))]
    dims = dims_of(call.args.get("dim"), len(shape))
    result = without(labels, dims, bool(call.args.get("keepdim")))
    ways = {}
    if facts.way is not None:
        ways = {f"d{dim}": facts.way for dim in dims}
    adds = facts.entry["reduce"].get("step", {}).get("text") == "acc + x"
    linear = [frozenset([0])] if adds else []
    return Labelling([labels], [result], ways=ways, linear=linear)


__all__ = ["Call", "Label", "Labelling", "Labels", "call_of", "tensors_of"]

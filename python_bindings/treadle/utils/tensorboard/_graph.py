"""A network as the graph that TensorBoard shows: the operators that autograd remembers of one call,
each in the layer that ran it.

The numbers of the fields are those of TensorFlow's graph.proto, node_def.proto and
attr_value.proto.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import bisect
from typing import Any, Optional

from treadle import _C
from treadle._C import Tensor
from treadle.autograd.grad_mode import enable_grad
from treadle.viz.history import Step, named_tensors, steps_of

from . import _wire


def graph_def(model: Any, arguments: Any) -> bytes:
    """A GraphDef message for one call of `model`."""
    if not isinstance(arguments, (tuple, list)):
        arguments = (arguments,)
    arguments = tuple(_with_gradient(argument) for argument in arguments)
    scopes = _Scopes(model)
    with scopes, enable_grad():
        output = model(*arguments)
    names = named_tensors(model)
    names.update({id(a): f"input_{n}" for n, a in enumerate(arguments) if _is_tensor(a)})
    nodes: dict[str, bytes] = {}
    for number, tensor in enumerate(_tensors_in(output)):
        if tensor.requires_grad:
            steps = steps_of(tensor, names)
            called = _names(steps, scopes)
            for step, name in zip(steps, called):
                nodes[name] = _node(name, step, [called[i] for i in step.inputs])
            nodes[f"output_{number}"] = _wire.data(
                1, _wire.text(1, f"output_{number}") + _wire.text(2, "output")
                + _wire.text(3, called[-1])
            )  # fmt: skip
    return b"".join(nodes.values()) + _wire.data(4, _wire.integer(1, 22))


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _with_gradient(value: Any) -> Any:
    """The same numbers as a leaf that autograd follows, where it can."""
    if not _is_tensor(value):
        return value
    leaf = value.detach()
    return leaf.requires_grad_() if leaf.is_floating_point() or leaf.is_complex() else leaf


def _tensors_in(value: Any) -> list:
    if _is_tensor(value):
        return [value]
    items = value.values() if isinstance(value, dict) else value
    if isinstance(items, (str, bytes)) or not hasattr(items, "__iter__"):
        return []
    return [tensor for item in items for tensor in _tensors_in(item)]


class _Scopes:
    """While it is on, notes which layer begins and ends between which operators: operators are
    numbered in the order in which they run."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._root = type(model).__name__
        self._paths = {id(m): path.replace(".", "/") for path, m in model.named_modules()}
        self._open: list[str] = []
        self._times: list[int] = []
        self._scopes: list[str] = []

    def __enter__(self) -> None:
        self._hooks = [
            hook
            for module in self._model.modules()
            for hook in (
                module.register_forward_pre_hook(self._begin),
                module.register_forward_hook(self._end),
            )
        ]

    def __exit__(self, *exception: Any) -> None:
        for hook in self._hooks:
            hook.remove()

    def _begin(self, module: Any, arguments: Any) -> None:
        path = self._paths[id(module)]
        self._open.append(f"{self._root}/{path}" if path else self._root)
        self._note()

    def _end(self, module: Any, arguments: Any, output: Any) -> None:
        self._open.pop()
        self._note()

    def _note(self) -> None:
        node = (_C.zeros((), requires_grad=True) + 0).grad_fn
        self._times.append(node._sequence_nr())  # type: ignore[union-attr]
        self._scopes.append(self._open[-1] if self._open else "")

    def at(self, sequence_nr: int) -> str:
        """The layer in which the operator of that number ran."""
        place = bisect.bisect_right(self._times, sequence_nr) - 1
        return self._scopes[place] if place >= 0 else ""

    def of_parameter(self, name: str) -> str:
        """The name of a parameter."""
        return f"{self._root}/{name.replace('.', '/')}"


def _names(steps: list[Step], scopes: _Scopes) -> list[str]:
    """A name for each step, after its layer; the same name never twice."""
    taken: dict[str, int] = {}
    names = []
    for step in steps:
        if step.kind == "operator":
            scope = scopes.at(step.sequence_nr)
            name = f"{scope}/{step.name}" if scope else step.name
        elif step.kind == "parameter" and step.name:
            name = scopes.of_parameter(step.name)
        else:
            name = step.name or "tensor"
        count = taken[name] = taken.get(name, 0) + 1
        names.append(name if count == 1 else f"{name}_{count - 1}")
    return names


def _node(name: str, step: Step, inputs: list[str]) -> bytes:
    return _wire.data(
        1,
        _wire.message(
            _wire.text(1, name),
            _wire.text(2, step.name if step.kind == "operator" else step.kind),
            *(_wire.text(3, source) for source in inputs),
            _shape(step.shape),
        ),
    )


def _shape(shape: Optional[tuple]) -> bytes:
    """The attribute _output_shapes."""
    if shape is None:
        return b""
    dims = b"".join(_wire.data(2, _wire.integer(1, size)) for size in shape)
    return _wire.entry(5, "_output_shapes", _wire.data(1, _wire.data(7, dims)))

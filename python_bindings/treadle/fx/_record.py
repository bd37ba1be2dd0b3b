"""Records a program while it runs on examples: each call of a function of the library is a node.

Unlike symbolic_trace() the program has real tensors, so that whatever it asks of them has an
answer; the graph is what it did for these examples. A number taken out of a tensor, by `if x > 0`
or `x.item()`, is fixed: `escapes` has the names of the functions that took one.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import threading
from operator import getitem
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from treadle import nn, overrides
from treadle._C import Tensor
from treadle.fx.graph import Graph
from treadle.fx.graph_module import GraphModule
from treadle.utils import _pytree as pytree

_state = threading.local()

# By their names: what makes a value of Python's out of the numbers of a tensor.
_TAKES_NUMBERS = frozenset(
    """__bool__ __int__ __float__ __index__ __complex__ __contains__ __array__ item tolist numpy
    is_nonzero equal allclose __format__""".split()
)


def current() -> Optional["Recorder"]:
    """The recorder at work on this thread."""
    return getattr(_state, "recorder", None)


class Recorder(overrides.TorchFunctionMode):
    """Records the calls inside its block into `graph`. `known` has the node of each tensor by its
    id; tensors that nobody recorded are given to `unknown(tensor)`, which makes their node."""

    def __init__(self, unknown: Callable[["Recorder", Tensor], Any]) -> None:
        self.graph = Graph()
        self.escapes: List[str] = []
        self._unknown = unknown
        self._nodes: Dict[int, Any] = {}
        self._alive: List[Any] = []  # an id is that of one tensor for as long as it lives

    def know(self, tensor: Tensor, node: Any) -> None:
        """From here on the tensor is the value of the node."""
        self._nodes[id(tensor)] = node
        self._alive.append(tensor)

    def node_of(self, tensor: Tensor) -> Any:
        """The node whose value a tensor is."""
        if id(tensor) not in self._nodes:
            self.know(tensor, self._unknown(self, tensor))
        return self._nodes[id(tensor)]

    def argument(self, value: Any) -> Any:
        """A value as an argument of a node."""
        if isinstance(value, Tensor):
            return self.node_of(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*(self.argument(v) for v in value))
        if isinstance(value, tuple):
            return tuple(self.argument(v) for v in value)
        if isinstance(value, list):
            return [self.argument(v) for v in value]
        if isinstance(value, dict):
            return {key: self.argument(v) for key, v in value.items()}
        if isinstance(value, slice):
            return slice(*(self.argument(v) for v in (value.start, value.stop, value.step)))
        return value

    def __torch_function__(
        self, func: Callable, types: Sequence[type], args: Tuple = (), kwargs: Optional[Dict] = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in _TAKES_NUMBERS:
            self.took_number(name)
            return func(*args, **kwargs)
        made_args, made_kwargs = self.argument(tuple(args)), self.argument(dict(kwargs))
        result = func(*args, **kwargs)
        if name == "__set__":
            raise NotImplementedError(f"fx: expected no assignment to {func.__self__.__name__}")  # type: ignore[attr-defined]
        if not _holds_tensor(result) and not _writes(name):
            return result
        self._keep(self._node(func, name, made_args, made_kwargs, args), result)
        return result

    def _node(self, func: Callable, name: str, args: Tuple, kwargs: Dict, given: Tuple) -> Any:
        if name == "__get__":
            return self.graph.call_function(getattr, (args[0], func.__self__.__name__))  # type: ignore[attr-defined]
        if overrides.is_tensor_method_or_property(func) and given:
            return self.graph.call_method(name, args, kwargs)
        return self.graph.call_function(func, args, kwargs)

    def _keep(self, node: Any, result: Any) -> None:
        node.meta["example_value"] = result
        if isinstance(result, Tensor):
            self.know(result, node)
        elif isinstance(result, (tuple, list)):
            for index, value in enumerate(result):
                if _holds_tensor(value):
                    part = self.graph.call_function(getitem, (node, index))
                    self._keep(part, value)

    def took_number(self, name: str) -> None:
        """The program made a value of Python's out of a tensor."""
        self.escapes.append(name)

    def __enter__(self) -> "Recorder":
        self._before, _state.recorder = current(), self
        super().__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        super().__exit__(*exc)
        _state.recorder = self._before


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, Tensor):
        return True
    if isinstance(value, (tuple, list)):
        return any(_holds_tensor(v) for v in value)
    return False


def _writes(name: str) -> bool:
    is_special = name.startswith("__") and name.endswith("__")
    return name == "__setitem__" or (name.endswith("_") and not is_special)


class Recording:
    """The record of a program: the recorder, and the values it was given and returned."""

    def __init__(self, recorder: Recorder, inputs: List[Any], result: Any) -> None:
        self.recorder, self.inputs, self.result = recorder, inputs, result
        self.graph = recorder.graph
        self.root: Any = nn.Module()

    def as_function(self) -> GraphModule:
        """The module of the graph, which takes the arguments and returns the values of the
        program."""
        leaves, form = pytree.tree_flatten(self.result)
        made = [self.recorder.argument(leaf) for leaf in leaves]
        value = pytree.tree_unflatten(made, form)
        self.graph.output(value)
        return GraphModule(self.root, self.graph)


def record(program: Callable, args: Sequence[Any], root: Optional[nn.Module] = None) -> Recording:
    """Run a program on examples and record it. Its arguments are those of the graph, tensors in
    lists and dictionaries one by one; tensors of `root` are read from it, others are kept."""
    paths: Dict[int, str] = {}
    holder = nn.Module() if root is None else root
    if root is not None:
        for name, value in [*root.named_parameters(), *root.named_buffers()]:
            paths.setdefault(id(value), name)

    def unknown(recorder: Recorder, tensor: Tensor) -> Any:
        path = paths.get(id(tensor))
        if path is None:
            number = 0
            while hasattr(holder, f"_tensor_constant{number}"):
                number += 1
            path = f"_tensor_constant{number}"
            setattr(holder, path, tensor)
        return recorder.graph.create_node("get_attr", path)

    recorder = Recorder(unknown)
    inputs: List[Any] = []
    for index, value in enumerate(pytree.tree_leaves(list(args))):
        node = recorder.graph.placeholder(f"arg{index}_1")
        if isinstance(value, Tensor):
            recorder.know(value, node)
        inputs.append(value)
    with recorder:
        result = program(*args)
    made = Recording(recorder, inputs, result)
    made.root = holder
    return made


__all__ = ["Recorder", "Recording", "current", "record"]

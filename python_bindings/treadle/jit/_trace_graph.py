"""The graph of one run of a module or a function: what tools count operations by.

    graph, result = treadle.jit._get_trace_graph(model, (x,))
    for node in graph.nodes():
        print(node.kind(), [value.type() for value in node.inputs()])

Each call of the library that has an operator of its name is a node, with the operator's arguments
in order; others are looked into. The run is a plain one, so the graph has the sizes and the branch
of these inputs, and nothing can be run from it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from treadle._C import Tensor
from treadle.jit import _type_objects
from treadle.overrides import TorchFunctionMode


class TracedTensorType(_type_objects.TensorType):
    """Tensors of these sizes and this dtype."""

    def __init__(self, tensor: Tensor) -> None:
        self._sizes, self._dtype = list(tensor.shape), tensor.dtype
        self._device = tensor.device

    def kind(self) -> str:
        """As of all tensors."""
        return "TensorType"

    def sizes(self) -> List[int]:
        """The sizes."""
        return list(self._sizes)

    def dim(self) -> int:
        """How many there are."""
        return len(self._sizes)

    def dtype(self) -> Any:
        """The dtype."""
        return self._dtype

    def device(self) -> Any:
        """The device."""
        return self._device

    def str(self) -> Any:
        name = str(self._dtype).rpartition(".")[2]
        return f"{name}({', '.join(map(str, self._sizes))})"


class Value:
    """The value on an edge of the graph: a tensor's sizes, or a number or text itself."""

    def __init__(self, node: "Node", number: int, value: Any) -> None:
        self._node, self._number = node, number
        self._is_tensor = isinstance(value, Tensor)
        self._type: Any = None
        if self._is_tensor:
            self._type = TracedTensorType(value)
        self._value = None if self._is_tensor else value

    def node(self) -> "Node":
        """Where it comes from."""
        return self._node

    def unique(self) -> int:
        """Its number in the graph."""
        return self._number

    def debugName(self) -> str:  # noqa: N802
        """The number as text."""
        return str(self._number)

    def isCompleteTensor(self) -> bool:  # noqa: N802
        """Whether it is a tensor, whose sizes are known."""
        return self._is_tensor

    def type(self) -> Any:
        """Its type: for a tensor one with sizes()."""
        return _type_of(self._value) if self._type is None else self._type

    def toIValue(self) -> Any:  # noqa: N802
        """The number, text or list that it is; None for a tensor."""
        return self._value


def _type_of(value: Any) -> Any:
    simple = {bool: "BoolType", int: "IntType", float: "FloatType", str: "StringType",
              complex: "ComplexType", type(None): "NoneType"}  # fmt: skip
    if type(value) in simple:
        return getattr(_type_objects, simple[type(value)]).get()
    if isinstance(value, (list, tuple)) and value:
        return _type_objects.ListType(_type_of(value[0]))
    return _type_objects.AnyType.get()


class Node:
    """A call of an operator, or where a value comes from ("prim::Constant", "prim::Param")."""

    def __init__(self, kind: str, scope: str, inputs: Sequence[Value]) -> None:
        self._kind, self._scope, self._inputs = kind, scope, list(inputs)
        self._outputs: List[Value] = []

    def kind(self) -> str:
        """The name of the operator, "aten::linear"."""
        return self._kind

    def scopeName(self) -> str:  # noqa: N802
        """The scopes that were pushed when it was called, "/" between."""
        return self._scope

    def inputs(self) -> Iterator[Value]:
        """The arguments, in the operator's order."""
        return iter(self._inputs)

    def outputs(self) -> Iterator[Value]:
        """The results."""
        return iter(self._outputs)

    def inputsSize(self) -> int:  # noqa: N802
        """How many arguments there are."""
        return len(self._inputs)

    def outputsSize(self) -> int:  # noqa: N802
        """How many results there are."""
        return len(self._outputs)

    def output(self) -> Value:
        """The one result. RuntimeError where there are several."""
        if len(self._outputs) != 1:
            raise RuntimeError(f"output: expected one result, got {len(self._outputs)}")
        return self._outputs[0]

    def __str__(self) -> str:
        made = ", ".join(f"%{v.debugName()} : {v.type()}" for v in self._outputs)
        if self._kind == "prim::Constant":
            return f"{made} = {self._kind}[value={self._outputs[0].toIValue()!r}]()"
        given = ", ".join(f"%{v.debugName()}" for v in self._inputs)
        where = f" # scope: {self._scope}" if self._scope else ""
        return f"{made} = {self._kind}({given}){where}"


class Graph:
    """The nodes of a run, in order."""

    def __init__(self) -> None:
        self._nodes: List[Node] = []
        self._inputs: List[Value] = []
        self._outputs: List[Value] = []

    def nodes(self) -> Iterator[Node]:
        """The nodes."""
        return iter(self._nodes)

    def inputs(self) -> Iterator[Value]:
        """The values that no node made: arguments, parameters and buffers."""
        return iter(self._inputs)

    def outputs(self) -> Iterator[Value]:
        """The tensors of the result."""
        return iter(self._outputs)

    def findAllNodes(self, kind: str) -> List[Node]:  # noqa: N802
        """The nodes of an operator."""
        return [node for node in self._nodes if node.kind() == kind]

    def __str__(self) -> str:
        given = ", ".join(f"%{v.debugName()} : {v.type()}" for v in self._inputs)
        lines = [f"graph({given}):", *(f"  {node}" for node in self._nodes)]
        results = ", ".join(f"%{v.debugName()}" for v in self._outputs)
        return "\n".join([*lines, f"  return ({results})", ""])


class TracingState:
    """The run that is going on: its graph, and the scopes that hooks push."""

    def __init__(self) -> None:
        self.graph = Graph()
        self._scopes: List[str] = []
        self._values: Dict[int, Value] = {}
        self._kept: List[Tensor] = []  # so that no other tensor has the same id
        self._count = 0

    def push_scope(self, name: str) -> None:
        """Nodes are below this name from here on."""
        self._scopes.append(name)

    def pop_scope(self) -> None:
        """The end of push_scope(). RuntimeError without one."""
        if not self._scopes:
            raise RuntimeError("pop_scope: expected a scope that was pushed, got none")
        self._scopes.pop()

    def _new(self, node: Node, value: Any) -> Value:
        made = Value(node, self._count, value)
        self._count += 1
        node._outputs.append(made)
        if isinstance(value, Tensor):
            self._values[id(value)] = made
            self._kept.append(value)
        return made

    def _node(self, kind: str, inputs: Sequence[Value]) -> Node:
        node = Node(kind, "/".join(self._scopes), inputs)
        self.graph._nodes.append(node)
        return node

    def _value(self, argument: Any) -> Value:
        if isinstance(argument, Tensor):
            if id(argument) not in self._values:
                given = self._new(Node("prim::Param", "", ()), argument)
                self.graph._inputs.append(given)
            return self._values[id(argument)]
        if isinstance(argument, (list, tuple)) and any(isinstance(a, Tensor) for a in argument):
            parts = [self._value(part) for part in argument]
            return self._new(self._node("prim::ListConstruct", parts), None)
        return self._new(self._node("prim::Constant", ()), argument)

    def record(self, kind: str, arguments: Sequence[Any], results: Sequence[Tensor]) -> None:
        """A call and its results."""
        node = self._node(kind, [self._value(argument) for argument in arguments])
        for result in results:
            self._new(node, result)


# The run of this moment, which torch._C._get_tracing_state() gives.
current: Optional[TracingState] = None


# ---- from calls to operators ---------------------------------------------------------------------

# Names of arguments in functions for those in the operators of the same name.
_ALIASES = {"self": "input", "indices": "input", "train": "training"}
_MISSING = object()


def _tensors(value: Any) -> List[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for part in value for tensor in _tensors(part)]
    if isinstance(value, dict):
        return [tensor for part in value.values() for tensor in _tensors(part)]
    return []


def _overloads(name: str) -> List[Any]:
    from treadle._ops import ops

    packet = getattr(ops.aten, name, None)
    if not hasattr(packet, "overloads"):
        return []
    schemas = [getattr(packet, overload)._schema for overload in packet.overloads()]  # type: ignore[union-attr]
    return [schema for schema in schemas if not any(a.is_out for a in schema.arguments)]


def _fits(value: Any, kind: str) -> bool:
    if value is None:
        return "?" in kind
    if isinstance(value, Tensor):
        return kind.startswith("Tensor") and "[" not in kind
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], Tensor):
        return kind.startswith("Tensor") and "[" in kind
    return not kind.startswith("Tensor")


def _by_schema(schema: Any, args: Tuple, kwargs: Dict[str, Any]) -> Optional[List[Any]]:
    """The arguments in the operator's order; None where they are not its own."""
    if len(args) > len(schema.arguments):
        # Sizes may be given one by one: view(2, 3).
        if len(schema.arguments) == 2 and all(isinstance(a, int) for a in args[1:]):
            return _by_schema(schema, (args[0], list(args[1:])), kwargs)
        return None
    found = []
    for place, argument in enumerate(schema.arguments):
        names = (argument.name, _ALIASES.get(argument.name, argument.name))
        value = args[place] if place < len(args) else _MISSING
        if value is _MISSING:
            value = next((kwargs[n] for n in names if n in kwargs), argument.default_value)
            if not argument.has_default_value() and not any(n in kwargs for n in names):
                return None
        elif argument.kwarg_only:
            return None
        if not _fits(value, str(argument.type)):
            return None
        found.append(value)
    return found


def _by_name(schema: Any, given: Dict[str, Any]) -> Optional[List[Any]]:
    """The same for a function in Python, whose arguments may be in another order."""
    found = []
    for argument in schema.arguments:
        names = (argument.name, _ALIASES.get(argument.name, argument.name))
        name = next((n for n in names if n in given), None)
        if name is None and not argument.has_default_value() and argument.name != "cudnn_enabled":
            return None
        value = argument.default_value if name is None else given[name]
        found.append(True if name is None and argument.name == "cudnn_enabled" else value)
    return found


def _arguments(func: Callable, name: str, args: Tuple, kwargs: Dict[str, Any]) -> Optional[List]:
    """The arguments of the operator of a call's name; None where there is no such operator."""
    if name == "einsum":
        operands = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:]
        return [args[0], list(operands), None]
    schemas = _overloads(name)
    if inspect.isfunction(func):
        bound = inspect.signature(func).bind(*args, **kwargs)
        bound.apply_defaults()
        made = (_by_name(schema, dict(bound.arguments)) for schema in schemas)
    else:
        made = (_by_schema(schema, args, kwargs) for schema in schemas)
    return next((found for found in made if found is not None), None)


def _as_convolution(name: str, given: List[Any]) -> List[Any]:
    """The arguments of a convolution as those of the one operator that all kinds are of."""
    x, weight, bias, stride, padding = given[:5]
    if "transpose" in name:
        output_padding, groups, dilation = given[5:8]
        transposed = True
    else:
        dilation, groups = given[5:7]
        output_padding, transposed = 0, False
    rest = [dilation, transposed, output_padding, groups, False, False, True, True]
    return [x, weight, bias, stride, padding, *rest]


class _Recorder(TorchFunctionMode):
    def __init__(self, state: TracingState) -> None:
        self.state = state

    def __torch_function__(
        self, func: Callable, types: Any, args: Tuple = (), kwargs: Optional[Dict] = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", str(func))
        given = None if name in ("__get__", "__set__") else _arguments(func, name, args, kwargs)
        if given is not None:
            result = func(*args, **kwargs)
            kind = f"aten::{name}"
            if name.startswith("conv") and name[-1] == "d":
                kind, given = "aten::_convolution", _as_convolution(name, given)
            if _tensors(result):
                self.state.record(kind, given, _tensors(result))
            return result
        before = len(self.state.graph._nodes)
        inner = getattr(func, "__wrapped__", None)
        if inner is None:  # nothing to look into
            result = func(*args, **kwargs)
        else:
            with self:
                result = inner(*args, **kwargs)
        made = [t for t in _tensors(result) if id(t) not in self.state._values]
        if made and len(self.state.graph._nodes) == before and name not in ("__get__", "__set__"):
            self.state.record(f"aten::{name.strip('_')}", _tensors([args, kwargs]), made)
        return result


def _get_trace_graph(
    f: Callable,
    args: Any = (),
    kwargs: Optional[Dict[str, Any]] = None,
    strict: bool = True,
    _force_outplace: bool = False,
    return_inputs: bool = False,
    _return_inputs_states: bool = False,
) -> Tuple:
    """(graph, result) of f(*args, **kwargs), a module or function; with return_inputs the inputs
    behind. NotImplementedError for _return_inputs_states."""
    from treadle import jit

    global current
    if _return_inputs_states:
        raise NotImplementedError("_get_trace_graph: expected no _return_inputs_states, got True")
    given = args if isinstance(args, tuple) else (args,)
    before, current = current, TracingState()
    state = current
    try:
        for tensor in _tensors([given, kwargs or {}]):
            state._value(tensor)
        with jit._tracing(), _Recorder(state):
            result = f(*given, **(kwargs or {}))
    finally:
        current = before
    state.graph._outputs = [state._value(tensor) for tensor in _tensors(result)]
    return (state.graph, result, given) if return_inputs else (state.graph, result)

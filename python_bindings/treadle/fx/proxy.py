"""Proxy: what stands for a value while a program is traced, and records what is done with it."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dis
import operator
import os
import sys
import traceback
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional, Tuple

from treadle import overrides
from treadle._functions.linear_algebra import einsum
from treadle.fx import traceback as fx_traceback
from treadle.fx._code import magic_methods, reflectable_magic_methods
from treadle.fx.graph import Graph
from treadle.fx.node import Argument, Node, Target, base_types, map_aggregate

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

_FLOW = "symbolically traced variables cannot be used as inputs to control flow"


class TraceError(ValueError):
    """The program does something with a stand-in that cannot be recorded."""


class Scope(NamedTuple):
    """A module in whose call nodes are made: its path and its class."""

    module_path: str
    module_type: Any


class ScopeContextManager:
    """A block in whose nodes a module is the one that made them."""

    def __init__(self, scope: "_MutableScope", current_scope: Scope) -> None:
        self._scope = scope
        self._before = Scope(scope.module_path, scope.module_type)
        scope.module_path, scope.module_type = current_scope

    def __enter__(self) -> "_MutableScope":
        return self._scope

    def __exit__(self, *_: Any) -> None:
        self._scope.module_path, self._scope.module_type = self._before


class _MutableScope:
    """The innermost module that is being called."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path, self.module_type = module_path, module_type


class TracerBase:
    """A recorder: it turns what a program does into nodes of `graph`."""

    graph: Graph
    # Whether nodes remember where in the program they come from.
    record_stack_traces: bool = False
    # Whether `if` on the size of something is not looked at, as sizes are taken for fixed.
    check_mutable_operations: bool = False
    # Whether an assertion on a stand-in becomes a node.
    trace_asserts: bool = False
    # Whether buffers, too, are stand-ins when the program reads them.
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    module_stack: Dict[str, Any]
    node_name_to_scope: Dict[str, Tuple[str, type]]
    scope: Any = None

    def create_node(
        self,
        kind: str,
        target: Target,
        args: Tuple[Argument, ...],
        kwargs: Dict[str, Argument],
        name: Optional[str] = None,
        type_expr: Optional[Any] = None,
    ) -> Node:
        """A node of the graph, of arguments that are nodes or values already."""
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        scope = self.scope
        if scope is not None:
            names = getattr(self, "node_name_to_scope", None)
            if names is not None:
                names[node.name] = (scope.module_path, scope.module_type)
        if fx_traceback.has_preserved_node_meta():
            for field, value in fx_traceback.get_current_meta().items():
                if field != "from_node":
                    node.meta[field] = value
        elif getattr(self, "module_stack", None):
            node.meta["nn_module_stack"] = dict(self.module_stack)
        if self.record_stack_traces and not node.stack_trace:
            node.stack_trace = "".join(_stack_of_program().format())
        return node

    def proxy(self, node: Node) -> "Proxy":
        """The stand-in for the value of a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: Tuple[Any, ...],
        kwargs: Dict[str, Any],
        name: Optional[str] = None,
        type_expr: Optional[Any] = None,
        proxy_factory_fn: Optional[Callable[[Node], "Proxy"]] = None,
    ) -> "Proxy":
        """The stand-in for what a new node computes. The arguments may hold stand-ins."""
        made_args = self.create_arg(args)
        made_kwargs = self.create_arg(kwargs)
        if not isinstance(made_args, tuple) or not isinstance(made_kwargs, dict):
            raise AssertionError(
                "create_proxy: expected a tuple and a dictionary of arguments, got "
                f"{type(made_args).__name__} and {type(made_kwargs).__name__}"
            )
        node = self.create_node(kind, target, made_args, made_kwargs, name, type_expr)
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def create_arg(self, a: Any) -> Argument:
        """A value as an argument of a node: stand-ins become their nodes, also in tuples, lists,
        dictionaries, slices, ranges and data classes. NotImplementedError for what has no place in
        a graph."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            made = [self.create_arg(value) for value in a]
            return type(a)(*made) if hasattr(a, "_fields") else tuple(made)
        if isinstance(a, list):
            return [self.create_arg(value) for value in a]
        if isinstance(a, dict):
            return {self._key(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(*(self.create_arg(v) for v in (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(*(self.create_arg(v) for v in (a.start, a.stop, a.step)))
        if isinstance(a, Node) or a is None or a is ... or isinstance(a, base_types):
            return a
        if hasattr(a, "__dataclass_fields__") and not isinstance(a, type):
            fields = {
                name: self.create_arg(getattr(a, name)) for name in type(a).__dataclass_fields__
            }
            return self.create_node("call_function", type(a), (), fields)
        if isinstance(a, type) or callable(a):
            return a
        raise NotImplementedError(f"fx: expected a value that code can hold, got {type(a)}")

    def _key(self, key: Any) -> Any:
        made = self.create_arg(key)

        def refuse(value: Any) -> Any:
            if isinstance(value, Node):
                raise RuntimeError(
                    f"fx: expected keys of dictionaries without traced values, got {value}"
                )
            return value

        map_aggregate(made, refuse)
        return made

    def to_bool(self, obj: "Proxy") -> bool:
        """The truth of a stand-in, for `if`: TraceError, unless a subclass knows better."""
        raise TraceError(_FLOW)

    def iter(self, obj: "Proxy") -> Iterator:
        """The items of a stand-in, for a loop: TraceError, unless a subclass knows better."""
        raise TraceError(
            "Proxy object cannot be iterated: the program loops over a traced value, or passes it "
            "as *args or **kwargs, and its length is not known while it is traced"
        )

    def keys(self, obj: "Proxy") -> Any:
        """The keys of a stand-in, for `**`: another stand-in."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Records at the end of a graph that is given: for programs that build graphs by hand."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.scope = _MutableScope("", None)
        self.module_stack = {}
        self.node_name_to_scope = {}


def assert_fn(x: Any) -> None:
    """An assertion as a function that nodes call."""
    assert x


def _stack_of_program() -> traceback.StackSummary:
    """The frames of the program that is traced, without those of the tracer."""
    frames = [frame for frame in traceback.extract_stack() if not _is_of_tracer(frame.filename)]
    return traceback.StackSummary.from_list(frames)


def _is_of_tracer(path: str) -> bool:
    below = os.path.relpath(path, _PACKAGE).replace(os.sep, "/")
    return below.startswith(("fx/", "nn/modules/module"))


class Proxy:
    """A stand-in for the value of a node: operators, methods and functions of the library that
    it is given to become nodes of the graph."""

    def __init__(self, node: Node, tracer: Optional[TracerBase] = None) -> None:
        self.node = node
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> "Attribute":
        # Copies and pickles make an object without calling __init__.
        if k in ("tracer", "node"):
            raise AttributeError(k)
        return Attribute(self, k)

    def __getstate__(self) -> Dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__ = state

    def __deepcopy__(self, memo: Dict[int, Any]) -> "Proxy":
        raise TraceError(
            f"deepcopy: expected a value, got {self}, which only stands for one while the program "
            "is traced"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> "Proxy":
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator["Proxy"]:
        count = _unpacked_into(sys._getframe(1))
        if count is not None:
            return (self[i] for i in range(count))  # type: ignore[index]
        return self.tracer.iter(self)

    def __abs__(self) -> "Proxy":
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _is_assertion(sys._getframe(1)):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be "
            "recorded, please call fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(
        cls,
        orig_method: Callable[..., Any],
        types: Any,
        args: Tuple[Any, ...] = (),
        kwargs: Optional[Dict[str, Any]] = None,
    ) -> "Proxy":
        kwargs = kwargs or {}
        tracer = _tracer_of(args, kwargs)
        if overrides.is_tensor_method_or_property(orig_method):
            name = orig_method.__name__
            if name in ("__get__", "__set__"):
                attribute = orig_method.__self__.__name__  # type: ignore[attr-defined]
                return tracer.create_proxy("call_function", getattr, (args[0], attribute), {})
            return tracer.create_proxy("call_method", name, args, kwargs)
        if orig_method is einsum and len(args) == 2 and isinstance(args[1], (list, tuple)):
            args = (args[0], *args[1])  # the one form of the two that passes look for
        return tracer.create_proxy(
            "call_function",
            orig_method,
            args,
            kwargs,
            name=tracer.graph._target_to_str(getattr(orig_method, "__name__", "call")),
        )


def _tracer_of(args: Any, kwargs: Any) -> TracerBase:
    """The tracer of the stand-ins among arguments. TraceError if there are several."""
    found: Dict[int, TracerBase] = {}

    def look(value: Any) -> Any:
        if isinstance(value, Proxy):
            found[id(value.tracer)] = value.tracer
        return value

    map_aggregate(args, look)
    map_aggregate(kwargs, look)
    if len(found) > 1:
        kinds = ", ".join(type(tracer).__name__ for tracer in found.values())
        raise TraceError(f"fx: expected stand-ins of one tracer, got those of {kinds}")
    return next(iter(found.values()))


def _instruction(frame: Any) -> Tuple[list, Optional[int]]:
    """The instructions of a frame's code, and which of them runs."""
    instructions = [
        i for i in dis.get_instructions(frame.f_code) if i.opname not in ("CACHE", "EXTENDED_ARG")
    ]
    for index, instruction in enumerate(instructions):
        if instruction.offset == frame.f_lasti:
            return instructions, index
    return instructions, None


def _unpacked_into(frame: Any) -> Optional[int]:
    """The number of names in `a, b = proxy`, if that is what the frame does."""
    instructions, index = _instruction(frame)
    if index is not None and instructions[index].opname == "UNPACK_SEQUENCE":
        return instructions[index].argval
    return None


def _is_assertion(frame: Any) -> bool:
    """Whether the frame is at the condition of an `assert`."""
    instructions, index = _instruction(frame)
    if index is None:
        return False
    after = [i.opname for i in instructions[index : index + 5] if i.opname != "TO_BOOL"]
    return any(name.startswith(("POP_JUMP", "JUMP")) for name in after[:2]) and any(
        name == "LOAD_ASSERTION_ERROR" or name == "LOAD_COMMON_CONSTANT" for name in after
    )


class Attribute(Proxy):
    """`proxy.name`, which becomes a node when it is used other than by a call."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Optional[Node] = None

    def __getattr__(self, k: str) -> "Attribute":
        if k in ("root", "attr", "tracer", "_node"):
            raise AttributeError(k)
        return Attribute(self, k)

    @property
    def node(self) -> Node:
        if self._node is None:
            read = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {})
            self._node = read.node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """The stand-in of a parameter, whose shape is known."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        return self.param.shape

    def size(self, *args: Any) -> Any:
        return self.param.size(*args)

    def dim(self) -> int:
        return self.param.dim()

    @property
    def ndim(self) -> int:
        return self.param.ndim

    def numel(self) -> int:
        return self.param.numel()

    def nelement(self) -> int:
        return self.param.nelement()


class MetaProxy(Proxy):
    """A stand-in with an example of its value: its functions run on the example as well."""

    def __init__(
        self, node: Node, tracer: Optional[TracerBase] = None, fake_mode: Optional[Any] = None
    ) -> None:
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self) -> str:
        return f"MetaProxy({self.node.name})"

    @classmethod
    def __torch_function__(
        cls,
        orig_method: Callable[..., Any],
        types: Any,
        args: Tuple[Any, ...] = (),
        kwargs: Optional[Dict[str, Any]] = None,
    ) -> Proxy:
        kwargs = kwargs or {}
        first = next(a for a in args if isinstance(a, cls))
        made = Proxy.__torch_function__(orig_method, types, args, kwargs)
        proxy = MetaProxy(made.node, made.tracer, first.fake_mode)

        def example(value: Any) -> Any:
            return value.node.meta["val"] if isinstance(value, Proxy) else value

        plain_args, plain_kwargs = map_aggregate(args, example), map_aggregate(kwargs, example)
        proxy.node.meta["val"] = orig_method(*plain_args, **plain_kwargs)
        return proxy


def _operator_method(name: str) -> Callable[..., Proxy]:
    target = getattr(operator, name)

    def method(self: Proxy, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", target, (self, *args), kwargs)

    method.__name__ = method.__qualname__ = f"__{name.strip('_')}__"
    return method


def _reflected_method(name: str) -> Callable[..., Proxy]:
    target = getattr(operator, name)

    def method(self: Proxy, rhs: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", target, (rhs, self), {})

    method.__name__ = method.__qualname__ = f"__r{name.strip('_')}__"
    return method


for _name in magic_methods:
    if hasattr(operator, _name):
        setattr(Proxy, f"__{_name.strip('_')}__", _operator_method(_name))
for _name in reflectable_magic_methods:
    if hasattr(operator, _name) and _name != "getitem":
        setattr(Proxy, f"__r{_name.strip('_')}__", _reflected_method(_name))

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "MetaProxy",
    "ParameterProxy",
    "Proxy",
    "Scope",
    "ScopeContextManager",
    "TraceError",
    "TracerBase",
    "assert_fn",
]

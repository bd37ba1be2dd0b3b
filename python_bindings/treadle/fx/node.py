"""Node: one step of a graph, and the walks over its arguments.

The meaning of `op`, for a node `n` that prints as `%n`:

    placeholder      an argument of the program: `target` its name, args[0] its default
    get_attr         a parameter or other attribute of the module: `target` its path
    call_function    target(*args, **kwargs)
    call_module      the submodule at the path `target`, called with args and kwargs
    call_method      the method `target` of args[0]
    output           what the program returns: args[0]
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import builtins
from typing import Any, Callable, Dict, List, Mapping, Optional, Set, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.functional import _assert
from treadle.fx._targets import _find_module_of_method as _find_module_of_method
from treadle.fx._targets import _get_qualified_name, _type_repr
from treadle.fx._targets import _snake_case as _snake_case
from treadle.fx.immutable_collections import immutable_dict, immutable_list

BaseArgumentTypes = Any
Argument = Any
Target = Any
base_types = (
    str,
    int,
    float,
    bool,
    complex,
    _C.dtype,
    Tensor,
    _C.device,
    _C.memory_format,
    _C.layout,
)

_legal_ops = dict.fromkeys(
    [
        "placeholder",
        "call_method",
        "call_module",
        "call_function",
        "get_attr",
        "output",
        "root",
    ]
)

# Functions that are called for what they do: their nodes stay though nobody uses them.
_side_effectful_functions: Set[Callable[..., Any]] = {
    _assert,
}


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function as called for what it does, and give it back."""
    _side_effectful_functions.add(fn)
    return fn


def _format_arg(arg: Any, max_list_len: float = float("inf")) -> str:
    """An argument as text: nodes by name, text without quotes."""
    if hasattr(arg, "_custom_fx_repr_fn"):
        return arg._custom_fx_repr_fn()
    if isinstance(arg, Node):
        return "%" + str(arg)
    if isinstance(arg, list) or type(arg) is tuple:
        shown = [_format_arg(a) for i, a in enumerate(arg) if i < max_list_len]
        if len(arg) > max_list_len:
            shown.append(f"...[total_len={len(arg)}]")
        if isinstance(arg, list):
            return f"[{', '.join(shown)}]"
        return f"({', '.join(shown)}{',' if len(arg) == 1 else ''})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {_format_arg(v)}" for k, v in arg.items()) + "}"
    return str(arg)


class Node:
    """One step of a graph. Graph's methods make nodes; they stand in the graph in order."""

    _base = Any
    # Set for each node.
    graph: Any = None
    name: str = ""
    op: str = ""
    target: Target = ""
    type: Any = None
    users: Dict["Node", None] = {}
    meta: Dict[str, Any] = {}

    def __init__(
        self,
        graph: Any,
        name: str,
        op: str,
        target: Target,
        args: Tuple[Argument, ...],
        kwargs: Dict[str, Argument],
        return_type: Optional[Any] = None,
    ) -> None:
        if op not in _legal_ops:
            known = ", ".join(_legal_ops)
            raise AssertionError(f"Node: expected op to be one of {known}, got {op}")
        if op == "call_function":
            if not callable(target):
                kind = type(target).__name__
                raise ValueError(f"Node: expected the target of {op} to be a function, got {kind}")
        elif not isinstance(target, str):
            raise ValueError(
                f"Node: expected the target of {op} to be text, got {type(target).__name__}"
            )
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.users = {}
        self.meta = {}
        self._input_nodes: Dict[Node, None] = {}
        self._args: Tuple[Argument, ...] = ()
        self._kwargs: Dict[str, Argument] = immutable_dict()
        self._prev = self._next = self
        self._erased = False
        self._repr_fn: Optional[Callable[[Node], str]] = None
        self._sort_key: Any = ()
        self._update(tuple(args), dict(kwargs))

    # ---- place ----

    @property
    def next(self) -> "Node":
        """The node after this one; after the last the root, which is no step."""
        return self._next

    @property
    def prev(self) -> "Node":
        """The node before this one."""
        return self._prev

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def prepend(self, x: "Node") -> None:
        """Move a node of the same graph in front of this one."""
        if self.graph is not x.graph:
            raise AssertionError("Node.prepend: expected a node of the same graph")
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: "Node") -> None:
        """Move a node of the same graph behind this one."""
        self._next.prepend(x)

    def __lt__(self, other: "Node") -> bool:
        return self is not other and not other <= self

    def __le__(self, other: "Node") -> bool:
        node = self
        while node.op != "root":
            if node is other:
                return True
            node = node._next
        return False

    def __gt__(self, other: "Node") -> bool:
        return other < self

    def __ge__(self, other: "Node") -> bool:
        return other <= self

    # ---- arguments ----

    @property
    def args(self) -> Tuple[Argument, ...]:
        """The arguments by position. To change them, assign a new tuple."""
        return self._args

    @args.setter
    def args(self, a: Tuple[Argument, ...]) -> None:
        self._update(tuple(a), self._kwargs)

    @property
    def kwargs(self) -> Dict[str, Argument]:
        """The arguments by name. To change them, assign a new dictionary."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: Dict[str, Argument]) -> None:
        self._update(self._args, dict(k))

    @property
    def all_input_nodes(self) -> List["Node"]:
        """The nodes among the arguments, each once, in their order."""
        return list(self._input_nodes)

    def _update(self, args: Tuple[Argument, ...], kwargs: Mapping[str, Argument]) -> None:
        for node in self._input_nodes:
            node.users.pop(self, None)
        self._input_nodes = {}

        def use(node: Node) -> Node:
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node

        self._args = map_arg(args, use)
        self._kwargs = map_arg(dict(kwargs), use)

    def _update_args_kwargs(
        self, new_args: Tuple[Argument, ...], new_kwargs: Dict[str, Argument]
    ) -> None:
        self._update(new_args, new_kwargs)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Give the argument at a position another value."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Put an argument at a position, before those that are there. AssertionError for a
        position that is outside."""
        if not 0 <= idx <= len(self._args):
            raise AssertionError(
                f"Node.insert_arg: expected a position from 0 to {len(self._args)}, got {idx}"
            )
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Give the argument of a name another value."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: "Node", new_input: "Node") -> None:
        """Use a node wherever the arguments have another one."""

        def swap(node: Node) -> Node:
            return new_input if node is old_input else node

        module = self.graph.owning_module
        for hook in getattr(module, "_replace_hooks", None) or ():
            hook(old=old_input, new=new_input.name, user=self)
        self._update(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    def replace_all_uses_with(
        self,
        replace_with: "Node",
        delete_user_cb: Callable[["Node"], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> List["Node"]:
        """Let the users of this node use another one: those for which the function says True. They
        are returned. AssertionError for propagate_meta=True if the other node has `meta`."""
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Node.replace_all_uses_with: expected a node without meta for "
                    f"propagate_meta=True, got {len(replace_with.meta)} of them"
                )
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    # ---- what it is ----

    @property
    def stack_trace(self) -> Optional[str]:
        """Where in the program the step is written, if the tracer recorded it."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: Optional[str]) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the step does more than compute a value, so that it has to stay though nobody
        uses it. Random numbers count for it unless `impure_random` is False."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            schema = getattr(self.target, "_schema", None)
            if schema is not None and getattr(schema, "is_mutable", False):
                return True
            if impure_random and _draws_numbers(self.target):
                return True
            # Named, not listed: these operators are defined when they are first asked for.
            if str(self.target).startswith("profiler._record_function_"):
                return True
            return self.target in _side_effectful_functions
        if self.op == "call_method":
            return self.target.endswith("_") and not self.target.endswith("__")
        if self.op == "call_module":
            module = self.graph.owning_module
            if module is None:
                raise AssertionError("Node.is_impure: expected a graph that a module owns")
            try:
                return getattr(module.get_submodule(self.target), "_is_impure", False)
            except AttributeError:
                return False
        return False

    def normalized_arguments(
        self,
        root: Any,
        arg_types: Optional[Tuple[Any, ...]] = None,
        kwarg_types: Optional[Dict[str, Any]] = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> Optional[Any]:
        """The arguments as the signature of what is called orders them, as a pair (args, kwargs);
        None where there is no signature."""
        from treadle.fx.operator_schemas import normalize_function, normalize_module

        if self.op == "call_function":
            return normalize_function(
                self.target,
                self.args,
                self.kwargs,
                arg_types,
                kwarg_types,
                normalize_to_only_use_kwargs,
            )
        if self.op == "call_module":
            return normalize_module(
                root, self.target, self.args, self.kwargs, normalize_to_only_use_kwargs
            )
        return None

    # ---- text ----

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    def _pretty_print_target(self, target: Target) -> str:
        if isinstance(target, str):
            return target
        if hasattr(target, "__module__"):
            name = getattr(target, "__name__", None)
            if name is None:
                return _get_qualified_name(target)
            if getattr(builtins, name, None) is target:
                return f"builtins.{name}"
        return _get_qualified_name(target)

    def format_node(
        self,
        placeholder_names: Optional[List[str]] = None,
        maybe_return_typename: Optional[List[str]] = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> Optional[str]:
        """The node as a line of text, as print(graph) has it. The names of placeholders and the
        type of the result are added to the lists that are given; such nodes then have no line."""
        typed = f"{_type_repr(self.type)} " if self.type else ""
        users = f"[num_users={len(self.users)}]"
        head = f"%{self.name} : {typed}{users} = {self.op}[target="
        if self.op == "placeholder":
            default = "" if not self.args else f"(default={self.args[0]})"
            if placeholder_names is not None:
                placeholder_names.append(f"%{self.target}{': ' + typed if typed else ''}{default}")
                return None
            return f"{head}{self.target}]{default}"
        if self.op == "get_attr":
            return f"{head}{self._pretty_print_target(self.target)}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        return (
            f"{head}{self._pretty_print_target(self.target)}]"
            f"(args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"
        )

    def _rename(self, candidate: str) -> None:
        """Take another name; a number is added where it is taken."""
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, self)


def _draws_numbers(target: Any) -> bool:
    from treadle._introspection.tags import Tag

    tags = getattr(target, "tags", None)
    if tags is not None:
        try:
            return Tag.nondeterministic_seeded in tags
        except (AttributeError, TypeError):
            return False
    name = getattr(target, "__name__", "")
    return name in ("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "bernoulli")


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """The argument with fn(node) in place of each node in it; lists and dictionaries become ones
    that cannot be changed."""
    if not callable(fn):
        raise AssertionError(f"map_arg: expected a function, got {type(fn).__name__}")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """The argument with fn(value) in place of each value in its tuples, lists, dictionaries and
    slices, which become ones that cannot be changed."""
    if isinstance(a, tuple):
        values = [map_aggregate(value, fn) for value in a]
        if hasattr(a, "_fields"):
            return type(a)(*values)
        return tuple(values) if type(a) in (tuple, _C.Size) else _same_kind(a, values)
    if isinstance(a, list):
        return immutable_list([map_aggregate(value, fn) for value in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(value, fn) for key, value in a.items()})
    if isinstance(a, slice):
        return slice(*(map_aggregate(v, fn) for v in (a.start, a.stop, a.step)))
    return fn(a)


def _same_kind(like: tuple, values: List[Any]) -> tuple:
    try:
        return type(like)(values)
    except TypeError:
        return tuple(values)


__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

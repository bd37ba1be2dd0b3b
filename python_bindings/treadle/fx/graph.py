"""Graph: the steps of a program in order, with the means to add, move and erase them.

Example:

    graph = treadle.fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(treadle.relu, (x,))
    graph.output(y)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from treadle import _C
from treadle.fx import _targets
from treadle.fx._code import CodeGen, Namespace, PythonCode
from treadle.fx._code import _PyTreeCodeGen as _PyTreeCodeGen
from treadle.fx._code import _PyTreeInfo as _PyTreeInfo
from treadle.fx._code import dtype_abbrs as _dtype_abbrs
from treadle.fx._code import inplace_methods as inplace_methods
from treadle.fx._code import magic_methods as magic_methods
from treadle.fx._code import reflectable_magic_methods as reflectable_magic_methods
from treadle.fx.node import Argument, Node, Target, map_arg

_Namespace = Namespace
dtype_abbrs = _dtype_abbrs()
py_sym_types = (_C.SymInt, _C.SymFloat, _C.SymBool) if hasattr(_C, "SymInt") else ()


class _node_list:  # noqa: N801
    """The nodes of a graph in order. Nodes may be added and erased while one goes through them."""

    def __init__(self, graph: "Graph", direction: str = "_next") -> None:
        if direction not in ("_next", "_prev"):
            raise AssertionError(f"nodes: expected _next or _prev, got {direction}")
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        node = getattr(self.graph._root, self.direction)
        while node is not self.graph._root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> "_node_list":
        return _node_list(self.graph, "_prev" if self.direction == "_next" else "_next")


class _InsertPoint:
    """A block in which new nodes get another place."""

    def __init__(self, graph: "Graph", new_insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.orig_insert, graph._insert = graph._insert, new_insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        self.graph._insert = self.orig_insert


class _FindNodesLookupTable:
    """The look-ups of find_nodes(): the nodes of an op, of a target."""

    def __init__(self, graph: "Graph") -> None:
        self.graph = graph

    def __contains__(self, node: Node) -> bool:
        return node in list(self.graph.nodes)

    def find_nodes(self, *, op: str, target: Optional[Target] = None) -> List[Node]:
        """The nodes of an op that have the target, if one is given, in order."""
        found = [node for node in self.graph.nodes if node.op == op]
        if target is None:
            return found
        return [node for node in found if node.target == target]


class Graph:
    """The steps of a program. `owning_module` is the module that runs it, `tracer_cls` the class of
    the tracer that made it."""

    def __init__(
        self,
        owning_module: Optional[Any] = None,
        tracer_cls: Optional[type] = None,
        tracer_extras: Optional[Dict[str, Any]] = None,
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._len = 0
        self._graph_namespace = Namespace()
        self._insert: Callable[[Node], None] = self._root.prepend
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._co_fields: Dict[str, Any] = {}
        self._find_nodes_lookup_table = _FindNodesLookupTable(self)

    @property
    def owning_module(self) -> Optional[Any]:
        """The module that runs the graph."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: Optional[Any]) -> None:
        self._owning_module = mod

    @property
    def nodes(self) -> _node_list:
        """The nodes in order: an iterable with a length, that can be reversed."""
        return _node_list(self)

    def output_node(self) -> Node:
        """The node that returns the result."""
        node = next(iter(reversed(self.nodes)))
        if node.op != "output":
            raise AssertionError(f"Graph.output_node: expected an output at the end, got {node.op}")
        return node

    def find_nodes(
        self, *, op: str, target: Optional[Target] = None, sort: bool = True
    ) -> List[Node]:
        """The nodes of an op, and of a target if one is given, in order."""
        return self._find_nodes_lookup_table.find_nodes(op=op, target=target)

    # ---- making nodes ----

    def create_node(
        self,
        op: str,
        target: Target,
        args: Optional[Tuple[Argument, ...]] = None,
        kwargs: Optional[Dict[str, Argument]] = None,
        name: Optional[str] = None,
        type_expr: Optional[Any] = None,
    ) -> Node:
        """A new node at the place of insertion, the end if no other was chosen."""
        args = () if args is None else args
        kwargs = {} if kwargs is None else kwargs
        if not isinstance(args, tuple):
            kind = type(args).__name__
            raise AssertionError(f"create_node: expected args in a tuple, got {kind}")
        if not isinstance(kwargs, dict):
            kind = type(kwargs).__name__
            raise AssertionError(f"create_node: expected kwargs in a dictionary, got {kind}")
        candidate = name if name is not None else self._target_to_str(target)
        unique = self._graph_namespace.create_name(candidate, None)
        node = Node(self, unique, op, target, args, kwargs, type_expr)
        self._graph_namespace.associate_name_with_obj(unique, node)
        for hook in getattr(self._owning_module, "_create_node_hooks", None) or ():
            hook(node)
        self._insert(node)
        self._len += 1
        return node

    def create_size_node(self, tensor_node: Node, dim: int) -> Node:
        """A node of the size of a tensor in one dimension."""
        return self.call_method("size", (tensor_node, dim))

    def create_stride_node(self, tensor_node: Node, dim: int) -> Node:
        """A node of the stride of a tensor in one dimension."""
        return self.call_method("stride", (tensor_node, dim))

    def create_storage_offset_node(self, tensor_node: Node) -> Node:
        """A node of the place of a tensor's first element in its storage."""
        return self.call_method("storage_offset", (tensor_node,))

    def placeholder(
        self, name: str, type_expr: Optional[Any] = None, default_value: Any = NotImplemented
    ) -> Node:
        """A node for an argument of the program. Its value by default is `default_value`."""
        args = () if default_value is NotImplemented else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Optional[Any] = None) -> Node:
        """A node for the attribute at a path, `"layers.0.weight"`. A warning says if the module
        that owns the graph has none there."""
        if self.owning_module is not None and not _has_path(self.owning_module, qualified_name):
            warnings.warn(
                f"Graph.get_attr: expected a module with the attribute {qualified_name}, "
                "which is to be added before the graph runs",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: Optional[Tuple[Argument, ...]] = None,
        kwargs: Optional[Dict[str, Argument]] = None,
        type_expr: Optional[Any] = None,
    ) -> Node:
        """A node that calls the submodule at a path. A warning says if there is none."""
        if self.owning_module is not None and not _has_path(self.owning_module, module_name):
            warnings.warn(
                f"Graph.call_module: expected a module with the submodule {module_name}, "
                "which is to be added before the graph runs",
                stacklevel=2,
            )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: Optional[Tuple[Argument, ...]] = None,
        kwargs: Optional[Dict[str, Argument]] = None,
        type_expr: Optional[Any] = None,
    ) -> Node:
        """A node that calls a method of args[0] with the other arguments."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: Optional[Tuple[Argument, ...]] = None,
        kwargs: Optional[Dict[str, Argument]] = None,
        type_expr: Optional[Any] = None,
        name: Optional[str] = None,
    ) -> Node:
        """A node that calls a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Argument, type_expr: Optional[Any] = None) -> Node:
        """The node that returns the result: nodes, also in tuples, lists and dictionaries."""
        return self.create_node("output", "output", args=(result,), type_expr=type_expr)

    def _target_to_str(self, target: Target) -> str:
        return _targets.name_of_target(target)

    # ---- copies ----

    def node_copy(
        self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x
    ) -> Node:
        """A node of another graph made anew here, with arg_transform(node) for each node among its
        arguments."""
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(
        self, g: "Graph", val_map: Dict[Node, Node], return_output_node: bool = False
    ) -> Optional[Argument]:
        """Make the nodes of another graph anew here. `val_map` says which nodes here stand for
        nodes of that graph and is filled. Returns what its output returns, in nodes of this
        graph; with return_output_node=True a pair of that and the output of the other graph."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return result if not return_output_node else (result, node)
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: Optional[Dict[int, Any]] = None) -> "Graph":
        memo = memo if memo is not None else {}
        made = Graph(tracer_cls=self._tracer_cls)
        val_map: Dict[Node, Node] = {}
        result = made.graph_copy(self, val_map, return_output_node=True)
        made._codegen = copy.deepcopy(self._codegen)
        if result is not None:
            value, before = result
            output = made.output(value, type_expr=getattr(before, "type", None))
            output.meta = copy.copy(before.meta)
            val_map[before] = output
        for before, after in val_map.items():
            memo[id(before)] = after
        return made

    # ---- changing ----

    def erase_node(self, to_erase: Node) -> None:
        """Take a node out. RuntimeError while others use it."""
        if to_erase.users:
            raise RuntimeError(
                f"Graph.erase_node: expected a node without users, got {to_erase}, "
                f"which {', '.join(str(user) for user in to_erase.users)} use"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Graph.erase_node: expected a node of this graph, got {to_erase}")
        if to_erase._erased:
            warnings.warn(f"Graph.erase_node: {to_erase} is erased already", stacklevel=2)
            return
        for hook in getattr(self._owning_module, "_erase_node_hooks", None) or ():
            hook(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._update((), {})

    def inserting_before(self, n: Optional[Node] = None) -> _InsertPoint:
        """A block whose new nodes stand before a node; at the beginning if none is given. Without
        `with` it holds from here on."""
        if n is None:
            return self.inserting_after(self._root)
        self._own(n, "inserting_before")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Optional[Node] = None) -> _InsertPoint:
        """A block whose new nodes stand behind a node; at the end if none is given."""
        if n is None:
            return self.inserting_before(self._root)
        self._own(n, "inserting_after")
        return _InsertPoint(self, _After(n))

    def _own(self, n: Node, name: str) -> None:
        if n.graph is not self:
            raise AssertionError(f"Graph.{name}: expected a node of this graph, got {n}")

    def eliminate_dead_code(self, is_impure_node: Optional[Callable[[Node], bool]] = None) -> bool:
        """Erase the nodes whose values nobody uses, and say whether there were any. Those stay that
        do more than compute a value: Node.is_impure() says so, or the function that is given."""
        self.lint()
        impure = is_impure_node if is_impure_node is not None else Node.is_impure
        changed = False
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
                changed = True
        return changed

    def lint(self) -> None:
        """RuntimeError if the graph is not sound: a node used before it is computed or of another
        graph, a name that is there twice, a path at which the owning module has nothing."""
        names: Set[str] = set()
        values: Set[Node] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Graph.lint: expected a node of this graph, got {node.name!r}")
            for used in node._input_nodes:
                if used.graph is not self:
                    raise RuntimeError(
                        f"Graph.lint: expected the argument {used} of {node} to be of this graph"
                    )
                if used not in values:
                    raise RuntimeError(
                        f"Graph.lint: expected the argument {used} of {node} before its use"
                    )
            values.add(node)
            if node.name in names:
                raise RuntimeError(f"Graph.lint: expected each name once, got {node.name!r} twice")
            names.add(node.name)
            self._lint_target(node)

    def _lint_target(self, node: Node) -> None:
        from treadle import nn

        if node.op == "call_function":
            if not callable(node.target):
                raise ValueError(f"Graph.lint: expected {node} to call a function")
        elif not isinstance(node.target, str):
            raise ValueError(f"Graph.lint: expected the target of {node} to be text")
        if self.owning_module is None or node.op not in ("get_attr", "call_module"):
            return
        found: Any = self.owning_module
        for part in node.target.split("."):
            if not hasattr(found, part):
                raise RuntimeError(
                    f"Graph.lint: expected the module to have {node.target}, the target of {node}, "
                    f"but {type(found).__name__} has no {part}"
                )
            found = getattr(found, part)
        if node.op == "call_module" and not isinstance(found, nn.Module):
            raise RuntimeError(
                f"Graph.lint: expected a module at {node.target}, got {type(found).__name__}"
            )

    # ---- code ----

    def process_inputs(self, *args: Any) -> Any:
        """The arguments of the graph, of those of the program."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """The results of the program, made of those of the graph."""
        return self._codegen.process_outputs(out)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Let an object of a class derived from CodeGen write the code."""
        self._codegen = codegen

    def on_generate_code(
        self, make_transformer: Callable[[Optional[Callable]], Callable[[List[str]], List[str]]]
    ) -> Any:
        """Have the lines of the body changed before they become code: make_transformer is given the
        function that does so now, or None, and returns the one to use. In a `with` block it holds
        for the block."""
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)
        return _RestoreTransformer(self._codegen, before)

    def python_code(
        self,
        root_module: str,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        **kwargs: Any,
    ) -> PythonCode:
        """The source text of the graph and the globals that it needs. `root_module` is the name of
        the module in it: "self"."""
        namespace = Namespace()
        before = [(node, node._repr_fn) for node in self.nodes]
        for node, _ in before:
            node._repr_fn = lambda n: namespace.create_name(n.name, n)
        try:
            return self._codegen._gen_python_code(
                iter(self.nodes),
                root_module,
                namespace,
                verbose=verbose,
                include_stride=include_stride,
                include_device=include_device,
                colored=colored,
                expanded_def=expanded_def,
            )
        finally:
            for node, text in before:
                node._repr_fn = text

    def __str__(self) -> str:
        types: List[str] = [""]
        lines = [
            node.format_node([], types) if node.op == "output" else node.format_node()
            for node in self.nodes
        ]
        text = f"graph(){types[0]}:"
        return text + "".join(f"\n    {line}" for line in lines if line is not None)

    def print_tabular(self) -> None:
        """Print the nodes as a table. ImportError without the package tabulate."""
        try:
            from tabulate import tabulate
        except ImportError as error:
            raise ImportError(
                "Graph.print_tabular: expected the package tabulate, which is not installed"
            ) from error
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))


class _After:
    """Puts each new node behind the one before."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def __call__(self, new: Node) -> None:
        self._node.append(new)
        self._node = new


class _RestoreTransformer:
    """Gives a CodeGen the function back that it had."""

    def __init__(self, codegen: CodeGen, before: Optional[Callable]) -> None:
        self._codegen, self._before = codegen, before

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        self._codegen._body_transformer = self._before


def _has_path(module: Any, path: str) -> bool:
    for part in path.split("."):
        if not hasattr(module, part):
            return False
        module = getattr(module, part)
    return True


__all__ = ["CodeGen", "Graph", "PythonCode"]

"""The Python code of a graph: what CodeGen writes and a GraphModule runs.

    def forward(self, x):
        linear = self.linear(x);  x = None
        relu = torch.relu(linear);  linear = None
        return relu

A value is let go behind its last use, as it would be in the program that was traced.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import builtins
import keyword
import math
import re
import types
from dataclasses import dataclass
from itertools import chain
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from treadle import _C, _names
from treadle.fx import _pytree as fx_pytree
from treadle.fx import _targets
from treadle.fx.node import Node, _get_qualified_name, _type_repr, map_arg
from treadle.utils import _pytree as pytree


@dataclass
class PythonCode:
    """The source text of a graph and the globals that it needs."""

    src: str
    globals: Dict[str, Any]
    _lineno_map: Optional[Dict[int, Optional[int]]] = None
    _prologue_start: int = 0


class _CustomBuiltin(NamedTuple):
    """A global that is always there, and the line of code that imports it."""

    import_str: str
    obj: Any


def custom_builtins() -> Dict[str, _CustomBuiltin]:
    """The globals that every code has, since the text of values mentions them."""
    package = _names.spoken()
    return {
        "inf": _CustomBuiltin("from math import inf", math.inf),
        "nan": _CustomBuiltin("from math import nan", math.nan),
        "NoneType": _CustomBuiltin("NoneType = type(None)", type(None)),
        package: _CustomBuiltin(f"import {package}", _names.package()),
        "device": _CustomBuiltin(f"from {package} import device", _C.device),
        "fx_pytree": _CustomBuiltin(f"import {package}.fx._pytree as fx_pytree", fx_pytree),
        "pytree": _CustomBuiltin(f"import {package}.utils._pytree as pytree", pytree),
    }


_RESERVED = frozenset({"inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree"})


class Namespace:
    """The names of a graph or of its code, each given once."""

    def __init__(self) -> None:
        self._of: Dict[Any, str] = {}
        self._used: Set[str] = set()
        self._last: Dict[str, int] = {}

    def create_name(self, candidate: str, obj: Optional[Any]) -> str:
        """A name made of the candidate that is not taken and no word of the language; the same
        again for the same object."""
        if obj is not None and id(obj) in self._of:
            return self._of[id(obj)]
        name = re.sub("[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if name[0].isdigit():
            name = f"_{name}"
        if self._is_taken(name, obj):
            match = re.match(r"(.*)_(\d+)$", name)
            base = match.group(1) if match else name
            number = int(match.group(2)) if match else 0
            number = max(number, self._last.get(base, 0))
            while self._is_taken(name, obj):
                number += 1
                name = f"{base}_{number}"
            self._last[base] = number
        self.associate_name_with_obj(name, obj)
        return name

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Take a name as it is for an object."""
        self._used.add(name)
        if obj is not None:
            self._of[id(obj)] = name

    def _is_taken(self, name: str, obj: Any) -> bool:
        if name in self._used or name in keyword.kwlist:
            return True
        if name in vars(builtins):
            return vars(builtins)[name] is not obj
        return (name in _RESERVED or name == _names.PACKAGE) and (
            name not in custom_builtins() or custom_builtins()[name].obj is not obj
        )


magic_methods: Dict[str, str] = {
    "eq": "{} == {}",
    "ne": "{} != {}",
    "lt": "{} < {}",
    "gt": "{} > {}",
    "le": "{} <= {}",
    "ge": "{} >= {}",
    "pos": "+{}",
    "neg": "-{}",
    "invert": "~{}",
}
reflectable_magic_methods: Dict[str, str] = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "floordiv": "{} // {}",
    "truediv": "{} / {}",
    "div": "{} / {}",
    "mod": "{} % {}",
    "pow": "{} ** {}",
    "lshift": "{} << {}",
    "rshift": "{} >> {}",
    "and_": "{} & {}",
    "or_": "{} | {}",
    "xor": "{} ^ {}",
    "getitem": "{}[{}]",
    "matmul": "{} @ {}",
}
magic_methods.update(reflectable_magic_methods)
inplace_methods: Dict[str, str] = {
    "iadd": "{} += {}",
    "iand": "{} &= {}",
    "ifloordiv": "{} //= {}",
    "ilshift": "{} <<= {}",
    "imod": "{} %= {}",
    "imul": "{} *= {}",
    "imatmul": "{} @= {}",
    "ior": "{} |= {}",
    "ipow": "{} **= {}",
    "irshift": "{} >>= {}",
    "isub": "{} -= {}",
    "itruediv": "{} /= {}",
    "ixor": "{} ^= {}",
    "setitem": "{}[{}] = {}",
}


def format_target(base: str, target: str) -> str:
    """`self.layers` and "0" as `getattr(self.layers, "0")`, where a dot would not do."""
    text = base
    for part in target.split("."):
        text = f"{text}.{part}" if part.isidentifier() else f'getattr({text}, "{part}")'
    return text


def uses_to_end(nodes: List[Node]) -> Dict[Node, List[Node]]:
    """For each node the values of which it is the last user, its own if nobody uses it."""
    last_user: Dict[Node, Node] = {}
    ends: Dict[Node, List[Node]] = {}
    for user in reversed(nodes):
        for used in user._input_nodes:
            if used not in last_user:
                last_user[used] = user
                ends.setdefault(user, []).append(used)
    for node in nodes:
        if not node.users:
            ends.setdefault(node, []).append(node)
    return ends


class Writer:
    """Writes the code of one graph: the lines of its body, and the globals that they mention."""

    def __init__(
        self, nodes: List[Node], root_module: str, namespace: Namespace, expanded_def: bool = False
    ) -> None:
        self.root_module = root_module
        self.globals: Dict[str, Any] = {}
        self.free_vars: List[str] = []
        self.wrapped: Dict[str, None] = {}
        self.returns = ""
        self._namespace = namespace
        self._ends = uses_to_end(nodes)
        for name, builtin in custom_builtins().items():
            self.globals[self._namespace.create_name(name, builtin.obj)] = builtin.obj

    def global_name(self, hint: str, obj: Any) -> str:
        """The name by which the code mentions an object."""
        if _targets.is_of_package(obj) and obj is not _C.device:
            return _get_qualified_name(obj)
        name = self._namespace.create_name(hint.replace(".", "_"), obj)
        self.globals.setdefault(name, obj)
        return name

    def type_name(self, annotation: Any) -> str:
        """A type as the code mentions it."""
        if annotation == ():
            return "()"
        text = _type_repr(annotation)
        origin = _targets.origin_of(annotation)
        if origin is not None:
            arguments = [self.type_name(a) for a in annotation.__args__]
            named = self.global_name(_type_repr(origin), origin)
            return f"{named}[{','.join(arguments)}]"
        return self.global_name(text, annotation)

    def value(self, arg: Any) -> str:
        """An argument as an expression."""
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            named = self.global_name(_type_repr(type(arg)), type(arg))
            return f"{named}({', '.join(self.value(a) for a in arg)})"
        if isinstance(arg, tuple):
            inside = ", ".join(self.value(a) for a in arg)
            return f"({inside}{',' if len(arg) == 1 else ''})"
        if isinstance(arg, list):
            return f"[{', '.join(self.value(a) for a in arg)}]"
        if isinstance(arg, dict):
            return "{" + ", ".join(f"{k!r}: {self.value(v)}" for k, v in arg.items()) + "}"
        if isinstance(arg, slice):
            return f"slice({', '.join(self.value(v) for v in (arg.start, arg.stop, arg.step))})"
        if isinstance(arg, (_C.dtype, _C.layout, _C.memory_format)):
            return _names.in_words_of_the_program(str(arg))
        if isinstance(arg, type) or _is_operator_of_library(arg):
            named = _get_qualified_name(arg)
            return self.global_name(named, arg)
        return repr(arg)

    def arguments(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> str:
        """The arguments of a call."""
        shown = [self.value(a) for a in args]
        return ", ".join(shown + [f"{k} = {self.value(v)}" for k, v in kwargs.items()])

    def _end(self, node: Node) -> str:
        if node.op == "placeholder":
            return ""
        ended = self._ends.get(node, [])
        if node.op == "output" or not ended:
            return "\n"
        return f";  {' = '.join([repr(n) for n in ended] + ['None'])}\n"

    def line(self, node: Node) -> str:
        """The code of a node, with its end of line; empty for an argument of the function."""
        return self._step(node) + self._end(node)

    def _step(self, node: Node) -> str:
        name = repr(node)
        typed = "" if node.type is None else f" : {self.type_name(node.type)}"
        if node.op == "placeholder":
            default = "" if not node.args else f" = {self.value(node.args[0])}"
            self.free_vars.append(f"{node.target}{typed}{default}")
            raw = node.target.replace("*", "")
            return "" if raw == name else f"{name} = {raw}\n"
        if node.op == "output":
            if node.type is not None:
                self.returns = f" -> {self.type_name(node.type)}"
            return self.return_of(node.args[0])
        if node.op == "get_attr":
            return f"{name}{typed} = {format_target(self.root_module, node.target)}"
        if node.op == "call_module":
            called = format_target(self.root_module, node.target)
            return f"{name}{typed} = {called}({self.arguments(node.args, node.kwargs)})"
        if node.op == "call_method":
            called = format_target(self.value(node.args[0]), node.target)
            return f"{name}{typed} = {called}({self.arguments(node.args[1:], node.kwargs)})"
        return self._function(node, name, typed)

    def return_of(self, value: Any) -> str:
        """The last line."""
        return f"return {self.value(value)}"

    def _function(self, node: Node, name: str, typed: str) -> str:
        target = node.target
        if _targets.is_operator(target) and not node.kwargs:
            shown = [self.value(a) for a in node.args]
            if target.__name__ in magic_methods:
                return f"{name}{typed} = {magic_methods[target.__name__].format(*shown)}"
            if target.__name__ in inplace_methods:
                statement = inplace_methods[target.__name__].format(*shown)
                return f"{statement};  {name}{typed} = {shown[0]}"
        qualified = _get_qualified_name(target)
        called = self.global_name(qualified.replace("operator.", "_operator."), target)
        if (
            called == "getattr"
            and len(node.args) == 2
            and isinstance(node.args[1], str)
            and node.args[1].isidentifier()
        ):
            return f"{name}{typed} = {format_target(self.value(node.args[0]), node.args[1])}"
        if node.meta.get("is_wrapped", False):
            self.wrapped.setdefault(called)
        return f"{name}{typed} = {called}({self.arguments(node.args, node.kwargs)})"


def _is_operator_of_library(arg: Any) -> bool:
    module = getattr(type(arg), "__module__", "")
    return (
        callable(arg)
        and module.partition("._ops")[1] != ""
        or isinstance(arg, (types.BuiltinFunctionType, types.FunctionType))
    )


class CodeGen:
    """How a graph becomes code. A subclass that is given to Graph.set_codegen() changes it."""

    # As what code names the function.
    _func_name: str = "forward"

    def __init__(self) -> None:
        self._body_transformer: Optional[Callable[[List[str]], List[str]]] = None

    def gen_fn_def(
        self, free_vars: List[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        """The line that begins the function, of its arguments and the text behind them."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        arguments = ", ".join(free_vars)
        if expanded_def and free_vars:
            arguments = "\n" + ",\n".join(f"    {v}" for v in free_vars) + ",\n"
        return f"def {self._func_name}({arguments}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any) -> str:
        """The line that returns a value, of the value as an expression."""
        return f"return {output_args!r}"

    def process_inputs(self, *args: Any) -> Any:
        """The arguments of the graph, of those of the function."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The results of the function, made of those of the graph."""
        return outputs

    def additional_globals(self) -> List[Tuple[str, Any]]:
        """Globals that the code of this class mentions, as pairs (name, value)."""
        return []

    def _gen_python_code(
        self,
        nodes: Iterator[Node],
        root_module: str,
        namespace: Namespace,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        **kwargs: Any,
    ) -> PythonCode:
        listed = list(nodes)
        writer = Writer(listed, root_module, namespace)
        writer.return_of = lambda value: self.generate_output(_Shown(writer, value))
        for name, value in self.additional_globals():
            writer.global_name(name, value)
        before = ""
        body: List[str] = []
        for node in listed:
            if verbose and node.op not in ("placeholder", "output"):
                where = _where(node)
                if where != before:
                    body.append(f"\n{where}\n")
                    before = where
            line = writer.line(node)
            if verbose:
                line = _with_shape(node, line, include_stride, include_device)
            body.append(line)
        if not any(part.strip() for part in body):
            body.append("pass\n")
        if self._body_transformer is not None:
            body = self._body_transformer(body)
        # After the transformer, which may have added globals by name.
        marks = "\n".join(
            f'{_names.spoken()}.fx._symbolic_trace.wrap("{name}")' for name in writer.wrapped
        )
        start = self.gen_fn_def(writer.free_vars, writer.returns, expanded_def=expanded_def)
        code = "".join(chain(body)).lstrip("\n")
        indented = "\n".join(f"    {line}" for line in code.split("\n"))
        source = f"\n{marks}\n\n{start}\n{indented}"
        return PythonCode(source, writer.globals, {}, source.count("\n", 0, source.index(start)))


class _Shown:
    """A value that shows as the expression that a writer makes of it."""

    def __init__(self, writer: Writer, value: Any) -> None:
        self._writer, self._value = writer, value

    def __repr__(self) -> str:
        return self._writer.value(self._value)

    def __len__(self) -> int:
        return len(self._value)

    def __getitem__(self, item: Any) -> Any:
        return self._value[item]


def _where(node: Node) -> str:
    """The comment that says where a node is written."""
    if not node.stack_trace:
        return "# No stacktrace found for following nodes"
    lines = [line.strip() for line in node.stack_trace.strip().split("\n")]
    for place, code in zip(lines[-2::-1], lines[:0:-1]):
        match = re.match(r'File "(.+)", line (\d+), in (.+)$', place)
        if match:
            return f"# File: {match[1]}:{match[2]} in {match[3]}, code: {code}"
    return f"# {lines[-1]}"


def _with_shape(node: Node, line: str, strides: bool, device: bool) -> str:
    """The line with dtype and shape of the value, where they are known."""
    value = node.meta.get("val", node.meta.get("example_value"))
    if value is None:
        value = node.meta.get("tensor_meta")
    if not hasattr(value, "dtype") or not hasattr(value, "shape") or " = " not in line:
        return line
    short = dtype_abbrs().get(value.dtype, str(value.dtype).split(".")[-1])  # type: ignore[union-attr]
    text = f"{short}[{', '.join(str(s) for s in value.shape)}]"  # type: ignore[union-attr]
    if strides:
        stride = value.stride() if callable(value.stride) else value.stride  # type: ignore[union-attr]
        text += f"[{', '.join(str(s) for s in stride)}]"
    if device and hasattr(value, "device"):
        text += str(value.device)  # type: ignore[union-attr]
    name, rest = line.split(" = ", 1)
    return f'{name}: "{text}" = {rest}'


def dtype_abbrs() -> Dict[Any, str]:
    """`f32` for float32, and so on, of the dtypes that there are."""
    every = (value for value in vars(_C).values() if isinstance(value, _C.dtype))
    return {dtype: dtype.abbr for dtype in every}


class _PyTreeInfo(NamedTuple):
    """The names of arguments and the forms in which a program takes and returns its values."""

    orig_args: List[str]
    in_spec: Any
    out_spec: Optional[Any]


class _PyTreeCodeGen(CodeGen):
    """Code of a program some of whose arguments are lists or dictionaries: the graph has an
    argument for each of their leaves."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        return pytree.arg_tree_leaves(*inputs)

    def process_outputs(self, out: Any) -> Any:
        if self.pytree_info is None or self.pytree_info.out_spec is None:
            return out
        leaves = out if isinstance(out, (list, tuple)) else [out]
        return pytree.tree_unflatten(list(leaves), self.pytree_info.out_spec)

    def gen_fn_def(
        self, free_vars: List[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        names = list(self.pytree_info.orig_args)
        has_self = bool(names) and names[0] == "self"
        taken = names[1:] if has_self else names
        plain = [name.split(":")[0].split("=")[0].strip() for name in free_vars]
        start = super().gen_fn_def(list(names), maybe_return_annotation, expanded_def=expanded_def)
        if plain:
            form = "self._in_spec"
            leaves = f"fx_pytree.tree_flatten_spec([{', '.join(taken)}], {form})"
            start += f"\n    {', '.join(plain)}, = {leaves}"
        return start

    def generate_output(self, output_args: Any) -> str:
        if self.pytree_info.out_spec is None:
            return super().generate_output(output_args)
        many = isinstance(output_args._value, (list, tuple))
        shown = f"{output_args!r}" if many else f"[{output_args!r}]"
        return f"return pytree.tree_unflatten({shown}, self._out_spec)"


__all__ = ["CodeGen", "PythonCode", "map_arg"]

"""What variable_type.cc.j2 shows: for each entry of a shard its node (formulas, saved values) and
its layer functions.

    context(shard)["nodes"]      # NodeClass: MulBackward0 with other_ and self_ saved
    context(shard)["functions"]  # LayerFunction: how a call of one form is recorded
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping, Optional

from . import cpp
from .model import Arg, Derivative, Entry, Form, Formula, Model, Saved, Tree

# Metadata of a saved tensor: the method in a formula -> (what schemac calls it, C++ type of the
# copy).
_METADATA = {
    "sizes": "DimVector",
    "strides": "DimVector",
    "dim": "int64_t",
    "numel": "int64_t",
    "dtype": "ScalarType",
    "device": "Device",
}
# Methods that Tensor has in C++; any other method of a tensor is the operator of that name.
_TENSOR_METHODS = frozenset(
    "sizes strides dim numel dtype device size stride defined is_complex is_floating_point".split()
)


@dataclass(frozen=True)
class Target:
    name: str
    is_list: bool
    fixed: int  # how many edges of single tensors come before its own
    lists: tuple[str, ...]  # and of which lists

    def first(self, node: str = "") -> str:
        """C++ for the number of its first edge, where `node` stands before the node's members."""
        return _sum(self.fixed, self.lists, node)

    def edges(self, node: str = "") -> str:
        """C++ arguments that say which edges are its own."""
        first = self.first(node)
        return f"{first}, {node}{count_of(self.name)}" if self.is_list else first


def count_of(name: str) -> str:
    """The member that holds how many edges a list has."""
    return f"{cpp.cpp_name(name)}_count_"


def _sum(fixed: int, lists: Iterable[str], node: str = "") -> str:
    counts = [f"{node}{count_of(name)}" for name in lists]
    return " + ".join([str(fixed)] * (fixed > 0 or not counts) + counts)


@dataclass(frozen=True)
class Slot:
    """One saved value: a member of the node."""

    member: str  # other_, self_sizes_
    type: str
    save: str  # statement's argument, to be run while recording
    is_tensor: bool
    is_output: bool
    shown: str  # what hooks on saved tensors call it
    needed_by: tuple[Target, ...] = ()  # whose edges it is for; empty where it is always saved
    uses_self: bool = False  # the value of the argument that an in-place form writes
    has_history: bool = False  # an output whose maker is the node itself

    def guard(self, node: str) -> str:
        """C++ for whether it is needed, where `node` stands before the node's members."""
        return " || ".join(f"{node}has_edge({t.edges(node)})" for t in self.needed_by)


@dataclass(frozen=True)
class Gradient:
    """One formula: the edges it serves and the C++ that computes it."""

    targets: tuple[Target, ...]
    text: str
    condition: str
    locals: tuple[str, ...]
    expression: str
    reason: Optional[str]  # of not_implemented("reason")


@dataclass(frozen=True)
class NodeClass:
    name: str  # of the C++ class
    shown: str
    entry: Entry
    slots: tuple[Slot, ...]
    gradients: tuple[Gradient, ...]
    list_counts: tuple[str, ...]  # members that hold how many edges a list target has
    edges: str  # C++ for the number of edges
    guard_grads: str  # condition under which there is nothing to do
    materialise: tuple[int, ...]  # gradients that become zeros when undefined

    @property
    def broadcasts(self) -> bool:
        """Whether its operator broadcasts its arguments, so that formulas leave the sum over what
        was broadcast to the engine."""
        return self.entry.kind == "pointwise" and len(self.entry.tensor_args) > 1

    @property
    def releases(self) -> tuple[str, ...]:
        return tuple(s.member for s in self.slots if s.is_tensor)


@dataclass(frozen=True)
class LayerFunction:
    entry: Entry
    form: Form
    style: str  # functional, view, views, inplace, lists (which it writes), foreach, out
    node: Optional[NodeClass]  # None: no derivative
    zero: bool = False  # in-place operator whose result is not differentiable
    recorded_args: tuple[str, ...] = ()
    edges: tuple[Target, ...] = ()
    output_flags: tuple[bool, ...] = field(default=())

    @property
    def keeps_outputs(self) -> bool:
        """Whether the node saves results of the call."""
        return self.node is not None and any(slot.is_output for slot in self.node.slots)


def _camel(name: str) -> str:
    return "".join(part[0].upper() + part[1:] for part in name.split("_") if part)


def _node_names(model: Model) -> Mapping[str, str]:
    """Entry id -> node name. Overloads count from 0 in the order of the file: MulBackward0,
    MulBackward1; as in PyTorch `x ** 2` comes before `x ** y`."""
    counts: dict[str, int] = {}
    names = {}
    for e in sorted(model.entries, key=lambda e: e.overload != "Tensor_Scalar"):
        if e.derivative and e.derivative.formulas:
            base = _camel(e.name).removesuffix("Forward")  # as PyTorch calls its nodes
            names[e.id] = f"{base}Backward{counts.setdefault(base, 0)}"
            counts[base] += 1
    return names


def _shown_name(e: Entry, node_names: Mapping[str, str]) -> str:
    """What Python shows. An operator with a number goes by the name of the one with a tensor, as
    `x * 2` and `x * y` do."""
    sibling = f"{e.name}_Tensor"
    return node_names.get(sibling, node_names[e.id]) if e.overload == "Scalar" else node_names[e.id]


def _output_names(e: Entry) -> list[str]:
    if len(e.returns) == 1:
        return [e.returns[0].name or "result"]
    return [r.name or f"result{i}" for i, r in enumerate(e.returns)]


def _output_index(e: Entry, name: str) -> int:
    if name.startswith("result") and name[6:].isdigit():
        return int(name[6:])
    return 0 if name == "result" else _output_names(e).index(name)


def _output_flags(e: Entry) -> tuple[bool, ...]:
    d = e.derivative
    if d and d.output_differentiability:
        return d.output_differentiability
    return tuple(r.type.base == "Tensor" for r in e.returns)


def _is_differentiable(e: Entry) -> bool:
    """Whether the entry could have a derivative at all."""
    if "differentiable_none" in e.tags or e.promote in ("compare", "bool"):
        return False
    if e.derivative and not e.derivative.formulas:
        return False
    return any(r.type.base == "Tensor" for r in e.returns)


def seen(e: Entry) -> str:
    """Which calls layers below autograd see, as C++'s `Seen` has it."""
    linked = cpp.linked_kernel(e)
    if linked is None or linked[0] != "composite" or (e.derivative and e.derivative.formulas):
        return "Always"
    if "whole" not in e.tags and not e.foreach_of:
        return "Never"
    # Lists of results, and lists that are written, take part in differentiation as well.
    written = any(a.type.base == "Tensor" and a.type.writes for a in e.args)
    plain = "differentiable_none" in e.tags or not (_is_differentiable(e) or written)
    return "Always" if plain else "Unrecorded"


@dataclass(frozen=True)
class _Tables:
    """What a node needs to know of the whole model."""

    derivatives: str
    node_names: Mapping[str, str]
    functions: Mapping[str, tuple[str, str]]  # of operators: (prefix, header)


class _NodeBuilder:
    def __init__(self, e: Entry, d: Derivative, tables: _Tables, used: set[str]):
        self.e, self.d, self.tables, self.used = e, d, tables, used
        self.args = {a.name: a for a in e.args}
        self.known = {s.name for f in d.formulas for s in f.saves}
        self.differentiable = [i for i, flag in enumerate(_output_flags(e)) if flag]

    def error(self, message: str) -> SystemExit:
        return SystemExit(
            f"{self.tables.derivatives}:{self.d.line}: error: {message} in the derivative of "
            f"{self.e.full_name}"
        )

    def targets(self) -> list[Target]:
        names = {t for f in self.d.formulas for t in f.targets}
        out: list[Target] = []
        fixed, lists = 0, []
        for a in self.e.args:
            if a.name not in names:
                continue
            out.append(Target(a.name, a.type.is_tensor_list, fixed, tuple(lists)))
            if a.type.is_tensor_list:
                lists.append(a.name)
            else:
                fixed += 1
        self.total = _sum(fixed, lists)
        self.list_counts = tuple(count_of(name) for name in lists)
        return out

    def build(self) -> NodeClass:
        targets = {t.name: t for t in self.targets()}
        for f in self.e.forms:
            if f.form == "inplace" and self.e.args[0].name not in targets:
                raise self.error(
                    f"expected a formula for '{self.e.args[0].name}', "
                    "which the in-place form changes,"
                )
        gradients = tuple(self.gradient(f, targets) for f in self.d.formulas)
        used_grads = sorted({i for f in self.d.formulas for i in self.grads_in(f.tree)})
        several = len(self.differentiable) > 1
        only = self.differentiable[0] if self.differentiable else 0
        return NodeClass(
            name=self.tables.node_names[self.e.id],
            shown=_shown_name(self.e, self.tables.node_names),
            entry=self.e,
            slots=tuple(self.slots(targets)),
            gradients=gradients,
            list_counts=self.list_counts,
            edges=self.total,
            guard_grads=(
                "!any_defined(grads)"
                if several or self.e.returns[only].type.list
                else f"!grads[{only}].defined()"
            ),
            materialise=tuple(used_grads) if several else (),
        )

    # ---- saved values

    def slots(self, targets: Mapping[str, Target]) -> list[Slot]:
        needed_by: dict[tuple[str, str, bool], list[Formula]] = {}
        for f in self.d.formulas:
            if self.reason(f) is None:
                for s in f.saves:
                    needed_by.setdefault((s.name, s.what, s.is_output), []).append(f)
        result = []
        for (name, what, is_output), formulas in needed_by.items():
            always = len(formulas) == len(self.d.formulas)
            needed_by = () if always else tuple(targets[t] for f in formulas for t in f.targets)
            result.append(self.slot(name, what, is_output, needed_by))
        return result

    def slot(self, name: str, what: str, is_output: bool, needed_by: tuple[Target, ...]) -> Slot:
        n = self.name(name)
        tensor = is_output or self.args[name].type.base == "Tensor"
        if not tensor:
            a = self.args[name]
            return Slot(f"{n}_", cpp.value_type(a.type), _kept(a), False, False, name)
        if what != "value":
            if what not in _METADATA:
                raise self.error(f"'{name}.{what}()' cannot be saved")
            shown = f"{name}_{what}"
            return Slot(f"{n}_{what}_", _METADATA[what], f"{what}_of({n})", False, is_output, shown)
        is_list = (
            self.e.returns[_output_index(self.e, name)].type.list
            if is_output
            else self.args[name].type.list
        )
        if is_output and is_list:
            raise self.error(f"the list '{name}' cannot be saved")
        index = _output_index(self.e, name) if is_output else 0
        has_history = is_output and _output_flags(self.e)[index]
        save = f"{n}, {index}" if has_history else n
        return Slot(
            f"{n}_",
            "SavedTensorList" if is_list else "SavedTensor",
            save,
            True,
            is_output,
            name,
            needed_by,
            uses_self=not is_output and name == self.e.args[0].name,
            has_history=has_history,
        )

    # ---- formulas

    def reason(self, f: Formula) -> Optional[str]:
        return (
            f.tree["args"][0]["value"]
            if f.tree["op"] == "call" and f.tree["fn"] == "not_implemented"
            else None
        )

    def condition(self, f: Formula, targets: Mapping[str, Target]) -> str:
        return " || ".join(f"should_compute({targets[name].edges()})" for name in f.targets)

    def name(self, name: str) -> str:
        """An argument or a result in C++."""
        return cpp.cpp_name(name) if name in self.args else cpp.plain_name(name)

    def gradient(self, f: Formula, targets: Mapping[str, Target]) -> Gradient:
        mine = tuple(targets[name] for name in f.targets)
        reason = self.reason(f)
        locals_ = [] if reason is not None else [self.local(s) for s in f.saves]
        if any(t["op"] == "name" and t["name"] == "grad_input_mask" for t in cpp.walk(f.tree)):
            mask = ", ".join(f"should_compute({t.edges()})" for t in mine)
            locals_.append(f"const std::array<bool, {len(mine)}> grad_input_mask = {{{mask}}};")
        return Gradient(
            targets=mine,
            text=" ".join(f.text.split()),
            condition=self.condition(f, targets),
            locals=tuple(line for line in locals_ if line),
            expression=(
                "" if reason is not None else cpp.cpp_expr(f.tree, lambda t: self.resolve(t, f))
            ),
            reason=reason,
        )

    def local(self, s: Saved) -> str:
        n = self.name(s.name)
        if not s.is_output and self.args[s.name].type.base != "Tensor":
            return f"const auto& {n} = {n}_;"
        if s.what != "value":
            return ""
        is_list = not s.is_output and self.args[s.name].type.list
        what = (
            f"result '{s.name}' of {self.e.name}"
            if s.is_output
            else f"argument '{s.name}' of {self.e.name}"
        )
        readers = [f for f in self.d.formulas if self.reason(f) is None and s in f.saves]
        unpack = "unpack" if is_list or len(readers) > 1 else "take"
        return (
            f"const {'std::vector<Tensor>' if is_list else 'Tensor'} {n} = "
            f'{n}_.{unpack}(*this, "{what}");'
        )

    def grads_in(self, tree: Tree) -> set[int]:
        found = set()
        for t in cpp.walk(tree):
            if t["op"] == "index" and t["on"].get("name") == "grads" and t["index"]["op"] == "int":
                found.add(int(t["index"]["value"]))
            elif (
                t["op"] == "name"
                and t["name"] == "grad"
                and "grad" not in self.args
                and self.differentiable
            ):
                found.add(self.differentiable[0])
        return found

    def resolve(self, t: Tree, f: Formula) -> Optional[str]:
        def sub(x: Tree) -> str:
            return cpp.cpp_expr(x, lambda y: self.resolve(y, f))

        op = t["op"]
        if op == "name":
            name = t["name"]
            if name == "grad" and name not in self.args:
                return f"grads[{self.differentiable[0]}]"
            if name == "grads" and name not in self.args:
                return "as_list(grads)"
            return self.name(name) if name in self.known else None
        if op == "index" and t["on"].get("name") == "grads" and "grads" not in self.args:
            return f"grads[{sub(t['index'])}]"
        if op == "call":
            arguments = ", ".join(sub(a) for a in t["args"])
            found = self.tables.functions.get(t["fn"])
            if found is None:
                return f"autograd::{t['fn']}({arguments})"
            prefix, header = found
            self.used.add(header)
            return f"{prefix}::{t['fn']}({arguments})"
        if op == "method":
            return self.method(t, f, sub)
        return None

    def method(self, t: Tree, f: Formula, sub: Any) -> Optional[str]:
        on, method = t["on"], t["name"]
        if on["op"] == "name":
            name, n = on["name"], self.name(on["name"])
            saved = {s.what for s in f.saves if s.name == name}
            if saved and "value" not in saved:
                if method == "size":
                    return f"size_at({n}_sizes_, {sub(t['args'][0])})"
                member = "dtype" if method == "scalar_type" else method
                return f"{n}_{member}_"
            arg = self.args.get(name)
            if arg is not None and arg.type.base != "Tensor":
                return None  # a method of Scalar or of a list
        if method in _TENSOR_METHODS:
            return None
        if method == "scalar_type":
            return f"{sub(on)}.dtype()"
        return self.resolve({"op": "call", "fn": method, "args": [on, *t["args"]]}, f)


def _kept(a: Arg) -> str:
    """C++ that copies an argument which only borrows what it shows."""
    n = cpp.cpp_name(a.name)
    t = a.type
    if t.optional and ((t.list and t.base != "bool") or t.base == "str"):
        return f"keep({n})"
    if t.base == "str":
        return f"std::string({n})"
    if t.list and t.base == "float":
        return f"{n}.vec()"
    return n


def _style(e: Entry, form: Form) -> Optional[str]:
    """How a form's layer function is made, None where a call needs none."""
    if form.form == "out":
        return (
            "out"
            if _is_differentiable(e) and any(a.type.base == "Tensor" for a in e.args)
            else None
        )
    formulas = e.derivative is not None and bool(e.derivative.formulas)
    if cpp.returns_views(e):
        return "views"
    if e.kind == "view":
        return "view" if _is_differentiable(e) else None
    linked = cpp.linked_kernel(e) is not None
    if form.form == "inplace":
        if "inplace_view" in e.tags:
            return None
        if e.foreach_of:
            return "foreach"
        if cpp.written_lists(e) and not linked:
            return "lists"
        # What is composed of other operators is recorded by them.
        return "inplace" if formulas or not linked else None
    if not _is_differentiable(e) or (linked and not formulas):
        return None
    return "functional" if any(a.type.base == "Tensor" for a in e.args) else None


def context(shard: Any) -> dict[str, Any]:
    """The variables of variable_type.cc.j2 for one shard."""
    model, library = shard.model, shard.library
    own = {f: (library.prefix, library.header.format(h)) for f, h in model.headers.items()}
    functions_known = {**library.function_prefixes, **own}
    tables = _Tables(model.derivatives, _node_names(model), functions_known)
    # What the layer functions of in-place forms call.
    clone = library.function_prefixes.get("clone") or own.get("clone")
    used: set[str] = {clone[1]} if clone else set()
    nodes: list[NodeClass] = []
    functions: list[LayerFunction] = []
    for e in shard.entries:
        node = None
        if e.derivative and e.derivative.formulas:
            node = _NodeBuilder(e, e.derivative, tables, used).build()
            nodes.append(node)
        for form in e.forms:
            style = _style(e, form)
            if style is None:
                continue
            targets = (
                tuple(_NodeBuilder(e, e.derivative, tables, set()).targets())
                if node and e.derivative
                else ()
            )
            tensors = [a for a in e.args if a.type.base == "Tensor"]
            considered = (
                [t.name for t in targets] if node and style != "out" else [a.name for a in tensors]
            )
            functions.append(
                LayerFunction(
                    entry=e,
                    form=form,
                    style=style,
                    node=node,
                    zero=style == "inplace" and node is None and not _is_differentiable(e),
                    recorded_args=tuple(cpp.cpp_name(n) for n in considered),
                    edges=targets,
                    output_flags=_output_flags(e),
                )
            )
    autocast = [e for e in shard.entries if e.autocast]
    names = {f.entry.name for f in functions} | {e.name for e in autocast}
    headers = sorted(used | {library.header.format(n) for n in names})
    return {
        "nodes": nodes,
        "functions": functions,
        "autocast": autocast,
        "headers": headers,
        "output_names": _output_names,
    }

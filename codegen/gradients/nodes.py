"""The nodes of derivatives: what each keeps, and how it computes gradients.

Example:

    node_of(mul)    MulBackward0, which keeps self_ and other_
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Optional

from ..cpp import code
from ..cpp.names import cpp_name, output_name
from ..cpp.types import kept_type
from ..library import Library
from ..model.entry import Entry, Formula, Kind, Model, Save
from ..model.kept import Kept
from ..model.schema import Arg
from .edges import Edges, Target, edges_of
from .formulas import FormulaTranslator, kept_member, variable

_METADATA = {
    Kept.SIZES: code.Type("DimVector"),
    Kept.STRIDES: code.Type("DimVector"),
    Kept.DIM: code.Type("int64_t"),
    Kept.NUMEL: code.Type("int64_t"),
    Kept.DTYPE: code.Type("ScalarType"),
    Kept.DEVICE: code.Type("Device"),
}
_SAVED, _SAVED_LIST = code.Type("SavedTensor"), code.Type("SavedTensorList")


@dataclass(frozen=True)
class Slot:
    """One kept value: a member of the node."""

    member: str  # other_, self_sizes_
    type: code.Type
    value: code.Expr  # of it while recording
    shown: str  # what hooks on saved tensors call it
    output: Optional[int] = None  # the number of the result, of which it is a part
    needed_by: tuple[Target, ...] = ()  # whose edges it is for; empty where it is always kept
    uses_self: bool = False  # the value of the argument that an in-place form writes
    has_history: bool = False  # a result whose maker is the node itself

    @property
    def is_tensor(self) -> bool:
        """Whether it is one or a list of them, rather than a plain value."""
        return self.type in (_SAVED, _SAVED_LIST)

    @property
    def is_list(self) -> bool:
        return self.type == _SAVED_LIST

    @property
    def is_output(self) -> bool:
        return self.output is not None

    def guard(self, node: code.Expr) -> code.Expr:
        """Whether it is needed."""
        return code.joined("||", [target.has_edge(node) for target in self.needed_by])


@dataclass(frozen=True)
class Gradient:
    """One formula: the edges it serves and the C++ that computes it."""

    targets: tuple[Target, ...]
    text: str
    condition: code.Expr
    locals: tuple[code.Statement, ...]
    expression: Optional[code.Expr]  # None where there is a reason
    reason: Optional[str]  # of not_implemented("reason")


@dataclass(frozen=True)
class Node:
    name: str  # of the C++ class
    shown: str
    entry: Entry
    edges: Edges
    slots: tuple[Slot, ...]
    gradients: tuple[Gradient, ...]
    is_unneeded: code.Expr  # condition under which there is nothing to do
    materialise: tuple[int, ...]  # gradients that become zeros when undefined
    headers: frozenset[str]  # of the operators that the formulas call

    @property
    def broadcasts(self) -> bool:
        """Whether its operator broadcasts its arguments, so that formulas leave the sum over what
        was broadcast to the engine.
        """
        return self.entry.kind is Kind.POINTWISE and len(self.entry.tensor_args) > 1

    @property
    def releases(self) -> tuple[str, ...]:
        return tuple(slot.member for slot in self.slots if slot.is_tensor)

    @property
    def keeps_outputs(self) -> bool:
        return any(slot.is_output for slot in self.slots)


# ---- names ---------------------------------------------------------------------------------------


def _camel(name: str) -> str:
    return "".join(part[0].upper() + part[1:] for part in name.split("_") if part)


def node_names(model: Model) -> Mapping[str, str]:
    """Entry id -> node name. Overloads count from 0 in the order of the file: MulBackward0,
    MulBackward1; as in PyTorch `x ** 2` comes before `x ** y`.
    """
    counts: dict[str, int] = {}
    names = {}
    for e in sorted(model.entries, key=lambda e: e.overload != "Tensor_Scalar"):
        if e.formulas:
            base = _camel(e.name).removesuffix("Forward")  # as PyTorch calls its nodes
            names[e.id] = f"{base}Backward{counts.setdefault(base, 0)}"
            counts[base] += 1
    return names


def _shown_name(e: Entry, names: Mapping[str, str]) -> str:
    """The name that Python shows. An operator with a number goes by the name of the one with a
    tensor, as `x * 2` and `x * y` do.
    """
    sibling = f"{e.name}_Tensor"
    return names.get(sibling, names[e.id]) if e.overload == "Scalar" else names[e.id]


# ---- kept values ---------------------------------------------------------------------------------


def _kept_argument(a: Arg) -> code.Expr:
    """C++ that copies an argument which only borrows what it shows."""
    name: code.Expr = code.Id(cpp_name(a.name))
    t = a.type
    if t.optional and ((t.list and t.base != "bool") or t.base == "str"):
        return code.Call("keep", (name,))
    if t.base == "str":
        return code.Call("std::string", (name,))
    if t.list and t.base == "float":
        return code.MethodCall(name, "vec")
    return name


def _is_list(e: Entry, save: Save) -> bool:
    return (e.returns if save.is_output else e.args)[save.index].type.list


def is_kept_list_of_results(e: Entry, save: Save) -> bool:
    """A list of results has no member that could keep it."""
    return save.is_output and save.what is Kept.VALUE and _is_list(e, save)


def _slot(e: Entry, save: Save, needed_by: tuple[Target, ...]) -> Slot:
    member = kept_member(e, save.name, save.what)
    output = save.index if save.is_output else None
    # A formula may call a result by either of two names; the function that records has one.
    name = cpp_name(save.name) if output is None else output_name(e.result_names[output])
    value = code.Id(name)
    if output is None and not e.args[save.index].type.holds_tensors:
        a = e.args[save.index]
        return Slot(member, kept_type(a.type), _kept_argument(a), save.name)
    if save.what is not Kept.VALUE:
        part = code.Call(f"{save.what}_of", (value,))
        return Slot(member, _METADATA[save.what], part, f"{save.name}_{save.what}", output)
    return Slot(
        member,
        _SAVED_LIST if _is_list(e, save) else _SAVED,
        value,
        save.name,
        output,
        needed_by,
        uses_self=output is None and save.index == 0,
        has_history=output is not None and e.differentiable_outputs[output],
    )


def kept_names(e: Entry) -> Mapping[str, str]:
    """The members of a node, and the variables of its formulas, to their names in C++."""
    names = {}
    for save in (save for f in e.formulas for save in f.saves):
        part = "" if save.what is Kept.VALUE else f".{save.what}()"
        names[f"the kept {save.name}{part}"] = kept_member(e, save.name, save.what)
        if not part:
            names[save.name] = variable(e, save.name)
    return names


def _slots(e: Entry, edges: Edges) -> tuple[Slot, ...]:
    needed: dict[Save, list[Formula]] = {}
    for f in e.formulas:
        for save in f.saves:
            needed.setdefault(save, []).append(f)
    slots = []
    for save, formulas in needed.items():
        always = len(formulas) == len(e.formulas)
        targets = () if always else tuple(edges.of(t) for f in formulas for t in f.targets)
        slots.append(_slot(e, save, targets))
    return tuple(slots)


# ---- formulas ------------------------------------------------------------------------------------


def _local(e: Entry, save: Save) -> Optional[code.Statement]:
    """The variable of a formula that has a kept value; its parts are used where they are."""
    name, member = variable(e, save.name), code.Id(kept_member(e, save.name, save.what))
    if not save.is_output and not e.args[save.index].type.holds_tensors:
        return code.Declare("const auto&", name, member)
    if save.what is not Kept.VALUE:
        return None
    what = f"{'result' if save.is_output else 'argument'} '{save.name}' of {e.name}"
    is_list = _is_list(e, save)
    readers = sum(1 for f in e.formulas if save in f.saves)
    unpack = "unpack" if is_list or readers > 1 else "take"
    this = code.Prefix("*", code.Id("this"))
    return code.Declare(
        f"const {'std::vector<Tensor>' if is_list else 'Tensor'}",
        name,
        code.MethodCall(member, unpack, (this, code.Text(what))),
    )


def _mask(targets: tuple[Target, ...]) -> code.Statement:
    """The mask of the gradients that a formula of several has to compute."""
    wanted = code.Braces(tuple(target.should_compute() for target in targets))
    of = code.array_of(code.Type("bool"), len(targets))
    return code.Declare(f"const {of}", "grad_input_mask", wanted)


def _gradient(e: Entry, f: Formula, edges: Edges, translator: FormulaTranslator) -> Gradient:
    targets = tuple(edges.of(name) for name in f.targets)
    lines = [line for line in (_local(e, save) for save in f.saves) if line is not None]
    if f.names("grad_input_mask"):
        lines.append(_mask(targets))
    return Gradient(
        targets=targets,
        text=" ".join(f.text.split()),
        condition=code.joined("||", [target.should_compute() for target in targets]),
        locals=tuple(lines),
        expression=translator.visit(f.tree) if f.reason is None else None,
        reason=f.reason,
    )


def _is_unneeded(e: Entry) -> code.Expr:
    differentiable = [i for i, flag in enumerate(e.differentiable_outputs) if flag]
    only = differentiable[0] if differentiable else 0
    grads = code.Id("grads")
    if len(differentiable) > 1 or e.returns[only].type.list:
        return code.Prefix("!", code.Call("any_defined", (grads,)))
    grad = code.Subscript(grads, code.integer(only))
    return code.Prefix("!", code.MethodCall(grad, "defined"))


def node_of(e: Entry, names: Mapping[str, str], library: Library) -> Optional[Node]:
    """The node of the entry's derivative; None where it has no formulas."""
    if not e.formulas:
        return None
    edges = edges_of(e)
    gradients, headers = [], set()
    for f in e.formulas:
        translator = FormulaTranslator(e, f, library)
        gradients.append(_gradient(e, f, edges, translator))
        headers |= translator.headers
    several = sum(e.differentiable_outputs) > 1
    read = {i for f in e.formulas for i in f.gradients}
    return Node(
        name=names[e.id],
        shown=_shown_name(e, names),
        entry=e,
        edges=edges,
        slots=_slots(e, edges),
        gradients=tuple(gradients),
        is_unneeded=_is_unneeded(e),
        materialise=tuple(sorted(read)) if several else (),
        headers=frozenset(headers),
    )

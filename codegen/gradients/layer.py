"""The functions of the layer Autograd: how a call of each form is recorded."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Iterator, Mapping, Optional

from ..cpp import code
from ..cpp.names import cpp_name, output_name
from ..model.entry import Entry, Kind, Promotion
from ..model.schema import Form
from ..operators.linked import is_composite, linked_kernel
from ..operators.lookup import returns_views, written_lists
from ..shard import Shard
from .edges import Target
from .nodes import Node, Slot, node_names, node_of

_RECORDED = code.Id("recorded")


class Style(Enum):
    FUNCTIONAL = "functional"
    VIEW = "view"
    VIEWS = "views"
    INPLACE = "inplace"
    LISTS = "lists"  # which it writes
    FOREACH = "foreach"
    OUT = "out"


@dataclass(frozen=True)
class LayerFunction:
    entry: Entry
    form: Form
    style: Style
    node: Optional[Node]  # None: no derivative
    zero: bool  # in-place operator whose result is not differentiable
    recorded_args: tuple[str, ...]

    @property
    def edges(self) -> tuple[Target, ...]:
        return self.node.edges.targets if self.node else ()

    @property
    def node_type(self) -> str:
        return self.node.name if self.node else "Node"

    @property
    def keeps_outputs(self) -> bool:
        """Whether the node keeps results of the call."""
        return self.node is not None and self.node.keeps_outputs

    @property
    def first(self) -> str:
        """The first argument: what an in-place form writes, and a view shows."""
        return cpp_name(self.entry.args[0].name)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the results in C++."""
        return tuple(map(output_name, self.entry.result_names))

    def saves(self, outputs: bool) -> Iterator[code.Statement]:
        """The statements that keep what backward needs, of the arguments or of the results."""
        for slot in self.node.slots if self.node else ():
            if slot.is_output == outputs:
                yield self._save(slot)

    def _save(self, slot: Slot) -> code.Statement:
        member = code.Member(_RECORDED, slot.member, of_pointer=True)
        if not slot.is_tensor:
            return code.Assign(member, slot.value)
        method, arguments = "save", [slot.value]
        if slot.output is not None and slot.has_history:
            method, arguments = "save_output", [slot.value, code.integer(slot.output)]
        elif self.style is Style.INPLACE and not slot.is_output and not slot.is_list:
            arguments = [self._kept_for_backward(slot)]
        save = code.Evaluate(code.MethodCall(member, method, tuple(arguments)))
        return code.If(slot.guard(_RECORDED), save) if slot.needed_by else save

    def _kept_for_backward(self, slot: Slot) -> code.Expr:
        """The value before the call writes over it."""
        if slot.uses_self:
            return code.Call("aten::clone", (slot.value,))
        return code.Call("kept_for_backward", (slot.value, code.Id(self.first)))


def is_differentiable(e: Entry) -> bool:
    """Whether the entry could have a derivative at all."""
    if "differentiable_none" in e.tags or e.promote in (Promotion.COMPARE, Promotion.BOOL):
        return False
    if e.derivative and not e.formulas:
        return False
    return any(r.type.holds_tensors for r in e.returns)


def seen(e: Entry) -> str:
    """The calls that layers below autograd see, a value of C++'s `Seen`."""
    if not is_composite(e) or e.formulas:
        return "Always"
    if "whole" not in e.tags and not e.foreach_of:
        return "Never"
    # Lists of results, and lists that are written, take part in differentiation as well.
    written = any(a.type.holds_tensors and a.type.writes for a in e.args)
    plain = "differentiable_none" in e.tags or not (is_differentiable(e) or written)
    return "Always" if plain else "Unrecorded"


def _style(e: Entry, form: Form) -> Optional[Style]:
    """How a form's layer function is made, None where a call needs none."""
    takes_tensors = any(a.type.holds_tensors for a in e.args)
    if form.is_out:
        return Style.OUT if is_differentiable(e) and takes_tensors else None
    if returns_views(e):
        return Style.VIEWS
    if e.kind is Kind.VIEW:
        return Style.VIEW if is_differentiable(e) else None
    linked = linked_kernel(e) is not None
    if form.is_inplace:
        if "inplace_view" in e.tags:
            return None
        if e.foreach_of:
            return Style.FOREACH
        if written_lists(e) and not linked:
            return Style.LISTS
        # The operators that a composite calls record it.
        return Style.INPLACE if e.formulas or not linked else None
    if not is_differentiable(e) or (linked and not e.formulas):
        return None
    return Style.FUNCTIONAL if takes_tensors else None


def _function(e: Entry, form: Form, node: Optional[Node]) -> Optional[LayerFunction]:
    style = _style(e, form)
    if style is None:
        return None
    tensors = [a.name for a in e.args if a.type.holds_tensors]
    recorded = [t.name for t in node.edges.targets] if node and style is not Style.OUT else tensors
    return LayerFunction(
        entry=e,
        form=form,
        style=style,
        node=node,
        zero=style is Style.INPLACE and node is None and not is_differentiable(e),
        recorded_args=tuple(map(cpp_name, recorded)),
    )


def context(shard: Shard) -> Mapping[str, Any]:
    """The variables of variable_type.cc.j2."""
    library = shard.library
    names = node_names(shard.model)
    nodes: list[Node] = []
    layer: list[LayerFunction] = []
    for e in shard.entries:
        node = node_of(e, names, library)
        if node:
            nodes.append(node)
        layer += [f for f in (_function(e, form, node) for form in e.forms) if f is not None]
    autocast = [e for e in shard.entries if e.autocast]
    headers = set(library.clone_headers(shard.model))  # in-place forms call it
    headers |= {header for node in nodes for header in node.headers}
    headers |= {library.header.format(e.name) for e in [f.entry for f in layer] + autocast}
    return {
        "nodes": nodes,
        "functions": layer,
        "autocast": autocast,
        "headers": sorted(headers),
    }

"""The signatures of each Python name: a name gathers the overloads of an operator, and `out=` is an
argument of the functional form.

    bindings(entries)[0].signatures[0].params  ->  input, other, alpha, out
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any, Iterable, Mapping

from ..cpp import code
from ..cpp.names import plain_name
from ..cpp.signatures import out_names
from ..model.entry import Entry, Variant
from ..model.schema import Form, FormKind
from ..shard import Shard
from .parameters import Param, added, masks, parameter, result_stub


@dataclass(frozen=True)
class Signature:
    entry: Entry
    form: Form
    params: tuple[Param, ...]  # with `out` and `requires_grad` where it has them
    out: tuple[str, ...]  # names of the outputs that `out=` may give; empty where it has none
    out_index: int
    requires_grad_index: int  # -1 where it has none
    self_index: int  # where a method's object goes; -1 where it is no method
    is_function: bool
    named_result: tuple[str, ...]
    result_type: str  # in a stub

    @property
    def arguments(self) -> tuple[Param, ...]:
        """The parameters that are the operator's own."""
        return self.params[: len(self.entry.args)]

    @property
    def call_args(self) -> str:
        return code.listed(p.variable for p in self.arguments)

    @property
    def positional(self) -> int:
        return sum(1 for p in self.params if not p.keyword)

    @property
    def is_method(self) -> bool:
        return self.self_index >= 0

    @property
    def out_function(self) -> str:
        return f"{self.entry.name}_out"


@dataclass(frozen=True)
class Binding:
    name: str
    identifier: str
    module: str
    signatures: tuple[Signature, ...]
    doc: str

    @property
    def slots(self) -> int:
        return max(1, *(len(s.params) for s in self.signatures))

    @property
    def is_method(self) -> bool:
        return any(s.is_method for s in self.signatures)

    @property
    def is_function(self) -> bool:
        return any(s.is_function for s in self.signatures)


def _named_result(e: Entry, form: Form) -> tuple[str, ...]:
    """The names of several results; empty where they have none."""
    names = tuple(r.name for r in e.returns if r.name)
    whole = len(e.returns) > 1 and len(names) == len(e.returns)
    return names if whole and form.is_functional else ()


def _result_type(e: Entry, form: Form) -> str:
    if form.is_inplace and e.returns:
        return "Tensor"
    if _named_result(e, form):
        return f"return_types.{e.name}"
    if not e.returns:
        return "TensorSequence" if e.foreach_of else "None"
    texts = [result_stub(r.type) for r in e.returns]
    return texts[0] if len(texts) == 1 else f"Tuple[{', '.join(texts)}]"


def signature(e: Entry, form: Form) -> Signature:
    is_factory = e.makes_tensors and not e.tensor_args
    of_bool = masks(e)
    params = [
        parameter(a, i, is_factory and a.type.base == "Device", a.name in of_bool)
        for i, a in enumerate(e.args)
    ]
    out: tuple[str, ...] = ()
    out_index = requires_grad_index = -1
    out_form = e.form(FormKind.OUT)
    if form.is_functional and out_form:
        out, out_index = tuple(out_names(e, out_form)), len(params)
        kind, stub = ("Tensor", "Tensor") if len(out) == 1 else ("TensorList", "TensorSequence")
        flags = "kNullable | kDefault | kKeyword"
        params.append(added("out", kind, flags, "None", f"Optional[{stub}]"))
    if e.makes_tensors:
        requires_grad_index = len(params)
        params.append(added("requires_grad", "Bool", "kDefault | kKeyword", "False", "bool"))
    names = [a.name for a in e.args]
    is_method = Variant.METHOD in e.variants and "self" in names
    return Signature(
        entry=e,
        form=form,
        params=tuple(params),
        out=out,
        out_index=out_index,
        requires_grad_index=requires_grad_index,
        self_index=names.index("self") if is_method else -1,
        is_function=Variant.FUNCTION in e.variants or not is_method,
        named_result=_named_result(e, form),
        result_type=_result_type(e, form),
    )


# ---- docs ----------------------------------------------------------------------------------------


def text_signature(s: Signature, receiver: str = "", is_method: bool = False) -> str:
    """`(input, other, *, alpha=1)`; of a method without its object, or with `receiver` for it."""
    parts = [receiver] if receiver else []
    star = False
    for i, p in enumerate(s.params):
        if (receiver or is_method) and i == s.self_index:
            continue
        if p.keyword and not star:
            star = True
            parts.append("*")
        default = p.default_text if p.is_plain_default else "..."
        parts.append(p.python_name + (f"={default}" if p.default_text else ""))
    return f"({', '.join(parts)})"


def filled(doc: str) -> str:
    """The text in lines that break between words only, so that a word is found in it."""
    return textwrap.fill(" ".join(doc.split()), 100, break_on_hyphens=False, break_long_words=False)


def _doc(name: str, signatures: Iterable[Signature]) -> str:
    signatures = list(signatures)
    first = signatures[0]
    receiver = "" if first.is_function else "$self"
    lines = [f"{name}{text_signature(first, receiver)}\n--\n"]
    lines += [f"{name}{text_signature(s)} -> {s.result_type}" for s in signatures]
    docs = dict.fromkeys(s.entry.doc for s in signatures if s.entry.doc)
    return "\n".join([*lines, "", *map(filled, docs)]).rstrip()


# ---- names ---------------------------------------------------------------------------------------


def bindings(entries: Iterable[Entry]) -> list[Binding]:
    """The Python names of these entries, sorted; signatures are in the order of the file."""
    groups: dict[tuple[str, str], list[Signature]] = {}
    for e in entries:
        # Formulas and composites pass arguments that need no checks.
        if e.is_internal:
            continue
        for form in e.forms:
            # The form that writes is an argument of the functional one, where there is one.
            if not form.is_out or not e.form(FormKind.FUNCTIONAL):
                key = form.name, e.python_module or ""
                groups.setdefault(key, []).append(signature(e, form))
    found = []
    for (name, module), signatures in sorted(groups.items()):
        identifier = plain_name(name) + (f"_{module}" if module else "")
        found.append(Binding(name, identifier, module, tuple(signatures), _doc(name, signatures)))
    return found


def context(shard: Shard) -> Mapping[str, Any]:
    """The variables of bindings.cc.j2."""
    return {"headers": [name for name, _ in shard.groups], "bindings": bindings(shard.entries)}

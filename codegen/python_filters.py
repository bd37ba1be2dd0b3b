"""What the Python templates need of the model: the signatures of each name, how arguments are read.

A name gathers every overload of an operator; `out=` is an argument of the functional form:

    bindings(shard)[0].signatures[0].params  ->  input, other, alpha, out
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterable, Mapping

from . import cpp
from .model import Arg, Default, Entry, Form, Type

if TYPE_CHECKING:
    from .render import Shard

# Schema base type -> (Kind of the argument parser, getter of Call, Python type in stubs).
_KINDS = {
    "Tensor": ("Tensor", "tensor", "Tensor"),
    "int": ("Int", "integer", "int"),
    "SymInt": ("Int", "integer", "int"),
    "float": ("Float", "real", "float"),
    "bool": ("Bool", "boolean", "bool"),
    "Scalar": ("Number", "scalar", "Number"),
    "str": ("Str", "text", "str"),
    "ScalarType": ("Dtype", "dtype", "dtype"),
    "Layout": ("Layout", "layout", "layout"),
    "Device": ("Device", "device", "DeviceLike"),
    "MemoryFormat": ("MemoryFormat", "memory_format", "memory_format"),
    "Generator": ("Generator", "generator", "Generator"),
}
_LISTS = {
    "Tensor": ("TensorList", "tensors", "TensorSequence"),
    "int": ("IntList", "ints", "IntSequence"),
    "SymInt": ("IntList", "ints", "IntSequence"),
    "float": ("FloatList", "reals", "Sequence[float]"),
    "Scalar": ("NumberList", "scalars", "Sequence[Number]"),
    "bool": ("BoolList", "booleans", "Sequence[bool]"),
}


@dataclass(frozen=True)
class Param:
    """One argument: a row of the parser's table, the C++ that reads it, and its text in a stub."""

    name: str  # as in the schema
    kind: str
    flags: str
    length: int
    default_text: str  # "" where there is none
    variable: str
    read: str
    stub_type: str
    keyword: bool

    @property
    def python_name(self) -> str:
        return "input" if self.name == "self" else self.name


@dataclass(frozen=True)
class Signature:
    entry: Entry
    form: Form
    params: tuple[Param, ...]  # with `out` and `requires_grad` where it has them
    call_args: str
    out: tuple[str, ...]  # names of the outputs that `out=` may give; empty where it has none
    out_index: int
    requires_grad_index: int  # -1 where it has none
    self_index: int  # where a method's object goes; -1 where it is no method
    positional: int
    is_function: bool
    named_result: tuple[str, ...]
    result_type: str  # in a stub

    @property
    def arguments(self) -> tuple[Param, ...]:
        """The parameters that are the operator's own."""
        return self.params[: len(self.entry.args)]

    @property
    def is_method(self) -> bool:
        return self.self_index >= 0

    @property
    def operator(self) -> str:
        """`add_.Tensor`."""
        return f"{self.form.name}.{self.form.overload}" if self.form.overload else self.form.name

    @property
    def out_function(self) -> str:
        return self.entry.name + "_out"


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


def _python_default(default: Default) -> str:
    if default.kind == "none":
        return "None"
    if default.kind == "bool":
        return "True" if default.value else "False"
    if default.kind == "list":
        return (
            "("
            + ", ".join(str(v) for v in default.value)
            + ("," if len(default.value) == 1 else "")
            + ")"
        )
    if default.kind == "string":
        return repr(default.value)
    return default.text


def _stub_type(t: Type, nullable: bool) -> str:
    text = (_LISTS if t.list else _KINDS)[t.base][2]
    if t.list and t.base in ("int", "SymInt") and t.list_size:
        text = "Union[int, IntSequence]"
    return f"Optional[{text}]" if nullable else text


def _read(a: Arg, index: int) -> str:
    """The C++ expression that reads argument `index` of a Call."""
    t = a.type
    getter = (_LISTS if t.list else _KINDS)[t.base][1]
    if t.base == "Tensor" or t.base == "Generator":
        return f"call.{getter}({index})"
    default = cpp.default_value(a)
    if t.list and t.base == "bool":
        return f"call.booleans<{t.list_size}>({index}{', ' + default if default else ''})"
    if t.list and t.base == "Scalar":
        return f"call.scalars({index})"
    if t.list and t.base == "float":
        if default not in (None, "std::nullopt" if t.optional else "{}"):
            raise ValueError(
                f"argument {a.name}: the bindings know no type {t.text} with this default"
            )
        return f"call.{'maybe_' if t.optional else ''}reals({index})"
    prefix = "maybe_" if t.optional else ""
    given = [str(index)] + ([str(t.list_size or 0)] if t.list else [])
    if default is not None and not (t.optional and default == "std::nullopt"):
        given.append(default)
    return f"call.{prefix}{getter}({', '.join(given)})"


def _masks(e: Entry) -> frozenset[str]:
    """The arguments that `check` asks to be of dtype bool."""

    texts = {c.text for c in e.check}
    return frozenset(a.name for a in e.args if f"{a.name}.dtype() == bool" in texts)


def _param(a: Arg, index: int, is_factory: bool, is_mask: bool = False) -> Param:
    t = a.type
    is_place = is_factory and t.base == "Device"
    default_kind = a.default.kind if a.default is not None else ""
    # None is a way to write an empty list of sizes where that is the default: `stride=None`.
    sizes = t.list and t.base in ("int", "SymInt")
    is_empty = sizes and default_kind == "list" and not a.default.value
    nullable = t.optional or is_empty or default_kind == "none"
    flags = [
        name
        for name, on in (
            ("kNullable", nullable),
            ("kDefault", a.default is not None),
            ("kKeyword", a.kwarg_only),
            ("kNullableItems", t.element_optional),
        )
        if on
    ]
    return Param(
        name=a.name,
        kind=(_LISTS if t.list else _KINDS)[t.base][0],
        flags=" | ".join(flags) or "0",
        length=t.list_size or 0,
        default_text=_python_default(a.default) if a.default else "",
        variable=cpp.cpp_name(a.name),
        read=(
            f"call.device_of_new({index})"
            if is_place
            else f"call.mask({index})"
            if is_mask
            else _read(a, index)
        ),
        stub_type=_stub_type(t, nullable),
        keyword=a.kwarg_only,
    )


def _makes_tensors(e: Entry) -> bool:
    """Whether the operator makes a tensor from options, and so takes `requires_grad=`."""
    options = {"dtype", "layout", "device", "pin_memory"} <= {a.name for a in e.args}
    return options and (not e.tensor_args or e.name.endswith("_like") or e.name.startswith("new_"))


def _result_type(e: Entry, form: Form, named: tuple[str, ...]) -> str:
    if form.form == "inplace" and e.returns:
        return "Tensor"
    texts = ["Tuple[Tensor, ...]" if r.type.list else _KINDS[r.type.base][2] for r in e.returns]
    if named:
        return f"return_types.{e.name}"
    if not texts:
        return "TensorSequence" if e.foreach_of else "None"
    return texts[0] if len(texts) == 1 else f"Tuple[{', '.join(texts)}]"


def _signature(e: Entry, form: Form) -> Signature:
    is_factory = _makes_tensors(e) and not e.tensor_args
    masks = _masks(e)
    params = [_param(a, i, is_factory, a.name in masks) for i, a in enumerate(e.args)]
    out: tuple[str, ...] = ()
    out_index = requires_grad_index = -1
    if form.form == "functional" and e.form("out"):
        out = tuple(cpp.out_names(e))
        out_index = len(params)
        kind, stub = ("Tensor", "Tensor") if len(out) == 1 else ("TensorList", "TensorSequence")
        params.append(
            Param(
                "out",
                kind,
                "kNullable | kDefault | kKeyword",
                0,
                "None",
                "out",
                "",
                f"Optional[{stub}]",
                True,
            )
        )
    if _makes_tensors(e):
        requires_grad_index = len(params)
        params.append(
            Param(
                "requires_grad",
                "Bool",
                "kDefault | kKeyword",
                0,
                "False",
                "requires_grad",
                "",
                "bool",
                True,
            )
        )
    names = [a.name for a in e.args]
    self_index = names.index("self") if "method" in e.variants and "self" in names else -1
    named = (
        tuple(r.name for r in e.returns if r.name)
        if len(e.returns) > 1 and form.form == "functional"
        else ()
    )
    named = named if len(named) == len(e.returns) else ()
    return Signature(
        entry=e,
        form=form,
        params=tuple(params),
        call_args=", ".join(p.variable for p in params[: len(e.args)]),
        out=out,
        out_index=out_index,
        requires_grad_index=requires_grad_index,
        self_index=self_index,
        positional=sum(1 for p in params if not p.keyword),
        is_function="function" in e.variants or self_index < 0,
        named_result=named,
        result_type=_result_type(e, form, named),
    )


def _literal(text: str) -> str:
    """A default as `inspect` can read it."""
    plain = (
        text in ("None", "True", "False")
        or text[:1] in "-'("
        or text.replace(".", "").replace("e-", "").isdigit()
    )
    return text if plain else "..."


def text_signature(signature: Signature, receiver: str = "") -> str:
    """`(input, other, *, alpha=1)`."""
    parts = [receiver] if receiver else []
    star = False
    for i, p in enumerate(signature.params):
        if receiver and i == signature.self_index:
            continue
        if p.keyword and not star:
            star = True
            parts.append("*")
        parts.append(p.python_name + (f"={_literal(p.default_text)}" if p.default_text else ""))
    return f"({', '.join(parts)})"


def _filled(doc: str) -> str:
    """The text in lines that break between words only, so that a word is found in it."""
    return textwrap.fill(" ".join(doc.split()), 100, break_on_hyphens=False, break_long_words=False)


def _doc(name: str, signatures: Iterable[Signature]) -> str:
    signatures = list(signatures)
    first = signatures[0]
    receiver = "" if first.is_function else "$self"
    lines = [f"{name}{text_signature(first, receiver)}\n--\n"]
    for s in signatures:
        lines.append(f"{name}{text_signature(s)} -> {s.result_type}")
    seen: list[str] = []
    for s in signatures:
        if s.entry.doc and s.entry.doc not in seen:
            seen.append(s.entry.doc)
    return "\n".join(lines + [""] + [_filled(d) for d in seen]).rstrip()


def stub_body(s: Signature, indent: int) -> str:
    """The body of a function in a stub: its entry's doc, which editors show."""
    if not s.entry.doc:
        return " ..."
    begin = "\n" + " " * indent
    text = _filled(s.entry.doc).replace("\n", begin)
    return f'{begin}r"""{text}{" " if text.endswith(chr(34)) else ""}"""'


def bindings(entries: Iterable[Entry]) -> list[Binding]:
    """The Python names of these entries, sorted; signatures are in the order of the file."""
    groups: dict[tuple[str, str], list[Signature]] = {}
    for e in entries:
        # What only formulas and composites call may take its arguments on trust.
        if "internal" in e.tags or "no_python" in e.tags:
            continue
        for form in e.forms:
            # The form that writes is an argument of the functional one, where there is one.
            if form.form != "out" or not e.form("functional"):
                groups.setdefault((form.name, e.python_module or ""), []).append(
                    _signature(e, form)
                )
    found = []
    for (name, module), signatures in sorted(groups.items()):
        identifier = cpp.plain_name(name) + (f"_{module}" if module else "")
        found.append(Binding(name, identifier, module, tuple(signatures), _doc(name, signatures)))
    return found


def context(shard: "Shard") -> Mapping[str, Any]:
    """For bindings.cc.j2."""
    return {"headers": [name for name, _ in shard.groups], "bindings": bindings(shard.entries)}


# ---- stubs -------------------------------------------------------------------------------------


def stub_parameters(signature: Signature, method: bool) -> str:
    """The parameter list of a stub: `self, other: Tensor, *, alpha: Number = 1`."""
    parts = ["self"] if method else []
    star = False
    optional = False  # a positional default makes all that follow optional
    for i, p in enumerate(signature.params):
        if method and i == signature.self_index:
            continue
        if p.keyword and not star:
            star = True
            parts.append("*")
        optional = optional or (bool(p.default_text) and not p.keyword)
        has_default = bool(p.default_text) or (optional and not p.keyword)
        name = "input" if p.name == "self" else p.name
        name = name + "_" if name in ("from", "lambda") else name
        parts.append(f"{name}: {p.stub_type}" + (" = ..." if has_default else ""))
    if _spreads(signature, method):
        first = next(i for i, part in enumerate(parts) if part not in ("self",))
        parts = [p for i, p in enumerate(parts) if i != first and p != "*"]
        parts.insert(
            first,
            "*"
            f"{signature.params[0 if not method else (1 if signature.self_index == 0 else 0)].name}"
            ": Any",
        )
    return ", ".join(parts)


def _spreads(signature: Signature, method: bool) -> bool:
    places = [
        p
        for i, p in enumerate(signature.params)
        if not p.keyword and not (method and i == signature.self_index)
    ]
    return len(places) == 1 and places[0].kind == "IntList"


def stub_bindings(shards: Iterable["Shard"]) -> list[Binding]:
    found: list[Binding] = []
    for shard in shards:
        found += bindings(shard.entries)
    return sorted(found, key=lambda b: (b.module, b.name))


def named_results(all_bindings: Iterable[Binding]) -> list[tuple[str, tuple[str, ...]]]:
    """Every result with named parts: (name, fields)."""
    found: dict[str, tuple[str, ...]] = {}
    for b in all_bindings:
        for s in b.signatures:
            if s.named_result:
                found.setdefault(s.entry.name, s.named_result)
    return sorted(found.items())

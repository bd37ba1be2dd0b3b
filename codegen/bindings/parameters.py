"""Arguments in Python: a row of the parser's table, the C++ that reads it, and its type in a stub.

Example:

    int[2] stride=1    {"stride", Kind::IntList, kDefault, 2, "1"}    call.ints(3, 2, {1, 1})
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from ..cpp import code
from ..cpp.defaults import default_value
from ..cpp.names import cpp_name
from ..model import expr
from ..model.dtypes import DtypeKind
from ..model.entry import Entry
from ..model.schema import Arg, Default, DefaultKind, Type


@dataclass(frozen=True)
class _Reading:
    """How the parser reads a type."""

    kind: str  # of C++'s enum Kind
    getter: str  # of C++'s class Call
    stub: str  # the type in stubs


_SINGLE = {
    "Tensor": _Reading("Tensor", "tensor", "Tensor"),
    "int": _Reading("Int", "integer", "int"),
    "SymInt": _Reading("Int", "integer", "int"),
    "float": _Reading("Float", "real", "float"),
    "bool": _Reading("Bool", "boolean", "bool"),
    "Scalar": _Reading("Number", "scalar", "Number"),
    "str": _Reading("Str", "text", "str"),
    "ScalarType": _Reading("Dtype", "dtype", "dtype"),
    "Layout": _Reading("Layout", "layout", "layout"),
    "Device": _Reading("Device", "device", "DeviceLike"),
    "MemoryFormat": _Reading("MemoryFormat", "memory_format", "memory_format"),
    "Generator": _Reading("Generator", "generator", "Generator"),
}
_LISTS = {
    "Tensor": _Reading("TensorList", "tensors", "TensorSequence"),
    "int": _Reading("IntList", "ints", "IntSequence"),
    "SymInt": _Reading("IntList", "ints", "IntSequence"),
    "float": _Reading("FloatList", "reals", "Sequence[float]"),
    "Scalar": _Reading("NumberList", "scalars", "Sequence[Number]"),
    "bool": _Reading("BoolList", "booleans", "Sequence[bool]"),
}


@dataclass(frozen=True)
class Param:
    """One argument of a signature."""

    name: str  # as in the schema
    kind: str
    flags: str
    length: int
    default_text: str  # "" where there is none
    is_plain_default: bool  # `inspect` can read it
    variable: str
    read: Optional[code.Expr]  # None of what the template reads itself
    stub_type: str
    keyword: bool

    @property
    def python_name(self) -> str:
        return "input" if self.name == "self" else self.name


def _reading(t: Type) -> _Reading:
    return (_LISTS if t.list else _SINGLE)[t.base]


def result_stub(t: Type) -> str:
    """The type of a result in a stub."""
    return "Tuple[Tensor, ...]" if t.list else _SINGLE[t.base].stub


def can_read_default(a: Arg) -> bool:
    """Whether the bindings know a default of an argument of this type."""
    if a.type.list and a.type.base in ("float", "Scalar"):
        return default_value(a) in (None, code.NULLOPT if a.type.optional else code.EMPTY)
    return True


def _read(a: Arg, index: int) -> code.Expr:
    """The C++ expression that reads argument `index` of a Call."""
    t, getter = a.type, _reading(a.type).getter
    call, at = code.Id("call"), code.integer(index)
    if t.holds_tensors or t.base == "Generator":
        return code.MethodCall(call, getter, (at,))
    default = default_value(a)
    if t.list and t.base == "bool":
        given = (at,) if default is None else (at, default)
        return code.MethodCall(call, f"booleans<{t.list_size}>", given)
    if t.optional and not (t.list and t.base == "Scalar"):
        getter = f"maybe_{getter}"
    if t.list and t.base in ("float", "Scalar"):
        return code.MethodCall(call, getter, (at,))
    arguments = [at] + ([code.integer(t.list_size or 0)] if t.list else [])
    if default is not None and not (t.optional and default == code.NULLOPT):
        arguments.append(default)
    return code.MethodCall(call, getter, tuple(arguments))


def masks(e: Entry) -> frozenset[str]:
    """The arguments that `check` asks to be of dtype bool."""
    found = set()
    for condition in e.check:
        tree = condition.tree
        if not isinstance(tree, expr.Binary) or tree.operator != "==":
            continue
        subject, wanted = tree.left, tree.right
        if not isinstance(wanted, expr.DtypeName) or wanted.dtype.kind is not DtypeKind.BOOL:
            continue
        if isinstance(subject, expr.Method) and isinstance(subject.on, expr.Name):
            if subject.name == "dtype":
                found.add(subject.on.text)
    return frozenset(found)


def _python_default(default: Default) -> str:
    if default.kind is DefaultKind.NONE:
        return "None"
    if default.kind is DefaultKind.BOOL:
        return "True" if default.value else "False"
    if default.kind is DefaultKind.LIST:
        return repr(default.value)
    if default.kind is DefaultKind.STRING:
        return repr(default.value)
    return default.text


def parameter(a: Arg, index: int, is_place: bool, is_mask: bool) -> Param:
    """`is_place`: the device of a new tensor; `is_mask`: a tensor of bools, for which one of uint8
    is taken as well.
    """
    t = a.type
    none = a.default is not None and a.default.kind is DefaultKind.NONE
    # None is a way to write an empty list of sizes where that is the default: `stride=None`.
    empty = t.is_sizes and a.default is not None and a.default.value == ()
    nullable = t.optional or empty or none
    flags = {
        "kNullable": nullable,
        "kDefault": a.default is not None,
        "kKeyword": a.kwarg_only,
        "kNullableItems": t.element_optional,
    }
    read = _read(a, index)
    if is_place or is_mask:
        special = "device_of_new" if is_place else "mask"
        read = code.MethodCall(code.Id("call"), special, (code.integer(index),))
    stub = "Union[int, IntSequence]" if t.is_sizes and t.list_size else _reading(t).stub
    return Param(
        name=a.name,
        kind=_reading(t).kind,
        flags=" | ".join(flag for flag, on in flags.items() if on) or "0",
        length=t.list_size or 0,
        default_text=_python_default(a.default) if a.default else "",
        is_plain_default=a.default is not None and a.default.kind is not DefaultKind.NAME,
        variable=cpp_name(a.name),
        read=read,
        stub_type=f"Optional[{stub}]" if nullable else stub,
        keyword=a.kwarg_only,
    )


def added(name: str, kind: str, flags: str, default: str, stub: str) -> Param:
    """A keyword that the binding has beside the operator's arguments."""
    return Param(name, kind, flags, 0, default, True, name, None, stub, keyword=True)

"""Functions written by hand that the linker finds: composites, views, shape rules, and those that
hand over calls which may wait. An alias has the function of another operator in the place of one.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable, Optional

from ..cpp import code
from ..cpp.expressions import Translator
from ..cpp.names import cpp_name, plain_name
from ..cpp.types import argument_type, result_type
from ..library import Library
from ..model import expr
from ..model.entry import Entry
from ..model.expr import Expr
from ..model.schema import Form
from .lookup import tensors

_NAMESPACES = {"View": "views", "Composite": "composite", "Alias": ""}


@dataclass(frozen=True)
class Linked:
    namespace: str
    function: str


def linked_kernel(e: Entry) -> Optional[Linked]:
    """The function of an entry that runs no kernel of a device."""
    for key, namespace in _NAMESPACES.items():
        found = e.dispatch_of(key)
        if found:
            return Linked(namespace, found.kernel)
    return None


def is_alias(e: Entry) -> bool:
    return e.dispatch_of("Alias") is not None


def is_composite(e: Entry) -> bool:
    return e.dispatch_of("Composite") is not None or is_alias(e)


def alias_headers(entries: Iterable[Entry]) -> list[str]:
    """Base names of the operators that aliases call."""
    return sorted({k.function for e in entries if is_alias(e) and (k := linked_kernel(e))})


def linked_function(e: Entry, library: Library) -> Optional[code.Function]:
    """Its declaration; None where the generator makes the function itself."""
    kernel = linked_kernel(e)
    if kernel is None or e.foreach_of or is_alias(e):
        return None
    params = tuple(code.Param(argument_type(a.type), plain_name(a.name)) for a in e.args)
    namespace = f"{library.owner}::{kernel.namespace}"
    return code.Function(namespace, result_type(e.returns), kernel.function, params)


# ---- calls that wait ----------------------------------------------------------------------------


def may_wait(e: Entry) -> bool:
    return "may_wait" in e.tags


def waiting_function(e: Entry, library: Library) -> Optional[code.Function]:
    """The declaration of the function that may hand over a call; its result is undefined where
    the call must run now.
    """
    if not may_wait(e):
        return None
    params = tuple(code.Param(argument_type(a.type), plain_name(a.name)) for a in e.args)
    return code.Function(f"{library.owner}::waiting", result_type(e.returns), e.name, params)


def waiting_call(e: Entry, library: Library) -> code.Expr:
    arguments = tuple(code.Id(cpp_name(a.name)) for a in e.args)
    return code.Call(f"{library.linked('waiting')}::{e.name}", arguments)


# ---- shape rules ---------------------------------------------------------------------------------

_PLAIN = {
    "bool": code.Type("bool"),
    "int": code.Type("int64_t"),
    "float": code.Type("double"),
    "str": code.Type("std::string_view"),
    "int[]": code.Type("IntList"),
    "ScalarType": code.Type("ScalarType"),
    "Device": code.Type("Device"),
}


def shape_argument_type(e: Entry, node: Expr) -> Optional[code.Type]:
    """The type of an argument of a shape rule; None where it has no plain one."""
    if isinstance(node, expr.Name):
        return argument_type(e.arg(node.text).type)
    return _PLAIN.get(node.type)


def shape_function(e: Entry, library: Library) -> Optional[code.Function]:
    """The declaration of the shape rule as this entry calls it."""
    rule = e.shape.rule if e.shape else None
    if rule is None:
        return None
    types = [shape_argument_type(e, node) for node in rule.arguments]
    params = [code.Param(t, "") for t in types if t is not None]
    spec, count = code.Type("TensorSpec"), len(e.returns)
    result = {0: code.VOID, 1: spec}.get(count, code.array_of(spec, count))
    owner = library.owner if library.is_own_rule(rule.function) else "treadle"
    first = code.Param(code.Type("const char*"), "op")
    return code.Function(f"{owner}::shape", result, rule.function, (first, *params))


def shape_call(e: Entry, library: Library) -> code.Expr:
    """The call of the shape rule, with the operator's name first."""
    rule = e.shape.rule if e.shape else None
    assert rule is not None, "schemac asks for the rule of what is no composite"
    arguments = Translator().each(rule.arguments)
    return code.Call(library.rule(rule.function), (code.Id("name"), *arguments))


def hand_written(entries: Iterable[Entry], library: Library) -> list[code.Function]:
    """The shape rules, composites and views that the entries name, and what takes calls that may
    wait."""
    found = []
    for e in entries:
        found += [
            shape_function(e, library),
            linked_function(e, library),
            waiting_function(e, library),
        ]
    return list(dict.fromkeys(f for f in found if f is not None))


# ---- calls ---------------------------------------------------------------------------------------


def linked_call(e: Entry, form: Form, library: Library) -> code.Expr:
    """The call that makes the results of a form. The out= form of a factory makes a result of the
    dtype of `out` where none is given.
    """
    arguments: list[code.Expr] = []
    for a in e.args:
        name = code.Id(cpp_name(a.name))
        of_out = form.is_out and not e.tensor_args and a.name == "dtype"
        arguments.append(_dtype_of_out(name) if of_out else name)
    return _call(e, arguments, library)


def _dtype_of_out(dtype: code.Expr) -> code.Expr:
    out = code.Id("out")
    given = code.Infix("||", dtype, code.Prefix("!", code.MethodCall(out, "defined")))
    of_out = code.Call("std::optional<ScalarType>", (code.MethodCall(out, "dtype"),))
    return code.Ternary(given, dtype, of_out)


def _call(e: Entry, arguments: Iterable[code.Expr], library: Library) -> code.Expr:
    kernel = linked_kernel(e)
    assert kernel is not None
    prefix = library.prefix if is_alias(e) else library.linked(kernel.namespace)
    return code.Call(f"{prefix}::{kernel.function}", tuple(arguments))


def is_composed_in_place(e: Entry, form: Form) -> bool:
    """Whether the form writes to `self` what the operators that make up the functional form
    compute.
    """
    return form.is_inplace and linked_kernel(e) is not None and not e.args[0].type.writes


def composes_in_place(entries: Iterable[Entry]) -> bool:
    return any(is_composed_in_place(e, f) for e in entries for f in e.forms)


def call_before_change(e: Entry, library: Library) -> code.Expr:
    """The call of such a form, with `before` in the place of what is changed."""
    changed, before = code.Id(cpp_name(e.args[0].name)), code.Id("before")
    arguments: list[code.Expr] = [before]
    for a in e.args[1:]:
        name = code.Id(cpp_name(a.name))
        same = code.MethodCall(name, "is_same", (changed,))
        arguments.append(code.Ternary(same, before, name) if a.type.is_tensor else name)
    return _call(e, arguments, library)


def any_requires_grad(e: Entry) -> code.Expr:
    asked = [code.MethodCall(code.Id(name), "requires_grad") for name in tensors(e)]
    return code.joined("||", asked)

"""The C++ functions of an operator: what each form takes and returns.

Example:

    declaration(e, form)    const Tensor& self, const Tensor& other, const Scalar& alpha
    returns_of(e, form)     Tensor
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable, Optional

from ..model.entry import Entry, Kind
from ..model.schema import Arg, Form
from . import code
from .defaults import default_value
from .names import cpp_name, output_name, plain_name
from .types import TENSOR, argument_type, result_type


@dataclass(frozen=True)
class Binding:
    """An argument of a form, as its C++ functions have it."""

    arg: Arg
    type: code.Type
    name: str  # among the variables of a function
    plain: str  # in a declaration
    default: Optional[code.Expr]

    @property
    def is_tensor(self) -> bool:
        return self.arg.type.is_tensor

    @property
    def is_tensor_list(self) -> bool:
        return self.arg.type.is_tensor_list


def _binding(a: Arg, name: str) -> Binding:
    return Binding(a, argument_type(a.type), name, plain_name(a.name), default_value(a))


def variables(e: Entry, form: Form) -> dict[str, str]:
    """The arguments of a form, to their names among the variables of a function. The code that
    writes outputs knows theirs.
    """
    own = {a.name: cpp_name(a.name) for a in form.args[: len(e.args)]}
    return own | {a.name: output_name(a.name) for a in e.outs(form)}


def bindings(e: Entry, form: Form) -> tuple[Binding, ...]:
    """The arguments of a form: the entry's, and then the outputs."""
    names = variables(e, form)
    return tuple(_binding(a, names[a.name]) for a in form.args)


def out_names(e: Entry, form: Form) -> list[str]:
    """The names of the outputs that a form writes."""
    return [output_name(a.name) for a in e.outs(form)]


def returns_of(form: Form) -> code.Type:
    return result_type(form.returns)


def types_only(e: Entry, form: Form) -> str:
    return code.listed(b.type for b in bindings(e, form))


def declaration(e: Entry, form: Form) -> str:
    return code.listed(code.Param(b.type, b.name) for b in bindings(e, form))


def names_only(e: Entry, form: Form) -> str:
    return code.listed(b.name for b in bindings(e, form))


def plain_names_only(e: Entry, form: Form) -> str:
    return code.listed(b.plain for b in bindings(e, form))


def kernel_types(e: Entry) -> str:
    """The signature of kernels: for structured ones all arguments and then the outputs; they return
    nothing.
    """
    if e.kind is Kind.POINTWISE:
        return "void(const PointwiseCall&)"
    if e.kind is Kind.REDUCE:
        return "void(const ReduceCall&)"
    arguments = [argument_type(a.type) for a in e.args]
    result = result_type(e.returns)
    if e.kind is Kind.KERNEL:
        arguments += [TENSOR] * len(e.returns)
    if e.kind in (Kind.KERNEL, Kind.MUTATING):
        result = code.VOID
    return f"{result}({code.listed(arguments)})"


# ---- defaults ------------------------------------------------------------------------------------


def _required(e: Entry, form: Form) -> int:
    """How many leading parameters have no default: one counts only where every later parameter has
    one too.
    """
    defaults = [b.default for b in bindings(e, form)]
    while defaults and defaults[-1] is not None:
        defaults.pop()
    return len(defaults)


def required_parameters(entries: Iterable[Entry]) -> dict[str, int]:
    """Form id -> leading parameters without a default, for the overloads of one name. Where two
    overloads could both be called with the same types, only the earlier keeps the defaults that
    allow it.
    """
    taken: set[tuple[object, ...]] = set()
    found = {}
    for e in entries:
        for f in e.forms:
            types = [b.type for b in bindings(e, f)]
            required = _required(e, f)
            calls = [(f.function, *types[:n]) for n in range(required, len(types) + 1)]
            clash = max((i for i, c in enumerate(calls[:-1]) if c in taken), default=-1)
            found[f.id] = required + clash + 1
            taken.update(calls[clash + 1 :])
    return found


def params_with_defaults(e: Entry, form: Form, required: int = 0) -> list[code.Param]:
    """Parameters with defaults after the first `required`, as a declaration has them."""
    first = max(required, _required(e, form))
    return [
        code.Param(b.type, b.plain, b.default if i >= first else None)
        for i, b in enumerate(bindings(e, form))
    ]


def with_defaults(e: Entry, form: Form, required: int = 0) -> str:
    return code.listed(params_with_defaults(e, form, required))


# ---- methods -------------------------------------------------------------------------------------


def method_declaration(e: Entry, form: Form) -> str:
    """The parameters beside self, wherever that is, with defaults, for a member function."""
    params = zip(params_with_defaults(e, form), form.args)
    return code.listed(param for param, a in params if not a.is_self)


def method_arguments(e: Entry) -> str:
    return code.listed("*this" if a.is_self else plain_name(a.name) for a in e.args)

"""Entries that schemac accepts and the generator has no code for: types without one in C++ or in
Python, names that mean something else, kinds of entries that no template serves.

All of it is found before anything is rendered, and each is said with its place.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import keyword
from typing import Iterator, Mapping

from .bindings.parameters import can_read_default
from .cpp.expressions import as_written
from .cpp.signatures import variables
from .cpp.types import is_argument_type, is_result_type
from .diagnostics import Diagnostic, Place
from .gradients.edges import edges_of
from .gradients.nodes import is_kept_list_of_results, kept_names
from .library import Library
from .model.entry import Entry, Kind, Model, Variant
from .model.expr import Constant, DtypeName, Name, walk
from .operators.elements import is_promotion_known
from .operators.linked import linked_kernel, shape_argument_type

# The names that the parts of a reduction know.
_REDUCTION_NAMES = {"init": (), "step": ("acc", "x"), "combine": ("a", "b"), "final": ("acc", "n")}


def problems(model: Model, library: Library) -> Iterator[Diagnostic]:
    for e in model.entries:
        yield from _of_types(e)
        yield from _of_names(e)
        yield from _of_kinds(e)
        yield from _of_derivatives(e)
        if library.is_outside:
            yield from _of_outside(e)


def _of_types(e: Entry) -> Iterator[Diagnostic]:
    for a in e.args:
        if not is_argument_type(a.type):
            message = f"argument '{a.name}' of {e.full_name} has the type '{a.type.text}'"
            yield Diagnostic(e.place, message, "C++ functions of operators have no such argument")
        elif not can_read_default(a):
            message = f"the default of argument '{a.name}' of {e.full_name}"
            yield Diagnostic(
                e.place, message, f"Python's functions know none of type '{a.type.text}' but []"
            )
    for r in e.returns:
        if not is_result_type(r.type):
            message = f"{e.full_name} returns '{r.type.text}'"
            yield Diagnostic(e.place, message, "C++ functions of operators return no such value")
    for node in e.shape.rule.arguments if e.shape and e.shape.rule else ():
        if shape_argument_type(e, node) is None:
            text = as_written(node)
            message = f"'{text}' in the shape of {e.full_name} has no plain type"
            yield Diagnostic(e.place, message, "give the rule what it is made of")


def _of_names(e: Entry) -> Iterator[Diagnostic]:
    used = {
        str(as_written(node))
        for tree in e.trees
        for node in walk(tree)
        if isinstance(node, (Constant, DtypeName))
    }
    for a in e.args:
        if a.name in used:
            message = f"'{a.name}' in an expression of {e.full_name} is a constant, and an argument"
            yield Diagnostic(e.place, message, "rename the argument")
    for form in e.forms:
        yield from _of_same_names(e, e.place, variables(e, form))


def _of_same_names(e: Entry, place: Place, names: Mapping[str, str]) -> Iterator[Diagnostic]:
    """`names`: what is named, to its name in C++."""
    first: dict[str, str] = {}
    for name, variable in names.items():
        if variable in first:
            message = f"'{first[variable]}' and '{name}' of {e.full_name} are '{variable}' in C++"
            yield Diagnostic(place, message, "rename one of the two")
        first.setdefault(variable, name)


def _of_kinds(e: Entry) -> Iterator[Diagnostic]:
    kind = f"{e.full_name}, which is {e.kind},"
    if e.kind in (Kind.POINTWISE, Kind.REDUCE) and len(e.returns) != 1:
        yield Diagnostic(e.place, f"{kind} has {len(e.returns)} results", "make it return one")
    if e.reduce and e.reduce.step is None:
        yield Diagnostic(e.place, f"{kind} has no 'step'", "say what one more element does")
    for part, expression in e.reduce.parts.items() if e.reduce else ():
        for node in walk(expression.tree):
            if isinstance(node, Name) and node.text not in _REDUCTION_NAMES[part]:
                message = f"'{node.text}' in reduce.{part} of {e.full_name}"
                names = " and ".join(_REDUCTION_NAMES[part]) or "nothing"
                yield Diagnostic(e.place, message, f"it knows {names}")
    if e.kind in (Kind.POINTWISE, Kind.REDUCE) and not is_promotion_known(e):
        yield Diagnostic(e.place, f"{kind} has 'promote: {e.promote}'", "it cannot be promoted so")
    if e.kind is Kind.VIEW and linked_kernel(e) is None:
        message = f"{e.full_name} returns a view and has kernels of devices"
        yield Diagnostic(e.place, message, "write 'dispatch: {View: FUNCTION}'")


def _of_derivatives(e: Entry) -> Iterator[Diagnostic]:
    if e.derivative is None:
        return
    where = f"the derivative of {e.full_name}"
    for f in e.formulas:
        for save in f.saves:
            if is_kept_list_of_results(e, save):
                place = Place(e.derivative.place.file, f.line)
                message = f"the list '{save.name}' is kept for {where}"
                yield Diagnostic(place, message, "compute it anew from the arguments")
    yield from _of_same_names(e, e.derivative.place, kept_names(e))
    targets = {target.name for target in edges_of(e).targets}
    for form in e.forms if e.formulas else ():
        if form.is_inplace and e.args[0].name not in targets:
            message = f"no formula for '{e.args[0].name}' in {where}"
            yield Diagnostic(e.derivative.place, message, "the in-place form changes it; add one")


def _of_outside(e: Entry) -> Iterator[Diagnostic]:
    """Entries that are valid in the tree alone."""
    if Variant.METHOD in e.variants:
        message = f"{e.full_name} has the variant 'method'"
        yield Diagnostic(e.place, message, "a library adds no methods to Tensor, remove it")
    if e.python_module:
        message = f"{e.full_name} has a 'python_module'"
        yield Diagnostic(e.place, message, "the functions of a library are in its own, remove it")
    if keyword.iskeyword(e.name) or e.name.startswith("__"):
        message = f"{e.full_name} cannot be the name of a function in Python"
        yield Diagnostic(e.place, message, "rename it")
    if not e.returns and not any(a.type.writes for a in e.args):
        yield Diagnostic(e.place, f"{e.full_name} returns nothing and writes nothing")

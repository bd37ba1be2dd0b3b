"""Operators on lists: what each place of the lists is called with.

Example:

    _foreach_add(self, other, alpha=2)    add(self[i], other[i], 2) for each i
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Iterable, Optional

from ..cpp import code
from ..cpp.defaults import default_value
from ..cpp.names import cpp_name
from ..library import Library
from ..model.entry import Entry, ForeachOf, Model
from ..model.schema import Arg, Form


def has_scalar_lists(entries: Iterable[Entry]) -> bool:
    return any(a.type.base == "Scalar" and a.type.list for e in entries for a in e.args)


def _of(e: Entry) -> ForeachOf:
    assert e.foreach_of is not None
    return e.foreach_of


def _entry(e: Entry, model: Model) -> Entry:
    """The entry that is called for each place."""
    return model.by_full_name[_of(e).of]


def _form(e: Entry, model: Model) -> Form:
    form = _entry(e, model).form(_of(e).form)
    assert form is not None
    return form


def foreach_lists(e: Entry) -> list[Arg]:
    """The arguments that have an element for each place."""
    taken = set(_of(e).arguments.values())
    return [a for a in e.args if a.name in taken and a.type.list and not a.type.list_size]


def foreach_numbers(e: Entry, model: Model) -> Optional[Arg]:
    """The tensor that holds a number for each place of the lists."""
    of = _entry(e, model)
    for name, here in _of(e).arguments.items():
        if of.arg(name).type.base == "Scalar" and e.arg(here).type.is_tensor:
            return e.arg(here)
    return None


def foreach_shared(e: Entry, model: Model) -> list[Arg]:
    """The tensors that are the same for all places."""
    numbers = foreach_numbers(e, model)
    return [a for a in e.tensor_args if a is not numbers]


def foreach_call(e: Entry, model: Model, library: Library, tensor_as: str = "") -> code.Expr:
    """The call for place i, each tensor through the function `tensor_as` where one is named."""
    lists, numbers = foreach_lists(e), foreach_numbers(e, model)
    place = code.Id("i")
    arguments: list[code.Expr] = []
    for a in _entry(e, model).args:
        here = _of(e).arguments.get(a.name)
        if here is None:
            arguments.append(default_value(a) or code.EMPTY)
            continue
        if numbers is not None and here == numbers.name:
            arguments.append(code.Subscript(code.Id("numbers"), place))
            continue
        value: code.Expr = code.Id(cpp_name(here))
        if any(here == one.name for one in lists):
            value = code.Subscript(value, place)
        if tensor_as and a.type.holds_tensors:
            value = code.Call(tensor_as, (value,))
        arguments.append(value)
    return code.Call(f"{library.prefix}::{_form(e, model).name}", tuple(arguments))


def foreach_headers(entries: Iterable[Entry], model: Model) -> list[str]:
    """Base names of the operators that those on lists call."""
    return sorted({_entry(e, model).name for e in entries if e.foreach_of})

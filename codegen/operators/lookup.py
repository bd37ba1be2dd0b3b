"""How the kernel of an operator is found: by the device, layout and dtype of which arguments."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from ..cpp import code
from ..cpp.names import cpp_name
from ..model.entry import Entry
from ..model.schema import Arg


def tensors(e: Entry) -> list[str]:
    """Names of the arguments that are tensors."""
    return [cpp_name(a.name) for a in e.tensor_args]


def tensors_and_lists(e: Entry) -> list[str]:
    """Names of the arguments that are tensors or lists of them."""
    return [cpp_name(a.name) for a in e.args if a.type.holds_tensors]


def written_lists(e: Entry) -> list[str]:
    """Names of the lists of tensors that the operator writes."""
    return [cpp_name(a.name) for a in e.args if a.type.is_tensor_list and a.type.writes]


def returns_views(e: Entry) -> bool:
    """Whether the entry makes several views of an argument."""
    return any(r.type.is_tensor_list and r.type.alias is not None for r in e.returns)


def _first(a: Arg) -> code.Expr:
    """The tensor that stands for an argument: of a list its first."""
    name = code.Id(cpp_name(a.name))
    return code.Subscript(name, code.integer(0)) if a.type.is_tensor_list else name


def shown_first(a: Arg) -> str:
    """The same in messages."""
    return f"{a.name}[0]" if a.type.is_tensor_list else a.name


def _address(value: code.Expr) -> code.Expr:
    return code.Prefix("&", value)


def inputs_of(e: Entry, first: int = 0) -> code.Expr:
    """The addresses of the tensor arguments from the one of number `first` on, those in lists
    included.
    """
    arguments = [a for a in e.args if a.type.holds_tensors][first:]
    names = [code.Id(cpp_name(a.name)) for a in arguments]
    if any(a.type.list for a in arguments):
        return code.Call("contract::inputs_of", tuple(names))
    return code.Braces(tuple(map(_address, names)))


def key_dtype(e: Entry) -> code.Expr:
    """The dtype that selects the kernel."""
    if e.dtype_of is None:
        return code.Id("ScalarType::Float32")
    a = e.arg(e.dtype_of)
    return code.MethodCall(_first(a), "dtype") if a.type.holds_tensors else _first(a)


def key_arguments(e: Entry) -> list[Arg]:
    """The arguments whose device and layout select the kernel: lists only where no tensor says
    them, or where one's dtype selects the kernel.
    """
    lists = [a for a in e.args if a.type.is_tensor_list]
    chosen = [a for a in lists if a.name == e.dtype_of] or ([] if e.tensor_args else lists[:1])
    return [*e.tensor_args, *chosen]


def key_pointers(e: Entry) -> code.Expr:
    return code.Braces(tuple(_address(_first(a)) for a in key_arguments(e)))


def key_names(e: Entry) -> code.Expr:
    return code.Braces(tuple(code.Text(shown_first(a)) for a in key_arguments(e)))


def asked_lists(e: Entry) -> list[Arg]:
    """The lists whose first tensor is asked for its dtype or device."""
    return [a for a in key_arguments(e) if a.type.is_tensor_list]

"""Types of schemas in C++.

Example:

    argument_type(int[]?)   OptionalIntList         kept_type(int[]?)   std::optional<DimVector>
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Iterable

from ..model.schema import Return, Type
from . import code

TENSOR = code.Type("Tensor", by_reference=True)
TENSOR_LIST = code.Type("TensorList")
_TENSORS = code.Type("std::vector<Tensor>")
_INTS, _OPTIONAL_INTS = code.Type("IntList"), code.Type("OptionalIntList")

# Base type of a schema -> type of an argument.
_SINGLE = {
    "int": code.Type("int64_t"),
    "SymInt": code.Type("int64_t"),
    "float": code.Type("double"),
    "bool": code.Type("bool"),
    "str": code.Type("std::string_view"),
    "Scalar": code.Type("Scalar", by_reference=True),
    "ScalarType": code.Type("ScalarType"),
    "Layout": code.Type("Layout"),
    "Device": code.Type("Device"),
    "MemoryFormat": code.Type("MemoryFormat"),
    "Generator": code.Type("Generator", by_reference=True),
}
_LIST = {
    "int": _INTS,
    "SymInt": _INTS,
    "float": code.Type("DoubleList"),
    "Scalar": code.Type("ScalarList"),
}
# Base type of a schema -> type that owns the elements of a list.
_OWNED_LIST = {
    "int": code.Type("DimVector"),
    "SymInt": code.Type("DimVector"),
    "float": code.Type("std::vector<double>"),
    "Scalar": code.Type("std::vector<Scalar>"),
}
_RESULTS = ("int", "SymInt", "float", "bool", "Scalar", "ScalarType")


def is_argument_type(t: Type) -> bool:
    """Whether arguments of this type have one in C++."""
    if t.holds_tensors:
        return True
    if t.list:
        return t.base in _LIST or (t.base == "bool" and t.list_size is not None)
    return t.base in _SINGLE


def is_result_type(t: Type) -> bool:
    return t.holds_tensors or (not t.list and not t.optional and t.base in _RESULTS)


def argument_type(t: Type) -> code.Type:
    if t.holds_tensors:
        return TENSOR_LIST if t.list else TENSOR
    if t.list and t.base == "bool":
        return code.array_of(_SINGLE["bool"], t.list_size or 0)
    if t.list:
        plain = _LIST[t.base]
        if not t.optional:
            return plain
        return _OPTIONAL_INTS if plain is _INTS else code.optional(plain)
    plain = _SINGLE[t.base]
    # A generator that is not given is one without a state.
    return code.optional(plain) if t.optional and t.base != "Generator" else plain


def kept_type(t: Type) -> code.Type:
    """The type that holds such an argument for later, when nobody else does."""
    if t.holds_tensors:
        return _TENSORS if t.list else TENSOR.by_value
    if t.list and t.base != "bool":
        owned = _OWNED_LIST[t.base]
        return code.optional(owned) if t.optional else owned
    if t.base == "str":
        text = code.Type("std::string")
        return code.optional(text) if t.optional else text
    return argument_type(t).by_value


def result_type(returns: Iterable[Return]) -> code.Type:
    def single(t: Type) -> code.Type:
        if t.holds_tensors:
            return _TENSORS if t.list else TENSOR.by_value
        return _SINGLE[t.base].by_value

    types = [single(r.type) for r in returns]
    if not types:
        return code.VOID
    return types[0] if len(types) == 1 else code.tuple_of(types)

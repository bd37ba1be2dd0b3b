"""Defaults of schemas in C++: `int[2] stride=1` is `{1, 1}`."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Optional

from ..model.dtypes import Dtype
from ..model.schema import Arg, DefaultKind, Value
from . import code

INFINITY = code.Call("std::numeric_limits<double>::infinity", ())
NAN = code.Call("std::numeric_limits<double>::quiet_NaN", ())
PI = code.Literal("std::numbers::pi")

# The constants that defaults name, beside dtypes. Mean and Sum are as the kernels of losses number
# them.
_NAMES: dict[str, code.Expr] = {
    "inf": INFINITY,
    "-inf": code.Prefix("-", INFINITY),
    "nan": NAN,
    "Mean": code.Literal("1"),
    "Sum": code.Literal("2"),
    "strided": code.Id("Layout::Strided"),
    "contiguous_format": code.Id("MemoryFormat::Contiguous"),
    "preserve_format": code.Id("MemoryFormat::Preserve"),
    "channels_last": code.Id("MemoryFormat::ChannelsLast"),
    "channels_last_3d": code.Id("MemoryFormat::ChannelsLast3d"),
}


def dtype(d: Dtype) -> code.Expr:
    return code.Id(f"ScalarType::{d.enumerator}")


def _single(value: Value) -> code.Expr:
    """One value, such as an element of a list."""
    if isinstance(value, bool):
        return code.TRUE if value else code.FALSE
    if isinstance(value, int):
        return code.integer(value)
    if isinstance(value, float):
        return _number(str(value))
    if isinstance(value, Dtype):
        return dtype(value)
    if isinstance(value, str):
        return _NAMES[value]
    raise AssertionError(f"schemac takes no default {value!r}")


def _number(text: str) -> code.Expr:
    negative = text.startswith("-")
    return code.Prefix("-", code.Literal(text[1:])) if negative else code.Literal(text)


def default_value(a: Arg) -> Optional[code.Expr]:
    """The default argument; None where there is none."""
    d, t = a.default, a.type
    if d is None:
        return None
    if d.kind is DefaultKind.NONE:
        if t.holds_tensors:
            return code.EMPTY
        return code.NULLPTR if t.base == "Generator" else code.NULLOPT
    if d.kind is DefaultKind.LIST:
        assert isinstance(d.value, tuple)
        items = code.Braces(tuple(map(_single, d.value)))
        return code.Call("IntList", (items,)) if t.optional else items
    if d.kind is DefaultKind.STRING:
        return code.Text(str(d.value))
    value = _number(d.text) if isinstance(d.value, float) else _single(d.value)
    if t.list:  # the same for each place: int[2] stride=1
        return code.Braces((value,) * (t.list_size or 1))
    if t.base == "Scalar" and d.kind is DefaultKind.INT:
        return code.Call("Scalar", (value,))
    return value

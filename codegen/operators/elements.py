"""Pointwise and reducing operators: what their kernels and their calls are made of."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Iterable

from ..cpp import code
from ..cpp.expressions import Element
from ..cpp.names import cpp_name
from ..model.dtypes import Dtype, DtypeKind
from ..model.entry import Entry, Kind, Promotion
from ..model.expr import Binary, Name, Ternary
from ..model.schema import Arg

_PROMOTE = {
    Promotion.COMMON: "Common",
    Promotion.REAL: "Real",
    Promotion.FLOAT: "Float",
    Promotion.COMPARE: "Compare",
    Promotion.BOOL: "Bool",
    Promotion.NONE: "None",
}
_REDUCE_PROMOTE = {
    Promotion.COMMON: "Same",
    Promotion.NONE: "Same",
    Promotion.SUM: "Sum",
    Promotion.FLOAT: "Float",
    Promotion.BOOL: "Bool",
}


def numbers(e: Entry) -> list[Arg]:
    """The number arguments of a pointwise entry, in order: what its expression may name beside
    tensors.
    """
    bases = ("Scalar", "float", "int", "bool")
    return [a for a in e.args if a.type.base in bases and not a.type.list]


def scalars(e: Entry) -> code.Expr:
    """The numbers of a call."""
    return code.Braces(tuple(code.Call("Scalar", (code.Id(cpp_name(a.name)),)) for a in numbers(e)))


def element_names(e: Entry) -> list[str]:
    """Names in a pointwise expression: tensors in the schema's order, then numbers."""
    assert e.pointwise is not None
    values = Element(e.pointwise.tree)
    return [values.variable(a.name) for a in [*e.tensor_args, *numbers(e)]]


def promoting(e: Entry) -> int:
    """Bit mask of the numbers that are operands: Scalars given by position and without a
    default.
    """
    mask = 0
    for i, a in enumerate(numbers(e)):
        if a.type.base == "Scalar" and not a.kwarg_only and a.default is None:
            mask |= 1 << i
    return mask


def is_promotion_known(e: Entry) -> bool:
    """Whether the kernels of the entry promote as it says."""
    table = _PROMOTE if e.kind is Kind.POINTWISE else _REDUCE_PROMOTE
    return e.promote is None or e.promote in table


def promote_enumerator(e: Entry) -> str:
    table = _PROMOTE if e.kind is Kind.POINTWISE else _REDUCE_PROMOTE
    return table[e.promote or Promotion.COMMON]


def expression_text(e: Entry) -> str:
    if e.pointwise:
        return e.pointwise.text
    if e.reduce:
        return "; ".join(f"{name} = {part.text}" for name, part in e.reduce.parts.items())
    return ""


# ---- reductions ----------------------------------------------------------------------------------


def reduce_dims(e: Entry) -> code.Expr:
    """The dims argument of a reduction as an OptionalIntList."""
    a = e.find_arg("dim")
    if a is None:
        return code.NULLOPT
    dim = code.Id(cpp_name(a.name))
    if a.type.list:
        return code.Call("OptionalIntList", (dim,))
    value = code.Prefix("*", dim) if a.type.optional else dim
    one = code.Call("IntList", (code.Prefix("&", value), code.integer(1)))
    given = code.Call("OptionalIntList", (one,))
    if not a.type.optional:
        return given
    return code.Ternary(dim, given, code.Call("OptionalIntList", ()))


def reduce_option(e: Entry, name: str, otherwise: str) -> str:
    """An argument that a reduction may have, or what stands for it."""
    return cpp_name(name) if e.find_arg(name) else otherwise


def multiplies(e: Entry) -> bool:
    """Whether a reduction joins partial results by multiplying them."""
    combine = e.reduce.combine.tree if e.reduce else None
    return isinstance(combine, Binary) and combine.operator == "*"


# ---- kernels -------------------------------------------------------------------------------------


def has_cpu_kernels(e: Entry) -> bool:
    """Whether the generator makes CPU kernels for the entry."""
    return e.kind in (Kind.POINTWISE, Kind.REDUCE) and bool(e.dtypes_on("CPU"))


def has_element(e: Entry) -> bool:
    """Whether the expression of the entry is compiled for the CPU."""
    return e.kind is Kind.POINTWISE and has_cpu_kernels(e)


def computed_dtypes(e: Entry) -> list[Dtype]:
    """The dtypes an entry's kernels are looked up by: what the operands are promoted to, not what
    they may be.
    """
    declared = e.dtypes_on("CPU")
    if e.promote is Promotion.FLOAT:
        return [d for d in declared if d.is_inexact]
    if e.promote is Promotion.SUM:
        return [d for d in declared if d.name == "int64" or d.is_inexact]
    return list(declared)


def block_types(e: Entry) -> list[str]:
    """C++ types the inner loops of an entry are compiled for; 16-bit floats compute in float."""
    if e.promote is Promotion.BOOL:
        return ["bool"]
    return list(dict.fromkeys(d.computes_in for d in computed_dtypes(e)))


def divisors(e: Entry) -> int:
    """The bits of the numbers of a pointwise entry of which one is 0 where computing it throws;
    none where an element may be to blame.
    """
    names = [a.name for a in numbers(e)]
    if not set(e.throws_if_zero) <= set(names):
        return 0
    return sum(1 << names.index(name) for name in e.throws_if_zero)


def ignores_sign(e: Entry) -> bool:
    """Whether a pointwise entry gives signed and unsigned integers of one size the same bits, so
    that they share a loop.
    """
    if e.pointwise is None or e.keeps_low_bits:
        return e.keeps_low_bits
    tree = e.pointwise.tree
    compares = isinstance(tree, Binary) and tree.operator in ("==", "!=")
    return (compares or isinstance(tree, Ternary)) and all(
        isinstance(child, Name) for child in tree.children
    )


def loop_count(e: Entry) -> int:
    """How many loops the kernels of an entry have on each target."""
    if not has_cpu_kernels(e):
        return 0
    shared = ignores_sign(e)
    types = [d for d in computed_dtypes(e) if not (shared and d.kind is DtypeKind.SIGNED)]
    return 1 if e.promote is Promotion.BOOL else len({d.computes_in for d in types})


def row_cells(e: Entry, dtypes: Iterable[Dtype]) -> list[bool]:
    """For each dtype, whether the entry has a generated kernel."""
    computed = computed_dtypes(e)
    return [dtype in computed for dtype in dtypes]

"""The checks of a call: its conditions, and the presence, lengths, devices and dtypes of its
arguments.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Iterator, Optional

from ..cpp import code
from ..cpp.code import Statement
from ..cpp.expressions import Contract, as_written, translated
from ..cpp.names import cpp_name
from ..cpp.signatures import bindings
from ..model import expr
from ..model.dtypes import Row
from ..model.entry import ArgumentDtypes, Condition, Entry, Kind
from ..model.expr import Expr
from ..model.schema import Arg, Form
from .lookup import asked_lists, key_dtype, shown_first

_DEVICE = code.Id("device")


def _check(name: str, *arguments: code.Expr) -> code.Expr:
    return code.Call(f"contract::{name}", arguments)


def _unless(condition: code.Expr, then: Statement) -> Statement:
    return code.If(code.Prefix("!", condition), then, unlikely=True)


# ---- conditions ----------------------------------------------------------------------------------


def is_message(tree: Expr) -> bool:
    """Whether a condition has words for people: message(condition, "words")."""
    return isinstance(tree, expr.Call) and tree.function == "message"


def check_text(condition: Condition) -> str:
    """A condition as messages and pages write it: the words of message(), "side in ('left',
    'right')" for a choice of texts.
    """
    tree = condition.tree
    if is_message(tree):
        told = tree.children[1]
        assert isinstance(told, expr.String)
        return told.value
    if isinstance(tree, expr.Call) and tree.function == "one_of":
        subject, *texts = tree.arguments
        words = ", ".join(f"'{t.value}'" for t in texts if isinstance(t, expr.String))
        return f"{as_written(subject)} in ({words})"
    return condition.text


def _subjects(node: Expr) -> Iterator[Expr]:
    """The parts of a condition whose values its message shows: names and method calls, in order.
    Where the message has words, the dtypes and numbers that questions are asked of.
    """
    if is_message(node):
        yield from (_asked(part) for part in _subjects(node.children[0]))
    elif isinstance(node, (expr.Name, expr.Method, expr.Index)):
        yield node
    else:
        for child in node.children:
            yield from _subjects(child)


def _asked(node: Expr) -> Expr:
    """self.is_complex() asks for the dtype of self, exponent.is_integral() for the number."""
    if not isinstance(node, expr.Method) or not node.name.startswith("is_"):
        return node
    if node.name in ("is_floating_point", "is_complex"):
        return expr.Method(node.on, "dtype", ())
    return node.on


def _violation(operator: code.Expr, condition: Condition) -> Statement:
    got = [
        code.Construct("contract::Got", (code.Text(str(as_written(node))), translated(node)))
        for node in dict.fromkeys(_subjects(condition.tree))
    ]
    violation = _check("violation", operator, code.Text(check_text(condition)), *got)
    holds = code.Group(Contract().visit(condition.tree))
    return _unless(holds, code.Throw(violation))


# ---- the contract of a call ----------------------------------------------------------------------


def contract_lines(e: Entry, form: Form) -> list[Statement]:
    """The checks before anything is computed: presence, list lengths, `check:`."""
    operator = code.Text(form.name)
    lines = [*_presence(e, form, operator), *_lengths(e, operator)]
    # Operators with kernels look them up by dtype, and are refused there.
    if e.kind in (Kind.COMPOSITE, Kind.VIEW):
        lines += _dtype_lines(e, operator)
    return lines + [_violation(operator, condition) for condition in e.check]


def _presence(e: Entry, form: Form, operator: code.Expr) -> Iterator[Statement]:
    for b in bindings(e, form):
        name = code.Id(b.name)
        required = code.Evaluate(_check("require_defined", operator, code.Text(b.arg.name), name))
        if b.is_tensor and not b.arg.type.optional:
            yield _unless(code.MethodCall(name, "defined"), required)
        elif b.is_tensor_list and not b.arg.type.element_optional:
            yield required


def _lengths(e: Entry, operator: code.Expr) -> Iterator[Statement]:
    for a in e.args:
        size = a.type.list_size or 0
        if not a.type.is_sizes or size < 2:
            continue
        name = code.Id(cpp_name(a.name))
        line: Statement = code.Evaluate(
            _check("require_length", operator, code.Text(a.name), name, code.integer(size))
        )
        # An empty list is a length of its own where it is the default (stride=[]).
        if a.default and a.default.value == ():
            line = code.If(code.Prefix("!", code.MethodCall(name, "empty")), line)
        yield line


def _dtype_lines(e: Entry, operator: code.Expr) -> Iterator[Statement]:
    """The row of an operator without kernels: one test of a bit."""
    row = e.dtypes_on("CPU")
    if e.dtype_of is None or row.is_every:
        return

    def line(guard: Optional[code.Expr], subject: str, dtype: code.Expr) -> Statement:
        refused = _check("wrong_dtype", operator, code.Text(subject), code.Text(str(row)), dtype)
        wrong: code.Expr = code.Prefix("!", _check("admits", _mask(row), dtype))
        condition = wrong if guard is None else code.Infix("&&", guard, wrong)
        return code.If(condition, code.Evaluate(refused), unlikely=True)

    a = e.arg(e.dtype_of)
    name = code.Id(cpp_name(a.name))
    if a.type.is_tensor_list:
        given = code.Prefix("!", code.MethodCall(name, "empty"))
        yield line(given, f"{a.name} of a dtype", key_dtype(e))
    elif a.type.is_tensor:
        defined = code.MethodCall(name, "defined") if a.type.optional else None
        yield line(defined, f"{a.name} of a dtype", key_dtype(e))
    elif not a.type.optional:
        yield line(None, a.name, name)
    else:
        # None stands for the dtype of the first tensor; in a factory for one that is in the row.
        yield line(name, a.name, code.Prefix("*", name))
        if e.tensor_args:
            first = e.tensor_args[0].name
            dtype = code.MethodCall(code.Id(cpp_name(first)), "dtype")
            yield line(code.Prefix("!", name), f"{first} of a dtype", dtype)


# ---- what the lookup of the kernel leaves open ---------------------------------------------------


def _mask(row: Row) -> code.Expr:
    return code.Literal(f"0x{row.mask:x}u")


def outside_row(e: Entry) -> Optional[code.Expr]:
    """Whether the CPU's row lacks the dtype that selects the kernel; None where it has all."""
    row = e.dtypes_on("CPU")
    if not row or row.is_every:
        return None
    return code.Prefix("!", _check("has_dtype", _mask(row), key_dtype(e)))


def _argument_dtype(e: Entry, row: ArgumentDtypes) -> Optional[Statement]:
    if row.dtypes.is_every:
        return None
    a, operator = e.arg(row.argument), code.Id("name")
    shown, name = code.Text(a.name), code.Id(cpp_name(a.name))
    if row.same and not row.dtypes and not row.sums and e.dtype_of and a.type.is_tensor:
        key = e.arg(e.dtype_of)
        if key.type.holds_tensors:
            of_key = code.Text(shown_first(key)), key_dtype(e)
            return code.Evaluate(_check("require_one_dtype", operator, *of_key, shown, name))
    bits = [_mask(row.dtypes)] if row.dtypes else []
    bits += [_check("dtype_bit", key_dtype(e))] if row.same else []
    bits += [_check("sums_bit", key_dtype(e))] if row.sums else []
    return code.Evaluate(_check("require_dtype", operator, shown, name, code.joined("|", bits)))


def argument_dtype_lines(e: Entry) -> list[Statement]:
    """The dtypes of the tensors beside the one that selects the kernel."""
    lines = [_argument_dtype(e, row) for row in e.argument_dtypes]
    return [line for line in lines if line is not None]


def first_lines(e: Entry) -> list[Statement]:
    """An empty list, whose first tensor is asked for dtype or device."""
    return [
        code.Evaluate(
            _check("require_first", code.Id("name"), code.Text(a.name), code.Id(cpp_name(a.name)))
        )
        for a in asked_lists(e)
    ]


def _device_line(a: Arg) -> Statement:
    name: code.Expr = code.Id(cpp_name(a.name))
    tensors = name if a.type.list else code.Braces((code.Prefix("&", name), code.integer(1)))
    return code.Evaluate(
        _check("require_device", code.Id("name"), code.Text(a.name), tensors, _DEVICE)
    )


def _device_lines(e: Entry) -> list[Statement]:
    """The devices of the tensors in lists."""
    return [_device_line(a) for a in e.args if a.type.is_tensor_list]


def argument_lines(e: Entry) -> list[Statement]:
    """The devices and dtypes which the common device and the lookup of the kernel leave open."""
    return _device_lines(e) + argument_dtype_lines(e)


def list_argument_lines(e: Entry) -> list[Statement]:
    """The same of an operator that writes lists, whose device is that of the first one's first
    tensor.
    """
    return _device_lines(e) + [_device_line(a) for a in e.tensor_args] + argument_dtype_lines(e)

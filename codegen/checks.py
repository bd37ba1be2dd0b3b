"""C++ text of the checks of a call: its conditions, and the presence, lengths, devices and dtypes
of its arguments."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Optional

from .cpp import (
    CONSTANTS,
    all_dtypes,
    cpp_expr,
    cpp_name,
    key_dtype,
    key_tensors,
    parameters,
    scalar_type,
)
from .model import Entry, Form, Tree

_CALLS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}


def check_condition(tree: Tree) -> str:
    """C++ for a contract condition: comparisons go through contract:: so that they hold over lists
    and optionals."""

    def resolve(t: Tree) -> Optional[str]:
        if t["op"] == "name" and t["name"] in all_dtypes():
            return f"ScalarType::{scalar_type(t['name'])}"
        if t["op"] == "call" and t["fn"] == "one_of":
            name, *texts = (cpp_expr(a) for a in t["args"])
            return f"contract::one_of({name}, {{{', '.join(texts)}}})"
        if t["op"] == "binary" and t["operator"] in _CALLS:
            return (
                f"contract::{_CALLS[t['operator']]}"
                f"({cpp_expr(t['lhs'], resolve)}, {cpp_expr(t['rhs'], resolve)})"
            )
        return None

    return cpp_expr(tree, resolve)


def _as_written(t: Tree) -> Optional[str]:
    return t["name"] if t["op"] == "name" else None


def check_text(tree: Tree, text: str) -> str:
    """A condition as messages and pages write it: "side in ('left', 'right')" for a choice of
    texts."""
    if tree["op"] == "call" and tree["fn"] == "one_of":
        name, *texts = tree["args"]
        words = ", ".join(f"'{t['value']}'" for t in texts)
        return f"{name['name']} in ({words})"
    return text


def check_subjects(tree: Tree) -> list[tuple[str, str]]:
    """The parts of a condition whose values its message shows, as it shows them and in C++: names
    and method calls, in order, once each."""
    found: list[tuple[str, str]] = []

    def add(t: Tree) -> None:
        texts = cpp_expr(t, _as_written), cpp_expr(t)
        if texts not in found:
            found.append(texts)

    def walk(t: Tree) -> None:
        op = t["op"]
        if op in ("name", "method", "index"):
            if t.get("name") not in CONSTANTS or op == "method":
                add(t)
        elif op == "call":
            for a in t["args"]:
                walk(a)
        elif op == "binary":
            walk(t["lhs"]), walk(t["rhs"])
        elif op == "unary":
            walk(t["of"])
        elif op == "select":
            walk(t["cond"]), walk(t["then"]), walk(t["else"])

    walk(tree)
    return found


def contract_lines(e: Entry, form: Form) -> list[str]:
    """Statements that check the contract of a call before anything is computed: presence, list
    lengths, `check:`."""
    name = f'"{form.name}"'
    lines = []
    for t, n in parameters(e, form):
        if t == "const Tensor&" and not _may_be_none(e, n):
            shown = _schema_name(e, n)
            lines.append(
                f"if (!{n}.defined()) [[unlikely]] "
                f'contract::require_defined({name}, "{shown}", {n});'
            )
        elif t == "TensorList" and not e.arg(_schema_name(e, n)).type.element_optional:
            shown = _schema_name(e, n)
            lines.append(f'contract::require_defined({name}, "{shown}", {n});')
    for a in e.args:
        if (
            a.type.list
            and a.type.list_size
            and a.type.list_size > 1
            and a.type.base in ("int", "SymInt")
        ):
            n = cpp_name(a.name)
            # An empty list is a length of its own where it is the default (stride=[]).
            guard = f"if (!{n}.empty()) " if a.default and a.default.value == [] else ""
            lines.append(
                f'{guard}contract::require_length({name}, "{a.name}", {n}, {a.type.list_size});'
            )
    # Operators with kernels look them up by dtype, and are refused there.
    if e.kind in ("composite", "view"):
        lines += _dtype_lines(e, name)
    for c in e.check:
        got = "".join(f', contract::Got{{"{s}", {x}}}' for s, x in check_subjects(c.tree))
        condition = check_text(c.tree, c.text).replace("\\", "\\\\").replace('"', '\\"')
        lines.append(
            f"if (!({check_condition(c.tree)})) [[unlikely]] throw "
            f'contract::violation({name}, "{condition}"{got});'
        )
    return lines


def _dtype_lines(e: Entry, name: str) -> list[str]:
    """The row of an operator without kernels: one test of a bit."""
    row = e.dtypes_on("CPU")
    if not e.dtype_of or len(row) == len(all_dtypes()):
        return []
    mask, row_text = _row_mask(row), ", ".join(row)

    def line(guard: str, subject: str, dtype: str) -> str:
        refused = f'contract::wrong_dtype({name}, "{subject}", "{row_text}", {dtype})'
        return f"if ({guard}!contract::admits(0x{mask:x}u, {dtype})) [[unlikely]] {refused};"

    a = e.arg(e.dtype_of)
    n = cpp_name(a.name)
    if a.type.is_tensor_list:
        return [line(f"!{n}.empty() && ", f"{a.name} of a dtype", f"{n}[0].dtype()")]
    if a.type.is_tensor:
        guard = f"{n}.defined() && " if a.type.optional else ""
        return [line(guard, f"{a.name} of a dtype", f"{n}.dtype()")]
    if not a.type.optional:
        return [line("", a.name, n)]
    # None stands for the dtype of the first tensor; in a factory for one that is in the row.
    lines = [line(f"{n} && ", a.name, f"*{n}")]
    if e.tensor_args:
        first = e.tensor_args[0].name
        lines.append(line(f"!{n} && ", f"{first} of a dtype", f"{cpp_name(first)}.dtype()"))
    return lines


def argument_dtype_lines(e: Entry) -> list[str]:
    """Statements that check the dtypes of the tensors beside the one that selects the kernel."""
    lines = []
    for row in e.argument_dtypes:
        if len(row.dtypes) == len(all_dtypes()):
            continue
        a, n = e.arg(row.argument), cpp_name(row.argument)
        if row.same and not row.dtypes and not row.sums and e.dtype_of and a.type.is_tensor:
            key = e.arg(e.dtype_of)
            shown = f"{key.name}[0]" if key.type.is_tensor_list else key.name
            if key.type.is_tensor or key.type.is_tensor_list:
                lines.append(
                    f'contract::require_one_dtype(name, "{shown}", {key_dtype(e)}, '
                    f'"{a.name}", {n});'
                )
                continue
        parts = [f"0x{_row_mask(row.dtypes):x}u"] if row.dtypes else []
        parts += [f"contract::dtype_bit({key_dtype(e)})"] if row.same else []
        parts += [f"contract::sums_bit({key_dtype(e)})"] if row.sums else []
        lines.append(f'contract::require_dtype(name, "{a.name}", {n}, {" | ".join(parts)});')
    return lines


def first_lines(e: Entry) -> list[str]:
    """Statements that refuse an empty list whose first tensor is asked for dtype or device."""
    asked = key_tensors(e)[0]
    return [
        f'contract::require_first(name, "{a.name}", {cpp_name(a.name)});'
        for a in e.args
        if a.type.is_tensor_list and f"&{cpp_name(a.name)}[0]" in asked
    ]


def _device_lines(e: Entry) -> list[str]:
    """Statements that check the devices of the tensors in lists."""
    return [
        f'contract::require_device(name, "{a.name}", {cpp_name(a.name)}, device);'
        for a in e.args
        if a.type.is_tensor_list
    ]


def argument_lines(e: Entry) -> list[str]:
    """Statements that check the devices and dtypes which the common device and the lookup of the
    kernel leave open."""
    return _device_lines(e) + argument_dtype_lines(e)


def list_argument_lines(e: Entry) -> list[str]:
    """The same of an operator that writes lists, whose device is that of the first one's first
    tensor."""
    plain = [
        f'contract::require_device(name, "{a.name}", {{&{cpp_name(a.name)}, 1}}, device);'
        for a in e.tensor_args
    ]
    return _device_lines(e) + plain + argument_dtype_lines(e)


def outside_row(e: Entry) -> str:
    """Whether the dtype that selects the kernel is not in the CPU's row; empty where every dtype
    is."""
    row = e.dtypes_on("CPU")
    if not row or len(row) == len(all_dtypes()):
        return ""
    return f"!contract::has_dtype(0x{_row_mask(row):x}u, {key_dtype(e)})"


def _row_mask(row: tuple[str, ...]) -> int:
    return sum(1 << i for i, dtype in enumerate(all_dtypes()) if dtype in row)


def _schema_name(e: Entry, name: str) -> str:
    return next((a.name for a in e.args if cpp_name(a.name) == name), name)


def _may_be_none(e: Entry, name: str) -> bool:
    return any(cpp_name(a.name) == name and a.type.optional for a in e.args)

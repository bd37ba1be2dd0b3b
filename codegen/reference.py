"""The reference pages of the operators: an index, a page for each name, the table of dtypes.

    python -m codegen.reference --model opmodel.json --examples examples.json --table table.md \\
        --out-dir build/docs

`./dev docs` makes the examples and the table with the built package, and then runs this. Pages are
templates over the model, like the code; what they say in words is written here.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Iterable, Mapping

from .bindings.signatures import signature, text_signature
from .cpp.expressions import as_written
from .cpp.signatures import returns_of, with_defaults
from .environment import environment
from .model import expr
from .model.entry import Condition, Entry, Kind, Model, Policy, Promotion
from .model.load import load
from .model.schema import Form
from .operators.contract import check_text, is_message
from .operators.lookup import shown_first
from .render import write_if_changed

_KINDS = {
    Kind.POINTWISE: "pointwise, computed for each element",
    Kind.REDUCE: "a reduction, which folds elements along dimensions",
    Kind.KERNEL: "a kernel that writes results of known shape",
    Kind.RETURNS: "a kernel that makes results whose shape depends on values",
    Kind.VIEW: "a view, which shares memory and runs no kernel",
    Kind.COMPOSITE: "made of other operators",
    Kind.MUTATING: "writes to its argument",
}
_POLICIES = {
    Policy.LOWER: "its floating tensors are taken in the context's 16-bit dtype",
    Policy.FLOAT32: "its 16-bit tensors are taken in float32",
    Policy.WIDEST: "its tensors are taken in float32, unless all are of the 16-bit dtype",
    Policy.AS_CALLED: "it runs as called, and so do its parts",
    Policy.REFUSED: "a call is an error",
}
_OPERATORS = {
    "==": "is",
    "!=": "is not",
    ">": "is above",
    ">=": "is at least",
    "<": "is below",
    "<=": "is at most",
}


def is_public(e: Entry) -> bool:
    return not (e.is_internal or e.name.startswith("_") or e.name.endswith("_backward"))


# ---- what a page says ----------------------------------------------------------------------------


def python_calls(e: Entry) -> list[str]:
    """`treadle.add(input, other, *, alpha=1, out=None) -> Tensor`, and the methods."""
    lines = []
    package = "treadle" if e.namespace == "aten" else e.namespace
    module = f"{e.python_module}." if e.python_module else ""
    module = "nn.functional." if module == "nn." else module
    for f in e.forms:
        if f.is_out:
            continue
        s = signature(e, f)
        if s.is_function:
            lines.append(f"{package}.{module}{f.name}{text_signature(s)} -> {s.result_type}")
        if s.is_method:
            text = text_signature(s, is_method=True)
            lines.append(f"Tensor.{f.name}{text} -> {s.result_type}")
    return lines


def cpp_call(f: Form, e: Entry) -> str:
    namespace = "treadle::aten" if e.namespace == "aten" else e.namespace
    return f"{returns_of(f)} {namespace}::{f.function}({with_defaults(e, f)})"


def kind_text(e: Entry) -> str:
    return _KINDS[e.kind]


def _condition_words(c: Condition) -> str:
    tree = c.tree
    if is_message(tree):
        words = check_text(c)
        return words[0].upper() + words[1:]
    if isinstance(tree, expr.Binary) and tree.operator in _OPERATORS:
        left = tree.left
        measure = isinstance(left, expr.Method) and not left.arguments
        if isinstance(left, expr.Name) or measure:
            words = _OPERATORS[tree.operator]
            return f"`{as_written(left)}` {words} `{as_written(tree.right)}`"
    return f"`{check_text(c)}`"


def contract_words(e: Entry) -> list[str]:
    lines = []
    for a in e.args:
        if a.type.is_tensor and a.type.optional:
            lines.append(f"`{a.name}` may be None.")
        if a.type.list and a.type.list_size and a.type.list_size > 1:
            lines.append(
                f"`{a.name}` has {a.type.list_size} entries, or is one number for all of them."
            )
    lines += [f"{_condition_words(c)}." for c in e.check]
    if e.unlimited:
        names = ", ".join(f"`{n}`" for n in e.unlimited)
        lines.append(f"{names}: every value.")
    if e.shape and e.shape.rule:
        lines.append(f"The shapes fit by the rule `{e.shape.text}`.")
    elif e.kind is Kind.POINTWISE and len(e.tensor_args) > 1:
        names = ", ".join(f"`{a.name}`" for a in e.tensor_args)
        lines.append(f"The shapes of {names} broadcast.")
    elif e.kind is Kind.COMPOSITE and not lines:
        lines.append("What the operators it is made of accept.")
    return lines


def dtype_words(e: Entry) -> str:
    if not e.dtypes:
        return "it takes and makes no tensor."
    parts = [
        str(row) + ("" if device == "all" else f" on {device}") for device, row in e.dtypes.items()
    ]
    return "; ".join(parts) + (
        f"; selected by `{e.dtype_of}`." if len(e.tensor_args) > 1 and e.dtype_of else "."
    )


def argument_dtype_words(e: Entry) -> list[str]:
    """The dtypes of tensors other than the one that selects the kernel, a line for each."""
    lines = []
    alike = [f"`{row.argument}`" for row in e.argument_dtypes if row.same and not row.dtypes]
    if alike and e.dtype_of:
        of = shown_first(e.arg(e.dtype_of))
        lines.append(f"{', '.join(alike)}: the dtype of `{of}`.")
    for row in e.argument_dtypes:
        words = [str(row.dtypes)] if row.dtypes else []
        if row.dtypes.is_every:
            words = ["every dtype"]
        elif row.same and row.dtypes:
            words.append(f"the dtype of `{e.dtype_of}`")
        if row.sums:
            words.append(f"the dtype of `{e.dtype_of}`, or float32 where that has 16 bits")
        if words:
            lines.append(f"`{row.argument}`: {', or '.join(words)}.")
    return lines


def result_words(e: Entry) -> str:
    promote = e.promote or Promotion.COMMON
    if e.kind is Kind.POINTWISE:
        how = {
            Promotion.FLOAT: "integers become the default floating dtype",
            Promotion.COMPARE: "a bool for each element",
            Promotion.BOOL: "a bool for each element",
            Promotion.REAL: "the real dtype of a complex one",
        }.get(promote, "the common dtype of the operands")
        order = "Strides keep the order of the operands' (channels last stays channels last)."
        return f"the broadcast shape; {how}. {order}"
    if e.kind is Kind.REDUCE:
        dtype = {
            Promotion.SUM: "integers and bool become int64",
            Promotion.BOOL: "bool",
            Promotion.FLOAT: "a floating dtype",
        }.get(promote, "the dtype of the operand")
        return f"the shape without the reduced dimensions (of size 1 with `keepdim`); {dtype}."
    if e.kind is Kind.VIEW:
        return "shares the memory of the argument."
    if e.kind is Kind.RETURNS:
        return "its shape depends on the values; there is none on the meta device."
    if e.kind is Kind.MUTATING:
        return "the argument itself, written."
    if e.kind is Kind.KERNEL:
        return (
            f"contiguous, of the shape and dtype that `{e.shape.text}` gives."
            if e.shape
            else "contiguous."
        )
    return "as its parts give it."


def autocast_words(e: Entry) -> str:
    """In which dtype the operator runs under autocast; nothing where autocast leaves it alone."""
    rows = [
        _POLICIES[policy] if device == "all" else f"on {device} {_POLICIES[policy]}"
        for device, policy in e.autocast.items()
    ]
    return "; ".join(rows) + "." if rows else ""


def derivative_words(e: Entry) -> str:
    d = e.derivative
    if d is None and e.derivation and e.derivation.missing:
        return "; ".join(f"none by `{a}`: {why}" for a, why in e.derivation.missing.items()) + "."
    if d is None:
        return "follows from its parts." if e.kind in (Kind.COMPOSITE, Kind.VIEW) else "none."
    without = (
        f" None for {', '.join(f'`{n}`' for n in d.non_differentiable)}."
        if d.non_differentiable
        else ""
    )
    if not d.formulas:
        return "none: the result does not depend smoothly on the arguments."
    if all(f.is_derived for f in d.formulas):
        return f"derived from the expression at {d.place}.{without}"
    rest = " The others are derived from the expression." if _has_derived(e) else ""
    return f"by the formulas of {d.place}.{rest}{without}"


def _has_derived(e: Entry) -> bool:
    return any(f.is_derived for f in e.formulas)


def derivative_formulas(e: Entry) -> list[str]:
    """The gradient of each argument, and how the result changes with the arguments."""
    lines = [f"{', '.join(f.targets)}: {f.text}" for f in e.formulas]
    tangent = e.derivation.tangent if e.derivation and lines else None
    return lines + ([f"result_t: {tangent.text}"] if tangent else [])


def first_sentence(entries: Iterable[Entry]) -> str:
    doc = " ".join(next(e.doc for e in entries if e.doc).split())
    end = doc.find(". ")
    return doc if end < 0 else doc[: end + 1]


WORDS = (
    python_calls,
    cpp_call,
    kind_text,
    contract_words,
    dtype_words,
    argument_dtype_words,
    autocast_words,
    result_words,
    derivative_words,
    derivative_formulas,
    first_sentence,
)


# ---- pages ---------------------------------------------------------------------------------------


def _sections(model: Model, names: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Names under the headings of the file, `# ---- Indexing ----`, in its order."""
    source = Path(model.functions)
    headings: list[tuple[int, str]] = []
    if source.exists():
        for number, text in enumerate(source.read_text().splitlines(), 1):
            if text.startswith("# ----"):
                headings.append((number, text.strip("#- ")))
    found: dict[str, list[str]] = {}
    for name in names:
        line = model.by_name[name][0].place.line
        title = next((title for begin, title in reversed(headings) if begin <= line), "Operators")
        found.setdefault(title, []).append(name)
    return sorted((title, sorted(members)) for title, members in found.items())


_TABLE = """# Dtypes of the operators

A cross: the dtype is declared, the tests of the operator pass with it. Any other is refused with \
an exception that names the row. `python -m treadle ops --table` prints the same."""


def pages(model: Model, examples: Mapping[str, str], table: str = "") -> Iterable[tuple[str, str]]:
    """(path, text) of every page; of a page for the table of dtypes only where there is one."""
    env = environment()
    for f in WORDS:
        env.filters[f.__name__] = f
    public = {n: tuple(e for e in es if is_public(e)) for n, es in model.by_name.items()}
    public = {n: es for n, es in public.items() if es}
    count = sum(map(len, public.values()))
    index = env.get_template("operators.md.j2")
    sections = _sections(model, public)
    text = index.render(model=model, pages=public, count=count, sections=sections, table=table)
    yield "index.md", text
    page = env.get_template("operator_page.md.j2")
    for name, entries in sorted(public.items()):
        yield f"operators/{name}.md", page.render(name=name, entries=entries, examples=examples)
    if table:
        yield "table.md", _TABLE + f"\n\n{table}\n"


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--examples", required=True)
    parser.add_argument("--table", required=True)
    parser.add_argument("--out-dir", required=True)
    args = parser.parse_args(argv)
    out = Path(args.out_dir)
    examples = json.loads(Path(args.examples).read_text())
    made = {
        out / path: text
        for path, text in pages(load(args.model), examples, Path(args.table).read_text())
    }
    for path, text in made.items():
        write_if_changed(path, text)
    for stale in out.rglob("*.md"):
        if stale not in made:
            stale.unlink()


if __name__ == "__main__":
    main(sys.argv[1:])

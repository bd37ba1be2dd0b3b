"""The generator's model of operators, and its model of C++: nothing that schemac writes is dropped,
and what is printed reads as it was meant.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Callable

import pytest
from treadle.codegen.cpp import code
from treadle.codegen.cpp.code import Call, Id, Infix, Literal, MethodCall, Prefix, Ternary
from treadle.codegen.cpp.expressions import as_written, translated
from treadle.codegen.cpp.names import KEYWORDS
from treadle.codegen.diagnostics import CodegenError
from treadle.codegen.environment import FILTERS, TEMPLATES
from treadle.codegen.model import expr
from treadle.codegen.model.entry import Kind, Model
from treadle.codegen.model.load import load

import treadle

ROOT = Path(__file__).resolve().parents[2]
MODEL = Path(treadle.__file__).parent / "opmodel.json"


@pytest.fixture(scope="module")
def model() -> Model:
    return load(MODEL)


# ---- the file ------------------------------------------------------------------------------------


def test_every_expression_prints_as_schemac_prints_it(model: Model) -> None:
    count = 0
    for e in model.entries:
        parts = [*e.check, *([e.pointwise] if e.pointwise else [])]
        parts += e.reduce.parts.values() if e.reduce else []
        pairs = [(part.text, part.tree) for part in parts]
        pairs += [(f.text, f.tree) for f in e.formulas]
        if e.shape and e.shape.rule:
            pairs.append((e.shape.text, e.shape.rule))
        for text, tree in pairs:
            assert str(as_written(tree)) == text, e.full_name
        count += len(pairs)
    assert count > 1000


def test_forms_have_the_arguments_of_the_entry_first(model: Model) -> None:
    for e in model.entries:
        assert e.forms, e.full_name
        for form in e.forms:
            names = [a.name for a in form.args]
            assert names[: len(e.args)] == [a.name for a in e.args], form.schema
            assert all(a.type.writes for a in e.outs(form)), form.schema


def _changed(tmp_path: Path, change: Callable[[Any], None]) -> Path:
    whole = json.loads(MODEL.read_text())
    whole["operators"] = [o for o in whole["operators"] if o["name"] == "add"][:1]
    change(whole)
    path = tmp_path / "opmodel.json"
    path.write_text(json.dumps(whole))
    return path


def _of_entry(key: str, value: Any) -> Callable[[Any], None]:
    return lambda whole: whole["operators"][0].update({key: value})


@pytest.mark.parametrize(
    "change, message",
    [
        (_of_entry("colour", "red"), ".operators[0]: expected no other keys, got 'colour'"),
        (
            lambda whole: whole["operators"][0].pop("kind"),
            ".operators[0]: expected the key 'kind', got none",
        ),
        (_of_entry("doc", 3), ".operators[0].doc: expected str, got 3"),
        (
            _of_entry("kind", "magic"),
            ".operators[0].kind: expected one of pointwise, reduce, view, kernel, returns, "
            "composite, mutating, got 'magic'",
        ),
        (
            _of_entry("pointwise", {"text": "x", "tree": {"op": "loop"}}),
            ".operators[0].pointwise.tree.op: expected one of name, int, float, bool, string, "
            "none, call, method, index, unary, binary, select, list, got 'loop'",
        ),
        (
            _of_entry("dtypes", {"CPU": ["float33"]}),
            ".operators[0].dtypes.CPU: expected dtypes, got 'float33'",
        ),
        (_of_entry("args", None), ".operators[0].args: expected list, got None"),
        (_of_entry("derivative", 1), ".operators[0].derivative: expected dict, got 1"),
        (lambda whole: whole.update(format=7), ".format: expected format 1, got 7"),
    ],
)
def test_a_model_of_another_schemac_is_refused(
    change: Callable[[Any], None], message: str, tmp_path: Path
) -> None:
    path = _changed(tmp_path, change)
    with pytest.raises(CodegenError) as info:
        load(path)
    assert str(info.value) == f"{path}{message}"


def test_an_entry_that_is_not_changed_is_read(tmp_path: Path) -> None:
    (add,) = load(_changed(tmp_path, lambda whole: None)).entries
    assert (add.full_name, add.kind, add.returns[0].type.text) == (
        "add.Tensor",
        Kind.POINTWISE,
        "Tensor",
    )


# ---- C++ -----------------------------------------------------------------------------------------

A, B, C = Id("a"), Id("b"), Id("c")


@pytest.mark.parametrize(
    "tree, text",
    [
        (Prefix("-", Prefix("-", A)), "-(-a)"),
        (Prefix("&", Prefix("&", A)), "&(&a)"),
        (Prefix("!", Prefix("-", A)), "!(-a)"),
        (Prefix("-", Prefix("!", A)), "-!a"),
        (Infix("-", A, Prefix("-", B)), "a - -b"),
        (Infix("-", A, Infix("-", B, C)), "a - (b - c)"),
        (Infix("-", Infix("-", A, B), C), "a - b - c"),
        (Infix("*", Infix("+", A, B), C), "(a + b) * c"),
        (Infix("+", Infix("*", A, B), C), "a * b + c"),
        (Infix("/", A, Infix("*", B, C)), "a / (b * c)"),
        (Infix("||", A, Infix("|", B, C)), "a || b | c"),
        (Infix("|", Infix("||", A, B), C), "(a || b) | c"),
        (Prefix("-", Infix("+", A, B)), "-(a + b)"),
        (MethodCall(Prefix("-", A), "size"), "(-a).size()"),
        (MethodCall(Infix("+", A, B), "size", (C,)), "(a + b).size(c)"),
        (code.Subscript(Prefix("*", A), B), "(*a)[b]"),
        (Prefix("*", code.Subscript(A, B)), "*a[b]"),
        (code.Member(Prefix("*", A), "b"), "(*a).b"),
        (MethodCall(A, "f", of_pointer=True), "a->f()"),
        (Ternary(A, B, Ternary(B, A, C)), "a ? b : b ? a : c"),
        (Ternary(Ternary(A, B, C), B, C), "(a ? b : c) ? b : c"),
        (Infix("+", Ternary(A, B, C), C), "(a ? b : c) + c"),
        (Call("f", (Ternary(A, B, C), C)), "f(a ? b : c, c)"),
        (code.integer(-3), "-3"),
        (Infix("-", A, code.integer(-3)), "a - -3"),
        (MethodCall(code.integer(-3), "f"), "(-3).f()"),
        (code.joined("+", [A, B, C]), "a + b + c"),
        (code.Text('a"\\\n'), r'"a\"\\\n"'),
        (code.Braces((Literal("1"), code.TRUE)), "{1, true}"),
    ],
)
def test_parentheses(tree: code.Expr, text: str) -> None:
    assert str(tree) == text


def test_a_method_of_a_negative_value_keeps_its_object() -> None:
    tree = expr.Method(expr.Unary("-", expr.Name("x")), "dim", ())
    assert str(translated(tree)) == "(-x).dim()"
    assert str(translated(expr.Unary("-", expr.Method(expr.Name("x"), "dim", ())))) == "-x.dim()"


# ---- templates -----------------------------------------------------------------------------------


def test_every_filter_is_used() -> None:
    text = "".join(path.read_text() for path in TEMPLATES.glob("*.j2"))
    assert [name for name in FILTERS if f"| {name}" not in text and f'"{name}"' not in text] == []


def test_keywords_are_those_of_schemac() -> None:
    """schemac refuses operators that are called so; the generator renames arguments."""
    source = (ROOT / "codegen/schemac/entries/tables.cc").read_text()
    table = source.partition("cpp_keywords() {")[2].partition("return words;")[0]
    assert KEYWORDS == frozenset(re.findall(r'"(\w+)"', table))

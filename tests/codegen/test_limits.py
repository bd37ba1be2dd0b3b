"""Entries that schemac accepts and the generator has no code for are errors with a place, before
anything is written.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from pathlib import Path
from typing import Optional

import pytest
from treadle.codegen.outside import CodegenError, generate

OWN = "  doc: x.\n  dispatch: {CPU: k}\n  shape: same_as(self)\n  dtypes: {CPU: floating}\n"
MADE = "  doc: x.\n  dtypes: {all: floating}\n"


def entry(schema: str, keys: str = MADE, more: str = "") -> str:
    return f"- func: {schema}\n{keys}{more}"


def said(folder: Path, entries: str, derivatives: Optional[str] = None) -> str:
    (folder / "ops.yaml").write_text(entries)
    if derivatives is not None:
        (folder / "d.yaml").write_text(derivatives)
    given = folder / "d.yaml" if derivatives is not None else None
    with pytest.raises(CodegenError) as info:
        generate(folder / "ops.yaml", given, name="my_ops", out=folder / "gen")
    made = [p.name for p in (folder / "gen" / "my_ops").iterdir()]
    assert made == ["opmodel.json"]  # schemac's
    return str(info.value).replace(f"{folder}/", "")


@pytest.mark.parametrize(
    "schema, keys, message",
    [
        (
            "f(Tensor self, Stream s) -> Tensor",
            MADE,
            "argument 's' of f has the type 'Stream'; C++ functions of operators have no such "
            "argument",
        ),
        (
            "f(Tensor self, str[] names) -> Tensor",
            MADE + "  check: [any(names)]\n",
            "argument 'names' of f has the type 'str[]'; C++ functions of operators have no such "
            "argument",
        ),
        (
            "f(Tensor self, bool[] which) -> Tensor",
            MADE,
            "argument 'which' of f has the type 'bool[]'; C++ functions of operators have no such "
            "argument",
        ),
        (
            "f(Tensor self, float[] weights=[1.5]) -> Tensor",
            MADE,
            "the default of argument 'weights' of f; Python's functions know none of type "
            "'float[]' but []",
        ),
        (
            "f(Tensor self) -> Device",
            MADE,
            "f returns 'Device'; C++ functions of operators return no such value",
        ),
        (
            "f(Tensor self) -> int[]",
            MADE,
            "f returns 'int[]'; C++ functions of operators return no such value",
        ),
        (
            "f(Tensor self) -> Tensor",
            OWN.replace("same_as(self)", "'rule({self, self})'"),
            "'{self, self}' in the shape of f has no plain type; give the rule what it is made of",
        ),
        (
            "f(Tensor self, float pi) -> Tensor",
            MADE + "  pointwise: self * pi\n",
            "'pi' in an expression of f is a constant, and an argument; rename the argument",
        ),
        (
            "f(Tensor self) -> (Tensor, Tensor)",
            MADE + "  pointwise: '{self, -self}'\n",
            "f, which is pointwise, has 2 results; make it return one",
        ),
        (
            "f(Tensor self, int p) -> Tensor",
            MADE + "  reduce: {init: 0, step: 'acc + pow(x, p)', combine: a + b}\n",
            "'p' in reduce.step of f; it knows acc and x",
        ),
        (
            "f(Tensor self) -> Tensor",
            MADE + "  reduce: {init: 0, combine: a + b}\n",
            "f, which is reduce, has no 'step'; say what one more element does",
        ),
        (
            "f(Tensor self) -> Tensor",
            MADE + "  pointwise: -self\n  promote: sum\n",
            "f, which is pointwise, has 'promote: sum'; it cannot be promoted so",
        ),
        (
            "f(Tensor(a) self) -> Tensor(a)",
            OWN,
            "f returns a view and has kernels of devices; write 'dispatch: {View: FUNCTION}'",
        ),
        (
            "f(Tensor self, int kernel, int kernel_) -> Tensor",
            OWN + "  check: ['any(kernel, kernel_)']\n",
            "'kernel' and 'kernel_' of f are 'kernel_' in C++; rename one of the two",
        ),
        ("f() -> ()", "  doc: x.\n", "f returns nothing and writes nothing"),
    ],
)
def test_of_entries(schema: str, keys: str, message: str, tmp_path: Path) -> None:
    assert said(tmp_path, entry(schema, keys)) == f"ops.yaml:1: error: {message}"


@pytest.mark.parametrize(
    "schema, more, formulas, message",
    [
        (
            "f(Tensor self) -> Tensor[]",
            "",
            "  self: grads[0] * result[0]\n",
            "2: error: the list 'result' is kept for the derivative of f; compute it anew from "
            "the arguments",
        ),
        (
            "f(Tensor self, Tensor other) -> Tensor",
            "  forms: functional, inplace\n",
            "  self: non_differentiable\n  other: grad\n",
            "1: error: no formula for 'self' in the derivative of f; the in-place form changes "
            "it; add one",
        ),
        (
            "f(Tensor self, Tensor self_sizes) -> Tensor",
            "",
            "  self: grad.reshape(self.sizes())\n  formulas:\n    self_sizes: grad * self_sizes\n",
            "1: error: 'the kept self.sizes()' and 'the kept self_sizes' of f are 'self_sizes_' "
            "in C++; rename one of the two",
        ),
        (
            "f(Tensor x, Tensor x_) -> Tensor",
            "",
            "  x: grad * x\n  formulas:\n    x_: grad * x_\n",
            "1: error: 'the kept x' and 'x_' of f are 'x_' in C++; rename one of the two",
        ),
    ],
)
def test_of_derivatives(
    schema: str, more: str, formulas: str, message: str, tmp_path: Path
) -> None:
    derivatives = f"- name: {schema}\n{formulas}"
    assert said(tmp_path, entry(schema, MADE, more), derivatives) == f"d.yaml:{message}"


def test_all_are_said_in_the_order_of_the_file(tmp_path: Path) -> None:
    entries = entry("g(Tensor self) -> Device") + entry("f(Tensor self) -> int[]")
    lines = said(tmp_path, entries).splitlines()
    assert [line.partition(": error: ")[0] for line in lines] == ["ops.yaml:1", "ops.yaml:4"]

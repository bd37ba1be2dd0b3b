"""./dev lint: the rules of the two files of operators, on small files that are made up."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest

from tool_modules import importing

DESIGN = """
A **family** is a section of `native_functions.yaml` and of `derivatives.yaml`: creation, views,
pointwise, sorting. One folder holds a family's kernels.
"""
KEYS = """
| key | value | meaning |
| --- | --- | --- |
| `func` | a schema | the name |
| `forms` | `out` | the forms |
| `check` | conditions | what must hold |
| `dtypes` | names | its row |
| `doc` | text | `forms` in words |

| word | meaning |
| --- | --- |
| `common` | the promoted dtype |
"""
FUNCTIONS = """# Every operator.

# ---- creation ----

- func: zeros(int[] size, *, ScalarType? dtype=None) -> Tensor
  forms: functional, out
  dtypes: {all: any}
  doc: >-
    Zeros.
    check: is no key here.

# ---- views ----

- func: view(Tensor(a -> *) self, int[] size) -> Tensor(a)[]
  dtypes: {all: any}

# ---- pointwise ----

- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  check: [self > 0]
  dtypes: {all: any}

- func: add.Scalar(Tensor self, Scalar other) -> Tensor
- func: add_(Tensor(a!) self) -> Tensor(a!)

- func: neg(Tensor self) -> Tensor

# ---- sorting ----

- func: sort(Tensor self) -> (Tensor values, Tensor indices)
"""
DERIVATIVES = """# ---- views ----

- name: view(Tensor(a -> *) self, int[] size) -> Tensor(a)[]
  self: reshape(grad, self.sizes())

# ---- pointwise ----

- name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  output_differentiability: [True]
  self: grad
  other: grad * alpha

- name: add.Scalar(Tensor self, Scalar other) -> Tensor
  self: grad

- name: neg(Tensor self) -> Tensor
  self: -grad
"""
LISTED = "docs/design.md lists the families"
TOGETHER = "overloads of one name stand together"


@pytest.fixture(scope="module")
def entries() -> Iterator[ModuleType]:
    with importing("dev") as load:
        yield load("entries")


def said(
    entries: ModuleType, functions: str = FUNCTIONS, derivatives: str = DERIVATIVES
) -> list[str]:
    texts = (functions, derivatives, DESIGN, KEYS)
    return list(entries.problems(dict(zip(entries.READ, texts))))


def changed(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


def test_files_in_order(entries: ModuleType) -> None:
    assert said(entries) == []


@pytest.mark.parametrize(
    "changes, problem",
    [
        (
            [("- views -", "- fft -"), ("- pointwise -", "- views -")],
            f"12:8: expected the section 'views', got 'fft'; {LISTED}",
        ),
        (
            [("# ---- sorting ----\n", "")],
            f"30:1: expected the section 'sorting', got the end of the file; {LISTED}",
        ),
        (
            [("# ---- sorting ----", "# ---- sorting ----\n\n# ---- linalg ----")],
            f"30:8: expected no further section, got 'linalg'; {LISTED}",
        ),
    ],
)
def test_sections(entries: ModuleType, changes: list[tuple[str, str]], problem: str) -> None:
    functions = changed(FUNCTIONS, *changes)
    assert said(entries, functions, "") == [f"native_functions.yaml:{problem}"]


def test_sections_of_the_derivatives(entries: ModuleType) -> None:
    # A family without formulas needs no section.
    derivatives = "# ---- pointwise ----\n\n# ---- views ----\n"
    assert said(entries, derivatives=derivatives) == [
        f"derivatives.yaml:1:8: expected the section 'views', got 'pointwise'; {LISTED}"
    ]


def test_overloads_apart(entries: ModuleType) -> None:
    functions = changed(FUNCTIONS, ("- func: add_(", "- func: add("), ("add.Scalar", "sub"))
    functions += "- func: sort.stable(Tensor self) -> Tensor\n- func: add.out() -> Tensor\n"
    assert said(entries, functions, "") == [
        f"native_functions.yaml:24:9: expected add directly after add.Tensor on line 19, got it "
        f"after sub; {TOGETHER}",
        f"native_functions.yaml:32:9: expected add.out directly after add on line 24, got it after "
        f"sort.stable; {TOGETHER}",
    ]


def test_derivatives_out_of_order(entries: ModuleType) -> None:
    first, second, third = DERIVATIVES.split("\n- name: add.")
    neg = third[third.index("\n- name: neg") :]
    derivatives = f"{first}\n- name: add.{third.removesuffix(neg)}\n- name: add.{second}{neg}"
    assert said(entries, derivatives=derivatives) == [
        "derivatives.yaml:11:9: expected add.Tensor before add.Scalar, got it after; its operator "
        "is at native_functions.yaml:19"
    ]


def test_a_derivative_in_another_section(entries: ModuleType) -> None:
    formula = "- name: sort(Tensor self) -> (Tensor values, Tensor indices)\n  self: f(grad)\n"
    # Of an operator that is unknown schemac says so.
    formula += "\n- name: tan(Tensor self) -> Tensor\n"
    assert said(entries, derivatives=f"{DERIVATIVES}\n{formula}") == [
        "derivatives.yaml:19:9: expected sort in the section 'sorting', got 'pointwise'; its "
        "operator is at native_functions.yaml:30"
    ]


def test_keys_out_of_order(entries: ModuleType) -> None:
    swapped = (
        "  check: [self > 0]\n  dtypes: {all: any}\n",
        "  dtypes: any\n  check: [self > 0]\n",
    )
    unknown = ("  forms: functional, out\n", "  colour: red\n")
    assert said(entries, changed(FUNCTIONS, swapped, unknown), "") == [
        "native_functions.yaml:6:3: expected one of the keys func, forms, check, dtypes, doc, got "
        "'colour'; docs/entry-keys.md lists them in order",
        "native_functions.yaml:20:3: expected the keys func, check, dtypes, got func, dtypes, "
        "check; docs/entry-keys.md lists them in order",
    ]


def test_keys_of_formulas_out_of_order(entries: ModuleType) -> None:
    swapped = ("  self: grad\n  other: grad * alpha\n", "  other: grad\n  self: grad\n")
    assert said(entries, derivatives=changed(DERIVATIVES, swapped)) == [
        "derivatives.yaml:10:3: expected the keys name, output_differentiability, self, other, got "
        "name, output_differentiability, other, self; arguments go as in the schema"
    ]


def test_a_formula_of_several_arguments(entries: ModuleType) -> None:
    several = ("  self: grad\n  other: grad * alpha\n", "  self, other: f(grad)\n")
    assert said(entries, derivatives=changed(DERIVATIVES, several)) == []


def test_the_tree_keeps_the_rules() -> None:
    with importing("dev") as load:
        assert load("sources").entry_problems() == []

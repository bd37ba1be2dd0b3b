"""Generated code compiles, of entries of unusual shapes as well: lists before tensors, every kind
of optional argument and of default, signs of signs, results called like variables of the code.

Goldens compare text; here a compiler reads what a library outside of the tree is made of, with the
headers that the package ships. Arguments are called by every word that occurs in that code.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re
import subprocess
import sysconfig
from pathlib import Path

import pytest
from treadle.codegen.cpp.names import KEYWORDS, LOCALS, SIGNATURE_TYPES
from treadle.codegen.outside import generate

from treadle.utils._compiler import compile_flags

ODD = Path(__file__).resolve().parent / "odd"
PARTS = ("ops", "kernels_cpu", "variable_type", "bindings")
# Names that mean something in every expression.
WORDS = {"self", "last", "grad", "grads", "inf", "nan", "pi", "true", "false", "None", "True"}
WORDS |= {"False", "and", "or", "not", "if", "else", "any", "one_of", "result", "out"}
DTYPES = re.compile(r"bool|u?int\d+|b?float\d+|complex\d+")


def problems(folder: Path, name: str, part: str) -> str:
    source = folder / name / f"{part}.cc"
    command = ["g++", "-fsyntax-only", "-w", *compile_flags(), f"-I{folder}"]
    command += [f"-I{sysconfig.get_paths()['include']}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode == 0) == (": error: " not in done.stderr)
    return "\n".join(line for line in done.stderr.splitlines() if ": error: " in line)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("odd")
    generate(ODD / "ops.yaml", ODD / "derivatives.yaml", name="odd_ops", out=folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("part", [*(f"{part}_0" for part in PARTS), "shards", "module"])
def test_entries_of_unusual_shapes(part: str, odd: Path) -> None:
    assert problems(odd, "odd_ops", part) == ""


def test_what_is_written_of_them(odd: Path) -> None:
    """A few lines of which each was once another."""
    text = {part: (odd / "odd_ops" / f"{part}_0.cc").read_text() for part in PARTS}
    assert (
        "if (recorded->has_edge(recorded->xs_count_)) recorded->y_.save(y);"
        in (text["variable_type"])
    )
    assert "-(-self) - -(self - (s - constant<V>(1.5))) * -s" in text["kernels_cpu"]
    assert "-(-grads[0]) * aten::dim(-self)" not in text["variable_type"]
    assert "(-self).dim()" in text["variable_type"]
    # An alias calls its operator.
    assert "auto results = ::odd_ops::named_results(self, kernel_);" in text["ops"]
    # A formula says result0 or values; the function that records has one name.
    assert "recorded->result0_.save_output(values, 0);" in text["variable_type"]
    assert "eval([[maybe_unused]] V exp_, [[maybe_unused]] V where_" in text["kernels_cpu"]


def words_of(folder: Path) -> list[str]:
    """The words of the generated code that an argument could be called by."""
    found = set(KEYWORDS | LOCALS | SIGNATURE_TYPES)
    for part in PARTS:
        text = (folder / "odd_ops" / f"{part}_0.cc").read_text()
        text = re.sub(r'"(\\.|[^"\\\n])*"', "", re.sub(r"//.*", "", text))
        found |= set(re.findall(r"\b[A-Za-z]\w*\b", text))
    entries = re.findall(r"func: (\w+)", (ODD / "ops.yaml").read_text())
    own = (*entries, *("".join(map(str.capitalize, e.split("_"))) for e in entries))
    found = {word for word in found if not word.endswith("_") and not word.startswith(own)}
    return sorted(word for word in found - WORDS if not DTYPES.fullmatch(word))


def entries_with_names(names: list[str], number: int) -> tuple[str, str]:
    """Entries of each kind whose arguments, or results, have these names, and derivatives."""
    numbers = ", ".join(f"int {n}" for n in names)
    tensors = ", ".join(f"Tensor {n}" for n in names)
    options = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None"
    made = "  doc: Names.\n  dtypes: {all: floating}\n"
    own = "  doc: Names.\n  dtypes: {CPU: floating}\n  dispatch: {CPU: k}\n"
    forms = "  forms: functional, inplace, out\n"
    ruled, open_ = "  shape: same_as(self)\n", "  shape: data_dependent\n"
    every = f"  check: ['any({', '.join(names)})']\n"
    all_positive = " > 0 && ".join(names) + " > 0"
    positive = f"  check: ['message({all_positive}, \"all of them positive\")']\n"
    product = " * ".join(names)
    each = "  self: grad\n  formulas:\n" + "".join(f"    {n}: grad * {n}\n" for n in names)
    of_self = f"  self: -(-grad) * ({product})\n"
    of_lists = each.replace("  self: grad\n", "  self, last: non_differentiable\n")
    # name, arguments and results; keys; derivative
    kinds = [
        ("kernel_of", f"Tensor self, {numbers}", "Tensor", own + ruled + forms + positive, of_self),
        ("kernel_on", f"Tensor self, {tensors}", "Tensor", own + ruled + forms + every, each),
        ("returns_of", f"Tensor self, {tensors}", "Tensor", own + open_ + every, each),
        ("made_of", f"Tensor self, {tensors}", "Tensor", made + forms, each),
        (
            "lists_of",
            f"Tensor[] self, {tensors}, Tensor[] last",
            "Tensor",
            own + open_ + every.replace("any(", "any(last, "),
            of_lists,
        ),
        ("writes{}_", f"Tensor(a!) self, {tensors}", "Tensor(a!)", own + every, each),
        (
            "scales{}_",
            f"Tensor(a!)[] self, {numbers}",
            "()",
            own + "  shape: k(self)\n" + every,
            "",
        ),
        (
            "view_of",
            f"Tensor(a) self, {numbers}",
            "Tensor(a)",
            made + "  dispatch: {View: v}\n",
            of_self,
        ),
        ("views_of", f"Tensor(a) self, {numbers}", "Tensor(a)[]", made, ""),
        (
            "results_of",
            "Tensor self",
            f"({tensors})",
            own + f"  shape: several{number}(self)\n  forms: functional, out\n",
            f"  self: grads[0] * ({product})\n",
        ),
    ]
    if not {"dtype", "layout", "device"} & set(names):
        kinds.append(("makes", f"{numbers}, {options}", "Tensor", made, ""))
    entries = derivatives = ""
    for kind, arguments, result, keys, derivative in kinds:
        name = kind.format(number) if "{}" in kind else f"{kind}{number}"
        entries += f"- func: {name}({arguments}) -> {result}\n{keys}"
        if derivative:
            derivatives += f"- name: {name}({arguments}) -> {result}\n{derivative}"
    return entries, derivatives


@pytest.fixture(scope="module")
def named(odd: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("named")
    words, most = words_of(odd), 32  # more would make templates of very long lists
    assert len(words) > 300
    parts = [entries_with_names(words[i : i + most], i) for i in range(0, len(words), most)]
    (folder / "ops.yaml").write_text("".join(entries for entries, _ in parts))
    (folder / "d.yaml").write_text("".join(derivatives for _, derivatives in parts))
    generate(folder / "ops.yaml", folder / "d.yaml", name="named_ops", out=folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("part", ["ops", "variable_type", "bindings"])
def test_arguments_may_have_any_name(part: str, named: Path) -> None:
    """Keywords of C++, variables of the generated code, functions and types that it uses."""
    assert problems(named, "named_ops", f"{part}_0") == ""

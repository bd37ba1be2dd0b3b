"""The table of the functions of elements, aten/scalar/functions.yaml, and all that follows from it:
the page, the references of tests, the bounds of errors, what the interface for plug-ins knows; each
function has its math, and a new one is an entry and its math.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from treadle.codegen import outside
from treadle.codegen.function_page import page_with
from treadle.codegen.model.entry import Model
from treadle.codegen.model.functions import Gives, ScalarFunction
from treadle.codegen.model.load import load

import treadle
from treadle.utils._compiler import compile_flags
from treadle_testing import expression

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "aten" / "scalar" / "functions.yaml"
PAGE = ROOT / "docs" / "functions-of-expressions.md"
GUIDE = ROOT / "docs" / "scalar-functions.md"
KINDS = {"bool": "bool", "integral": "int32", "floating": "float32", "complex": "complex64"}


def schemac(*arguments: str) -> None:
    built = ROOT / "bazel-bin" / "codegen" / "schemac" / "schemac"
    binary = os.environ.get("TREADLE_SCHEMAC") or str(built)
    done = subprocess.run([binary, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def model_with(table: Path, out: Path) -> Path:
    """The model of the tree with another table of functions."""
    given = ["--functions", "native_functions.yaml", "--derivatives", "derivatives.yaml"]
    given += ["--formulas", "autograd/formulas.yaml", "--scalars", str(table)]
    schemac(*given, "--out", str(out))
    return out


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return load(model_with(TABLE, tmp_path_factory.mktemp("model") / "opmodel.json"))


@pytest.fixture(scope="module")
def functions(model: Model) -> dict[str, ScalarFunction]:
    return {f.name: f for f in model.scalar_functions if not f.is_operator}


def test_the_page_is_that_of_the_table(model: Model) -> None:
    page = PAGE.read_text()
    assert page == page_with(page, model), (
        "python -m codegen.function_page --model OPMODEL --page docs/functions-of-expressions.md"
    )


def test_the_guide_names_every_key() -> None:
    keys = set(re.findall(r"^(?:- |  )(\w+):", TABLE.read_text(), re.MULTILINE))
    named = set(re.findall(r"`(\w+)`", GUIDE.read_text().partition("## Keys")[2]))
    assert len(keys) > 10 and keys <= named


def test_each_function_has_a_reference_of_its_own(functions: dict[str, ScalarFunction]) -> None:
    written = {name for name, f in functions.items() if f.reference is None}
    assert written == set(expression.WRITTEN)
    for name, f in functions.items():
        if f.reference is not None:
            assert callable(expression.function(name))


def test_plugins_know_which_functions_give_truth_values(
    functions: dict[str, ScalarFunction],
) -> None:
    """The header for plug-ins stands alone, so it has a list; `where` follows its choices."""
    header = (ROOT / "plugin" / "treadle" / "expression_source.hpp").read_text()
    (known,) = re.findall(r"std::set<std::string> names = \{(\"isnan\".*?)\};", header, re.DOTALL)
    truth = {name for name, f in functions.items() if f.gives is Gives.TRUTH}
    assert set(re.findall(r'"(\w+)"', known)) == truth


def test_plugins_fill_in_the_defaults_of_the_table(functions: dict[str, ScalarFunction]) -> None:
    header = (ROOT / "plugin" / "treadle" / "expression_source.hpp").read_text()
    filled = dict(re.findall(r'function == "(\w+)"\) \{  // (.*)\n', header))
    with_defaults = {
        name: f.text.replace("=", " = ")
        for name, f in functions.items()
        if any(a.default is not None for a in f.args)
    }
    assert filled == with_defaults


def test_opencl_expects_errors_where_the_table_does(functions: dict[str, ScalarFunction]) -> None:
    source = (ROOT / "examples" / "backends" / "opencl" / "src" / "source.cc").read_text()
    (body,) = re.findall(r"bool can_fail\(.*?\{(.*?)^\}", source, re.DOTALL | re.MULTILINE)
    throwing = {name for name, f in functions.items() if f.throws}
    assert set(re.findall(r'"(\w+)"', body)) == throwing


# ---- the math ------------------------------------------------------------------------------------


def entries_of_each(functions: dict[str, ScalarFunction]) -> str:
    """An operator for each function and each kind of number that it is of."""
    entries = ""
    for name, f in functions.items():
        for kind, dtype in KINDS.items():
            if dtype not in {d.name for d in f.dtypes}:
                continue
            for count in range(sum(a.default is None for a in f.args), len(f.args) + 1):
                tensors = [f"x{i}" for i in range(count)]
                entries += (
                    f"- func: {name}_{kind}_{count}({', '.join('Tensor ' + t for t in tensors)})"
                    " -> Tensor\n"
                    f"  doc: x.\n  pointwise: {name}({', '.join(tensors)})\n"
                    f"  dtypes: {{all: {dtype}}}\n"
                )
    return entries


def generate_library(
    folder: Path, entries: str, base: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The folder of the sources of a library that stands on another model."""
    monkeypatch.setattr(outside, "MODEL", base)
    (folder / "ops.yaml").write_text(entries)
    outside.generate(folder / "ops.yaml", name="probe", out=folder / "gen")
    return folder / "gen" / "probe"


@pytest.mark.slow
def test_every_function_has_its_math(
    functions: dict[str, ScalarFunction], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For every kind of number that the table says it is of."""
    base = model_with(TABLE, tmp_path / "base.json")
    folder = generate_library(tmp_path, entries_of_each(functions), base, monkeypatch)
    command = ["g++", "-fsyntax-only", "-DTREADLE_ONE_TARGET", *compile_flags()]
    command += [f"-I{tmp_path / 'gen'}", str(folder / "kernels_cpu_0.cc")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]


def blocks(language: str) -> list[str]:
    """The fenced blocks of the guide in a language, without their indentation."""
    text = GUIDE.read_text()
    fences = re.findall(r"^( *)```(\w*)\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(body) for _, name, body in fences if name == language]


USE = """\
- func: softclip(Tensor self, Scalar width) -> Tensor
  doc: x.
  forms: functional, inplace, out
  pointwise: softclip(self, width) + softclip(self) - softclip(self)
  promote: float
  dtypes: {all: [bool, real]}
"""
PROGRAM = """
import treadle
from treadle.utils.cpp_extension import load
probe = load("probe", ["ops.yaml"], build_directory="build")
x = treadle.tensor([-3.0, 0.0, 1.0])
assert probe.softclip(x, 3).tolist() == [-1.5, 0.0, 0.75], probe.softclip(x, 3)
assert probe.softclip(treadle.tensor([1]), 1).tolist() == [0.5]
"""


@pytest.mark.slow
@pytest.mark.builds
def test_a_new_function_is_an_entry_and_its_math(tmp_path: Path) -> None:
    """The guide's steps, with an operator that calls the function; nothing else is written."""
    (entry,), (math,) = blocks("yaml"), blocks("cpp")
    table = tmp_path / "functions.yaml"
    table.write_text(TABLE.read_text() + "\n" + entry)
    # The package with that model, and its headers with that math. Its files may be links to the
    # sources, so those two become files of their own.
    package = tmp_path / "site" / "treadle"
    shutil.copytree(Path(treadle.__file__).parent, package, symlinks=True)
    (package / "opmodel.json").unlink()
    model_with(table, package / "opmodel.json")
    header = package / "include" / "aten" / "scalar" / "math-inl.h"
    text = header.read_text()
    end = "}  // namespace treadle::simd::HWY_NAMESPACE"
    assert text.count(end) == 1
    header.unlink()
    header.write_text(text.replace(end, math + "\n" + end))
    (tmp_path / "ops.yaml").write_text(USE)

    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]

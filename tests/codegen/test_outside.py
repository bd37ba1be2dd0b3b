"""treadle.codegen for libraries outside of the tree: what it writes, and what it refuses."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from treadle.codegen import entries
from treadle.codegen.outside import CodegenError, generate

import treadle
from treadle.utils._compiler import compile_flags

ENTRIES = """\
# ---- Small ----
- func: squareplus(Tensor self, Scalar b=4) -> Tensor
  doc: The smooth rectifier (self + sqrt(self^2 + b)) / 2.
  forms: functional, inplace, out
  pointwise: 0.5 * (self + sqrt(self * self + b))
  promote: float
  dtypes: {all: [bool, real]}
  check: ['b >= 0']

- func: my_ops::halves.dim(Tensor self, int dim) -> (Tensor first, Tensor second)
  doc: The halves along a dimension.
  shape: halves(self, dim)
  dispatch: {CPU: halves_cpu}
  dtypes: {CPU: floating}

- func: running(Tensor self, int dim) -> Tensor
  doc: By a shape rule of Treadle's.
  shape: scan(self, dim)
  dispatch: {CPU: running_cpu}
  dtypes: {CPU: floating}
"""
DERIVATIVES = """\
- name: squareplus(Tensor self, Scalar b=4) -> Tensor
  self: grad * squareplus(self, b) / sqrt(self * self + b)
- name: my_ops::halves.dim(Tensor self, int dim) -> (Tensor first, Tensor second)
  self: cat({grads[0], grads[1]}, dim)
"""


def write(folder: Path, entries: str = ENTRIES, derivatives: str = DERIVATIVES) -> list[Path]:
    (folder / "ops.yaml").write_text(entries)
    (folder / "d.yaml").write_text(derivatives)
    return generate(folder / "ops.yaml", folder / "d.yaml", name="my_ops", out=folder / "gen")


def test_what_is_written(tmp_path: Path) -> None:
    made = {str(p.relative_to(tmp_path / "gen")) for p in write(tmp_path)}
    assert made >= {
        "my_ops/ops/squareplus.h",
        "my_ops/ops/halves.h",
        "my_ops/functions.h",
        "my_ops/library.h",
        "my_ops/ops_0.cc",
        "my_ops/kernels_cpu_0.cc",
        "my_ops/variable_type_0.cc",
        "my_ops/bindings_0.cc",
        "my_ops/shards.cc",
        "my_ops/module.cc",
        "my_ops/__init__.py",
        "my_ops/_operators.py",
        "my_ops/_operators.pyi",
        "my_ops/py.typed",
        "my_ops/opmodel.json",
        "docs/index.md",
        "docs/operators/squareplus.md",
    }
    assert all((tmp_path / "gen" / path).exists() for path in made)
    model = json.loads((tmp_path / "gen/my_ops/opmodel.json").read_text())
    assert [e["namespace"] for e in model["operators"]] == ["my_ops"] * 3
    assert model["operators"][1]["schema"].startswith("my_ops::halves.dim(")
    stub = (tmp_path / "gen/my_ops/_operators.pyi").read_text()
    assert "def squareplus(input: Tensor, b: Number = ..., *, out: Optional[Tensor] = ...)" in stub
    assert "def squareplus_(input: Tensor, b: Number = ...) -> Tensor:\n" in stub
    functions = [n for n in ast.walk(ast.parse(stub)) if isinstance(n, ast.FunctionDef)]
    docs = {f.name: ast.get_docstring(f) for f in functions}
    assert docs["squareplus_"] == "The smooth rectifier (self + sqrt(self^2 + b)) / 2."
    page = (tmp_path / "gen/docs/operators/squareplus.md").read_text()
    assert "my_ops.squareplus(input, b=4, *, out=None) -> Tensor" in page
    assert "Tensor my_ops::squareplus(const Tensor& self" in page


def test_names_are_the_librarys_own_or_treadles(tmp_path: Path) -> None:
    write(tmp_path)
    folder = tmp_path / "gen" / "my_ops"
    ops = (folder / "ops_0.cc").read_text()
    assert "::my_ops::shape::halves(name, self, dim)" in ops
    assert "::treadle::shape::scan(name, self, dim)" in ops
    derivatives = (folder / "variable_type_0.cc").read_text()
    assert "::my_ops::squareplus(" in derivatives and "aten::sqrt(" in derivatives
    for path in [*folder.glob("*.cc"), *folder.rglob("*.h")]:
        assert "treadle::aten::ops" not in path.read_text(), path


def test_a_page_has_an_example_only_where_there_is_one(tmp_path: Path) -> None:
    """`copy` is a method of the mapping of examples as well."""
    write(tmp_path, ENTRIES.replace("squareplus", "copy"), "")
    page = (tmp_path / "gen/docs/operators/copy.md").read_text()
    assert "Example" not in page and "built-in" not in page


def test_files_that_do_not_change_are_left_alone_and_old_ones_go(tmp_path: Path) -> None:
    made = write(tmp_path)
    before = {p: p.stat().st_mtime_ns for p in made}
    assert {p: p.stat().st_mtime_ns for p in write(tmp_path)} == before
    header = tmp_path / "gen/my_ops/ops/running.h"
    assert header.exists()
    write(tmp_path, ENTRIES[: ENTRIES.index("- func: running")])
    assert not header.exists()


SQUARE = "- func: square_of(Tensor self) -> Tensor\n  doc: x x.\n  pointwise: self * self\n"
SQUARE += "  dtypes: {all: any}\n"


@pytest.mark.parametrize(
    "entries, derivatives, message",
    [
        (
            SQUARE.replace("square_of", "other::square_of"),
            "",
            "ops.yaml:1:9: error: other::square_of is not in the namespace of the library, my_ops; "
            "write 'square_of' or 'my_ops::square_of'",
        ),
        (
            SQUARE + "  variants: function, method\n",
            "",
            "ops.yaml:1: error: square_of has the variant 'method'; a library adds no methods to "
            "Tensor, remove it",
        ),
        (
            SQUARE + "  python_module: nn\n",
            "",
            "ops.yaml:1: error: square_of has a 'python_module'; the functions of a library are in "
            "its own, remove it",
        ),
        (
            SQUARE.replace("square_of", "lambda"),
            "",
            "ops.yaml:1: error: lambda cannot be the name of a function in Python; rename it",
        ),
        (
            SQUARE.replace("(Tensor self) ->", "(Tensor  self) ->"),
            "",
            "ops.yaml:1:26: error: schema is not in its usual spelling; write "
            "'square_of(Tensor self) -> Tensor'",
        ),
        (
            SQUARE,
            "- name: square_of(Tensor self, int n) -> Tensor\n  self: grad\n",
            "d.yaml:1:30: error: schema 'square_of(Tensor self, int n) -> Tensor' disagrees with "
            "'square_of(Tensor self) -> Tensor' at {folder}/ops.yaml:1; make them the same",
        ),
    ],
)
def test_what_is_refused(entries: str, derivatives: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(CodegenError) as info:
        write(tmp_path, entries, derivatives)
    first = str(info.value).splitlines()[0].removeprefix(f"{tmp_path}/")
    assert first == message.replace("{folder}", str(tmp_path))


RULE = """\
{include}
#include "aten/engine/structured.h"
namespace my_ops::shape {{
{result} halves(const char*, const treadle::Tensor& self, int64_t) {{
  return {{TensorSpec{{self.sizes(), self.dtype()}}, TensorSpec{{self.sizes(), self.dtype()}}}};
}}
}}  // namespace my_ops::shape
"""
HEADER = '#include "my_ops/ops/halves.h"'
SPECS = "std::array<TensorSpec, 2>"


def compiled(folder: Path, include: str, result: str) -> tuple[str, str]:
    """The compiler's words on a shape rule, and the names that it defines."""
    write(folder)
    source, made = folder / "rule.cc", folder / "rule.o"
    source.write_text(RULE.format(include=include, result=result))
    command = ["g++", "-O0", "-c", *compile_flags(), f"-I{folder / 'gen'}", str(source)]
    done = subprocess.run([*command, "-o", str(made)], capture_output=True, text=True)
    names = subprocess.run(["nm", "-C", str(made)], capture_output=True, text=True).stdout
    return done.stderr, names


def test_a_shape_rule_is_compared_with_its_declaration(tmp_path: Path) -> None:
    """The linker does not see return types: the compiler does, or the rule is another function."""
    said, names = compiled(tmp_path, HEADER, SPECS)
    assert said == ""
    assert "my_ops::shape::halves[abi:entry](char const*, treadle::Tensor const&, long)" in names
    said, names = compiled(tmp_path, '#include "my_ops/library.h"', SPECS)
    assert said == "" and "my_ops::shape::halves(" in names
    assert "halves[abi:entry]" not in names


def test_a_shape_rule_that_returns_something_else_does_not_compile(tmp_path: Path) -> None:
    said, _ = compiled(tmp_path, HEADER, "std::tuple<TensorSpec, TensorSpec>")
    assert "ambiguating new declaration of" in said and "rule.cc" in said


def test_defaults_and_lists_and_signs(tmp_path: Path) -> None:
    """Every constant that a schema takes for a default, edges behind a list, a minus of a minus."""
    entries = """\
- func: f(Tensor[] xs, Tensor y, *, float a=-inf, float b=nan, Scalar c=1.5) -> Tensor
  doc: x.
  dtypes: {all: floating}
- func: g(Tensor self, MemoryFormat m=channels_last, ScalarType t=float, \
ScalarType u=int8) -> Tensor
  doc: x.
  dtypes: {all: floating}
- func: h(Tensor self) -> Tensor
  doc: x.
  pointwise: -(-self)
  dtypes: {all: floating}
"""
    derivatives = """\
- name: f(Tensor[] xs, Tensor y, *, float a=-inf, float b=nan, Scalar c=1.5) -> Tensor
  xs: not_implemented("no")
  y: grad * y
"""
    write(tmp_path, entries, derivatives)
    folder = tmp_path / "gen" / "my_ops"
    header = (folder / "ops/f.h").read_text()
    assert "double a = -std::numeric_limits<double>::infinity()" in header
    assert "double b = std::numeric_limits<double>::quiet_NaN(), const Scalar& c = 1.5" in header
    header = (folder / "ops/g.h").read_text()
    constants = "MemoryFormat m = MemoryFormat::ChannelsLast, ScalarType t = ScalarType::Float32"
    assert constants in header
    assert "ScalarType u = ScalarType::Int8" in header
    assert "return -(-self);" in (folder / "kernels_cpu_0.cc").read_text()
    recorded = (folder / "variable_type_0.cc").read_text()
    assert "if (recorded->has_edge(recorded->xs_count_)) recorded->y_.save(y);" in recorded


@pytest.mark.parametrize(
    "name, message",
    [
        ("my-ops", "expected the name of a library, such as my_ops, got 'my-ops'"),
        ("class", "expected the name of a library, such as my_ops, got 'class'"),
        ("treadle", "expected a name of the library's own, got 'treadle', which is taken"),
        ("aten", "expected a name of the library's own, got 'aten', which is taken"),
    ],
)
def test_names_of_libraries(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "ops.yaml").write_text(SQUARE)
    with pytest.raises(CodegenError) as info:
        generate(tmp_path / "ops.yaml", name=name, out=tmp_path / "gen")
    assert str(info.value) == message


def run(folder: Path, *arguments: str, before: str = "pass") -> subprocess.CompletedProcess:
    program = f"import sys; {before}; import runpy; sys.argv = {['codegen', *arguments]!r}; "
    program += "runpy.run_module('treadle.codegen', run_name='__main__', alter_sys=True)"
    command = [sys.executable, "-c", program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "my_ops.yaml").write_text(SQUARE)
    done = run(tmp_path, "my_ops.yaml", "--out", "gen")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "gen" / "my_ops" / "module.cc").exists()
    done = run(tmp_path, "none.yaml", "--out", "gen", "--name", "my_ops")
    assert (done.returncode, done.stderr) == (1, "schemac: cannot read 'none.yaml'\n")


def test_jinja2_is_asked_for_by_name(tmp_path: Path) -> None:
    (tmp_path / "my_ops.yaml").write_text(SQUARE)
    done = run(tmp_path, "my_ops.yaml", "--out", "gen", before="sys.modules['jinja2'] = None")
    assert done.returncode == 1
    assert done.stderr == (
        "treadle.codegen: expected the package jinja2, which the templates need, got none; "
        "install it with: pip install 'treadle[codegen]'\n"
    )


def test_load_asks_for_jinja2_by_name(tmp_path: Path) -> None:
    (tmp_path / "my_ops.yaml").write_text(SQUARE)
    program = (
        "import sys; sys.modules['jinja2'] = None\n"
        "from treadle.utils.cpp_extension import load\n"
        "load('my_ops', ['my_ops.yaml'], build_directory='build')"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: treadle.codegen: expected the package jinja2, which the templates need, got "
        "none; install it with: pip install 'treadle[codegen]'"
    )


def test_the_package_carries_what_the_build_uses() -> None:
    """One generator: the files in the package are those of the tree."""
    package = Path(treadle.__file__).parent / "codegen"
    tree = Path(__file__).resolve().parents[2] / "codegen"
    for path in [*tree.rglob("*.py"), *tree.glob("templates/*.j2")]:
        assert (package / path.relative_to(tree)).read_bytes() == path.read_bytes(), path
    assert entries.SCHEMAC.exists()

"""schemac from outside: the model it writes, and the exact text of what it reports.

A file below diagnostics/, in the folder of its subject, is one malformed input and all that schemac
says about it:

    === native_functions.yaml
    - func: relu(Tensor self) Tensor
    === stderr
    native_functions.yaml:1:27: error: expected '->' ...

The binary is the one that SCHEMAC names, or TREADLE_SCHEMAC, or the one that Bazel built last.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CASES = sorted((HERE / "diagnostics").rglob("*.case"))

_INTEGERS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
FUNCTIONS = "native_functions.yaml"
DERIVATIVES = "derivatives.yaml"
FORMULAS = "formulas.yaml"
SCALARS = "functions.yaml"
TABLE = ROOT / "aten" / "scalar" / SCALARS  # of the functions of elements
INCOMPLETE = "schemac: needs --functions and --out, or --aten alone"


def schemac(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    built = ROOT / "bazel-bin" / "codegen" / "schemac" / "schemac"
    binary = os.environ.get("SCHEMAC") or os.environ.get("TREADLE_SCHEMAC") or str(built)
    command = [str(Path(binary).resolve()), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, encoding="utf-8", timeout=60)


def compile_model(
    tmp_path: Path,
    functions: str,
    derivatives: str | None = None,
    formulas: str | None = None,
    scalars: str | None = None,
) -> subprocess.CompletedProcess[str]:
    (tmp_path / FUNCTIONS).write_text(functions, encoding="utf-8")
    arguments = ["--functions", FUNCTIONS, "--out", "opmodel.json"]
    if scalars is not None:
        (tmp_path / SCALARS).write_text(scalars, encoding="utf-8")
    arguments += ["--scalars", SCALARS if scalars is not None else str(TABLE)]
    if formulas is not None:
        (tmp_path / FORMULAS).write_text(formulas, encoding="utf-8")
        arguments += ["--formulas", FORMULAS]
    if derivatives is not None:
        (tmp_path / DERIVATIVES).write_text(derivatives, encoding="utf-8")
        arguments += ["--derivatives", DERIVATIVES]
    return schemac(*arguments, cwd=tmp_path)


def finished(functions: str) -> str:
    """The entries with what every one must have, where the test is about something else."""
    entries = re.split(r"^(?=- func: )", functions, flags=re.MULTILINE)
    for i, entry in enumerate(entries):
        if not entry.startswith("- func: "):
            continue
        entry = entry.rstrip("\n") + "\n"
        if "  doc:" not in entry:
            entry += "  doc: What it computes.\n"
        if "  dtypes:" not in entry and "Tensor" in entry:
            computed = "  pointwise:" in entry or "  reduce:" in entry
            entry += f"  dtypes: {{all: {'floating' if computed else 'any'}}}\n"
        entries[i] = entry
    return "".join(entries)


def model_of(
    tmp_path: Path, functions: str, derivatives: str | None = None
) -> list[dict[str, Any]]:
    done = compile_model(tmp_path, finished(functions), derivatives)
    assert done.returncode == 0, done.stderr
    return json.loads((tmp_path / "opmodel.json").read_text(encoding="utf-8"))["operators"]


def sections_of(case: Path) -> dict[str, str]:
    """The parts of a case file by their titles."""
    sections: dict[str, str] = {}
    title = ""
    for line in case.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.startswith("=== "):
            title = line[4:].strip()
            sections[title] = ""
        else:
            sections[title] += line
    return sections


# ---- Diagnostics ----


def test_there_are_cases() -> None:
    assert len(CASES) >= 100


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_diagnostic(case: Path, tmp_path: Path) -> None:
    sections = sections_of(case)
    others = (sections.get(name) for name in (DERIVATIVES, FORMULAS, SCALARS))
    done = compile_model(tmp_path, sections[FUNCTIONS], *others)
    assert done.stderr == sections["stderr"]
    assert done.stdout == ""
    assert done.returncode == 1
    assert not (tmp_path / "opmodel.json").exists()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_every_beginning_of_a_malformed_file_is_handled(case: Path, tmp_path: Path) -> None:
    sections = sections_of(case)
    text = sections[FUNCTIONS]
    for end in range(0, min(len(text), 400), 37):
        done = compile_model(tmp_path, text[:end], sections.get(DERIVATIVES))
        assert done.returncode in (0, 1), done
        assert (done.returncode == 1) == (": error: " in done.stderr)


def test_an_error_leaves_the_old_model_alone(tmp_path: Path) -> None:
    model_of(tmp_path, "- func: relu(Tensor self) -> Tensor\n")
    before = (tmp_path / "opmodel.json").read_bytes()
    assert compile_model(tmp_path, "- func: relu(Tensor self Tensor\n").returncode == 1
    assert (tmp_path / "opmodel.json").read_bytes() == before


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 100000, id="brackets"),
        pytest.param("- " * 100000, id="dashes"),
        pytest.param("- func: f(" + "Tensor a, " * 20000, id="arguments"),
        pytest.param("- func: " + "a" * 1000000, id="long_name"),
        pytest.param("- func: &a [*a]\n- *a\n", id="anchor_of_itself"),
        pytest.param("- func: f(Tensor self) -> Tensor\n  \0: x\n", id="null_byte"),
        pytest.param("\ufeff- func: f(Tensr self) -> Tensor\r\n", id="byte_order_mark"),
        pytest.param("- {[a]: b}\n- ? {x: y}\n", id="keys_that_are_no_text"),
        pytest.param("--- []\n--- []\n", id="two_documents"),
        pytest.param("just text", id="text"),
    ],
)
def test_hostile_files_are_refused(text: str, tmp_path: Path) -> None:
    done = compile_model(tmp_path, text)
    assert done.returncode == 1, done
    assert done.stderr.startswith(FUNCTIONS + ":")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], INCOMPLETE),
        (["--functions", "a.yaml"], INCOMPLETE),
        (["--aten", "a.yaml", "--out", "b"], INCOMPLETE),
        (["--function", "a.yaml"], "schemac: unknown option '--function'"),
        (["--aten"], "schemac: option '--aten' has no value"),
        (["--aten", "a.yaml", "--aten", "b.yaml"], "schemac: option '--aten' is given twice"),
        (["--aten", "nowhere.yaml"], "schemac: cannot read 'nowhere.yaml'"),
    ],
)
def test_wrong_calls(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = schemac(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == message


# ---- ATen's grammar ----


def test_aten_grammar(tmp_path: Path) -> None:
    path = os.environ.get("ATEN_YAML") or str(HERE / "schemac_aten_grammar.yaml")
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    count = sum(line.startswith("- func:") for line in lines)
    start = time.monotonic()
    done = schemac("--aten", str(Path(path).resolve()), cwd=tmp_path)
    assert time.monotonic() - start < 2
    assert done.stderr == ""
    assert done.stdout == f"{count} of {count} entries parsed and printed back identically\n"
    assert done.returncode == 0


def test_aten_refusals(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "- func: f(Tensor  self) -> Tensor\n- func: g(Tensr a) -> ()\n  colours: red\n- x: y\n"
    )
    done = schemac("--aten", "a.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == "0 of 3 entries parsed and printed back identically\n"
    assert [line for line in done.stderr.splitlines() if line.startswith("a.yaml")] == [
        "a.yaml:1:9: error: schema is printed back as 'f(Tensor self) -> Tensor'",
        "a.yaml:2:11: error: unknown type 'Tensr'; did you mean 'Tensor'?",
        "a.yaml:3:3: error: unknown key 'colours'",
        "a.yaml:4:3: error: unknown key 'x'",
        "a.yaml:4:3: error: entry without 'func'",
    ]


# ---- The model ----


def test_the_files_of_the_tree(tmp_path: Path) -> None:
    out = tmp_path / "opmodel.json"
    for _ in range(2):
        given = ["--derivatives", DERIVATIVES, "--scalars", str(TABLE)]
        done = schemac("--functions", FUNCTIONS, *given, "--out", str(out), cwd=ROOT)
        assert done.returncode == 0, done.stderr
    assert [op["schema"] for op in json.loads(out.read_text())["operators"]]


def test_written_only_if_changed(tmp_path: Path) -> None:
    text = "- func: relu(Tensor self) -> Tensor\n  pointwise: relu(self)\n"
    model_of(tmp_path, text)
    out = tmp_path / "opmodel.json"
    os.utime(out, (1, 1))
    model_of(tmp_path, text)
    assert out.stat().st_mtime == 1
    model_of(tmp_path, "# one line more\n" + text)
    assert out.stat().st_mtime != 1


def test_forms_have_names_and_annotations_of_aten(tmp_path: Path) -> None:
    ops = model_of(
        tmp_path,
        """
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  forms: {functional, inplace, out: add.out}
  pointwise: self + alpha * other
- func: max.dim(Tensor self, int dim) -> (Tensor values, Tensor indices)
  forms: functional, out
- func: var_mean(Tensor self) -> (Tensor, Tensor)
  forms: functional, out
- func: squeeze(Tensor(a) self) -> Tensor(a)
  dispatch: View
  forms: functional, inplace
- func: copy_(Tensor(a!) self, Tensor src) -> Tensor(a!)
  dispatch: {CPU: copy_cpu}
  check: [any(src)]
""",
    )
    assert [[(form["form"], form["schema"]) for form in op["forms"]] for op in ops] == [
        [
            ("functional", "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"),
            (
                "inplace",
                "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
            ),
            (
                "out",
                "add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out)"
                " -> Tensor(a!)",
            ),
        ],
        [
            ("functional", "max.dim(Tensor self, int dim) -> (Tensor values, Tensor indices)"),
            (
                "out",
                "max.dim_out(Tensor self, int dim, *, Tensor(a!) values, Tensor(b!) indices)"
                " -> (Tensor(a!) values, Tensor(b!) indices)",
            ),
        ],
        [
            ("functional", "var_mean(Tensor self) -> (Tensor, Tensor)"),
            (
                "out",
                "var_mean.out(Tensor self, *, Tensor(a!) out0, Tensor(b!) out1)"
                " -> (Tensor(a!), Tensor(b!))",
            ),
        ],
        [
            ("functional", "squeeze(Tensor(a) self) -> Tensor(a)"),
            ("inplace", "squeeze_(Tensor(a!) self) -> Tensor(a!)"),
        ],
        [("inplace", "copy_(Tensor(a!) self, Tensor src) -> Tensor(a!)")],
    ]
    assert [form["id"] for form in ops[0]["forms"]] == ["add_Tensor", "add__Tensor", "add_out"]
    names = [arg["name"] for arg in ops[1]["forms"][1]["args"]]
    assert names == ["self", "dim", "values", "indices"]


def test_kinds(tmp_path: Path) -> None:
    ops = model_of(
        tmp_path,
        """
- func: relu(Tensor self) -> Tensor
  pointwise: relu(self)
- func: sum(Tensor self) -> Tensor
  reduce: {init: 0, step: acc + x, combine: a + b}
- func: t(Tensor(a) self) -> Tensor(a)
  dispatch: View
- func: alias(Tensor(a) self) -> Tensor(a)
  dispatch: {CPU: alias_cpu}
- func: sort(Tensor self) -> Tensor
  shape: same_as(self)
  dispatch: {CPU: sort_cpu}
- func: nonzero(Tensor self) -> Tensor
  shape: data_dependent
  dispatch: {CPU: nonzero_cpu}
- func: reshape(Tensor(a) self) -> Tensor(a)
- func: linear(Tensor self) -> Tensor
  dispatch: {Composite: linear_of_parts}
- func: copy_(Tensor(a!) self, Tensor src) -> Tensor(a!)
  dispatch: {CPU: copy_cpu}
  check: [any(src)]
- func: dropout_(Tensor(a!) self) -> Tensor(a!)
""",
    )
    assert [op["kind"] for op in ops] == (
        "pointwise reduce view view kernel returns composite composite mutating composite".split()
    )
    assert [op["dispatch"][0]["kernel"] for op in ops[6:8]] == ["reshape", "linear_of_parts"]
    assert ops[0]["promote"] == "common"
    assert ops[5]["shape"] == {"text": "data_dependent", "tree": None}
    assert list(ops[1]["reduce"]) == ["init", "step", "combine"]


def test_an_alias_has_what_its_operator_has(tmp_path: Path) -> None:
    done = compile_model(
        tmp_path,
        """
- func: absolute.of(Tensor self, str mode) -> Tensor
  alias_of: abs.of
- func: special_abs(Tensor self, str mode="") -> Tensor
  python_module: special
  alias_of: abs.of
- func: own(Tensor self, str mode) -> Tensor
  variants: function
  forms: functional
  alias_of: abs.of
  check: [any(mode)]
  dtypes: {all: [float32]}
  doc: The magnitude.
- func: abs.of(Tensor self, str mode) -> Tensor
  variants: function, method
  forms: {functional: , inplace: , out: abs.my_out}
  check: ['one_of(mode, "a", "b")']
  tags: whole
  dtypes: {CPU: float32, CUDA: [int64, float32]}
  autocast: lower
  doc: The absolute value.
""",
    )
    assert done.returncode == 0, done.stderr
    model = json.loads((tmp_path / "opmodel.json").read_text(encoding="utf-8"))
    alias, in_module, own, operator = model["operators"]
    facts = ("kind", "variants", "dispatch", "tags", "autocast")
    assert [alias[fact] for fact in facts] == [
        "composite",
        ["function", "method"],
        [{"key": "Alias", "kernel": "abs", "line": 2}],
        [],
        None,
    ]
    names = [form["schema"].partition("(")[0] for form in alias["forms"]]
    assert names == ["absolute.of", "absolute_.of", "absolute.of_out"]
    for same in ("check", "dtype_of"):
        assert alias[same] == in_module[same] == operator[same]
    assert alias["dtypes"] == in_module["dtypes"] == {"all": ["int64", "float32"]}
    assert (in_module["variants"], len(in_module["forms"])) == (["function"], 2)
    assert (own["variants"], len(own["forms"]), own["check"]) == (["function"], 1, [])
    assert own["dtypes"] == {"all": ["float32"]}
    docs = [op["doc"] for op in (alias, in_module, own)]
    assert docs == ["As `abs`.", "As `abs`.", "The magnitude."]


@pytest.mark.parametrize("policy", [None, "lower", "float32", "widest", "as_called", "refused"])
def test_autocast_policies(policy: str | None, tmp_path: Path) -> None:
    line = f"  autocast: {policy}\n" if policy else ""
    (op,) = model_of(tmp_path, f"- func: first(Tensor[] tensors) -> Tensor\n{line}")
    assert op["autocast"] == ({"all": policy} if policy else None)


def test_autocast_policies_of_devices(tmp_path: Path) -> None:
    (op,) = model_of(
        tmp_path,
        """\
- func: first(Tensor[] tensors) -> Tensor
  autocast: {all: float32, CPU: as_called, CUDA: refused}
""",
    )
    assert op["autocast"] == {"all": "float32", "CPU": "as_called", "CUDA": "refused"}


def test_dtypes_are_expanded_in_one_order(tmp_path: Path) -> None:
    ops = model_of(
        tmp_path,
        """
- func: a(Tensor self) -> Tensor
  dtypes: {all: floating, bool}
- func: b(Tensor self) -> Tensor
  dtypes: complex, integral
- func: c(Tensor self) -> Tensor
  shape: same_as(self)
  dispatch: {CPU: c_cpu, CUDA: c_cuda}
  dtypes: {CPU: [float64, float32, float64], CUDA: floating}
- func: d(*, ScalarType? dtype=None) -> int
""",
    )
    assert [op["dtypes"] for op in ops] == [
        {"all": ["bool", "float16", "bfloat16", "float32", "float64"]},
        {"all": [*_INTEGERS, "complex64", "complex128"]},
        {"CPU": ["float32", "float64"], "CUDA": ["float16", "bfloat16", "float32", "float64"]},
        None,
    ]
    assert [op["dtype_of"] for op in ops] == ["self", "self", "self", "dtype"]


def test_saves_are_read_off_the_tree(tmp_path: Path) -> None:
    (op,) = model_of(
        tmp_path,
        """
- func: f(Tensor self, Tensor other, Tensor? bias, Tensor[] rest, int dim) -> (Tensor y, Tensor)
""",
        """
- name: f(Tensor self, Tensor other, Tensor? bias, Tensor[] rest, int dim) -> (Tensor y, Tensor)
  output_differentiability: [True, False]
  self: sum_to(grad, self.sizes()) * other.size(dim)
  other: grad * other + other.numel() * inf
  bias, rest: g(grads[0], bias.dim(), rest.size(), y.scalar_type(), result1, grad_input_mask)
""",
    )
    saves = [
        [(s["name"], s["what"], s["is_output"], s["index"]) for s in formula["saves"]]
        for formula in op["derivative"]["formulas"]
    ]
    assert saves == [
        [("self", "sizes", False, 0), ("other", "sizes", False, 1), ("dim", "value", False, 4)],
        [("other", "value", False, 1)],
        [
            ("bias", "dim", False, 2),
            ("rest", "value", False, 3),
            ("y", "dtype", True, 0),
            ("result1", "value", True, 1),
        ],
    ]
    assert op["derivative"]["output_differentiability"] == [True, False]


def test_no_formula_is_needed_where_no_result_has_a_gradient(tmp_path: Path) -> None:
    schema = "argmax(Tensor self, Tensor other) -> Tensor"
    (op,) = model_of(
        tmp_path, f"- func: {schema}\n", f"- name: {schema}\n  output_differentiability: [False]\n"
    )
    assert op["derivative"]["formulas"] == []
    assert op["derivative"]["non_differentiable"] == ["self", "other"]


def test_trees(tmp_path: Path) -> None:
    (op,) = model_of(
        tmp_path,
        """
- func: f(Tensor self, Scalar low, int[2] size=[1,2], float? eps=None) -> Tensor
  pointwise: "low == 2 ? -self : exp(self) * 1.5"
  check: ['message(self.dim() == 2 && size[0] > 0, "a matrix")', eps == None]
""",
    )
    element = {"type": "element"}
    name = {"op": "name", "name": "self"}
    low = {"op": "name", "name": "low", **element}
    two = {"op": "int", "value": "2", **element}
    assert op["pointwise"] == {
        "text": "low == 2 ? -self : exp(self) * 1.5",
        "tree": {
            "op": "select",
            "callee": {"kind": "scalar", "function": "where"},
            "cond": {"op": "binary", "operator": "==", "lhs": low, "rhs": two, "type": "truth"},
            "then": {"op": "unary", "operator": "-", "of": name | element, **element},
            "else": {
                "op": "binary",
                "operator": "*",
                "lhs": {
                    "op": "call",
                    "fn": "exp",
                    "args": [name | element],
                    "callee": {"kind": "scalar", "function": "exp"},
                    **element,
                },
                "rhs": {"op": "float", "value": "1.5", **element},
                **element,
            },
            **element,
        },
    }
    check, none = op["check"]
    assert (check["line"], check["column"]) == (4, 12)
    assert check["tree"]["type"] == none["tree"]["type"] == "bool"
    condition, words = check["tree"]["args"]
    assert (condition["type"], words["value"]) == ("bool", "a matrix")
    left, right = condition["lhs"], condition["rhs"]
    assert left["lhs"] == {
        "op": "method",
        "on": name | {"type": "Tensor"},
        "name": "dim",
        "args": [],
        "type": "int",
        "callee": {"kind": "method", "function": "dim"},
    }
    size = {"op": "name", "name": "size", "type": "int[2]"}
    first = {"op": "int", "value": "0", "type": "int"}
    assert right["lhs"] == {"op": "index", "on": size, "index": first, "type": "int"}
    assert none["tree"]["lhs"] == {"op": "name", "name": "eps", "type": "float?"}
    assert none["tree"]["rhs"] == {"op": "none", "type": "None"}
    assert op["args"][2]["default"] == {"kind": "list", "text": "[1,2]", "value": [1, 2]}
    assert op["args"][2]["type"]["list_size"] == 2


def _nodes(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield tree
    for value in tree.values():
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, dict) and "op" in child:
                yield from _nodes(child)


def test_calls_of_formulas_say_where_they_go(tmp_path: Path) -> None:
    schema = "f(Tensor self, Tensor other, Scalar s, int n) -> Tensor"
    functions = f"""
- func: {schema}
- func: g.Scalar(Tensor self, Scalar other) -> Tensor
  forms: functional, out
- func: g.int(Tensor self, int other) -> Tensor
- func: g.Tensor(Tensor self, Tensor other) -> Tensor
"""
    derivatives = f"""
- name: {schema}
  self: scaled(grad, n) + g(grad, n) + g(grad, 1.5) + grad.g(other) + self.size(n) * grad
  other: g_out(grad, s, self) + scaled(grad, 1, s)
"""
    formulas = """
- func: scaled(Tensor grad, Scalar by) -> Tensor
  linear: grad
- func: scaled.twice(Tensor grad, Scalar by, Scalar again) -> Tensor
  linear: grad
"""
    done = compile_model(tmp_path, finished(functions), derivatives, formulas)
    assert done.returncode == 0, done.stderr
    model = json.loads((tmp_path / "opmodel.json").read_text(encoding="utf-8"))
    trees = [f["tree"] for f in model["operators"][0]["derivative"]["formulas"]]
    calls = [node for tree in trees for node in _nodes(tree) if node["op"] in ("call", "method")]
    assert [(c["callee"]["kind"], c["callee"].get("name"), c["type"]) for c in calls] == [
        ("helper", "scaled", "Tensor"),
        ("operator", "g.int", "Tensor"),  # exactly, though it converts to a Scalar as well
        ("operator", "g.Scalar", "Tensor"),
        ("operator", "g.Tensor", "Tensor"),
        ("method", None, "int"),
        ("operator", "g.Scalar_out", "Tensor"),
        ("helper", "scaled.twice", "Tensor"),
    ]
    assert calls[0]["callee"] == {
        "kind": "helper",
        "namespace": "autograd",
        "function": "scaled",
        "name": "scaled",
    }
    assert calls[5]["callee"] == {
        "kind": "operator",
        "namespace": "aten",
        "function": "g_out",
        "name": "g.Scalar_out",
        "entry": "g",
    }
    assert {node["type"] for tree in trees for node in _nodes(tree)} == {
        "Tensor", "Scalar", "int", "float",
    }  # fmt: skip
    assert [(h["schema"], h["linear"]) for h in model["helpers"]] == [
        ("scaled(Tensor grad, Scalar by) -> Tensor", [["grad"]]),
        ("scaled.twice(Tensor grad, Scalar by, Scalar again) -> Tensor", [["grad"]]),
    ]


def test_every_node_of_the_tree_has_a_type(tmp_path: Path) -> None:
    out = tmp_path / "opmodel.json"
    given = ["--derivatives", DERIVATIVES, "--formulas", "autograd/formulas.yaml"]
    given += ["--scalars", str(TABLE)]
    done = schemac("--functions", FUNCTIONS, *given, "--out", str(out), cwd=ROOT)
    assert done.returncode == 0, done.stderr
    for op in json.loads(out.read_text())["operators"]:
        expressions = [op["shape"], op["pointwise"], *(op["reduce"] or {}).values(), *op["check"]]
        expressions += op["derivative"]["formulas"] if op["derivative"] else []
        for expression in expressions:
            for node in _nodes((expression or {}).get("tree") or {"op": "none", "type": ""}):
                assert node["type"] != "unknown", (op["schema"], expression["text"], node)
                called = node["op"] in ("call", "method")
                assert called <= ("callee" in node), node
                # An operator on elements that C++ has not is a function there.
                written = {"%": "remainder", "&&": "logical_and", "||": "logical_or"}
                if not called and "callee" in node:
                    name = written.get(node.get("operator"), "where")
                    assert node["callee"] == {"kind": "scalar", "function": name}


def test_what_is_computed_says_where_it_throws(tmp_path: Path) -> None:
    ops = model_of(
        tmp_path,
        """
- func: a(Tensor self, Tensor other) -> Tensor
  pointwise: self % other + 1
  dtypes: {all: [int32, float32], CUDA: [bool, float64]}
- func: b(Tensor self, Tensor other) -> Tensor
  pointwise: floor_divide(self, other)
  promote: float
  dtypes: {all: real}
- func: c(Tensor self, Tensor other) -> Tensor
  pointwise: -(self * 3 - bitwise_not(other))
  dtypes: {all: integral}
- func: d(Tensor self) -> Tensor
  reduce: {combine: "a + fmod(a, b)"}
  promote: sum
  dtypes: {all: [bool, int8, int64, float32]}
- func: e(Tensor self, Scalar low, Scalar high) -> Tensor
  pointwise: self % low + floor_divide(self + 1, high) % low
  dtypes: {all: [int8, float32]}
- func: f(Tensor self, Scalar other) -> Tensor
  pointwise: self % other + self % (other + 1)
  dtypes: {all: int8}
""",
    )
    assert [op["throws"] for op in ops] == [
        ["bool", "int32"],
        [],
        [],
        ["int64"],
        ["int8"],
        ["int8"],
    ]
    assert [op["throws_if_zero"] for op in ops] == [["other"], [], [], [], ["low", "high"], []]
    assert [op["keeps_low_bits"] for op in ops] == [False, False, True, False, False, False]


def test_the_table_of_functions_is_in_the_model(tmp_path: Path) -> None:
    scalars = """
# ---- New ----
- function: smooth(x, width=0.5)
  doc: Smooth.
  of: [floating, int64]
  throws: int64
  throws_if_zero: width
  samples: [-1, 1.5e0]
  ulp: {float32: 2, float64: 2.5}
  ulp_of: one
  derivative: {x: "smooth(result, 2)", width: not_implemented("for tests")}
  holomorphic: false
- operator: a <= b
  function: smooth
  of: real
  gives: truth
"""
    functions = "- func: f(Tensor self) -> Tensor\n  pointwise: smooth(self) <= smooth(self, 2)\n"
    done = compile_model(tmp_path, finished(functions), scalars=scalars)
    assert done.returncode == 0, done.stderr
    model = json.loads((tmp_path / "opmodel.json").read_text())
    smooth, at_most = model["scalar_functions"]
    assert smooth == {
        "name": "smooth",
        "is_operator": False,
        "text": "smooth(x, width=0.5)",
        "args": [{"name": "x", "default": None}, {"name": "width", "default": "0.5"}],
        "function": None,
        "section": "New",
        "doc": "Smooth.",
        "dtypes": ["int64", "float16", "bfloat16", "float32", "float64"],
        "gives": "element",
        "throws": ["int64"],
        "throws_if_zero": "width",
        "keeps_low_bits": False,
        "derivative": {"x": "smooth(result, 2)", "width": 'not_implemented("for tests")'},
        "holomorphic": False,
        "reference": None,
        "samples": [-1.0, 1.5],
        "rounded": False,
        "ulp": {"float32": 2.0, "float64": 2.5},
        "ulp_of": "one",
        "complex_ulp_of": None,
        "range": None,
        "above": None,
    }
    assert (at_most["text"], at_most["gives"], at_most["function"]) == ("a <= b", "truth", "smooth")
    tree = model["operators"][0]["pointwise"]["tree"]
    assert (tree["type"], tree["lhs"]["type"]) == ("truth", "element")
    assert tree["rhs"]["callee"] == {"kind": "scalar", "function": "smooth"}


KEYS_PAGE = ROOT / "docs" / "entry-keys.md"
WORDS = {
    "key": "- func: f(Tensor self) -> Tensor\n  xxxxxxxx: 1\n",
    "tag": "- func: f(Tensor self) -> Tensor\n  tags: xxxxxxxx\n",
    "promotion": "- func: f(Tensor self) -> Tensor\n  promote: xxxxxxxx\n",
    "form": "- func: f(Tensor self) -> Tensor\n  forms: xxxxxxxx\n",
    "variant": "- func: f(Tensor self) -> Tensor\n  variants: xxxxxxxx\n",
    "autocast policy": "- func: f(Tensor self) -> Tensor\n  autocast: xxxxxxxx\n",
}


@pytest.mark.parametrize("kind", WORDS)
def test_the_page_of_keys_has_every_word(kind: str, tmp_path: Path) -> None:
    said = compile_model(tmp_path, WORDS[kind]).stderr
    found = re.search(rf"unknown {kind} 'xxxxxxxx'.*?known are ([^\n]*)", said, re.DOTALL)
    assert found, said
    page = KEYS_PAGE.read_text(encoding="utf-8")
    words = found[1].rstrip(")").replace(" and ", ", ").split(", ")
    assert len(words) > 1 and [word for word in words if f"`{word}`" not in page] == []
    if kind == "key":
        assert re.findall(r"^\| `(\w+)`", page.partition("`promote`:")[0], re.MULTILINE) == words

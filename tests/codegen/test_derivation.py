"""The formulas that schemac derives from pointwise expressions: what it simplifies, how it writes
the result with operators, and what it says where there is no derivative.

Entries here are those of a library, which knows the operators and functions of the tree.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
Model = dict[str, Any]


def schemac(*arguments: str, cwd: Path) -> None:
    built = ROOT / "bazel-bin" / "codegen" / "schemac" / "schemac"
    binary = str(Path(os.environ.get("TREADLE_SCHEMAC") or built).resolve())
    done = subprocess.run([binary, *arguments], cwd=cwd, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model of the tree."""
    out = tmp_path_factory.mktemp("tree") / "opmodel.json"
    files = {
        "functions": "native_functions.yaml",
        "scalars": "aten/scalar/functions.yaml",
        "derivatives": "derivatives.yaml",
        "formulas": "autograd/formulas.yaml",
    }
    options = [word for option, path in files.items() for word in (f"--{option}", str(ROOT / path))]
    schemac(*options, "--out", str(out), cwd=out.parent)
    return out


def _derived(
    tree: Path,
    tmp_path: Path,
    arguments: str,
    expression: str,
    *,
    dtypes: str = "floating",
    keys: str = "",
    by_hand: str = "",
) -> Model:
    """The entry of the model for one operator."""
    schema = f"f({arguments}) -> Tensor"
    (tmp_path / "f.yaml").write_text(
        f"- func: {schema}\n  pointwise: '{expression}'\n  dtypes: {{all: {dtypes}}}\n{keys}"
        "  doc: What it computes.\n"
    )
    options = ["--functions", "f.yaml", "--library", "lib", "--base", str(tree)]
    if by_hand:
        (tmp_path / "d.yaml").write_text(f"- name: {schema}\n{by_hand}")
        options += ["--derivatives", "d.yaml"]
    schemac(*options, "--out", "opmodel.json", cwd=tmp_path)
    (entry,) = json.loads((tmp_path / "opmodel.json").read_text())["operators"]
    return entry


def _gradients(entry: Model) -> dict[str, str]:
    return {f["targets"][0]: f["text"] for f in entry["derivative"]["formulas"]}


UNARY = {
    # Numbers, signs and what cancels.
    "self": "grad",
    "3 - self": "-grad",
    "self * 2 - self": "grad",
    "self * self": "grad * self * 2",
    "self - self": "zeros_like(grad)",
    "self / 4": "grad * 0.25",
    "2 / self": "grad / self / self * -2",
    "1 - (1 - self)": "grad",
    "self * log(self)": "grad * (log(self) + 1)",
    "pi * self": "scaled(grad, pi)",
    # The result is kept where the whole is one function, and computed anew within others.
    "exp(self)": "grad * result",
    "exp(self) * 3": "grad * exp(self) * 3",
    "exp(-self)": "-(grad * result)",
    "sin(cos(self))": "-(grad * cos(cos(self)) * sin(self))",
    "softplus(self)": "where(self > 20, grad, grad * sigmoid(self))",
    "erfcx(self)": "grad * (self * result * 2 - 1.1283791670955126)",
    # Choices: nothing flows where a branch is constant.
    "self > 0 ? self : 0": "where(self > 0, grad, 0)",
    "0 < self ? self : 0": "where(self > 0, grad, 0)",
    "self > 0 ? self : -self": "where(self > 0, grad, -grad)",
    "self > 0 ? 2 * self : self + self": "grad * 2",
    "where(isnan(self), 0, self)": "where(isnan(self), 0, grad)",
    "self * clamp(self, 0, 1)": (
        "grad * (hardtanh(self, 0, 1) + where(self > 0 && self < 1, self, 0))"
    ),
    "floor(self) + (self > 0)": "zeros_like(grad)",
    # One operator that computes the whole.
    "tanh(self)": "tanh_backward(grad, result)",
    "silu(self)": "silu_backward(grad, self)",
}  # fmt: skip


@pytest.mark.parametrize("expression", UNARY)
def test_gradient(expression: str, tree: Path, tmp_path: Path) -> None:
    entry = _derived(tree, tmp_path, "Tensor self", expression)
    assert _gradients(entry) == {"self": UNARY[expression]}
    assert all(formula["derived"] for formula in entry["derivative"]["formulas"])


def test_what_backward_keeps_is_what_the_formula_names(tree: Path, tmp_path: Path) -> None:
    arguments, expression = "Tensor self, Tensor other, Scalar s", "self * exp(other) * s + 1"
    entry = _derived(tree, tmp_path, arguments, expression)
    assert _gradients(entry) == {
        "self": "scaled(grad * exp(other), s)",
        "other": "scaled(grad * self * exp(other), s)",
    }
    saves = [[s["name"] for s in f["saves"]] for f in entry["derivative"]["formulas"]]
    assert saves == [["other", "s"], ["self", "other", "s"]]
    assert entry["derivation"]["tangent"]["text"] == (
        "scaled(self_t * exp(other), s) + scaled(other_t * self * exp(other), s)"
    )


def test_complex_gradients_have_conjugates(tree: Path, tmp_path: Path) -> None:
    def gradients(expression: str) -> dict[str, str]:
        arguments = "Tensor self, Tensor other, Scalar s"
        return _gradients(_derived(tree, tmp_path, arguments, expression, dtypes="complex"))

    assert gradients("sin(self) * other / s") == {
        "self": "div_by_scalar(grad * conj(other * cos(self)), s)",
        "other": "div_by_scalar(grad * conj(sin(self)), s)",
    }
    assert gradients("conj(self) * other - s") == {
        "self": "conj(grad) * other",
        "other": "grad * self",
    }
    assert gradients("self + conj(self) * other * s") == {
        "self": "addcmul(grad, other, conj(grad), s)",
        "other": "scaled(grad * self, s)",
    }


def test_an_argument_called_grad(tree: Path, tmp_path: Path) -> None:
    entry = _derived(tree, tmp_path, "Tensor grad, Tensor result", "2 + grad * exp(result)")
    assert _gradients(entry) == {
        "grad": "grads[0] * exp(result)",
        "result": "grads[0] * grad * exp(result)",
    }


def test_an_operator_that_computes_its_own_gradient(tree: Path, tmp_path: Path) -> None:
    arguments, expression = "Tensor self, Tensor other, Scalar s", "self * exp(other) * s"
    entry = _derived(tree, tmp_path, arguments, expression)
    assert _gradients(entry)["self"] == "f(grad, other, s)"
    # It is not called with other values than it says to take.
    entry = _derived(tree, tmp_path, arguments, expression, keys="  check: [s > 0]\n")
    assert _gradients(entry)["self"] == "scaled(grad * exp(other), s)"


def test_formulas_by_hand_leave_the_rest_to_be_derived(tree: Path, tmp_path: Path) -> None:
    arguments, expression = (
        "Tensor self, Tensor other, Tensor c",
        "c ? self : other * airy_ai(self)",
    )
    by_hand = "  self: grad * other\n"
    entry = _derived(tree, tmp_path, arguments, expression, by_hand=by_hand)
    assert _gradients(entry) == {
        "self": "grad * other",
        "other": "where(c, 0, grad * special_airy_ai(self))",
    }
    assert [f["derived"] for f in entry["derivative"]["formulas"]] == [False, True]
    assert entry["derivative"]["non_differentiable"] == ["c"]
    assert entry["derivation"]["missing"] == {"self": "no derivative of airy_ai(x) is known"}


def test_an_argument_without_a_derivative_says_why(tree: Path, tmp_path: Path) -> None:
    entry = _derived(tree, tmp_path, "Tensor self, Tensor other", "self * airy_ai(other) + 1")
    assert _gradients(entry) == {
        "self": "grad * special_airy_ai(other)",
        "other": 'not_implemented("no derivative of airy_ai(x) is known")',
    }


@pytest.mark.parametrize(
    "arguments, expression, dtypes, why",
    [
        ("Tensor self", "airy_ai(self)", "floating", "no derivative of airy_ai(x) is known"),
        ("Tensor self", "abs(self)", "any", "abs(x) has no derivative by a complex number"),
        ("Tensor self", "igamma(self, 2)", "floating", "the derivative by the order"),
        ("Tensor self, Scalar s", "self / s * (1 / s)", "floating", ""),
        ("Scalar s, Tensor self", "exp(self) * log(s)", "float32", "no operator computes 'log(s)'"),
    ],
)
def test_without_a_derivative(
    arguments: str, expression: str, dtypes: str, why: str, tree: Path, tmp_path: Path
) -> None:
    entry = _derived(tree, tmp_path, arguments, expression, dtypes=dtypes)
    assert entry["derivation"]["missing"].get("self", "") == why


def test_an_entry_may_say_that_it_has_none(tree: Path, tmp_path: Path) -> None:
    by_hand = "  output_differentiability: [False]\n"
    entry = _derived(tree, tmp_path, "Tensor self", "sin(self)", by_hand=by_hand)
    assert entry["derivative"]["output_differentiability"] == [False]
    assert entry["derivative"]["formulas"] == []
    keys = "  tags: differentiable_none\n"
    assert _derived(tree, tmp_path, "Tensor self", "sin(self)", keys=keys)["derivative"] is None
    by_hand = "  self: non_differentiable\n"
    entry = _derived(tree, tmp_path, "Tensor self, Tensor x", "self * x + 1", by_hand=by_hand)
    assert _gradients(entry) == {"x": "grad * self"}
    assert entry["derivative"]["non_differentiable"] == ["self"]


def test_results_that_are_truth_values_have_none(tree: Path, tmp_path: Path) -> None:
    entry = _derived(tree, tmp_path, "Tensor self", "self > 0", keys="  promote: compare\n")
    assert entry["derivative"]["output_differentiability"] == [False]
    assert entry["derivative"]["non_differentiable"] == ["self"]
    integers = _derived(tree, tmp_path, "Tensor self", "self * self", dtypes="integral")
    assert integers["derivation"] is integers["derivative"] is None

"""explain: every operator can be asked what it is, and a call where it goes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import subprocess
import sys

import pytest

import treadle
from treadle._introspection import explain as _explain


def test_every_operator_can_be_explained() -> None:
    names = {entry["name"] for entry in _explain.model()["operators"]}
    assert len(names) > 90
    for name in names:
        text = _explain.describe(name)
        assert "declared" in text and "native_functions.yaml:" in text


def test_an_entry_says_where_its_parts_are() -> None:
    text = _explain.describe("add.Tensor")
    for part in (
        "self + alpha * other",
        "aten::add_.Tensor",
        "other: scaled(grad, alpha)  (derived)",
        "Tensor.add_",
        "cpu strided:",
    ):
        assert part in text
    assert treadle.explain("add.Tensor") is None


def test_gradients_by_hand_and_derived_ones() -> None:
    def rows(name: str) -> list[str]:
        lines = [line[22:] for line in _explain.describe(name).splitlines()]
        titles = [line[2:22].strip() for line in _explain.describe(name).splitlines()]
        first = titles.index("gradient")
        return lines[first : titles.index("in Python")]

    assert rows("sin")[1:] == ["self: grad * conj(cos(self))  (derived)", "self_t * cos(self)"]
    place, by_hand, *_ = rows("sinc")
    assert "derivatives.yaml:" in place and by_hand == "self: grad * conj(sinc_slope(self, result))"
    assert rows("special_airy_ai") == ["none by x: no derivative of airy_ai(x) is known"]


def test_a_call_takes_its_own_route() -> None:
    x = treadle.ones(2)
    assert "add.Scalar" in _explain.describe(treadle.add, x, 2)
    assert "autograd" not in _explain.describe(treadle.mul, x, x)
    assert "autograd" in _explain.describe(treadle.mul, x.requires_grad_(), x)
    assert "float64" in _explain.describe("mul", x.double(), x)
    assert "meta device" in _explain.describe("mul", x.to("meta"), x.to("meta"))
    with pytest.raises(TypeError):
        _explain.describe(treadle.add, x, "text")


def test_an_unknown_name_gives_near_ones() -> None:
    with pytest.raises(ValueError, match="did you mean .*softmax"):
        _explain.describe("sofmax")


@pytest.mark.slow
def test_the_command_line() -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-m", "treadle", *arguments], capture_output=True, text=True
        )

    assert "aten::mm(" in run("explain", "mm").stdout
    listed = run("ops").stdout
    assert "add.Tensor" in listed and "cpu, meta" in listed
    failed = run("explain", "nonsense")
    assert failed.returncode == 1 and "nonsense" in failed.stderr


def test_the_dispatcher_is_sound() -> None:
    assert treadle._C._dispatch_check_invariants() == []
    assert treadle._C._dispatch_dangling_kernels() == []

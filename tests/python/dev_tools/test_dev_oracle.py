"""./dev oracle: values that go between the sides, what is judged other, what is kept."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Iterator

import pytest

import treadle
from tool_modules import importing

ROOT = Path(os.environ["TREADLE_SOURCE"])
TOOLS = ROOT / "tools" / "dev"
MODULES = ("plain", "parts", "compare", "oracle")


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    monkeypatch.setitem(sys.modules, "torch", treadle)
    with importing("dev/oracle_sides", "dev") as load:
        yield {name: load(name) for name in MODULES}


def _kinds(tools: dict[str, ModuleType], wanted: Any, found: Any, dtype: str) -> list[str]:
    one, other = (tools["plain"].encode(treadle, v) for v in (wanted, found))
    return [kind for kind, _ in tools["compare"].differences(one, other, dtype)]


@pytest.mark.parametrize(
    "tensor",
    [
        treadle.arange(6.0).reshape(2, 3),
        treadle.arange(6).reshape(2, 3).t(),
        treadle.tensor([1.5, -2.0], dtype=treadle.bfloat16),
        treadle.tensor([True, False]),
        treadle.tensor(1 + 2j),
        treadle.ones(3, 1).expand(3, 4),
        treadle.empty(0, 3),
    ],
)
def test_tensors_keep_values_and_strides(tools: dict[str, ModuleType], tensor: Any) -> None:
    plain = tools["plain"]
    back = plain.decode(treadle, plain.encode(treadle, tensor))
    assert back.dtype == tensor.dtype
    assert back.stride() == tensor.stride() or tensor.numel() == 0
    assert treadle.equal(back, tensor)


def test_functions_without_a_name_are_carried_as_code(tools: dict[str, ModuleType]) -> None:
    plain, scale = tools["plain"], 3
    carried = plain.encode(treadle, lambda x, *, add=math.e: x * scale + add)
    assert isinstance(carried, plain.Code)
    assert plain.decode(treadle, carried)(2.0, add=1.0) == 7.0
    assert plain.encode(treadle, treadle.Tensor.add_) == plain.Name("torch.Tensor.add_")


def test_what_cannot_be_carried_is_said(tools: dict[str, ModuleType]) -> None:
    with pytest.raises(tools["plain"].NotCarried, match="^a value of the type object$"):
        tools["plain"].encode(treadle, object())


def test_kinds_of_differences(tools: dict[str, ModuleType]) -> None:
    ones = treadle.ones(2, 3)
    assert _kinds(tools, ones, ones + 1e-7, "float32") == []
    assert _kinds(tools, ones, ones + 1e-3, "float32") == ["value"]
    assert _kinds(tools, ones, ones + 1e-3, "bfloat16") == []
    assert _kinds(tools, ones, ones.double(), "float32") == ["dtype"]
    assert _kinds(tools, ones, ones.t(), "float32") == ["shape"]
    assert _kinds(tools, ones, treadle.ones(3, 2).t(), "float32") == ["strides"]
    assert _kinds(tools, [ones], [ones, ones], "float32") == ["type"]
    assert _kinds(tools, ones.double(), ones.double() + 1e-6, "float64") == ["value"]
    assert _kinds(tools, ones.double(), ones.double() + 1e-6, "int64") == []
    assert _kinds(tools, 3, 3.0, "int64") == ["type"]
    assert _kinds(tools, treadle.tensor([1]), treadle.tensor([2]), "int64") == ["value"]
    nan = treadle.tensor([math.nan, math.inf])
    assert _kinds(tools, nan, nan.clone(), "float32") == []
    assert _kinds(tools, nan, treadle.tensor([math.nan, -math.inf]), "float32") == ["value"]


def test_exceptions_are_compared_by_class(tools: dict[str, ModuleType]) -> None:
    plain, compare = tools["plain"], tools["compare"]
    wrong = plain.failure(IndexError("a place"))
    assert list(compare.differences(wrong, plain.failure(IndexError("another")), "int64")) == []
    ((kind, text),) = compare.differences(plain.failure(TypeError("x")), wrong, "int64")
    assert (kind, text) == ("exception", "IndexError: a place instead of TypeError")
    assert [k for k, _ in compare.differences(wrong, 1, "int64")] == ["accepted"]
    assert [k for k, _ in compare.differences(1, wrong, "int64")] == ["refused"]


def test_parts_of_a_sample(tools: dict[str, ModuleType]) -> None:
    plain, parts = tools["plain"], tools["parts"]
    x = treadle.tensor([1.0, 2.0], dtype=treadle.float64, requires_grad=True)
    case = parts.Case(
        "exp", "float64", 0, "operator", plain.Name("torch.exp"),
        plain.encode(treadle, (x,)), {}, "exp", "exp_", True, 2,
    )  # fmt: skip
    named = dict(parts.parts_of(treadle, case))
    assert list(named) == [
        "values", "method", "in-place", "out", "out of no elements", "out of other strides",
        "out of another dtype", "gradients", "second order",
    ]  # fmt: skip
    with pytest.raises(RuntimeError, match="^exp: expected out of a dtype"):
        named.pop("out of another dtype")()
    found = {name: part() for name, part in named.items()}
    wanted = treadle.exp(x.detach())
    assert treadle.equal(found["values"], wanted)
    assert found["in-place"][0] is True
    assert treadle.equal(found["out of no elements"], wanted)
    weights = parts.weights(treadle, wanted)
    treadle.testing.assert_close(found["gradients"][0], wanted * weights)


_DIES = """
import json, os, sys
for line in sys.stdin:
    skip = json.loads(line)["skip"]
    for number in range(skip + 1, 4):
        print(json.dumps({"begin": [number, number, "values"]}), flush=True)
        if number == 2:
            os.abort()
        print(json.dumps({"end": []}), flush=True)
    print(json.dumps({"done": None}), flush=True)
"""


def test_a_side_that_dies_is_started_again_after_the_sample(
    tools: dict[str, ModuleType], tmp_path: Path
) -> None:
    oracle = tools["oracle"]
    (tmp_path / "op.x.int64.gz").touch()
    pair = object.__new__(oracle.Pair)
    pair._most, pair._folder = 0, tmp_path
    pair._ours = oracle.Side([sys.executable, "-c", _DIES], dict(os.environ))
    found = pair.compare("op", "x", "int64")
    pair._ours.end()
    assert found.samples == 3
    assert found.differences == [("values", "crash", "Treadle ended with the status -6", 2)]


def test_kept_differences_are_on_the_page(tools: dict[str, ModuleType]) -> None:
    oracle = tools["oracle"]
    assert all(reason and len(patterns) == 4 for patterns, reason in oracle.reasons())
    text = oracle.PAGE.read_text()
    assert oracle.with_table(text) == text


def test_differences_for_a_reason_are_counted_apart(
    tools: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    oracle = tools["oracle"]
    row = (["svd", "values", "value", "*"], "the signs are free")
    monkeypatch.setattr(oracle, "reasons", lambda: [row])
    summary = oracle.Summary(None)
    found = [("values", "value", "1 instead of -1", 0), ("gradients", "strides", "(1,)", 1)]
    summary.add("svd", "float64", oracle.Found(4, found))
    assert summary.print() == 0
    assert (
        capsys.readouterr()
        .out.splitlines()[-1]
        .endswith(
            "4 samples of 1 names: 3 equal (75.00%), 1 differ for a reason, 0 without one; "
            "0 crashes; 1 results with other strides, 0 whose values are not compared"
        )
    )
    summary.add("svd", "float64", oracle.Found(1, [("values", "shape", "[2]", 0)]))
    assert summary.print() == 1


def test_values_that_are_drawn_are_not_compared(
    tools: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    oracle = tools["oracle"]
    row = (["rand", "*", "value", "*"], "Not compared: they are drawn.")
    monkeypatch.setattr(oracle, "reasons", lambda: [row])
    summary = oracle.Summary(None)
    summary.add("rand", "float64", oracle.Found(2, [("values", "value", "1 instead of 2", 0)]))
    assert summary.print() == 0
    assert (
        capsys.readouterr()
        .out.splitlines()[-1]
        .endswith(
            "2 samples of 1 names: 2 equal (100.00%), 0 differ for a reason, 0 without one; "
            "0 crashes; 0 results with other strides, 1 whose values are not compared"
        )
    )
    summary.add("rand", "float64", oracle.Found(1, [("values", "dtype", "int64", 0)]))
    assert summary.print() == 1


def test_second_derivatives_may_be_zero_or_none(tools: dict[str, ModuleType]) -> None:
    plain, without_zeros = tools["plain"], tools["compare"].without_zeros
    zeros, ones = (plain.encode(treadle, v) for v in (treadle.zeros(2), treadle.ones(2)))
    nan = plain.encode(treadle, treadle.tensor([math.nan, 0.0]))
    assert without_zeros([0, 2]) is None
    assert without_zeros([zeros, None]) is None
    assert without_zeros([zeros, ones, nan]) == [None, ones, nan]
    refused = plain.failure(RuntimeError("no"))
    assert without_zeros(refused) is refused


def test_requests_are_lines_of_json(tools: dict[str, ModuleType]) -> None:
    echo = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
    side = tools["oracle"].Side([sys.executable, "-c", echo], dict(os.environ))
    side.ask({"file": "a b"})
    assert side.answer(60) == json.loads('{"file": "a b"}')
    side.end()
    with pytest.raises(tools["oracle"].Died, match="^ended with the status 3$"):
        dead = tools["oracle"].Side([sys.executable, "-c", "raise SystemExit(3)"], {})
        dead.ask({})
        dead.answer(60)

"""./dev names: how it compares two lists of names, and what it writes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from typing import Any

import pytest

from source_tree import ROOT

FOLDER = ROOT / "tools" / "dev"


@pytest.fixture(scope="module")
def names() -> Any:
    sys.path.insert(0, str(FOLDER))
    try:
        spec = importlib.util.spec_from_file_location("dev_names", FOLDER / "names.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(FOLDER))


def test_differences(names: Any) -> None:
    theirs = ["function", [["input", None], ["dim", "0"], ["keepdim", "False"], ["like", "?"]]]
    ours = ["function", [["input", None], ["dim", "1"], ["like", "None"], ["more", "2"]]]
    assert names.differences(theirs, ours) == ["-keepdim", "dim=0|1"]
    assert names.differences(theirs, ["class", None]) == []
    assert names.differences(theirs, ["value", None]) == ["value instead of function"]


def test_reasons_stand_for_names(names: Any) -> None:
    reasons = names.reasons()
    assert all(len(reason) > 10 for reason in reasons.values())
    assert names.pattern_for("torch.ao.nn.Thing", reasons) == "torch.ao.*"
    assert names.pattern_for("torch.nn.Linear", reasons) is None
    rows = names.table_of_missing(["torch.ao.nn.Thing", "torch.cpp", "torch.nn.Linear"])
    assert rows == [
        "| `torch.ao.*` | quantization has no such function, layer or observer |",
        "| `torch.cpp` | layers that are written in C++ for PyTorch |",
    ]


def test_the_page_is_written_between_its_marks(names: Any) -> None:
    begin, end = (mark.format("x") for mark in names.MARKS)
    text = f"before\n{begin}old\n{end}after\n"
    made = names.with_table(text, "x", ["| `a` | b |"])
    assert made == f"before\n{begin}| name | reason |\n|---|---|\n| `a` | b |\n{end}after\n"
    with pytest.raises(names.DevError, match="has no place for the table of y"):
        names.with_table(text, "y", [])
    assert "`torch.distributed.collective_utils.*`" in "".join(names.table_of_mentioned())


def test_names_of_this_package() -> None:
    given = "torch.nn.Linear torch.add torch.Tensor.add_ torch.nn.no_such_name torch.pi"
    result = subprocess.run(
        [sys.executable, str(FOLDER / "public_names.py"), "treadle"],
        input=given,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(result.stdout)
    assert sorted(found) == ["torch.Tensor.add_", "torch.add", "torch.nn.Linear", "torch.pi"]
    kind, parameters = found["torch.nn.Linear"]
    assert kind == "class" and ["bias", "True"] in parameters
    assert found["torch.pi"][0] == "value"
    assert {"alpha", "other"} <= {name for name, _ in found["torch.add"][1]}

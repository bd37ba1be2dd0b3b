"""./dev libraries: its table, its versions, and how it tells right numbers from wrong ones."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest

import treadle
from tool_modules import importing


@pytest.fixture(scope="module")
def libraries() -> Iterator[Any]:
    with importing("dev") as load:
        yield load("libraries")


def test_the_page_lists_what_is_run(libraries: Any) -> None:
    _, mark, table = libraries.PAGE.read_text().partition(libraries.MARK)
    assert mark and table.strip() == libraries.table().strip()


def test_each_program_has_a_version_and_no_two_uses_one_title(libraries: Any) -> None:
    names = libraries.programs_named([], quick=False)
    assert len(names) >= 40
    pinned = libraries.versions_in(libraries.FOLDER / "versions.txt")
    assert "torch" not in pinned and not [name for name in pinned if name.startswith("nvidia")]
    for name in names:
        titles = libraries.titles_of(name)
        assert titles and len(set(titles)) == len(titles), name
        assert libraries.as_distribution(libraries.distribution_of(name)) in pinned


def test_what_is_expected_belongs_to_a_use(libraries: Any) -> None:
    expected = json.loads(libraries.EXPECTED.read_text())
    for name, uses in expected.items():
        assert set(uses) <= set(libraries.titles_of(name)), name


def test_numbers_are_compared(libraries: Any) -> None:
    difference = libraries.difference
    nan = float("nan")
    assert difference([2, "a", 1.0, nan], [2, "a", 1.001, nan]) == ""
    assert difference([1.0], None) == "nothing is recorded for it"
    assert difference([1.0, 2.0], [1.0]) == "expected 1 numbers, got 2"
    assert difference([1.0, 2.0], [1.0, 2.2]) == "number 1: expected 2.2, got 2.0"
    assert difference([3], [4]) == "number 0: expected 4, got 3"
    assert difference([nan], [1.0]) == "number 0: expected 1.0, got nan"


def test_a_name_that_is_no_program(libraries: Any) -> None:
    with pytest.raises(Exception, match="libraries: expected some of accelerate .*; got numpy"):
        libraries.programs_named(["timm", "numpy"], quick=False)
    assert libraries.programs_named(["timm", "kornia"], quick=False) == ["kornia", "timm"]
    assert "timm" in libraries.programs_named([], quick=True)


@pytest.mark.slow
def test_libraries_as_they_are_installed_have_the_numbers_of_pytorch(libraries: Any) -> None:
    if sys.version_info < (3, 11):
        with pytest.raises(Exception, match="libraries: expected Python 3.11 or newer"):
            libraries.make_environment(quick=True)
        return
    names = ["einops", "safetensors", "timm", "torchmetrics", "transformers", "vit_pytorch"]
    command = [str(libraries.make_environment(quick=True)), "-W", "ignore", "-m", "treadle.run"]
    package = str(Path(treadle.__file__).parents[1])
    found = libraries.run_all(command, package, names, 1, "treadle")
    expected = json.loads(libraries.EXPECTED.read_text())
    rows = [row for name in names for row in libraries.rows_of(name, found[name], expected)]
    assert len(rows) > 20 and not [row for row in rows if row.fault]

"""./dev lint and ./dev format: licence lines, docstrings, what the output of checkers means."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from source_tree import ROOT
from tool_modules import importing

TOOL = ROOT / "tools" / "dev"
LICENCE = "SPDX-License-Identifier: Apache-2.0"


@pytest.fixture
def dev() -> Iterator[SimpleNamespace]:
    """Parts of ./dev."""
    with importing("dev") as load:
        names = ("checkers", "sources", "tests", "tidy", "ui")
        parts = {name: load(name) for name in names}
        yield SimpleNamespace(lines=load("licence_lines"), **parts)


@pytest.mark.parametrize(
    ("suffix", "before", "after"),
    [
        (".h", "// Idea.\n#pragma once\n", f"// Idea.\n//\n// {LICENCE}\n#pragma once\n"),
        (
            ".cc",
            "// Idea,\n//\n//   x\n\nint x;\n",
            f"// Idea,\n//\n//   x\n//\n// {LICENCE}\n\nint x;\n",
        ),
        (".h", "/* Idea.\n */\n#ifndef X\n", f"/* Idea.\n */\n/* {LICENCE} */\n#ifndef X\n"),
        (".py", '"""Idea."""\n\nimport os\n', f'"""Idea."""\n\n# {LICENCE}\n\nimport os\n'),
        (".py", '"""Idea\n\nand more."""\n', f'"""Idea\n\nand more."""\n\n# {LICENCE}\n'),
        (".sh", "#!/bin/sh\n# Idea.\nls\n", f"#!/bin/sh\n# Idea.\n# {LICENCE}\nls\n"),
    ],
)
def test_licence_line_follows_the_opening_comment(
    dev: SimpleNamespace, suffix: str, before: str, after: str
) -> None:
    assert dev.lines.stated(before, suffix) == after
    assert dev.lines.stated(after, suffix) == after and dev.lines.is_stated(after)


@pytest.mark.parametrize(
    ("suffix", "text"), [(".cc", "int x;\n"), (".py", "x = 1\n"), (".py", "(\n")]
)
def test_files_without_an_opening_comment_are_left_alone(
    dev: SimpleNamespace, suffix: str, text: str
) -> None:
    assert dev.lines.stated(text, suffix) == text and not dev.lines.is_stated(text)


def test_an_empty_file_needs_no_licence_line(dev: SimpleNamespace) -> None:
    assert dev.lines.is_stated("") and dev.lines.stated("", ".py") == ""


def _docstring_problems(dev: SimpleNamespace, text: str) -> list[str]:
    return list(dev.sources.indented_docstrings(Path("x.py"), ast.parse(text)))


def test_an_example_alone_after_the_first_line(dev: SimpleNamespace) -> None:
    found = _docstring_problems(dev, '"""Idea.\n\n    f(1)\n"""\n')
    assert found == ["x.py:1: an example alone; put a line before it"]
    assert _docstring_problems(dev, 'def f():\n    """Idea.\n\n        f(1)\n    """\n')
    for fine in (
        '"""Idea.\n\nExample:\n\n    f(1)\n"""\n',
        '"""Idea that goes on\nhere.\n\n    f(1)\n"""\n',
        'def f():\n    """Idea.\n\n    More.\n    """\n',
        '"""Idea."""\n',
    ):
        assert _docstring_problems(dev, fine) == []


def test_lines_are_measured_without_what_they_say_to_checkers(
    dev: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dev.sources, "ROOT", tmp_path)
    path = tmp_path / "x.py"
    head = f'"""Idea."""\n\n# {LICENCE}\n\n'
    path.write_text(head + "x = " + "1" * 90 + "  # type: ignore[assignment]\n")
    assert list(dev.sources.check(path)) == []
    path.write_text(head + "x = " + "1" * 97 + "\n")
    assert list(dev.sources.check(path)) == ["x.py:5: 101 columns, 100 allowed"]
    path.write_text(head.replace(LICENCE, "no licence"))
    assert list(dev.sources.check(path)) == [f"x.py: no line {LICENCE}; run ./dev format"]


def test_what_ruff_would_format(dev: SimpleNamespace) -> None:
    lines = ["Would reformat: a/b.py", "1 file would be reformatted, 2 files already formatted"]
    assert list(dev.checkers.unformatted(lines)) == ["a/b.py: not formatted; run ./dev format"]


def test_a_checker_that_cannot_run_is_an_error(dev: SimpleNamespace) -> None:
    program = [sys.executable, "-c", "import sys; print('what is wrong'); sys.exit(2)"]
    with pytest.raises(dev.ui.DevError, match="what is wrong"):
        dev.checkers.run_checker(program)
    assert dev.checkers.run_checker([sys.executable, "-c", "print('a\\nb')"]) == ["a", "b"]


def test_the_typed_package_is_the_sources_and_the_stubs(
    dev: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, typed, stubs = tmp_path / "treadle", tmp_path / "typed", tmp_path / "_operators.pyi"
    source.mkdir()
    (source / "__init__.py").write_text("")
    (source / "gone.py").write_text("")
    stubs.write_text("")
    monkeypatch.setattr(dev.checkers, "PACKAGE", source)
    monkeypatch.setattr(dev.checkers, "TYPED", typed)
    dev.checkers.lay_out_typed(stubs)
    assert {p.name for p in (typed / "treadle").iterdir()} == {
        "__init__.py", "gone.py", "_operators.pyi",
    }  # fmt: skip
    (source / "gone.py").unlink()
    dev.checkers.lay_out_typed(stubs)
    assert {p.name for p in (typed / "treadle").iterdir()} == {"__init__.py", "_operators.pyi"}


def test_problems_of_clang_tidy(dev: SimpleNamespace) -> None:
    text = (
        "/tree/core/a.cc:3:5: warning: use nullptr [modernize-use-nullptr]\n"
        "  int* p = 0;\n           ^\n"
        "core/b.h:1:2: note: expanded from macro\n"
    )
    assert dev.tidy.FOUND.findall(text) == [
        ("/tree/core/a.cc:3:5", "use nullptr [modernize-use-nullptr]")
    ]


def test_problems_count_as_failed_tests(
    dev: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> list[str]:
        raise dev.ui.DevError("no compiler")

    assert str(dev.tests.run_checks("lint", list)) == "1 passed, 0 failed"
    assert str(dev.tests.run_checks("lint", lambda: ["a:1: x", "b:2: y"])) == "0 passed, 2 failed"
    assert str(dev.tests.run_checks("lint", broken)) == "0 passed, 1 failed"
    assert "a:1: x\nb:2: y\n" in capsys.readouterr().out


def test_a_whole_run_checks_sources_and_pages() -> None:
    """Continuous integration runs ./dev test with nothing left out."""
    assert re.search(r"exec \./dev test", (ROOT / ".ci" / "run").read_text())
    tests = (TOOL / "tests.py").read_text()
    assert 'run_checks("./dev lint"' in tests and 'run_checks("./dev docs"' in tests

"""Tests that passed are not run again while nothing changes: what counts as a change."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tool_modules import importing


@pytest.fixture
def passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The part of ./dev, for a small tree of its own with a package."""
    with importing("dev") as load:
        yield in_a_small_tree(load("passed"), load("environment"), tmp_path, monkeypatch)


def in_a_small_tree(
    passed: ModuleType, environment: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ModuleType:
    for name, text in {
        "source.py": "1", "test.py": "2", "package/a.so": "3", ".venv/treadle.stamp": "4",
        ".gitignore": "/package/\n/build/\n/.venv/\n", "build/test/log": "5",
    }.items():  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.setattr(passed, "ROOT", tmp_path)
    monkeypatch.setattr(passed, "RECORD", tmp_path / "build" / "test" / "passed.json")
    monkeypatch.setattr(environment, "VENV", tmp_path / ".venv")
    return passed


def test_what_is_a_change(
    passed: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key(options: object = "") -> object:
        return passed.fingerprint(tmp_path / "package", options)

    first = key()
    (tmp_path / "build" / "test" / "log").write_text("what a run leaves")
    assert first and key() == first and key("--fast") != first
    for name in ("source.py", "test.py", "package/a.so", ".venv/treadle.stamp"):
        before = (tmp_path / name).read_text()
        (tmp_path / name).write_text(before + "0")
        assert key() != first, name
        (tmp_path / name).write_text(before)
        assert key() == first, name
    (tmp_path / "new.py").write_text("")
    assert key() != first
    (tmp_path / "new.py").unlink()
    (tmp_path / "source.py").rename(tmp_path / "other.py")
    assert key() != first
    (tmp_path / "other.py").rename(tmp_path / "source.py")
    monkeypatch.setenv("TREADLE_BACKENDS", "x.so")
    assert key() != first


def test_what_is_kept(passed: ModuleType, tmp_path: Path) -> None:
    assert passed.known("a") is None
    passed.keep("a", {"passed": 3, "failed": 0, "skipped": 1})
    assert passed.known("a") == {"passed": 3, "failed": 0, "skipped": 1}
    assert passed.known("b") is None and passed.known(None) is None
    passed.keep(None, {})
    assert passed.known("a")
    passed.RECORD.write_text("{")
    assert passed.known("a") is None


def test_a_tree_that_git_does_not_know_is_always_run(
    passed: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert passed.fingerprint(tmp_path / "package", "") is None

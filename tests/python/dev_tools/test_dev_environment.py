"""The set-up of a build: whether Bazel's sandboxes lie in memory; when environments are made."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tool_modules import importing


@pytest.fixture
def environment() -> Iterator[ModuleType]:
    with importing("dev") as load:
        yield load("environment")


def with_free(monkeypatch: pytest.MonkeyPatch, bytes_free: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=bytes_free))


def test_sandboxes_need_two_gibibytes(
    environment: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with_free(monkeypatch, 2 << 30)
    assert environment.has_room_in_memory(tmp_path)
    with_free(monkeypatch, (2 << 30) - 1)
    assert not environment.has_room_in_memory(tmp_path)


def test_sandboxes_need_a_folder_that_is_there(
    environment: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with_free(monkeypatch, 8 << 30)
    assert not environment.has_room_in_memory(tmp_path / "missing")


@pytest.fixture
def made(
    environment: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> list[list[str]]:
    """The commands that make environments under `tmp_path`; they take a tenth of a second each."""
    commands = []

    def run(command: list[str], what: str) -> None:
        commands.append(command)
        time.sleep(0.1)
        if "--clear" in command:
            (tmp_path / "environment" / "bin").mkdir(parents=True, exist_ok=True)
            (tmp_path / "environment" / "bin" / "python").touch()

    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(environment, "run_quietly", run)
    monkeypatch.setenv("TREADLE_CACHE", str(tmp_path / "cache"))
    return commands


def test_another_name_of_the_python_keeps_the_environment(
    environment: ModuleType, made: list[list[str]], tmp_path: Path
) -> None:
    name = tmp_path / "another-name"
    name.symlink_to(sys.executable)
    folder = tmp_path / "environment"
    assert environment.virtual_environment(folder, ["x"], b"1", "Packages", sys.executable)
    assert not environment.virtual_environment(folder, ["x"], b"1", "Packages", str(name))
    assert len(made) == 2
    assert environment.virtual_environment(folder, ["x"], b"2", "Packages", str(name))


def test_an_environment_is_made_by_one_run_at_a_time(
    environment: ModuleType, made: list[list[str]], tmp_path: Path
) -> None:
    def make() -> None:
        environment.virtual_environment(tmp_path / "environment", ["x"], b"1", "Packages")

    runs = [threading.Thread(target=make) for _ in range(3)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert len(made) == 2


def test_the_environment_of_another_checkout_stays(
    environment: ModuleType, made: list[list[str]], tmp_path: Path
) -> None:
    others, folder = tmp_path / "others", tmp_path / "environment"
    others.mkdir()
    (others / "treadle.stamp").write_text("that of the other checkout")
    folder.symlink_to(others)
    assert environment.virtual_environment(folder, ["x"], b"1", "Packages")
    assert not folder.is_symlink()
    assert (others / "treadle.stamp").read_text() == "that of the other checkout"

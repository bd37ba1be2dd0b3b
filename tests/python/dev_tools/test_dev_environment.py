"""The set-up of a build: whether Bazel's sandboxes lie in memory."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import shutil
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

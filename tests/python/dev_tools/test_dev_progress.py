"""./dev shows how much of a build is done, and the time that is left at the pace of a minute."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import pytest

from source_tree import ROOT


@pytest.fixture
def progress(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(ROOT / "tools" / "dev"), *sys.path])
    return importlib.import_module("progress")


def test_lines_of_another_kind_are_left_alone(progress: ModuleType) -> None:
    assert progress.Progress().read("x.cc:3:1: error: expected ';'") is None


def test_time_left_follows_from_the_last_minute(progress: ModuleType) -> None:
    now = 0.0
    bar = progress.Progress(clock=lambda: now)
    line = "[{:,} / 1,400] Compiling core/x.cc; 2s linux-sandbox ... (2 actions, 1 running)"
    assert bar.read(line.format(700)) == "700 of 1400 steps (50 %): Compiling core/x.cc"
    now = 30.0
    expected = "800 of 1400 steps (57 %), about 3 minutes left: Compiling core/x.cc"
    assert bar.read(line.format(800)) == expected
    # Steps that were quick, as those from a cache are, are forgotten after a minute.
    now = 85.0
    expected = "810 of 1400 steps (57 %), about 54 minutes left: Compiling core/x.cc"
    assert bar.read(line.format(810)) == expected


def test_colors_are_read_over_and_the_end_has_a_minute(progress: ModuleType) -> None:
    now = 0.0
    bar = progress.Progress(clock=lambda: now)
    assert bar.read("\x1b[32m[10 / 20]\x1b[0m checking cached actions\n") == (
        "10 of 20 steps (50 %): checking cached actions"
    )
    now = 20.0
    assert bar.read("\x1b[32m[19 / 20]\x1b[0m Linking x.so; 1s local\n") == (
        "19 of 20 steps (95 %), about a minute left: Linking x.so"
    )

"""Folders of the source tree that tests read."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from pathlib import Path

# Tests are at several depths; only this file counts folders.
ROOT = Path(__file__).resolve().parents[3]
TESTS = ROOT / "tests"
PYTHON = TESTS / "python"
SUPPORT = PYTHON / "support"
DATA = TESTS / "data"

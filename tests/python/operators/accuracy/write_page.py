"""Measures every operator and writes docs/accuracy.md."""

# SPDX-License-Identifier: Apache-2.0

import sys
from pathlib import Path

OPERATORS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(OPERATORS), str(OPERATORS.parent / "support")]

from accuracy.bounds import BOUNDS
from accuracy.page import PAGE, largest, render

PAGE.write_text(render(largest(BOUNDS)))

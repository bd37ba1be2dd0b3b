"""Measures every operator and writes docs/accuracy.md."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from accuracy.bounds import BOUNDS
from accuracy.page import PAGE, largest, render

PAGE.write_text(render(largest(BOUNDS)))

"""python -m fuzz.replay FILE: runs a script under the limits that workers have."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import runpy
import sys

import treadle  # noqa: F401  imported before the limits apply
from treadle_testing import limits

if __name__ == "__main__":
    limits.apply()
    runpy.run_path(sys.argv[1], run_name="__main__")

"""Writes expected.json: the figures of PyTorch 2.15.0 for the cases beside this file.

python tests/data/quantization/generate.py
"""

# SPDX-License-Identifier: Apache-2.0

import json
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from observer_cases import figures  # noqa: E402  beside this file

if __name__ == "__main__":
    path = pathlib.Path(__file__).parent / "expected.json"
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in figures(torch).items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")

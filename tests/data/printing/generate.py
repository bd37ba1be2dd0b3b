"""Writes expected.json: what PyTorch 2.9.1 shows for the cases beside this file.

python tests/data/printing/generate.py
"""

# SPDX-License-Identifier: Apache-2.0

import json
import pathlib
import sys
import warnings

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from printing_cases import CASES, text_of  # noqa: E402  beside this file

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    shown = {name: text_of(case, torch) for name, case in CASES.items()}
    path = pathlib.Path(__file__).parent / "expected.json"
    path.write_text(json.dumps(shown, indent=1, ensure_ascii=False) + "\n")

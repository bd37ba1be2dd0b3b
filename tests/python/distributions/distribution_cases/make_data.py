"""Writes results.json beside this file: what PyTorch says of each case.

Run where PyTorch is installed, as `python -m distribution_cases.make_data` in
tests/python/distributions; the file kept was made with PyTorch 2.9.1.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import warnings
from pathlib import Path

import torch
import torch.distributions  # noqa: F401  a submodule that record() takes from torch

from .cases import CASES
from .record import record

RESULTS = Path(__file__).with_name("results.json")


def main() -> None:
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    kept = {case.name: record(case, torch) for case in CASES}
    RESULTS.write_text(json.dumps(kept, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()

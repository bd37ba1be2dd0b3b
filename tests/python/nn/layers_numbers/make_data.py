"""Writes results.npz beside this file: PyTorch's numbers for each case.

Run where PyTorch is installed, as `python -m layers_numbers.make_data` in tests/python/nn; the file
kept was made with PyTorch 2.9.1 in float64. It holds, as float32, the results of all cases one
after another, and their names and shapes.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import torch

from .cases import CASES
from .training import train

RESULTS = Path(__file__).with_name("results.npz")


def main() -> None:
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    shapes: dict[str, dict[str, list[int]]] = {}
    values = []
    for case in CASES:
        results = train(case, torch, torch.float64)
        assert case.name not in shapes, case.name
        shapes[case.name] = {name: list(array.shape) for name, array in results.items()}
        values += [array.ravel() for array in results.values()]
    together = np.concatenate(values)
    assert np.isfinite(together).all()
    np.savez_compressed(
        RESULTS, values=together.astype(np.float32), shapes=np.array(json.dumps(shapes))
    )


if __name__ == "__main__":
    main()

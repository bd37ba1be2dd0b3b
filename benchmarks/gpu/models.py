"""Training steps of whole models, for cases.py: networks of benchmarks/_networks.py in batches that
a device takes, in float32 and under autocast.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Optional

from cases import Call, Case

# Behind the others: that folder has a module of the name of this one.
sys.path.append(str(Path(__file__).resolve().parents[1]))
from _networks import NETWORKS, training  # noqa: E402


def _training(name: str, batch: int, dtype: Optional[str]) -> Case:
    def size(quick: bool) -> int:
        return 2 if quick else batch

    def make(torch: Any, device: str, quick: bool) -> Call:
        torch.manual_seed(0)
        job = NETWORKS[name](torch, device, size(quick), quick)
        return training(torch, job, device, dtype)

    return Case(make, size, "samples", dtype)


_BATCHES = {
    "digits network": 64,
    "ResNet-50": 64,
    "AlexNet": 256,
    "VGG-19": 32,
    "MobileNetV2": 64,
    "NCF": 65_536,
    "translator": 64,
}

MODELS = {
    f"{name}, {dtype or 'float32'}": _training(name, batch, dtype)
    for name, batch in _BATCHES.items()
    for dtype in (None, "bfloat16")
}

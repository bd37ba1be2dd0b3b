"""Parameters that the fuzzers of operators have in common."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List

from treadle.utils.benchmark.utils.fuzzer import FuzzedParameter

LEAST, MOST = 4, 16384

# Bytes that a tensor may take.
MOST_BYTES = 2 * 1024**3


def dimensions() -> FuzzedParameter:
    """How many dimensions a tensor has."""
    return FuzzedParameter("dim", distribution={1: 0.3, 2: 0.4, 3: 0.3}, strict=True)


def sizes(*names: str) -> List[Any]:
    """Sizes from small to large, each order as often."""
    return [FuzzedParameter(n, LEAST, MOST, "loguniform") for n in names]


def steps(*names: str) -> List[Any]:
    """How far elements are apart: mostly not."""
    chosen = {1: 0.8, 2: 0.06, 4: 0.06, 8: 0.04, 16: 0.04}
    return [FuzzedParameter(n, distribution=chosen) for n in names]

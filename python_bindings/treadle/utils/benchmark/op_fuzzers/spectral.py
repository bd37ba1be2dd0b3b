"""Random arguments of Fourier transforms: x, whose sizes have small factors or any."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List

from treadle import _C
from treadle.utils.benchmark.op_fuzzers._sizes import MOST_BYTES, dimensions
from treadle.utils.benchmark.utils.fuzzer import FuzzedParameter, FuzzedTensor, Fuzzer


def power_range(upper_bound: int, base: int) -> List[int]:
    """The powers of a number up to a bound."""
    found = [1]
    while found[-1] * base <= upper_bound:
        found.append(found[-1] * base)
    return found


def _regular(bound: int) -> List[int]:
    return sorted(
        a * b * c
        for a in power_range(bound, 2)
        for b in power_range(bound, 3)
        for c in power_range(bound, 5)
        if 16 <= a * b * c <= bound
    )


class SpectralOpFuzzer(Fuzzer):
    """Up to three dimensions k0, k1, k2. probability_regular: how often a size has the factors 2, 3
    and 5 alone."""

    def __init__(
        self,
        *,
        seed: int,
        dtype: Any = _C.float64,
        cuda: bool = False,
        probability_regular: float = 1.0,
    ) -> None:
        regular = _regular(1024)
        others = [n for n in range(16, 1025) if n not in set(regular)]
        chosen = {n: probability_regular / len(regular) for n in regular}
        chosen.update({n: (1 - probability_regular) / len(others) for n in others})
        super().__init__(
            parameters=[
                dimensions(),
                [FuzzedParameter(f"k{i}", distribution=chosen) for i in range(3)],
                [FuzzedParameter(f"step_{i}", distribution={1: 0.9, 2: 0.1}) for i in range(3)],
            ],
            tensors=[
                FuzzedTensor(
                    "x",
                    size=("k0", "k1", "k2"),
                    steps=("step_0", "step_1", "step_2"),
                    probability_contiguous=0.75,
                    min_elements=16,
                    max_elements=4 * 1024**2,
                    max_allocation_bytes=MOST_BYTES,
                    dim_parameter="dim",
                    dtype=dtype,
                    cuda=cuda,
                )
            ],
            seed=seed,
        )


__all__ = ["SpectralOpFuzzer", "power_range"]

"""Random arguments of operators, of as many tensors as a class of fuzzers names."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle import _C
from treadle.utils.benchmark.op_fuzzers._sizes import MOST_BYTES, dimensions, sizes, steps
from treadle.utils.benchmark.utils.fuzzer import FuzzedParameter, FuzzedTensor, Fuzzer


class OpFuzzer(Fuzzer):
    """Up to three dimensions k0, k1, k2, of 128 to 32 million elements."""

    operands: tuple[str, ...] = ()

    def __init__(self, seed: Any, dtype: Any = _C.float32, cuda: bool = False) -> None:
        names = self.operands
        places = [f"{name}_step_{i}" for name in names for i in range(3)]
        super().__init__(
            parameters=[
                dimensions(),
                sizes("k0", "k1", "k2"),
                steps(*places),
                FuzzedParameter("random_value", 0, 2**31 - 1, "uniform"),
            ],
            tensors=[
                FuzzedTensor(
                    name,
                    size=("k0", "k1", "k2"),
                    steps=tuple(f"{name}_step_{i}" for i in range(3)),
                    probability_contiguous=0.75,
                    min_elements=128,
                    max_elements=32 * 1024**2,
                    max_allocation_bytes=MOST_BYTES,
                    dim_parameter="dim",
                    dtype=dtype,
                    cuda=cuda,
                )
                for name in names
            ],
            seed=seed,
        )

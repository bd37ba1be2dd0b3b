"""Random arguments of operators of sparse tensors, of as many as a class of fuzzers names."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle import _C
from treadle.utils.benchmark.op_fuzzers._sizes import dimensions, sizes
from treadle.utils.benchmark.utils.fuzzer import FuzzedParameter, Fuzzer
from treadle.utils.benchmark.utils.sparse_fuzzer import FuzzedSparseTensor


class OpSparseFuzzer(Fuzzer):
    """Up to three dimensions k0, k1, k2, of up to 4 million places."""

    operands: tuple[str, ...] = ()

    def __init__(self, seed: Any, dtype: Any = None, cuda: bool = False) -> None:
        super().__init__(
            parameters=[
                dimensions(),
                FuzzedParameter("sparse_dim", distribution={1: 0.4, 2: 0.4, 3: 0.2}),
                sizes("k0", "k1", "k2"),
                FuzzedParameter("density", distribution={0.1: 0.4, 0.05: 0.3, 0.01: 0.3}),
                FuzzedParameter("coalesced", distribution={True: 0.5, False: 0.5}),
                FuzzedParameter("random_value", 0, 2**31 - 1, "uniform"),
            ],
            tensors=[
                FuzzedSparseTensor(
                    name,
                    size=("k0", "k1", "k2"),
                    min_elements=4,
                    max_elements=4 * 1024**2,
                    dim_parameter="dim",
                    sparse_dim="sparse_dim",
                    density="density",
                    coalesced="coalesced",
                    dtype=dtype or _C.get_default_dtype(),
                    cuda=cuda,
                )
                for name in self.operands
            ],
            seed=seed,
        )

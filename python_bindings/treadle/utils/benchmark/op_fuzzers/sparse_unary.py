"""Random arguments of operators of sparse tensors: one tensor, x."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from treadle.utils.benchmark.op_fuzzers._sparse import OpSparseFuzzer


class UnaryOpSparseFuzzer(OpSparseFuzzer):
    """Up to three dimensions k0, k1, k2, of up to 4 million places."""

    operands = ("x",)


__all__ = ["UnaryOpSparseFuzzer"]

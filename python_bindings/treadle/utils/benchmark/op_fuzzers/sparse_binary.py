"""Random arguments of operators of sparse tensors: two tensors, x and y."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from treadle.utils.benchmark.op_fuzzers._sparse import OpSparseFuzzer


class BinaryOpSparseFuzzer(OpSparseFuzzer):
    """Up to three dimensions k0, k1, k2, of up to 4 million places."""

    operands = ("x", "y")


__all__ = ["BinaryOpSparseFuzzer"]

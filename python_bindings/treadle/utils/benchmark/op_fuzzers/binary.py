"""Random arguments of operators of two tensors, x and y."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from treadle.utils.benchmark.op_fuzzers._dense import OpFuzzer


class BinaryOpFuzzer(OpFuzzer):
    """Up to three dimensions k0, k1, k2, of 128 to 32 million elements."""

    operands = ("x", "y")


__all__ = ["BinaryOpFuzzer"]

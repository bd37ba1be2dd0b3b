"""An operator library outside against the tree: one entry, `self + alpha * other`, under both
roofs.

    ./dev bench outside_operator

Prints, for a call with 4 elements with and without a gradient to record, the median of the ratios
of interleaved measurements (outside / in the tree). Needs a C++ compiler on the PATH.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import statistics
import tempfile
import timeit
from pathlib import Path
from typing import Any, Callable

import treadle
from treadle.utils.cpp_extension import load

ENTRY = """\
- func: plus(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  doc: As add.
  forms: functional, inplace, out
  pointwise: self + alpha * other
  dtypes: {all: any}
"""
DERIVATIVE = """\
- name: plus(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  self: grad
  other: grad * alpha
"""


def seconds(f: Callable[..., Any], x: treadle.Tensor) -> float:
    return timeit.timeit("f(x, x)", globals={"f": f, "x": x}, number=2000)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        entry, derivative = Path(folder, "ops.yaml"), Path(folder, "derivatives.yaml")
        entry.write_text(ENTRY)
        derivative.write_text(DERIVATIVE)
        outside = load(
            "plus_ops", str(entry), derivatives=str(derivative), build_directory=f"{folder}/build"
        )
        for grad in (False, True):
            x = treadle.ones(4, requires_grad=grad)
            ratios = [seconds(outside.plus, x) / seconds(treadle.add, x) for _ in range(101)]
            print(f"plus, gradient {grad}: {statistics.median(ratios):.3f} of add's time")


if __name__ == "__main__":
    main()

"""The cost of a call through PyTorch's stable ABI: an operator of three tensors that returns the
first, from an extension for the ABI, and the same function in a module that calls Treadle directly.

    ./dev python benchmarks/binary_extension.py
"""

# SPDX-License-Identifier: Apache-2.0

import tempfile
import timeit

import treadle
from treadle.utils import cpp_extension

STABLE = """
#include <torch/csrc/stable/library.h>
using torch::stable::Tensor;
Tensor first(Tensor a, Tensor, Tensor) { return a; }
STABLE_TORCH_LIBRARY(binary_benchmark, m) {
  m.def("first(Tensor a, Tensor b, Tensor c) -> Tensor");
}
STABLE_TORCH_LIBRARY_IMPL(binary_benchmark, CPU, m) { m.impl("first", TORCH_BOX(&first)); }
"""
DIRECT = """
treadle::Tensor first(treadle::Tensor a, treadle::Tensor, treadle::Tensor) { return a; }
"""


def best(function, *args, rounds=15, calls=20_000):
    """The nanoseconds of a call: the fastest of several rounds."""
    timer = timeit.Timer(lambda: function(*args))
    return min(timer.repeat(rounds, calls)) / calls * 1e9


def main():
    with tempfile.TemporaryDirectory() as folder:
        cpp_extension.load_inline(
            "binary_benchmark", STABLE, is_python_module=False, no_implicit_headers=True,
            build_directory=folder + "/stable",
        )  # fmt: skip
        direct = cpp_extension.load_inline(
            "direct_benchmark", DIRECT, functions="first", build_directory=folder + "/direct"
        )
        library = treadle.library.Library("python_benchmark", "DEF")
        library.define("first(Tensor a, Tensor b, Tensor c) -> Tensor")
        library.impl("first", lambda a, b, c: a, "CPU")
        tensors = [treadle.zeros(1) for _ in range(3)]
        operator = treadle.ops.binary_benchmark.first.default
        in_python = treadle.ops.python_benchmark.first.default
        times = {
            "a function of a module, called directly": best(direct.first, *tensors),
            "an operator of an extension for the stable ABI": best(operator, *tensors),
            "an operator with a kernel in Python": best(in_python, *tensors),
        }
        for name, nanoseconds in times.items():
            print(f"{name:<50}{nanoseconds:8.0f} ns")


if __name__ == "__main__":
    main()

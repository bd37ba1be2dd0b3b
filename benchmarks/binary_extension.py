"""The cost of a call through PyTorch's stable ABI: an operator of three tensors that returns the
first, from an extension for the ABI, and the same function in a module that calls Treadle directly.
A function of tvm-ffi that takes three tensors, and does nothing, is beside them.

    ./dev bench binary_extension
    ./dev bench binary_extension --pytorch /path/to/python     # PyTorch beside it, with this Python

PyTorch loads the same file. The two libraries are in processes of their own and take turns, so that
what else the machine does meets both alike. A figure is the fastest of the turns.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
import timeit
from pathlib import Path
from typing import Any, Callable, Dict, List

STABLE = """
#define TORCH_TARGET_VERSION (((0ULL + 2) << 56) | ((0ULL + 11) << 48))
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
extern "C" int __tvm_ffi_nothing(void*, const void*, int32_t, void*) { return 0; }
"""
TURNS, CALLS = 15, 20_000
DIRECT_ROW = "a function of a module, called directly"
TVM_ROW = "a function of tvm-ffi"
STABLE_ROW = "an operator of an extension for the stable ABI"
PYTHON_ROW = "an operator with a kernel in Python"
_kept: List[Any] = []  # libraries live as long as their operators are called


def functions(torch: Any, stable: str, direct: str) -> Dict[str, Callable[..., Any]]:
    """The rows of a library; `direct` is the folder of the module in C++, or empty."""
    rows = {}
    if direct:
        sys.path.insert(0, direct)
        module = importlib.import_module("direct_benchmark")
        rows[DIRECT_ROW] = module.first
        rows[TVM_ROW] = torch.utils.tvm_ffi.load_kernel(module.__file__, "nothing")
    torch.ops.load_library(stable)
    rows[STABLE_ROW] = torch.ops.binary_benchmark.first.default
    library = torch.library.Library("python_benchmark", "DEF")
    library.define("first(Tensor a, Tensor b, Tensor c) -> Tensor")
    library.impl("first", lambda a, b, c: a, "CPU")
    rows[PYTHON_ROW] = torch.ops.python_benchmark.first.default
    _kept.append(library)
    return rows


def serve(name: str, stable: str, direct: str) -> None:
    """Prints the nanoseconds of a call of each row, whenever a line is read."""
    torch = importlib.import_module(name)
    tensors = [torch.zeros(1) for _ in range(3)]
    timers = {
        row: timeit.Timer(lambda function=function: function(*tensors))  # type: ignore[misc]
        for row, function in functions(torch, stable, direct).items()
    }
    for _ in sys.stdin:
        times = {row: timer.timeit(CALLS) / CALLS * 1e9 for row, timer in timers.items()}
        print(json.dumps(times), flush=True)


class Library:
    """A process with a library."""

    def __init__(self, python: str, name: str, stable: str, direct: str) -> None:
        self.best: Dict[str, float] = {}
        self.process = subprocess.Popen(
            [python, __file__, "--serve", name, stable, direct],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def turn(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        print("go", file=self.process.stdin, flush=True)
        for row, time in json.loads(self.process.stdout.readline()).items():
            self.best[row] = min(time, self.best.get(row, time))

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def main(arguments: List[str]) -> None:
    parser = argparse.ArgumentParser(prog="./dev bench binary_extension")
    parser.add_argument("--pytorch", help="a Python that has PyTorch")
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        serve(*options.serve)
        return
    from treadle.utils import cpp_extension

    with tempfile.TemporaryDirectory() as folder:
        stable, direct = folder + "/stable", folder + "/direct"
        cpp_extension.load_inline(
            "binary_benchmark", STABLE, is_python_module=False, no_implicit_headers=True,
            build_directory=stable,
        )  # fmt: skip
        cpp_extension.load_inline(
            "direct_benchmark", DIRECT, functions="first", build_directory=direct
        )
        (built,) = Path(stable).glob("*.so")
        libraries = {"Treadle": Library(sys.executable, "treadle", str(built), direct)}
        if options.pytorch:
            libraries["PyTorch"] = Library(options.pytorch, "torch", str(built), "")
        try:
            for _ in range(TURNS):
                for library in libraries.values():
                    library.turn()
        finally:
            for library in libraries.values():
                library.close()
    print(" " * 50 + "".join(f"{name:>12}" for name in libraries))
    for row in libraries["Treadle"].best:
        times = [library.best.get(row) for library in libraries.values()]
        print(f"{row:<50}" + "".join(f"{t:9.0f} ns" if t else " " * 12 for t in times))


if __name__ == "__main__":
    main(sys.argv[1:])

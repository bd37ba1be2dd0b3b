"""Operators and kernels from outside against those of the tree.

    ./dev bench outside_operator

An operator library outside has the entry `self + alpha * other` as the tree has it. A backend
outside has kernels that do nothing: C++ calls them as it calls the CPU's, with one element and an
output that is there. Each row is the median of the ratios of interleaved measurements (outside / in
the tree). The last rows are whole calls from Python: a call on a device may wait, so that it lets
other threads of Python run, and without `out=` the backend allocates the result. Needs C and C++
compilers on the PATH.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from functools import partial
from pathlib import Path
from typing import Callable

import treadle
from treadle import Tensor
from treadle.utils.cpp_extension import include_paths, load, load_inline

REPEATS, CALLS = 101, 2000
# The most that a call of an operator or a kernel outside may take of the time of one in the tree.
MOST = 1.1

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

BACKEND = """\
#include <stdlib.h>
#include <string.h>
#include <treadle/plugin.h>

static treadle_status allocate(void* context, int32_t index, size_t nbytes, void** storage) {
  (void)context, (void)index;
  *storage = malloc(nbytes);
  return *storage ? TREADLE_OK : TREADLE_OUT_OF_MEMORY;
}
static void deallocate(void* context, int32_t index, void* storage, size_t nbytes) {
  (void)context, (void)index, (void)nbytes;
  free(storage);
}
static treadle_status copy(void* context, treadle_place to, treadle_place from, size_t nbytes,
                           int32_t non_blocking) {
  (void)context, (void)non_blocking;
  memmove((char*)to.storage + to.offset, (char*)from.storage + from.offset, nbytes);
  return TREADLE_OK;
}
static treadle_status nothing(void* context, const treadle_value* arguments, size_t count,
                              treadle_value* results, size_t result_count) {
  (void)context, (void)arguments, (void)count, (void)results, (void)result_count;
  return TREADLE_OK;
}

static treadle_status start(const treadle_api* api) {
  static const char* const schemas[] = {
      "tril(Tensor self, int diagonal=0) -> Tensor",
      "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
      "mm(Tensor self, Tensor mat2) -> Tensor",
      "exp(Tensor self) -> Tensor",
      "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
  };
  treadle_backend backend;
  memset(&backend, 0, sizeof backend);
  backend.size = sizeof backend;
  backend.flags = TREADLE_HOST_VISIBLE | TREADLE_CACHE_MEMORY;
  backend.name = "idle";
  backend.allocate = &allocate;
  backend.deallocate = &deallocate;
  backend.copy = &copy;
  treadle_device_type type;
  treadle_status status = api->register_backend(&backend, &type);
  for (size_t i = 0; i < sizeof schemas / sizeof *schemas && status == TREADLE_OK; ++i)
    status = api->register_kernel(schemas[i], type, NULL, 0, &nothing, NULL);
  return status;
}
static const treadle_plugin plugin = {sizeof(treadle_plugin), TREADLE_PLUGIN_VERSION, "idle", "1.0",
                                      &start};
TREADLE_PLUGIN_EXPORT const treadle_plugin* treadle_plugin_entry(void) { return &plugin; }
"""

# Calls from C++ of a square matrix and a tensor of the result's shape.
LOOPS = {
    "tril_out": "tril_out(x, 0, y)",
    "cumsum_out": "cumsum_out(x, 0, std::nullopt, y)",
    "mm_out": "mm_out(x, x, y)",
    "exp_out": "exp_out(x, y)",
    "add_out": "add_out(x, x, 1, y)",
}
LOOP = """\
void {name}(const treadle::Tensor& x, const treadle::Tensor& y, int64_t calls) {{
  for (int64_t i = 0; i < calls; ++i) treadle::aten::{call};
}}
"""

# And from Python.
CASES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "tril(x, out=y)": lambda x, y: treadle.tril(x, out=y),
    "cumsum(x, 0, out=y)": lambda x, y: treadle.cumsum(x, 0, out=y),
    "mm(x, x, out=y)": lambda x, y: treadle.mm(x, x, out=y),
    "exp(x, out=y)": lambda x, y: treadle.exp(x, out=y),
    "add(x, x, out=y)": lambda x, y: treadle.add(x, x, out=y),
    "tril(x)": lambda x, _: treadle.tril(x),
    "cumsum(x, 0)": lambda x, _: treadle.cumsum(x, 0),
    "mm(x, x)": lambda x, _: treadle.mm(x, x),
    "exp(x)": lambda x, _: treadle.exp(x),
    "add(x, x)": lambda x, _: treadle.add(x, x),
}


def ratio(outside: Callable[[], object], inside: Callable[[], object], calls: int = CALLS) -> float:
    """The median of the ratios of measurements that follow each other."""

    def seconds(f: Callable[[], object]) -> float:
        return timeit.timeit(f, number=calls, timer=time.process_time)

    return statistics.median(seconds(outside) / seconds(inside) for _ in range(REPEATS))


def operator_ratios(folder: Path) -> dict[str, float]:
    """The ratios of the library's `plus` to `add`, without and with a gradient to record."""
    entry, derivative = folder / "ops.yaml", folder / "derivatives.yaml"
    entry.write_text(ENTRY)
    derivative.write_text(DERIVATIVE)
    outside = load(
        "plus_ops", str(entry), derivatives=str(derivative), build_directory=str(folder / "build")
    )
    found = {}
    for grad in (False, True):
        x = treadle.ones(4, requires_grad=grad)
        name = "plus(x, x)" + (", recorded" if grad else "")
        found[name] = ratio(partial(outside.plus, x, x), partial(treadle.add, x, x))
    return found


def load_idle(folder: Path) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Loads the backend. A matrix and an output, on its device and on the CPU."""
    source, library = folder / "idle.c", folder / "idle.so"
    source.write_text(BACKEND)
    options = ["-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-I", include_paths()[0]]
    subprocess.run(["cc", *options, str(source), "-o", str(library)], check=True)
    treadle.load_backend(str(library))

    def pair(device: str) -> tuple[Tensor, Tensor]:
        return treadle.zeros(1, 1, device=device), treadle.zeros(1, 1, device=device)

    return pair("idle"), pair("cpu")


def main() -> int:
    treadle.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Compilation comes first, while the process has no backend.
        operators = operator_ratios(folder)
        source = "".join(LOOP.format(name=name, call=call) for name, call in LOOPS.items())
        loops = load_inline(
            "loops", source, functions=list(LOOPS), build_directory=str(folder / "loops")
        )
        there, here = load_idle(folder)
    kernels = {
        name: ratio(
            partial(getattr(loops, name), *there, CALLS),
            partial(getattr(loops, name), *here, CALLS),
            calls=1,
        )
        for name in LOOPS
    }
    calls = {name: ratio(partial(f, *there), partial(f, *here)) for name, f in CASES.items()}
    print("an operator library outside, in times of the tree's operator")
    show(operators)
    print("a backend's kernel that does nothing, called from C++, in times of the CPU's")
    show(kernels)
    print("the same with all that a call from Python takes on a device")
    show(calls)
    slow = [row for row, value in (operators | kernels).items() if value > MOST]
    if slow:
        print(f"more than {MOST} times: {', '.join(slow)}")
    return int(bool(slow))


def show(ratios: dict[str, float]) -> None:
    for row, value in ratios.items():
        print(f"  {row:24} {value:6.3f}")


if __name__ == "__main__":
    sys.exit(main())

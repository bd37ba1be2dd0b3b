"""Linear layers with weights of 8 and 4 bits beside those of bfloat16 and float32, in one run.

    ./dev bench weight_only                    # one thread, one row of input
    ./dev bench weight_only --threads 2 --rows 1 8 512 --rounds 9

Times are medians of rounds in turn, in milliseconds; in brackets is how many times as fast that is
as Treadle's linear layer in bfloat16. PyTorch's own operators follow where it can be imported.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import importlib
import importlib.util
from typing import Any, Callable, Dict

from _rounds import medians

import treadle

SHAPES = ((4096, 4096), (4096, 11008), (11008, 4096))  # out_features, in_features
Calls = Dict[str, Callable[[], Any]]


def calls(library: Any, name: str, m: int, n: int, k: int) -> Calls:
    """The products of m rows with n x k weights, by their names."""
    x = library.randn(m, k)
    lower = x.to(library.bfloat16)
    weight = library.randn(n, k)
    made: Calls = {}

    def add(kind: str, function: Callable[..., Any], *arguments: Any) -> None:
        made[f"{name} {kind}"] = lambda: function(*arguments)

    linear = library.nn.functional.linear
    add("float32", linear, x, weight)
    add("bfloat16", linear, lower, weight.to(library.bfloat16))
    bytes = library.randint(-128, 128, (n, k), dtype=library.int8)
    scales = library.rand(n).to(library.bfloat16)
    add("int8", library._weight_int8pack_mm, lower, bytes, scales)
    numbers = library.randint(0, 16, (n, k), dtype=library.int32)
    packed = library._convert_weight_to_int4pack_for_cpu(numbers, 1)
    for group in (32, 128):
        factors = library.rand(k // group, n, 2).to(library.bfloat16)
        product = library._weight_int4pack_mm_for_cpu
        add(f"int4 by {group}", product, lower, packed, group, factors)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rows", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    libraries = {"treadle": treadle}
    if importlib.util.find_spec("torch") is not None:
        libraries["torch"] = importlib.import_module("torch")
    for library in libraries.values():
        library.set_num_threads(options.threads)
    for n, k in SHAPES:
        for m in options.rows:
            made: Calls = {}
            for name, library in libraries.items():
                made.update(calls(library, name, m, n, k))
            times = medians(made, options.rounds)
            print(f"{m} x {k} by {k} x {n}")
            for name, found in times.items():
                print(
                    f"    {name:18} {found * 1e3:9.3f}  ({times['treadle bfloat16'] / found:.2f})"
                )


if __name__ == "__main__":
    main()

"""Speed on much data, as ratios of times in one run: below 1, Treadle is faster.

    ./dev bench throughput                                 # both sections, 15 minutes
    ./dev bench throughput --section operators --worst 40  # the 40 rows with the worst ratios
    ./dev bench throughput --only cum                      # what begins so
    ./dev bench throughput --section operators --only sum --samples 4 --threads 2

The section "cases" compares cases of this file with NumPy, and with PyTorch where it is installed:
float32, at one and at two threads. Pointwise operators on 10M elements are also given as a share of
the machine's copy bandwidth: the bytes that must be read and written, per second, over those of a
plain copy. Medians of interleaved repetitions.

The section "operators" compares every operator that has a kernel of its own on the CPU with
PyTorch's function of the same name, the worst ratio first. The operators are those of the model,
their arguments the samples of the tests, made larger to about 1e3, 1e5 and 1e6 elements; the column
"larger in" says how (WAYS in _samples.py): along every side, in rows, ... A call that takes half a
second is not made larger yet. An operator is measured in float32 where it has that. A kernel that
no sample calls directly is measured through an operator that reaches it, or through that operator
with its gradients. Operators that PyTorch lacks, or that one of the two refuses to call, are listed
without a ratio; operators whose samples cannot be made larger, and kernels that no sample reaches,
are named. The column "of peak" is the share of the machine's measured peak (./dev bench roofline)
that Treadle's call reaches: of the memory's bandwidth or of the arithmetic, whichever is more; data
in a cache can exceed 1. Each library has a process of its own, and they take turns; seconds are the
processor's at one thread, the clock's at more, and the table has the medians of the rounds.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any, Callable, Optional, Sequence

import _operators
import numpy as np
from _rounds import medians

import treadle

try:
    import torch
except ImportError:
    torch = None

N, ROWS, COLUMNS = 10_000_000, 4096, 1024
SIZES = {"1k": 1000, "100k": 100_000}
REPEATS, LEAST_SECONDS = 9, 0.02
SECTIONS = ("cases", "operators")
Run = Callable[[], object]


@dataclass
class Case:
    """One operator: `streams` is how many times N float32 values are read or written, 0 if
    computing is the bound; `call(library, data)` makes the function to time; `numpy` is its
    counterpart."""

    name: str
    call: Callable[[Any, dict[str, Any]], Run]
    numpy: Optional[Callable[[dict[str, Any]], Run]]
    streams: int = 0


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    e /= e.sum(axis, keepdims=True)
    return e


def layer_norm(x: np.ndarray) -> np.ndarray:
    mean = x.mean(1, keepdims=True)
    centred = x - mean
    return centred / np.sqrt((centred * centred).mean(1, keepdims=True) + 1e-5)


def sorted_with_indices(x: np.ndarray, axis: int = -1) -> tuple[np.ndarray, np.ndarray]:
    indices = np.argsort(x, axis)
    return np.take_along_axis(x, indices, axis), indices


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def cases() -> list[Case]:
    def simple(name: str, call: Any, numpy: Any, streams: int = 0) -> Case:
        return Case(name, lambda m, d: lambda: call(m, d), lambda d: lambda: numpy(d), streams)

    def transcendental(size: str) -> list[Case]:
        x, out = "s" + size, "out" + size
        return [
            simple(
                f"exp, {size}",
                lambda m, d: m.exp(d[x], out=d[out]),
                lambda d: np.exp(d[x], out=d[out]),
            ),
            simple(
                f"tanh, {size}",
                lambda m, d: m.tanh(d[x], out=d[out]),
                lambda d: np.tanh(d[x], out=d[out]),
            ),
            simple(
                f"gelu (tanh), {size}",
                lambda m, d: m.nn.functional.gelu(d[x], approximate="tanh"),
                lambda d: gelu(d[x]),
            ),
        ]

    return [
        simple(
            "copy", lambda m, d: d["out"].copy_(d["a"]), lambda d: np.copyto(d["out"], d["a"]), 2
        ),
        simple(
            "add",
            lambda m, d: m.add(d["a"], d["b"], out=d["out"]),
            lambda d: np.add(d["a"], d["b"], out=d["out"]),
            3,
        ),
        simple(
            "add, scalar",
            lambda m, d: m.add(d["a"], 2.0, out=d["out"]),
            lambda d: np.add(d["a"], np.float32(2), out=d["out"]),
            2,
        ),
        simple(
            "add, in place",
            lambda m, d: d["out"].add_(d["a"]),
            lambda d: np.add(d["out"], d["a"], out=d["out"]),
            3,
        ),
        simple(
            "mul",
            lambda m, d: m.mul(d["a"], d["b"], out=d["out"]),
            lambda d: np.multiply(d["a"], d["b"], out=d["out"]),
            3,
        ),
        simple(
            "neg",
            lambda m, d: m.neg(d["a"], out=d["out"]),
            lambda d: np.negative(d["a"], out=d["out"]),
            2,
        ),
        simple("relu", lambda m, d: m.relu(d["a"]), lambda d: np.maximum(d["a"], 0)),
        simple(
            "maximum",
            lambda m, d: m.maximum(d["a"], d["b"], out=d["out"]),
            lambda d: np.maximum(d["a"], d["b"], out=d["out"]),
            3,
        ),
        simple(
            "sqrt",
            lambda m, d: m.sqrt(d["p"], out=d["out"]),
            lambda d: np.sqrt(d["p"], out=d["out"]),
            2,
        ),
        simple(
            "where",
            lambda m, d: m.where(d["mask"], d["a"], d["b"]),
            lambda d: np.where(d["mask"], d["a"], d["b"]),
        ),
        simple("a > b", lambda m, d: d["a"] > d["b"], lambda d: d["a"] > d["b"]),
        simple(
            "exp", lambda m, d: m.exp(d["a"], out=d["out"]), lambda d: np.exp(d["a"], out=d["out"])
        ),
        simple(
            "log", lambda m, d: m.log(d["p"], out=d["out"]), lambda d: np.log(d["p"], out=d["out"])
        ),
        simple(
            "tanh",
            lambda m, d: m.tanh(d["a"], out=d["out"]),
            lambda d: np.tanh(d["a"], out=d["out"]),
        ),
        simple(
            "sin", lambda m, d: m.sin(d["a"], out=d["out"]), lambda d: np.sin(d["a"], out=d["out"])
        ),
        simple(
            "pow",
            lambda m, d: m.pow(d["p"], d["b"], out=d["out"]),
            lambda d: np.power(d["p"], d["b"], out=d["out"]),
        ),
        simple(
            "gelu (tanh)",
            lambda m, d: m.nn.functional.gelu(d["a"], approximate="tanh"),
            lambda d: gelu(d["a"]),
        ),
        *(case for size in SIZES for case in transcendental(size)),
        simple("sigmoid", lambda m, d: m.sigmoid(d["a"]), lambda d: 1 / (1 + np.exp(-d["a"]))),
        simple("sum", lambda m, d: d["a"].sum(), lambda d: d["a"].sum()),
        simple("mean", lambda m, d: d["a"].mean(), lambda d: d["a"].mean()),
        simple("max", lambda m, d: d["a"].max(), lambda d: d["a"].max()),
        simple("argmax", lambda m, d: d["a"].argmax(), lambda d: d["a"].argmax()),
        simple("sum, rows", lambda m, d: d["x"].sum(1), lambda d: d["x"].sum(1)),
        simple("sum, columns", lambda m, d: d["x"].sum(0), lambda d: d["x"].sum(0)),
        simple("sum, middle", lambda m, d: d["x3"].sum(1), lambda d: d["x3"].sum(1)),
        simple("max, columns", lambda m, d: m.amax(d["x"], 0), lambda d: d["x"].max(0)),
        simple("argmax, rows", lambda m, d: d["x"].argmax(1), lambda d: d["x"].argmax(1)),
        simple("argmax, columns", lambda m, d: d["x"].argmax(0), lambda d: d["x"].argmax(0)),
        simple("var, rows", lambda m, d: d["x"].var(1), lambda d: d["x"].var(1, ddof=1)),
        simple("var, columns", lambda m, d: d["x"].var(0), lambda d: d["x"].var(0, ddof=1)),
        simple("softmax, rows", lambda m, d: m.softmax(d["x"], 1), lambda d: softmax(d["x"], 1)),
        simple("softmax, columns", lambda m, d: m.softmax(d["x"], 0), lambda d: softmax(d["x"], 0)),
        simple(
            "layer_norm, rows",
            lambda m, d: m.nn.functional.layer_norm(d["x"], (COLUMNS,)),
            lambda d: layer_norm(d["x"]),
        ),
        simple(
            "layer_norm, columns",
            lambda m, d: m.nn.functional.layer_norm(d["x"].T, (ROWS,)),
            lambda d: layer_norm(d["x"].T),
        ),
        simple(
            "cumsum",
            lambda m, d: m.cumsum(d["a"], 0, out=d["out"]),
            lambda d: np.cumsum(d["a"], out=d["out"]),
        ),
        simple("cumsum, rows", lambda m, d: d["x"].cumsum(1), lambda d: d["x"].cumsum(1)),
        simple("cumsum, columns", lambda m, d: d["x"].cumsum(0), lambda d: d["x"].cumsum(0)),
        simple("sort values, 1M", lambda m, d: m.msort(d["s"]), lambda d: np.sort(d["s"])),
        simple("sort values, 1k", lambda m, d: m.msort(d["s1k"]), lambda d: np.sort(d["s1k"])),
        simple("sort values, rows", lambda m, d: m.msort(d["x"].T), lambda d: np.sort(d["x"], 1)),
        simple(
            "sort values, short rows",
            lambda m, d: m.msort(d["short"].T),
            lambda d: np.sort(d["short"], 1),
        ),
        simple("sort values, columns", lambda m, d: m.msort(d["x"]), lambda d: np.sort(d["x"], 0)),
        simple(
            "sort with indices, 1M",
            lambda m, d: d["s"].sort(),
            lambda d: sorted_with_indices(d["s"]),
        ),
        simple(
            "sort with indices, rows",
            lambda m, d: d["x"].sort(1),
            lambda d: sorted_with_indices(d["x"]),
        ),
        simple(
            "sort with indices, columns",
            lambda m, d: d["x"].sort(0),
            lambda d: sorted_with_indices(d["x"], 0),
        ),
        simple("argsort, rows", lambda m, d: d["x"].argsort(1), lambda d: np.argsort(d["x"], 1)),
        simple("argsort, 1M", lambda m, d: d["s"].argsort(), lambda d: np.argsort(d["s"])),
        simple(
            "topk, rows",
            lambda m, d: d["x"].topk(8, 1),
            lambda d: np.partition(d["x"], COLUMNS - 8, 1)[:, -8:],
        ),
        simple(
            "transposed copy",
            lambda m, d: d["x"].T.contiguous() if m is treadle else d["x"].t().contiguous(),
            lambda d: np.ascontiguousarray(d["x"].T),
        ),
        simple(
            "index: rows of a list", lambda m, d: d["x"][d["rows"]], lambda d: d["x"][d["rows"]]
        ),
        simple(
            "index: elements of a list", lambda m, d: d["a"][d["many"]], lambda d: d["a"][d["many"]]
        ),
        simple("index: 1k of a list", lambda m, d: d["a"][d["few"]], lambda d: d["a"][d["few"]]),
        simple(
            "index: columns of a list",
            lambda m, d: d["x"][:, d["columns"]],
            lambda d: d["x"][:, d["columns"]],
        ),
        simple(
            "index: pairs of two lists",
            lambda m, d: d["x"][d["rows"], d["columns of rows"]],
            lambda d: d["x"][d["rows"], d["columns of rows"]],
        ),
        simple("index: mask", lambda m, d: d["a"][d["mask"]], lambda d: d["a"][d["mask"]]),
        simple(
            "index: mask of rows", lambda m, d: d["x"][d["which"]], lambda d: d["x"][d["which"]]
        ),
        simple(
            "index: slice",
            lambda m, d: d["x"][::2, 1:-1].clone(),
            lambda d: d["x"][::2, 1:-1].copy(),
        ),
        simple(
            "index: slice with steps",
            lambda m, d: d["x"][:, ::2].contiguous(),
            lambda d: np.ascontiguousarray(d["x"][:, ::2]),
        ),
        simple("take", lambda m, d: m.take(d["a"], d["many"]), lambda d: d["a"].take(d["many"])),
        simple(
            "index: write elements",
            lambda m, d: d["out"].__setitem__(d["many"], 1.0),
            lambda d: d["out"].__setitem__(d["many"], 1.0),
        ),
        simple(
            "index: write many elements",
            lambda m, d: d["out"].__setitem__(d["many"], d["s"]),
            lambda d: d["out"].__setitem__(d["many"], d["s"]),
        ),
        simple(
            "index: write 1k elements",
            lambda m, d: d["out"].__setitem__(d["few"], d["s1k"]),
            lambda d: d["out"].__setitem__(d["few"], d["s1k"]),
        ),
        simple(
            "index: write rows",
            lambda m, d: d["xout"].__setitem__(d["rows"], d["x"]),
            lambda d: d["xout"].__setitem__(d["rows"], d["x"]),
        ),
        simple(
            "index: write a slice",
            lambda m, d: d["xout"].__setitem__((slice(None), slice(0, None, 2)), d["half"]),
            lambda d: d["xout"].__setitem__((slice(None), slice(0, None, 2)), d["half"]),
        ),
        simple(
            "index: write mask",
            lambda m, d: d["out"].__setitem__(d["mask"], 1.0),
            lambda d: d["out"].__setitem__(d["mask"], 1.0),
        ),
        simple(
            "gather, rows",
            lambda m, d: m.gather(d["x"], 1, d["xi"]),
            lambda d: np.take_along_axis(d["x"], d["xi"], 1),
        ),
        simple("nonzero", lambda m, d: d["mask"].nonzero(), lambda d: np.argwhere(d["mask"])),
        simple(
            "cat",
            lambda m, d: m.cat([d["x"], d["x"]], 0),
            lambda d: np.concatenate([d["x"], d["x"]], 0),
        ),
        simple("matmul, 1024", lambda m, d: d["m"] @ d["m"], lambda d: d["m"] @ d["m"]),
    ]


def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    data = {
        "a": rng.standard_normal(N, np.float32),
        "b": rng.standard_normal(N, np.float32),
        "x": rng.standard_normal((ROWS, COLUMNS), np.float32),
        "s": rng.standard_normal(1_000_000, np.float32),
        "m": rng.standard_normal((1024, 1024), np.float32),
        "rows": rng.integers(0, ROWS, ROWS),
        "columns": rng.integers(0, COLUMNS, COLUMNS),
        "columns of rows": rng.integers(0, COLUMNS, ROWS),
        "many": rng.integers(0, N, 1_000_000),
        "few": rng.integers(0, N, 1000),
        "which": rng.random(ROWS) < 0.5,
        "xi": rng.integers(0, COLUMNS, (ROWS, COLUMNS)),
        "mask": rng.random(N) < 0.3,
    }
    data["p"] = np.abs(data["a"]) + np.float32(0.01)
    data["out"] = np.zeros(N, np.float32)
    data["copied"], data["copied to"] = data["a"].copy(), data["out"].copy()
    data["xout"] = np.zeros((ROWS, COLUMNS), np.float32)
    data["half"] = data["x"][:, ::2].copy()
    data["x3"] = data["x"].reshape(64, 64, COLUMNS)
    data["short"] = data["x"].reshape(-1, 64)
    for size, count in SIZES.items():
        data["s" + size] = data["s"][:count].copy()
        data["out" + size] = np.zeros(count, np.float32)
    return data


def hand_written(only: str, threads_of: Sequence[int]) -> None:
    """The cases of this file, as far as the names begin so."""
    if not any(case.name.startswith(only) for case in cases()):
        return
    data = arrays()
    libraries: dict[str, Any] = {"treadle": treadle}
    if torch:
        libraries["pytorch"] = torch
    tensors = {
        name: {k: m.from_numpy(v.copy()) for k, v in data.items()} for name, m in libraries.items()
    }
    for threads in threads_of:
        for m in libraries.values():
            m.set_num_threads(threads)
        print(f"\nfloat32, {threads} thread{'s' if threads > 1 else ''}; NumPy has one")
        print(f"{'':28s}{'time':>10s}{'/ NumPy':>9s}{'/ PyTorch':>11s}{'of copy bandwidth':>19s}")
        for case in cases():
            if not case.name.startswith(only):
                continue
            runs = {name: case.call(m, tensors[name]) for name, m in libraries.items()}
            runs["numpy"] = case.numpy(data)
            # A copy beside each, since the bandwidth of a shared machine drifts; of memory that
            # no candidate finds in the caches afterwards.
            if case.streams:
                runs["copy"] = lambda: np.copyto(data["copied to"], data["copied"])
            t = medians(runs, REPEATS, least=LEAST_SECONDS)
            ours = t["treadle"]
            line = f"{case.name:28s}{ours * 1e3:7.2f} ms{ours / t['numpy']:9.2f}"
            line += f"{ours / t['pytorch']:11.2f}" if torch else f"{'':11s}"
            if case.streams:
                line += f"{case.streams * t['copy'] / 2 / ours:19.2f}"
            print(line, flush=True)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="./dev bench throughput")
    parser.add_argument("--only", default="", metavar="PREFIX", help="names that begin so")
    parser.add_argument("--section", choices=SECTIONS, help="one of them (default: both)")
    parser.add_argument(
        "--threads", type=int, help="one number (default: cases 1 and 2, operators 1)"
    )
    group = parser.add_argument_group("operators")
    group.add_argument("--worst", type=int, default=0, metavar="N", help="so many rows alone")
    group.add_argument("--samples", type=int, default=1, help="of each, that differ in arguments")
    group.add_argument("--sizes", type=int, nargs="+", default=_operators.SIZES, help="elements")
    group.add_argument("--rounds", type=int, default=5, help="turns of each library")
    options = parser.parse_args(arguments)
    given = [options.threads] if options.threads else []
    if options.section != "operators":
        hand_written(options.only, given or (1, 2))
    if options.section != "cases":
        _operators.section(
            options.only,
            options.worst,
            given or (1,),
            options.samples,
            options.sizes,
            options.rounds,
        )


if __name__ == "__main__":
    main(sys.argv[1:])

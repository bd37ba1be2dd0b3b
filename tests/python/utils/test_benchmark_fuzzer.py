"""Random arguments for measurements, and counts of instructions."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle
from treadle.utils.benchmark import (
    CallgrindStats,
    CopyIfCallgrind,
    FunctionCount,
    FunctionCounts,
    FuzzedParameter,
    FuzzedSparseTensor,
    FuzzedTensor,
    Fuzzer,
    ParameterAlias,
    TaskSpec,
)
from treadle.utils.benchmark.op_fuzzers.binary import BinaryOpFuzzer
from treadle.utils.benchmark.op_fuzzers.sparse_binary import BinaryOpSparseFuzzer
from treadle.utils.benchmark.op_fuzzers.sparse_unary import UnaryOpSparseFuzzer
from treadle.utils.benchmark.op_fuzzers.spectral import SpectralOpFuzzer
from treadle.utils.benchmark.op_fuzzers.unary import UnaryOpFuzzer


def fails(kind: type, message: str, function: Any, *args: Any, **kwargs: Any) -> None:
    with pytest.raises(kind) as error:
        function(*args, **kwargs)
    assert str(error.value) == message


def test_parameters() -> None:
    state = np.random.RandomState(0)
    wide = [FuzzedParameter("a", 4, 4096, "loguniform").sample(state) for _ in range(300)]
    assert all(type(n) is int and 4 <= n <= 4096 for n in wide)
    assert 60 < sum(n < 32 for n in wide) < 150  # three of ten doublings
    even = [FuzzedParameter("a", 1, 3, "uniform").sample(state) for _ in range(100)]
    assert set(even) == {1, 2, 3}
    assert 0 <= FuzzedParameter("a", 0.0, 0.5, "uniform").sample(state) <= 0.5
    assert {FuzzedParameter("a", distribution={"x": 1.0, "y": 0.0}).sample(state)} == {"x"}
    fails(ValueError, "a: expected probabilities that sum to 1, got {1: 0.4}",
          FuzzedParameter, "a", distribution={1: 0.4})  # fmt: skip
    fails(ValueError, "a: expected distribution uniform, loguniform or a dict, got 'zzz'",
          FuzzedParameter, "a", 1, 2, "zzz")  # fmt: skip
    fails(ValueError, "a: expected minval <= maxval, above 0, got 0 and 2",
          FuzzedParameter, "a", 0, 2, "loguniform")  # fmt: skip


def test_fuzzer() -> None:
    def made() -> Fuzzer:
        return Fuzzer(
            parameters=[
                FuzzedParameter("n", 2, 64, "loguniform"),
                [FuzzedParameter("m", distribution={ParameterAlias("n"): 0.5, 3: 0.5})],
                FuzzedParameter("step", distribution={1: 0.5, 2: 0.5}),
            ],
            tensors=[
                FuzzedTensor("x", ("n", "m"), ("step", 1), min_elements=10, max_elements=2000),
                FuzzedTensor("i", ("m",), dtype=treadle.int64),
            ],
            constraints=[lambda params: params["n"] > 8],
            seed=3,
        )

    fuzzer = made()
    taken = list(fuzzer.take(20))
    for tensors, about, params in taken:
        x = tensors["x"]
        assert tuple(x.shape) == (params["n"], params["m"]) and 10 <= x.numel() <= 2000
        assert params["n"] > 8 and params["m"] in (3, params["n"])
        assert about["x"]["steps"] == (params["step"], 1) and about["x"]["numel"] == x.numel()
        assert about["x"]["is_contiguous"] == x.is_contiguous()
        assert tensors["i"].dtype == treadle.int64 and bool((tensors["i"] > 0).all())
    assert {about["x"]["is_contiguous"] for _, about, _ in taken} == {True, False}
    assert 0 < fuzzer.rejection_rate < 1
    for (first, _, _), (second, _, _) in zip(taken, made().take(20)):
        assert first["x"].equal(second["x"])
    double = FuzzedParameter("n", 1, 2, "uniform")
    fails(ValueError, "Fuzzer: expected each name once, got ['n', 'n']",
          Fuzzer, [double, double], [])  # fmt: skip
    never = Fuzzer([double], [], [lambda params: False])
    fails(ValueError, "Fuzzer: expected parameters that fulfil the constraints, got 1000 in a row "
          "that do not", lambda: list(never.take(1)))  # fmt: skip
    strict = FuzzedParameter("a", distribution={ParameterAlias("b"): 1.0}, strict=True)
    fails(ValueError, "a: expected a parameter b, got none",
          lambda: list(Fuzzer([strict], []).take(1)))  # fmt: skip


def test_sparse_tensors() -> None:
    fuzzer = Fuzzer(
        [FuzzedParameter("n", 4, 9, "uniform"), FuzzedParameter("c", distribution={True: 1.0}),
         FuzzedParameter("d", distribution={0.5: 1.0})],
        [FuzzedSparseTensor("x", ("n", 5), density="d", coalesced="c")],
        seed=0,
    )  # fmt: skip
    ((tensors, about, params),) = fuzzer.take(1)
    x = tensors["x"]
    assert x.is_sparse and tuple(x.shape) == (params["n"], 5) and x.is_coalesced()
    assert about["x"]["sparse_dim"] == 2 and not about["x"]["is_hybrid"]
    assert 0 < about["x"]["density"] <= 0.6


@pytest.mark.parametrize(
    "kind",
    [UnaryOpFuzzer, BinaryOpFuzzer, UnaryOpSparseFuzzer, BinaryOpSparseFuzzer, SpectralOpFuzzer],
)
def test_fuzzers_of_operators(kind: Any) -> None:
    ((tensors, _, params),) = kind(seed=1).take(1)
    assert set(tensors) == ({"x", "y"} if "Binary" in kind.__name__ else {"x"})
    for tensor in tensors.values():
        assert tensor.dim() == params["dim"] and tensor.numel() >= 4


def test_counts() -> None:
    rows = (FunctionCount(10, "x.cc:f"), FunctionCount(5, "y.cc:g"))
    a = FunctionCounts(rows, inclusive=False)
    b = FunctionCounts((FunctionCount(3, "x.cc:f"), FunctionCount(4, "z")), inclusive=False)
    assert repr(a - b) == "   7  x.cc:f\n   5  y.cc:g\n  -4  z\n\nTotal: 8"
    assert (a + b).sum() == 22 and len(a) == 2 and a[0] == rows[0] and list(a[1:]) == [rows[1]]
    assert list(a.transform(lambda name: "all")) == [FunctionCount(15, "all")]
    assert list(a.filter(lambda name: "g" in name)) == [rows[1]]
    assert (a * 2).sum() == 30
    noise = FunctionCounts((FunctionCount(1, "dictobject.c:lookdict_unicode"),), False)
    assert (a + noise).denoise().sum() == 15
    fails(ValueError, "FunctionCounts: expected both inclusive or both not, got one of each",
          lambda: a + FunctionCounts((), True))  # fmt: skip
    many = FunctionCounts(tuple(FunctionCount(50 - i, f"f{i}") for i in range(30)), False)
    assert repr(many).count("\n") == 20 and "..." in repr(many)
    stats = CallgrindStats(TaskSpec("x", "pass"), 10, True, a, noise, b, a, None)
    assert stats.counts() == 15 and stats.stats(inclusive=True) is b
    assert stats.delta(stats).sum() == 0
    assert repr(stats).startswith("CallgrindStats of x\n  15 instructions in 10 runs, 1 thread;")
    path = FunctionCounts((FunctionCount(1, "/home/me/f.cc:f"),), False)
    long = CallgrindStats(TaskSpec("x", "pass"), 1, True, path, path, path, path, None)
    assert long.as_standardized().stmt_exclusive_stats[0] == FunctionCount(1, "f.cc:f")


def test_values_for_another_process() -> None:
    wrapped = CopyIfCallgrind(3, setup="import a")
    assert (wrapped.value, wrapped.setup) == (3, "import a")
    assert CopyIfCallgrind.unwrap_all({"a": wrapped, "b": 4}) == {"a": 3, "b": 4}
    with pytest.raises(ValueError, match="^CopyIfCallgrind: expected a value that can be pickled"):
        CopyIfCallgrind(lambda: 1)

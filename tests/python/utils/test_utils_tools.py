"""utils.benchmark, collect_env, module_tracker and other tools around programs."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import sys
from typing import Any

import pytest

import treadle
from treadle import nn
from treadle.utils import benchmark, collect_env
from treadle.utils.benchmark import Measurement, TaskSpec


def _measurement(times: list, **settings: Any) -> Measurement:
    return Measurement(2, [t * 2 for t in times], TaskSpec("x + x", "pass", **settings))


def test_measurements() -> None:
    m = _measurement([1e-3, 2e-3, 3e-3, 4e-3, 5e-3])
    assert m.median == pytest.approx(3e-3) and m.mean == pytest.approx(3e-3)
    assert m.iqr == pytest.approx(2e-3) and m.has_warnings and m.title == "x + x"
    assert repr(m) == (
        "<treadle.utils.benchmark.Measurement of x + x>\n  Median: 3.00 ms\n  IQR:    2.00 ms\n"
        "  5 measurements, 2 runs per measurement, 1 thread\n"
        "  Times are far apart: the middle half is wider than a quarter of it."
    )
    merged = Measurement.merge([m, _measurement([6e-3]), _measurement([1.0], label="other")])
    assert [len(one.times) for one in merged] == [6, 1]


def test_units() -> None:
    assert benchmark.select_unit(3e-5) == ("us", 1e-6)
    assert benchmark.unit_to_english("ms") == "millisecond"
    assert benchmark.trim_sigfig(1234.5, 2) == 1200 and benchmark.trim_sigfig(0, 2) == 0
    assert benchmark.ordered_unique([3, 1, 3]) == [3, 1]


def test_a_timer_counts_runs() -> None:
    now = [0.0]
    calls = []

    def work() -> None:
        calls.append(treadle.get_num_threads())
        now[0] += 1e-3

    before = treadle.get_num_threads()
    timer = benchmark.Timer("work()", timer=lambda: now[0], globals={"work": work})
    assert timer.timeit(5).median == pytest.approx(1e-3)
    assert set(calls) == {1} and treadle.get_num_threads() == before
    found = timer.blocked_autorange(min_run_time=0.5)
    assert found.median == pytest.approx(1e-3) and sum(found.raw_times) >= 0.5
    told: list = []
    found = timer.adaptive_autorange(callback=lambda number, taken: told.append(taken))
    assert found.median == pytest.approx(1e-3) and told == found.raw_times
    tries: list = []
    found = timer.autorange(lambda number, taken: tries.append(number))
    assert tries == [1, 10, 100, 1000] and found.number_per_run == 1000
    assert benchmark.Timer("torch.ones(2)").timeit(2).median > 0
    with pytest.raises(NotImplementedError) as error:
        benchmark.Timer("int x;", language="c++")
    assert str(error.value) == "Timer: expected a statement in Python, got one in C++"


def test_measurements_as_a_table() -> None:
    rows = [
        _measurement([t], label="sum", sub_label=size, description=how)
        for t, size, how in ((1e-3, "10", "old"), (2.46e-3, "10", "new"), (5e-3, "20", "old"))
    ]
    table = benchmark.Compare(rows)
    assert str(table).splitlines() == [
        "[ sum ]",
        "              | old | new",
        "10 (1 thread) | 1.0 | 2.5",
        "20 (1 thread) | 5.0 |    ",
        "",
        "Times are in milliseconds (ms).",
    ]
    table.trim_significant_figures()
    assert "2.46" in str(table)
    with pytest.raises(ValueError, match="^Compare: expected measurements, got int$"):
        benchmark.Compare([3])  # type: ignore[list-item]


def test_facts_of_the_machine() -> None:
    assert collect_env.run([sys.executable, "-c", "print(3)"])[:2] == (0, "3")
    assert collect_env.run("no-such-program-anywhere")[0] == 127
    found = collect_env.run_and_parse_first_match(
        collect_env.run, [sys.executable, "-c", "print('version 7')"], r"version (\d)"
    )
    assert found == "7"
    assert collect_env.run_and_read_all(collect_env.run, "no-such-program-anywhere") is None
    text = collect_env.get_pretty_env_info()
    assert f"Treadle version: {treadle.__version__}" in text and "[pip] numpy==" in text
    assert collect_env.get_env_info().threads == str(treadle.get_num_threads())


def test_which_module_a_program_is_in() -> None:
    from treadle.utils.module_tracker import ModuleTracker

    seen = []

    class Inner(nn.Module):
        def forward(self, x: treadle.Tensor) -> treadle.Tensor:
            seen.append(set(tracker.parents))
            return x

    net = nn.Sequential(nn.Linear(2, 2), Inner())
    with ModuleTracker() as tracker:
        net(treadle.ones(1, 2))
        assert tracker.parents == {"Global"}
    assert seen == [{"Global", "Sequential", "Sequential.1"}]


def test_small_tools() -> None:
    def function() -> None: ...

    treadle.utils.set_module(function, "mine")
    assert function.__module__ == "mine"
    with pytest.raises(TypeError, match="^set_module: expected the name of a module, got int$"):
        treadle.utils.set_module(function, 3)
    assert treadle.utils.get_cpp_backtrace() == ""
    assert not treadle.utils.backcompat.keepdim_warning.enabled
    assert nn.modules.LinearCrossEntropyLoss is nn.LinearCrossEntropyLoss

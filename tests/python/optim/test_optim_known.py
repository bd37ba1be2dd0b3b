"""Optimisers, schedulers and averages of weights against what PyTorch 2.15 computed in float64
(tests/data/optimisers: the runs, and in known.json their numbers).
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import sys
import warnings
from contextlib import nullcontext
from typing import Any, Iterator

import numpy as np
import pytest

import treadle
from source_tree import DATA

HERE = DATA / "optimisers"
sys.path.insert(0, str(HERE))
import optimiser_runs as runs  # noqa: E402  what made the numbers, run again

KNOWN = json.loads((HERE / "known.json").read_text())
# They take other parameters and gradients: test_optim_new.py.
ELSEWHERE = {"Muon", "SparseAdam"}
FITS = [
    pytest.param(name, settings, id=f"{name}-{runs.key(settings)}")
    for name, each in runs.OPTIMIZERS.items()
    for settings in each
]


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """A schedule that is followed as it should be warns of nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def assert_same(found: Any, wanted: Any, where: str = "", tolerance: float = 1e-8) -> None:
    """Equal in structure, and in numbers but for rounding."""
    if isinstance(wanted, dict):
        assert list(found) == list(wanted), f"{where}: {list(found)}, not {list(wanted)}"
        for name, item in wanted.items():
            assert_same(found[name], item, f"{where}.{name}", tolerance)
    elif isinstance(wanted, list) and not all(isinstance(v, (int, float)) for v in wanted):
        assert len(found) == len(wanted), where
        for index, item in enumerate(wanted):
            assert_same(found[index], item, f"{where}[{index}]", tolerance)
    elif isinstance(wanted, (list, float)):
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance, err_msg=where)
    else:
        assert type(found) is type(wanted) and found == wanted, f"{where}: {found}, not {wanted}"


@pytest.mark.parametrize("name, settings", FITS)
def test_optimizer(name: str, settings: dict[str, Any]) -> None:
    """Losses, parameters, and the state and settings by their names."""
    # A line search divides differences of what it rounded: PyTorch itself gives other digits, by
    # 4e-8, on a processor with other vectors.
    tolerance = 1e-6 if "line_search_fn" in settings else 1e-8
    known = KNOWN["optimizers"][name][runs.key(settings)]
    found = runs.fit(treadle, name, settings)
    assert_same(found, known, tolerance=tolerance)


@pytest.mark.parametrize("name", runs.SCHEDULERS)
def test_scheduler(name: str) -> None:
    # A sequence lets its first part begin anew, which is the second step of a sequence in it.
    nested = name == "SequentialLR nested"
    with pytest.warns(UserWarning, match="before `opt") if nested else nullcontext():
        found = runs.follow(treadle, name)
    assert_same(found, KNOWN["schedulers"][name])


@pytest.mark.parametrize("name", KNOWN["schedulers of Adam"])
def test_scheduler_of_betas(name: str) -> None:
    assert_same(runs.follow(treadle, name, "Adam"), KNOWN["schedulers of Adam"][name])


@pytest.mark.parametrize("name, settings", runs.PLATEAUS.items(), ids=list(runs.PLATEAUS))
def test_plateau(name: str, settings: dict[str, Any]) -> None:
    assert_same(runs.plateau(treadle, settings), KNOWN["plateaus"][name])


@pytest.mark.parametrize("how", runs.AVERAGES)
def test_average(how: str) -> None:
    assert_same(runs.averaged(treadle, how), KNOWN["averages"][how])


@pytest.mark.parametrize("name", KNOWN["signatures"])
def test_signature(name: str) -> None:
    """Names, order, kinds and defaults of arguments."""
    assert runs.signatures(treadle)[name] == KNOWN["signatures"][name]


def test_every_run_is_known() -> None:
    for name, each in runs.OPTIMIZERS.items():
        assert list(KNOWN["optimizers"][name]) == [runs.key(settings) for settings in each]
    assert list(KNOWN["schedulers"]) == list(runs.SCHEDULERS)
    classes = {n for n in treadle.optim.__all__ if isinstance(getattr(treadle.optim, n), type)}
    expected = {"Optimizer", *runs.OPTIMIZERS, *ELSEWHERE}
    assert classes == expected, "an optimiser that is not run"

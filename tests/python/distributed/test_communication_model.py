"""benchmarks/communication.py: formulas, fit, and a small measurement without shaped links."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

from source_tree import ROOT


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def _module(name: str) -> ModuleType:
    return importlib.import_module(name)


def test_formulas_agree_where_they_must(folder: None) -> None:
    costs = _module("communication_model.costs")
    link = costs.Link(0.5, 0.25)
    # With two ranks there is one way to exchange halves, whatever its name; in the direct one
    # a rank says only once that it is ready.
    size = 1e6
    for cost in (costs.ring_all_reduce, costs.halving_doubling_all_reduce):
        assert cost(link, 2, size) == 2 * (2 * 0.5 + 0.25 * size / 2)
    assert costs.direct_all_reduce(link, 2, size) == 3 * 0.5 + 0.25 * size
    # No algorithm sends less than 2 (n - 1) / n of the tensor through a link.
    for ranks in (3, 4, 8, 100):
        least = 2 * (ranks - 1) / ranks * 0.25 * size
        for name, cost in costs.ALL_REDUCE.items():
            assert cost(link, ranks, size) > least, name
        assert costs.ring_all_reduce(link, ranks, size) == pytest.approx(least + 2 * ranks - 2)
    assert costs.halving_doubling_all_reduce(link, 8, size) == pytest.approx(
        2 * (6 * 0.5 + 7 / 8 * 0.25 * size)
    )
    assert costs.barrier(link, 9, 0) == 2.0


def test_the_fit_finds_the_link(folder: None) -> None:
    costs = _module("communication_model.costs")
    link = costs.Link(2e-3, 1e-7, 3e-4)
    found = costs.fit([(size, link.meet(size)) for size in (4, 5000, 10**6)])
    assert found == pytest.approx((2e-3, 1e-7, 0.0))
    times = [(n, 4096, costs.direct_all_gather(link, n, 4096)) for n in (2, 4, 16)]
    assert costs.fit_per_message(found, times) == pytest.approx(tuple(link))
    with pytest.raises(ValueError) as error:
        costs.fit([(8, 0.1), (8, 0.2)])
    assert str(error.value) == "fit: expected at least 2 sizes, got 2 measurements of one"


def test_predictions(folder: None) -> None:
    costs = _module("communication_model.costs")
    training = _module("communication_model.training")
    slow, fast = training.ETHERNET, training.FABRIC
    for model in (training.RESNET50, training.GPT):
        shares = [training.best(model, 25e6, slow, n)[1] for n in (8, 64, 512, 4096)]
        assert shares == sorted(shares, reverse=True)
        assert training.best(model, 25e6, fast, 64)[1] > shares[1]
    # One bucket is exposed as a whole: it is ready when the backward pass ends.
    whole = training.exposed(training.RESNET50, 1e12, costs.ring_all_reduce, slow, 64)
    assert whole == pytest.approx(costs.ring_all_reduce(slow, 64, 4 * 25.6e6))
    grown = training.limits(1024, 20000.0)
    assert grown["sockets of a process"] == 2 * 1023
    assert grown["requests to the store"] == 4 * 1024 * 1023


def test_a_measurement(folder: None, capsys: pytest.CaptureFixture[str]) -> None:
    communication = _module("communication")
    found = {2: communication.measure(2, 1, None), 3: communication.measure(3, 1, None)}
    link = communication.compare(found)
    # A fit of noisy times may be 0; that of exact times is tested above.
    assert link.latency >= 0 and found[3]["requests"] > 0
    communication.predict(20000.0)
    printed = capsys.readouterr().out
    assert "| ring all_reduce | 3 | 65536 |" in printed and "| GPT 1.3 B | 4,096 |" in printed

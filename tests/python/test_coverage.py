"""./dev coverage and docs/coming-from-pytorch.md: what they say is missing is, and nothing else."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).resolve().parents[2] / "tools" / "dev" / "coverage.py"
spec = importlib.util.spec_from_file_location("coverage_of_names", FILE)
assert spec is not None and spec.loader is not None
coverage = importlib.util.module_from_spec(spec)
spec.loader.exec_module(coverage)


@pytest.mark.parametrize("name", sorted(coverage.explained()))
def test_what_the_page_says_is_missing_is(name: str) -> None:
    assert not coverage.exists(name)
    assert len(coverage.explained()[name]) > 10


@pytest.mark.parametrize(
    "name", ["torch.add", "torch.nn.Linear", "Tensor.item", "Tensor|Module.to", "import torch.nn"]
)
def test_what_exists(name: str) -> None:
    assert coverage.exists(name)


def test_report() -> None:
    text = "name\tprograms\ntorch.add\t3\ntorch.no_such\t1\nModule.eval\t2\ntorch.vmap\t1\n"
    assert list(coverage.lines(coverage.names_of(text))) == [
        "4 names, 2 exist, 2 do not",
        "  torch.no_such: not yet",
        "  torch.vmap: transformations of whole programs, not operators",
        "3 functions and tensor methods, 1 missing without a reason",
        "  torch.no_such",
    ]

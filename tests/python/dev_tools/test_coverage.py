"""./dev coverage and docs/coming-from-pytorch.md: what they say is missing is, and nothing else."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib.util
from typing import Any, Iterator

import pytest

import treadle.run
from source_tree import ROOT

FILE = ROOT / "tools" / "dev" / "coverage.py"
spec = importlib.util.spec_from_file_location("coverage_of_names", FILE)
assert spec is not None and spec.loader is not None
coverage = importlib.util.module_from_spec(spec)
spec.loader.exec_module(coverage)


@pytest.fixture(autouse=True, scope="module")
def _without_the_hook_afterwards() -> Iterator[None]:
    yield
    coverage.package.cache_clear()
    coverage.instance.cache_clear()
    treadle.run.uninstall()


def _object(name: str) -> Any:
    first, *path = name.split(".")
    owner = coverage.package() if first == "torch" else coverage.instance(first)
    for part in path:
        owner = getattr(owner, part)
    return owner


@pytest.mark.parametrize("name", sorted(n for n in coverage.explained() if "*" not in n))
def test_what_the_page_says_is_missing_is(name: str) -> None:
    """Or it is there to say so."""
    assert not coverage.works(name)
    assert len(coverage.explained()[name]) > 10
    if not coverage.exists(name):
        return
    value = _object(name)
    if isinstance(value, type) and issubclass(value, Exception):
        assert coverage.is_name_only(name)
        return
    with pytest.raises(NotImplementedError):
        value()


def test_the_tables_of_names_are_those_of_the_page() -> None:
    """The lists of ./dev names are those of the table in the package."""
    from treadle._names.table import MISSING

    reasons = set(coverage.explained().values())
    assert reasons >= set(MISSING)
    name = "torch.distributed.device_mesh.BackendConfig"
    assert coverage.reason_of(name) == "the parts of process groups are others"
    assert coverage.reason_of("torch.add") is None
    assert not coverage.works(name)
    assert coverage.is_name_only("torch.AliasDb") and not coverage.is_name_only("torch.add")


@pytest.mark.parametrize(
    "name",
    [
        "import torch",
        "import torch.nn.functional",
        "torch.add",
        "torch.nn.Linear",
        "torch.nn.Module.__init__",
        "torch.backends.cudnn.benchmark",
        "torch.utils.data.distributed.DistributedSampler",
        "torch.nn.attention.SDPBackend.MATH",
        "Tensor.item",
        "Tensor.grad",
        "Tensor.imag",  # of a tensor that has none
        "Tensor?.split",
        "Tensor|Module.to",
        "Tensor|Module.apply",  # of modules only
        "Module.in_features",
        "Optimizer.param_groups",
        "Distribution.log_prob",
        "operator @",
    ],
)
def test_what_works(name: str) -> None:
    assert coverage.works(name)


@pytest.mark.parametrize(
    "name",
    [
        "import torch.no_such",
        "torch.no_such",
        "torch.nn.Linear.no_such",
        "Tensor.no_such",
        "Tensor|Module.no_such",
        "Distribution.no_such",
        "operator ><",
    ],
)
def test_what_does_not(name: str) -> None:
    assert not coverage.works(name)


def test_names_of_a_table() -> None:
    table = (
        "name\tprograms\toccurrences\ntorch.add\t3\t5\nimport torch\t1\t2\noperator @\t2\t9\nx y\n"
    )
    assert coverage.names_of(table) == [("torch.add", 3), ("import torch", 1), ("operator @", 2)]
    listed = "torch.add\nTensor?.split\n"
    assert coverage.names_of(listed) == [("torch.add", 1), ("Tensor?.split", 1)]


def test_report() -> None:
    table = "torch.add\t3\t1\ntorch.no_such\t1\t1\nModule.eval\t2\t1\ntorch.sparse.spsolve\t1\t1\n"
    lines, is_enough = coverage.report(coverage.names_of(table))
    assert lines == [
        "names used by two programs or more: 2 of 2 (100.0%)",
        "all names: 2 of 4 (50.0%)",
        "  torch.no_such (1): not yet",
        "  torch.sparse.spsolve (1): Treadle has no sparse tensors of a fixed pattern, and solves "
        "no sparse systems",
    ]
    assert not is_enough


def test_what_is_enough() -> None:
    there = "\n".join(["torch.add\t2"] * 9)
    assert coverage.report(coverage.names_of(there + "\ntorch.no_such\t1"))[1]
    assert not coverage.report(coverage.names_of(there + "\ntorch.no_such\t2"))[1]
    assert not coverage.report(coverage.names_of(there + "\ntorch.no_such\t1\ntorch.other\t1"))[1]

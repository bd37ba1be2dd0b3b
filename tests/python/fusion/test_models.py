"""Models of benchmarks/_networks.py train with fusion as they do without: three steps have the same
losses, gradients, weights and buffers, bit for bit.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import importlib
from typing import Any, Iterator, List

import pytest

import treadle
from source_tree import ROOT

STEPS = 3
SLOW = pytest.mark.slow


@pytest.fixture(scope="module")
def networks() -> Iterator[Any]:
    """The module of the networks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield importlib.import_module("_networks")


@contextlib.contextmanager
def _everywhere(fused: bool) -> Iterator[None]:
    if not fused:
        yield
        return
    treadle.fusion.enable(least=0)
    try:
        assert treadle.fusion.explain(treadle.ones(2) + 1).groups
        yield
    finally:
        treadle.fusion.disable()


def _bits(t: treadle.Tensor) -> treadle.Tensor:
    return t.detach().contiguous().reshape(-1).view(treadle.uint8)


def _training(job: Any, bfloat16: bool) -> List[Any]:
    """The losses, gradients and state of three steps, with names."""
    seen: List[Any] = []
    parameters = dict(job.model.named_parameters())
    optimizer = getattr(treadle.optim, job.optimizer)(parameters.values(), lr=1e-3)
    for step in range(STEPS):
        optimizer.zero_grad()
        with treadle.autocast("cpu", treadle.bfloat16, enabled=bfloat16):
            loss = job.loss(job.model(*job.inputs))
        loss.backward()
        optimizer.step()
        seen.append((f"loss of step {step}", _bits(loss)))
    seen += [(f"{name}.grad", _bits(p.grad)) for name, p in parameters.items()]
    seen += [(name, _bits(value)) for name, value in job.model.state_dict().items()]
    return seen


@pytest.mark.parametrize(
    "name, batch, bfloat16",
    [
        pytest.param("ResNet-18, 32x32", 4, False, marks=SLOW),
        pytest.param("ResNet-18, 32x32", 4, True, marks=SLOW),
        pytest.param("MobileNetV2", 4, False, marks=SLOW),
        ("GPT, 4 layers", 4, False),
        ("GPT, 4 layers", 4, True),
        ("LSTM, 2 layers", 4, False),
        ("NCF", 64, False),
        ("translator", 4, False),
    ],
)
def test_training(networks: Any, name: str, batch: int, bfloat16: bool) -> None:
    runs = []
    for fused in (False, True):
        treadle.manual_seed(0)
        with _everywhere(fused):
            job = networks.NETWORKS[name](treadle, "cpu", batch, True)
            runs.append(_training(job, bfloat16))
    different = [key for (key, a), (_, b) in zip(*runs) if not treadle.equal(a, b)]
    assert len(runs[0]) == len(runs[1]) and different == []


def test_calls_in_inference(networks: Any) -> None:
    treadle.manual_seed(0)
    job = networks.NETWORKS["GPT, 4 layers"](treadle, "cpu", 2, True)
    job.model.eval()
    with treadle.no_grad():
        plain = job.model(*job.inputs)
        with treadle.fuse(least=0):
            fused = job.model(*job.inputs)
    assert treadle.equal(_bits(plain), _bits(fused))

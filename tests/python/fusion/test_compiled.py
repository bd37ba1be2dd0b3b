"""Compiled loops have the bits of the operators' own loops, and no program needs a compiler."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest

import plugins
import treadle
from treadle import Tensor
from treadle.fusion import compiled_loops, finish_compiling
from treadle_testing import checks
from treadle_testing.cases import pairs

USES = 4  # before a loop is wanted


@pytest.fixture(autouse=True)
def compiling(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    treadle.fusion.enable(least=0, compile=True)
    yield
    finish_compiling()
    treadle.fusion.disable()


def _bits(t: Tensor) -> Any:
    return t.contiguous().view(treadle.uint8).tolist()


def _agrees(function: Callable[..., Any], *args: Tensor) -> int:
    """How many loops were compiled for a function, whose results have the same bits then."""
    with treadle.fuse(enabled=False):
        expected = [_bits(t) for t in function(*args)]
    before = compiled_loops().ready
    for _ in range(USES + 1):
        assert [_bits(t) for t in function(*args)] == expected
    finish_compiling()
    assert [_bits(t) for t in function(*args)] == expected
    return compiled_loops().ready - before


def test_one_result_past_the_caches() -> None:
    def chain(x: Tensor, y: Tensor) -> List[Tensor]:
        return [(((x * y + 1) * x - y) * 2 + x * 0.5 - y) * x + 1]

    for n in (1, 7, 1000, 3_000_001):
        ready = _agrees(chain, treadle.randn(n), treadle.randn(n))
        assert ready == (n == 1)  # the source depends on no shape
    x = treadle.randn(40, 60)
    assert _agrees(chain, x.t(), treadle.randn(60, 1)) == 0


def test_results_of_several_dtypes() -> None:
    def step(x: Tensor, y: Tensor) -> List[Tensor]:
        s = x.exp() + y
        positive = s > 0
        return [treadle.where(positive, s, y), positive, s * 0.1, (s * y).tanh()]

    for dtype in (treadle.float32, treadle.float64):
        for n in (5, 3000, 2_000_000):
            args = treadle.randn(n).to(dtype), treadle.randn(n).to(dtype)
            assert _agrees(step, *args) == (n == 5)


@pytest.mark.parametrize("dtype", [treadle.float16, treadle.bfloat16])
def test_16_bit_floats_are_rounded_at_each_step(dtype: treadle.dtype) -> None:
    def chain(x: Tensor, y: Tensor) -> List[Tensor]:
        s = (x * 1.1 + y).sigmoid()
        return [s * s - y, s]

    x = treadle.randn(2000).mul(100)
    x[:4] = treadle.tensor([float("nan"), float("inf"), 1e30, -0.0])
    assert _agrees(chain, x.to(dtype), treadle.randn(2000).to(dtype)) == 1


def test_rows() -> None:
    def layer_norm(x: Tensor, w: Tensor, b: Tensor) -> List[Tensor]:
        mean = x.mean(-1, keepdim=True)
        centered = x - mean
        scale = ((centered * centered).mean(-1, keepdim=True) + 1e-5).rsqrt()
        return [centered * scale * w + b, scale]

    x = treadle.randn(100, 300)
    # The two operators between the folds, the two on rows, the three behind them.
    assert _agrees(layer_norm, x, treadle.randn(300), treadle.randn(300)) == 3
    assert _agrees(layer_norm, x.t(), treadle.randn(100), treadle.randn(100)) == 0


def test_numbers_are_no_part_of_a_loop() -> None:
    def step(scale: float) -> Callable[[Tensor], List[Tensor]]:
        return lambda x: [(x * scale).cos() + scale]

    x = treadle.randn(100)
    assert [_agrees(step(s), x) for s in (1.0, 2.5, float("inf"))] == [1, 0, 0]


def test_gradients() -> None:
    def gradient(x: Tensor) -> List[Tensor]:
        x = x.detach().requires_grad_()
        loss = ((x * 3).sigmoid() * x.tanh()).sum()
        return [*treadle.autograd.grad(loss, [x])]

    assert _agrees(gradient, treadle.randn(1000)) >= 1


@pytest.mark.slow
def test_every_operator_on_floats() -> None:
    """Each beside another one, so that there is a loop."""
    found = [p.values for p in pairs() if p.values[1] == "float32"]
    found = [(op, dtype) for op, dtype in found if op.kind == "pointwise"]
    assert len(found) > 150
    for _ in range(USES + 1):
        for op, dtype in found:
            checks.fusion_agrees(op, dtype)
    loops = finish_compiling()
    assert loops.failed == 0 and loops.ready > 150
    for op, dtype in found:
        checks.fusion_agrees(op, dtype)


PROGRAM = """
    import os, sys, treadle
    treadle.fusion.enable(least=0, compile=True)
    x = treadle.arange(9.0)
    def run():
        return [((x * 2 + 1).exp() - x).tolist() for _ in range(5)][0]
    first = run()
"""


SAY = "    print(treadle.fusion.finish_compiling(60), run() == first)\n"


def test_without_a_compiler(tmp_path: Path) -> None:
    said = plugins.run_program(PROGRAM + SAY, environment={"CXX": str(tmp_path / "none")})
    assert said == "CompiledLoops(ready=0, wanted=0, failed=1) True\n"


def test_a_loop_is_compiled_once_for_all_programs(tmp_path: Path) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path)}
    written = []
    for _ in range(2):
        said = plugins.run_program(PROGRAM + SAY, environment=cache)
        assert said == "CompiledLoops(ready=1, wanted=0, failed=0) True\n"
        (library,) = (tmp_path / "treadle_fusion").iterdir()
        written.append(library.stat().st_mtime_ns)
    assert written[0] == written[1]


def test_a_child_process_compiles_what_its_parent_had_begun() -> None:
    program = """
    child = os.fork()
    said = str(treadle.fusion.finish_compiling(60)) + str(run() == first)
    if child == 0:
        os._exit(0 if "ready=1" in said and "True" in said else 1)
    print(os.waitpid(child, 0)[1], said)
    """
    said = plugins.run_program(PROGRAM + program)
    assert said == "0 CompiledLoops(ready=1, wanted=0, failed=0)True\n"


def test_the_end_of_a_program_does_not_wait(tmp_path: Path) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path)}
    assert plugins.run_program(PROGRAM + "    print(len(first))\n", environment=cache) == "9\n"
    folder = tmp_path / "treadle_fusion"
    assert not folder.exists() or list(folder.iterdir()) == []

"""The minimal backend stays minimal, passes its own tests by any name, and hands out no memory that
anything but itself looks into.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import plugins

PROJECT = plugins.MINIMAL.parent


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Libraries by what is special about them."""
    folder = tmp_path_factory.mktemp("minimal")
    with ThreadPoolExecutor() as pool:
        plain = pool.submit(plugins.build_minimal, folder / "minimal.so")
        handles = pool.submit(plugins.build_minimal, folder / "handles.so", handles=True)
        other = pool.submit(plugins.build_minimal, folder / "other.so", name="other")
    return {"plain": plain.result(), "handles": handles.result(), "other": other.result()}


def test_it_is_small() -> None:
    sources = [p for p in PROJECT.rglob("*") if p.suffix in (".cc", ".h", ".hpp", ".cpp")]
    assert sum(len(p.read_text().splitlines()) for p in sources) <= 300
    assert len(re.findall(r"register_kernel<", plugins.MINIMAL.read_text())) <= 30


def test_it_sees_only_the_installed_headers() -> None:
    included = re.findall(r'#include ["<](.*)[">]', plugins.MINIMAL.read_text())
    assert [name for name in included if "/" in name] == [
        "treadle/evaluate.hpp",
        "treadle/plugin.hpp",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("which", ["plain", "handles"])
def test_its_own_tests_pass(built: dict[str, str], which: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(PROJECT)]
        + [str(PROJECT / "tests")],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        env={**os.environ, "TREADLE_BACKENDS": built[which]},
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_two_copies_side_by_side(built: dict[str, str]) -> None:
    """The second is the same code under another name: neither touches the other's memory or
    counts."""
    program = """
        import sys, treadle
        for path in sys.argv[1:]:
            treadle.load_backend(path)
        x = treadle.arange(4.0, device="minimal")
        y = (x * 2).to("other") + 1
        z = y.sum().to("minimal")
        print(x.device, y.device, z.item())
        try:
            x + y
        except RuntimeError as error:
            print(error)
    """
    text = plugins.run_program(program, built["handles"], built["other"])
    assert text.splitlines()[0] == "minimal:0 other:0 16.0"
    assert "minimal:0" in text.splitlines()[1] and "other:0" in text.splitlines()[1]


def test_functions_that_the_interpreter_does_not_know_are_left_to_the_cpu(
    built: dict[str, str],
) -> None:
    program = """
        import sys, treadle
        treadle.load_backend(sys.argv[1])
        x = treadle.linspace(0.1, 3, 7)
        y = x.to("minimal")
        print(treadle.equal(treadle.i0(y).cpu(), treadle.i0(x)))
        print(treadle.allclose(treadle.erf(y).cpu(), treadle.erf(x)))
        counts = {name: how for name, how, calls in treadle._C._backend_counts("minimal")}
        print(counts["aten::i0"])
        print(counts["aten::erf"])
    """
    assert plugins.run_program(program, built["handles"]).split() == [
        "True", "True", "fallback", "generated"
    ]  # fmt: skip


def test_sums_are_as_exact_as_those_of_the_cpu(built: dict[str, str]) -> None:
    """A long sum of float32 is folded in pairs; order and shape do not matter."""
    program = """
        import sys, treadle
        treadle.load_backend(sys.argv[1])
        treadle.manual_seed(0)
        x = treadle.rand(300_001, dtype=treadle.float64)
        exact = x.float().double().sum().item()
        got = x.float().to("minimal").sum().item()
        assert abs(got - exact) <= 1e-6 * exact, (got, exact)
        for shape, dims in (((3, 70, 41), (0, 2)), ((3, 70, 41), (1,)), ((1, 1), (0,))):
            y = treadle.randn(*shape)
            z = y.to("minimal").transpose(0, -1)
            for name in ("sum", "amax", "amin", "mean"):
                want = getattr(y.transpose(0, -1), name)(dims)
                treadle.testing.assert_close(getattr(z, name)(dims).cpu(), want)
        print("done")
    """
    assert plugins.run_program(program, built["plain"]) == "done\n"

"""The wheels of torchvision and torchaudio as they are in the registry: each operator's results and
gradients are PyTorch's. They are looked for where `./dev libraries` installs them, and in the
folder that $TREADLE_WHEELS names."""

# SPDX-License-Identifier: Apache-2.0

import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

HERE = Path(__file__).parent
ROOT = Path(os.environ.get("TREADLE_SOURCE", HERE.parents[2]))
PYTORCHS = ROOT / "tests" / "data" / "stable_abi"


def wheels():
    """The folder with both wheels, or None."""
    named = os.environ.get("TREADLE_WHEELS")
    folders = [Path(named)] if named else []
    folders += ROOT.glob("build/libraries*/lib/python*/site-packages")
    needed = ("torchvision/_C_stable.so", "torchaudio/lib/libtorchaudio.abi3.so", "PIL")
    return next((f for f in folders if all((f / name).exists() for name in needed)), None)


def compare(tmp_path, program, *arguments, of_float64=1e-12):
    """Runs a program here, and compares the arrays that it writes with those of PyTorch: of the
    same names, shapes and dtypes, numbers to within the rounding of other orders of additions."""
    out = tmp_path / "found.npz"
    path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(wheels())])
    subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "treadle.run", HERE / program, out, *arguments],
        env=dict(os.environ, PYTHONPATH=path),
        check=True,
    )
    expected = PYTORCHS / f"{program.removesuffix('.py').removeprefix('_')}.npz"
    found, expected = numpy.load(out), numpy.load(expected)
    assert sorted(found) == sorted(expected)
    for name in expected:
        result, right = found[name], expected[name]
        assert result.dtype == right.dtype and result.shape == right.shape, name
        if right.dtype.kind == "f":
            bound = 2e-6 if right.dtype == numpy.float32 else of_float64
            numpy.testing.assert_allclose(result, right, bound, bound, err_msg=name)
        else:
            numpy.testing.assert_array_equal(result, right, err_msg=name)


@pytest.mark.slow
@pytest.mark.skipif(wheels() is None, reason="the wheels of torchvision and torchaudio are absent")
def test_every_operator_has_the_results_of_pytorch(tmp_path):
    compare(tmp_path, "_wheel_operators.py")


@pytest.mark.slow
@pytest.mark.skipif(wheels() is None, reason="the wheels of torchvision and torchaudio are absent")
def test_a_detector_trains_and_detects_as_on_pytorch(tmp_path):
    compare(tmp_path, "_detection.py", "float64", of_float64=1e-10)

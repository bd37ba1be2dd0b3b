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
EXPECTED = ROOT / "tests" / "data" / "stable_abi" / "wheels.npz"


def wheels():
    """The folder with both wheels, or None."""
    named = os.environ.get("TREADLE_WHEELS")
    folders = [Path(named)] if named else []
    folders += ROOT.glob("build/libraries*/lib/python*/site-packages")
    needed = ("torchvision/_C_stable.so", "torchaudio/lib/libtorchaudio.abi3.so", "PIL")
    return next((f for f in folders if all((f / name).exists() for name in needed)), None)


@pytest.mark.slow
@pytest.mark.skipif(wheels() is None, reason="the wheels of torchvision and torchaudio are absent")
def test_every_operator_has_the_results_of_pytorch(tmp_path):
    out = tmp_path / "found.npz"
    path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(wheels())])
    program = [str(HERE / "_wheel_operators.py"), str(out)]
    subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "treadle.run", *program],
        env=dict(os.environ, PYTHONPATH=path),
        check=True,
    )
    found, expected = numpy.load(out), numpy.load(EXPECTED)
    assert sorted(found) == sorted(expected)
    for name in expected:
        result, right = found[name], expected[name]
        assert result.dtype == right.dtype and result.shape == right.shape, name
        if right.dtype.kind == "f":
            bound = 2e-6 if right.dtype == numpy.float32 else 1e-12
            numpy.testing.assert_allclose(result, right, bound, bound, err_msg=name)
        else:
            numpy.testing.assert_array_equal(result, right, err_msg=name)

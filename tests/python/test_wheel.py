"""The wheel in an empty virtual environment, with nothing but NumPy beside it."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
from environments import fresh, wheel  # noqa: F401  (a fixture)

PROGRAM = """
import sys
import treadle as torch
assert "site-packages" in torch.__file__, torch.__file__
torch.manual_seed(0)
x, w = torch.randn(64, 32), torch.randn(32, 3)
y = (x @ w).argmax(1)
model = torch.nn.Sequential(torch.nn.Linear(32, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
losses = []
for _ in range(60):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0] / 5, losses
images = torch.randn(2, 3, 8, 8, requires_grad=True)
torch.nn.Conv2d(3, 4, 3)(images).relu().sum().backward()
assert images.grad.shape == images.shape
try:
    torch.zeros(-1)
except RuntimeError as error:
    assert "size" in str(error)
torch.save(model.state_dict(), "model.pt")
model.load_state_dict(torch.load("model.pt"))
print("ran", torch.__version__)
"""


@pytest.mark.slow
@pytest.mark.builds
def test_what_the_wheel_holds(wheel: Path) -> None:  # noqa: F811
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
    for wanted in (
        "treadle/__init__.py",
        "treadle/_operators.pyi",
        "treadle/py.typed",
        "treadle/opmodel.json",
        "treadle/bazel/operators.bzl",
        "treadle/bin/schemac",
        "treadle/codegen/templates/ops.cc.j2",
        "treadle/include/treadle/stamp.h",
        "treadle/licenses/LICENSE.highway",
    ):
        assert wanted in names
    assert any(name.startswith("treadle/_C.") and name.endswith(".so") for name in names)
    assert any(
        name.startswith("treadle/") and name.endswith("core/tensor.h") for name in names
    ), "no headers"
    assert not [
        name for name in names if name.startswith("/") or ".." in name or "__pycache__" in name
    ]
    assert any(name.endswith(".dist-info/METADATA") for name in names) and any(
        name.endswith("RECORD") for name in names
    )


@pytest.mark.slow
@pytest.mark.builds
def test_runs_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:  # noqa: F811
    environment = fresh(tmp_path, f"numpy=={np.__version__}", str(wheel))

    def run(*command: str) -> str:
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        return done.stdout

    assert run("python", "-c", PROGRAM).startswith("ran ")
    assert "add" in run("python", "-m", "treadle", "explain", "add")
    run("python", "-m", "pip", "check")
    packages = tmp_path / "venv" / "lib"
    for library in packages.rglob("*.so*"):
        if "treadle" in library.parts[-2] or "treadle" in str(library.relative_to(packages)):
            assert "not found" not in run("ldd", str(library)), library

"""The wheel in an empty virtual environment, with nothing but NumPy beside it."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from environments import ROOT, fresh, testing_wheel, wheel  # noqa: F401  (fixtures)
from tool_modules import importing

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
for dtype in (torch.float32, torch.complex128):
    a = torch.randn(9, 5, dtype=dtype)
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    assert torch.allclose(u * s.to(dtype) @ vh, a, atol=1e-4)
    eye = torch.linalg.solve(a.mH @ a, a.mH @ a)
    assert torch.allclose(eye, torch.eye(5, dtype=dtype), atol=1e-2)
    values = torch.linalg.eigvals(a.mH @ a).real.sort().values
    assert torch.allclose(values, torch.linalg.eigvalsh(a.mH @ a).to(values.dtype), atol=1e-2)
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
    assert wheel.stat().st_size <= 32_000_000
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
        name.startswith("treadle/") and name.endswith("core/tensor/tensor.h") for name in names
    ), "no headers"
    assert not [
        name for name in names if name.startswith("/") or ".." in name or "__pycache__" in name
    ]
    assert any(name.endswith(".dist-info/METADATA") for name in names) and any(
        name.endswith("RECORD") for name in names
    )


@pytest.mark.slow
@pytest.mark.builds
def test_the_tests_of_operators_have_a_wheel(
    wheel: Path,  # noqa: F811
    testing_wheel: Path,  # noqa: F811
) -> None:
    assert testing_wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(testing_wheel) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        info = next(name for name in names if name.endswith("/METADATA")).partition("/")[0]
        assert "Name: treadle-testing\n" in archive.read(f"{info}/METADATA").decode()
        assert "Tag: py3-none-any\n" in archive.read(f"{info}/WHEEL").decode()
    assert {"treadle_testing/suite.py", "treadle_testing/families/views.py"} <= set(names)
    assert {name.partition("/")[0] for name in names} == {"treadle_testing", info}
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if "treadle_testing" in name]


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


@pytest.mark.slow
@pytest.mark.builds
def test_the_wheel_has_the_licence_of_all_that_is_in_it(wheel: Path) -> None:  # noqa: F811
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (bill,) = (name for name in names if name.endswith(".cdx.json"))
        parts = json.loads(archive.read(bill))["components"]
        info = bill.partition("/")[0]
        packages = {part["name"] for part in parts} - {"treadle"}
        for package in packages:
            assert len(archive.read(f"{info}/licenses/{package}.txt")) > 200, package
    carried = {name for name in names if name.startswith("treadle.libs/")}
    assert len(packages) > len(carried) > 3
    for compiled_in in (
        "libyaml-cpp-dev", "pybind11-dev", "nlohmann-json3-dev", "libhwy-dev",
        "libopenblas0-openmp", "libgfortran5",
    ):  # fmt: skip
        assert compiled_in in packages
    assert "treadle/licenses/LICENSE.pocketfft" in names


@pytest.mark.slow
@pytest.mark.builds
def test_the_wheel_carries_the_part_of_openblas_that_is_called(
    wheel: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    with importing("bazel") as load:
        symbols = load("openblas_subset").symbols
    with zipfile.ZipFile(wheel) as archive:
        (place,) = (n for n in archive.namelist() if n.startswith("treadle.libs/libopenblas"))
        openblas = Path(archive.extract(place, tmp_path))
        program = Path(archive.extract("treadle/lib/libtreadle.so", tmp_path))
    exported = symbols(openblas, "-D", "--defined-only")
    assert {"cblas_cgemm", "zgesdd_"} <= exported <= symbols(program, "-D", "--undefined-only")


def test_old_processors_share_the_kernels_of_a_relative() -> None:
    with importing("bazel") as load:
        shared_tables = load("openblas_subset").shared_tables
    assert shared_tables({"gotoblas_PRESCOTT", "gotoblas_ATOM", "gotoblas_HASWELL"}) == [
        "-Wl,--defsym=gotoblas_ATOM=gotoblas_PRESCOTT"
    ]
    # On Arm no table has these names.
    assert shared_tables({"gotoblas_ARMV8", "gotoblas_NEOVERSEN1"}) == []


@pytest.mark.slow
@pytest.mark.builds
def test_the_wheel_of_the_system_carries_no_library(wheel: Path) -> None:  # noqa: F811
    command = ["bazel", "build", "//python_bindings:system_wheel"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    (made,) = (ROOT / "bazel-bin" / "python_bindings" / "system_wheel").glob("*.whl")
    assert "-linux_" in made.name and "-manylinux_" in wheel.name
    with zipfile.ZipFile(made) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
    assert "treadle/lib/libtreadle.so" in names
    assert not [name for name in names if name.startswith("treadle.libs/")]


def test_the_archive_of_the_sources(tmp_path: Path) -> None:
    program = "import backend, sys; print(backend.build_sdist(sys.argv[1]))"
    made = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", program, str(folder)],
            cwd=ROOT / "tools" / "packaging",
            capture_output=True,
            text=True,
            check=True,
        )
        made.append(folder / done.stdout.strip())
    assert made[0].read_bytes() == made[1].read_bytes()
    with tarfile.open(made[0]) as archive:
        names = archive.getnames()
        top = made[0].name.removesuffix(".tar.gz")
        assert (
            f"Version: {top.partition('-')[2]}\n"
            in archive.extractfile(f"{top}/PKG-INFO").read().decode()
        )
        for wanted in ("dev", "pyproject.toml", "native_functions.yaml", "core/tensor/tensor.h"):
            assert f"{top}/{wanted}" in names
        assert archive.getmember(f"{top}/dev").mode & 0o111

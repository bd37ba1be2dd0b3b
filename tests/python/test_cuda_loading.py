"""The CUDA backend is found when a device is first asked for, and where it is not, errors say what
is missing. These run without the package treadle-cuda and without a device.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import treadle

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("treadle_cuda") is not None, reason="treadle-cuda is installed"
)

MISSING = "the package treadle-cuda is not installed"


def run(program: str, *folders: Path) -> str:
    path = [str(Path(treadle.__file__).parents[1]), *map(str, folders)]
    before = f"import sys; sys.path[:0] = {path!r}\n"
    result = subprocess.run(
        [sys.executable, "-c", before + program], capture_output=True, text=True, check=True
    )
    return result.stdout


def test_there_is_no_device_without_the_package() -> None:
    assert not treadle.cuda.is_available() and treadle.cuda.device_count() == 0
    with pytest.raises(RuntimeError) as raised:
        treadle.zeros(2, device="cuda")
    assert str(raised.value) == (
        f"expected a device that has memory, got cuda, for which no backend is loaded: {MISSING}"
    )
    with pytest.raises(RuntimeError) as raised:
        treadle.cuda.synchronize()
    assert str(raised.value) == f"cuda.synchronize: expected a CUDA device, got none: {MISSING}"


def test_the_package_is_looked_for_when_a_device_is_asked_for(tmp_path: Path) -> None:
    package = tmp_path / "treadle_cuda"
    package.mkdir()
    library = package / "missing.so"
    (package / "__init__.py").write_text(f"LIBRARY = {str(library)!r}\n")
    shown = run(
        "import treadle\n"
        "print('treadle_cuda' in sys.modules)\n"
        "print(treadle.cuda.is_available(), 'treadle_cuda' in sys.modules)\n"
        "try:\n    treadle.ones(1).to('cuda')\n"
        "except RuntimeError as error:\n    print(error)\n",
        tmp_path,
    ).splitlines()
    assert shown[:2] == ["False", "False True"]
    assert shown[2].startswith(
        "expected a device that has memory, got cuda, for which no backend is loaded: "
        f"{library}: expected a shared library that can be loaded, got: "
    )
    assert len(shown) == 3


def test_what_was_imported_before_the_backend_finds_its_functions() -> None:
    """The module's functions are those of the backend once there is one."""
    from treadle import _devices

    refused = _devices.refusals("cuda")("synchronize")
    assert refused.__module__ == "treadle.cuda" and refused.__name__ == "synchronize"
    with pytest.raises(RuntimeError, match="cuda.synchronize: expected a CUDA device"):
        refused()

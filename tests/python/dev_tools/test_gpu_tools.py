"""The scripts that try a GPU: what `./dev gpu` says of a pack that is too large, and what tools/gpu
says on a machine without a device, of wheels that do not fit, and of a program that does not end.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Iterator

import pytest

import source_tree
from tool_modules import importing

ROOT = Path(os.environ.get("TREADLE_SOURCE", source_tree.ROOT))
TAG = "cp%d%d" % sys.version_info[:2]


def wheel(folder: Path, name: str, files: dict[str, str]) -> Path:
    path = folder / f"{name}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for place, text in files.items():
            archive.writestr(place, text)
    return path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(ROOT / "tools" / "gpu"), *arguments]
    options = ["--pack", str(folder), "--output", str(folder / "results")]
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [*command, *options], capture_output=True, text=True, env=environment, timeout=100
    )


def test_wheels_are_needed(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.returncode == 1
    assert result.stderr == (
        f"tools/gpu: expected wheels in {tmp_path}, got none; make them: ./dev gpu\n"
    )


def test_wheels_are_for_one_python(tmp_path: Path) -> None:
    wheel(tmp_path, "treadle-0-cp30-cp30-linux", {})
    result = run(tmp_path)
    assert result.stderr == (
        f"tools/gpu: expected wheels for {TAG}, of the Python that runs this, got "
        "treadle-0-cp30-cp30-linux.whl; make them: ./dev gpu --python "
        f"{Path(sys.executable).name}\n"
    )


def test_a_machine_without_a_device_is_told(tmp_path: Path) -> None:
    refusing = "def empty(n, device):\n    raise RuntimeError('empty: expected ' + device)\n"
    wheel(tmp_path, f"treadle-0-{TAG}-{TAG}-linux", {"treadle/__init__.py": refusing})
    result = run(tmp_path)
    assert result.returncode == 1
    assert result.stderr == (
        "tools/gpu: expected cuda to be there, got: RuntimeError: empty: expected cuda\n"
    )


def test_parts_have_names(tmp_path: Path) -> None:
    result = run(tmp_path, "walking")
    assert result.returncode == 1
    assert result.stderr.startswith("tools/gpu: expected a part (on_device, operators, ")
    assert result.stderr.endswith("), got walking\n")


@pytest.fixture
def modules() -> Iterator[Any]:
    """Imports modules of the tools by their folder, and forgets them."""
    with ExitStack() as stack:
        yield lambda folder, name: stack.enter_context(importing(folder))(name)


def test_the_tests_that_the_tools_name_are_there(modules: Any) -> None:
    gpu, dev = modules("gpu", "parts"), modules("dev", "tests")
    named = [*gpu.OPERATORS, *dev.DEVICE_TESTS_ALWAYS, *(p for some in dev.EMULATED for p in some)]
    assert len(named) > 10 and not [path for path in named if not (ROOT / path).is_file()]


def test_a_program_is_interrupted_when_its_time_is_over(modules: Any, tmp_path: Path) -> None:
    setting = modules("gpu", "setting")
    # It says how far it came, with all that it started.
    command = ["sh", "-c", "trap 'echo interrupted; exit' INT; echo begun; sleep 1000"]
    outcome = setting.run(command, 3, {}, tmp_path / "log", "waiting")
    assert outcome.status is None and outcome.said == "ran out of time"
    assert outcome.text == "begun\ninterrupted\n" and outcome.last == "interrupted"
    assert "==== waiting" in (tmp_path / "log").read_text()
    outcome = setting.run([sys.executable, "-c", "exit(3)"], 50, {}, tmp_path / "log", "failing")
    assert outcome.said == "failed (status 3)"


def test_a_pack_that_is_too_large_says_what_is(
    modules: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    gpu = modules("dev", "gpu")
    made = wheel(tmp_path, "one", {"large.so": "x" * 3_000_000, "small.py": "x" * 500_000})
    monkeypatch.setattr(gpu, "FOLDER", gpu.ROOT / "build" / f"gpu-test-{os.getpid()}")
    try:
        gpu.pack([made])
        assert capsys.readouterr().out == (
            f"[dev] build/gpu-test-{os.getpid()} has 3.3 MiB: one.whl 3.3 MiB\n"
        )
        monkeypatch.setattr(gpu, "MOST_BYTES", 1 << 20)
        with pytest.raises(gpu.DevError) as error:
            gpu.pack([made])
        assert str(error.value) == (
            f"{gpu.FOLDER} has 3.3 MiB, of at most 1.0 MiB: one.whl 3.3 MiB; the largest files are "
            "large.so (2.9 MiB), small.py (0.5 MiB)"
        )
    finally:
        gpu.shutil.rmtree(gpu.FOLDER, ignore_errors=True)
    with pytest.raises(gpu.DevError) as error:
        gpu.interpreter("no-such-python")
    assert str(error.value) == (
        "no-such-python was not found, or does not run; name a Python of the version that the "
        "machine with the GPU has: ./dev gpu --python /path/to/python3.12"
    )

"""Where a run takes place: the wheels of `./dev gpu` unpacked, the environment in which programs
find them, and programs that are stopped when their time is over.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import hashlib
import os
import signal
import site
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent / "programs"


@dataclass
class Setting:
    """One run: the device, the folder of the package, and where output goes."""

    device: str
    package: Path
    output: Path
    quick: bool = False
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def treadle(self) -> list[str]:
        """The command that runs a program with Treadle in the place of torch."""
        return [sys.executable, "-m", "treadle.run"]

    def run(self, command: list[str], seconds: float, title: str, **variables: str) -> "Outcome":
        """Runs a command with the package and environment variables, its output in the log, too."""
        environment = {**self.environment, **variables}
        return run(command, seconds, environment, self.output / "gpu.log", title)


@dataclass(frozen=True)
class Outcome:
    """The output of a command, and its exit status: None where its time was over."""

    status: Optional[int]
    text: str

    @property
    def said(self) -> str:
        """How it ended, for a table."""
        if self.status == 0:
            return "pass"
        return "ran out of time" if self.status is None else f"failed (status {self.status})"

    @property
    def last(self) -> str:
        """The last line that is not empty."""
        return next((line for line in reversed(self.text.splitlines()) if line.strip()), "")


def run(
    command: list[str], seconds: float, environment: dict[str, str], log: Path, title: str
) -> Outcome:
    """Runs a command for at most so many seconds; then it is interrupted, so that it can say how
    far it came, and killed if it goes on."""
    with tempfile.TemporaryFile("w+", errors="replace") as text:
        process = subprocess.Popen(
            command, env={**os.environ, **environment}, cwd=ROOT, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=text, stderr=subprocess.STDOUT,
            # A command that a shell runs in the background ignores interrupts, and so would this.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        status: Optional[int] = None
        try:
            status = process.wait(max(seconds, 1))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        text.seek(0)
        shown = text.read()
    with log.open("a") as whole:
        whole.write(f"\n==== {title}: {' '.join(command)}\n{shown}")
    return Outcome(status, shown)


def unpacked(folder: Path) -> Path:
    """The folder for PYTHONPATH, with what the wheels in `folder` hold. It is kept, by their bytes,
    for a later run."""
    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        raise SystemExit(f"tools/gpu: expected wheels in {folder}, got none; make them: ./dev gpu")
    tag = "cp%d%d" % sys.version_info[:2]
    for wheel in wheels:
        if not any(f"-{fits}-" in wheel.name for fits in (tag, "py3")):
            raise SystemExit(
                f"tools/gpu: expected wheels for {tag}, of the Python that runs this, got "
                f"{wheel.name}; make them: ./dev gpu --python {Path(sys.executable).name}"
            )
    key = hashlib.sha256(b"".join(wheel.read_bytes() for wheel in wheels)).hexdigest()[:16]
    target = Path(tempfile.gettempdir()) / f"treadle-gpu-{os.getuid()}-{key}"
    if not (target / "complete").exists():
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(target)
        (target / "complete").touch()
    return target


def environment(package: Path, output: Path) -> dict[str, str]:
    """Variables for programs: where the package is, and the libraries of NVIDIA that came with
    PyTorch's packages."""
    places = [*site.getsitepackages(), site.getusersitepackages()]
    places += [path for path in sys.path if path.endswith("site-packages")]
    folders = {str(lib) for place in places for lib in Path(place).glob("nvidia/*/lib")}
    libraries = [*sorted(folders), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    inherited = [path for path in [os.environ.get("PYTHONPATH")] if path]
    return {
        "PYTHONPATH": os.pathsep.join([str(package), *inherited]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LD_LIBRARY_PATH": os.pathsep.join(libraries),
        "TREADLE_SOURCE": str(ROOT),
        "TREADLE_CUDA_CACHE": str(package / "kernels"),
    }

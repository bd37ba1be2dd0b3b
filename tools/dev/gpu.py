"""./dev gpu: packs what a machine with a GPU needs to try the CUDA backend, and says what to run
there.

    ./dev gpu                                  # Python 3.12, compute capability 9.0
    ./dev gpu --python python3.11 --architecture 80

The package is made for one Python, so the wheels are built for that of the machine with the GPU,
which needs no network and no compiler: build/gpu then holds them, and nothing else. Tests, examples
and benchmarks are those of the tree, which goes there too.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import bazel
import environment
from ui import ROOT, DevError, say

FOLDER = ROOT / "build" / "gpu"
MOST_BYTES = 64 << 20
WHEELS = (bazel.WHEEL, bazel.TESTING_WHEEL, "//python_bindings:cuda_wheel")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--python", default="python3.12", help="of the version that the other machine has"
    )
    parser.add_argument(
        "--architecture", default="90", help="compute capability of the GPU: 80, 90 (the default)"
    )


def main(args: argparse.Namespace) -> int:
    environment.prepare()
    base, tag = interpreter(args.python)
    python = ROOT / "build" / f"gpu-{tag}"
    environment.virtual_environment(
        python,
        ["-r", str(environment.REQUIREMENTS)],
        environment.REQUIREMENTS.read_bytes(),
        f"Python packages for {tag}",
        base=base,
    )
    config = bazel.Config(
        "cuda",
        (
            f"--define=treadle_cuda_architectures={args.architecture}",
            f"--repo_env=TREADLE_PYTHON={python / 'bin' / 'python'}",
        ),
    )
    output = bazel.build(config, *WHEELS)
    wheels = [bazel.wheel_of(output, target) for target in WHEELS]
    pack(wheels)
    # Another machine's run of it, and what it runs, are described in tools/gpu.
    say("on a machine with a GPU, in the root of a copy of this tree with build/gpu in it, run:")
    version = ".".join((tag[2], tag[3:]))
    print(f"python{version} tools/gpu --output build/gpu-results")
    return 0


def interpreter(name: str) -> tuple[str, str]:
    """The path of a Python and the tag of what is built for it: "/usr/bin/python3.12", "cp312"."""
    program = "import sys; print(sys.executable); print('cp%d%d' % sys.version_info[:2])"
    try:
        asked = subprocess.run([name, "-c", program], capture_output=True, text=True)
        lines = asked.stdout.split()
    except OSError:
        lines = []
    if len(lines) != 2:
        raise DevError(
            f"{name} was not found, or does not run; name a Python of the version that the machine "
            "with the GPU has: ./dev gpu --python /path/to/python3.12"
        )
    return lines[0], lines[1]


def pack(wheels: list[Path]) -> None:
    """Puts the wheels into the folder, and says how large they are."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    for wheel in wheels:
        shutil.copyfile(wheel, FOLDER / wheel.name)
    sizes = {wheel.name: os.path.getsize(wheel) for wheel in wheels}
    shown = ", ".join(f"{name} {mebibytes(size)}" for name, size in sizes.items())
    total = sum(sizes.values())
    if total > MOST_BYTES:
        raise DevError(
            f"{FOLDER} has {mebibytes(total)}, of at most {mebibytes(MOST_BYTES)}: {shown}; the "
            f"largest files are {', '.join(largest(wheels))}"
        )
    say(f"{FOLDER.relative_to(ROOT)} has {mebibytes(total)}: {shown}")


def largest(wheels: list[Path], count: int = 6) -> list[str]:
    """The files that take most, compressed."""
    members = [member for wheel in wheels for member in zipfile.ZipFile(wheel).infolist()]
    members.sort(key=lambda member: -member.compress_size)
    return [f"{member.filename} ({mebibytes(member.compress_size)})" for member in members[:count]]


def mebibytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"

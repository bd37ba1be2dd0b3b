"""./dev gpu: packs what a machine with a GPU needs to try the CUDA backend, and says what to run
there; or tries the backend here, on an emulated device.

    ./dev gpu                                  # Python 3.12, compute capability 9.0
    ./dev gpu --python python3.11 --architecture 80
    ./dev gpu --emulated                       # the tests of operators, without a GPU
    ./dev gpu --emulated -k softmax tests/python/test_gradients.py

The package is made for one Python, so the wheels are built for that of the machine with the GPU,
which needs no network and no compiler: build/gpu then holds them, and nothing else. Tests, examples
and benchmarks are those of the tree, which goes there too.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import bazel
import environment
import tests
from ui import ROOT, DevError, run, say

FOLDER = ROOT / "build" / "gpu"
MOST_BYTES = 64 << 20
EMULATED = "aten/cuda/emulator:libtreadle_cuda_emulated.so"
EMULATED_TESTS = [f"tests/python/test_{name}.py" for name in ("operators", "gradients")]
WHEELS = {"treadle": "//python_bindings:wheel", "treadle_cuda": "//python_bindings:cuda_wheel"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--python", default="python3.12", help="of the version that the other machine has"
    )
    parser.add_argument(
        "--architecture", default="90", help="compute capability of the GPU: 80, 90 (the default)"
    )
    parser.add_argument(
        "--emulated", action="store_true", help="run tests here, the kernels compiled for the host"
    )
    parser.add_argument("-k", metavar="NAME", help="with --emulated: tests whose name has NAME")
    parser.add_argument(
        "--fences",
        action="store_true",
        help="with --emulated: stop where a kernel leaves a tensor's memory",
    )
    parser.add_argument("paths", nargs="*", help="with --emulated: these test files")


def main(args: argparse.Namespace) -> int:
    environment.prepare()
    if args.emulated:
        return emulate(args)
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
    output = bazel.build(config, *WHEELS.values())
    wheels = [newest(output / "python_bindings", f"{name}-*-{tag}-{tag}-*.whl") for name in WHEELS]
    pack(wheels)
    # Another machine's run of it, and what it runs, are described in tools/gpu.
    say("on a machine with a GPU, in the root of a copy of this tree with build/gpu in it, run:")
    version = ".".join((tag[2], tag[3:]))
    print(f"python{version} tools/gpu --output build/gpu-results")
    return 0


def emulate(args: argparse.Namespace) -> int:
    """Runs tests with the emulator (aten/cuda/emulator) as the device cuda."""
    package = bazel.build_package(bazel.Config())
    library = bazel.build(bazel.Config("cuda"), f"//{EMULATED}") / EMULATED.replace(":", "/")
    variables = tests.python_environment(bazel.Config(), package) | {
        "OMP_WAIT_POLICY": "passive",
        "TREADLE_CUDA_CACHE": str(ROOT / "build" / "emulated-kernels"),
    }
    if args.fences:
        variables |= {"TREADLE_CUDA_KEEP_MEMORY": "0", "TREADLE_EMULATOR_FENCES": "1"}
    command = [str(environment.PYTHON), "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal"]
    command += ["--device", "cuda", "--backend", str(library)]
    if args.k:
        command += ["-k", args.k]
    return run([*command, *(args.paths or EMULATED_TESTS)], env=variables)


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


def newest(folder: Path, pattern: str) -> Path:
    """The file of a pattern that was made last."""
    return max(folder.glob(pattern), key=lambda path: path.stat().st_mtime)


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

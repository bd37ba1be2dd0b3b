"""What a report of a fault should say of the machine: `python -m treadle.utils.collect_env`."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import treadle

# Packages whose versions matter to a program that uses this one.
PIP_PATTERNS = "torch numpy mypy flake8 treadle triton optree onnx nccl nvidia cuda".split()


class SystemEnv(NamedTuple):
    """What is known; None for what is not."""

    version: str
    follows: str
    os: str
    platform: str
    libc: str
    gcc_version: Optional[str]
    clang_version: Optional[str]
    cmake_version: Optional[str]
    python_version: str
    python_platform: str
    devices: str
    threads: str
    pip_packages: str
    cpu_info: str


def run(command: Any) -> Tuple[int, str, str]:
    """The status, the output and the errors of a program; 127 where it is not there."""
    words: Sequence[str] = command.split() if isinstance(command, str) else command
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 127, "", str(error)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def run_and_read_all(run_lambda: Any, command: Any) -> Optional[str]:
    """What a program says; None where it fails."""
    status, output, _ = run_lambda(command)
    return output if status == 0 else None


def run_and_parse_first_match(run_lambda: Any, command: Any, regex: str) -> Optional[str]:
    """The first group of a pattern in what a program says."""
    found = re.search(regex, run_and_read_all(run_lambda, command) or "")
    return None if found is None else found.group(1)


def get_gcc_version(run_lambda: Any) -> Optional[str]:
    """The version of gcc."""
    return run_and_parse_first_match(run_lambda, "gcc --version", r"gcc (.*)")


def get_clang_version(run_lambda: Any) -> Optional[str]:
    """The version of clang."""
    return run_and_parse_first_match(run_lambda, "clang --version", r"clang version (.*)")


def get_cmake_version(run_lambda: Any) -> Optional[str]:
    """The version of CMake."""
    return run_and_parse_first_match(run_lambda, "cmake --version", r"cmake (.*)")


def get_platform() -> str:
    """The kind of system: linux."""
    return sys.platform


def get_os(run_lambda: Any) -> str:
    """The name and version of the system."""
    try:
        described = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        described = platform.platform()
    return f"{described} ({platform.machine()})"


def get_python_platform() -> str:
    """What Python calls the platform."""
    return platform.platform()


def get_libc_version() -> str:
    """The C library and its version."""
    return "-".join(platform.libc_ver())


def get_cpu_info(run_lambda: Any) -> str:
    """What lscpu says, or else the name and number of processors."""
    found = run_and_read_all(run_lambda, "lscpu")
    return found or f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors"


def get_pip_packages(run_lambda: Any, patterns: Optional[List[str]] = None) -> Tuple[str, str]:
    """"pip", and the packages whose names have one of the patterns, a line each."""
    wanted = PIP_PATTERNS if patterns is None else patterns
    found = {
        f"{d.metadata['Name']}=={d.version}"
        for d in importlib.metadata.distributions()
        if any(pattern in (d.metadata["Name"] or "") for pattern in wanted)
    }
    return "pip", "\n".join(sorted(found))


def get_env_info() -> SystemEnv:
    """All of it."""
    from treadle import _version

    device = treadle.accelerator.current_accelerator()
    return SystemEnv(
        version=_version.__version__,
        follows=_version.FOLLOWED,
        os=get_os(run),
        platform=get_platform(),
        libc=get_libc_version(),
        gcc_version=get_gcc_version(run),
        clang_version=get_clang_version(run),
        cmake_version=get_cmake_version(run),
        python_version=sys.version.replace("\n", " "),
        python_platform=get_python_platform(),
        devices="cpu" if device is None else f"cpu, {device.type}",
        threads=str(treadle.get_num_threads()),
        pip_packages=get_pip_packages(run)[1],
        cpu_info=get_cpu_info(run),
    )


def pretty_str(envinfo: SystemEnv) -> str:
    """As text, a line for each."""
    lines = [
        f"Treadle version: {envinfo.version}, follows PyTorch {envinfo.follows}",
        f"Devices: {envinfo.devices}",
        f"Threads: {envinfo.threads}",
        "",
        f"OS: {envinfo.os}",
        f"GCC version: {envinfo.gcc_version or 'not found'}",
        f"Clang version: {envinfo.clang_version or 'not found'}",
        f"CMake version: {envinfo.cmake_version or 'not found'}",
        f"Libc version: {envinfo.libc}",
        "",
        f"Python version: {envinfo.python_version}",
        f"Python platform: {envinfo.python_platform}",
        "",
        "CPU:",
        envinfo.cpu_info,
        "",
        "Versions of relevant libraries:",
        *(f"[pip] {line}" for line in envinfo.pip_packages.splitlines()),
    ]
    return "\n".join(lines)


def get_pretty_env_info() -> str:
    """get_env_info() as text."""
    return pretty_str(get_env_info())


def main() -> None:
    """Write it to the output of the program."""
    sys.stdout.write(get_pretty_env_info() + "\n")


if __name__ == "__main__":
    main()

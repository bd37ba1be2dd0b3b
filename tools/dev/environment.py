"""Sets up what the build needs: system packages, a virtual environment, and Bazel's local options.

Everything is looked at before it is touched: where it is all there, this takes a tenth of a second.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import fcntl
import getpass
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Iterator

from ui import ROOT, DevError, run_quietly, say, step

VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
REQUIREMENTS = ROOT / "tools" / "requirements.txt"
# Formatter, linter, type checker, documentation generator: an environment of its own, since neither
# the build nor the demo needs them.
CHECKERS = ROOT / "build" / "checkers"
CHECKERS_REQUIREMENTS = ROOT / "tools" / "requirements-checkers.txt"
PACKAGES = ROOT / "tools" / "packages.txt"
SHARED_MEMORY = Path("/dev/shm")
AARCH64_PACKAGES = ROOT / "tools" / "packages-aarch64.txt"


def prepare() -> None:
    """All of the set-up."""
    system_packages()
    key = REQUIREMENTS.read_bytes()
    virtual_environment(VENV, ["-r", str(REQUIREMENTS)], key, "Python packages")
    bazel_options()


def checkers() -> None:
    """Sets up the tools that check sources and make the documentation."""
    install = ["-r", str(CHECKERS_REQUIREMENTS)]
    key = CHECKERS_REQUIREMENTS.read_bytes()
    virtual_environment(CHECKERS, install, key, "Checkers")


def system_packages() -> None:
    """Installs the system packages that are missing."""
    wanted = listed(PACKAGES)
    if sysconfig.get_paths()["include"].startswith("/usr/include"):
        wanted += ["python3-dev", "python3-venv"]
    install_packages(wanted)


def listed(file: Path) -> list[str]:
    """The packages that a file names."""
    return [line for line in file.read_text().splitlines() if line and not line.startswith("#")]


def install_packages(wanted: list[str]) -> None:
    """Installs those of the packages that are missing."""
    if shutil.which("dpkg-query") is None:
        if shutil.which("bazel") is None:
            raise DevError(
                "this machine has neither Debian packages nor bazel; install what these hold: "
                + " ".join(wanted)
            )
        return
    listing = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *wanted],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    found = [line.split() for line in listing.stdout.splitlines()]
    present = {package for package, status in found if status == "installed"}
    missing = [package for package in wanted if package not in present]
    if not missing:
        return
    command = ["apt-get"]
    if os.geteuid() != 0:
        if shutil.which("sudo") is None:
            raise DevError("no sudo; as root, run: apt-get install " + " ".join(missing))
        command = ["sudo", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    environment = {"DEBIAN_FRONTEND": "noninteractive"}
    with step("System packages: " + " ".join(missing)):
        run_quietly([*command, "update"], "apt-get update", environment)
        install = [*command, "install", "-y", "--no-install-recommends", *missing]
        run_quietly(install, "apt-get install", environment)


def aarch64() -> None:
    """Sets up what builds and runs code for 64-bit Arm: a compiler, an emulator, libraries.

    The libraries are unpacked into a folder of their own, so the system keeps one architecture.
    """
    packages = listed(AARCH64_PACKAGES)
    install_packages([p for p in packages if ":" not in p])
    folder = aarch64_folder()
    stamp = folder / "treadle.stamp"
    if stamp.exists() and stamp.read_text() == AARCH64_PACKAGES.read_text():
        return
    if shutil.which("apt-get") is None:
        raise DevError("apt-get fetches the libraries for 64-bit Arm, and was not found")
    shutil.rmtree(folder, ignore_errors=True)
    apt = folder / "apt"
    for place in ("lists/partial", "archives/partial"):
        (apt / place).mkdir(parents=True)
    (apt / "status").touch()
    (apt / "apt.conf").write_text(
        f'Dir::State::Lists "{apt}/lists";\n'
        f'Dir::State::status "{apt}/status";\n'
        f'Dir::Cache "{apt}";\n'
        f'APT::Sandbox::User "{getpass.getuser()}";\n'
        'APT::Architecture "arm64";\nAPT::Architectures { "arm64"; };\n'
    )
    variables = {"APT_CONFIG": str(apt / "apt.conf")}
    with step(f"Libraries for 64-bit Arm into {folder}"):
        run_quietly(["apt-get", "update"], "apt-get update", variables)
        names = [p for p in packages if ":" in p]
        fetch = 'cd "$0" && apt-get download "$@"'
        run_quietly(["sh", "-c", fetch, str(apt), *names], "apt-get download", variables)
        for archive in sorted(apt.glob("*.deb")):
            run_quietly(["dpkg-deb", "-x", str(archive), str(folder)], "dpkg-deb")
        shutil.rmtree(apt)
        stamp.write_text(AARCH64_PACKAGES.read_text())


def aarch64_folder() -> Path:
    """The folder of the libraries for 64-bit Arm."""
    return cache_folder() / "aarch64"


def virtual_environment(
    folder: Path, install: list[str], key: bytes, title: str, base: str = ""
) -> bool:
    """Makes `folder` a virtual environment holding `install`, unless it is one already.

    `key` stands for what is installed: the work is done again when it changes. `base`: the Python
    that it is made from, this one if none is named. True if it was done.
    """
    # An interpreter has several names; the environment stays whichever of them is used.
    base = os.path.realpath(base or getattr(sys, "_base_executable", sys.executable))
    digest = hashlib.sha256(key + f"{base} {sys.version}".encode()).hexdigest()
    stamp = folder / "treadle.stamp"

    def is_made() -> bool:
        has_python = (folder / "bin" / "python").exists()
        return has_python and stamp.exists() and stamp.read_text() == digest

    if is_made():
        return False
    with _one_at_a_time():
        if is_made():  # by the run that this one waited for
            return False
        if folder.is_symlink():  # to the environment of another checkout, which keeps it
            folder.unlink()
        with step(f"{title} into {folder.relative_to(ROOT)}"):
            command = [base, "-m", "venv", "--clear", str(folder)]
            run_quietly(command, "making a virtual environment")
            pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
            run_quietly([*pip, "install", *install], "pip install")
            stamp.write_text(digest)
        return True


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Waits for other runs of ./dev that make environments: two would undo each other's work."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with open(cache_folder() / "environments.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def cache_folder() -> Path:
    """Where compiled objects are kept across checkouts; TREADLE_CACHE names another place."""
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "treadle"
    return Path(os.environ.get("TREADLE_CACHE", default)).absolute()


def has_room_in_memory(folder: Path) -> bool:
    """Whether the sandboxes of a build may lie in a folder of the memory.

    A sandbox is some 2,000 links to headers. On a disk, making and removing them takes a sixth of a
    clean build. Containers often have 64 MiB of shared memory, which one precompiled header fills.
    """
    if not os.access(folder, os.W_OK):
        return False
    return shutil.disk_usage(folder).free >= 2 << 30


def bazel_options() -> None:
    """Writes what differs between machines, so that a plain `bazel build` agrees with ./dev."""
    text = (
        "# Written by ./dev.\n"
        f"build --repo_env=TREADLE_PYTHON={PYTHON}\n"
        # The virtual environment of another Python has the same path.
        f"build --repo_env=TREADLE_PYTHON_IS={(VENV / 'treadle.stamp').read_text()}\n"
        f"build --repo_env=TREADLE_AARCH64={aarch64_folder()}\n"
        f"build --disk_cache={cache_folder() / 'bazel-disk'}\n"
    )
    if has_room_in_memory(SHARED_MEMORY):
        text += f"build --sandbox_base={SHARED_MEMORY}\n"
    options = ROOT / ".bazelrc.user"
    if not options.exists() or options.read_text() != text:
        options.write_text(text)
        say("wrote .bazelrc.user")

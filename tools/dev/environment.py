"""Sets up what the build needs: system packages, a virtual environment, and Bazel's local options.

Everything is looked at before it is touched: where it is all there, this takes a tenth of a second.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from ui import ROOT, DevError, run_quietly, say, step

VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
REQUIREMENTS = ROOT / "tools" / "requirements.txt"
# Formatter, linter, type checker, documentation generator: an environment of its own, since neither
# the build nor the demo needs them.
CHECKERS = ROOT / "build" / "checkers"
CHECKERS_REQUIREMENTS = ROOT / "tools" / "requirements-checkers.txt"
PACKAGES = ROOT / "tools" / "packages.txt"


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
    lines = PACKAGES.read_text().splitlines()
    wanted = [line for line in lines if line and not line.startswith("#")]
    if sysconfig.get_paths()["include"].startswith("/usr/include"):
        wanted += ["python3-dev", "python3-venv"]
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


def virtual_environment(
    folder: Path, install: list[str], key: bytes, title: str, base: str = ""
) -> bool:
    """Makes `folder` a virtual environment holding `install`, unless it is one already.

    `key` stands for what is installed: the work is done again when it changes. `base`: the Python
    that it is made from, this one if none is named. True if it was done.
    """
    base = base or getattr(sys, "_base_executable", sys.executable)
    digest = hashlib.sha256(key + f"{base} {sys.version}".encode()).hexdigest()
    stamp = folder / "treadle.stamp"
    if stamp.exists() and stamp.read_text() == digest and (folder / "bin" / "python").exists():
        return False
    with step(f"{title} into {folder.relative_to(ROOT)}"):
        run_quietly([base, "-m", "venv", "--clear", str(folder)], "making a virtual environment")
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        run_quietly([*pip, "install", *install], "pip install")
        stamp.write_text(digest)
    return True


def cache_folder() -> Path:
    """Where compiled objects are kept across checkouts; TREADLE_CACHE names another place."""
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "treadle"
    return Path(os.environ.get("TREADLE_CACHE", default)).absolute()


def bazel_options() -> None:
    """Writes what differs between machines, so that a plain `bazel build` agrees with ./dev."""
    text = (
        "# Written by ./dev.\n"
        f"build --repo_env=TREADLE_PYTHON={PYTHON}\n"
        # The virtual environment of another Python has the same path.
        f"build --repo_env=TREADLE_PYTHON_IS={(VENV / 'treadle.stamp').read_text()}\n"
        f"build --disk_cache={cache_folder() / 'bazel-disk'}\n"
    )
    options = ROOT / ".bazelrc.user"
    if not options.exists() or options.read_text() != text:
        options.write_text(text)
        say("wrote .bazelrc.user")

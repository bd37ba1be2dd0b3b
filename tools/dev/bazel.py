"""Runs Bazel, and lays out the Python package that it built, so that an edit is there in seconds.

`build/python/treadle` holds links to the sources, the extension and libtreadle.so: no wheel is
packed and nothing is installed, PYTHONPATH=build/python is enough.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from progress import run_bazel
from ui import ROOT, DevError, run, step

PACKAGE = "//python_bindings:package"
WHEEL = "//python_bindings:wheel"
SYSTEM_WHEEL = "//python_bindings:system_wheel"
TESTING_WHEEL = "//python_bindings:testing_wheel"
SCHEMAC = "//codegen/schemac"
THROWING_NEW = "//tools/sanitizers:throwing_new.so"


@dataclass(frozen=True)
class Config:
    """A way to build: Bazel's options for it, and the folder of the package that comes out."""

    name: str = ""
    more: tuple[str, ...] = ()

    @property
    def options(self) -> list[str]:
        options = [f"--config={self.name}", *self.more] if self.name else [*self.more]
        # TREADLE_TARGETS=sse4: vector code for one instruction set, three times quicker to compile.
        if targets := os.environ.get("TREADLE_TARGETS"):
            if targets != "sse4":
                raise DevError(f"expected TREADLE_TARGETS=sse4, got TREADLE_TARGETS={targets}")
            options.append(f"--define=treadle_targets={targets}")
        return options

    @property
    def package(self) -> Path:
        return ROOT / "build" / (f"python-{self.name}" if self.name else "python")


def bazel(command: str, *arguments: str) -> int:
    """One Bazel command; its progress goes to the terminal."""
    if shutil.which("bazel") is None:
        raise DevError("bazel was not found; install it with: apt-get install bazel-bootstrap")
    if command == "build":
        return run_bazel([command, *arguments])
    return run(["bazel", command, *arguments])


def build(config: Config, *targets: str) -> Path:
    """Builds targets; returns the folder of their outputs."""
    with step("Building " + " ".join(targets) + (f" ({config.name})" if config.name else "")):
        status = bazel("build", *config.options, *targets)
        if status:
            raise DevError("the build failed; the first error above says why", status)
    return (ROOT / "bazel-bin").resolve()


def build_package(config: Config) -> Path:
    """Builds the Python package and lays it out; returns the folder for PYTHONPATH."""
    targets = [PACKAGE, SCHEMAC]
    if config.name == "asan":
        targets.append(THROWING_NEW)
    lay_out(build(config, *targets), config.package)
    return config.package


def build_wheel(target: str = WHEEL) -> Path:
    """Builds the wheel; returns its path."""
    return wheel_of(build(Config(), target), target)


def wheel_of(output: Path, target: str) -> Path:
    """The wheel that a target has made: the one file in the folder of its name."""
    (wheel,) = (output / target.lstrip("/").replace(":", "/")).glob("*.whl")
    return wheel


def lay_out(output: Path, target: Path) -> None:
    """Makes `target` mirror the package's manifest with links, touching only what differs."""
    links = {}
    for line in (output / "python_bindings" / "package.manifest").read_text().splitlines():
        place, path = line.split("\t")
        # bazel-out/CONFIG/bin/..., another repository, or a path in the source tree.
        source = ROOT / path
        if path.startswith("bazel-out/"):
            source = output / path.split("/", 3)[3]
        elif path.startswith("external/"):
            # BASE/execroot/NAME/bazel-out/CONFIG/bin, and BASE/external.
            source = output.parents[4] / path
        links[place] = str(source)
    for folder, _, names in os.walk(target):
        if os.path.basename(folder) == "__pycache__":
            continue
        for name in names:
            file = Path(folder, name)
            place = str(file.relative_to(target))
            if file.is_symlink() and links.get(place) == os.readlink(file):
                del links[place]
            else:
                file.unlink()
    for place, path in links.items():
        file = target / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(path)

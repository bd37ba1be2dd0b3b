"""The build backend of pyproject.toml: pip's questions, answered by ./dev.

Usage:

    pip wheel .                                         the wheel with the libraries it needs
    pip wheel . --config-settings system-libraries=1    without those of the system
    python -m build --sdist                             an archive of the sources
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import gzip
import io
import os
import runpy
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any, Mapping, Optional

ROOT = Path(__file__).resolve().parents[2]
_Settings = Optional[Mapping[str, Any]]


def build_wheel(
    wheel_directory: str, config_settings: _Settings = None, metadata_directory: Any = None
) -> str:
    """Builds the wheel, copies it to a folder, returns its name."""
    target = "system_wheel" if (config_settings or {}).get("system-libraries") else "wheel"
    option = "--" + target.replace("_", "-")
    # Not the environment that pip makes for the build: ./dev makes one of its own.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(
        [sys.executable, str(ROOT / "tools" / "dev"), "build", option],
        cwd=ROOT,
        env=environment,
        check=True,
    )
    (wheel,) = (ROOT / "bazel-bin" / "python_bindings" / target).glob("*.whl")
    shutil.copyfile(wheel, Path(wheel_directory, wheel.name))
    return wheel.name


def build_sdist(sdist_directory: str, config_settings: _Settings = None) -> str:
    """Packs the sources, returns the archive's name. The same sources make the same bytes."""
    version = runpy.run_path(str(ROOT / "tools" / "bazel" / "version.bzl"))["VERSION"]
    name = f"treadle-{version}"
    metadata = (ROOT / "python_bindings" / "METADATA.in").read_text().replace("@VERSION@", version)
    archive = Path(sdist_directory, f"{name}.tar.gz")
    with (
        open(archive, "wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for place in sources():
            path = ROOT / place
            mode = 0o755 if os.access(path, os.X_OK) else 0o644
            _add(tar, f"{name}/{place}", path.read_bytes(), mode)
        _add(tar, f"{name}/PKG-INFO", metadata.encode(), 0o644)
    return archive.name


def _add(tar: tarfile.TarFile, place: str, data: bytes, mode: int) -> None:
    info = tarfile.TarInfo(place)
    info.size, info.mode = len(data), mode
    tar.addfile(info, io.BytesIO(data))


def sources() -> list[str]:
    """The files of the project: what git tracks, or all of an unpacked archive."""
    if (ROOT / ".git").exists():
        listing = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True
        ).stdout
        return sorted(name for name in listing.split("\0") if name and (ROOT / name).is_file())
    made = {"build", ".venv", ".bazelrc.user", "PKG-INFO"}
    files = [path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file()]
    return sorted(
        str(path)
        for path in files
        if path.parts[0] not in made
        and not path.parts[0].startswith("bazel-")
        and "__pycache__" not in path.parts
    )

"""`torch` in an environment: `python -m treadle.run --install` writes it, --uninstall removes it.

    site-packages/treadle_as_torch.pth                  # puts the folder with torch.py on the path
    site-packages/torch-2.15.0+treadle.1.0.dist-info    # by which pip knows torch

Every program, notebook and worker of the environment then finds treadle by `import torch`, and
packages that require torch are content. `pip uninstall torch` removes it as well.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sysconfig
from pathlib import Path
from typing import Optional

from treadle import _names, version

NAME = "torch"
_INSTALLER = "treadle"
_PATH_FILE = "treadle_as_torch.pth"
_FOLDER = Path(__file__).resolve().parent.parent / "_as_torch"


class RefusedError(Exception):
    """The environment has a torch that is not treadle, or none to remove."""


def _place() -> Path:
    return Path(sysconfig.get_path("purelib"))


def _others() -> Optional[str]:
    """The version of a torch that the environment has from elsewhere; None if there is none."""
    places = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    for found in importlib.metadata.distributions(name=NAME, path=places):
        if (found.read_text("INSTALLER") or "").strip() != _INSTALLER:
            return found.version
    return "of unknown version" if any((Path(p) / NAME).is_dir() for p in places) else None


def _own() -> list[Path]:
    """The folders of metadata that were written here."""
    found = _place().glob(f"{NAME}-*.dist-info")
    marks = ((folder, folder / "INSTALLER") for folder in found)
    return [f for f, mark in marks if mark.exists() and mark.read_text().strip() == _INSTALLER]


def install() -> str:
    """Let the environment's Python find treadle by `import torch`; what was done. RefusedError
    where a torch from elsewhere is installed, OSError where nothing can be written."""
    place, other = _place(), _others()
    if other is not None:
        raise RefusedError(f"expected an environment without PyTorch, got torch {other} in {place}")
    number = str(version.__version__)
    folder = place / f"{NAME}-{number}.dist-info"
    _remove()
    folder.mkdir()
    texts = {
        "METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {number}\n"
        "Summary: Treadle, by the name of torch\n",
        "INSTALLER": f"{_INSTALLER}\n",
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: {_INSTALLER}\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (place / _PATH_FILE).write_text(f"{_FOLDER}\n")
    files = [_PATH_FILE, *(f"{folder.name}/{name}" for name in (*texts, "RECORD"))]
    (folder / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    return f"torch {number} in {place} is {_names.PACKAGE}"


def _remove() -> int:
    folders = _own()
    for folder in folders:
        shutil.rmtree(folder)
    path_file = _place() / _PATH_FILE
    if path_file.exists():
        os.unlink(path_file)
    return len(folders)


def uninstall() -> str:
    """Undo install(); what was done. RefusedError where it had not been done."""
    if not _remove():
        raise RefusedError(f"expected torch as --install writes it, got none in {_place()}")
    return f"removed torch from {_place()}"

"""hub.load: models from folders and repositories with a hubconf.py."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

import treadle
from treadle import hub
from treadle.hub import _repositories

CONF = '''
import beside
dependencies = ["numpy"]
import treadle

def tiny(size, scale=1.0):
    """A small one."""
    return treadle.ones(size) * scale + beside.shift

def _hidden():
    return None
'''


@pytest.fixture()
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "repository"
    made.mkdir()
    (made / "hubconf.py").write_text(CONF)
    (made / "beside.py").write_text("shift = 1.0")
    return made


@pytest.fixture()
def site(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place from which owner/name is fetched."""
    place = tmp_path / "site" / "owner" / "name" / "zipball"
    place.mkdir(parents=True)
    with zipfile.ZipFile(place / "v1", "w") as packed:
        for file in folder.iterdir():
            packed.write(file, f"owner-name-1234/{file.name}")
    monkeypatch.setattr(_repositories, "_SITE", (tmp_path / "site").as_uri())
    monkeypatch.setattr(hub, "_folder", str(tmp_path / "hub"))
    return place


def test_a_folder(folder: Path) -> None:
    made = hub.load(str(folder), "tiny", 2, source="local", scale=3.0)
    assert made.tolist() == [4.0, 4.0]


def test_a_repository_is_fetched_once_and_must_be_trusted(site: Path) -> None:
    with pytest.raises(RuntimeError) as error:
        hub.load("owner/name:v1", "tiny", 1)
    message = "hub: expected trust_repo=True to run the code of owner/name, got check"
    assert str(error.value) == message
    assert hub.load("owner/name:v1", "tiny", 1, trust_repo=True).tolist() == [2.0]
    (site / "v1").unlink()
    assert hub.load("owner/name:v1", "tiny", 1).tolist() == [2.0]  # trusted, and there
    assert hub.list("owner/name:v1") == ["tiny"]
    assert hub.help("owner/name:v1", "tiny") == "A small one."
    with pytest.raises(RuntimeError, match="^hub: expected trust_repo=True to run the code of"):
        hub.load("owner/name:v1", "tiny", 1, trust_repo=False)
    with pytest.raises(OSError):
        hub.load("owner/name:v1", "tiny", 1, force_reload=True)
    assert hub.list("owner/name:v1") == ["tiny"]  # what was there stays


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda f: hub.load(f, "_hidden", source="local"),
            RuntimeError,
            "hub: expected a function of hubconf.py, got '_hidden'",
        ),
        (
            lambda f: hub.load(f, 3, source="local"),
            ValueError,
            "hub: expected the name of a function, got int",
        ),
        (
            lambda f: hub.load(f, "tiny", source="elsewhere"),
            ValueError,
            "hub: expected source to be 'github' or 'local', got 'elsewhere'",
        ),
        (
            lambda f: hub.load("no repository", "tiny"),
            ValueError,
            "hub: expected a repository as owner/name[:reference], got 'no repository'",
        ),
        (
            lambda f: hub.load("owner/name", "tiny", trust_repo="maybe"),
            ValueError,
            "hub: expected trust_repo to be True, False or 'check', got maybe",
        ),
    ],
)
def test_what_cannot_be_loaded(folder: Path, call: Any, error: Any, message: str) -> None:
    with pytest.raises(error) as raised:
        call(str(folder))
    assert str(raised.value) == message


def test_missing_parts(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as error:
        hub.load(str(tmp_path), "tiny", source="local")
    assert str(error.value) == f"hub: expected a file hubconf.py in {tmp_path}, got none"
    (folder / "hubconf.py").write_text(CONF.replace("numpy", "no_such_package"))
    with pytest.raises(RuntimeError, match="^Missing dependencies: no_such_package$"):
        hub.load(str(folder), "tiny", 1, source="local")
    assert treadle.hub.MODULE_HUBCONF == "hubconf.py"

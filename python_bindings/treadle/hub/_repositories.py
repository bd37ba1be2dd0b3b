"""Models from folders and repositories that have a hubconf.py: what treadle.hub.load() does.

The functions of hubconf.py without an underscore before their names make the models;
`dependencies` there lists packages that must be installed. A repository is fetched once, as an
archive, into the folder of the hub. Its code runs only where the program says that it trusts it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import zipfile
from types import ModuleType
from typing import Any, Callable, Iterator, List, Optional, Tuple

from treadle import hub
from treadle.hub import MODULE_HUBCONF, VAR_DEPENDENCY

_SITE = "https://github.com"
_TRUSTED = "trusted_list"
_TRUSTED_OWNERS = ("facebookresearch", "facebookincubator", "pytorch", "fairinternal")


def _parts(github: str) -> Tuple[str, str, str]:
    """Owner, name and reference of "owner/name:reference"."""
    form = re.fullmatch(r"([\w.-]+)/([\w.-]+)(?::([\w./-]+))?", github)
    if form is None:
        raise ValueError(f"hub: expected a repository as owner/name[:reference], got '{github}'")
    return form[1], form[2], form[3] or "main"


def _check_trust(owner: str, name: str, trust_repo: Any) -> None:
    """RuntimeError unless the program, or the list of what was trusted before, says so."""
    if trust_repo not in (True, False, None, "check"):
        raise ValueError(f"hub: expected trust_repo to be True, False or 'check', got {trust_repo}")
    path = os.path.join(hub.get_dir(), _TRUSTED)
    key = f"{owner}_{name}"
    known: List[str] = []
    if os.path.exists(path):
        with open(path) as file:
            known = file.read().split()
    if trust_repo is True:
        if key not in known:
            os.makedirs(hub.get_dir(), exist_ok=True)
            with open(path, "a") as more:
                more.write(f"{key}\n")
        return
    if trust_repo is False or (key not in known and owner not in _TRUSTED_OWNERS):
        raise RuntimeError(
            f"hub: expected trust_repo=True to run the code of {owner}/{name}, got {trust_repo}"
        )


def _fetched(github: str, force_reload: bool, trust_repo: Any) -> str:
    """The folder of a repository, which is fetched if it is not there."""
    owner, name, reference = _parts(github)
    _check_trust(owner, name, trust_repo)
    folder = os.path.join(hub.get_dir(), f"{owner}_{name}_{reference.replace('/', '_')}")
    if os.path.exists(folder) and not force_reload:
        return folder
    os.makedirs(hub.get_dir(), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=hub.get_dir()) as place:
        archive = os.path.join(place, "archive.zip")
        hub.download_url_to_file(f"{_SITE}/{owner}/{name}/zipball/{reference}", archive)
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(os.path.join(place, "files"))
        (inside,) = os.listdir(os.path.join(place, "files"))
        if os.path.exists(folder):
            shutil.rmtree(folder)
        shutil.move(os.path.join(place, "files", inside), folder)
    return folder


@contextlib.contextmanager
def _module(folder: str) -> Iterator[ModuleType]:
    """hubconf.py of a folder, whose modules it can import."""
    path = os.path.join(folder, MODULE_HUBCONF)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"hub: expected a file {MODULE_HUBCONF} in {folder}, got none")
    spec = importlib.util.spec_from_file_location(MODULE_HUBCONF, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(folder)


def _check_packages(module: ModuleType) -> None:
    missing = [
        name
        for name in getattr(module, VAR_DEPENDENCY, None) or []
        if name not in sys.modules and importlib.util.find_spec(name) is None
    ]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")


def _folder(repo_or_dir: str, source: str, force_reload: bool, trust_repo: Any) -> str:
    if source == "local":
        return os.path.expanduser(repo_or_dir)
    if source != "github":
        raise ValueError(f"hub: expected source to be 'github' or 'local', got '{source}'")
    return _fetched(repo_or_dir, force_reload, trust_repo)


def _entry(module: ModuleType, name: Any) -> Callable[..., Any]:
    if not isinstance(name, str):
        raise ValueError(f"hub: expected the name of a function, got {type(name).__name__}")
    function = getattr(module, name, None)
    if not callable(function) or name.startswith("_"):
        raise RuntimeError(f"hub: expected a function of {MODULE_HUBCONF}, got '{name}'")
    _check_packages(module)
    return function


def list_models(repo: str, source: str, force_reload: bool, trust_repo: Any) -> List[str]:
    """The functions that make models."""
    with _module(_folder(repo, source, force_reload, trust_repo)) as module:
        return [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]


def text_of(
    repo: str, model: Any, source: str, force_reload: bool, trust_repo: Any
) -> Optional[str]:
    """The docstring of a function."""
    with _module(_folder(repo, source, force_reload, trust_repo)) as module:
        return _entry(module, model).__doc__


def make(
    repo: str,
    model: Any,
    source: str,
    force_reload: bool,
    trust_repo: Any,
    args: Tuple[Any, ...],
    kwargs: Any,
) -> Any:
    """The result of a function."""
    with _module(_folder(repo, source, force_reload, trust_repo)) as module:
        return _entry(module, model)(*args, **kwargs)

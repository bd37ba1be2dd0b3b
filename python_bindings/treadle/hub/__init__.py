"""Weights and models from the network, kept in a folder.

    treadle.hub.load_state_dict_from_url(url)
    treadle.hub.load("owner/name:v1", "a_model", pretrained=True, trust_repo=True)

A file that is in the folder already is not fetched again. The folder is the one that PyTorch uses:
`$TORCH_HOME/hub`, by default `~/.cache/torch/hub`.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import hashlib
import os
import re
from typing import Any, Dict, List, Optional
from urllib.parse import urlparse

from treadle import _names
from treadle._atomic_file import replacing

DEFAULT_CACHE_DIR = "~/.cache"
ENV_GITHUB_TOKEN = "GITHUB_TOKEN"  # noqa: S105  the name of a variable
ENV_TORCH_HOME = "TORCH_HOME"
ENV_XDG_CACHE_HOME = "XDG_CACHE_HOME"
# Where the name of a file has its hash: resnet18-f37072fd.pth.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
READ_DATA_CHUNK = 128 * 1024

_folder: Optional[str] = None


def _get_torch_home() -> str:
    """The folder of all that is kept between programs."""
    cache = os.environ.get(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR)
    return os.path.expanduser(os.environ.get(ENV_TORCH_HOME, os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder in which files are kept."""
    return os.path.join(_get_torch_home(), "hub") if _folder is None else _folder


def set_dir(d: Any) -> None:
    """Choose that folder."""
    global _folder
    _folder = os.path.expanduser(d)


def download_url_to_file(
    url: str, dst: str, hash_prefix: Optional[str] = None, progress: bool = True
) -> None:
    """Fetch a file. It is at `dst` whole or not at all. RuntimeError if its SHA-256 does not begin
    with `hash_prefix`. Nothing is printed, whatever `progress` says.
    """
    # Imported at its first use: it takes a while.
    from urllib.request import Request, urlopen

    digest = hashlib.sha256()
    with urlopen(Request(url, headers={"User-Agent": "treadle.hub"})) as source:
        with replacing(os.path.expanduser(dst)) as target:
            while chunk := source.read(READ_DATA_CHUNK):
                digest.update(chunk)
                target.write(chunk)
            found = digest.hexdigest()
            if hash_prefix is not None and not found.startswith(hash_prefix):
                raise RuntimeError(
                    f"download_url_to_file: expected a file whose hash begins with "
                    f"{hash_prefix!r}, got {found!r}"
                )


def load_state_dict_from_url(
    url: str,
    model_dir: Optional[str] = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: Optional[str] = None,
    weights_only: bool = False,
) -> Dict[str, Any]:
    """The result of treadle.load() for the file at `url` (http, https or file), which is kept in
    `model_dir`, by default get_dir()/checkpoints, under its name or `file_name`. With `check_hash`
    the name ends in the beginning of the file's SHA-256, as in `resnet18-f37072fd.pth`.
    """
    from treadle.serialization import load as _load

    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        in_name = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, in_name[1] if in_name else None, progress)
    return _load(path, map_location=map_location, weights_only=weights_only)


MODULE_HUBCONF = "hubconf.py"
VAR_DEPENDENCY = "dependencies"


def list(  # noqa: A001
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
    verbose: bool = True,
) -> List[str]:
    """The functions of a repository's hubconf.py that make models: see load()."""
    from treadle.hub import _repositories

    return _repositories.list_models(github, "github", force_reload, trust_repo)


def help(  # noqa: A001
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
) -> Optional[str]:
    """The docstring of such a function."""
    from treadle.hub import _repositories

    return _repositories.text_of(github, model, "github", force_reload, trust_repo)


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """The result of the function `model` of hubconf.py for the other arguments: in a folder, with
    source="local", or in a repository "owner/name:reference", which is fetched once.

    The code of a repository runs, so that the program must say trust_repo=True, now or once before;
    RuntimeError otherwise, and for an unknown function and packages that are missing.
    """
    from treadle.hub import _repositories

    return _repositories.make(repo_or_dir, model, source, force_reload, trust_repo, args, kwargs)


class _Progress:
    """A stand-in for tqdm where that is not installed: it counts and shows nothing."""

    def __init__(self, iterable: Any = None, total: Any = None, **settings: Any) -> None:
        self.iterable, self.total, self.n = iterable, total, 0

    def __iter__(self) -> Any:
        for item in self.iterable:
            self.n += 1
            yield item

    def update(self, n: int = 1) -> None:
        """Count."""
        self.n += n

    def set_description(self, desc: Any = None, refresh: bool = True) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""

    def __enter__(self) -> "_Progress":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


def __getattr__(name: str) -> Any:
    if name == "tqdm":  # imported at its first use
        try:
            from tqdm import tqdm
        except ImportError:
            tqdm = _Progress
        globals()["tqdm"] = tqdm
        return tqdm
    raise _names.missing(__name__, name)


__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

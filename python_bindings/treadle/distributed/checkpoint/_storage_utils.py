"""The storage of a save or a load that only names a place: a folder, or an address."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import inspect
import os
from typing import Any, Union

from treadle import distributed as dist
from treadle.distributed.checkpoint._file_reader import FileSystemReader
from treadle.distributed.checkpoint.filesystem import FileSystemWriter


def _storage_setup(
    storage: Any, checkpoint_id: Union[str, os.PathLike, None], reader: bool = False
) -> Any:
    """The storage, ready for another save or load."""
    function, name = ("load", "storage_reader") if reader else ("save", "storage_writer")
    if storage is None:
        if checkpoint_id is None:
            raise RuntimeError(f"{function}: expected checkpoint_id or {name}, got neither")
        storage = _storage_at(function, name, checkpoint_id, reader)
    storage.reset(checkpoint_id)
    return storage


def _storage_at(function: str, name: str, place: Union[str, os.PathLike], reader: bool) -> Any:
    if "://" not in os.fspath(place):
        return FileSystemReader(place) if reader else FileSystemWriter(place)
    from treadle.distributed.checkpoint.fsspec_filesystem import FsspecReader, FsspecWriter

    if not FsspecReader.validate_checkpoint_id(place):
        raise ValueError(
            f"{function}: expected checkpoint_id to be a folder, or an address that the package "
            f"fsspec knows, got {os.fspath(place)[:200]!r}; give a {name} for other places"
        )
    return FsspecReader(place) if reader else FsspecWriter(place)


def is_alone(no_dist: bool) -> bool:
    """Whether a save or a load is one of this process only."""
    return no_dist or not dist.is_initialized()


def with_known(function: Any, *args: Any, **kwargs: Any) -> Any:
    """The call of a method of a program's class, which may know fewer keyword arguments."""
    parameters = inspect.signature(function).parameters
    if any(p.kind == p.VAR_KEYWORD for p in parameters.values()):
        return function(*args, **kwargs)
    return function(*args, **{key: v for key, v in kwargs.items() if key in parameters})


__all__ = ["is_alone", "with_known"]

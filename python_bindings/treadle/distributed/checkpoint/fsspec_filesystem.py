"""Checkpoints at the addresses that the package `fsspec` knows: object stores, other machines,
memory. The package is imported when one is used.

    save(state, storage_writer=FsspecWriter("s3://bucket/step_100"))
    save(state, checkpoint_id="s3://bucket/step_100")           # the same
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, Iterator, List, Optional, Sequence

from treadle.distributed.checkpoint._file_reader import FileSystemReader
from treadle.distributed.checkpoint._files import AnyPath, FileSystemBase
from treadle.distributed.checkpoint.filesystem import FileSystemWriter, SerializationFormat


class _FileSystem(FileSystemBase):
    """The files of one address. `fs` is fsspec's object for it, once init_path() was called."""

    def __init__(self) -> None:
        self.fs: Any = None

    @contextlib.contextmanager
    def create_stream(self, path: AnyPath, mode: str) -> Iterator[Any]:
        with self.fs.open(os.fspath(path), mode) as stream:
            try:
                yield stream
            except BaseException:
                if mode[0] != "r":  # half a file is of no use
                    with contextlib.suppress(Exception):
                        self.rm_file(path)
                raise

    def concat_path(self, path: AnyPath, suffix: str) -> AnyPath:
        return os.path.join(path, suffix)

    def init_path(self, path: AnyPath, **settings: Any) -> AnyPath:
        from fsspec.core import url_to_fs  # type: ignore[import-not-found, unused-ignore]

        self.fs, _ = url_to_fs(path, **settings)
        return path

    def rename(self, path: AnyPath, new_path: AnyPath) -> None:
        self.fs.rename(path, new_path)

    def mkdir(self, path: AnyPath) -> None:
        self.fs.makedirs(path, exist_ok=True)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: AnyPath) -> bool:
        if isinstance(checkpoint_id, Path):
            return False
        try:
            from fsspec.core import url_to_fs

            url_to_fs(checkpoint_id)
        except (ImportError, ValueError):
            return False
        return True

    def exists(self, path: AnyPath) -> bool:
        return bool(self.fs.exists(path))

    def rm_file(self, path: AnyPath) -> None:
        self.fs.rm(path)

    def ls(self, path: AnyPath) -> List[str]:
        return list(self.fs.ls(path, detail=False))


class FsspecWriter(FileSystemWriter):
    """A FileSystemWriter for an address. More keyword arguments are settings of fsspec for it."""

    def __init__(
        self,
        path: AnyPath,
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        _extensions: Optional[Sequence[Any]] = None,
        serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            path,
            single_file_per_rank,
            sync_files,
            thread_count,
            per_thread_copy_ahead,
            cache_staged_state_dict,
            overwrite,
            _extensions,
            serialization_format,
        )
        self.fs = _FileSystem()
        self.path = self.fs.init_path(path, **kwargs)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: AnyPath) -> bool:
        return _FileSystem.validate_checkpoint_id(checkpoint_id)


class FsspecReader(FileSystemReader):
    """A FileSystemReader for an address. Keyword arguments are settings of fsspec for it."""

    def __init__(self, path: AnyPath, **kwargs: Any) -> None:
        super().__init__(path)
        self.fs = _FileSystem()
        self.path = self.fs.init_path(path, **kwargs)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: AnyPath) -> bool:
        return _FileSystem.validate_checkpoint_id(checkpoint_id)


__all__ = ["FsspecReader", "FsspecWriter"]

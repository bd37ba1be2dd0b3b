"""The files of a checkpoint: a folder on a disk, or what a program puts in its place."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import abc
import contextlib
import io
import os
from pathlib import Path
from typing import Any, Iterator, List, Union

from treadle._atomic_file import sync_directory

AnyPath = Union[str, os.PathLike]


class FileSystemBase(abc.ABC):
    """The functions of files that FileSystemWriter and FileSystemReader need."""

    @abc.abstractmethod
    def create_stream(self, path: AnyPath, mode: str) -> Any:
        """A context with the open file."""

    @abc.abstractmethod
    def concat_path(self, path: AnyPath, suffix: str) -> AnyPath:
        """The path of a file in a folder."""

    @abc.abstractmethod
    def rename(self, path: AnyPath, new_path: AnyPath) -> None:
        """Give a file another name, in one step; a file that had the name is gone then."""

    @abc.abstractmethod
    def init_path(self, path: AnyPath) -> AnyPath:
        """The path as the other functions take it."""

    @abc.abstractmethod
    def mkdir(self, path: AnyPath) -> None:
        """Make a folder, where there is none."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: AnyPath) -> bool:
        """Whether a checkpoint can be at a path."""

    @abc.abstractmethod
    def exists(self, path: AnyPath) -> bool:
        """Whether there is a file."""

    @abc.abstractmethod
    def rm_file(self, path: AnyPath) -> None:
        """Remove a file."""

    def ls(self, path: AnyPath) -> List[str]:
        """The paths of the files in a folder."""
        raise NotImplementedError(f"ls: expected {type(self).__name__} to define it, got none")


class FileSystem(FileSystemBase):
    """Folders on a disk."""

    @contextlib.contextmanager
    def create_stream(self, path: AnyPath, mode: str) -> Iterator[Any]:
        with open(path, mode) as stream:
            yield stream

    def concat_path(self, path: AnyPath, suffix: str) -> AnyPath:
        return Path(path) / suffix

    def init_path(self, path: AnyPath) -> AnyPath:
        return Path(path)

    def rename(self, path: AnyPath, new_path: AnyPath) -> None:
        os.replace(path, new_path)
        sync_directory(os.path.dirname(os.path.realpath(new_path)))

    def mkdir(self, path: AnyPath) -> None:
        Path(path).mkdir(parents=True, exist_ok=True)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: AnyPath) -> bool:
        if isinstance(checkpoint_id, Path):
            return True
        if "://" in str(checkpoint_id):
            return False
        return any(p.exists() and os.access(p, os.W_OK) for p in Path(checkpoint_id).parents)

    def exists(self, path: AnyPath) -> bool:
        return Path(path).exists()

    def rm_file(self, path: AnyPath) -> None:
        Path(path).unlink()

    def ls(self, path: AnyPath) -> List[str]:
        return [str(p) for p in Path(path).iterdir()]


class Section(io.RawIOBase):
    """Part of an open file that looks like a file of its own: from `begin` on, to be written, or of
    `length` bytes, to be read."""

    def __init__(self, file: Any, begin: int, length: int = -1) -> None:
        self._file = file
        self._begin = begin
        self._length = length
        file.seek(begin)

    def readable(self) -> bool:
        return self._length >= 0

    def writable(self) -> bool:
        return self._length < 0

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell() - self._begin

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_END and self._length < 0:
            return self._file.seek(offset, whence) - self._begin
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.tell(), os.SEEK_END: self._length}[whence]
        return self._file.seek(self._begin + max(start + offset, 0)) - self._begin

    def readinto(self, buffer: Any) -> int:
        left = min(max(self._length - self.tell(), 0), len(buffer))
        content = self._file.read(left)
        buffer[: len(content)] = content
        return len(content)

    def write(self, data: Any) -> int:
        return self._file.write(data)


__all__ = ["AnyPath", "FileSystem", "FileSystemBase", "Section"]

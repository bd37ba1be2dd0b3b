"""The older name of fsspec_filesystem."""

# SPDX-License-Identifier: Apache-2.0

from treadle.distributed.checkpoint.fsspec_filesystem import (
    FsspecReader,
    FsspecWriter,
    _FileSystem,
)

FileSystem = _FileSystem

__all__ = ["FsspecReader", "FsspecWriter"]

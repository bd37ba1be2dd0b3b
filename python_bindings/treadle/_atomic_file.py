"""Writing a file so that at every moment, whatever is killed, its path holds the old content or the
new one.

The new content goes to a file beside it, is brought to the disk, and then takes the old one's name
in one step.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import os
import stat
from typing import BinaryIO, Iterator


@contextlib.contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """A binary file to write to; it takes the place of `path` when the block ends without an
    exception."""
    path = os.path.realpath(path)
    try:
        status = os.stat(path)
    except FileNotFoundError:
        status = None
    if status is not None and not stat.S_ISREG(status.st_mode):
        # A device or a pipe has no old content to keep; a directory is refused here.
        with open(path, "wb") as file:
            yield file
        return
    directory, name = os.path.split(path)
    temporary = os.path.join(directory, f".{name[:100]}.{os.urandom(6).hex()}.tmp")
    descriptor = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666
    )
    try:
        with os.fdopen(descriptor, "wb") as file:
            if status is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(status.st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    sync_directory(directory)


def sync_directory(directory: str) -> None:
    """Bring the new name to the disk as well; some file systems cannot, and then it comes there
    later."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

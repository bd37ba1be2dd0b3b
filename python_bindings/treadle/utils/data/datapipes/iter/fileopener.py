"""FileOpener: paths become pairs of the path and the open file."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterable, Iterator, Optional, Tuple

from ..datapipe import IterDataPipe, functional_datapipe
from ..utils.common import get_file_binaries_from_pathnames


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(IterDataPipe):
    """(path, file) for each path; the file is closed with the last reference to it.

    mode: as for open(), "b" and "t" are "rb" and "rt"; encoding: of a text; length: what len()
    says, where it is known. Raises ValueError for a mode that does not read, and for an encoding of
    bytes.
    """

    def __init__(
        self,
        datapipe: Iterable[str],
        mode: str = "r",
        encoding: Optional[str] = None,
        length: int = -1,
    ) -> None:
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"open_files: expected mode r, rb, rt, b or t, got {mode!r}")
        if "b" in mode and encoding is not None:
            raise ValueError(
                f"open_files: expected no encoding with mode {mode!r}, got {encoding!r}"
            )
        self.datapipe, self.mode, self.encoding, self.length = datapipe, mode, encoding, length

    def __iter__(self) -> Iterator[Tuple[str, Any]]:
        yield from get_file_binaries_from_pathnames(self.datapipe, self.mode, self.encoding)

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError("open_files: expected a length to be given for len(), got none")
        return self.length


__all__ = ["FileOpenerIterDataPipe"]

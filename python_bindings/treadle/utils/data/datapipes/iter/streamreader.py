"""StreamReader: what is in open files."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator, Optional, Tuple

from ..datapipe import IterDataPipe, functional_datapipe


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe):
    """(path, what was read) for each pair of a path and an open file, which is then closed: the
    whole, or `chunk` bytes or letters at a time."""

    def __init__(self, datapipe: IterDataPipe, chunk: Optional[int] = None) -> None:
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self) -> Iterator[Tuple[str, Any]]:
        for path, stream in self.datapipe:
            try:
                while part := stream.read(self.chunk):
                    yield path, part
            finally:
                stream.close()


__all__ = ["StreamReaderIterDataPipe"]

"""FileLister: the paths of files in folders."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator, List, Sequence, Union

from ..datapipe import IterDataPipe, functional_datapipe, refuse_if_determinism_is_guaranteed
from ..utils.common import get_file_pathnames_from_root
from .utils import IterableWrapperIterDataPipe


@functional_datapipe("list_files")
class FileListerIterDataPipe(IterDataPipe):
    """The paths of the files in a folder, in several, or in those of a pipe, by name.

    masks: patterns of names that are taken; recursive: folders in it, too; abspath: whole paths;
    non_deterministic: as the system lists them; length: what len() says, where it is known.
    """

    def __init__(
        self,
        root: Union[str, Sequence[str], IterDataPipe] = ".",
        masks: Union[str, List[str]] = "",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ) -> None:
        if non_deterministic:
            refuse_if_determinism_is_guaranteed("list_files")
        roots: Any = [root] if isinstance(root, str) else root
        is_pipe = isinstance(roots, IterDataPipe)
        self.datapipe = roots if is_pipe else IterableWrapperIterDataPipe(roots)
        self.masks, self.recursive, self.abspath = masks, recursive, abspath
        self.non_deterministic, self.length = non_deterministic, length

    def __iter__(self) -> Iterator[str]:
        for folder in self.datapipe:
            yield from get_file_pathnames_from_root(
                folder, self.masks, self.recursive, self.abspath, self.non_deterministic
            )

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError("list_files: expected a length to be given for len(), got none")
        return self.length


__all__ = ["FileListerIterDataPipe"]

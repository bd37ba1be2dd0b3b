"""Files and arguments of pipes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import fnmatch
import io
import os
from typing import Any, Callable, Iterable, Iterator, List, Optional, Tuple, Union


def match_masks(name: str, masks: Union[str, List[str]]) -> bool:
    """Whether a name is of one of the patterns, or there are none."""
    patterns = [masks] if isinstance(masks, str) else masks
    return not masks or any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def get_file_pathnames_from_root(
    root: str,
    masks: Union[str, List[str]],
    recursive: bool = False,
    abspath: bool = False,
    non_deterministic: bool = False,
) -> Iterator[str]:
    """The paths of the files in a folder, or of the one file that `root` is, by name.

    masks: patterns of names that are taken; recursive: folders in it, too; abspath: whole paths;
    non_deterministic: as the system lists them. A folder that cannot be read raises OSError.
    """

    def stop(error: OSError) -> None:
        raise error

    if os.path.isfile(root):
        path = os.path.abspath(root) if abspath else root
        if match_masks(os.path.basename(path), masks):
            yield path
        return
    for folder, folders, files in os.walk(root, onerror=stop):
        place = os.path.abspath(folder) if abspath else folder
        if not non_deterministic:
            files.sort()
            folders.sort()
        for name in files:
            if match_masks(name, masks):
                yield os.path.join(place, name)
        if not recursive:
            return


def get_file_binaries_from_pathnames(
    pathnames: Iterable[str], mode: str, encoding: Optional[str] = None
) -> Iterator[Tuple[str, "StreamWrapper"]]:
    """For each path it and the open file; mode "b" and "t" are "rb" and "rt"."""
    mode = f"r{mode}" if mode in ("b", "t") else mode
    for pathname in pathnames:
        if not isinstance(pathname, str):
            raise TypeError(f"open_files: expected paths, got {type(pathname).__name__}")
        yield pathname, StreamWrapper(open(pathname, mode, encoding=encoding), name=pathname)


def validate_pathname_binary_tuple(data: Any) -> None:
    """Raise TypeError for what is no pair of a path and an open file."""
    fits = isinstance(data, tuple) and len(data) == 2 and isinstance(data[0], str)
    if not fits or not isinstance(data[1], (io.IOBase, StreamWrapper)):
        raise TypeError(f"expected a pair of a path and an open file, got {data!r}")


def validate_input_col(fn: Callable, input_col: Any) -> None:
    """Raise ValueError where a function cannot take as many arguments as columns are named."""
    import inspect

    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # a built-in function
        return
    count = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    try:
        signature.bind(*range(count))
    except TypeError as error:
        name = getattr(fn, "__name__", repr(fn))
        raise ValueError(
            f"{name}: expected a function of {count} argument{'s' * (count != 1)}, as input_col = "
            f"{input_col!r} has, got {name}{signature}"
        ) from error


class StreamWrapper:
    """An open file, closed with the last reference to it."""

    def __init__(
        self, file_obj: Any, parent_stream: Any = None, name: Optional[str] = None
    ) -> None:
        self.file_obj = file_obj
        self.parent_stream = parent_stream
        self.name = name
        self.closed = False

    def __getattr__(self, name: str) -> Any:
        if name == "file_obj":
            raise AttributeError(name)
        return getattr(self.file_obj, name)

    def close(self, *args: Any, **kwargs: Any) -> None:
        """Close the file."""
        self.closed = True
        if hasattr(self.file_obj, "close"):
            self.file_obj.close()

    def __enter__(self) -> "StreamWrapper":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __del__(self) -> None:
        if not self.__dict__.get("closed", True):
            self.close()

    def __repr__(self) -> str:
        return f"StreamWrapper<{self.name or self.file_obj!r}>"

    def __getstate__(self) -> Any:
        return self.file_obj

    def __setstate__(self, state: Any) -> None:
        self.__init__(state)  # type: ignore[misc]


__all__ = ["StreamWrapper", "get_file_binaries_from_pathnames", "get_file_pathnames_from_root",
           "match_masks", "validate_input_col", "validate_pathname_binary_tuple"]  # fmt: skip

"""IterableWrapper: any iterable as a pipe."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import warnings
from typing import Any, Iterable, Iterator

from ..datapipe import IterDataPipe


class IterableWrapperIterDataPipe(IterDataPipe):
    """The samples of an iterable. With deepcopy each pass is over a copy of it, where it can be
    copied, so that a pass does not change the next; otherwise a warning is given."""

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable = iterable
        self.deepcopy = deepcopy

    def __iter__(self) -> Iterator[Any]:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:
                warnings.warn(
                    "IterableWrapper: expected an iterable that can be copied, got "
                    f"{type(source).__name__}: a second pass may see what the first changed",
                    stacklevel=2,
                )
        yield from source

    def __len__(self) -> int:
        return len(self.iterable)  # type: ignore[arg-type]


__all__ = ["IterableWrapperIterDataPipe"]

"""SequenceWrapper: any sequence or mapping as a pipe."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import warnings
from typing import Any

from ..datapipe import MapDataPipe


class SequenceWrapperMapDataPipe(MapDataPipe):
    """The samples of a sequence or a mapping, of a copy of it where deepcopy says so and it can be
    copied; otherwise a warning is given."""

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = sequence
        if deepcopy:
            try:
                self.sequence = copy.deepcopy(sequence)
            except TypeError:
                warnings.warn(
                    "SequenceWrapper: expected a sequence that can be copied, got "
                    f"{type(sequence).__name__}: what changes it changes the pipe",
                    stacklevel=2,
                )

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


__all__ = ["SequenceWrapperMapDataPipe"]

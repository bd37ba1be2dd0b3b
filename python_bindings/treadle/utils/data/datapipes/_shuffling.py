"""The common part of random orders, whether samples are gone through or asked for by a key: where
the order of a pass comes from."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import random
from typing import Any, Optional

from treadle import _C
from treadle.utils.data.worker_info import get_worker_info


class Shuffling:
    """The order of each pass over `datapipe` is that of set_seed(), or drawn from the library's
    random numbers; set_shuffle(False) keeps the order, as a DataLoader with shuffle=False does."""

    def __init__(self, datapipe: Any) -> None:
        super().__init__()
        self.datapipe = datapipe
        self._enabled = True
        self._seed: Optional[int] = None
        self._last_seed: Optional[int] = None
        self._rng = random.Random()

    def set_shuffle(self, shuffle: bool = True) -> "Shuffling":
        """Whether the order is changed."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> "Shuffling":
        """Where the next pass's order comes from."""
        self._seed = seed
        return self

    def reset(self) -> None:
        """Called before each new pass."""
        if not self._enabled:
            return
        if self._seed is None:
            self._seed = self._next_seed()
        self._rng.seed(self._seed)
        self._last_seed, self._seed = self._seed, None

    def _next_seed(self) -> int:
        if get_worker_info() is not None and self._last_seed is not None:
            # Workers that stay for several passes must agree, for each takes its part of one order.
            return random.Random(self._last_seed).getrandbits(62)
        return int(_C.empty((), dtype=_C.int64).random_().item())

    def __len__(self) -> int:
        return len(self.datapipe)

"""Going on with pipes where a pass was left: the samples before are computed again, and dropped."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional

from treadle import _C
from treadle.utils.data.graph_settings import apply_random_seed

from ..datapipe import IterDataPipe


def _simple_graph_snapshot_restoration(
    datapipe: IterDataPipe, n_iterations: int, rng: Optional[_C.Generator] = None
) -> None:
    """The next pass over the pipe begins behind its first samples. rng: where seeds of random
    orders are drawn from. Raises RuntimeError where there are not so many samples, and where a
    pass was begun so already that was not gone through yet."""
    if "_begun" in vars(datapipe):
        raise RuntimeError(
            f"{datapipe}: expected a pipe with no pass that was begun by this function, got one"
        )
    apply_random_seed(datapipe, rng)
    iterator: Any = iter(datapipe)
    for place in range(n_iterations):
        try:
            next(iterator)
        except StopIteration:
            raise RuntimeError(
                f"{datapipe}: expected {n_iterations} samples at least, got {place}"
            ) from None
    vars(datapipe)["_begun"] = iterator


__all__ = ["apply_random_seed"]

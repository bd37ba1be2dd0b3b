"""Averages of parameters every so many steps.

averager = PeriodicModelAverager(period=4, warmup_steps=100)
for batch in batches:
    loss(model(batch)).backward()
    optimizer.step()
    averager.average_parameters(model.parameters())
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any

from treadle import distributed as dist

from . import utils


class ModelAverager(ABC):
    """Counts steps, in `step`. The group is that of all processes by default."""

    def __init__(self, process_group: Any = None) -> None:
        self.process_group = dist.group.WORLD if process_group is None else process_group
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: utils.Parameters) -> None:
        """One step of the program is done: average the parameters, if it is time to."""


def check_warmup(kind: str, warmup_steps: int) -> int:
    """ValueError for a negative number of steps."""
    if warmup_steps < 0:
        raise ValueError(f"{kind}: expected warmup_steps >= 0, got {warmup_steps}")
    return warmup_steps


def warn_of_every_step(kind: str) -> None:
    """Averages of every step cost what averages of gradients do."""
    warnings.warn(
        f"{kind}: a period of 1 sends as much as DistributedDataParallel, which is enough then",
        stacklevel=4,
    )


class PeriodicModelAverager(ModelAverager):
    """Averages every `period` steps after `warmup_steps`. ValueError for a period below 1."""

    def __init__(self, period: int, warmup_steps: int = 0, process_group: Any = None) -> None:
        super().__init__(process_group)
        self.warmup_steps = check_warmup(type(self).__name__, warmup_steps)
        if period < 1:
            raise ValueError(f"PeriodicModelAverager: expected period >= 1, got {period}")
        if period == 1:
            warn_of_every_step(type(self).__name__)
        self.period = period

    def average_parameters(self, params: utils.Parameters) -> None:
        """Average those parameters, or the parameters in those groups, that have a gradient."""
        late = self.step - self.warmup_steps
        if late >= 0 and late % self.period == 0:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1


__all__ = ["ModelAverager", "PeriodicModelAverager"]

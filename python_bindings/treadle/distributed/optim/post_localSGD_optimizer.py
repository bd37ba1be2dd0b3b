"""An optimizer whose parameters are averaged over processes every so many steps.

optimizer = PostLocalSGDOptimizer(SGD(model.parameters(), 0.1), PeriodicModelAverager(period=4))
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
from typing import Any, Dict

from treadle.distributed.algorithms.model_averaging.averagers import ModelAverager
from treadle.optim import Optimizer


class PostLocalSGDOptimizer(Optimizer):
    """Steps of `optim`, each followed by `averager.average_parameters()`."""

    def __init__(self, optim: Optimizer, averager: ModelAverager) -> None:
        self.optim = optim
        self.param_groups = optim.param_groups
        self.averager = averager

    @property
    def state(self) -> Any:
        """The state of `optim`."""
        return self.optim.state

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> Dict[str, Any]:
        """That of `optim`, and the averager's number of steps as "step"."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Take over the state; warns if there is no "step", which is 0 then."""
        state_dict = dict(state_dict)
        if "step" not in state_dict:
            warnings.warn(
                "PostLocalSGDOptimizer: the state has no step of an averager, which begins at 0",
                stacklevel=2,
            )
        self.averager.step = state_dict.pop("step", 0)
        self.optim.load_state_dict(state_dict)
        self.param_groups = self.optim.param_groups

    def step(self) -> None:
        """A step of `optim`, then of the averager."""
        self.optim.step()
        self.averager.average_parameters(self.param_groups)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """Add a group to `optim`."""
        self.optim.add_param_group(param_group)


__all__ = ["PostLocalSGDOptimizer"]

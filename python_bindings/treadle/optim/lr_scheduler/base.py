"""LRScheduler: the base of schedulers whose learning rates follow from the number of epochs."""

from __future__ import annotations

import warnings
from typing import Any, Optional

from treadle.optim.optimizer import Optimizer


class LRScheduler:
    """Counts epochs in `last_epoch`; a subclass says in `get_lr` what the rates are at that
    count."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for index, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group["initial_lr"] = float(group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{index}] when resuming "
                    "an optimizer"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._steps_taken = 0
        # Only to tell a scheduler that is stepped before its optimiser, which would skip the first
        # rate.
        self._hook = optimizer.register_step_post_hook(self._optimizer_stepped)
        self.step()

    def _optimizer_stepped(self, *args: Any) -> None:
        self._steps_taken += 1

    def get_lr(self) -> list[float]:
        """The learning rates of all groups at `last_epoch`, given those in the groups now."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """The learning rates set last."""
        return self._last_lr

    def _current(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def step(self, epoch: Optional[int] = None) -> None:
        """Go on by one epoch, or to `epoch`, and set the learning rates."""
        if self._step_count == 1 and self._steps_taken == 0:
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call them in "
                "the opposite order: otherwise the first value of the learning rate schedule is "
                "skipped.",
                stacklevel=2,
            )
        self._step_count += 1
        if epoch is None:
            self.last_epoch += 1
            rates = self.get_lr()
        else:
            self.last_epoch = epoch
            closed_form = getattr(self, "_get_closed_form_lr", self.get_lr)
            rates = closed_form()
        for group, rate in zip(self.optimizer.param_groups, rates):
            group["lr"] = rate
        self._last_lr = self._current()

    _not_saved = ("optimizer", "_hook", "_steps_taken")

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser."""
        return {name: value for name, value in self.__dict__.items() if name not in self._not_saved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.__dict__.update(state_dict)

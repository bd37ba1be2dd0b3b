"""LRScheduler: the base of schedulers whose learning rates follow from the number of epochs."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import Any, Iterator, Optional, Sequence, Union

from treadle._C import Tensor
from treadle.optim.optimizer import Optimizer, number

_EXPLAINED = (
    "It is explained at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
    "epoch is different from None, the closed form is used instead of the new chainable form, "
    "where available."
)


def require_optimizer(optimizer: Any) -> None:
    """TypeError for anything but an optimiser."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def per_group(name: str, optimizer: Optimizer, value: Union[Any, Sequence[Any]]) -> list[Any]:
    """A setting for each group: those of a list, or one for all. Tensors are copied."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        value = [value] * groups
    elif len(value) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} "
            f"values, param_groups has {groups}."
        )
    return [copied(item) for item in value]


def copied(value: Any) -> Any:
    """A tensor apart from the one given; anything else is itself."""
    return value.clone() if isinstance(value, Tensor) else value


def set_lr(group: dict[str, Any], rate: Union[float, Tensor]) -> None:
    """Set a group's rate; one that is a tensor stays that tensor and gets another value."""
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(number(rate))
    else:
        group["lr"] = rate


class LRScheduler:
    """Counts epochs in `last_epoch`; a subclass says in `get_lr` what the rates are at that
    count."""

    # Whether `get_lr` is called by `step`, and whether that is the one that the constructor makes.
    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        require_optimizer(optimizer)
        self.optimizer = optimizer
        for index, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{index}] when resuming "
                    "an optimizer"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        # The optimiser notes its steps from now on, to tell a scheduler that is stepped before it
        # and so would skip the first rate.
        optimizer.__dict__.setdefault("_opt_called", False)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self) -> list[Any]:
        """The learning rates of all groups at `last_epoch`, given those in the groups now."""
        raise NotImplementedError

    def get_last_lr(self) -> list[Any]:
        """The learning rates set last."""
        return self._last_lr

    def _current(self) -> list[Any]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def _within_step(self) -> None:
        """For `get_lr`, which computes one rate from another: not to be called to ask for them."""
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use "
                "`get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    @contextmanager
    def _calling_get_lr(self) -> Iterator[None]:
        self._get_lr_called_within_step = True
        try:
            yield
        finally:
            self._get_lr_called_within_step = False

    def step(self, epoch: Optional[int] = None) -> None:
        """Go on by one epoch, or to `epoch`, and set the learning rates."""
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "hooked"):
                warnings.warn(
                    "Seems like `optimizer.step()` has been overridden after learning rate "
                    "scheduler initialization. Please, make sure to call `optimizer.step()` "
                    f"before `lr_scheduler.step()`. {_EXPLAINED}",
                    UserWarning,
                    stacklevel=2,
                )
            elif not getattr(self.optimizer, "_opt_called", False):
                warnings.warn(
                    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call them "
                    "in the opposite order: otherwise the first value of the learning rate "
                    f"schedule is skipped. {_EXPLAINED}",
                    UserWarning,
                    stacklevel=2,
                )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: Optional[int] = None) -> None:
        with self._calling_get_lr():
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                rates = getattr(self, "_get_closed_form_lr", self.get_lr)()
        for group, rate in zip(self.optimizer.param_groups, rates):
            set_lr(group, rate)
        self._last_lr = self._current()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.__dict__.update(state_dict)


class _LRScheduler(LRScheduler):
    """The name that the base class had before."""


def attributes(function: Any) -> Optional[dict[str, Any]]:
    """How a function that is part of a schedule is saved: an object that can be called by its
    attributes, a plain function not at all."""
    plain = isinstance(function, type(attributes)) or not hasattr(function, "__dict__")
    return None if plain else dict(vars(function))

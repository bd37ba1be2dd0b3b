"""Training where processes have different numbers of batches: one whose batches have ended takes
part in the collectives of the others until all have ended.

    with Join([model, optimizer]):
        for batch in my_batches:            # more in one process than in another
            model(batch).sum().backward()
            optimizer.step()

A class takes part as a Joinable: it calls Join.notify_join_context(self) before its collectives of
a step, and its JoinHook makes the same collectives.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, List, NamedTuple, Optional, Type

from treadle import _C
from treadle import distributed as dist

_MANY_STEPS = 1000


class JoinHook:
    """The hooks of a process whose batches have ended."""

    def main_hook(self) -> None:
        """The collectives of one step of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called when all have ended; `is_last_joiner` in those that ended last."""
        del is_last_joiner  # read by subclasses


class _JoinConfig(NamedTuple):
    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool


_OUTSIDE = _JoinConfig(False, False, False)


class Joinable(ABC):
    """A class that takes part. Its __init__ calls Joinable.__init__(self)."""

    @abstractmethod
    def __init__(self) -> None:
        self._join_config = _OUTSIDE

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Its hook; `kwargs` are those of Join."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of the tensors by which the processes tell each other that they go on."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The processes."""


class Join:
    """A block that ends when all processes have reached its end.

    joinables: their hooks run in this order. enable=False does nothing.
    throw_on_early_termination: RuntimeError in all processes when the first one reaches the end
    before others. kwargs go to the hooks. ValueError for no joinables, or several groups.
    """

    def __init__(
        self,
        joinables: List[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ValueError("Join: expected at least one joinable, got none")
        groups = {id(joinable.join_process_group) for joinable in joinables}
        if len(groups) > 1:
            raise ValueError(
                f"Join: expected joinables of one process group, got {len(groups)} groups"
            )
        self._joinables = joinables
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable = enable
        self._throw = throw_on_early_termination
        self._group = joinables[0].join_process_group
        self._device = joinables[0].join_device
        for place, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, place == 0)

    def __enter__(self) -> Join:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if self._enable and kind is None:
            self._wait_for_others()
        for joinable in self._joinables:
            joinable._join_config = _OUTSIDE

    def _wait_for_others(self) -> None:
        steps = 0
        while self._tell(0.0):
            if self._throw:
                self._tell(1.0)
                raise RuntimeError(
                    f"Join: expected as many inputs in rank {dist.get_rank()} as in the others, "
                    "got fewer"
                )
            for hook in self._hooks:
                hook.main_hook()
            steps += 1
            if steps == _MANY_STEPS:
                warnings.warn(
                    f"Join: rank {dist.get_rank()} has waited for {steps} steps of the others: "
                    "divide the inputs more evenly",
                    stacklevel=3,
                )
        for hook in self._hooks:
            hook.post_hook(steps == 0)

    def _tell(self, value: float) -> bool:
        """Whether the sum over all processes is not zero."""
        told = _C.tensor([value], device=self._device)
        dist.all_reduce(told, group=self._group)
        return bool(told.item())

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Optional[dist.Work]:
        """Tell the processes that have ended of a step: before its collectives. Returns the Work
        whose result is the number of processes that go on; None outside of a block, and for all
        joinables but the first. RuntimeError if one has ended and throw_on_early_termination is
        set."""
        if not hasattr(joinable, "_join_config"):
            raise AssertionError(
                "Join.notify_join_context: expected the constructor of "
                f"{type(joinable).__name__} to call Joinable.__init__, got no call"
            )
        config = joinable._join_config
        if not (config.enable and config.is_first_joinable):
            return None
        device, group = joinable.join_device, joinable.join_process_group
        work = dist.all_reduce(_C.ones(1, device=device), group=group, async_op=True)
        if config.throw_on_early_termination:
            ended = _C.zeros(1, device=device)
            dist.all_reduce(ended, group=group)
            if ended.item():
                raise RuntimeError(
                    "Join: expected as many inputs in all processes, got fewer in at least one"
                )
        return work


__all__ = ["Join", "JoinHook", "Joinable"]

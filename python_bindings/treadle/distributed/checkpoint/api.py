"""The error of a save or a load that failed in some of the processes; it is raised in all."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import traceback
from typing import Any, Dict, Tuple

WRAPPED_EXCEPTION = Tuple[BaseException, traceback.StackSummary]


def _wrap_exception(error: BaseException) -> WRAPPED_EXCEPTION:
    """The exception, and where it was raised."""
    return error, traceback.extract_tb(error.__traceback__)


def _is_wrapped_exception(value: Any) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and isinstance(value[0], BaseException)
        and isinstance(value[1], traceback.StackSummary)
    )


class CheckpointException(BaseException):
    """A step of a save or a load failed. `failures` has the exception and the stack of each rank
    where it did."""

    def __init__(self, msg: str, failures: Dict[int, WRAPPED_EXCEPTION]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> Dict[int, WRAPPED_EXCEPTION]:
        """The exception of each rank that failed, and where it was raised."""
        return self._failures

    def __str__(self) -> str:
        text = f"CheckpointException ranks:{self._failures.keys()}\n"
        for rank, (error, stack) in self._failures.items():
            text += f"Traceback (most recent call last): (RANK {rank})\n"
            text += "".join(traceback.format_list(stack or []))
            text += "".join(traceback.format_exception_only(type(error), error))
        return text


__all__ = ["CheckpointException"]

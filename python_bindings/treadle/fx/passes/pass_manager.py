"""PassManager: functions that are applied to a module one after the other, in an order that some of
them need.

    manager = PassManager([first, inplace_wrapper(second)])
    manager.add_constraint(this_before_that_pass_constraint(first, second))
    module = manager(module)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import inspect
import logging
from typing import Any, Callable, List, Optional

logger = logging.getLogger(__name__)
Pass = Callable[..., Any]
Constraint = Callable[[Pass, Pass], bool]


def inplace_wrapper(fn: Callable) -> Callable:
    """A pass that changes what it is given: made to return that."""

    @functools.wraps(fn)
    def wrapped(gm: Any, *args: Any, **kwargs: Any) -> Any:
        fn(gm, *args, **kwargs)
        return gm

    return wrapped


def log_hook(fn: Callable, level: int = logging.INFO) -> Callable:
    """A pass whose result is logged."""

    @functools.wraps(fn)
    def wrapped(gm: Any, *args: Any, **kwargs: Any) -> Any:
        result = fn(gm, *args, **kwargs)
        logger.log(level, "Ran pass %s\t Return value: %s", fn, result)
        return result

    return wrapped


def loop_pass(
    base_pass: Callable,
    n_iter: Optional[int] = None,
    predicate: Optional[Callable[[Any], bool]] = None,
) -> Callable:
    """A pass that is applied `n_iter` times, or as long as `predicate` of the module is true.
    AssertionError unless one of them is given."""
    if (n_iter is None) == (predicate is None):
        raise AssertionError("loop_pass: expected one of n_iter and predicate")

    @functools.wraps(base_pass)
    def looped(source: Any) -> Any:
        if predicate is None:
            for _ in range(n_iter or 0):
                source = base_pass(source)
        else:
            while predicate(source):
                source = base_pass(source)
        return source

    return looped


def this_before_that_pass_constraint(this: Pass, that: Pass) -> Constraint:
    """That one pass comes before another."""

    def depends_on(a: Pass, b: Pass) -> bool:
        return not (a is that and b is this)

    return depends_on


def these_before_those_pass_constraint(these: Pass, those: Pass) -> Constraint:
    """That one pass comes before another, each also under wrappers."""

    def depends_on(a: Pass, b: Pass) -> bool:
        return not (inspect.unwrap(a) is those and inspect.unwrap(b) is these)

    return depends_on


def check_order(passes: List[Pass], constraints: List[Constraint]) -> None:
    """RuntimeError where a constraint says that a pass may not stand before a later one."""
    for constraint in constraints:
        for i, before in enumerate(passes):
            for after in passes[i + 1 :]:
                if not constraint(before, after):
                    raise RuntimeError(
                        f"PassManager: expected {_name(after)} before {_name(before)}, as a "
                        "constraint says"
                    )


def _name(one: Pass) -> str:
    return getattr(one, "__name__", type(one).__name__)


class PassManager:
    """Passes and the constraints of their order, which is checked at the first call: RuntimeError
    where a constraint is broken."""

    def __init__(
        self,
        passes: Optional[List[Pass]] = None,
        constraints: Optional[List[Constraint]] = None,
    ) -> None:
        self.passes: List[Pass] = passes or []
        self.constraints: List[Constraint] = constraints or []
        self._validated = False

    @classmethod
    def build_from_passlist(cls, passes: List[Pass]) -> "PassManager":
        """One of a list of passes."""
        return cls(passes)

    def add_pass(self, _pass: Pass) -> None:
        """Add a pass behind the others."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Constraint) -> None:
        """Add a function of two passes that says whether the first may stand before the second."""
        self.constraints.append(constraint)
        self._validated = False

    def remove_pass(self, _passes: List[str]) -> None:
        """Take passes out, by name."""
        self.passes = [p for p in self.passes if _name(p) not in _passes]
        self._validated = False

    def replace_pass(self, _target: Pass, _replacement: Pass) -> None:
        """Put a pass in the place of another."""
        self.passes = [_replacement if _name(p) == _name(_target) else p for p in self.passes]
        self._validated = False

    def validate(self) -> None:
        """Check the order."""
        if not self._validated:
            check_order(self.passes, self.constraints)
            self._validated = True

    def __call__(self, source: Any) -> Any:
        self.validate()
        for one in self.passes:
            source = one(source)
        return source


__all__ = [
    "PassManager",
    "inplace_wrapper",
    "log_hook",
    "loop_pass",
    "these_before_those_pass_constraint",
    "this_before_that_pass_constraint",
]

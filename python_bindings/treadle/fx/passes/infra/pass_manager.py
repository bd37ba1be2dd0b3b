"""PassManager for passes that say whether they changed something: it repeats them until none
does."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import inspect
import warnings
from typing import Any, Callable, List, Optional

from treadle import nn
from treadle.fx.passes.infra.pass_base import PassResult
from treadle.fx.passes.pass_manager import (
    Constraint,
    Pass,
    _name,
    check_order,
    this_before_that_pass_constraint,
)


def pass_result_wrapper(fn: Callable) -> Callable:
    """A pass that changes what it is given, made to return a PassResult that says so."""

    @functools.wraps(fn)
    def wrapped(gm: Any) -> PassResult:
        found = fn(gm)
        return found if isinstance(found, PassResult) else PassResult(gm, True)

    return wrapped


class PassManager:
    """Passes, applied one after the other and again while one of them changes the module, at most
    `steps` times. A pass returns a PassResult, or None for no change.

    run_checks_after_each_pass: whether the checks of add_checks() run after each pass, not only in
    the end. suppress_check_failures: whether a check that fails warns instead of raising.
    """

    def __init__(
        self,
        passes: Optional[List[Pass]] = None,
        constraints: Optional[List[Constraint]] = None,
        steps: Optional[int] = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes: List[Pass] = passes or []
        self.constraints: List[Constraint] = constraints or []
        self.steps = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass: Pass) -> None:
        """Add a pass behind the others."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Constraint) -> None:
        """Add a function of two passes that says whether the first may stand before the second."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """RuntimeError where a constraint is broken."""
        if not self._validated:
            check_order(self.passes, self.constraints)
            self._validated = True

    def solve_constraints(self) -> None:
        """Put the passes in an order that the constraints allow, the given one where it does.
        RuntimeError if there is none."""
        waiting, order = list(self.passes), []
        while waiting:
            first = next((p for p in waiting if self._may_be_first(p, waiting)), None)
            if first is None:
                names = ", ".join(_name(p) for p in waiting)
                raise RuntimeError(
                    f"PassManager: expected constraints that an order meets, got a cycle of {names}"
                )
            waiting.remove(first)
            order.append(first)
        self.passes, self._validated = order, True

    def _may_be_first(self, one: Pass, others: List[Pass]) -> bool:
        rest = [other for other in others if other is not one]
        return all(constraint(one, other) for constraint in self.constraints for other in rest)

    def add_checks(self, check: Callable) -> None:
        """Set a function of the module that raises if something is wrong with it. ValueError for
        one that takes another number of arguments."""
        if len(inspect.signature(check).parameters) != 1:
            raise ValueError("PassManager.add_checks: expected a function of one argument")
        self.check = check

    def check(self, module: nn.Module) -> None:
        """Nothing, unless add_checks() was called."""

    def _check(self, module: nn.Module) -> None:
        try:
            self.check(module)
        except Exception as error:
            if not self.suppress_check_failures:
                raise
            warnings.warn(f"PassManager: a check failed: {error}", stacklevel=3)

    def __call__(self, module: nn.Module) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self._check(module)
        changed = False
        for _ in range(self.steps):
            again = False
            for one in self.passes:
                module, modified = self._apply(one, module)
                again = again or modified
                if self.run_checks_after_each_pass:
                    self._check(module)
            changed = changed or again
            if not again:
                break
        self._check(module)
        return PassResult(module, changed)  # type: ignore[arg-type]

    def _apply(self, one: Pass, module: Any) -> Any:
        try:
            found = one(module)
        except Exception as error:
            raise RuntimeError(f"PassManager: the pass {_name(one)} failed: {error}") from error
        if found is None:
            return module, False
        if not isinstance(found, PassResult):
            raise TypeError(
                f"PassManager: expected the pass {_name(one)} to return a PassResult, got "
                f"{type(found).__name__}"
            )
        return found.graph_module, found.modified


__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]

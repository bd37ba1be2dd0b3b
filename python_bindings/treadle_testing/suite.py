"""The tests that every operator of Treadle passes, for a library outside of it.

    class TestMyOps(OperatorTests):
        library = "my_ops"

is a test class for pytest: a test for each operator of the library's model, each dtype and each
check. Pointwise operators have samples from their expression; others are given some, with what
NumPy says:

    @samples("my_ops::rotary")
    def rotary(make: Maker) -> Iterator[Sample]:
        yield Sample(make((3, 4)), make((3, 2)), make((3, 2)), expect=rotary_in_numpy)

The library "aten" is Treadle itself: so a device from outside is tested, by the options of
treadle_testing.device.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
from typing import Any, Mapping

from . import cases, checks, hostile, mixed
from .catalogue import Operator, operators

_DIFFERENTIABLE = frozenset({"gradients", "second_gradients", "gradients_have_the_same_bits"})
_OPERATORS = frozenset({"has_samples_and_reference", "misuse_is_refused", "mixed_arguments_agree"})


class OperatorTests:
    """Tests of all operators of `library`, the name of a module that is imported first, or
    "aten"."""

    library: str = ""

    def pytest_generate_tests(self, metafunc: Any) -> None:
        name = metafunc.function.__name__.removeprefix("test_")
        if self.library != "aten":
            importlib.import_module(self.library)
        library = self.library.rpartition(".")[2]
        if name in _OPERATORS:
            found = [op for op in operators(library) if cases.in_suite(op)]
            metafunc.parametrize("op", found, ids=repr)
        elif name == "reference":
            metafunc.parametrize("op, dtype", cases.cells(library))
        elif name == "undeclared_cells_are_refused":
            metafunc.parametrize("op, dtype", checks.undeclared_cells(library))
        elif "dtype" in metafunc.fixturenames:
            only = "differentiable" if name in _DIFFERENTIABLE else ""
            metafunc.parametrize("op, dtype", cases.pairs(only, library))

    def test_has_samples_and_reference(self, op: Operator) -> None:
        assert cases.has_samples(op), f"{op.id} has no samples"
        assert cases.has_reference(op), f"{op.id} has no reference"

    def test_misuse_is_refused(self, op: Operator) -> None:
        """Arguments that do not fit, one at a time: an exception of the right kind, or a result."""
        wrong: Mapping[str, str] = {c.label: hostile.problem_of(c) for c in hostile.calls_of(op)}
        assert not {label: problem for label, problem in wrong.items() if problem}

    def test_mixed_arguments_agree(self, op: Operator) -> None:
        """One tensor of another dtype, layout, shape or device than the others: refused, or the
        result of the same numbers."""
        mixed.mixed_arguments_agree(op)

    def test_reference(self, op: Operator, dtype: str) -> None:
        checks.reference(op, dtype)

    def test_forms_agree(self, op: Operator, dtype: str) -> None:
        checks.forms_agree(op, dtype)

    def test_layouts_agree(self, op: Operator, dtype: str) -> None:
        checks.layouts_agree(op, dtype)

    def test_meta_agrees(self, op: Operator, dtype: str) -> None:
        checks.meta_agrees(op, dtype)

    def test_same_bits_at_any_thread_count(self, op: Operator, dtype: str) -> None:
        checks.same_bits_at_any_thread_count(op, dtype)

    def test_undeclared_cells_are_refused(self, op: Operator, dtype: str) -> None:
        checks.undeclared_cells_are_refused(op, dtype)

    def test_gradients(self, op: Operator, dtype: str) -> None:
        checks.gradients(op, dtype)

    def test_second_gradients(self, op: Operator, dtype: str) -> None:
        checks.second_gradients(op, dtype)

    def test_gradients_have_the_same_bits(self, op: Operator, dtype: str) -> None:
        checks.gradients_have_the_same_bits(op, dtype)

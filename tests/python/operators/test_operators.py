"""Every operator of the model: against NumPy, in all its forms, layouts and dtypes, on the meta
device, at every thread count.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

from treadle.utils.operator_library import kernel_problems
from treadle_testing import cases, checks, mixed
from treadle_testing.cases import has_samples, pairs
from treadle_testing.catalogue import Operator, by_id, operators
from treadle_testing.sample import REGISTRY

PAIRS = pairs()


@pytest.mark.parametrize("op", [o for o in operators() if cases.in_suite(o)], ids=repr)
def test_has_samples_and_reference(op: Operator) -> None:
    """A new operator fails here until it has samples (pointwise ones have theirs from the
    expression).
    """
    assert has_samples(op), (
        f"{op.id} has no samples: add them to python_bindings/treadle_testing/families/"
    )
    assert cases.has_reference(op), f"{op.id} has no reference"


def test_every_kernel_that_an_entry_names_is_registered() -> None:
    assert list(kernel_problems(o.json for o in operators())) == []


def test_a_kernel_that_nobody_registers_is_named() -> None:
    """Both ways round, with the place of the entry."""
    (mm,) = [o.json for o in operators() if o.id == "mm"]
    row, place = mm["dispatch"][0], mm["location"]
    misspelt = {**mm, "dispatch": [{**row, "kernel": "mm_cp"}]}
    assert list(kernel_problems([misspelt])) == [
        "expected a kernel 'mm_cp' for aten::mm on the CPU, as "
        f"{place['file']}:{row['line']} says, "
        "got 'mm_cpu'; register it with register_kernels, by this name"
    ]
    left_out = {**mm, "dispatch": [{**row, "key": "remote"}]}
    assert list(kernel_problems([left_out])) == [
        f"expected no kernel for aten::mm on the CPU, since {place['file']}:{place['line']} names "
        "none, got 'mm_cpu'; write 'CPU: mm_cpu' under 'dispatch'"
    ]


def test_samples_belong_to_operators() -> None:
    assert not set(REGISTRY) - set(by_id()), "samples of operators that the model does not have"


MIXED = [o for o in operators() if o.json["argument_dtypes"] or o.kind == "pointwise"]


@pytest.mark.parametrize("op", MIXED, ids=repr)
def test_mixed_arguments_agree(op: Operator) -> None:
    if cases.in_suite(op) and has_samples(op):
        mixed.mixed_arguments_agree(op)


@pytest.mark.parametrize("op, dtype", cases.cells())
def test_reference(op: Operator, dtype: str) -> None:
    checks.reference(op, dtype)


@pytest.mark.parametrize("op, dtype", PAIRS)
def test_forms_agree(op: Operator, dtype: str) -> None:
    checks.forms_agree(op, dtype)


@pytest.mark.parametrize("op, dtype", PAIRS)
def test_layouts_agree(op: Operator, dtype: str) -> None:
    checks.layouts_agree(op, dtype)


@pytest.mark.parametrize("op, dtype", PAIRS)
def test_meta_agrees(op: Operator, dtype: str) -> None:
    checks.meta_agrees(op, dtype)


@pytest.mark.parametrize("op, dtype", PAIRS)
def test_same_bits_at_any_thread_count(op: Operator, dtype: str) -> None:
    checks.same_bits_at_any_thread_count(op, dtype)


@pytest.mark.parametrize("op, dtype", checks.fused_pairs())
def test_fusion_agrees(op: Operator, dtype: str) -> None:
    checks.fusion_agrees(op, dtype)


@pytest.mark.parametrize("op, dtype", checks.undeclared_cells())
def test_undeclared_cells_are_refused(op: Operator, dtype: str) -> None:
    checks.undeclared_cells_are_refused(op, dtype)

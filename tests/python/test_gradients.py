"""Every differentiable operator: gradients against finite differences in float64 and complex128,
first and second order, and the same bits at every thread count.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import treadle
from treadle.autograd import gradcheck, gradgradcheck

from operators.cases import pairs, samples_of, in_suite
from operators.catalogue import Operator, operators
from operators.check import same_bits, tensors
from operators.sample import Sample, map_arrays, to_tensor

PAIRS = pairs("differentiable")


def _inputs(sample: Sample, dtype: str) -> tuple[list[treadle.Tensor], Any]:
    """Leaf tensors of the sample that take gradients, and a function of them that makes the
    call.
    """
    leaves: list[treadle.Tensor] = []

    def place(a: np.ndarray) -> Any:
        t = to_tensor(a, dtype)
        if t.is_floating_point() or t.is_complex():
            leaves.append(t.requires_grad_())
            return ("leaf", len(leaves) - 1)
        return t

    args = map_arrays(sample.args, place)
    kwargs = {k: map_arrays(v, place) for k, v in sample.kwargs.items()}

    def fill(value: Any, given: tuple[treadle.Tensor, ...]) -> Any:
        if isinstance(value, tuple) and len(value) == 2 and value[0] == "leaf":
            return given[value[1]]
        if isinstance(value, (list, tuple)):
            return type(value)(fill(v, given) for v in value)
        return value

    def call(op: Operator, *given: treadle.Tensor) -> Any:
        values = list(fill(args, given))
        if sample.domain is not None:
            values[0] = sample.domain(values[0])
        result = op.function(*values, **{k: fill(v, given) for k, v in kwargs.items()})
        if sample.settle is not None:
            result = sample.settle(result)
        return tuple(t for t in tensors(result) if t.is_floating_point() or t.is_complex())

    return leaves, call


def _usable(op: Operator, dtype: str) -> list[tuple[list[treadle.Tensor], Any]]:
    out = []
    for sample in samples_of(op, dtype):
        if not sample.grad or op.random or op.name.endswith("_"):
            continue
        leaves, call = _inputs(sample, dtype)
        if leaves and any(t.requires_grad for t in call(op, *leaves)):
            out.append((leaves, call))
    return out


@pytest.mark.parametrize("op, dtype", PAIRS)
def test_gradcheck(op: Operator, dtype: str) -> None:
    for leaves, call in _usable(op, dtype):
        assert gradcheck(lambda *given: call(op, *given), tuple(leaves))


@pytest.mark.slow
@pytest.mark.parametrize("op, dtype", PAIRS)
def test_gradgradcheck(op: Operator, dtype: str) -> None:
    for leaves, call in _usable(op, dtype):
        if sum(t.numel() for t in leaves) > 80:
            continue
        try:
            assert gradgradcheck(lambda *given: call(op, *given), tuple(leaves))
        except NotImplementedError as error:
            # The formula uses an operator whose own derivative is not known (lgamma: digamma's); it
            # must say so.
            assert str(error).endswith("derivative is not implemented")


@pytest.mark.parametrize(
    "op",
    [o for o in operators() if in_suite(o) and o.kind == "pointwise" and not o.json["derivative"]],
    ids=repr,
)
def test_a_missing_derivative_says_so(op: Operator) -> None:
    """Results that are not floating (comparisons) carry no gradient; others raise in backward,
    naming the operator.
    """
    if "float64" not in op.dtypes:
        return
    leaves, call = _inputs(next(samples_of(op, "float64")), "float64")
    for result in call(op, *leaves):
        with pytest.raises(
            NotImplementedError, match=f"^{op.name}: derivative is not implemented$"
        ):
            result.sum().backward()


@pytest.mark.parametrize("op, dtype", PAIRS)
def test_gradients_have_the_same_bits_at_any_thread_count(op: Operator, dtype: str) -> None:
    threads = treadle.get_num_threads()
    try:
        for leaves, call in _usable(op, dtype):
            results = []
            for n in (1, 2, 3, 8):
                treadle.set_num_threads(n)
                outputs = [t for t in call(op, *leaves) if t.requires_grad]
                results.append(
                    treadle.autograd.grad(
                        outputs, leaves, [treadle.ones_like(t) for t in outputs], allow_unused=True
                    )
                )
            assert all(
                same_bits([g for g in r if g is not None], [g for g in results[0] if g is not None])
                for r in results
            )
    finally:
        treadle.set_num_threads(threads)

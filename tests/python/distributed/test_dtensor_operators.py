"""Every operator of the model with samples: on DTensors that are cut, replicated, and parts of a
sum, it gives what it gives on plain tensors, and so do the gradients.

The processes are threads here (simulated_mesh). They have one generator of random numbers, so
random operators are in test_dtensor.py, where processes are processes.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import threading
from typing import Any, Dict, List, Optional

import pytest

import treadle
from simulated_mesh import on_mesh
from treadle.distributed.device_mesh import DeviceMesh
from treadle.distributed.tensor import (
    DTensor,
    Partial,
    Placement,
    Replicate,
    Shard,
    distribute_tensor,
)
from treadle_testing import cases, check
from treadle_testing.catalogue import Operator, operators
from treadle_testing.sample import map_arrays, to_tensor

# Operators whose function reads the memory of a tensor, so that DTensors are refused.
NAMES_ITSELF = "expected a tensor with elements in memory"


def chosen_operators() -> List[Operator]:
    return [
        op
        for op in operators()
        if cases.in_suite(op) and cases.has_samples(op) and not op.random and not op.is_unwritten
    ]


def dtype_of(op: Operator) -> str:
    wanted = ("float64", "int64")
    return next((d for d in wanted if d in op.dtypes), op.dtypes[0] if op.dtypes else "float64")


def placement(way: str, tensor: treadle.Tensor, number: int) -> Placement:
    """Of the number-th tensor: `way` is the dimension to cut, with + for the first tensor alone, or
    P for a first tensor that is parts of a sum."""
    is_first = number == 0
    ndim = tensor.dim()
    if way == "P" and is_first and tensor.is_floating_point():
        return Partial()
    if ndim == 0 or way == "R" or (way.endswith("+") and not is_first):
        return Replicate()
    return Shard(min(0 if way == "P" else int(way[0]), ndim - 1))


WAYS = ("0", "1+", "P")
GRADIENT_WAYS = ("0",)


def whole(value: Any) -> Any:
    if isinstance(value, DTensor):
        return value.full_tensor()
    if isinstance(value, (list, tuple)):
        return [whole(each) for each in value]
    return value


def difference(found: Any, wanted: Any) -> Optional[str]:
    if isinstance(wanted, (list, tuple)):
        if len(found) != len(wanted):
            return f"{len(found)} results instead of {len(wanted)}"
        return next((d for pair in zip(found, wanted) if (d := difference(*pair))), None)
    if not isinstance(wanted, treadle.Tensor):
        return None if found == wanted or found != found else f"{found} instead of {wanted}"
    try:
        treadle.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-7, equal_nan=True)
    except AssertionError as error:
        return str(error).replace("\n", " ")
    return None


class Trial:
    """One sample of an operator, with one way to spread its tensors."""

    def __init__(
        self, op: Operator, sample: Any, way: Optional[str], mesh: Any, grad: bool
    ) -> None:
        self.op, self.sample, self.way, self.mesh, self.grad = op, sample, way, mesh, grad
        self.leaves: List[Any] = []
        self._count = 0

    def _tensor(self, array: Any) -> Any:
        tensor = to_tensor(array, dtype_of(self.op))
        if self.grad and tensor.dtype == treadle.float64:
            tensor.requires_grad_()
        if self.way is not None:
            places = [placement(self.way, tensor, self._count)]
            if self.mesh.ndim == 2:
                places.append(Shard(0) if tensor.dim() else Replicate())
            tensor = distribute_tensor(tensor, self.mesh, places, src_data_rank=None)
        self._count += 1
        if tensor.requires_grad:
            self.leaves.append(tensor)
        return tensor

    def run(self) -> Any:
        """The result, or the gradients of the sum of squares."""
        args = map_arrays(self.sample.args, self._tensor)
        named = {k: map_arrays(v, self._tensor) for k, v in self.sample.kwargs.items()}
        returned = self.op.function(*args, **named)
        result = whole(check.outcome(self.op, returned, args, named))
        if self.sample.settle is not None:
            result = self.sample.settle(result)
        if not self.grad:
            return result
        used = [t for t in check.tensors(result) if t.requires_grad and t.is_floating_point()]
        if not used:
            return []
        sum((t * t).sum() for t in used).backward()  # type: ignore[union-attr]
        return [whole(leaf.grad) for leaf in self.leaves]


def failures(op: Operator, mesh: DeviceMesh, ways: Any, grad: bool) -> List[str]:
    """What is wrong with an operator in this thread."""
    found = []
    # The threads have to fail together, so each operator's calls are made until the first error.
    for number, sample in enumerate(cases.samples_of(op, dtype_of(op))):
        if number == 1:
            break
        if sample.strides or (grad and (not sample.grad or sample.convention)):
            continue
        wanted = Trial(op, sample, None, mesh, grad).run()
        for way in ways:
            try:
                different = difference(Trial(op, sample, way, mesh, grad).run(), wanted)
            except RuntimeError as error:
                if isinstance(error, threading.BrokenBarrierError):
                    raise
                named = op.name.rstrip("_") in str(error)
                if not (
                    named and (NAMES_ITSELF in str(error) or "keeps its geometry" in str(error))
                ):
                    raise
                return []
            if different:
                found.append(f"{op.id}, sample {number}, {way}: {different}")
    return found


def check_all(world: Any, chosen: List[Operator], ways: Any, grad: bool) -> None:
    found: Dict[str, str] = {}
    for op in chosen:
        try:
            results = on_mesh(world, lambda mesh, op=op: failures(op, mesh, ways, grad))
            for each in results[0][:1]:
                found[op.id] = each
        except Exception as error:
            found[op.id] = f"{op.id}: {type(error).__name__}: {error}"
    assert not found, "\n".join(found.values())


@pytest.mark.slow
@pytest.mark.parametrize("world", [2, 3])
def test_results(world: int) -> None:
    check_all(world, chosen_operators()[world - 2 :: 2], WAYS, grad=False)


@pytest.mark.slow
def test_results_on_a_mesh_of_two_dimensions() -> None:
    """Along the second one the first dimension of each tensor is cut, perhaps again."""
    check_all((2, 2), chosen_operators()[::16], WAYS, grad=False)


@pytest.mark.slow
def test_gradients() -> None:
    chosen = [
        op
        for op in chosen_operators()
        if dtype_of(op) == "float64"
        and (op.differentiable or op.kind in ("composite", "view"))
        and not any(a["type"]["alias"] and a["type"]["alias"]["write"] for a in op.args)
    ]
    check_all(2, chosen[::5], GRADIENT_WAYS, grad=True)


def test_wrong_placements_do_not_pass() -> None:
    """The comparison finds a rule that is wrong: a softmax along a dimension that is cut."""
    from treadle.distributed.tensor import _decision, _kernel_labels

    (op,) = [op for op in operators() if op.id == "softmax.int"]
    right = _kernel_labels.RULES["softmax"]
    _kernel_labels.RULES["softmax"] = _kernel_labels.elementwise
    _decision.forget_all()
    try:
        with pytest.raises(AssertionError, match="softmax.int, sample 0, "):
            check_all(2, [op], ("0", "1"), grad=False)
    finally:
        _kernel_labels.RULES["softmax"] = right
        _decision.forget_all()
    check_all(2, [op], ("0", "1"), grad=False)

"""Makes one call and says what is wrong with how it ended.

A call ends well with an exception that follows the law (law.py) and leaves everything as it was, or
with a result of the shape and dtype that the meta device foretells, equal to the sample's reference
where the call is a sample, the same for any layout of the arguments and for every form.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any, Callable, Optional

import numpy as np

import treadle
from treadle_testing.catalogue import Operator, operators
from treadle_testing.check import assert_matches, expected, outcome, tensors
from treadle_testing.sample import to_array

from . import law, seeds
from .memory import Snapshot
from .recipe import (
    Alias,
    Built,
    Literal,
    Node,
    Recipe,
    Stranger,
    TensorNode,
    build,
    map_tensors,
    tensor_nodes,
)
from .values import ORDINARY, Fixed, Palette

PHASES = ("building", "calling", "backward", "meta", "layout", "forms", "leak", "reference")
# A result that is computed a second time has at most so many elements.
MOST_ELEMENTS, MOST_DIMENSIONS = 1 << 20, 32
TOLERANCE = {"float16": 1e-2, "bfloat16": 8e-2, "float32": 1e-3, "complex64": 1e-3}
# In the search for leaks.
REPETITIONS, MOST_REPEATED = 8, 10_000


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong."""

    kind: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"


def quiet(phase: int) -> None:
    """For callers that need not know where a call is."""


def judge(recipe: Recipe, phase: Callable[[int], None] = quiet) -> Optional[Finding]:
    """The fault of a call; None where there is none."""
    phase(0)
    treadle.manual_seed(0)
    try:
        built = build(recipe)
    except (MemoryError, treadle.OutOfMemoryError):
        return None
    except Exception as error:
        breach = law.breach(error)
        return Finding("building: " + breach[0], breach[1]) if breach else None
    snapshot = Snapshot(recipe, built)
    function = recipe.function()
    phase(1)
    try:
        result = function(*built.args, **built.kwargs)
    except Exception as error:
        return _judge_exception(recipe, snapshot, error)
    if changed := snapshot.broken(failed=False):
        return Finding("writes what it may not", changed)
    if any(t.numel() > MOST_ELEMENTS and not t.is_meta for t in tensors(result)):
        return None
    found: Optional[Finding] = None
    if any(t.grad for n in recipe.nodes() for t in tensor_nodes(n)):
        phase(2)
        found = _judge_backward(recipe, built, result)
        if found is None and (changed := snapshot.broken(failed=False)):
            found = Finding("backward writes an argument", changed)
    for check, number in (("meta", 3), ("layout", 4), ("forms", 5), ("leak", 6), ("reference", 7)):
        if found is None and check in recipe.checks:
            phase(number)
            found = _CHECKS[check](recipe, built, result)
    return found


def _judge_exception(recipe: Recipe, snapshot: Snapshot, error: Exception) -> Optional[Finding]:
    if breach := law.breach(error, recipe.operator.kind == "binding"):
        return Finding(*breach)
    if changed := snapshot.broken(failed=True):
        return Finding("writes though it fails", f"{changed}; {type(error).__name__}: {error}")
    if recipe.sample is not None and not isinstance(error, (MemoryError, treadle.OutOfMemoryError)):
        sample = seeds.samples(recipe.operator, recipe.sample[0])[recipe.sample[1]]
        plain = all(t.layout == "plain" for n in recipe.nodes() for t in tensor_nodes(n))
        graded = any(t.grad for n in recipe.nodes() for t in tensor_nodes(n))
        strided = sample.strides or recipe.operator.kind in ("view", "composite")
        if (plain or not strided) and not (graded and _writes(recipe.operator)):
            return Finding("refuses a call that fits", f"{type(error).__name__}: {error}")
    return None


def _writes(op: Operator) -> bool:
    return op.name.endswith("_") or any(
        a["type"]["alias"] and a["type"]["alias"]["write"] for a in op.args
    )


def _judge_backward(recipe: Recipe, built: Built, result: Any) -> Optional[Finding]:
    outputs = [t for t in tensors(result) if t.requires_grad]
    inputs = [p.tensor for p in built.pieces if p.tensor.requires_grad and p.tensor.is_leaf]
    inputs = list({id(t): t for t in inputs}.values())
    if not outputs or not inputs or any(t.is_meta for t in inputs + outputs):
        return None
    try:
        grads = treadle.autograd.grad(
            outputs, inputs, [treadle.ones_like(t) for t in outputs], allow_unused=True
        )
    except Exception as error:
        breach = law.breach(error, recipe.operator.kind == "binding")
        return Finding("backward: " + breach[0], breach[1]) if breach else None
    for tensor, grad in zip(inputs, grads):
        if grad is not None and (grad.shape != tensor.shape or grad.dtype != tensor.dtype):
            return Finding(
                "backward: wrong result",
                f"a gradient {_kind(grad)} of a tensor {_kind(tensor)}",
            )
    return None


# ---- Checks of a call that succeeded ----


def _kind(t: Any) -> str:
    return f"{str(t.dtype).removeprefix('treadle.')}{list(t.shape)}"


def _plainly_called(recipe: Recipe) -> bool:
    return recipe.form in ("functional", "method") and not recipe.operator.name.endswith("_")


@lru_cache(maxsize=None)
def _repeatable(op: Operator) -> bool:
    """Whether two calls give the same values."""
    return not op.random and not op.name.startswith(("empty", "new_empty", "resize"))


@lru_cache(maxsize=None)
def _strided(op: Operator) -> bool:
    """Whether results depend on the strides of the arguments."""
    return any(s.strides for d in seeds.dtypes(op)[:1] for s in seeds.samples(op, d))


def _nodes(recipe: Recipe) -> list[TensorNode]:
    return [t for n in recipe.nodes() for t in tensor_nodes(n)]


def _has(recipe: Recipe, kind: type) -> bool:
    def inside(node: Node) -> bool:
        return isinstance(node, kind) or any(map(inside, getattr(node, "items", ())))

    return any(map(inside, recipe.nodes()))


def _judge_meta(recipe: Recipe, built: Built, result: Any) -> Optional[Finding]:
    """The meta device gives the same shapes and dtypes."""
    if not _plainly_called(recipe) or _has(recipe, Stranger) or _strided(recipe.operator):
        return None
    kwargs = dict(built.kwargs)
    if not built.pieces:
        if not any(a["name"] == "device" for a in recipe.operator.args):
            return None
        kwargs["device"] = "meta"
    real = tensors(result)
    if "device" in recipe.kwargs or any(t.is_meta for t in real):
        return None

    def moved(value: Any) -> Any:
        if isinstance(value, treadle.Tensor):
            return value.detach().to("meta")
        if type(value) in (list, tuple):
            return type(value)(map(moved, value))
        return value

    args, kwargs = moved(built.args), {k: moved(v) for k, v in kwargs.items()}
    try:
        meta = tensors(recipe.function()(*args, **kwargs))
    except Exception as error:
        if breach := law.breach(error):
            return Finding("meta: " + breach[0], breach[1])
        if isinstance(error, (MemoryError, treadle.OutOfMemoryError)):
            return None  # views without number
        if "meta" in str(error) or not real or isinstance(error, TypeError):
            return None  # depends on the values: what the result is, or a tensor used as a number
        return Finding("meta refuses what the cpu computes", f"{type(error).__name__}: {error}")
    if [(t.shape, t.dtype) for t in meta] != [(t.shape, t.dtype) for t in real]:
        wanted, got = (", ".join(map(_kind, ts)) for ts in (meta, real))
        return Finding("differs from meta", f"expected {wanted}, got {got}")
    return None


def _plain(node: TensorNode) -> Node:
    return replace(node, layout="plain", grad=False)


def _judge_layout(recipe: Recipe, built: Built, result: Any) -> Optional[Finding]:
    """Contiguous arguments of the same values give the same result."""
    op = recipe.operator
    if not _plainly_called(recipe) or not _repeatable(op) or _strided(op) or op.kind == "view":
        return None
    if all(t.layout == "plain" for t in _nodes(recipe)) or _has(recipe, Stranger):
        return None

    def packed(value: Any) -> Any:
        if isinstance(value, treadle.Tensor):
            value = value.detach()
            return value if value.is_meta else value.clone(memory_format=treadle.contiguous_format)
        if type(value) in (list, tuple):
            return type(value)(map(packed, value))
        return value

    args, kwargs = packed(built.args), {k: packed(v) for k, v in built.kwargs.items()}
    treadle.manual_seed(0)
    try:
        again = recipe.function()(*args, **kwargs)
    except Exception as error:
        return Finding("depends on the layout", f"contiguous: {type(error).__name__}: {error}")
    return _compare(recipe, "depends on the layout", result, again)


def _judge_forms(recipe: Recipe, built: Built, result: Any) -> Optional[Finding]:
    """The functional form gives the same values."""
    op = recipe.operator
    if recipe.form == "functional" or not _repeatable(op) or op.name.endswith("_"):
        return None
    if _has(recipe, Alias) or _has(recipe, Stranger):
        return None
    if any(t.effective_layout() in ("expanded", "overlapping") for t in _nodes(recipe)):
        return None  # which of the writes to one element is the last is not said
    if _may_be_another(recipe):
        return None  # without out= it is: max(a, 0, out=t) takes a tensor, max(a, 0) a dimension
    plain = replace(recipe, form="functional", out=None, checks=frozenset())
    fresh = build(plain)
    treadle.manual_seed(0)
    try:
        functional = plain.function()(*fresh.args, **fresh.kwargs)
    except (MemoryError, treadle.OutOfMemoryError, TypeError):
        return None  # TypeError: numbers alone, which an out= makes tensors
    except Exception as error:
        return Finding("forms differ", f"functional: {type(error).__name__}: {error}")
    if [t.dtype for t in tensors(result)] != [t.dtype for t in tensors(functional)]:
        # A sum is of the dtype of `out`; where that is wider than 16 bits, it is not rounded to
        # them on the way.
        summed = any(a["name"] == "dtype" for a in op.args)
        if summed or any(t.itemsize == 2 for t in tensors(functional)):
            return None
    return _compare(recipe, "forms differ", result, functional)


def _may_be_another(recipe: Recipe) -> bool:
    """Whether the call fits an overload other than the one it was drawn for: an argument too many,
    a number where this one takes a tensor, or one tensor to write to where it has several results.
    """
    op = recipe.operator
    if sum(other.name == op.name for other in operators()) == 1:
        return False
    given = {a["name"]: node for a, node in zip(op.args, recipe.args)} | recipe.kwargs
    if len(op.json["returns"]) > 1 and isinstance(recipe.out, TensorNode):
        return True
    return len(recipe.args) > len(op.args) or any(
        a["type"]["base"] == "Tensor"
        and isinstance(node := given.get(a["name"]), Literal)
        and isinstance(node.value, (int, float, complex))
        for a in op.args
    )


def _compare(recipe: Recipe, kind: str, result: Any, other: Any) -> Optional[Finding]:
    ours, theirs = tensors(result), tensors(other)
    if len(ours) != len(theirs):
        return Finding(kind, f"{len(ours)} results and {len(theirs)}")
    tame = all(
        isinstance(t.data, Fixed) or (isinstance(t.data, Palette) and t.data.name in ORDINARY)
        for t in _nodes(recipe)
    )
    for a, b in zip(ours, theirs):
        # Results that go to a wider dtype need not have been rounded on the way.
        rtol = max(TOLERANCE.get(str(t.dtype).removeprefix("treadle."), 1e-8) for t in (a, b))
        if a.shape != b.shape:
            return Finding(kind, f"{_kind(a)} and {_kind(b)}")
        if a.dtype != b.dtype:
            if recipe.form not in ("inplace", "out"):
                return Finding(kind, f"{_kind(a)} and {_kind(b)}")
            b = b.detach().to(a.dtype)
        if a.is_meta or b.is_meta or not a.numel() or a.dim() > MOST_DIMENSIONS:
            continue
        x, y = to_array(a), to_array(b)
        if np.array_equal(x, y, equal_nan=x.dtype.kind in "fc"):
            continue
        if x.dtype.kind in "fc":
            if not tame and recipe.form in ("functional", "method"):
                continue  # sums in another order, of values too far apart
            with np.errstate(all="ignore"):
                if np.allclose(x, y, rtol=rtol, atol=rtol, equal_nan=True):
                    continue
        return Finding(kind, f"{_some(x)} and {_some(y)}")
    return None


def _some(array: Any) -> str:
    return np.array2string(array.reshape(-1)[:8], separator=", ")


def _judge_leak(recipe: Recipe, built: Built, result: Any) -> Optional[Finding]:
    """Calling again and again takes no memory and keeps no object."""
    del built, result
    bare = recipe.with_nodes(lambda n: map_tensors(n, lambda t: replace(t, grad=False)))
    if any(prod(t.shape) > MOST_REPEATED for t in _nodes(bare)):
        return None
    function = bare.function()

    def repeat() -> None:
        for _ in range(REPETITIONS):
            made = build(bare)
            try:
                function(*made.args, **made.kwargs)
            except Exception:
                pass
            del made

    repeat()
    # Objects that are there already are not looked through again each time.
    gc.freeze()
    amounts = []
    for _ in range(4):
        gc.collect()
        amounts.append(_amounts())
        repeat()
    for name in amounts[0]:
        steps = [b[name] - a[name] for a, b in zip(amounts, amounts[1:])]
        # The same each time, and so many for each call: other growth is of caches.
        if steps[0] and len(set(steps)) == 1 and steps[0] % REPETITIONS == 0:
            return Finding("leak", f"{name}: {steps} in {REPETITIONS} calls each")
    return None


def _amounts() -> dict[str, int]:
    stats = treadle._C._memory_stats()
    return {
        "bytes of tensors": stats["current_bytes"],
        "Python's blocks": sys.getallocatedblocks(),
        "references to None": sys.getrefcount(None),
        "references to True": sys.getrefcount(True),
        "references to float32": sys.getrefcount(treadle.float32),
    }


@lru_cache(maxsize=20_000)
def _wanted(op: Operator, dtype: str, number: int) -> Optional[list[Any]]:
    sample = seeds.samples(op, dtype)[number]
    return None if sample.expect is None else expected(sample, dtype)


def _judge_reference(recipe: Recipe, built: Built, result: Any) -> Optional[Finding]:
    """A sample's result is what NumPy says."""
    if recipe.sample is None:
        return None
    op, (dtype, number) = recipe.operator, recipe.sample
    wanted = _wanted(op, dtype, number)
    if wanted is None:
        return None
    sample = seeds.samples(op, dtype)[number]
    if sample.strides and any(t.layout != "plain" for t in _nodes(recipe)):
        return None
    try:
        judged = outcome(op, result, built.args, built.kwargs)
        assert_matches(judged, wanted, dtype, sample, op.id)
    except AssertionError as error:
        return Finding("wrong result", " ".join(str(error).split())[:400])
    return None


_CHECKS: dict[str, Callable[[Recipe, Built, Any], Optional[Finding]]] = {
    "meta": _judge_meta,
    "layout": _judge_layout,
    "forms": _judge_forms,
    "leak": _judge_leak,
    "reference": _judge_reference,
}

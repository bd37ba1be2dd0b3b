"""Selective checkpointing: what the first run puts by and the second takes out, and what of a
function runs twice.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
from collections import Counter as Counts
from collections import defaultdict, deque
from typing import Any, List

import pytest

import treadle
from treadle.utils import _selective_checkpoint as selective
from treadle.utils._python_dispatch import TorchDispatchMode
from treadle.utils.checkpoint import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    checkpoint,
    create_selective_checkpoint_contexts,
    get_device_states,
    set_device_states,
)

aten = treadle.ops.aten


class Counted:
    """An operator that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        return x * 2, "unchanged"


def test_results_are_put_by_and_taken_out_in_order() -> None:
    kept, again = Counted(), Counted()
    seen: List[SelectiveCheckpointContext] = []

    def policy(ctx: SelectiveCheckpointContext, op: Any, *args: Any) -> Any:
        seen.append(ctx)
        return op is kept or CheckpointPolicy.MUST_RECOMPUTE

    storage: Any = defaultdict(deque)
    first = [
        selective._run_first(policy, storage, op, (treadle.ones(2) * i,), {})
        for i, op in enumerate((kept, again, kept))
    ]
    assert not any(ctx.is_recompute for ctx in seen) and seen[0].op_output is first[0]
    second = [
        selective._run_again(storage, False, op, (treadle.zeros(2),), {})
        for op in (kept, again, kept)
    ]
    assert (kept.calls, again.calls) == (2, 2)
    assert [out[0].tolist() for out in second] == [[0.0, 0.0], [0.0, 0.0], [4.0, 4.0]]
    assert second[2][1] == "unchanged"
    with pytest.raises(RuntimeError, match="checkpoint: expected the operators of the first run"):
        selective._run_again(storage, False, kept, (treadle.zeros(2),), {})


@pytest.mark.parametrize("allowed", [False, True])
def test_a_kept_result_that_was_changed(allowed: bool) -> None:
    storage: Any = defaultdict(deque)
    op = Counted()
    out, _ = selective._run_first(lambda *a: True, storage, op, (treadle.ones(2),), {})
    out.add_(1)
    if allowed:
        assert selective._run_again(storage, True, op, (), {})[0].tolist() == [3.0, 3.0]
        return
    with pytest.raises(RuntimeError, match="got one that was changed in place"):
        selective._run_again(storage, False, op, (), {})


def test_lists_and_what_is_none() -> None:
    policy = selective._policy_of([treadle.ops.aten.mm.default])
    context = SelectiveCheckpointContext(is_recompute=False)
    assert policy(context, treadle.ops.aten.mm.default)
    assert not policy(context, treadle.ops.aten.add.Tensor)
    with pytest.raises(ValueError, match="expected a list of OpOverloads, as ops.aten.mm.default"):
        create_selective_checkpoint_contexts([treadle.mm])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="expected a function or a list of operators, got str"):
        create_selective_checkpoint_contexts("a")  # type: ignore[arg-type]


def test_states_of_devices() -> None:
    assert get_device_states(treadle.ones(2), {"x": [treadle.ones(1, device="meta")]}) == ([], [])
    set_device_states([], [])


# ---- checkpoints ----


class Recording(TorchDispatchMode):
    """Counts the operators that reach kernels."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Any = Counts()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls[func] += 1
        return func(*args, **(kwargs or {}))


def block(x: Any, w: Any) -> Any:
    return ((x @ w).sin() @ w).exp().sum()


def gradients(policy: Any, function: Any = block, **options: Any) -> Any:
    """Gradients by way of a checkpoint, and how often each operator ran."""
    treadle.manual_seed(0)
    x = treadle.randn(4, 4, dtype=treadle.float64, requires_grad=True)
    w = treadle.randn(4, 4, dtype=treadle.float64, requires_grad=True)
    contexts = functools.partial(create_selective_checkpoint_contexts, policy, **options)
    with Recording() as mode:
        checkpoint(function, x, w, use_reentrant=False, context_fn=contexts).backward()
    return (x.grad, w.grad), mode.calls


def plain_gradients(function: Any = block) -> Any:
    treadle.manual_seed(0)
    x = treadle.randn(4, 4, dtype=treadle.float64, requires_grad=True)
    w = treadle.randn(4, 4, dtype=treadle.float64, requires_grad=True)
    function(x, w).backward()
    return x.grad, w.grad


def equal(found: Any, expected: Any) -> bool:
    return all(treadle.equal(a, b) for a, b in zip(found, expected))


MM, SIN, EXP = aten.mm.default, aten.sin.default, aten.exp.default


def test_operators_of_the_list_run_once() -> None:
    found, calls = gradients([MM])
    assert equal(found, plain_gradients())
    # Two forward and four backward; without the list the second run would add two.
    assert (calls[MM], calls[SIN]) == (6, 2)
    found, calls = gradients([])
    assert equal(found, plain_gradients())
    assert (calls[MM], calls[SIN]) == (8, 2)
    found, calls = gradients([SIN, EXP])
    assert equal(found, plain_gradients())
    assert (calls[MM], calls[SIN], calls[EXP]) == (8, 1, 1)


def test_a_policy_sees_both_runs() -> None:
    seen: List[Any] = []

    def policy(ctx: SelectiveCheckpointContext, op: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append((ctx.is_recompute, op, ctx.op_output is None))
        return CheckpointPolicy.MUST_SAVE if op is MM else CheckpointPolicy.PREFER_RECOMPUTE

    found, calls = gradients(policy)
    assert equal(found, plain_gradients()) and calls[MM] == 6
    assert (False, MM, False) in seen and (False, SIN, False) in seen


def test_results_kept_on_the_cpu() -> None:
    policy = lambda ctx, op, *a, **k: CheckpointPolicy.MUST_CPU_OFFLOAD  # noqa: E731
    found, _ = gradients(policy)
    assert equal(found, plain_gradients())


def test_random_operators_and_views() -> None:
    def function(x: Any, w: Any) -> Any:
        y = treadle.nn.functional.dropout(x, 0.5).t() @ w
        return sum((part * 2).sum() for part in y.split(2))

    expected = plain_gradients(function)
    for policy in ([], [MM], [aten.split.Tensor, aten.t.default]):
        found, _ = gradients(policy, function)
        assert equal(found, expected)


def test_a_result_that_was_changed_in_between() -> None:
    def function(x: Any, w: Any) -> Any:
        y = x @ w
        y.mul_(2)
        return y.exp().sum()

    expected = plain_gradients(function)
    found, _ = gradients([], function)
    assert equal(found, expected)
    with pytest.raises(RuntimeError, match="expected results that were put by to stay as they"):
        gradients([MM], function)


def test_memory_of_what_is_not_kept() -> None:
    def held(policy: Any) -> int:
        x = treadle.randn(256, 256, requires_grad=True)
        contexts = functools.partial(create_selective_checkpoint_contexts, policy)
        before = treadle._C._memory_stats()["current_bytes"]
        y = checkpoint(
            lambda x: (x @ x).sin().exp().sum(), x, use_reentrant=False, context_fn=contexts
        )
        bytes_held = treadle._C._memory_stats()["current_bytes"] - before
        y.backward()
        return bytes_held

    matrix = 256 * 256 * 4
    assert held([]) < matrix // 2 < held([MM]) < 2 * matrix
    assert held([MM, SIN]) > 1.5 * matrix

"""Selective checkpointing: what the first run puts by and the second takes out."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any, List

import pytest

import treadle
from treadle.utils import _selective_checkpoint as selective
from treadle.utils.checkpoint import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
    get_device_states,
    set_device_states,
)


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

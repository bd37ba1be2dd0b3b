"""Selective checkpointing: which operators of a checkpointed function keep their results, so that
they do not run a second time.

    context_fn = functools.partial(create_selective_checkpoint_contexts, [ops.aten.mm.default])
    y = checkpoint(block, x, use_reentrant=False, context_fn=context_fn)

The first run puts results by, in the order of the calls of each operator; the second takes them
out. Both see operators below autograd, through modes over operators (TorchDispatchMode).
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
from collections import defaultdict, deque
from typing import Any, Callable, ContextManager, Deque, Dict, List, Tuple, Union

from treadle import _C
from treadle._ops import OpOverload, ops
from treadle.utils._python_dispatch import TorchDispatchMode
from treadle.utils._pytree import tree_map_only

Tensor = _C.Tensor


class CheckpointPolicy(enum.Enum):
    """The fate of an operator's results. MUST and PREFER are the same but to compilers."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVES = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
_OFFLOADS = (CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD)


class SelectiveCheckpointContext:
    """The context that a policy is given beside the operator and its arguments: whether it is the
    second run, and in the first the operator's result."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


Policy = Callable[..., Union[CheckpointPolicy, bool]]
Storage = Dict[Any, Deque[Any]]

# Operators whose results are always the second run's own: they compute nothing.
SAC_IGNORED_OPS: set = {ops.aten.detach.default}


class _Kept:
    """A tensor that was put by, as it was then."""

    def __init__(self, tensor: Tensor, offload: bool) -> None:
        self.device = tensor.device
        self.tensor = tensor.detach().to("cpu") if offload else tensor.detach()
        self.version = self.tensor._version

    def take(self, may_have_changed: bool) -> Tensor:
        if not may_have_changed and self.tensor._version != self.version:
            raise RuntimeError(
                "checkpoint: expected results that were put by to stay as they were, got one that "
                "was changed in place; allow_cache_entry_mutation=True allows that"
            )
        return self.tensor.to(self.device)


def _decide(policy: Policy, is_recompute: bool, func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    context = SelectiveCheckpointContext(is_recompute=is_recompute, op_output=out)
    chosen = policy(context, func, *args, **kwargs)
    if isinstance(chosen, bool):
        return CheckpointPolicy.MUST_SAVE if chosen else CheckpointPolicy.PREFER_RECOMPUTE
    return chosen


def _run_first(
    policy: Policy, storage: Storage, func: Callable, args: Tuple, kwargs: Dict[str, Any]
) -> Any:
    """An operator in the first run."""
    out = func(*args, **kwargs)
    if func in SAC_IGNORED_OPS:
        return out
    chosen = _decide(policy, False, func, args, kwargs, out)
    if chosen in (*_SAVES, *_OFFLOADS):
        offload = chosen in _OFFLOADS
        storage[func].append(tree_map_only(Tensor, lambda t: _Kept(t, offload), out))
    else:
        storage[func].append(None)
    return out


def _run_again(
    storage: Storage, changes: bool, func: Callable, args: Tuple, kwargs: Dict[str, Any]
) -> Any:
    """An operator in the second run."""
    if func in SAC_IGNORED_OPS:
        return func(*args, **kwargs)
    calls = storage.get(func)
    if not calls:
        raise RuntimeError(
            f"checkpoint: expected the operators of the first run, got one more call of {func}; "
            "the function must do the same in both runs, and its results serve one backward"
        )
    kept = calls.popleft()
    if kept is None:
        return func(*args, **kwargs)
    return tree_map_only(_Kept, lambda k: k.take(changes), kept)


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Union[Policy, List[OpOverload]], allow_cache_entry_mutation: bool = False
) -> Tuple[ContextManager, ContextManager]:
    """The two contexts that checkpoint() wants of its context_fn.

    `policy_fn_or_list` is a list of operators whose results are kept, or policy(ctx, op, *args,
    **kwargs), which returns a CheckpointPolicy, or True to keep them. With
    `allow_cache_entry_mutation`, a kept result may have been changed in place.

    ValueError for a list of something else than OpOverloads, as ops.aten.mm.default is one;
    TypeError for neither a list nor a function.
    """
    policy = _policy_of(policy_fn_or_list)
    storage: Storage = defaultdict(deque)

    class Caching(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore
            return _run_first(policy, storage, func, args, kwargs or {})

    class Cached(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore
            return _run_again(storage, allow_cache_entry_mutation, func, args, kwargs or {})

    return Caching(), Cached()


def _policy_of(given: Any) -> Policy:
    if isinstance(given, list):
        for op in given:
            if not isinstance(op, OpOverload):
                raise ValueError(
                    "create_selective_checkpoint_contexts: expected a list of OpOverloads, as "
                    f"ops.aten.mm.default is one, got {op!r} of type {type(op).__name__}"
                )
        chosen = set(given)
        return lambda ctx, op, *args, **kwargs: op in chosen
    if not callable(given):
        raise TypeError(
            "create_selective_checkpoint_contexts: expected a function or a list of operators, got "
            f"{type(given).__name__}"
        )
    return given

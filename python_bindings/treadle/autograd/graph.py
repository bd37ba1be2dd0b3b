"""The graph that backward walks: its nodes and edges, hooks on them, and on what they save.

Example:

    with saved_tensors_hooks(lambda t: t.half(), lambda t: t.float()):
        loss = model(x)                    # values for backward are kept in half the memory
    loss.grad_fn.next_functions            # ((<AddmmBackward0 object ...>, 0), ...)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from typing import Any, Callable, Iterator, Sequence, Tuple, Union

from treadle import _C
from treadle.autograd._edge import GradientEdge, get_gradient_edge
from treadle.autograd.grad_mode import _Mode

Node = _C.Node


def increment_version(tensor: Union[_C.Tensor, Sequence[_C.Tensor]]) -> None:
    """Say that the values of a tensor, or of several, were written behind autograd's back."""
    for t in (tensor,) if isinstance(tensor, _C.Tensor) else tensor:
        _C._increment_version(t)


def queue_callback(callback: Callable[[], None]) -> None:
    """Call `callback` after the backward that runs; RuntimeError when none does."""
    _C._queue_callback(callback)


# ---- switches ----
#
# One thread records a graph of a device on one stream, so that no node has a stream of its own.

_switches = {"stale_capture_stream": False, "accumulate_grad_stream": True}


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Whether a node's older stream gives way to the one that is captured. Kept, and changes
    nothing."""
    _switches["stale_capture_stream"] = bool(enabled)


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Whether a gradient that comes from another stream warns. Kept, and changes nothing."""
    _switches["accumulate_grad_stream"] = bool(enabled)


@contextlib.contextmanager
def region_activation_memory_budget(budget: float) -> Iterator[None]:
    """In the block, how much of what backward needs a compiler may keep, from 0 to 1. No compiler
    asks for it. ValueError for another number."""
    if not 0 <= budget <= 1:
        raise ValueError(
            f"region_activation_memory_budget: expected a budget from 0 to 1, got {budget}"
        )
    yield


# ---- saved tensors ----


class saved_tensors_hooks:
    """In the block, what is saved for backward goes through `pack_hook`, and comes back through
    `unpack_hook`.

    pack_hook(tensor) may return anything; it must not change the tensor. unpack_hook(packed) must
    return a tensor with the same values. The innermost block counts.
    """

    def __init__(
        self, pack_hook: Callable[[_C.Tensor], Any], unpack_hook: Callable[[Any], _C.Tensor]
    ) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        _C._push_saved_tensors_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exc: Any) -> None:
        _C._pop_saved_tensors_hooks()


class save_on_cpu(saved_tensors_hooks):
    """In the block, what is saved for backward waits in the CPU's memory, and goes back to its
    device for backward."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: _C.Tensor) -> Tuple[Any, _C.Tensor]:
            # An alias: the tensor itself may be an output of the node that is to hold it.
            kept = tensor.detach() if tensor.device.type == "cpu" else tensor.detach().cpu()
            if pin_memory and tensor.device.type != "cpu":
                kept = kept.pin_memory(tensor.device.type)
            return tensor.device, kept

        def unpack(packed: Tuple[Any, _C.Tensor]) -> _C.Tensor:
            device, kept = packed
            return kept.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


class disable_saved_tensors_hooks(_Mode):
    """In the block, entering saved_tensors_hooks is a RuntimeError with this message."""

    def __init__(self, error_message: str) -> None:
        self.error_message = error_message

    def __enter__(self) -> None:
        self._before = _C._disable_saved_tensors_hooks(self.error_message)

    def __exit__(self, *exc: Any) -> None:
        _C._disable_saved_tensors_hooks(self._before)

    def _clone(self) -> "disable_saved_tensors_hooks":
        return type(self)(self.error_message)


class _SavedCopies:
    """The copies that allow_mutation_on_saved_tensors() has made."""

    def __init__(self) -> None:
        self.copies: dict = {}

    def clear(self) -> None:
        """Drop the copies: backward through what they were saved for is an error from then on."""
        self.copies.clear()


class allow_mutation_on_saved_tensors:
    """In the block, values saved for backward may be changed in place: backward sees copies."""

    _active = threading.local()

    def __enter__(self) -> _SavedCopies:
        if getattr(self._active, "held", None) is not None:
            raise RuntimeError(
                "allow_mutation_on_saved_tensors: expected to be entered once, got a block in it"
            )
        held = self._active.held = _SavedCopies()

        def pack(tensor: _C.Tensor) -> Any:
            key = object()
            held.copies[key] = tensor.detach().clone()
            return key

        def unpack(key: Any) -> _C.Tensor:
            if key not in held.copies:
                raise AssertionError(
                    "allow_mutation_on_saved_tensors: expected backward while the copies are there,"
                    " got it after the block or clear()"
                )
            return held.copies[key]

        self._hooks = saved_tensors_hooks(pack, unpack)
        self._hooks.__enter__()
        return held

    def __exit__(self, *exc: Any) -> None:
        self._hooks.__exit__(*exc)
        self._active.held.clear()
        self._active.held = None


# ---- hooks on several tensors ----


class _Handles:
    """Removes several hooks at once."""

    def __init__(self, handles: Sequence[Any]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Take the hooks away; doing it twice does no harm."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> "_Handles":
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()


def _reached(tensor: _C.Tensor) -> Callable[[], bool]:
    """Asks whether the backward that runs reaches `tensor`, without keeping it or its node alive:
    the node is to hold who asks."""
    if tensor.is_leaf:
        leaf = weakref.ref(tensor)
        return lambda: leaf() is not None and _C._will_run(*_C._node_key(leaf()))
    return functools.partial(_C._will_run, *_C._node_key(tensor))


class _Arrivals:
    """The gradients that have come in one backward."""

    def __init__(self, reached: Sequence[Callable[[], bool]]) -> None:
        self.missing = sum(ask() for ask in reached)
        self.gradients: list = [None] * len(reached)


def register_multi_grad_hook(
    tensors: Sequence[_C.Tensor], fn: Callable[..., Any], *, mode: str = "all"
) -> _Handles:
    """Call `fn` once in each backward that reaches any of `tensors`, which must require grad.

    mode "all": fn(gradients) after all of them that the backward reaches have come, with None for
    the others. mode "any": fn(gradient) at the first that comes.
    """
    if mode not in ("all", "any"):
        raise ValueError(
            f"register_multi_grad_hook: expected mode to be 'all' or 'any', got {mode!r}"
        )
    for i, tensor in enumerate(tensors):
        if not tensor.requires_grad:
            raise AssertionError(
                f"register_multi_grad_hook: expected tensors that require grad, got one that does "
                f"not: {i}"
            )
    reached = [_reached(t) for t in tensors]
    lock = threading.Lock()
    running: dict[int, Any] = {}  # by the number of the backward pass

    def all_hook(i: int, gradient: _C.Tensor) -> None:
        number = _C._current_backward()
        with lock:
            arrivals = running.get(number)
            if arrivals is None:
                arrivals = running[number] = _Arrivals(reached)
            arrivals.gradients[i] = gradient
            arrivals.missing -= 1
            if arrivals.missing > 0:
                return
            del running[number]
        fn(arrivals.gradients)

    def any_hook(gradient: _C.Tensor) -> None:
        number = _C._current_backward()
        with lock:
            if number in running:
                return
            running[number] = True
        _C._queue_callback(lambda: running.pop(number, None))  # no other backward has the number
        fn(gradient)

    if mode == "any":
        return _Handles([t.register_hook(any_hook) for t in tensors])
    return _Handles(
        [t.register_hook(functools.partial(all_hook, i)) for i, t in enumerate(tensors)]
    )


__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "queue_callback",
    "region_activation_memory_budget",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_override_stale_capture_stream",
    "set_warn_on_accumulate_grad_stream_mismatch",
]

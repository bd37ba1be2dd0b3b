"""Trading time for memory: what backward needs of a function is computed again instead of kept.

    y = checkpoint(block, x, use_reentrant=False)      # only x is kept of the whole block
    y = checkpoint_sequential(layers, 4, x, use_reentrant=False)

There are two ways. Without reentrance, the function runs as always, but each tensor that is saved
for backward leaves only a number (a `_Slot`); the first of them that backward asks for makes the
function run again, which fills them all. With reentrance, the function runs unrecorded inside a
custom function, whose backward runs it again and calls backward on that.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import warnings
import weakref
from typing import Any, Callable, ContextManager, Dict, Iterable, Iterator, List, Optional, Tuple

from treadle import _C, _names, random
from treadle._device.registry import get_device_module
from treadle.amp import autocast
from treadle.amp._state import get_autocast_dtype, is_autocast_enabled
from treadle.autograd import backward
from treadle.autograd.function import Function
from treadle.autograd.grad_mode import enable_grad, no_grad
from treadle.autograd.graph import saved_tensors_hooks
from treadle.utils._pytree import tree_leaves

Tensor = _C.Tensor


class CheckpointError(RuntimeError):
    """The function did something else when it ran again."""


# ---- running again under the same conditions ----


class _Surroundings:
    """The conditions of a function's run beside its arguments: autocast and random numbers."""

    def __init__(self, preserve_rng_state: bool) -> None:
        # Every device: those that the function uses are not known before it runs.
        generators = random._generators_of(None, None) if preserve_rng_state else ()
        kept = [_C.default_generator, *generators] if preserve_rng_state else []
        self.random_states = [(generator, generator.get_state()) for generator in kept]
        self.autocast = [
            {
                "device_type": kind,
                "enabled": is_autocast_enabled(kind),
                "dtype": get_autocast_dtype(kind),
                "cache_enabled": _C.is_autocast_cache_enabled(),
            }
            for kind in ("cpu", *_C._backends())
        ]

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """A block in which they are as they were; afterwards they are as before it."""
        before = [(generator, generator.get_state()) for generator, _ in self.random_states]
        try:
            for generator, state in self.random_states:
                generator.set_state(state)
            with contextlib.ExitStack() as contexts:
                for settings in self.autocast:
                    contexts.enter_context(autocast(**settings))
                yield
        finally:
            for generator, state in before:
                generator.set_state(state)


def detach_variable(inputs: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """The tensors without history, requiring grad where they did; RuntimeError for no tuple."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            f"detach_variable: expected a tuple of tensors, got {type(inputs).__name__}"
        )
    return tuple(
        x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs
    )


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn when no gradient will flow, as no input requires one."""
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warnings.warn(
            "checkpoint: expected an input that requires grad; there will be no gradients",
            stacklevel=3,
        )


# ---- with reentrance ----


class CheckpointFunction(Function):
    """The function as one node, whose backward runs it again."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable, preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.surroundings = _Surroundings(preserve_rng_state)
        ctx.is_tensor = [isinstance(arg, Tensor) for arg in args]
        ctx.others = [None if is_tensor else arg for arg, is_tensor in zip(args, ctx.is_tensor)]
        ctx.save_for_backward(*(arg for arg in args if isinstance(arg, Tensor)))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Tuple[Any, ...]:
        if not _C._is_whole_backward():
            raise RuntimeError(
                "checkpoint: expected backward() without inputs, as use_reentrant=True needs it, "
                "got autograd.grad() or backward(inputs=...); use_reentrant=False allows both"
            )
        saved = iter(ctx.saved_tensors)
        args = tuple(
            next(saved) if is_tensor else other
            for other, is_tensor in zip(ctx.others, ctx.is_tensor)
        )
        inputs = detach_variable(args)
        with ctx.surroundings.again(), enable_grad():
            outputs = ctx.run_function(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [
            (output, grad)
            for output, grad in zip(outputs, grads)
            if isinstance(output, Tensor) and output.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "checkpoint: expected an output that requires grad, got none of output has "
                "requires_grad=True: this checkpoint is not necessary"
            )
        backward(*zip(*pairs))  # type: ignore[arg-type]
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in inputs))


# ---- without reentrance ----


class _Stop(BaseException):
    """Ends a run when everything that was wanted of it is there. No `except Exception` of the
    function is to catch it."""


class _SavedInputs(Function):
    """Keeps tensors as a node keeps what it saves: so that an outer checkpoint need not hold the
    inputs of an inner one either, and a change of them in place is an error."""

    @staticmethod
    def forward(ctx: Any, carrier: Tensor, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        return carrier.new_empty((0,))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise AssertionError("the node only keeps tensors")


class _Slot:
    """Stands for a tensor that was saved. Its values, one for each backward that runs, live as long
    as it does: until the node that saved it has run."""

    __slots__ = ("frame", "values", "__weakref__")

    def __init__(self, frame: "_Frame") -> None:
        self.frame = frame
        self.values: Dict[int, Tensor] = {}


def _description(tensor: Tensor) -> Dict[str, Any]:
    return {"shape": tuple(tensor.shape), "dtype": tensor.dtype, "device": tensor.device}


class _Frame:
    """One checkpointed call: how to run it again, and the slots it has left."""

    def __init__(
        self, function: Callable, args: Tuple[Any, ...], kwargs: Dict[str, Any], preserve: bool
    ) -> None:
        self.function, self.kwargs = function, kwargs
        self.surroundings = _Surroundings(preserve)
        self.is_tensor = [isinstance(arg, Tensor) for arg in args]
        self.others = [None if is_tensor else arg for arg, is_tensor in zip(args, self.is_tensor)]
        carrier = _C.empty((0,)).requires_grad_()
        tensors = (arg for arg in args if isinstance(arg, Tensor))
        self.keeper = _SavedInputs.apply(carrier, *tensors).grad_fn
        self.recompute_context: ContextManager = contextlib.nullcontext()
        self.check, self.early_stop = True, True
        self.slots: List[weakref.ref] = []
        self.descriptions: List[Dict[str, Any]] = []
        self.filled: set = set()  # the backwards for which the slots have values

    def args(self) -> Tuple[Any, ...]:
        saved = iter(self.keeper.saved_tensors)
        return tuple(
            next(saved) if is_tensor else other
            for other, is_tensor in zip(self.others, self.is_tensor)
        )

    def hooks(self) -> saved_tensors_hooks:
        """In force during the first run."""

        def pack(tensor: Tensor) -> _Slot:
            slot = _Slot(self)
            self.slots.append(weakref.ref(slot))
            self.descriptions.append(_description(tensor))
            return slot

        return saved_tensors_hooks(pack, _value)

    def run_again(self, number: int) -> None:
        """Give the slots that are left values for one backward."""
        found: List[Dict[str, Any]] = []

        def pack(tensor: Tensor) -> Tensor:
            # An argument without a history to hold on to is kept as the object that it is.
            is_plain = not tensor.requires_grad and any(tensor is arg for arg in args)
            kept, place = tensor if is_plain else tensor.detach(), len(found)
            found.append(_description(tensor))
            slot = self.slots[place]() if place < len(self.slots) else None
            if slot is not None:
                slot.values[number] = kept
            if self.early_stop and len(found) == len(self.slots):
                raise _Stop
            return kept

        args = self.args()
        with contextlib.suppress(_Stop), self.surroundings.again(), self.recompute_context:
            with saved_tensors_hooks(pack, lambda tensor: tensor), enable_grad():
                self.function(*args, **self.kwargs)
        self._compare(found)

    def _compare(self, found: List[Dict[str, Any]]) -> None:
        if len(found) != len(self.slots):
            raise CheckpointError(
                "checkpoint: expected the function to do the same when it ran again, got a "
                f"different number of tensors saved for backward: {len(self.slots)} at first, "
                f"{len(found)} then"
            )
        if not self.check:
            return
        for place, (first, second) in enumerate(zip(self.descriptions, found)):
            if first != second:
                raise CheckpointError(
                    "checkpoint: expected the function to do the same when it ran again, got "
                    f"different metadata of saved tensor {place}:\n  {first} at first\n"
                    f"  {second} then"
                )

    def forget(self, number: int) -> None:
        """Drop the values of a backward that is over."""
        self.filled.discard(number)
        for reference in self.slots:
            slot = reference()
            if slot is not None:
                slot.values.pop(number, None)


def _value(slot: _Slot) -> Tensor:
    """The tensor of the slot, in the backward that runs, or for a look at it outside of one."""
    frame, number = slot.frame, _C._current_backward()
    if number < 0:
        # Nothing will say that the look is over, so nothing is kept for another.
        try:
            frame.run_again(number)
            return slot.values[number]
        finally:
            frame.forget(number)
    if number not in frame.filled:
        frame.filled.add(number)
        # Not to keep the frame until the end of backward.
        alive = weakref.ref(frame)
        _C._queue_callback(lambda: alive() and alive().forget(number))  # type: ignore[union-attr]
        frame.run_again(number)
    return slot.values[number]


_early_stop: Optional[bool] = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """For checkpoints made in the block: whether a second run ends as soon as everything that is
    needed has been computed again."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: Optional[bool]) -> Iterator[None]:
    """None and False, which change nothing. NotImplementedError for True: what operators the two
    runs called is not recorded; errors always say which tensors differ."""
    if enabled:
        raise NotImplementedError(
            "set_checkpoint_debug_enabled: expected False or None, got True: the operators of the "
            "two runs are not recorded"
        )
    yield


def noop_context_fn() -> Tuple[ContextManager, ContextManager]:
    """Contexts that do nothing, for the two runs."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def _without_reentrance(
    function: Callable,
    args: Tuple[Any, ...],
    kwargs: Dict[str, Any],
    preserve: bool,
    context_fn: Callable[[], Tuple[ContextManager, ContextManager]],
    determinism_check: str,
    early_stop: bool,
) -> Any:
    if determinism_check not in ("default", "none"):
        raise ValueError(
            "checkpoint: expected determinism_check to be 'default' or 'none', got "
            f"{determinism_check!r}"
        )
    forward_context, recompute_context = context_fn()
    if not _C.is_grad_enabled():
        with forward_context:
            return function(*args, **kwargs)
    frame = _Frame(function, args, kwargs, preserve)
    frame.recompute_context = recompute_context
    frame.check = determinism_check == "default"
    frame.early_stop = early_stop if _early_stop is None else _early_stop
    with frame.hooks(), forward_context:
        return function(*args, **kwargs)


# ---- what programs call ----


def _reentrant(name: str, use_reentrant: Optional[bool]) -> bool:
    if use_reentrant is None:
        warnings.warn(
            f"{name}: the use_reentrant parameter should be passed explicitly; "
            "use_reentrant=False is recommended, True is taken",
            stacklevel=3,
        )
        return True
    return use_reentrant


def checkpoint(
    function: Callable,
    *args: Any,
    use_reentrant: Optional[bool] = None,
    context_fn: Callable[[], Tuple[ContextManager, ContextManager]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """function(*args, **kwargs), of which only the arguments are kept for backward; there the
    function runs again.

    `use_reentrant=False` works with everything that backward can do; True, the older way, needs an
    argument that requires grad, takes no keyword arguments and does not work with autograd.grad().
    `preserve_rng_state=False` lets random operators draw other numbers the second time.
    `context_fn` gives two contexts, for the first and the second run. The second run must save the
    same tensors: CheckpointError where shapes, dtypes or devices differ, unless `determinism_check`
    is "none". With `early_stop` it ends as soon as it has computed what backward needs.
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if debug and use_reentrant is False:
        raise NotImplementedError(
            "checkpoint: expected debug=False, got True: the operators of the two runs are not "
            "recorded; errors name the tensors that differ"
        )
    if not _reentrant("checkpoint", use_reentrant):
        return _without_reentrance(
            function, args, kwargs, preserve, context_fn, determinism_check, early_stop
        )
    if kwargs:
        raise ValueError(
            f"checkpoint: Unexpected keyword arguments: {', '.join(kwargs)}; "
            "use_reentrant=False takes them"
        )
    if context_fn is not noop_context_fn or debug:
        raise ValueError(
            "checkpoint: expected use_reentrant=False beside context_fn and debug, got True"
        )
    return CheckpointFunction.apply(function, preserve, *args)


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: Optional[bool] = None,
    **kwargs: Any,
) -> Any:
    """Functions, or the modules of a Sequential, one after the other, in `segments` parts; all but
    the last part are checkpoints."""
    reentrant = _reentrant("checkpoint_sequential", use_reentrant)
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError(
            f"checkpoint_sequential: Unexpected keyword arguments: {', '.join(kwargs)}"
        )
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(steps) // segments

    def part(start: int, end: int) -> Callable:
        def run(value: Any) -> Any:
            for step in steps[start:end]:
                value = step(value)
            return value

        return run

    done = size * (segments - 1)
    for start in range(0, done, max(size, 1)):
        input = checkpoint(
            part(start, start + size),
            input,
            use_reentrant=reentrant,
            preserve_rng_state=preserve,
        )
    return part(done, len(steps))(input)


# ---- states of random numbers on devices ----


class DefaultDeviceType:
    """The type of device on which functions without tensors of a device are taken to run."""

    _default_device_type = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set it."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """The type that was set last."""
        return DefaultDeviceType._default_device_type


def _devices_of(args: Any) -> List[Any]:
    found = [leaf.device for leaf in tree_leaves(args) if isinstance(leaf, Tensor)]
    return [device for device in dict.fromkeys(found) if device.type not in ("cpu", "meta")]


def get_device_states(*args: Any) -> Tuple[List[int], List[Tensor]]:
    """The numbers of the devices that the tensors among the arguments are on, but the CPU, and the
    states of their random numbers."""
    devices = _devices_of(args)
    states = [get_device_module(d.type).get_rng_state(d) for d in devices]
    return [0 if d.index is None else d.index for d in devices], states


def set_device_states(
    devices: List[int], states: List[Tensor], *, device_type: Optional[str] = None
) -> None:
    """Put back what get_device_states() gave, for devices of one type, the default one where none
    is given."""
    kind = DefaultDeviceType.get_device_type() if device_type is None else device_type
    for device, state in zip(devices, states):
        get_device_module(kind).set_rng_state(state, device)


_SELECTIVE = (
    "CheckpointPolicy SAC_IGNORED_OPS SelectiveCheckpointContext "
    "create_selective_checkpoint_contexts"
).split()


def __getattr__(name: str) -> Any:
    if name not in _SELECTIVE:
        raise _names.missing(__name__, name)
    from treadle.utils import _selective_checkpoint

    return getattr(_selective_checkpoint, name)


__all__ = [
    "DefaultDeviceType",
    "get_device_states",
    "set_device_states",
    "CheckpointPolicy",
    "SAC_IGNORED_OPS",
    "SelectiveCheckpointContext",
    "create_selective_checkpoint_contexts",
    "CheckpointError",
    "CheckpointFunction",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "detach_variable",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]

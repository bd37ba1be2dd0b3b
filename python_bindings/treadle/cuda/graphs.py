"""CUDA graphs: work that is captured from a stream once, and queued as a whole from then on, which
takes the host a few microseconds however many kernels there are.

    g = treadle.cuda.CUDAGraph()
    with treadle.cuda.graph(g):
        y = net(x)                # captured, not done
    x.copy_(batch)
    g.replay()                    # y is what the network makes of the batch

A replay reads and writes the memory of the capture: new arguments are copied into the old tensors.
Whatever is called must have been called before, so that libraries are ready, and may not wait for
the device. Random numbers go on from replay to replay, as they would without a graph.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import gc
import itertools
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from treadle import _C, autograd
from treadle._C import Tensor
from treadle._device import cuda_backend, facade
from treadle.utils import _pytree

_Pool = Tuple[int, int]
_numbers = itertools.count(1)


class _Held:
    """A private pool of a device's memory: its number, 0 while no graph has it, and how many do."""

    def __init__(self) -> None:
        self.number, self.users = 0, 0


_pools: Dict[Tuple[_Pool, int], _Held] = {}


def _require(function: str) -> None:
    if cuda_backend.find():
        raise facade.no_device(f"cuda.{function}")


def is_current_stream_capturing() -> bool:
    """Whether what is queued in this thread's current stream is captured."""
    return "cuda" in _C._backends() and _C._backend_capturing("cuda", -1)


def graph_pool_handle() -> _Pool:
    """A name for memory that several graphs are to share: they may be replayed in the order of
    their captures only, and not at one time. RuntimeError where there is no device."""
    _require("graph_pool_handle")
    return 0, next(_numbers)


class CUDAGraph:
    """A graph, empty at first. RuntimeError where there is no device.

    keep_graph says nothing here: a graph is made ready when its capture ends.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        _require("CUDAGraph")
        self._graph = 0  # its address
        self._capturing: Optional[Tuple[int, int]] = None  # device and stream
        self._pool: Optional[Tuple[_Pool, int]] = None

    def capture_begin(
        self, pool: Optional[_Pool] = None, capture_error_mode: str = "global"
    ) -> None:
        """Capture the current stream, which must not be the default one, from here on.

        pool: what graph_pool_handle() or another graph's pool() returned. capture_error_mode: which
        threads' calls end the capture if it cannot hold them: "global" (all), "thread_local" (this
        one's) or "relaxed" (none).
        """
        from treadle import cuda

        if self._graph or self._capturing is not None:
            raise RuntimeError(
                "CUDAGraph.capture_begin: expected an empty graph, got a captured one"
            )
        stream = cuda.current_stream()
        key = (pool or (next(_numbers), 0), stream.device_index)
        held = _pools.get(key) or _Held()
        held.number = _C._backend_graph_begin(
            "cuda", stream.device_index, held.number, capture_error_mode
        )
        held.users += 1
        _pools[key] = held
        self._capturing, self._pool = (stream.device_index, stream.stream_id), key

    def capture_end(self) -> None:
        """End the capture. RuntimeError where something could not be captured."""
        if self._capturing is None:
            raise RuntimeError("CUDAGraph.capture_end: expected a capture to end, got none")
        place, self._capturing = self._capturing, None
        try:
            self._graph = _C._backend_graph_end("cuda", *place)
        except RuntimeError:
            self._let_pool_go()
            raise

    def replay(self) -> None:
        """Queue what was captured in the current stream."""
        _C._backend_graph_replay("cuda", self._captured("replay"))

    def reset(self) -> None:
        """Forget what was captured, and let its memory go."""
        if self._graph:
            _C._backend_graph_destroy("cuda", self._graph)
            self._graph = 0
            self._let_pool_go()

    def pool(self) -> _Pool:
        """Its memory, for another graph to share."""
        if self._pool is None:
            raise RuntimeError("CUDAGraph.pool: expected a captured graph, got an empty one")
        return self._pool[0]

    def register_generator_state(self, generator: Any) -> None:
        """Nothing: every generator that is drawn from goes on with each replay."""

    def enable_debug_mode(self) -> None:
        """Nothing: every graph can be written."""

    def debug_dump(self, debug_path: str) -> None:
        """Write it to a file, in the language of Graphviz."""
        _C._backend_graph_write("cuda", self._captured("debug_dump"), debug_path)

    def _captured(self, function: str) -> int:
        if not self._graph:
            raise RuntimeError(f"CUDAGraph.{function}: expected a captured graph, got an empty one")
        return self._graph

    def _let_pool_go(self) -> None:
        if self._pool is not None:
            held = _pools[self._pool]
            held.users -= 1
            if held.users == 0:
                del _pools[self._pool]
            self._pool = None

    def __del__(self) -> None:
        if getattr(self, "_graph", 0):
            self.reset()


class graph:  # noqa: N801  PyTorch's name
    """A context in which everything that is queued is captured by a graph, in a stream of its own
    or the one given."""

    default_capture_stream: Optional[Any] = None

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: Optional[_Pool] = None,
        stream: Optional[Any] = None,
        capture_error_mode: str = "global",
    ) -> None:
        from treadle import cuda

        _require("graph")
        if stream is None:
            if graph.default_capture_stream is None:
                graph.default_capture_stream = cuda.Stream()
            stream = graph.default_capture_stream
        self.cuda_graph, self.pool, self.stream = cuda_graph, pool, stream
        self.capture_error_mode = capture_error_mode

    def __enter__(self) -> None:
        from treadle import cuda

        cuda.synchronize()
        # Memory that is freed while a capture runs stays with it.
        gc.collect()
        cuda.empty_cache()
        self.stream.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)
        except BaseException:
            self.stream.__exit__(None, None, None)
            raise

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        try:
            self.cuda_graph.capture_end()
        except RuntimeError:
            # The error that ended the capture says more than that it ended.
            if error is None:
                raise
        finally:
            self.stream.__exit__(kind, error, traceback)


class _Parts(NamedTuple):
    """The tensors that graphs of a callable read and write: they stay where they are."""

    inputs: Tuple[Any, ...]  # arguments, then parameters
    arguments: int  # how many of them are arguments
    outputs: Tuple[Any, ...]
    spec: Any  # the form of what it returned
    grad_outputs: Tuple[Any, ...]  # None for an output without a gradient
    grad_inputs: Tuple[Any, ...]


def _needing_gradients(tensors: Sequence[Any]) -> List[Any]:
    return [t for t in tensors if t.requires_grad]


def _gradients(inputs: Any, outputs: Any, grad_outputs: Any, allow_unused: bool) -> Tuple[Any, ...]:
    """A gradient for each input, None for one that needs none."""
    wanted = _needing_gradients(inputs)
    differentiable = [(o, g) for o, g in zip(outputs, grad_outputs) if g is not None]
    found = iter(
        autograd.grad(
            [o for o, _ in differentiable],
            wanted,
            [g for _, g in differentiable],
            allow_unused=allow_unused,
        )
        if wanted and differentiable
        else [None] * len(wanted)
    )
    return tuple(next(found) if t.requires_grad else None for t in inputs)


def _checked(call: Any, args: Tuple[Any, ...]) -> List[Any]:
    """The tensors among the arguments."""
    from treadle import nn

    leaves = _pytree.tree_leaves(args)
    if not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise TypeError("make_graphed_callables: expected sample_args of tensors, got others")
    if isinstance(call, nn.Module):
        hooks = (call._forward_hooks, call._forward_pre_hooks, call._backward_hooks)
        if any(hooks):
            raise RuntimeError("make_graphed_callables: expected a module without hooks, got some")
        if any(buffer.requires_grad for buffer in call.buffers()):
            raise RuntimeError(
                "make_graphed_callables: expected buffers that need no gradient, got one that does"
            )
    return leaves


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: Optional[_Pool] = None,
) -> Any:
    """Callables (functions or modules, one or a tuple) whose forward and backward are graphs.

    sample_args: tensors as the callable will be given (of several: a tuple of tuples), by shape,
    dtype and whether they need a gradient. Several callables share memory: they are to be called in
    this order, and their gradients taken in the other. A module keeps its class; in the other mode
    (train or eval) it runs as it did. RuntimeError where there is no device, and while autocast
    keeps what it converted.
    """
    from treadle import nn
    from treadle.amp._state import is_autocast_enabled

    _require("make_graphed_callables")
    if is_autocast_enabled("cuda") and _C.is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables: expected autocast with cache_enabled=False, got True"
        )
    one = not isinstance(callables, tuple)
    calls: Tuple[Any, ...] = (callables,) if one else callables
    samples: Tuple[Any, ...] = (sample_args,) if one else sample_args
    pool = pool or graph_pool_handle()
    inputs = []
    for call, args in zip(calls, samples):
        leaves = _checked(call, args)
        own = tuple(call.parameters()) if isinstance(call, nn.Module) else ()
        inputs.append((tuple(leaves) + own, len(leaves)))
    _warm_up(calls, samples, inputs, num_warmup_iters, allow_unused_input)
    forward, backward = [CUDAGraph() for _ in calls], [CUDAGraph() for _ in calls]
    returned = []
    for call, args, captured in zip(calls, samples, forward):
        with graph(captured, pool=pool):
            returned.append(_pytree.tree_flatten(call(*args)))
    parts: List[Any] = [None] * len(calls)
    for i in reversed(range(len(calls))):
        outputs, spec = returned[i]
        seeds = tuple(_C.empty_like(o) if o.requires_grad else None for o in outputs)
        with graph(backward[i], pool=pool):
            grads = _gradients(inputs[i][0], outputs, seeds, allow_unused_input)
        parts[i] = _Parts(*inputs[i], tuple(outputs), spec, seeds, grads)
    made = tuple(
        _replaced(call, _graphed(part, f, b))
        for call, part, f, b in zip(calls, parts, forward, backward)
    )
    return made[0] if one else made


def _warm_up(calls: Any, samples: Any, inputs: Any, times: int, allow_unused: bool) -> None:
    """Calls everything in a stream beside the current one, so that libraries are ready."""
    from treadle import cuda

    cuda.synchronize()
    with cuda.stream(cuda.Stream()):
        for call, args, (own, _) in zip(calls, samples, inputs):
            for _ in range(times):
                outputs = _pytree.tree_leaves(call(*args))
                seeds = [_C.empty_like(o) if o.requires_grad else None for o in outputs]
                _gradients(own, outputs, seeds, allow_unused)
    cuda.synchronize()


def _graphed(parts: _Parts, there: CUDAGraph, back: CUDAGraph) -> Callable[..., Any]:
    """A function that replays the graphs."""

    class Graphed(autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            for old, new in zip(parts.inputs[: parts.arguments], inputs):
                if old.data_ptr() != new.data_ptr():
                    old.copy_(new)
            there.replay()
            return tuple(output.detach() for output in parts.outputs)

        @staticmethod
        @autograd.function.once_differentiable
        def backward(ctx: Any, *grads: Any) -> Any:
            for old, new in zip(parts.grad_outputs, grads):
                if old is not None and new is not None and old.data_ptr() != new.data_ptr():
                    old.copy_(new)
            back.replay()
            return tuple(None if g is None else g.detach() for g in parts.grad_inputs)

    def call(*args: Any) -> Any:
        leaves = _pytree.tree_leaves(args)
        outputs = Graphed.apply(*leaves, *parts.inputs[parts.arguments :])
        return _pytree.tree_unflatten(list(outputs), parts.spec)

    return call


def _replaced(call: Any, graphed: Callable[..., Any]) -> Any:
    """The callable by its graphs; a module keeps the way it was for its other mode."""
    from treadle import nn

    if not isinstance(call, nn.Module):
        return functools.wraps(call)(graphed)
    mode, before = call.training, call.forward

    def forward(*args: Any) -> Any:
        return (graphed if call.training == mode else before)(*args)

    call.forward = forward
    return call


__all__ = [
    "CUDAGraph",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
]

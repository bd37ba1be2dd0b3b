"""treadle.compile(backend=fn): the program as a graph, which fn makes a function of.

The first call with arguments of some shapes, dtypes and values runs the program once and records
it (fx._record); what that changed in arguments and buffers is put back. The graph takes tensors
alone: those of the arguments, and parameters and other tensors that the program reads. A call with
other shapes or values is recorded anew, up to config.recompile_limit times.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

from treadle import _C, nn
from treadle._C import Tensor
from treadle._dynamo import config
from treadle._dynamo.exc import BackendCompilerFailed, Unsupported
from treadle.autograd.grad_mode import no_grad
from treadle.fx._record import Recorder, current
from treadle.fx.graph_module import GraphModule, _get_attr
from treadle.random import get_rng_state, set_rng_state
from treadle.utils import _pytree as pytree

_all: "weakref.WeakSet[Captured]" = weakref.WeakSet()


def forget() -> None:
    """Record every program anew."""
    for captured in list(_all):
        captured.compiled.clear()


class _Program:
    """A program for arguments of one kind: what the backend made, and how to call it."""

    def __init__(self) -> None:
        self.call: Optional[Callable] = None
        # For each argument of the graph: the place among the arguments of the program, the path of
        # a parameter, or the tensor itself.
        self.sources: List[Any] = []
        self.places: List[Tuple[bool, Any]] = []
        self.form: Any = None


class Captured:
    """A function or module that runs what a backend made of its graph."""

    def __init__(
        self,
        program: Callable[..., Any],
        backend: Callable[..., Any],
        fullgraph: bool,
        root: Optional[nn.Module] = None,
    ) -> None:
        self.program, self.backend, self.fullgraph, self.root = program, backend, fullgraph, root
        self.compiled: Dict[Any, _Program] = {}
        _all.add(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current() is not None:  # a larger program is being recorded
            return self.program(*args, **kwargs)
        leaves, form = pytree.tree_flatten((args, kwargs))
        key = self._key(leaves, form)
        made = self.compiled.get(key)
        if made is None:
            if len(self.compiled) >= config.recompile_limit:
                return self.program(*args, **kwargs)
            made, result = self._compile(args, kwargs, leaves)
            self.compiled[key] = made
            if made.call is None:
                return result
        if made.call is None:
            return self.program(*args, **kwargs)
        results = made.call(*(self._input(source, leaves) for source in made.sources))
        values = [results[v] if is_result else v for is_result, v in made.places]
        return pytree.tree_unflatten(values, made.form)

    def _key(self, leaves: List[Any], form: Any) -> Any:
        modes = () if self.root is None else tuple(m.training for m in self.root.modules())
        kinds = tuple(_kind_of(leaf) for leaf in leaves)
        return repr(form), kinds, modes, _C.is_grad_enabled()

    def _input(self, source: Any, leaves: List[Any]) -> Any:
        if isinstance(source, int):
            return leaves[source]
        return _get_attr(self.root, source) if isinstance(source, str) else source  # type: ignore[arg-type]

    def _compile(self, args: Tuple, kwargs: Dict, leaves: List[Any]) -> Tuple[_Program, Any]:
        made = _Program()
        paths = _paths_of(self.root)

        def unknown(recorder: Recorder, tensor: Tensor) -> Any:
            source = paths.get(id(tensor), tensor)
            return self._placeholder(recorder, made, source, tensor)

        recorder = Recorder(unknown)
        for index, leaf in enumerate(leaves):
            if isinstance(leaf, Tensor):
                recorder.know(leaf, self._placeholder(recorder, made, index, leaf))
        before = _Before([*leaves, *([] if self.root is None else self.root.buffers())])
        with recorder:
            result = self.program(*args, **kwargs)
        if recorder.escapes:
            if self.fullgraph:
                before.restore()
                raise Unsupported(recorder.escapes[0])
            return made, result
        values, made.form = pytree.tree_flatten(result)
        outputs: List[Any] = []
        for value in values:
            if isinstance(value, Tensor):
                made.places.append((True, len(outputs)))
                outputs.append(recorder.argument(value))
            else:
                made.places.append((False, value))
        recorder.graph.output(tuple(outputs))
        before.restore()
        module = GraphModule(nn.Module(), recorder.graph)
        examples = [self._input(source, leaves) for source in made.sources]
        made.call = self._ask_backend(module, examples)
        return made, None

    def _placeholder(self, recorder: Recorder, made: _Program, source: Any, tensor: Tensor) -> Any:
        if isinstance(source, int):
            name = f"L_args_{source}_"
        elif isinstance(source, str):
            name = f"L_self_{source.replace('.', '_')}_"
        else:
            name = f"L_tensor_{len(made.sources)}_"
        graph = recorder.graph
        first = next((n for n in graph.nodes if n.op != "placeholder"), None)
        with graph.inserting_before(first if first is not None else graph._root):
            node = graph.placeholder(name)
        node.meta["example_value"] = tensor
        made.sources.append(source)
        return node

    def _ask_backend(self, module: GraphModule, examples: List[Any]) -> Optional[Callable]:
        try:
            call = self.backend(module, examples)
            if not callable(call):
                raise TypeError(f"expected it to return a function, got {type(call).__name__}")
        except Exception as error:
            if config.suppress_errors:
                return module.forward
            raise BackendCompilerFailed(self.backend, error) from error
        return call


class _Before:
    """Tensors as they are now, and where the random numbers are."""

    def __init__(self, values: List[Any]) -> None:
        tensors = {id(v): v for v in values if isinstance(v, Tensor)}
        self._saved = [(t, t._version, t.detach().clone()) for t in tensors.values()]
        self._numbers = get_rng_state()

    def restore(self) -> None:
        """Put back what was changed since."""
        set_rng_state(self._numbers)
        with no_grad():
            for tensor, version, values in self._saved:
                if tensor._version != version:
                    tensor.detach().copy_(values)


def _paths_of(root: Optional[nn.Module]) -> Dict[int, str]:
    if root is None:
        return {}
    return {id(v): name for name, v in [*root.named_parameters(), *root.named_buffers()]}


def _kind_of(value: Any) -> Any:
    """The properties of an argument that a graph depends on."""
    if isinstance(value, Tensor):
        return (
            type(value),
            tuple(value.shape),
            value.dtype,
            str(value.device),
            value.stride(),
            value.requires_grad,
        )
    try:
        hash(value)
    except TypeError:
        return type(value), id(value)
    return type(value), value


__all__ = ["Captured", "forget"]

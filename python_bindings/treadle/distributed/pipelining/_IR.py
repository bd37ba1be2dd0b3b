"""Modules in stages: pipeline() records a module as a graph and cuts that at points.

    pipe = pipeline(model, (x,), split_spec={"layers.2": SplitPoint.BEGINNING})
    stage = pipe.build_stage(rank, "cpu")

Each stage passes on all that later stages need, so that only neighbours exchange tensors.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import inspect
from enum import Enum
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from treadle import fx, nn
from treadle._C import Tensor
from treadle.distributed.pipelining._shapes import Forms, forms_of
from treadle.distributed.pipelining.stage import _PipelineStageBase


class SplitPoint(Enum):
    """Where a module is cut: before or after the call of a submodule."""

    BEGINNING = 1
    END = 2


class PipeInfo(NamedTuple):
    """The facts of the pipe that a stage has."""

    graph: fx.Graph
    num_stages: int
    has_loss_and_backward: bool


_recording: List[_Recorder] = []


def pipe_split() -> None:
    """Cut the module here; called in its forward(). Does nothing where it is not recorded."""
    if _recording:
        _recording[-1].cut()


class _Recorder(fx.Tracer):
    """Records a module. With cuts at submodules only the modules around those are looked into, so
    that the others may have branches on values."""

    def __init__(self, cuts: Dict[str, SplitPoint], constants: Dict[str, Any]) -> None:
        super().__init__()
        self._cuts = cuts
        self._constants = constants

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: Optional[Any] = None
    ) -> Tuple[Callable[..., Any], List[Any]]:
        function, args = super().create_args_for_root(root_fn, is_module, concrete_args)
        for place, arg in enumerate(args):
            if isinstance(arg, fx.Proxy) and arg.node.target in self._constants:
                args[place] = self._constants[arg.node.target]
                self.graph.erase_node(arg.node)
        return function, args

    def cut(self) -> None:
        self.create_node("call_function", pipe_split, (), {})

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        if not self._cuts:
            return super().is_leaf_module(m, module_qualified_name)
        return not any(name.startswith(module_qualified_name + ".") for name in self._cuts)

    def call_module(self, m: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        point = self._cuts.get(self.path_of_module(m))
        if point is SplitPoint.BEGINNING:
            self.cut()
        result = super().call_module(m, forward, args, kwargs)
        if point is SplitPoint.END:
            self.cut()
        return result


def _constants(module: nn.Module, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Dict[str, Any]:
    """The arguments of forward() that are no tensors, with those left at their defaults."""
    bound = inspect.signature(module.forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return {name: v for name, v in bound.arguments.items() if not isinstance(v, Tensor)}


def _record(
    module: nn.Module, cuts: Dict[str, SplitPoint], constants: Dict[str, Any]
) -> fx.GraphModule:
    for name, point in cuts.items():
        module.get_submodule(name)
        if not isinstance(point, SplitPoint):
            raise ValueError(f"pipeline: expected a SplitPoint for {name!r}, got {point!r}")
    recorder = _Recorder(cuts, constants)
    _recording.append(recorder)
    try:
        graph = recorder.trace(module)
    finally:
        _recording.pop()
    return fx.GraphModule(module, graph)


def _parts(graph: fx.Graph) -> List[List[fx.Node]]:
    """The nodes between the cuts, without inputs and output. Cuts at the ends, and several in one
    place, make no empty stage."""
    parts: List[List[fx.Node]] = [[]]
    for node in graph.nodes:
        if node.op == "call_function" and node.target is pipe_split:
            parts.append([])
        elif node.op not in ("placeholder", "output"):
            parts[-1].append(node)
    return [part for part in parts if any(node.op != "get_attr" for node in part)]


def _stage_graphs(whole: fx.GraphModule) -> List[fx.Graph]:
    """A graph for each stage. Its inputs are the outputs of the one before it."""
    parts = _parts(whole.graph)
    inputs = [node for node in whole.graph.nodes if node.op == "placeholder"]
    (output,) = [node for node in whole.graph.nodes if node.op == "output"]
    place = {node: number for number, part in enumerate(parts) for node in part}
    attributes = {node for node in whole.graph.nodes if node.op == "get_attr"}
    made = [*inputs, *(node for part in parts for node in part if node not in attributes)]
    last = {
        node: max((place.get(user, len(parts)) for user in node.users), default=-1) for node in made
    }
    graphs, entering = [], inputs
    for number, part in enumerate(parts):
        graph = fx.Graph()
        copies: Dict[fx.Node, fx.Node] = {
            node: graph.node_copy(node) if number == 0 else graph.placeholder(node.name)
            for node in entering
        }

        def copied(node: fx.Node, graph: fx.Graph = graph, copies: Any = copies) -> fx.Node:
            if node not in copies and node in attributes:
                copies[node] = graph.node_copy(node)  # each stage reads it for itself
            return copies[node]

        for node in part:
            if node not in attributes:
                copies[node] = graph.node_copy(node, copied)
        if number == len(parts) - 1:
            graph.output(fx.map_arg(output.args[0], copied))
        else:
            leaving = [n for n in made if place.get(n, -1) <= number < last[n]]
            graph.output(tuple(copied(n) for n in leaving))
            entering = leaving
        graphs.append(graph)
    return graphs


def _check_parameters(stages: List[fx.GraphModule], module: nn.Module) -> None:
    """ValueError for a parameter in two stages: each would have a part of its gradient."""
    names = {parameter: name for name, parameter in module.named_parameters()}
    homes: Dict[Any, int] = {}
    for number, stage in enumerate(stages):
        for parameter in stage.parameters():
            other = homes.setdefault(parameter, number)
            if other != number:
                raise ValueError(
                    f"pipeline: expected each parameter in one stage, got {names[parameter]!r} in "
                    f"stages {other} and {number}"
                )


class Pipe(nn.Module):
    """A module in stages. Called as the module, it runs all of them here."""

    def __init__(self, stages: List[fx.GraphModule], whole: fx.GraphModule) -> None:
        super().__init__()
        self._stage_modules = nn.ModuleList(stages)
        self._graph = whole.graph
        self.num_stages = len(stages)
        self.has_loss_and_backward = False

    @staticmethod
    def from_tracing(
        mod: nn.Module,
        example_args: Tuple[Any, ...],
        example_kwargs: Optional[Dict[str, Any]] = None,
        split_policy: Optional[Callable[[fx.GraphModule], fx.GraphModule]] = None,
    ) -> Pipe:
        """As pipeline(), for cuts by pipe_split() or a policy."""
        return _pipe(mod, example_args, example_kwargs, {}, split_policy)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run all stages, one after the other."""
        result = self._stage_modules[0](*args, **kwargs)
        for stage in list(self._stage_modules)[1:]:
            result = stage(*(result if isinstance(result, tuple) else (result,)))
        return result

    def get_stage_module(self, stage_idx: int) -> nn.Module:
        """The module of a stage. ValueError for another number."""
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(
                f"get_stage_module: expected stage_idx in [0, {self.num_stages}), got {stage_idx}"
            )
        return self._stage_modules[stage_idx]

    def info(self) -> PipeInfo:
        """The graph of the whole, and the number of stages."""
        return PipeInfo(self._graph, self.num_stages, self.has_loss_and_backward)

    def build_stage(self, stage_index: int, device: Any, group: Any = None) -> _PipelineStageBase:
        """The stage of this number, on a device, for the ranks of a group."""
        return build_stage(
            self.get_stage_module(stage_index), stage_index, self.info(), device, group
        )

    def __str__(self) -> str:
        return "\n".join(
            f"stage {number}:\n{stage.code.strip()}"
            for number, stage in enumerate(self._stage_modules)
        )


def build_stage(
    stage_module: nn.Module, stage_index: int, pipe_info: PipeInfo, device: Any, group: Any = None
) -> _PipelineStageBase:
    """A stage of a pipe, of its module, which is moved to the device."""
    return _PipelineStageBase(
        stage_module.to(device), stage_index, pipe_info.num_stages, device, group
    )


def pipeline(
    module: nn.Module,
    mb_args: Tuple[Any, ...],
    mb_kwargs: Optional[Dict[str, Any]] = None,
    split_spec: Optional[Dict[str, SplitPoint]] = None,
    split_policy: Optional[Callable[[fx.GraphModule], fx.GraphModule]] = None,
) -> Pipe:
    """Cut a module into stages. `mb_args`, `mb_kwargs` are arguments of the size of a microbatch;
    those that are no tensors become part of the graph, and are not given to the stages. With them
    the stages are run on the meta device, to see that they fit together.

    `split_spec` has the names of submodules to cut before or after; `split_policy` gets the module
    as an fx.GraphModule and returns it with calls of pipe_split() as nodes; without both forward()
    calls pipe_split().

    ValueError for both of them, for a parameter in two stages, or for stages that exchange other
    values than tensors.
    """
    if split_spec is not None and split_policy is not None:
        raise ValueError("pipeline: expected split_spec or split_policy, got both")
    return _pipe(module, mb_args, mb_kwargs, split_spec or {}, split_policy)


def _pipe(
    module: nn.Module,
    args: Tuple[Any, ...],
    kwargs: Optional[Dict[str, Any]],
    cuts: Dict[str, SplitPoint],
    policy: Optional[Callable[[fx.GraphModule], fx.GraphModule]],
) -> Pipe:
    kwargs = kwargs or {}
    whole = _record(module, cuts, _constants(module, args, kwargs))
    if policy is not None:
        whole = policy(whole)
    stages = [fx.GraphModule(whole, graph) for graph in _stage_graphs(whole)]
    _check_parameters(stages, module)
    pipe = Pipe(stages, whole)
    _try(pipe, args, kwargs)
    return pipe


def _try(pipe: Pipe, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> List[Forms]:
    """The forms that leave each stage but the last, for these arguments on the meta device."""
    from treadle.func import functional_call

    def meta(tensor: Tensor) -> Tensor:
        return tensor.detach().to("meta")

    values: Any = tuple(meta(value) for value in args if isinstance(value, Tensor))
    named = {name: meta(v) for name, v in kwargs.items() if isinstance(v, Tensor)}
    found = []
    for number in range(pipe.num_stages - 1):
        stage = pipe.get_stage_module(number)
        state = {n: meta(t) for n, t in [*stage.named_parameters(), *stage.named_buffers()]}
        values = functional_call(stage, state, values, named)
        named = {}
        for value in values:
            if not isinstance(value, Tensor):
                raise ValueError(
                    f"pipeline: expected tensors between stages {number} and {number + 1}, got "
                    f"{type(value).__name__}"
                )
        found.append(forms_of(values))
    return found


__all__ = ["Pipe", "PipeInfo", "SplitPoint", "build_stage", "pipe_split", "pipeline"]

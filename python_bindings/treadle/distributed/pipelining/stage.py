"""A stage: a part of a module, on one rank of a pipeline."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from treadle import _C, nn
from treadle import distributed as dist
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.distributed.pipelining import _backward
from treadle.distributed.pipelining._shapes import Forms, as_tensors, check, forms_of

Tensors = Union[Tensor, Tuple[Tensor, ...], None]


class PipelineStageInfo(NamedTuple):
    """Which stage, and which microbatch, a context is for."""

    stage_index: int
    microbatch_index: int


class _Kept(NamedTuple):
    """The values of the forward pass of a microbatch that its backward pass needs."""

    inputs: Tuple[Tensor, ...]
    outputs: Tuple[Tensor, ...]


def _declared(what: str, tensors: Tensors) -> Optional[Forms]:
    return None if tensors is None else forms_of(as_tensors(what, tensors))


class _PipelineStageBase:
    """A module that takes what the stage before it returns.

    `submodule` is called with tensors, and returns a tensor or a tuple of tensors. `stage_index` is
    its place among `num_stages`; `group` the ranks of the pipeline, by default all.
    """

    def __init__(
        self,
        submodule: nn.Module,
        stage_index: int,
        num_stages: int,
        device: Any,
        group: Any = None,
        dw_builder: Optional[Callable[[], Callable[..., None]]] = None,
    ) -> None:
        if not 0 <= stage_index < num_stages:
            raise ValueError(
                f"PipelineStage: expected stage_index in [0, {num_stages}), got {stage_index}"
            )
        self.submod = submodule
        self.stage_index = stage_index
        self.num_stages = num_stages
        self.device = _C.device(device)
        self.group = group
        self.dw_builder = dw_builder
        self.group_rank = dist.get_rank(group)
        self.group_size = dist.get_world_size(group)
        if self.group_size > num_stages:
            raise ValueError(
                f"PipelineStage: expected at least one stage for each of {self.group_size} ranks, "
                f"got num_stages = {num_stages}"
            )
        self.has_backward = False
        self.output_chunks: List[Any] = []
        self._contexts: List[Callable[[PipelineStageInfo], Any]] = []
        self._kept: Dict[int, _Kept] = {}
        self._later: Dict[int, Union[_backward.Later, Callable[..., None]]] = {}
        self._inputs: Optional[Forms] = None
        self._outputs: Optional[Forms] = None

    @property
    def is_first(self) -> bool:
        """Whether it is the first stage of all."""
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """Whether it is the last stage of all."""
        return self.stage_index == self.num_stages - 1

    def register_forward_context(self, context: Callable[[PipelineStageInfo], Any]) -> None:
        """Run each forward pass inside `with context(info)`."""
        self._contexts.append(context)

    def clear_runtime_states(self) -> None:
        """Forget what a step kept."""
        self.output_chunks = []
        self._kept.clear()
        self._later.clear()

    def forward_one_chunk(
        self, microbatch: int, args: Tuple[Any, ...], kwargs: Dict[str, Any], keep: bool
    ) -> Any:
        """Run the module on a microbatch; returns what it does. `keep` keeps the last output for
        the caller of the step. RuntimeError with the shapes if the module raises."""
        inputs = tuple(value for value in args if isinstance(value, Tensor))
        where = f"stage {self.stage_index}, microbatch {microbatch}"
        check(f"{where}, inputs", self._inputs, forms_of(inputs))
        try:
            output = self._run(microbatch, args, kwargs)
        except Exception as error:
            shapes = ", ".join(form.text() for form in forms_of(inputs))
            raise RuntimeError(f"{where}: the forward pass of {shapes} failed: {error}") from error
        outputs = as_tensors(f"{where}, outputs", output)
        check(f"{where}, outputs", self._outputs, forms_of(outputs))
        if self.is_last and keep:
            self.output_chunks.append(output)
        if self.has_backward:
            self._kept[microbatch] = _Kept(inputs, outputs)
        return output

    def _run(self, microbatch: int, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        with ExitStack() as stack:
            if self._is_replicated:
                stack.enter_context(self.submod.no_sync())
            for context in self._contexts:
                stack.enter_context(context(PipelineStageInfo(self.stage_index, microbatch)))
            return self.submod(*args, **kwargs)

    def backward_one_chunk(
        self,
        microbatch: int,
        loss: Optional[Tensor],
        gradients: Sequence[Tensor],
        is_whole: bool,
        synchronizes: bool,
    ) -> List[Tensor]:
        """The gradients of the inputs that have one. With `is_whole` the gradients of the
        parameters grow too, otherwise backward_weight_one_chunk() does that; `synchronizes` if data
        parallel modules exchange gradients in this pass."""
        kept = self._kept.pop(microbatch)
        outputs, grads = self._roots(kept.outputs, loss, gradients)
        inputs = () if self.is_first else kept.inputs
        # Nobody waits for the gradients of the first stage, so it does all at once.
        if is_whole or self.is_first or self.dw_builder is not None:
            self._prepare_exchange(outputs, synchronizes)
            found = _backward.whole(outputs, grads, inputs)
            if not is_whole and self.dw_builder is not None:
                self._later[microbatch] = self.dw_builder()
        else:
            parameters = list(self.submod.parameters())
            found, self._later[microbatch] = _backward.of_inputs(outputs, grads, inputs, parameters)
        return [
            _C.zeros_like(tensor) if gradient is None else gradient.detach()
            for tensor, gradient in zip(inputs, found)
            if tensor.requires_grad
        ]

    @staticmethod
    def _roots(
        outputs: Tuple[Tensor, ...], loss: Optional[Tensor], gradients: Sequence[Tensor]
    ) -> Tuple[Sequence[Tensor], Optional[List[Any]]]:
        if loss is not None:
            return [loss], None
        given = iter(gradients)
        return outputs, [next(given) if out.requires_grad else None for out in outputs]

    def backward_weight_one_chunk(self, microbatch: int) -> None:
        """Add to the gradients of the parameters what backward_one_chunk() left."""
        later = self._later.pop(microbatch, None)
        if isinstance(later, _backward.Later):
            _backward.of_weights(later)
        elif later is not None:
            later()

    def _prepare_exchange(self, outputs: Sequence[Tensor], now: bool) -> None:
        """Let data parallel modules exchange gradients in the next backward pass, or not yet."""
        if self._is_sharded:
            self.submod.set_requires_gradient_sync(now)
            self.submod.set_is_last_backward(now)
        elif self._is_replicated and now:
            # Each forward pass ran in no_sync(), so that it prepared nothing.
            self.submod.reducer.prepare_for_backward(list(outputs))

    @property
    def _is_sharded(self) -> bool:
        return hasattr(self.submod, "set_requires_gradient_sync")

    @property
    def _is_replicated(self) -> bool:
        return hasattr(self.submod, "reducer") and hasattr(self.submod, "no_sync")

    @property
    def exchanges_gradients(self) -> bool:
        """Whether the module is data parallel, so that its backward pass cannot be in two parts."""
        return self._is_sharded or self._is_replicated

    def scale_grads(self, grad_scale_factor: int) -> None:
        """Divide the gradients of the parameters, once after the last backward pass of a step."""
        if grad_scale_factor == 1:
            return
        with no_grad():
            for parameter in self.submod.parameters():
                if parameter.grad is not None:
                    parameter.grad.div_(grad_scale_factor)


class PipelineStage(_PipelineStageBase):
    """A stage of a pipeline, of a module that the caller has split.

    `submodule` is called with the tensors that the stage before it returned, the first stage with
    the arguments of step(); it returns a tensor or a tuple of tensors. `stage_index` is its place
    among the `num_stages` of the whole; `group` has the ranks of the pipeline, by default all.

    The stages tell each other shapes and dtypes in the first step. `input_args`, `output_args` are
    examples for a microbatch, on any device, also meta: a step raises PipeliningMetadataError if
    its tensors differ. `input_grads`, `output_grads` are examples of gradients; they have the form
    of `input_args` and `output_args`. With `dw_builder` zero bubble schedules take the function
    that it returns for the gradients of the weights.

    ValueError if `stage_index` is out of range, or if there are more ranks than stages.
    """

    def __init__(
        self,
        submodule: nn.Module,
        stage_index: int,
        num_stages: int,
        device: Any,
        input_args: Tensors = None,
        output_args: Tensors = None,
        output_grads: Tensors = None,
        input_grads: Tensors = None,
        group: Any = None,
        dw_builder: Optional[Callable[[], Callable[..., None]]] = None,
        get_mesh: Any = None,
    ) -> None:
        super().__init__(submodule, stage_index, num_stages, device, group, dw_builder)
        if get_mesh is not None:
            raise ValueError(
                "PipelineStage: expected get_mesh = None, as stages exchange plain "
                f"tensors, got {type(get_mesh).__name__}"
            )
        where = f"PipelineStage {stage_index}"
        self._inputs = _declared(f"{where}: input_args", input_args)
        self._outputs = _declared(f"{where}: output_args", output_args)
        check(
            f"{where}: input_grads",
            self._inputs,
            _declared(where, input_grads) or self._inputs or (),
        )
        check(
            f"{where}: output_grads",
            self._outputs,
            _declared(where, output_grads) or self._outputs or (),
        )


__all__ = ["PipelineStage", "PipelineStageInfo"]

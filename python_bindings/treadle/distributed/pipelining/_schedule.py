"""The base of all schedules of pipelines: a table of actions, and the step that does them."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.distributed.pipelining._actions import (
    BACKWARD_INPUT,
    BACKWARD_WEIGHT,
    FORWARD,
    FULL_BACKWARD,
    Table,
    TimedTable,
    _Action,
    check_table,
    format_table,
    place_in_time,
    read_csv,
    write_csv,
)
from treadle.distributed.pipelining._shapes import Forms, as_tensors, check, forms_of
from treadle.distributed.pipelining._transport import (
    AHEAD,
    Message,
    Transport,
    given_by,
    taken_by,
)
from treadle.distributed.pipelining.microbatch import (
    TensorChunkSpec,
    _split_tensor,
    merge_chunks,
    split_args_kwargs_into_chunks,
)
from treadle.distributed.pipelining.stage import _PipelineStageBase

Loss = Optional[Callable[..., Tensor]]


class _Step:
    """The inputs and losses of one step, by microbatch."""

    def __init__(
        self,
        args: Sequence[Tuple[Any, ...]],
        kwargs: Sequence[Dict[str, Any]],
        targets: Optional[Sequence[Any]],
        loss_kwargs: Dict[str, Any],
        keep: bool,
    ) -> None:
        self.args = args
        self.kwargs = kwargs
        self.targets = targets
        self.loss_kwargs = loss_kwargs
        self.keep = keep
        self.losses: Dict[int, Tensor] = {}


class _PipelineSchedule:
    """The base of all schedules: a table, and the step that runs it."""

    def __init__(
        self,
        stages: Sequence[_PipelineStageBase],
        n_microbatches: int,
        loss_fn: Loss,
        args_chunk_spec: Optional[Tuple[Any, ...]],
        kwargs_chunk_spec: Optional[Dict[str, Any]],
        output_merge_spec: Any,
        scale_grads: bool,
        is_folded: bool = False,
    ) -> None:
        if n_microbatches < 1:
            raise ValueError(
                f"{type(self).__name__}: expected n_microbatches > 0, got {n_microbatches}"
            )
        self._n_microbatches = n_microbatches
        self._loss_fn = loss_fn
        self._args_chunk_spec = args_chunk_spec
        self._kwargs_chunk_spec = kwargs_chunk_spec
        self._output_merge_spec = output_merge_spec
        self.scale_grads = scale_grads
        self._has_backward = loss_fn is not None
        self._requires_grad_mode = True
        self._ahead = AHEAD
        self._most_sends: Optional[int] = None
        self._num_stages = stages[0].num_stages
        self.pp_group_size = stages[0].group_size
        self.rank = stages[0].group_rank
        self.stage_index_to_group_rank = _ranks(self.pp_group_size, self._num_stages, is_folded)
        self._check_stages(stages)
        self._stages = {stage.stage_index: stage for stage in stages}
        self._table: Table = {}
        self._forms: Dict[bool, Dict[Tuple[int, bool], Forms]] = {False: {}, True: {}}
        self._sent: Dict[bool, Dict[int, Forms]] = {False: {}, True: {}}

    def _check_stages(self, stages: Sequence[_PipelineStageBase]) -> None:
        """ValueError unless these are the stages of this rank."""
        name, place = type(self).__name__, self.stage_index_to_group_rank
        if self._num_stages % self.pp_group_size:
            raise ValueError(
                f"{name}: expected num_stages to be a multiple of {self.pp_group_size} ranks, "
                f"got {self._num_stages}"
            )
        wanted = [index for index in range(self._num_stages) if place[index] == self.rank]
        found = sorted(stage.stage_index for stage in stages)
        if wanted != found:
            raise ValueError(
                f"{name}: expected stages {wanted} of {self._num_stages} on rank {self.rank} of "
                f"{self.pp_group_size}, got {found}"
            )

    def _set_table(self, table: Mapping[int, Sequence[Optional[_Action]]]) -> None:
        """Take a table, after a check that it is whole and that no rank waits for ever."""
        check_table(table, self._num_stages, self._n_microbatches)
        place_in_time(table, self._num_stages)
        self._table = {rank: [a for a in row if a is not None] for rank, row in table.items()}
        splits = any(a.computation_type is BACKWARD_INPUT for a in self._table[self.rank])
        for stage in self._stages.values():
            if splits and stage.exchanges_gradients:
                raise ValueError(
                    f"{type(self).__name__}: expected modules that exchange no gradients, as their "
                    f"backward pass is in two parts, got {type(stage.submod).__name__}"
                )

    @property
    def pipeline_order(self) -> TimedTable:
        """For each rank its actions in time, each of one step; None where it waits."""
        return place_in_time(self._table, self._num_stages)

    def __str__(self) -> str:
        return format_table(self.pipeline_order)

    def _dump_csv(self, filename: str) -> None:
        """Write the table to a file, a line for each rank."""
        write_csv(self.pipeline_order, filename)

    def _load_csv(self, filename: str) -> None:
        """Take the table of a file. ValueError if an action is missing or does not belong,
        RuntimeError if ranks would wait for each other."""
        self._set_table(read_csv(filename))

    # ---- A step ----

    def step(
        self,
        *args: Any,
        target: Any = None,
        losses: Optional[List[Tensor]] = None,
        return_outputs: bool = True,
        loss_kwargs: Optional[Dict[str, Any]] = None,
        arg_mbs: Optional[List[Tuple[Any, ...]]] = None,
        kwarg_mbs: Optional[List[Dict[str, Any]]] = None,
        target_mbs: Optional[List[Any]] = None,
        finalize_gradients: bool = True,
        **kwargs: Any,
    ) -> Any:
        """Run a batch through the pipeline, forward and backward; all ranks call it. Returns the
        output of the last stage, where `return_outputs`, and None on ranks that do not have it.

        The rank of the first stage gives the arguments of the module, that of the last stage gives
        `target`, any rank keyword arguments for its own stages. Tensors are split along dimension
        0, or as `args_chunk_spec` says. Or the caller has split them: `arg_mbs`, `kwarg_mbs`,
        `target_mbs` have one item for each microbatch. `losses` is filled with the loss of each
        microbatch; `loss_kwargs` go to `loss_fn`. With `finalize_gradients=False` data parallel
        modules do not exchange gradients yet; a later step does it for both.

        Gradients are added to those of the parameters, then divided by the number of microbatches
        if `scale_grads`, which suits a loss that is a mean.

        RuntimeError without gradient mode, ValueError for a batch that does not divide,
        PipeliningMetadataError for a shape other than the declared one or that of the first step.
        """
        if self._has_backward and self._requires_grad_mode and not _C.is_grad_enabled():
            raise RuntimeError(
                "step() requires gradients to be enabled for backward computation; "
                "call eval() instead"
            )
        if not self._table:
            raise RuntimeError(f"{type(self).__name__}: expected a table, which _load_csv() reads")
        if losses is not None and not isinstance(losses, list):
            raise TypeError(f"step: expected losses to be a list, got {type(losses).__name__}")
        given = (arg_mbs, kwarg_mbs, target_mbs)
        if any(part is not None for part in given):
            if args or kwargs or target is not None:
                raise ValueError(
                    "step: expected arguments, or arg_mbs, kwarg_mbs and target_mbs, got both"
                )
            parts = self._given_parts(*given)
        else:
            parts = self._split(args, kwargs, target)
        self._check_ends(parts)
        step = _Step(*parts, loss_kwargs or {}, return_outputs)
        for stage in self._stages.values():
            stage.has_backward = self._has_backward
            stage.clear_runtime_states()
        self._run(step, finalize_gradients)
        if losses is not None:
            losses[:] = [step.losses[m] for m in sorted(step.losses)]
        last = self._stages.get(self._num_stages - 1)
        if last is None or not return_outputs:
            return None
        return merge_chunks(last.output_chunks, self._output_merge_spec)

    def eval(
        self,
        *args: Any,
        target: Any = None,
        losses: Optional[List[Tensor]] = None,
        arg_mbs: Optional[List[Tuple[Any, ...]]] = None,
        kwarg_mbs: Optional[List[Dict[str, Any]]] = None,
        target_mbs: Optional[List[Any]] = None,
        **kwargs: Any,
    ) -> Any:
        """As step(), forward only."""
        before = self._has_backward
        self._has_backward = False
        try:
            return self.step(
                *args,
                target=target,
                losses=losses,
                arg_mbs=arg_mbs,
                kwarg_mbs=kwarg_mbs,
                target_mbs=target_mbs,
                **kwargs,
            )
        finally:
            self._has_backward = before

    def _given_parts(self, args: Any, kwargs: Any, targets: Any) -> Tuple[Any, Any, Any]:
        """Microbatches that the caller has made. TypeError, ValueError for other lists."""
        count = self._n_microbatches
        kinds = (
            ("arg_mbs", args, tuple),
            ("kwarg_mbs", kwargs, dict),
            ("target_mbs", targets, object),
        )
        for name, parts, kind in kinds:
            if parts is None:
                continue
            if not isinstance(parts, list):
                raise TypeError(f"step: expected {name} to be a list, got {type(parts).__name__}")
            if len(parts) != count:
                raise ValueError(f"step: expected {count} items of {name}, got {len(parts)}")
            for part in parts:
                if not isinstance(part, kind):
                    raise TypeError(
                        f"step: expected each item of {name} to be a {kind.__name__}, "
                        f"got {type(part).__name__}"
                    )
        return args or [()] * count, kwargs or [{}] * count, targets

    def _split(self, args: Any, kwargs: Any, target: Any) -> Tuple[Any, Any, Any]:
        """The microbatches of a batch. ValueError where a tensor does not divide."""
        count = self._n_microbatches
        targets = None
        if target is not None:
            self._check_divides("target", target, 0)
            targets = list(_split_tensor(target, TensorChunkSpec(0), count))
        if not args and not kwargs:
            return [()] * count, [{}] * count, targets
        specs = self._args_chunk_spec or [None] * len(args)
        named = self._kwargs_chunk_spec or {}
        for what, value, spec in [
            *((f"argument {i}", value, spec) for i, (value, spec) in enumerate(zip(args, specs))),
            *((name, value, named.get(name)) for name, value in kwargs.items()),
        ]:
            if isinstance(value, Tensor) and (spec is None or isinstance(spec, TensorChunkSpec)):
                self._check_divides(what, value, spec.split_dim if spec else 0)
        made = split_args_kwargs_into_chunks(
            args, kwargs, count, self._args_chunk_spec, self._kwargs_chunk_spec
        )
        return (*made, targets)

    def _check_divides(self, what: str, tensor: Tensor, dim: int) -> None:
        size = tensor.size(dim) if tensor.dim() else 0
        if not size or size % self._n_microbatches:
            raise ValueError(
                f"step: expected dimension {dim} of {what} to be a multiple of n_microbatches = "
                f"{self._n_microbatches}, got shape {list(tensor.shape)}"
            )

    def _check_ends(self, parts: Tuple[Any, Any, Any]) -> None:
        """ValueError where the first stage has no arguments, or a loss no target."""
        args, kwargs, targets = parts
        if 0 in self._stages and not args[0] and not kwargs[0]:
            raise ValueError(
                "step: expected arguments for the first stage, which is here, got none"
            )
        if self._num_stages - 1 in self._stages and self._has_backward and targets is None:
            raise ValueError("step: expected a target for the last stage, which is here, got none")

    # ---- Its actions ----

    def _run(self, step: _Step, finalizes: bool) -> None:
        """Do the actions of this rank, in order."""
        mode = self._has_backward
        transport = Transport(
            self.rank,
            self._table_of_mode(),
            self.stage_index_to_group_rank,
            self._forms[mode],
            {index: stage.device for index, stage in self._stages.items()},
            next(iter(self._stages.values())).group,
            self._ahead,
            self._most_sends,
        )
        left = dict.fromkeys(self._stages, self._n_microbatches)
        for position, action in enumerate(self._table_of_mode()[self.rank]):
            transport.begin(position)
            message = taken_by(action, self._num_stages)
            taken = transport.take(message) if message else ()
            if action.computation_type is FORWARD:
                self._forward(action, step, taken, transport)
                continue
            self._backward(
                action, step, taken, transport, finalizes and left[action.stage_index] == 1
            )
            if action.computation_type in (FULL_BACKWARD, BACKWARD_WEIGHT):
                left[action.stage_index] -= 1
                if not left[action.stage_index] and self.scale_grads:
                    self._stages[action.stage_index].scale_grads(self._n_microbatches)
        transport.end()

    def _table_of_mode(self) -> Table:
        """The table, or where there is no backward pass its forward actions."""
        if self._has_backward:
            return self._table
        return {
            rank: [a for a in actions if a.computation_type is FORWARD]
            for rank, actions in self._table.items()
        }

    def _forward(
        self, action: _Action, step: _Step, taken: Sequence[Tensor], transport: Transport
    ) -> None:
        stage, m = self._stages[action.stage_index], action.microbatch_index
        if stage.is_first:
            args = step.args[m]
        else:
            forms = self._forms[self._has_backward][stage.stage_index, False]
            args = tuple(
                tensor.detach().requires_grad_(form.has_gradient)
                for tensor, form in zip(taken, forms)
            )
        output = stage.forward_one_chunk(m, args, step.kwargs[m], step.keep)
        if stage.is_last:
            if self._loss_fn is not None and step.targets is not None:
                step.losses[m] = self._loss_fn(output, step.targets[m], **step.loss_kwargs)
            return
        tensors = as_tensors("outputs", output)
        self._give_forward(stage, given_by(action, self._num_stages), tensors, transport)

    def _give_forward(
        self,
        stage: _PipelineStageBase,
        message: Optional[Message],
        tensors: Sequence[Tensor],
        transport: Transport,
    ) -> None:
        """Send the outputs of a stage, and with the first ones their forms."""
        assert message is not None
        sent = self._sent[self._has_backward]
        forms = forms_of(tensors, self._has_backward)
        is_first = stage.stage_index not in sent
        if is_first:
            sent[stage.stage_index] = forms
        known = sent[stage.stage_index]
        check(f"stage {stage.stage_index}, outputs, as in the first microbatch", known, forms)
        transport.expect_gradients(stage.stage_index, known)
        given = [tensor.detach().contiguous() for tensor in tensors]
        transport.give(message, given, forms if is_first else None)

    def _backward(
        self,
        action: _Action,
        step: _Step,
        taken: Sequence[Tensor],
        transport: Transport,
        synchronizes: bool,
    ) -> None:
        stage, m = self._stages[action.stage_index], action.microbatch_index
        if action.computation_type is BACKWARD_WEIGHT:
            stage.backward_weight_one_chunk(m)
            return
        is_whole = action.computation_type is FULL_BACKWARD
        loss = step.losses[m] if stage.is_last else None
        found = stage.backward_one_chunk(m, loss, taken, is_whole, synchronizes)
        message = given_by(action, self._num_stages)
        if message:
            transport.give(message, [gradient.contiguous() for gradient in found], None)
        if stage.is_last:
            step.losses[m] = step.losses[m].detach()


def _ranks(ranks: int, stages: int, is_folded: bool) -> Dict[int, int]:
    """The rank of each stage."""
    if not is_folded:
        return {stage: stage % ranks for stage in range(stages)}
    return {
        stage: min(stage % (2 * ranks), 2 * ranks - 1 - stage % (2 * ranks))
        for stage in range(stages)
    }

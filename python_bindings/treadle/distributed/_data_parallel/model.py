"""A module in several processes, each with its share of the batch: after backward() all have the
mean of their gradients, and so the same parameters after a step.

    model = DistributedDataParallel(model)
    loss(model(share), target).backward()      # gradients are averaged here
    optimizer.step()
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import enum
import inspect
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from treadle import _C
from treadle import distributed as dist
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.autograd.profiler import record_function
from treadle.distributed._grad_bucket import BuiltinCommHookType, GradBucket
from treadle.distributed.algorithms.join import Join, Joinable, JoinHook
from treadle.nn.modules.module import Module
from treadle.nn.modules.sparse import Embedding, EmbeddingBag
from treadle.nn.parallel.scatter_gather import scatter_kwargs
from treadle.nn.uninitialized import UninitializedParameter

from . import low_precision
from .buckets import caps_of
from .delayed import Delayed
from .join import DataParallelJoinHook, common_rank, tell_backward
from .low_precision import _MixedPrecision
from .module_state import broadcast_all, expect_same
from .outputs import tensors_in
from .reducer import Options, Reducer


class _BufferCommHookLocation(enum.Enum):
    PRE_FORWARD = enum.auto()
    POST_FORWARD = enum.auto()


class DistributedDataParallel(Module, Joinable):
    """Calls `module`, whose parameters and buffers all processes take from the first one
    (`init_sync`). Its gradients are averaged over the processes while backward() runs.

    device_ids, output_device: the one device of the module, to which inputs go; None on the CPU.
    forward_sync_buffers: take buffers from the first process before each forward(). The older
        broadcast_buffers=False also leaves them out of `init_sync`.
    process_group, or device_mesh with one dimension: the processes; all of them by default.
    bucket_cap_mb: MiB of gradients that are sent together, by default 25, and 1 for the first;
        bucket_cap_mb_list: those of each.
    find_unused_parameters: some parameters may take no part in the outputs, or in the loss. Where
        one process uses a parameter all get its mean; where none does its gradient stays as it is.
    gradient_as_bucket_view: gradients are views of the tensors that are sent; detach_() does not
        work on them.
    static_graph: every backward() has the graph of the first one, with checkpoints in checkpoints
        and unused parameters.
    delay_all_reduce_named_params: (name, parameter) pairs that are averaged together, when the
        gradient of param_to_hook_all_reduce is there.
    mixed_precision: a _MixedPrecision.
    skip_all_reduce_unused_params: buckets without used parameters are not sent; all processes use
        the same parameters then.
    batched_grad_copy: one copy for all gradients of a bucket.
    lazy_bucket_allocation: buckets have memory in backward() only.

    ValueError before init_process_group(); RuntimeError for a module without parameters to train,
    or with others than the first process has.
    """

    __module__ = "treadle.nn.parallel.distributed"  # what pickles name

    def __init__(
        self,
        module: Module,
        device_ids: Optional[Sequence[Any]] = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: Optional[bool] = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: Optional[float] = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Optional[Sequence[Tuple[str, Tensor]]] = None,
        param_to_hook_all_reduce: Optional[Tensor] = None,
        mixed_precision: Optional[_MixedPrecision] = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: Optional[List[int]] = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: Optional[bool] = None,
        lazy_bucket_allocation: bool = False,
    ) -> None:
        super().__init__()
        Joinable.__init__(self)
        if (delay_all_reduce_named_params is None) != (param_to_hook_all_reduce is None):
            raise ValueError(
                "DistributedDataParallel: expected delay_all_reduce_named_params and "
                "param_to_hook_all_reduce together, got one of them"
            )
        delayed = dict(delay_all_reduce_named_params or ())
        self.process_group = _group_of(process_group, device_mesh)
        if device_mesh is not None:
            self.device_mesh = device_mesh
        self.parameters_to_ignore: Set[str] = {
            *getattr(module, "_ddp_params_and_buffers_to_ignore", ()),
            *delayed,
        }
        self.module = module
        self.dim = dim
        self._check_parameters(bool(delayed))
        self._place(device_ids, output_device)
        if check_reduction:
            _warn("check_reduction has no effect, leave it out")
        init_sync_buffers = self._choose_buffers(broadcast_buffers, forward_sync_buffers)
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = False
        self.mixed_precision = mixed_precision
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self._divides_by_all = True
        self._is_manual = False
        self._hooks: List[Tuple[Callable, Any]] = []
        self._buffer_hook: Optional[tuple] = None
        self._delayed: Optional[Delayed] = None
        if delayed:
            assert param_to_hook_all_reduce is not None
            self._delayed = Delayed(
                list(delayed.values()), param_to_hook_all_reduce, self.process_group
            )
        if init_sync:
            expect_same(dict(self._named_parameters()), self.process_group)
            buffers = self._buffers_of_module() if init_sync_buffers else []
            broadcast_all([*self._parameters_of_module(), *buffers], 0, self.process_group)
        first_caps, caps = caps_of(bucket_cap_mb, bucket_cap_mb_list)
        self._options = Options(
            first_caps,
            caps,
            find_unused_parameters,
            gradient_as_bucket_view,
            skip_all_reduce_unused_params,
            batched_grad_copy,
            lazy_bucket_allocation,
        )
        self._make_reducer()
        if mixed_precision is not None:
            self._set_precision(mixed_precision)
        if static_graph:
            self._set_static_graph()

    # ---- what the constructor is made of ----

    def _check_parameters(self, may_have_none: bool) -> None:
        parameters = self._parameters_of_module()
        if not may_have_none and not any(p.requires_grad for p in parameters):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters "
                "that require a gradient."
            )
        for name, parameter in self._named_parameters():
            if isinstance(parameter, UninitializedParameter):
                raise RuntimeError(
                    "DistributedDataParallel: expected parameters with a shape, got the "
                    f"uninitialized parameter {name}: call the module once before"
                )

    def _place(self, device_ids: Optional[Sequence[Any]], output_device: Any) -> None:
        devices = {p.device for p in self.module.parameters()}
        kinds = {device.type for device in devices}
        if len(kinds) > 1:
            raise ValueError(
                "DistributedDataParallel: expected parameters on one type of device, got "
                f"{', '.join(sorted(kinds))}"
            )
        self.device = next(iter(devices), _C.device("cpu"))
        self.device_type = self.device.type
        self.is_multi_device_module = len(devices) > 1
        where = "the cpu" if self.device_type == "cpu" else "several devices"
        if self.device_type == "cpu" or self.is_multi_device_module:
            if device_ids:
                raise ValueError(
                    f"DistributedDataParallel: expected no device_ids for a module on {where}, got "
                    f"{list(device_ids)}"
                )
            if output_device is not None:
                raise ValueError(
                    "DistributedDataParallel: expected no output_device for a module on "
                    f"{where}, got {output_device}"
                )
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError(
                f"DistributedDataParallel: expected one of device_ids, got {list(device_ids)}"
            )
        self.device_ids = list(device_ids) if device_ids else None
        self.output_device = (
            device_ids[0] if device_ids and output_device is None else output_device
        )

    def _choose_buffers(self, older: Optional[bool], newer: Optional[bool]) -> bool:
        """Set forward_sync_buffers; returns whether buffers are taken at the beginning, too."""
        if older is not None:
            _warn(
                "broadcast_buffers is not read beside forward_sync_buffers"
                if newer is not None
                else "broadcast_buffers is an older name, use forward_sync_buffers, which takes "
                "buffers from the first process once at the beginning in any case"
            )
        if newer is not None:
            self.forward_sync_buffers = newer
            return True
        self.forward_sync_buffers = True if older is None else older
        return self.forward_sync_buffers

    def _make_reducer(self) -> None:
        named: Dict[int, Tuple[str, Tensor]] = {}
        sparse: Set[int] = set()
        for prefix, part in self.module.named_modules():
            for name, parameter in part.named_parameters(recurse=False):
                full = f"{prefix}.{name}" if prefix else name
                if parameter.requires_grad and full not in self.parameters_to_ignore:
                    named.setdefault(id(parameter), (full, parameter))
                    if isinstance(part, (Embedding, EmbeddingBag)) and part.sparse:
                        sparse.add(id(parameter))
        places = {i for i, identity in enumerate(named) if identity in sparse}
        names, parameters = [n for n, _ in named.values()], [p for _, p in named.values()]
        self.reducer = Reducer(parameters, names, places, self.process_group, self._options)

    def _set_precision(self, precision: _MixedPrecision) -> None:
        if precision.buffer_dtype is not None:
            ignored = self.parameters_to_ignore
            low_precision.cast_buffers(self.module, precision.buffer_dtype, ignored)
        dtype = precision.reduce_dtype or precision.param_dtype
        if dtype is not None:
            self.register_comm_hook(self.process_group, low_precision.averages_in(dtype))

    def _set_static_graph(self) -> None:
        """Expect the graph of the first backward() in all that follow."""
        if self.static_graph:
            warnings.warn("static_graph is set already", stacklevel=2)
            return
        self.static_graph = self.reducer.static = True
        self.reducer.set_group(self.process_group)

    # Copies, pickled or not, listen to the gradients of their own parameters.
    def __getstate__(self) -> dict:
        if self.process_group is not dist.group.WORLD:
            raise RuntimeError(
                "DistributedDataParallel: expected the group of all processes for a copy, "
                "got another"
            )
        state = super().__getstate__()
        for name in ("reducer", "process_group", "_delayed"):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        self.process_group = dist.group.WORLD
        self._delayed = None
        self._make_reducer()
        self.reducer.hook = self._hooks[0] if self._hooks else None
        if self.static_graph:
            self.reducer.static = True
            self.reducer.set_group(self.process_group)
        self.reducer.waits_for_caller = self._is_manual

    # ---- parameters and buffers ----

    def _named_parameters(self) -> Iterator[Tuple[str, Tensor]]:
        ignored = self.parameters_to_ignore
        return ((n, p) for n, p in self.module.named_parameters() if n not in ignored)

    def _parameters_of_module(self) -> List[Tensor]:
        return [parameter for _, parameter in self._named_parameters()]

    def _named_buffers(self) -> Dict[str, Tensor]:
        ignored = self.parameters_to_ignore
        return {n: b for n, b in self.module.named_buffers() if n not in ignored}

    def _buffers_of_module(self) -> List[Tensor]:
        return list(self._named_buffers().values())

    @property
    def broadcast_buffers(self) -> bool:
        """The older name of forward_sync_buffers."""
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value: bool) -> None:
        self.forward_sync_buffers = value

    def will_sync_module_buffers(self) -> bool:
        """Whether the next forward() takes buffers from another process."""
        return (
            self.require_forward_param_sync
            and self.forward_sync_buffers
            and any(True for _ in self._named_buffers())
        )

    def _take_buffers(self, source: int) -> None:
        with no_grad():
            if self._buffer_hook is None:
                broadcast_all(self._buffers_of_module(), source, self.process_group)
                return
            hook, state, _ = self._buffer_hook
            self.reducer.after_backward += hook(state, self._named_buffers()) or []

    def _sync_buffers_at(self, location: _BufferCommHookLocation) -> None:
        before = _BufferCommHookLocation.PRE_FORWARD
        when = self._buffer_hook[2] if self._buffer_hook is not None else before
        if when is location and self.will_sync_module_buffers():
            self._take_buffers(common_rank(self, True) if self._join_config.enable else 0)

    # ---- a step ----

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The result of the module for this process's share."""
        with record_function("DistributedDataParallel.forward"):
            averages = _C.is_grad_enabled() and self.require_backward_grad_sync
            if averages:
                self.reducer.expect_finished()
            joined = Join.notify_join_context(self)
            if _C.is_grad_enabled():
                self.reducer.rebuild()
            self._sync_buffers_at(_BufferCommHookLocation.PRE_FORWARD)
            if self._join_config.enable:
                tell_backward(self, True)
            outputs = self._call(inputs, kwargs)
            self._sync_buffers_at(_BufferCommHookLocation.POST_FORWARD)
            self.require_forward_param_sync = averages
            if averages:
                self.reducer.prepare_for_backward(list(tensors_in(outputs)))
            if joined is not None and not self._divides_by_all:
                self.reducer.divisor = int(joined.result()[0].item())
            if self._delayed is not None:
                self._delayed.place_gradients()
            return outputs

    def _call(self, inputs: tuple, kwargs: dict) -> Any:
        if self.device_ids is not None:
            pieces, keywords = scatter_kwargs(inputs, kwargs, [self.device], self.dim)
            inputs, kwargs = (pieces[0], keywords[0]) if pieces else (inputs, kwargs)
        dtype = None if self.mixed_precision is None else self.mixed_precision.param_dtype
        if dtype is None:
            return self.module(*inputs, **kwargs)
        from treadle.func import functional_call

        narrow = low_precision.cast_parameters(self.module, dtype, self.parameters_to_ignore)
        inputs = low_precision.cast_inputs(inputs, dtype)
        return functional_call(
            self.module, narrow, inputs, low_precision.cast_inputs(kwargs, dtype)
        )

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block whose forward() and backward() only add to the gradients of this process; the
        first one after it averages the sums."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @property
    def require_manual_backward_finalization(self) -> bool:
        """Whether gradients are averages only after finalize_backward(), which the program calls
        once after each backward()."""
        return self._is_manual

    @require_manual_backward_finalization.setter
    def require_manual_backward_finalization(self, value: bool) -> None:
        self._is_manual = self.reducer.waits_for_caller = value

    @property
    def should_finalize_after_backward(self) -> bool:
        """Whether finalize_backward() may be called only when backward() has returned."""
        return self._is_manual and not self.reducer.rebuilt

    def finalize_backward(self) -> None:
        """Wait for all gradients and write the means. RuntimeError unless
        require_manual_backward_finalization is set and all gradients are there."""
        if not (self._is_manual and self.reducer.may_finalize()):
            raise RuntimeError(
                "finalize_backward: expected require_manual_backward_finalization, and a "
                "backward() whose gradients are all there, got "
                + ("gradients that are missing" if self._is_manual else "automatic finalization")
            )
        self.reducer.finalize()

    # ---- hooks ----

    def register_comm_hook(self, state: Any, hook: Callable) -> None:
        """Let `hook(state, bucket)` reduce each GradBucket, before the first backward(). It returns
        a torch.futures.Future of one tensor, which replaces the bucket's; nothing is divided by
        the number of processes otherwise. RuntimeError for a second hook."""
        _check_hook(hook)
        if self._hooks:
            raise RuntimeError(
                "register_comm_hook: expected one hook, got a second beside "
                f"{getattr(self._hooks[0][0], '__name__', self._hooks[0][0])}"
            )
        self._hooks.append((hook, state))
        self.reducer.hook = (hook, state)

    def _register_builtin_comm_hook(self, comm_hook_type: BuiltinCommHookType) -> None:
        from treadle.distributed.algorithms.ddp_comm_hooks import default_hooks

        hooks = {
            BuiltinCommHookType.ALLREDUCE: default_hooks.allreduce_hook,
            BuiltinCommHookType.FP16_COMPRESS: default_hooks.fp16_compress_hook,
        }
        if comm_hook_type not in hooks:
            raise TypeError(
                "_register_builtin_comm_hook: expected a BuiltinCommHookType, got "
                f"{type(comm_hook_type).__name__}"
            )
        self.register_comm_hook(self.process_group, hooks[comm_hook_type])

    def _register_buffer_comm_hook(
        self,
        state: Any,
        hook: Callable,
        comm_hook_location: _BufferCommHookLocation = _BufferCommHookLocation.POST_FORWARD,
    ) -> None:
        """Let `hook(state, {name: buffer})` take the place of the first process's buffers. It may
        return futures, for which the end of backward() waits."""
        if not callable(hook):
            raise TypeError(
                "_register_buffer_comm_hook: expected hook to be callable, got "
                f"{type(hook).__name__}"
            )
        self._buffer_hook = (hook, state, comm_hook_location)

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(
        module: Module, params_and_buffers_to_ignore: Sequence[str]
    ) -> None:
        """Leave out the parameters and buffers of these names, in a module that is not parallel
        yet."""
        module._ddp_params_and_buffers_to_ignore = list(params_and_buffers_to_ignore)

    def _remove_autograd_hooks(self) -> None:
        self.reducer.remove_hooks()

    def _update_process_group(self, new_process_group: Any) -> None:
        """Go on with another group."""
        self.process_group = new_process_group
        self.reducer.set_group(new_process_group)

    # ---- uneven inputs ----

    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Join:
        """A block for processes with different numbers of batches: one that leaves it early takes
        part in the steps of the others with gradients of zero. At the end all have the module of
        one that left last.

        divide_by_initial_world_size: the sum of gradients is divided by the number of processes,
        or else by the number of those in the block. throw_on_early_termination: RuntimeError in all
        processes as soon as one has left instead. Other collectives than those of this class, such
        as SyncBatchNorm's, need it.
        """
        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook of a process that has left join(). It reads divide_by_initial_world_size."""
        return DataParallelJoinHook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The group."""
        return self.process_group


def _group_of(group: Any, mesh: Any) -> Any:
    if group is not None and mesh is not None:
        raise RuntimeError(
            "DistributedDataParallel: expected process_group or device_mesh, got both"
        )
    if mesh is None:
        dist.get_world_size(group)  # ValueError before init_process_group()
        return dist.group.WORLD if group is None else group
    if mesh.ndim != 1:
        raise RuntimeError(
            f"DistributedDataParallel: expected a device_mesh with one dimension, got {mesh.ndim}"
        )
    return mesh.get_group(mesh_dim=0)


def _warn(message: str) -> None:
    warnings.warn(f"DistributedDataParallel: {message}", FutureWarning, stacklevel=4)


def _check_hook(hook: Any) -> None:
    if not callable(hook):
        raise TypeError(f"register_comm_hook: expected a callable hook, got {type(hook).__name__}")
    parameters = list(inspect.signature(hook).parameters.values())
    if len(parameters) < 2:
        raise ValueError(
            "register_comm_hook: expected a hook of (state, bucket), got one of "
            f"{len(parameters)} arguments"
        )
    kind = parameters[1].annotation
    is_bucket = kind is GradBucket or str(kind).endswith("GradBucket")
    if kind is not inspect.Parameter.empty and not is_bucket:
        raise ValueError(
            f"register_comm_hook: expected the annotation GradBucket of the bucket, got {kind}"
        )


__all__ = ["DistributedDataParallel"]

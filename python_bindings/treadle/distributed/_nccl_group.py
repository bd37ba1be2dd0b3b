"""The methods of a group whose data NCCL carries, between devices of CUDA."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from datetime import timedelta
from typing import Any, List, Sequence

from treadle import _C
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.distributed import _engine_group, _nccl
from treadle.distributed import options as opts_of
from treadle.distributed.work import EngineWork


class NcclGroup(_engine_group.EngineGroup):
    """The methods of ProcessGroup over NCCL. A process uses one device in a group: `device`, or
    that of its first tensor."""

    def __init__(
        self, engine: Any, members: Sequence[int], name: str, timeout: timedelta, device: Any
    ) -> None:
        super().__init__(engine, members, name, timeout)
        self._engine = engine
        if device is not None:
            engine.use_device(device.index)
            engine.connect(timeout.total_seconds())

    def _use(self, name: str, tensors: Sequence[Tensor]) -> None:
        """ValueError for tensors that are not on the device."""
        for tensor in tensors:
            if tensor.device.type != "cuda":
                raise ValueError(f"{name}: expected tensors on cuda for nccl, got {tensor.device}")
            self._engine.use_device(tensor.device.index)

    def _run(
        self,
        name: str,
        function: int,
        opts: Any,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        *args: Any,
        **kwargs: Any,
    ) -> EngineWork:
        self._use(name, [*inputs, *outputs])
        places = [[_engine_group._address(t) for t in each] for each in (inputs, outputs)]
        if self._engine.has_overlap(function, *places):
            with no_grad():
                inputs = [tensor.detach().clone() for tensor in inputs]
        return super()._run(name, function, opts, inputs, outputs, *args, **kwargs)

    def _post(
        self, name: str, function: int, tensor: Tensor, place: Tensor, peer: int, tag: int
    ) -> Any:
        if peer == _engine_group.ANY_RANK:
            raise ValueError(f"{name}: expected src, as nccl receives from one rank, got none")
        self._use(name, [place])
        return super()._post(name, function, tensor, place, peer, tag)

    def _can_reduce(self, name: str, op: Any, tensor: Tensor) -> None:
        if not _nccl.can_reduce(int(op.op), _engine_group._number(tensor.dtype)):
            raise ValueError(
                f"{name}: expected an operation and a dtype that nccl has, got {op} of "
                f"{tensor.dtype}"
            )

    def allreduce_coalesced(self, tensors: List[Tensor], opts: Any = None) -> EngineWork:
        opts = opts or opts_of.AllreduceCoalescedOptions()
        return self.allreduce(tensors, opts, "all_reduce_coalesced")

    def barrier(self, opts: Any = None) -> EngineWork:
        """Ends when all ranks have called it, and their devices have done the work before it."""
        opts = opts or opts_of.BarrierOptions()
        device = opts.device_ids[0] if opts.device_ids else opts.device
        if device is not None:
            self._engine.use_device(_C.device("cuda", _C.device(device).index).index)
        return super().barrier(opts)


__all__ = ["NcclGroup"]

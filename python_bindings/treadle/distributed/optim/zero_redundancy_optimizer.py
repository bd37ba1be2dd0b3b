"""An optimizer whose state is divided among processes: each steps the parameters that are its own,
and sends them to all (ZeRO, Rajbhandari et al., arXiv:1910.02054).

    model = DistributedDataParallel(model)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), treadle.optim.Adam, lr=0.01)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Set, Tuple, Type

from treadle import _C
from treadle import distributed as dist
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.distributed.algorithms.join import Join, Joinable, JoinHook
from treadle.optim import Optimizer


class _StepHook(JoinHook):
    """A process whose inputs have ended still steps the parameters that are its own."""

    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self._optimizer = optimizer

    def main_hook(self) -> None:
        self._optimizer.step()


class _Begun(NamedTuple):
    """Parameters that are on their way from a rank."""

    rank: int
    parameters: List[Tensor]
    flat: Tensor
    work: Any


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Makes in each process an `optimizer_class(..., **defaults)` of its share of the parameters.
    Shares have nearly the same numbers of elements; a parameter is never divided.

    parameters_as_bucket_view: the parameters of a share become views of one tensor, which is sent
    without a copy. overlap_with_ddp: backward() steps the parameters of a bucket as soon as it has
    their gradients, and step() waits for the rest; a hook of ddp_zero_hook does it. ValueError for
    no parameters, or sparse ones.

    All processes make the same calls of step(), add_param_group() and consolidate_state_dict().
    """

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: Type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "ZeroRedundancyOptimizer: expected params to be a list of tensors or groups, got "
                "a tensor"
            )
        params = list(params)
        if not params:
            raise ValueError("ZeroRedundancyOptimizer: expected parameters, got none")
        self._is_ready = False
        self.overlap_with_ddp = overlap_with_ddp
        self._begun: List[_Begun] = []
        self.process_group = dist.group.WORLD if process_group is None else process_group
        self.world_size = dist.get_world_size(self.process_group)
        self.rank = dist.get_rank(self.process_group)
        Optimizer.__init__(self, params, defaults)
        Joinable.__init__(self)
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._sizes = [0] * self.world_size
        self._shares: List[List[Dict[str, Any]]] = [[] for _ in range(self.world_size)]
        for group in self.param_groups:
            self._divide(group)
        self.optim = optimizer_class(self._shares[self.rank], **defaults)
        self._copy_settings(self.optim.param_groups, self.param_groups)
        self._make_buckets()
        self._collected: Optional[List[Dict[str, Any]]] = None
        self._is_ready = True

    # ---- shares ----

    def _divide(self, group: Dict[str, Any]) -> None:
        """Give each parameter of a group, the largest first, to the smallest share."""
        shares: List[List[Tensor]] = [[] for _ in range(self.world_size)]
        for parameter in sorted(group["params"], key=lambda p: p.numel(), reverse=True):
            if parameter.is_sparse:
                raise ValueError(
                    "ZeroRedundancyOptimizer: expected dense parameters, got a sparse one of shape "
                    f"{tuple(parameter.shape)}"
                )
            owner = self._sizes.index(min(self._sizes))
            shares[owner].append(parameter)
            self._sizes[owner] += parameter.numel()
        settings = {k: v for k, v in group.items() if k not in ("params", "param_names")}
        for whole, share in zip(self._shares, shares):
            whole.append({**settings, "params": share})

    def _parameters_of(self, rank: int) -> List[Tensor]:
        return [p for group in self._shares[rank] for p in group["params"]]

    def _messages_of(self, rank: int, chosen: Optional[Set[int]] = None) -> List[List[Tensor]]:
        """The parameters of a share, or those whose id() is chosen, by dtype and device."""
        messages: Dict[Any, List[Tensor]] = {}
        for parameter in self._parameters_of(rank):
            if chosen is not None and id(parameter) not in chosen:
                continue
            messages.setdefault((parameter.dtype, parameter.device), []).append(parameter)
        return list(messages.values())

    def _make_buckets(self) -> None:
        self._buckets: List[Tuple[int, Tensor]] = []
        if not self.parameters_as_bucket_view:
            return
        with no_grad():
            for rank in range(self.world_size):
                for message in self._messages_of(rank):
                    flat = _C.cat([p.detach().reshape(-1) for p in message])
                    for p, piece in zip(message, flat.split([p.numel() for p in message])):
                        p.data = piece.view(p.shape)
                    self._buckets.append((rank, flat))

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """Add a group, divided among the processes."""
        super().add_param_group(param_group)
        if self._is_ready:
            self._divide(self.param_groups[-1])
            self.optim.add_param_group(self._shares[self.rank][-1])
            self._copy_settings(self.optim.param_groups, self.param_groups)
            self._make_buckets()

    @staticmethod
    def _copy_settings(source: List[Dict[str, Any]], to: List[Dict[str, Any]]) -> None:
        for theirs, mine in zip(source, to):
            for name, value in theirs.items():
                if name not in ("params", "param_names"):
                    mine[name] = value

    # ---- a step ----

    def step(self, closure: Optional[Callable[[], Any]] = None, **kwargs: Any) -> Any:
        """A step of this process's share, and the parameters of the others from them. Returns the
        loss of `closure`; kwargs go to the step of the optimizer. After a backward() that has done
        the step, it waits for the parameters of the others."""
        Join.notify_join_context(self)
        if self._begun:
            with no_grad():
                self._finish_sending()
            return None
        self._copy_settings(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure, **kwargs)
        self._copy_settings(self.optim.param_groups, self.param_groups)
        if self.world_size > 1:
            with no_grad():
                self._send_parameters()
        return loss

    def _send_parameters(self) -> None:
        if self.parameters_as_bucket_view:
            works = [self._send(flat, rank) for rank, flat in self._buckets]
            for work in works:
                work.wait()
            return
        self._begin_sending()
        self._finish_sending()

    def _begin_sending(self, chosen: Optional[Set[int]] = None) -> None:
        for rank in range(self.world_size):
            for message in self._messages_of(rank, chosen):
                flat = _C.cat([parameter.detach().reshape(-1) for parameter in message])
                self._begun.append(_Begun(rank, message, flat, self._send(flat, rank)))

    def _finish_sending(self) -> None:
        begun, self._begun = self._begun, []
        for each in begun:
            each.work.wait()
            if each.rank != self.rank:
                pieces = each.flat.split([p.numel() for p in each.parameters])
                for parameter, piece in zip(each.parameters, pieces):
                    parameter.copy_(piece.view(parameter.shape))

    def _step_in_backward(self, gradients: Dict[int, Tensor]) -> None:
        """Step those parameters of this process that have a gradient here, by id(), and begin to
        send them."""
        self._copy_settings(self.param_groups, self.optim.param_groups)
        groups = self.optim.param_groups
        mine = [p for p in self._parameters_of(self.rank) if id(p) in gradients]
        before = [p.grad for p in mine]
        for parameter in mine:
            parameter.grad = gradients[id(parameter)]
        self.optim.param_groups = [
            {**group, "params": [p for p in group["params"] if id(p) in gradients]}
            for group in groups
        ]
        try:
            self.optim.step()
        finally:
            self.optim.param_groups = groups
            for parameter, grad in zip(mine, before):
                parameter.grad = grad
        self._begin_sending(set(gradients))

    def _send(self, flat: Tensor, rank: int) -> Any:
        return dist.broadcast(flat, group=self.process_group, group_src=rank, async_op=True)

    # ---- the state ----

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collect the state of all processes in the rank `to` of the group, for state_dict(). Later
        steps do not change it."""
        self._copy_settings(self.param_groups, self.optim.param_groups)
        states: Optional[List[Any]] = [None] * self.world_size if self.rank == to else None
        mine = self.optim.state_dict()
        dist.gather_object(mine, states, group=self.process_group, group_dst=to)
        if states is not None:
            states[self.rank] = copy.deepcopy(mine)
        self._collected = states

    def state_dict(self) -> Dict[str, Any]:
        """The state of all parameters, as one process would have it. RuntimeError where
        consolidate_state_dict() did not collect it."""
        if self._collected is None:
            raise RuntimeError(
                "ZeroRedundancyOptimizer: expected a call of consolidate_state_dict(to="
                f"{self.rank}) in all processes before state_dict(), got none"
            )
        result = super().state_dict()
        number = self._numbers()
        state: Dict[int, Any] = {}
        for rank, collected in enumerate(self._collected):
            mine = [number[id(parameter)] for parameter in self._parameters_of(rank)]
            for place, value in collected["state"].items():
                state[mine[place] if isinstance(place, int) else place] = value
        result["state"] = dict(sorted(state.items(), key=lambda item: str(item[0]).zfill(12)))
        return result

    def _numbers(self) -> Dict[int, int]:
        every = [parameter for group in self.param_groups for parameter in group["params"]]
        return {id(parameter): place for place, parameter in enumerate(every)}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Take over a state of all parameters, of state_dict() or of the optimizer in one process;
        each process keeps its share."""
        number = self._numbers()
        local = self.optim.state_dict()
        places = [number[id(parameter)] for parameter in self._parameters_of(self.rank)]
        state = state_dict["state"]
        shared = {key: value for key, value in state.items() if not isinstance(key, int)}
        mine = {i: state[place] for i, place in enumerate(places) if place in state}
        super().load_state_dict({**state_dict, "state": {}})
        groups = copy.deepcopy(local["param_groups"])
        self._copy_settings(self.param_groups, groups)
        self.optim.load_state_dict({"state": {**shared, **mine}, "param_groups": groups})
        self._shares[self.rank] = self.optim.param_groups
        self._collected = None

    # ---- uneven inputs ----

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook in Join of a process whose inputs have ended. It reads no kwargs."""
        del kwargs
        return _StepHook(self)

    @property
    def join_device(self) -> Any:
        """The device of the first parameter."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        """The group."""
        return self.process_group


__all__ = ["ZeroRedundancyOptimizer"]

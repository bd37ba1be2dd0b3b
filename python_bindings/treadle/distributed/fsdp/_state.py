"""The work around forward and backward of a module whose parameters are sharded.

    forward of a layer     gather its parameters, compute, free them
    backward of a layer    gather them again, compute, reduce the gradients, free them

The gather of the layer that comes next in backward begins before the computation of this one. The
first module that is called is the root: it ends each backward.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, List, Optional, Set, Union

from treadle import _C
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.distributed.fsdp._group import ParameterGroup
from treadle.distributed.fsdp._policies import MixedPrecisionPolicy
from treadle.nn import Module
from treadle.utils._pytree import tree_leaves, tree_map

_STATE = "_fsdp_state"


class Shared:
    """The common state of the modules below one root."""

    def __init__(self) -> None:
        self.states: List[State] = []
        self.forward_order: List[State] = []  # as their forward ended, until backward
        self.begun: List[State] = []  # in this forward
        self.following: Dict[int, State] = {}  # the one that begins next, as in the last forward
        self.reductions: List[Any] = []
        self.in_backward = False
        self.is_last_backward = True


def state_of(module: Any) -> Optional[State]:
    """The state of a module that fully_shard() was called with; None for others."""
    return vars(module).get(_STATE)


def states_in(module: Module) -> List[State]:
    """The states of a module and those below it, the outer ones first."""
    found = [state_of(m) for m in module.modules()]
    return list(dict.fromkeys(state for state in found if state is not None))


def converted(value: Any, dtype: _C.dtype) -> Any:
    """A floating point tensor in a dtype; other values as they are."""
    is_one = isinstance(value, Tensor) and value.is_floating_point() and value.dtype != dtype
    return value.to(dtype) if is_one else value


class State:
    """One call of fully_shard(): for a module, or a list of modules that are used together."""

    def __init__(
        self,
        modules: List[Module],
        group: Optional[ParameterGroup],
        precision: MixedPrecisionPolicy,
        reshard_after_forward: Union[bool, int, None],
    ) -> None:
        self.modules = modules
        self.group = group
        self.precision = precision
        # None: as it is best, True but in the root, whose parameters backward needs first. A
        # number: so many processes have all rows between forward and backward.
        self.reshard_after_forward = reshard_after_forward
        self.shared: Optional[Shared] = None
        self.is_root = False
        self.in_backward = False
        self.prefetch_in_forward: List[State] = []
        self.prefetch_in_backward: Optional[List[State]] = None
        self.prefetches_next = True  # in forward, where the program does not say what
        self.casts_as_root = False  # inputs, if it is the root
        self._left: Set[Module] = set()  # modules of the list whose forward has not ended
        if group is not None:
            group.when_ready = self.gradients_are_there
        for module in modules:
            vars(module)[_STATE] = self
            module.register_forward_pre_hook(self._pre_forward, prepend=True, with_kwargs=True)
            module.register_forward_hook(self._post_forward)
            module.register_state_dict_pre_hook(lambda *args: self.to_sharded())
            module.register_load_state_dict_pre_hook(lambda *args: self.to_sharded())

    def to_sharded(self) -> None:
        """Give the module its rows, unless a backward is on its way."""
        if self.group is not None and not self.in_backward:
            self.group.reshard()

    # ---- forward ----

    def ready(self) -> Shared:
        """The state that this module and the others share: at the first call this one is the root
        of those below it."""
        if self.shared is None:
            self.shared, self.is_root = Shared(), True
            for module in self.modules:
                for state in states_in(module):
                    if state.is_root and state is not self:
                        raise RuntimeError(
                            f"forward: expected the first call of {type(module).__name__} before "
                            "those of the modules in it, which became roots"
                        )
                    state.shared = self.shared
                    self.shared.states.append(state)
            self.shared.states = list(dict.fromkeys(self.shared.states))
        return self.shared

    def reshards_after_forward(self) -> bool:
        """Whether the parameters are freed between forward and backward."""
        given = self.reshard_after_forward
        return not self.is_root if given is None else bool(given)

    def _reshard_after_forward(self, group: ParameterGroup, has_backward: bool) -> None:
        size = self.reshard_after_forward
        keeps = (
            has_backward
            and size is not None
            and size is not True
            and group.is_unsharded
            and group.unshard_in_backward
        )
        if keeps:
            group.keep_part(int(size))  # type: ignore[arg-type]
        group.reshard(keeps_part=keeps)

    def _pre_forward(self, module: Module, args: tuple, kwargs: dict) -> Any:
        if self.ready().in_backward and _C._current_backward() < 0:
            self.reset()  # an exception ended a backward
        dtype = self.precision.param_dtype
        casts = self.precision.cast_forward_inputs or (self.is_root and self.casts_as_root)
        if casts and dtype is not None:
            args, kwargs = tree_map(lambda v: converted(v, dtype), (args, kwargs))
        if self.in_backward:  # an activation is computed again
            if self.group is not None:
                self.group.unshard(in_backward=True)
            return args, kwargs
        if module not in self._left:  # all have ended, or an exception ended a forward
            self._left = set(self.modules)
        if self.group is not None:
            self._gather_for_forward(self.group, tree_leaves((args, kwargs)))
        return args, kwargs

    def _gather_for_forward(self, group: ParameterGroup, inputs: List[Any]) -> None:
        shared = self.ready()
        group.unshard()
        if self not in shared.begun:
            shared.begun.append(self)
        following = shared.following.get(id(self)) if self.prefetches_next else None
        for state in self.prefetch_in_forward or ([] if following is None else [following]):
            if state.group is not None:
                state.group.begin_unshard()
        if group.is_frozen and _C.is_grad_enabled():
            self._listen_to_inputs(inputs)

    def _listen_to_inputs(self, inputs: List[Any]) -> None:
        """Wait for the gradients of the inputs: they end the backward of a module whose parameters
        have none. (That of a leaf may come before the others.)"""
        awaited = [v for v in inputs if isinstance(v, Tensor) and v.requires_grad and not v.is_leaf]
        left = [len(awaited)]

        def is_there(gradient: Any) -> None:
            left[0] -= 1
            if left[0] == 0 and self.in_backward and self.group is not None:
                self.in_backward = False
                if self.group.reshard_after_backward:
                    self.group.reshard()

        for tensor in awaited:
            tensor.register_hook(is_there)

    def _end_of_root_forward(self) -> None:
        """Remember the order for the next forward, and end gathers that this one did not need."""
        shared = self.ready()
        begun, shared.begun = shared.begun, []
        shared.following = {id(one): other for one, other in zip(begun, begun[1:])}
        for state in shared.states:
            if state.group is not None:
                state.group.drop_gathers()

    def _post_forward(self, module: Module, args: tuple, output: Any) -> Any:
        dtype = self.precision.output_dtype
        if dtype is not None:
            output = tree_map(lambda v: converted(v, dtype), output)
        if self.in_backward:
            return output
        self._left.discard(module)
        if not self._left:
            listens = self._listen_to(output)
            # An output without tensors says nothing of its backward, which needs the parameters.
            if (
                self.group is not None
                and self.reshards_after_forward()
                and (listens or not _C.is_grad_enabled())
            ):
                self._reshard_after_forward(self.group, listens)
        else:
            self._listen_to(output)
        if self.is_root and not self._left:
            self._end_of_root_forward()
        return output

    def _listen_to(self, output: Any) -> bool:
        """Wait for the backward of the outputs; returns whether there are any."""
        if not _C.is_grad_enabled():
            return False
        listened = [v for v in tree_leaves(output) if isinstance(v, Tensor) and v.requires_grad]
        for tensor in listened:
            tensor.register_hook(self._pre_backward)
        order = self.ready().forward_order
        if listened and self.group is not None:
            if self in order:
                order.remove(self)
            order.append(self)
        return bool(listened)

    # ---- backward ----

    def _begin_backward(self) -> None:
        shared = self.ready()
        if not shared.in_backward:
            shared.in_backward = True
            _C._queue_callback(self._end_backward)

    def _pre_backward(self, gradient: Any) -> None:
        self._begin_backward()
        if self.group is None or self.in_backward:
            self.in_backward = True
            return
        self.in_backward = True
        if self.group.unshard_in_backward:
            self.group.unshard(in_backward=True)
        for state in self._next_in_backward():
            if state.group is not None and state.group.unshard_in_backward:
                state.group.begin_unshard(in_backward=True)

    def _next_in_backward(self) -> List[State]:
        if self.prefetch_in_backward is not None:
            return self.prefetch_in_backward
        order = self.ready().forward_order
        before = order[: order.index(self)] if self in order else []
        return [state for state in reversed(before) if not state.in_backward][:1]

    def gradients_are_there(self) -> None:
        """End the backward of this module: reduce its gradients, free its parameters."""
        self._begin_backward()
        assert self.group is not None
        if self.group.reshard_after_backward:
            self.group.reshard()
        self.in_backward = False
        # Processes that use different parameters come here in different orders. They reduce at the
        # end of backward, in one order.
        if not self.group.reduce_unused:
            self._reduce(self.group)

    def _reduce(self, group: ParameterGroup) -> None:
        shared = self.ready()
        begun = group.take_gradients()
        # One reduction is under way at a time, so that few gradients are in memory.
        self._finish_reductions()
        shared.reductions = begun

    def _finish_reductions(self) -> None:
        shared = self.ready()
        reductions, shared.reductions = shared.reductions, []
        with no_grad():
            for reduction in reductions:
                reduction.finish()

    def _end_backward(self) -> None:
        """Runs at the end of backward: modules of which not all parameters were used are left."""
        shared = self.ready()
        for state in reversed(shared.states):
            group = state.group
            if group is not None:
                if state.in_backward and group.reshard_after_backward:
                    group.reshard()
                takes_part = group.reduce_unused and state in shared.forward_order
                if takes_part or group.has_gradients():
                    state._reduce(group)
                group.drop_gathers()
            state.in_backward = False
        shared.in_backward = False
        if shared.is_last_backward:
            self._finish_reductions()
            shared.forward_order = []

    def reset(self) -> None:
        """Forget a forward or a backward that an exception ended."""
        shared = self.ready()
        for state in shared.states:
            state.in_backward, state._left = False, set()
            if state.group is not None:
                state.group.reshard()
                state.group.forget()
        shared.in_backward = False
        shared.forward_order, shared.begun, shared.reductions = [], [], []


__all__ = ["Shared", "State", "converted", "state_of", "states_in"]

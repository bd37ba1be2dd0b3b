"""Optimizer: the base of all optimisers. It keeps groups of parameters with their settings, and
their state.

    class SignDescent(Optimizer):
        def __init__(self, params, lr=0.01):
            super().__init__(params, {"lr": lr})

        def update(self, group, params, grads):
            for param, grad in zip(params, grads):
                param.sub_(grad.sign(), alpha=group["lr"])

`step` gathers the parameters of a group that have a gradient and hands them all to `update` at
once, so that an algorithm can treat them together. A subclass may override `step` itself instead.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import functools
import warnings
from collections import OrderedDict, defaultdict
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Optional, Union

from treadle import _C
from treadle._C import Tensor
from treadle.autograd.grad_mode import enable_grad, set_grad_enabled
from treadle.autograd.profiler import record_function
from treadle.functional import typename
from treadle.utils import _foreach_utils
from treadle.utils.hooks import RemovableHandle, add

from ._authoring import (  # noqa: F401  for optimisers outside of the package
    Args,
    DeviceDict,
    DeviceDtypeDict,
    GlobalOptimizerPostHook,
    GlobalOptimizerPreHook,
    Indices,
    Kwargs,
    ParamsT,
    StateDict,
    TensorListList,
    _capturable_doc,
    _default_to_fused_or_foreach,
    _device_dtype_check_for_fused,
    _differentiable_doc,
    _disable_dynamo_if_unsupported,
    _foreach_doc,
    _fused_doc,
    _get_capturable_supported_devices,
    _get_scalar_dtype,
    _get_value,
    _maximize_doc,
    _params_doc,
    _stack_if_compiling,
    _to_scalar,
    _use_grad_for_differentiable,
    _view_as_real,
)

Settings = dict[str, Any]  # of a group
State = dict[str, Any]  # of a parameter

# Hooks around the step of every optimiser.
_global_optimizer_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_optimizer_post_hooks: OrderedDict[int, Callable] = OrderedDict()


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """`hook(optimizer, args, kwargs)` runs before a step of any optimiser and may return new
    (args, kwargs)."""
    return add(_global_optimizer_pre_hooks, hook, (), False)


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """`hook(optimizer, args, kwargs)` runs after a step of any optimiser."""
    return add(_global_optimizer_post_hooks, hook, (), False)


class _RequiredParameter:
    """Stands for a setting that has no default."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def check_setting(optimizer: str, name: str, value: Any, valid: bool, expected: str) -> None:
    """Complain of a setting outside its range."""
    if not valid:
        raise ValueError(f"Invalid {name}: {value} ({optimizer} expects {expected})")


class Optimizer:
    """Base class. `params` is an iterable of tensors, of (name, tensor) pairs, or of dicts, one per
    group."""

    _hook_names = (
        "_optimizer_step_pre_hooks",
        "_optimizer_step_post_hooks",
        "_optimizer_state_dict_pre_hooks",
        "_optimizer_state_dict_post_hooks",
        "_optimizer_load_state_dict_pre_hooks",
        "_optimizer_load_state_dict_post_hooks",
    )

    if TYPE_CHECKING:
        _optimizer_step_pre_hooks: OrderedDict[int, Callable]
        _optimizer_step_post_hooks: OrderedDict[int, Callable]
        _optimizer_state_dict_pre_hooks: OrderedDict[int, Callable]
        _optimizer_state_dict_post_hooks: OrderedDict[int, Callable]
        _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Callable]
        _optimizer_load_state_dict_post_hooks: OrderedDict[int, Callable]
        _opt_called: bool
        # Set by GradScaler.
        grad_scale: Any
        found_inf: Any

    OptimizerPreHook = GlobalOptimizerPreHook
    OptimizerPostHook = GlobalOptimizerPostHook

    # Whether the state of a parameter holds the number of its steps, as a tensor.
    _counts_steps = False

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        for name in self._hook_names:
            setattr(self, name, OrderedDict())
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {typename(params)}"
            )
        self.defaults = defaults
        self.state: defaultdict[Any, dict] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    # ---- groups ------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group: a dict with "params" and the settings that differ from the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, (set, frozenset)):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        params = list(params)
        names = [item[0] for item in params if isinstance(item, tuple)]
        if names:
            if len(names) != len(params):
                raise ValueError(
                    "all optimizer params should be with/without names. Some param names are "
                    "missing"
                )
            params = [item[1] for item in params]
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is "
                    + typename(param)
                )
            if not (self.defaults.get("differentiable") or param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        if len({id(param) for param in params}) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters, which are "
                "changed once for each time they are named",
                stacklevel=3,
            )
        named = bool(names) or "param_names" in param_group
        for other in self.param_groups:
            if named != ("param_names" in other):
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param "
                    f"group {'with' if named else 'without'} names to the optimizer"
                )
        taken = {id(param) for other in self.param_groups for param in other["params"]}
        if any(id(param) in taken for param in params):
            raise ValueError("some parameters appear in more than one parameter group")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
        # The dict itself becomes the group, so that whoever made it can change settings through it.
        param_group["params"] = params
        if names:
            param_group["param_names"] = names
        for name, default in self.defaults.items():
            param_group.setdefault(name, default)
        self.param_groups.append(param_group)

    # ---- a step ------------------------------------------------------------------------------

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        with record_function(f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"):
            for group in self.param_groups:
                for param in group["params"]:
                    grad = param.grad
                    if grad is None:
                        continue
                    if set_to_none:
                        param.grad = None
                        continue
                    if grad.grad_fn is not None:
                        grad.detach_()
                    else:
                        grad.requires_grad_(False)
                    grad.zero_()

    # update() where some gradient is sparse; None if the algorithm has no use for these.
    update_with_sparse: Any = None
    # The error then, if it says more than that the class does not support them.
    _refuses_sparse: str = ""

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Change every parameter by its gradient; `closure`, if given, is called first and gives
        the loss."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with set_grad_enabled(bool(self.defaults.get("differentiable"))):
            for group in self.param_groups:
                params, grads = [], []
                for param in group["params"]:
                    grad = param.grad
                    if grad is not None:
                        params.append(param)
                        grads.append(grad)
                if _C._any_of_other_layout(grads):
                    if self.update_with_sparse is None:
                        name = type(self).__name__
                        raise RuntimeError(
                            self._refuses_sparse or f"{name} does not support sparse gradients"
                        )
                    self.update_with_sparse(group, params, grads)
                elif params:
                    self.update(group, params, grads)
        return loss

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        """Change `params` in place. Written by every algorithm; gradients are recorded only where
        the optimiser is `differentiable`."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to update parameters")

    def _patch_step_function(self) -> None:
        """Let hooks run around `step`, whoever wrote it and however late."""
        cls = type(self)
        if not hasattr(cls.step, "hooked"):
            cls.step = _with_hooks(cls.step)

    @staticmethod
    def profile_hook_step(func: Callable) -> Callable:
        """A `step` around which hooks run."""
        return _with_hooks(func)

    @staticmethod
    def _group_tensors_by_device_and_dtype(
        tensorlistlist: TensorListList, with_indices: bool = False
    ) -> Any:
        return _foreach_utils._group_tensors_by_device_and_dtype(tensorlistlist, with_indices)

    def _cuda_graph_capture_health_check(self) -> None:
        """Nothing to check: a step is safe to capture wherever it runs."""

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """`hook(optimizer, args, kwargs)` runs before a step and may return new (args, kwargs)."""
        return add(self._optimizer_step_pre_hooks, hook, (), False)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """`hook(optimizer, args, kwargs)` runs after a step."""
        return add(self._optimizer_step_post_hooks, hook, (), False)

    def register_state_dict_pre_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """`hook(optimizer)` runs before the state is saved."""
        return add(self._optimizer_state_dict_pre_hooks, hook, (), prepend)

    def register_state_dict_post_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """`hook(optimizer, state_dict)` runs after the state is saved and may return another."""
        return add(self._optimizer_state_dict_post_hooks, hook, (), prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """`hook(optimizer, state_dict)` runs before a state is loaded and may return another."""
        return add(self._optimizer_load_state_dict_pre_hooks, hook, (), prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """`hook(optimizer)` runs after a state is loaded."""
        return add(self._optimizer_load_state_dict_post_hooks, hook, (), prepend)

    # ---- saving and loading ------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The state and settings with parameters as numbers, counted through the groups."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        number: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            packed = {name: value for name, value in group.items() if name != "params"}
            for param in group["params"]:
                number.setdefault(id(param), len(number))
            packed["params"] = [number[id(param)] for param in group["params"]]
            groups.append(packed)
        state = {
            (number.get(id(key), key) if isinstance(key, Tensor) else key): value
            for key, value in self.state.items()
        }
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            replaced = hook(self, result)
            if replaced is not None:
                result = replaced
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over state and settings. The groups must have the same numbers of parameters, in the
        same order."""
        state_dict = dict(state_dict)
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        for mine, theirs in zip(self.param_groups, saved):
            if len(mine["params"]) != len(theirs["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    "optimizer's group"
                )
        group_of = {number: theirs for theirs in saved for number in theirs["params"]}
        param_of = {
            number: param
            for mine, theirs in zip(self.param_groups, saved)
            for number, param in zip(theirs["params"], mine["params"])
        }
        state: defaultdict[Any, dict] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in param_of:
                state[param_of[key]] = _fit(value, param_of[key], group_of[key])
            else:
                state[key] = copy.deepcopy(value)
        groups = []
        for mine, theirs in zip(self.param_groups, saved):
            group = copy.deepcopy(
                {name: value for name, value in theirs.items() if name != "params"}
            )
            group["params"] = mine["params"]
            if "param_names" in mine:
                group.setdefault("param_names", mine["param_names"])
            groups.append(group)
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in self._hook_names:
            if name not in self.__dict__:
                setattr(self, name, OrderedDict())
        self._patch_step_function()
        if self._counts_steps:
            # Older files hold the numbers of steps as plain numbers.
            for values in self.state.values():
                if "step" in values and not isinstance(values["step"], Tensor):
                    values["step"] = step_count(float(values["step"]))
        # A file of an older version lacks settings that came later: they get their defaults.
        for group in self.param_groups:
            for name, default in self.defaults.items():
                group.setdefault(name, default)

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for index, group in enumerate(self.param_groups):
            text += f"\nParameter Group {index}\n"
            for name in sorted(group):
                text += f"    {name}: {group[name]}\n" if name != "params" else ""
        return text + ")"


def _with_hooks(step: Callable) -> Callable:
    @functools.wraps(step)
    def step_with_hooks(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        with record_function(f"Optimizer.step#{type(self).__name__}.step"):
            own = self._optimizer_step_pre_hooks.values()
            for hook in (*_global_optimizer_pre_hooks.values(), *own):
                replaced = hook(self, args, kwargs)
                if replaced is not None:
                    if not (isinstance(replaced, tuple) and len(replaced) == 2):
                        raise RuntimeError(
                            "step pre-hook must return None or a tuple of (new_args, new_kwargs), "
                            f"but got {replaced}"
                        )
                    args, kwargs = replaced
            if "_opt_called" in self.__dict__:  # a scheduler wants to know
                self._opt_called = True
            result = step(self, *args, **kwargs)
            own = self._optimizer_step_post_hooks.values()
            for hook in (*own, *_global_optimizer_post_hooks.values()):
                hook(self, args, kwargs)
            return result

    step_with_hooks.hooked = True  # type: ignore[attr-defined]
    return step_with_hooks


def _fit(value: Any, param: Tensor, group: dict[str, Any], name: Optional[str] = None) -> Any:
    """A copy of saved state on the parameter's device and in its dtype; a step count stays as it
    is, unless it lives beside the parameter."""
    if isinstance(value, Tensor):
        value = value.detach()
        if name == "step":
            if group.get("capturable") or group.get("fused"):
                value = value.to(device=param.device, dtype=_C.float32)
        elif param.is_floating_point():
            value = value.to(device=param.device, dtype=param.dtype)
        else:
            value = value.to(device=param.device)
        return value.clone()
    if isinstance(value, dict):
        return {key: _fit(item, param, group, key) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_fit(item, param, group) for item in value)
    return value


# ---- what the algorithms share -------------------------------------------------------------------


def check_lr(optimizer: str, lr: Union[float, Tensor]) -> None:
    """Complain of a learning rate that is not one number of 0 or more."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    check_setting(optimizer, "learning rate", lr, bool(lr >= 0.0), "lr >= 0")


def check_betas(optimizer: str, betas: tuple[Any, Any]) -> None:
    """Complain of decay rates outside [0, 1)."""
    for index, beta in enumerate(betas):
        valid = 0.0 <= beta < 1.0
        check_setting(optimizer, f"beta parameter at index {index}", beta, valid, "0 <= beta < 1")


def check_not_negative(optimizer: str, **settings: Any) -> None:
    """Complain of the first of these settings that is below 0, or no number at all."""
    for name, value in settings.items():
        shown = "epsilon" if name == "eps" else name
        check_setting(optimizer, f"{shown} value", value, 0.0 <= value, f"{name} >= 0")


def check_adam(
    optimizer: str,
    lr: Union[float, Tensor],
    betas: tuple[Any, Any],
    eps: float,
    **not_negative: Any,
) -> None:
    """Complain of the settings that Adam and its relatives have, in PyTorch's order."""
    check_lr(optimizer, lr)
    check_not_negative(optimizer, eps=eps)
    check_betas(optimizer, betas)
    check_not_negative(optimizer, **not_negative)


def check_implementation(
    lr: Union[float, Tensor],
    foreach: Optional[bool],
    fused: Optional[bool],
    capturable: bool,
    differentiable: bool,
) -> None:
    """Complain of a choice of implementations that contradicts itself. Whatever is chosen, the
    numbers are the same."""
    if isinstance(lr, Tensor) and foreach and not capturable:
        raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def step_count(value: float = 0.0, fused: Optional[bool] = None) -> Tensor:
    """The number of steps taken, as the state of a parameter holds it."""
    wide = _C.get_default_dtype() == _C.float64 and not fused
    return _C.tensor(value, dtype=_C.float64 if wide else _C.float32)


def number(value: Union[float, Tensor]) -> float:
    """A setting that may be a tensor of one element, as a number."""
    return value.item() if isinstance(value, Tensor) else value


def scalar(value: Union[float, Tensor]) -> Union[float, Tensor]:
    """The same, still a tensor, so that a gradient of it can be recorded."""
    return value.reshape(()) if isinstance(value, Tensor) else value


def real(tensor: Tensor) -> Tensor:
    """The tensor itself, or the pairs of reals that a complex one is made of."""
    return _C.view_as_real(tensor) if tensor.is_complex() else tensor


def like(pairs: Tensor, param: Tensor) -> Tensor:
    """The way back from `real`: complex numbers again where the parameter holds such."""
    return _C.view_as_complex(pairs) if param.is_complex() else pairs


def uniform_parts(*lists: list[Tensor]) -> Iterator[tuple[list[Tensor], ...]]:
    """Lists of tensors that belong together place by place, in parts whose tensors of the first
    list have one dtype and device; complex numbers as pairs of reals. A list may be empty."""
    params = lists[0]
    dtypes = [param.dtype for param in params]
    dtype = dtypes[0]
    if dtypes.count(dtype) == len(dtypes) and all(param.is_cpu for param in params):
        # As most often: said without looking at each of many parameters for long.
        kinds: dict[tuple[Any, Any], Any] = {(dtype, "cpu"): range(len(params))}
    else:
        kinds = {}
        for place, param in enumerate(params):
            kinds.setdefault((param.dtype, param.device), []).append(place)
    for (dtype, _), places in kinds.items():
        parts = lists
        if len(kinds) > 1:
            parts = tuple([part[place] for place in places] if part else part for part in lists)
        yield tuple([real(t) for t in part] for part in parts) if dtype.is_complex else parts


class PerParameter(Optimizer):
    """An optimiser that treats each parameter by itself: a subclass says in `start` what state one
    begins with, and in `change` what a step does to it.

    Both are given settings as they are in the group. The common work is done before `change`:
    steps are counted, the sign of the gradient is turned where the objective is maximised, weight
    decay is added to it (or shrinks the parameter, if that is `decoupled_weight_decay`), and
    complex numbers are seen as pairs of reals.
    """

    _counts_steps = True

    def start(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        """The state of a parameter before its first step, without the number of steps."""
        raise NotImplementedError

    @staticmethod
    def change(
        param: Tensor, grad: Tensor, state: dict[str, Tensor], group: dict[str, Any]
    ) -> None:
        """Change `param` and `state` in place; `state["step"]` counts this step already."""
        raise NotImplementedError

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        states = [self.state[param] for param in params]
        for param, state in zip(params, states):
            if not state:
                state["step"] = step_count()
                state.update(self.start(param, group))
        self.advance(group, params, grads, states)

    @staticmethod
    def prepare(param: Tensor, grad: Tensor, group: Settings) -> Tensor:
        """The gradient as the algorithm sees it, after what comes before the algorithm."""
        if group["maximize"]:
            grad = -grad
        weight_decay = group.get("weight_decay", 0)
        if weight_decay == 0:
            return grad
        if group.get("decoupled_weight_decay"):
            param.mul_(1 - number(group["lr"]) * weight_decay)
            return grad
        return grad.add(param, alpha=weight_decay)

    @classmethod
    def advance(
        cls, group: Settings, params: list[Tensor], grads: list[Tensor], states: list[State]
    ) -> None:
        """Take a step with these settings and states."""
        for param, grad, state in zip(params, grads, states):
            state["step"].add_(1)
            grad = cls.prepare(param, grad, group)
            if not param.is_complex():
                cls.change(param, grad, state, group)
            elif not _C.is_grad_enabled():
                parts = {name: real(value) for name, value in state.items()}
                cls.change(real(param), real(grad), parts, group)
            else:
                # Writes to a view of another dtype cannot be recorded.
                parts = {name: real(value).clone() for name, value in state.items()}
                pairs = real(param).clone()
                cls.change(pairs, real(grad), parts, group)
                param.copy_(_C.view_as_complex(pairs))
                for name, value in state.items():
                    value.copy_(like(parts[name], value))


class Fused(Optimizer):
    """An optimiser whose step over a group is one native call: a subclass makes it in `run`, and
    in `run_recorded` takes the same step by operators, whose gradients can be recorded.

    A gradient scaler that leaves its work to the step sets `grad_scale`, which the gradients are
    divided by, and `found_inf`, which is 1 where they overflowed and the step is to be left out.
    """

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        super().__init__(params, defaults)
        if defaults["fused"]:
            self._step_supports_amp_scaling = True

    def states_of(self, params: list[Tensor], group: Settings) -> list[State]:
        """The states, begun where there are none yet."""
        raise NotImplementedError

    @classmethod
    def run(
        cls,
        group: Settings,
        params: list[Tensor],
        grads: list[Tensor],
        states: list[State],
        grad_scale: Optional[Tensor],
    ) -> None:
        """Change `params` and `states` in place, by one call for each dtype."""
        raise NotImplementedError

    @classmethod
    def run_recorded(
        cls, group: Settings, params: list[Tensor], grads: list[Tensor], states: list[State]
    ) -> None:
        """Change `params` in place, one operator after the other."""
        raise NotImplementedError

    @classmethod
    def run_sparse(cls, group: Settings, param: Tensor, grad: Tensor, state: State) -> None:
        """Change one parameter, whose gradient is sparse, and its state in place. Written by the
        algorithms whose `update_with_sparse` is update()."""
        raise NotImplementedError

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        found_inf = getattr(self, "found_inf", None)
        if found_inf is not None and number(found_inf) != 0:
            return
        states = self.states_of(params, group)
        self.advance(group, params, grads, states, getattr(self, "grad_scale", None))

    @classmethod
    def advance(
        cls,
        group: Settings,
        params: list[Tensor],
        grads: list[Tensor],
        states: list[State],
        grad_scale: Optional[Tensor] = None,
    ) -> None:
        """Take a step with these settings and states."""
        if _C._any_of_other_layout(grads):
            if group["differentiable"]:
                grads = [grad.to_dense() for grad in grads]
            else:
                states = states or [{} for _ in params]
                strided = []
                for place, grad in enumerate(grads):
                    if grad.layout == _C.strided:
                        strided.append(place)
                        continue
                    scaled = grad if grad_scale is None else grad * (1 / number(grad_scale))
                    cls.run_sparse(group, params[place], scaled, states[place])
                if not strided:
                    return
                params = [params[place] for place in strided]
                grads = [grads[place] for place in strided]
                states = [states[place] for place in strided]
        if group["differentiable"]:
            cls.run_recorded(group, params, grads, states)
        else:
            cls.run(group, params, grads, states, grad_scale)


def step_over(
    advance: Callable[..., None],
    group: Settings,
    params: list[Tensor],
    grads: list[Tensor],
    found_inf: Optional[Tensor] = None,
    grad_scale: Optional[Tensor] = None,
    **lists: list[Any],
) -> None:
    """A step of an algorithm over lists, as the functions have them that go by its name: `lists`
    are what the states hold, place by place, and get what the step makes anew."""
    if found_inf is not None and number(found_inf) != 0:
        return
    states = [
        {name: values[place] for name, values in lists.items() if values}
        for place in range(len(params))
    ]
    scaled = {} if grad_scale is None else {"grad_scale": grad_scale}
    advance(group, params, grads, states, **scaled)
    for name, values in lists.items():
        for place in range(len(values)):
            if states[place][name] is not values[place]:
                values[place] = states[place][name]


def empty_like(param: Tensor) -> Tensor:
    """Memory of any contents in the strides of the parameter, apart from its history."""
    return _C.empty_like(param.detach(), memory_format=_C.preserve_format)


def zeros_like(param: Tensor) -> Tensor:
    """Zeros in the strides of the parameter, apart from its history."""
    return _C.zeros_like(param.detach(), memory_format=_C.preserve_format)

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

from __future__ import annotations

import copy
from collections import OrderedDict, defaultdict
from typing import Any, Callable, Iterable, Optional, Union

import treadle
from treadle import Tensor
from treadle.utils.hooks import RemovableHandle, add


class _Required:
    """Stands for a setting that has no default."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


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

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        for name in self._hook_names:
            setattr(self, name, OrderedDict())
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                "dicts, but got a Tensor"
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
        group = dict(param_group)
        params = group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, (set, frozenset)):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        params = list(params)
        if params and all(isinstance(item, tuple) and len(item) == 2 for item in params):
            group["param_names"] = [name for name, _ in params]
            params = [param for _, param in params]
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is "
                    + type(param).__name__
                )
            if not param.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
        if len({id(param) for param in params}) != len(params):
            raise ValueError("optimizer contains a parameter group with duplicate parameters")
        taken = {id(param) for other in self.param_groups for param in other["params"]}
        if any(id(param) in taken for param in params):
            raise ValueError("some parameters appear in more than one parameter group")
        group["params"] = params
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
            group.setdefault(name, default)
        self.param_groups.append(group)

    # ---- a step ------------------------------------------------------------------------------

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                if set_to_none:
                    param.grad = None
                else:
                    param.grad = treadle.zeros_like(param.grad.detach())

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Change every parameter by its gradient; `closure`, if given, is called first and gives
        the loss."""
        loss = None
        if closure is not None:
            with treadle.enable_grad():
                loss = closure()
        with treadle.no_grad():
            for group in self.param_groups:
                params = [param for param in group["params"] if param.grad is not None]
                if params:
                    self.update(group, params, [param.grad for param in params])
        return loss

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        """Change `params` in place. Written by every algorithm; recording of gradients is off."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to update parameters")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let hooks run around `step`, whoever wrote it."""
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])

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
        param_of = {
            number: param
            for mine, theirs in zip(self.param_groups, saved)
            for number, param in zip(theirs["params"], mine["params"])
        }
        state: defaultdict[Any, dict] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in param_of:
                state[param_of[key]] = _fit(value, param_of[key])
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
        # A file of an older version lacks settings that came later: they get their defaults.
        for group in self.param_groups:
            for name, default in self.defaults.items():
                group.setdefault(name, default)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for index, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {index}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join(lines) + "\n)"


def _with_hooks(step: Callable) -> Callable:
    def step_with_hooks(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        for hook in list(self._optimizer_step_pre_hooks.values()):
            replaced = hook(self, args, kwargs)
            if replaced is not None:
                if not (isinstance(replaced, tuple) and len(replaced) == 2):
                    raise RuntimeError(
                        "step pre-hook must return None or a tuple of (new_args, new_kwargs), but "
                        f"got {replaced}"
                    )
                args, kwargs = replaced
        result = step(self, *args, **kwargs)
        for hook in list(self._optimizer_step_post_hooks.values()):
            hook(self, args, kwargs)
        return result

    step_with_hooks.__doc__ = step.__doc__
    step_with_hooks.__name__ = "step"
    return step_with_hooks


# The base class is not its own subclass, so its step is wrapped here.
Optimizer.step = _with_hooks(Optimizer.step)


def _fit(value: Any, param: Tensor, name: Union[str, None] = None) -> Any:
    """A copy of saved state on the parameter's device and in its dtype; a step count stays as it
    is."""
    if isinstance(value, Tensor):
        if name == "step":
            return value.detach().clone()
        if param.dtype.is_floating_point:
            return value.detach().to(device=param.device, dtype=param.dtype).clone()
        return value.detach().to(device=param.device).clone()
    if isinstance(value, dict):
        return {key: _fit(item, param, key) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_fit(item, param) for item in value)
    return value

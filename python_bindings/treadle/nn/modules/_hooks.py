"""Hooks around a Module's call: before forward, after forward, and around its backward.

For backward hooks the inputs and outputs pass through two gates, identity functions of autograd:
the gate behind the module sees the gradients of its outputs first, the gate before it sees those of
its inputs last.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import Any, Callable, Optional

from treadle import _C, autograd
from treadle._C import Tensor
from treadle.utils import hooks

# ---- hooks of all modules ----------------------------------------------------------------------

_global_forward_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_forward_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_forward_hooks_with_kwargs: OrderedDict[int, bool] = OrderedDict()
_global_forward_hooks_always_called: OrderedDict[int, bool] = OrderedDict()
_global_backward_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_backward_hooks: OrderedDict[int, Callable] = OrderedDict()
# The numbers of all of the above: empty in nearly every program, and looked at by every call.
_global_calls: OrderedDict[int, bool] = OrderedDict()
_global_parameter_registration_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_buffer_registration_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_module_registration_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_registrations = {
    "parameter": _global_parameter_registration_hooks,
    "buffer": _global_buffer_registration_hooks,
    "module": _global_module_registration_hooks,
}
_global_is_full_backward_hook = True  # there are no others


def _add_global(holder: OrderedDict, hook: Callable, *flags: OrderedDict) -> hooks.RemovableHandle:
    every = (_global_calls, _global_forward_hooks_with_kwargs, _global_forward_hooks_always_called)
    return hooks.add(holder, hook, (_global_calls, *flags), False, every)


def register_module_forward_pre_hook(hook: Callable) -> hooks.RemovableHandle:
    """`hook(module, args)` runs before the forward of every module, before the module's own."""
    return _add_global(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable, *, with_kwargs: bool = False, always_call: bool = False
) -> hooks.RemovableHandle:
    """`hook(module, args, output)` runs after the forward of every module, before the module's
    own."""
    flags = [_global_forward_hooks_with_kwargs] if with_kwargs else []
    if always_call:
        flags.append(_global_forward_hooks_always_called)
    return _add_global(_global_forward_hooks, hook, *flags)


def register_module_full_backward_pre_hook(hook: Callable) -> hooks.RemovableHandle:
    """`hook(module, grad_output)` runs before the backward of every module."""
    return _add_global(_global_backward_pre_hooks, hook)


# Whether the backward hooks of all modules, if there are any, are full.
_global_is_full = [True]


def _global_kind() -> Optional[bool]:
    return _global_is_full[0] if _global_backward_hooks else None


def one_kind(op: str, is_full: bool, present: Optional[bool]) -> bool:
    """The kind, where hooks of the other kind are not there already: RuntimeError."""
    if present is not None and present != is_full:
        other = "register_full_backward_hook" if present else "register_backward_hook"
        raise RuntimeError(
            f"{op}: cannot use both regular backward hooks and full backward hooks; {other} was "
            "called before"
        )
    return is_full


def register_module_full_backward_hook(hook: Callable) -> hooks.RemovableHandle:
    """`hook(module, grad_input, grad_output)` runs when the gradients of the inputs of any module
    are known. RuntimeError where `register_module_backward_hook` was called."""
    _global_is_full[0] = one_kind("register_module_full_backward_hook", True, _global_kind())
    return _add_global(_global_backward_hooks, hook)


def register_module_backward_hook(hook: Callable) -> hooks.RemovableHandle:
    """The older name of `register_module_full_backward_hook`. RuntimeError where that was
    called."""
    _global_is_full[0] = one_kind("register_module_backward_hook", False, _global_kind())
    return _add_global(_global_backward_hooks, hook)


def _add_registration(kind: str, hook: Callable) -> hooks.RemovableHandle:
    return hooks.add(_global_registrations[kind], hook, (), False)


def register_module_parameter_registration_hook(hook: Callable) -> hooks.RemovableHandle:
    """`hook(module, name, parameter)` runs when any module gets a parameter; what it returns, if
    anything, is taken in its place."""
    return _add_registration("parameter", hook)


def register_module_buffer_registration_hook(hook: Callable) -> hooks.RemovableHandle:
    """`hook(module, name, buffer)` runs when any module gets a buffer; what it returns, if
    anything, is taken in its place."""
    return _add_registration("buffer", hook)


def register_module_module_registration_hook(hook: Callable) -> hooks.RemovableHandle:
    """`hook(module, name, child)` runs when any module gets a child; what it returns, if anything,
    is taken in its place."""
    return _add_registration("module", hook)


def registered(kind: str, module: Any, name: str, value: Any) -> Any:
    """The value that a module is to keep under a name: the given one, or a hook's instead."""
    for hook in list(_global_registrations[kind].values()):
        replaced = hook(module, name, value)
        if replaced is not None:
            value = replaced
    return value


# ---- a call ------------------------------------------------------------------------------------


def call(module: Any, args: tuple, kwargs: dict) -> Any:
    """`module.forward` with its hooks around it."""
    called: set[int] = set()
    pre_hooks = [*_global_forward_pre_hooks.items(), *module._forward_pre_hooks.items()]
    try:
        for key, hook in pre_hooks:
            args, kwargs = _run_pre_hook(module, key, hook, args, kwargs)
        gates = None
        if (
            module._backward_hooks
            or module._backward_pre_hooks
            or _global_backward_hooks
            or _global_backward_pre_hooks
        ):
            gates = _BackwardGates(module)
            args = gates.before(args)
        result = module.forward(*args, **kwargs)
        for key, hook in [*_global_forward_hooks.items(), *module._forward_hooks.items()]:
            called.add(key)
            replaced = _run_forward_hook(module, key, hook, args, kwargs, result)
            if replaced is not None:
                result = replaced
        return gates.after(result) if gates is not None else result
    except Exception:
        # Hooks that asked for it run even when the call fails, and must not hide why it failed.
        always = {*_global_forward_hooks_always_called, *module._forward_hooks_always_called}
        for key, hook in [*_global_forward_hooks.items(), *module._forward_hooks.items()]:
            if key in always and key not in called:
                try:
                    _run_forward_hook(module, key, hook, args, kwargs, None)
                except Exception:
                    pass
        raise


def _run_pre_hook(
    module: Any, key: int, hook: Callable, args: tuple, kwargs: dict
) -> tuple[tuple, dict]:
    if key in module._forward_pre_hooks_with_kwargs:
        replaced = hook(module, args, kwargs)
        if replaced is None:
            return args, kwargs
        if not (isinstance(replaced, tuple) and len(replaced) == 2):
            raise RuntimeError(
                "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got "
                f"{type(replaced).__name__}"
            )
        return replaced
    replaced = hook(module, args)
    if replaced is None:
        return args, kwargs
    return (replaced if isinstance(replaced, tuple) else (replaced,)), kwargs


def _run_forward_hook(
    module: Any, key: int, hook: Callable, args: tuple, kwargs: dict, result: Any
) -> Any:
    if key in module._forward_hooks_with_kwargs or key in _global_forward_hooks_with_kwargs:
        return hook(module, args, kwargs, result)
    return hook(module, args, result)


class _BackwardGates:
    """One call's pair of gates, and the gradients seen at them."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.hooks = [*_global_backward_hooks.values(), *module._backward_hooks.values()]
        self.pre_hooks = [
            *_global_backward_pre_hooks.values(),
            *module._backward_pre_hooks.values(),
        ]
        self.grad_output: Optional[tuple] = None
        self.has_input_gate = False
        self.input_places: list[int] = []
        self.input_count = 0

    def before(self, args: tuple) -> tuple:
        """Pass the tensors among the arguments through the gate before the module."""
        self.input_count = len(args)
        self.input_places = [i for i, value in enumerate(args) if isinstance(value, Tensor)]
        tensors = [args[i] for i in self.input_places]
        if not _C.is_grad_enabled() or not any(tensor.requires_grad for tensor in tensors):
            return args
        self.has_input_gate = True
        passed = list(args)
        for place, tensor in zip(self.input_places, self._gate(self._inputs_done, tensors)):
            passed[place] = tensor
        return tuple(passed)

    def after(self, result: Any) -> Any:
        """Pass the tensors of the result (a tensor, or a tuple or list of some) through the gate
        behind."""
        items = list(result) if isinstance(result, (tuple, list)) else [result]
        places = [i for i, value in enumerate(items) if isinstance(value, Tensor)]
        tensors = [items[i] for i in places]
        if not _C.is_grad_enabled() or not any(tensor.requires_grad for tensor in tensors):
            return result

        # `items` is not for the function: the outputs put there below keep it.
        count = len(items)

        def outputs_known(grads: tuple) -> tuple:
            full: list[Any] = [None] * count
            for place, grad in zip(places, grads):
                full[place] = grad
            full = list(self._outputs_known(tuple(full)))
            return tuple(full[place] for place in places)

        for place, tensor in zip(places, self._gate(outputs_known, tensors)):
            items[place] = tensor
        if not isinstance(result, (tuple, list)):
            return items[0]
        if hasattr(result, "_fields"):
            return type(result)(*items)
        return type(result)(items)

    def _outputs_known(self, grads: tuple) -> tuple:
        for hook in self.pre_hooks:
            replaced = hook(self.module, grads)
            if replaced is not None:
                grads = _as_grads(replaced, len(grads), "backward pre hook", "grad_output")
        self.grad_output = grads
        if not self.has_input_gate:
            # No input needs a gradient: nothing later would run the hooks.
            if self.hooks:
                warnings.warn(
                    "a full backward hook runs when the gradients of the module's outputs are "
                    "known, since no input of the module requires grad",
                    stacklevel=2,
                )
            for hook in self.hooks:
                found = hook(self.module, (None,) * self.input_count, grads)
                nothing = isinstance(found, tuple) and all(grad is None for grad in found)
                if found is not None and not nothing:
                    raise RuntimeError(
                        "backward hook: expected None, as no input of the module requires grad, "
                        "got a new grad_input"
                    )
        return grads

    def _inputs_done(self, grads: tuple) -> tuple:
        if self.grad_output is None:
            # In a second backward, gradients may come to the inputs past the outputs.
            return grads
        full: list[Any] = [None] * self.input_count
        for place, grad in zip(self.input_places, grads):
            full[place] = grad
        current = tuple(full)
        for hook in self.hooks:
            replaced = hook(self.module, current, self.grad_output)
            if replaced is not None:
                current = _as_grads(replaced, self.input_count, "backward hook", "grad_input")
        self.grad_output = None
        return tuple(current[place] for place in self.input_places)

    @staticmethod
    def _gate(on_backward: Callable[[tuple], tuple], tensors: list) -> tuple:
        passed = _gate_function().apply(on_backward, *tensors)
        return passed if isinstance(passed, tuple) else (passed,)


def _as_grads(value: Any, count: int, what: str, name: str) -> tuple:
    grads = value if isinstance(value, tuple) else (value,)
    if len(grads) != count:
        raise RuntimeError(f"{what}: expected {count} gradients in {name}, got {len(grads)}")
    return grads


_GATE: list = []


def _gate_function() -> Any:
    """The identity whose backward tells somebody. Made at first use: few programs register backward
    hooks."""
    if not _GATE:

        class _Gate(autograd.Function):
            @staticmethod
            def forward(ctx: Any, on_backward: Callable, *tensors: Tensor) -> tuple:
                ctx.on_backward = on_backward
                ctx.set_materialize_grads(False)
                passed = tuple(tensor.view(tensor.shape) for tensor in tensors)
                # A tensor that needed no gradient before the gate needs none behind it.
                constant = [new for new, old in zip(passed, tensors) if not old.requires_grad]
                ctx.mark_non_differentiable(*constant)
                return passed

            @staticmethod
            def backward(ctx: Any, *grads: Optional[Tensor]) -> tuple:
                return (None, *ctx.on_backward(grads))

        _GATE.append(_Gate)
    return _GATE[0]

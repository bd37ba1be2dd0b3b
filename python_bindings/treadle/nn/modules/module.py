"""Module: the base of every layer and network. It finds what is assigned to it, and walks the tree
it forms.

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(3, 4)             # a child
            self.scale = nn.Parameter(treadle.ones(4))   # a parameter

        def forward(self, x):
            return self.body(x) * self.scale

Three dictionaries hold what was found (`_parameters`, `_buffers`, `_modules`); everything else is
an ordinary attribute. State dictionaries are in `_state.py`, hooks around a call in `_hooks.py`.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, TypeVar, Union

from treadle import _C, _as_written, _names
from treadle import __future__ as _conversions
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.utils import hooks

from ..parameter import Buffer, Parameter
from . import _hooks
from ._hooks import (  # noqa: F401  for programs that look at the hooks of all modules
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_buffer_registration_hooks,
    _global_calls,
    _global_forward_hooks,
    _global_forward_hooks_always_called,
    _global_forward_hooks_with_kwargs,
    _global_forward_pre_hooks,
    _global_is_full_backward_hook,
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
)
from ._hooks import register_module_backward_hook as register_module_backward_hook
from ._hooks import (
    register_module_buffer_registration_hook as register_module_buffer_registration_hook,
)
from ._hooks import register_module_forward_hook as register_module_forward_hook
from ._hooks import register_module_forward_pre_hook as register_module_forward_pre_hook
from ._hooks import register_module_full_backward_hook as register_module_full_backward_hook
from ._hooks import (
    register_module_full_backward_pre_hook as register_module_full_backward_pre_hook,
)
from ._hooks import (
    register_module_module_registration_hook as register_module_module_registration_hook,
)
from ._hooks import (
    register_module_parameter_registration_hook as register_module_parameter_registration_hook,
)
from ._state import (  # noqa: F401
    _EXTRA_STATE_KEY_SUFFIX,
    StateDictMixin,
    _IncompatibleKeys,
)

# The attributes every Module has besides its own, and how each starts.
_FRESH: dict[str, Callable[[], Any]] = {
    "training": lambda: True,
    "_parameters": dict,
    "_buffers": dict,
    "_non_persistent_buffers_set": set,
    "_modules": dict,
    "_backward_pre_hooks": OrderedDict,
    "_backward_hooks": OrderedDict,
    "_forward_hooks": OrderedDict,
    "_forward_hooks_with_kwargs": OrderedDict,
    "_forward_hooks_always_called": OrderedDict,
    "_forward_pre_hooks": OrderedDict,
    "_forward_pre_hooks_with_kwargs": OrderedDict,
    "_state_dict_hooks": OrderedDict,
    "_state_dict_pre_hooks": OrderedDict,
    "_load_state_dict_pre_hooks": OrderedDict,
    "_load_state_dict_post_hooks": OrderedDict,
}


def _type_name(value: Any) -> str:
    return type(value).__name__


T_destination = TypeVar("T_destination", bound=Dict[str, Any])


class Module(StateDictMixin):
    """Base class of all layers. Subclasses set their parts in `__init__` and compute in
    `forward`."""

    _version = 1
    dump_patches = False
    call_super_init = False
    T_destination = T_destination
    # Types, not their names: programs ask for the hints of an object, which says no names.
    __annotations__ = {
        "_version": int,
        "call_super_init": bool,
        "training": bool,
        "_is_full_backward_hook": Optional[bool],
    }
    # The kind of its backward hooks, if it has any.
    _is_full_backward_hook = None  # type: Optional[bool]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            raise TypeError(
                f"{_type_name(self)}.__init__: expected no arguments for Module.__init__, got "
                f"{len(args)} positional and {sorted(kwargs)}"
            )
        for name, make in _FRESH.items():
            object.__setattr__(self, name, make())
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # ---- calling -----------------------------------------------------------------------------

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The computation. Every subclass writes its own."""
        raise NotImplementedError(
            f'Module [{_type_name(self)}] is missing the required "forward" function'
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (
            self._forward_pre_hooks
            or self._forward_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or _global_calls
        ):
            return _hooks.call(self, args, kwargs)
        return self.forward(*args, **kwargs)

    _call_impl = __call__  # as packages that wrap a call name it

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Take the arguments of treadle.compile(), which checks them; the module runs as it is
        written."""
        _names.package().compile(self.__call__, *args, **kwargs)

    def register_forward_pre_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
    ) -> hooks.RemovableHandle:
        """`hook(module, args)` runs before forward; what it returns, if anything, replaces the
        arguments."""
        flags = (self._forward_pre_hooks_with_kwargs,) if with_kwargs else ()
        return hooks.add(
            self._forward_pre_hooks, hook, flags, prepend, (self._forward_pre_hooks_with_kwargs,)
        )

    def register_forward_hook(
        self,
        hook: Callable,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> hooks.RemovableHandle:
        """`hook(module, args, output)` runs after forward; what it returns, if anything, replaces
        the output."""
        flags = ((self._forward_hooks_with_kwargs,) if with_kwargs else ()) + (
            (self._forward_hooks_always_called,) if always_call else ()
        )
        every = (self._forward_hooks_with_kwargs, self._forward_hooks_always_called)
        return hooks.add(self._forward_hooks, hook, flags, prepend, every)

    def register_full_backward_hook(
        self, hook: Callable, prepend: bool = False
    ) -> hooks.RemovableHandle:
        """`hook(module, grad_input, grad_output)` runs when the gradients of the inputs are known.
        RuntimeError where `register_backward_hook` was called."""
        present = self._is_full_backward_hook if self._backward_hooks else None
        self._is_full_backward_hook = _hooks.one_kind("register_full_backward_hook", True, present)
        return hooks.add(self._backward_hooks, hook, (), prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable, prepend: bool = False
    ) -> hooks.RemovableHandle:
        """`hook(module, grad_output)` runs before the module's own backward."""
        return hooks.add(self._backward_pre_hooks, hook, (), prepend)

    def register_backward_hook(self, hook: Callable) -> hooks.RemovableHandle:
        """The older name of `register_full_backward_hook`. RuntimeError where that was called."""
        present = self._is_full_backward_hook if self._backward_hooks else None
        self._is_full_backward_hook = _hooks.one_kind("register_backward_hook", False, present)
        return hooks.add(self._backward_hooks, hook, (), False)

    # ---- what belongs to the module ----------------------------------------------------------

    def _check_name(self, kind: str, name: str, holder: Mapping) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_type_name(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in holder:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Optional[Parameter]) -> None:
        """Add a parameter, or None for one that is known to be absent."""
        self._check_name("parameter", name, self.__dict__.get("_parameters", {}))
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{_type_name(param)}' object to parameter '{name}' (nn.Parameter "
                "or None required)"
            )
        if param is not None and not param.is_leaf:
            raise ValueError(
                f"cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                "created explicitly: keep a Parameter and compute the value from it in forward()"
            )
        self._parameters[name] = _hooks.registered("parameter", self, name, param)

    def register_buffer(self, name: str, tensor: Optional[Tensor], persistent: bool = True) -> None:
        """Add state that moves with the module and (if persistent) is saved with it, but is not
        trained."""
        self._check_name("buffer", name, self.__dict__.get("_buffers", {}))
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_type_name(tensor)}' object to buffer '{name}' (Tensor or None "
                "required)"
            )
        self._buffers[name] = _hooks.registered("buffer", self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Optional["Module"]) -> None:
        """Add a child. It is reachable as an attribute of that name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_type_name(module)} is not a Module subclass")
        self._check_name("module", name, self.__dict__.get("_modules", {}))
        self._modules[name] = _hooks.registered("module", self, name, module)

    register_module = add_module

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        parameters = own.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, keep="_parameters")
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_type_name(value)}' as parameter '{name}' (nn.Parameter or "
                    "None expected)"
                )
            parameters[name] = None
        elif isinstance(value, Module):
            if own.get("_modules") is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, keep="_modules")
            self._modules[name] = _hooks.registered("module", self, name, value)
        elif name in own.get("_modules", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_type_name(value)}' as child module '{name}' (nn.Module or "
                    "None expected)"
                )
            own["_modules"][name] = None
        elif isinstance(value, Buffer) or name in own.get("_buffers", ()):
            if own.get("_buffers") is None:
                raise AttributeError("cannot assign buffer before Module.__init__() call")
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{_type_name(value)}' as buffer '{name}' (Tensor, nn.Buffer or "
                    "None expected)"
                )
            if isinstance(value, Buffer):
                self._forget(name, keep="_buffers")
                self.register_buffer(name, value, value.persistent)
            else:
                own["_buffers"][name] = _hooks.registered("buffer", self, name, value)
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name: str, keep: str) -> None:
        """A name belongs to one holder only: drop it from all the others before it is given
        anew."""
        for holder in (self.__dict__, self._parameters, self._buffers, self._modules):
            if holder is not self.__dict__[keep] and name in holder:
                del holder[name]
        self._non_persistent_buffers_set.discard(name)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for holder in ("_parameters", "_buffers", "_modules"):
            found = own.get(holder)
            if found is not None and name in found:
                return found[name]
        missing = _as_written.missing_of(self, name)
        raise AttributeError(f"'{_type_name(self)}' object has no attribute '{name}'{missing}")

    def __delattr__(self, name: str) -> None:
        for holder in (self._parameters, self._buffers, self._modules):
            if name in holder:
                del holder[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*super().__dir__(), *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[:1].isdigit())

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        for name, make in _FRESH.items():
            if name not in self.__dict__:
                object.__setattr__(self, name, make())

    def __getstate__(self) -> dict:
        return self.__dict__.copy()

    # ---- walking the tree --------------------------------------------------------------------

    def named_modules(
        self, memo: Optional[set] = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, "Module"]]:
        """This module and everything below it, each once, with the dotted path to it."""
        if memo is None:
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, child in self._modules.items():
            if child is not None:
                yield from child.named_modules(
                    memo, f"{prefix}.{name}" if prefix else name, remove_duplicate
                )

    def modules(self, remove_duplicate: bool = True) -> Iterator["Module"]:
        """This module and everything below it, each once; or as often as it is reached."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        """The direct children, each once, with their names."""
        seen = set()
        for name, child in self._modules.items():
            if child is not None and child not in seen:
                seen.add(child)
                yield name, child

    def children(self) -> Iterator["Module"]:
        """The direct children, each once."""
        for _, child in self.named_children():
            yield child

    def _named_members(
        self, members: Callable, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Tensor]]:
        seen = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for path, module in modules:
            for name, value in members(module).items():
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield (f"{path}.{name}" if path else name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters, each once, with the dotted path to each."""
        members: Iterator[tuple[str, Any]] = self._named_members(
            lambda module: module._parameters, prefix, recurse, remove_duplicate
        )
        yield from members

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers, each once, with the dotted path to each."""
        yield from self._named_members(
            lambda module: module._buffers, prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> "Module":
        """The module at a dotted path; "" is this one."""
        module = self
        for part in target.split(".") if target else ():
            if part not in module._modules and not hasattr(module, part):
                raise AttributeError(f"{_type_name(module)} has no attribute `{part}`")
            module = getattr(module, part)
            if not isinstance(module, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: "Module", strict: bool = False) -> None:
        """Put a module at a dotted path. With `strict` one must be there already. ValueError for an
        empty path or what is no module, AttributeError where something else is there."""
        path, _, name = target.rpartition(".")
        if not name or not isinstance(module, Module):
            what = f"a {type(module).__name__}" if name else "an empty path"
            raise ValueError(f"set_submodule: expected a path and a module, got {what}")
        owner = self.get_submodule(path)
        there = getattr(owner, name, None)
        if there is None and strict:
            raise AttributeError(f"{_type_name(owner)} has no attribute `{name}`")
        if there is not None and not isinstance(there, Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(owner, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module._parameters:
            raise AttributeError(f"{_type_name(module)} has no parameter `{name}`")
        return module._parameters[name]

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module._buffers:
            raise AttributeError(f"{_type_name(module)} has no buffer `{name}`")
        return module._buffers[name]

    # ---- changing everything below -----------------------------------------------------------

    def apply(self, fn: Callable[["Module"], Any]) -> "Module":
        """Call `fn` on every module below and on this one, children first."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "Module":
        """Replace the data of every parameter and gradient, and every buffer, by `fn` of it."""
        if recurse:
            for child in self.children():
                child._apply(fn)
        with no_grad():
            for name, parameter in self._parameters.items():
                if parameter is None:
                    continue
                grad = parameter.grad
                if _conversions.overwrites():
                    converted = fn(parameter.data)
                    parameter = Parameter(converted, parameter.requires_grad)
                    self._parameters[name] = parameter
                else:
                    parameter.grad = None
                    parameter.data = fn(parameter.data)
                if grad is not None:
                    requires_grad = grad.requires_grad
                    parameter.grad = fn(grad.detach()).requires_grad_(requires_grad)
            for name, buffer in self._buffers.items():
                if hasattr(buffer, "materialize"):  # still without a shape, as lazy layers have it
                    buffer.data = fn(buffer.data)
                elif buffer is not None:
                    self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> "Module":
        """Move to a device and, for floating-point parameters and buffers, change the dtype; in
        place.

        Called as `to(device, dtype, non_blocking)`, `to(dtype)` or `to(tensor)`. `memory_format`
        is how parameters and buffers of four dimensions (channels_last_3d: five) are to lie in
        memory.
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"Module.to: expected a floating-point or complex dtype, got {dtype}")

        def convert(tensor: Tensor) -> Tensor:
            changes = tensor.dtype.is_floating_point or tensor.dtype.is_complex
            wanted = dtype if dtype is not None and changes else tensor.dtype
            where = tensor.device if device is None else device
            if tensor.dim() not in _RANKS.get(memory_format, ()):
                return tensor.to(device=where, dtype=wanted, non_blocking=non_blocking)
            return tensor.to(
                device=where,
                dtype=wanted,
                non_blocking=non_blocking,
                memory_format=memory_format,
            )

        return self._apply(convert)

    def _to_dtype(self, dtype: _C.dtype) -> "Module":
        return self._apply(
            lambda tensor: tensor.to(dtype) if tensor.dtype.is_floating_point else tensor
        )

    def float(self) -> "Module":
        """Floating-point parameters and buffers become float32."""
        return self._to_dtype(_C.float32)

    def double(self) -> "Module":
        """Floating-point parameters and buffers become float64."""
        return self._to_dtype(_C.float64)

    def half(self) -> "Module":
        """Floating-point parameters and buffers become float16."""
        return self._to_dtype(_C.float16)

    def bfloat16(self) -> "Module":
        """Floating-point parameters and buffers become bfloat16."""
        return self._to_dtype(_C.bfloat16)

    def type(self, dst_type: _C.dtype) -> "Module":
        """All parameters and buffers become `dst_type`."""
        return self._apply(lambda tensor: tensor.to(dst_type))

    def cpu(self) -> "Module":
        """Move to the CPU."""
        return self._apply(lambda tensor: tensor.to("cpu"))

    def cuda(self, device: Union[int, str, None] = None) -> "Module":
        """Move to a CUDA device."""
        where = (
            "cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device
        )
        return self._apply(lambda tensor: tensor.to(where))

    def xpu(self, device: Union[int, str, None] = None) -> "Module":
        """Move to an XPU device."""
        return self._apply(lambda tensor: tensor.to("xpu" if device is None else device))

    def ipu(self, device: Union[int, str, None] = None) -> "Module":
        """Move to an IPU device."""
        return self._apply(lambda tensor: tensor.to("ipu" if device is None else device))

    def mtia(self, device: Union[int, str, None] = None) -> "Module":
        """Move to an MTIA device."""
        return self._apply(lambda tensor: tensor.to("mtia" if device is None else device))

    def to_empty(self, *, device: Any, recurse: bool = True) -> "Module":
        """Give every parameter and buffer new memory on `device`, without its values."""
        return self._apply(lambda tensor: _C.empty_like(tensor, device=device), recurse)

    def train(self, mode: bool = True) -> "Module":
        """Training mode on or off, here and below: it matters to Dropout, BatchNorm and the
        like."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self) -> "Module":
        """Evaluation mode: `train(False)`."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> "Module":
        """Whether autograd records operations on the parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
                continue
            # In place: whoever holds the gradient is to see the zeros.
            if parameter.grad.grad_fn is not None:
                parameter.grad.detach_()
            else:
                parameter.grad.requires_grad_(False)
            parameter.grad.zero_()

    def share_memory(self) -> "Module":
        """Move all parameters and buffers to shared memory."""
        for tensor in (*self.parameters(), *self.buffers()):
            tensor.share_memory_()
        return self

    # ---- showing -----------------------------------------------------------------------------

    def _get_name(self) -> str:
        return _type_name(self)

    def extra_repr(self) -> str:
        """The settings of a subclass as text, between the parentheses of its repr."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [f"({name}): {_indent(repr(child))}" for name, child in self._modules.items()]
        if not child_lines and len(extra_lines) <= 1:
            return f"{self._get_name()}({extra})"
        return "\n  ".join([f"{self._get_name()}(", *extra_lines, *child_lines]) + "\n)"


def _indent(text: str) -> str:
    """`text` with two spaces before every line but the first."""
    return text.replace("\n", "\n  ")


# The dimensions of the tensors that a memory format is for.
_RANKS = {
    _C.channels_last: (4,),
    _C.channels_last_3d: (5,),
    _C.contiguous_format: (4, 5),
    _C.preserve_format: (4, 5),
}


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Optional[_C.dtype], bool, Any]:
    """The device, dtype, non_blocking and memory format meant by the arguments of `Module.to`; None
    where one is to stay."""
    device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
    non_blocking = bool(kwargs.pop("non_blocking", False))
    memory_format = kwargs.pop("memory_format", None)
    if "tensor" in kwargs:
        args = (kwargs.pop("tensor"), *args)
    if kwargs:
        raise TypeError(f"Module.to: got an unexpected keyword argument '{next(iter(kwargs))}'")
    for value in args:
        if isinstance(value, Tensor):
            device, dtype = value.device, value.dtype
        elif isinstance(value, _C.dtype):
            dtype = value
        elif isinstance(value, (str, int, _C.device)) and not isinstance(value, bool):
            device = value
        elif isinstance(value, bool):
            non_blocking = value
        elif value is not None:
            raise TypeError(
                f"Module.to: expected a device, a dtype or a Tensor, got {_type_name(value)}"
            )
    if memory_format is not None and not isinstance(memory_format, _C.memory_format):
        raise TypeError(f"Module.to: expected a memory format, got {_type_name(memory_format)}")
    return device, dtype, non_blocking, memory_format


if _C._backends():
    from treadle._device.install import install_on_modules

    install_on_modules(Module)

"""Parametrisations: a parameter that is computed, whenever it is read, from others that are
trained.

    class Symmetric(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).transpose(-1, -2)

    layer = nn.Linear(3, 3)
    register_parametrization(layer, "weight", Symmetric())
    layer.weight                                  # symmetric
    layer.parametrizations.weight.original        # the parameter

The module's class becomes one of its own whose property computes the tensor.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from contextlib import contextmanager
from typing import Any, Iterator, Optional, Sequence, Union

from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad

from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_cache_depth = 0
_cache: dict[tuple[int, str], Any] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Inside, each parametrised tensor is computed once."""
    global _cache_depth
    _cache_depth += 1
    try:
        yield
    finally:
        _cache_depth -= 1
        if not _cache_depth:
            _cache.clear()


def _register(module: Module, name: str, original: Tensor) -> None:
    if isinstance(original, Parameter):
        module.register_parameter(name, original)
    else:
        module.register_buffer(name, original)


def _fit(name: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise ValueError(f"{name} must return a tensor, got {type(value).__name__}")
    return value


def _check_inverse(parametrization: Any, value: Tensor) -> None:
    """ValueError where a later parametrisation has an inverse that gives something else than a
    tensor of the shape and dtype of `value`."""
    with no_grad():
        try:
            inverse = parametrization.right_inverse(value)
        except NotImplementedError:
            return
    inverse = _fit("parametrization.right_inverse", inverse)
    for what in ("dtype", "shape"):
        expected, got = getattr(value, what), getattr(inverse, what)
        if expected != got:
            raise ValueError(
                f"parametrization.right_inverse outputs must have the same {what} as the tensor: "
                f"expected {expected}, got {got}"
            )


class ParametrizationList(ModuleList):
    """The parametrisations of one tensor, applied in order, and the tensors they start from:
    `original`, or `original0`, `original1`, ... where the first one takes several."""

    def __init__(
        self, modules: Sequence[Module], original: Union[Tensor, Parameter], unsafe: bool = False
    ) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        before_shape, before_dtype = tuple(original.shape), original.dtype
        with no_grad():
            new: Any = original
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        pass
        several = not isinstance(new, Tensor)
        if several and not isinstance(new, Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = not several
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if new.dtype != original.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            if isinstance(original, Parameter):
                new = Parameter(new.detach(), original.requires_grad)
            _register(self, "original", new)
        else:
            for i, part in enumerate(new):
                if isinstance(original, Parameter):
                    part = Parameter(_fit("right_inverse", part).detach(), original.requires_grad)
                _register(self, f"original{i}", part)
        if not unsafe:
            result = _fit("A parametrization", self())
            if result.dtype != before_dtype or tuple(result.shape) != before_shape:
                raise ValueError(
                    "Registering a parametrization may not change the shape or dtype of the "
                    "tensor, "
                    f"unless the `unsafe` flag is enabled.\nunparametrized: {before_dtype} "
                    f"{before_shape}\nparametrized: {result.dtype} {tuple(result.shape)}"
                )

    def _originals(self) -> list[Tensor]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Change the original tensors so that the parametrised one becomes `value`."""
        with no_grad():
            new: Any = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                new = module.right_inverse(new)
            parts = [new] if self.is_tensor else list(new)
            if len(parts) != self.ntensors:
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors of length "
                    f"{self.ntensors}. Got a sequence of length {len(parts)}"
                )
            for original, part in zip(self._originals(), parts):
                if tuple(part.shape) != tuple(original.shape):
                    original.set_(part.to(original.dtype).clone())
                else:
                    original.copy_(part)

    def forward(self) -> Tensor:
        modules = list(self)
        value = modules[0](*self._originals())
        for module in modules[1:]:
            value = module(value)
        return value


def _inject_class(module: Module) -> None:
    """Give the module a class of its own."""
    base = type(module)

    def deepcopy(self: Module, memo: dict) -> Module:
        if id(self) in memo:
            return memo[id(self)]
        made = self.__new__(type(self))
        memo[id(self)] = made
        made.__dict__ = copy.deepcopy(self.__dict__, memo)
        return made

    def refuse(self: Module) -> None:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict()."
        )

    members: dict[str, Any] = {"__getstate__": refuse}
    if "__deepcopy__" not in base.__dict__:
        members["__deepcopy__"] = deepcopy
    module.__class__ = type("Parametrized" + base.__name__, (base,), members)


def _inject_property(module: Module, name: str) -> None:
    cls = type(module)

    def read(self: Module) -> Tensor:
        if _cache_depth:
            key = (id(self), name)
            if key not in _cache:
                _cache[key] = self.parametrizations[name]()
            return _cache[key]
        return self.parametrizations[name]()

    def write(self: Module, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(cls, name, property(read, write))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute the parameter or buffer `tensor_name` of `module` by `parametrization`, after those
    that it has already."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        parametrizations = module.parametrizations[tensor_name]
        if not unsafe:
            value = getattr(module, tensor_name)
            result = _fit("A parametrization", parametrization(value))
            if result.dtype != value.dtype or tuple(result.shape) != tuple(value.shape):
                raise ValueError(
                    "Registering a parametrization may not change the shape or dtype of the "
                    "tensor, "
                    f"unless the `unsafe` flag is enabled.\nbefore: {value.dtype} "
                    f"{tuple(value.shape)}\nafter: {result.dtype} {tuple(result.shape)}"
                )
        if not unsafe and hasattr(parametrization, "right_inverse"):
            _check_inverse(parametrization, value)
        if hasattr(parametrization, "right_inverse"):
            parametrizations.append(parametrization)
            try:
                parametrizations.right_inverse(
                    value if not unsafe else getattr(module, tensor_name)
                )
            except (NotImplementedError, RuntimeError):
                pass
        else:
            parametrizations.append(parametrization)
        parametrizations.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        holder = module._parameters if tensor_name in module._parameters else module._buffers
        original = holder[tensor_name]
        parametrizations = ParametrizationList([parametrization], original, unsafe=unsafe)
        del holder[tensor_name]
        if not is_parametrized(module):
            _inject_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: Optional[str] = None) -> bool:
    """Whether the module, or one tensor of it, is parametrised."""
    parametrizations = getattr(module, "parametrizations", None)
    if parametrizations is None or not isinstance(parametrizations, ModuleDict):
        return False
    if tensor_name is None:
        return len(parametrizations) > 0
    return tensor_name in parametrizations


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Put one tensor in the place of the parametrised one: its value now, or the original."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with no_grad():
                value = getattr(module, tensor_name)
                if tuple(value.shape) == tuple(original.shape):
                    original.copy_(value)
                else:
                    original.set_(value.clone())
    else:
        if not leave_parametrized:
            raise ValueError(
                "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
                "parametrized in terms of a sequence of tensors."
            )
        value = getattr(module, tensor_name).detach()
        trained = any(isinstance(t, Parameter) for t in parametrizations._originals())
        original = Parameter(value) if trained else value
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if len(module.parametrizations) == 0:
        del module._modules["parametrizations"]
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of the module without its parametrisations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: Optional[str] = None
) -> Module:
    """Give `to_module` the parametrisations of `from_module`, with their tensors."""
    if not is_parametrized(from_module):
        return to_module
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        source = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        with no_grad():
            for mine, theirs in zip(target._originals(), source._originals()):
                mine.copy_(theirs)
    return to_module

"""Policies: which modules inside of a model FullyShardedDataParallel wraps.

FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({Block}))
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import abc
import contextlib
from typing import Any, Callable, Dict, Iterable, Iterator, Optional, Sequence, Set, Tuple, Type

from treadle import nn
from treadle.nn import Module


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Wrap every module."""
    return True


class _Policy(abc.ABC):
    """A policy that looks at the whole model at once."""

    @abc.abstractmethod
    def _run_policy(
        self, root_module: Module, ignored_modules: Set[Module], root_kwargs: Dict[str, Any]
    ) -> Dict[Module, Dict[str, Any]]:
        """The modules to wrap, each with the arguments of its wrapper."""


def _is_one_of(
    module: Module, recurse: bool, nonwrapped_numel: int, module_classes: Iterable[Type[Module]]
) -> bool:
    """Wrap the modules of some classes; look into all."""
    return recurse or isinstance(module, tuple(module_classes))


_module_wrap_policy = _is_one_of


class ModuleWrapPolicy(_Policy):
    """Wraps the modules of some classes."""

    def __init__(self, module_classes: Iterable[Type[Module]]) -> None:
        self._module_classes = set(module_classes)

    def _run_policy(
        self, root_module: Module, ignored_modules: Set[Module], root_kwargs: Dict[str, Any]
    ) -> Dict[Module, Dict[str, Any]]:
        return {
            module: dict(root_kwargs)
            for module in root_module.modules()
            if module not in ignored_modules and isinstance(module, tuple(self._module_classes))
        }

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return _is_one_of(module, recurse, -1, self._module_classes)

    def __repr__(self) -> str:
        return super().__repr__() + f"({self._module_classes})"


class CustomPolicy(_Policy):
    """Wraps the modules for which a function returns True, or arguments of their wrapper in place
    of those of the root."""

    def __init__(self, lambda_fn: Callable[[Module], Any]) -> None:
        self._lambda_fn = lambda_fn

    def _run_policy(
        self, root_module: Module, ignored_modules: Set[Module], root_kwargs: Dict[str, Any]
    ) -> Dict[Module, Dict[str, Any]]:
        found = {}
        for module in root_module.modules():
            if module in ignored_modules:
                continue
            answer = self._lambda_fn(module)
            if not isinstance(answer, (dict, bool)):
                raise ValueError(
                    "CustomPolicy: expected a bool or a dictionary of arguments from lambda_fn, "
                    f"got {answer!r}"
                )
            if answer:
                found[module] = {**root_kwargs, **(answer if isinstance(answer, dict) else {})}
        return found


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable
) -> bool:
    """Wrap the modules for which a function returns True; look into all."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    transformer_layer_cls: Set[Type[Module]],
) -> bool:
    """Wrap the modules of some classes: the blocks of a transformer."""
    return _is_one_of(module, recurse, nonwrapped_numel, transformer_layer_cls)


def _wrap_module_cls_individually(
    module: Module, module_classes: Sequence[type], recurse: bool, *args: Any, **kwargs: Any
) -> bool:
    return _is_one_of(module, recurse, -1, module_classes)


def _or_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, policies: Iterable[Callable]
) -> bool:
    """Wrap the modules that any of some policies wraps."""
    return any(
        policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel)
        for policy in policies
    )


def size_based_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = int(1e8),
    force_leaf_modules: Optional[Set[Type[Module]]] = None,
    exclude_wrap_modules: Optional[Set[Type[Module]]] = None,
) -> bool:
    """Wrap modules with at least so many elements in parameters that no module below has taken. Not
    those of `exclude_wrap_modules` (lists), and nothing in those of `force_leaf_modules`
    (MultiheadAttention)."""
    defaults: Any = size_based_auto_wrap_policy
    leaves = defaults.FORCE_LEAF_MODULES if force_leaf_modules is None else force_leaf_modules
    excluded = defaults.EXCLUDE_WRAP_MODULES
    if exclude_wrap_modules is not None:
        excluded = exclude_wrap_modules
    is_large = nonwrapped_numel >= min_num_params
    return is_large and not isinstance(module, tuple(leaves if recurse else excluded))


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {  # type: ignore[attr-defined]
    nn.ModuleList,
    nn.ModuleDict,
}
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {nn.MultiheadAttention}  # type: ignore[attr-defined]


class _Context:
    """The wrapper and its arguments inside of enable_wrap()."""

    wrapper_cls: Optional[Callable] = None
    kwargs: Dict[str, Any] = {}


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """A block in which wrap() wraps modules, with these arguments."""
    if _Context.wrapper_cls is not None:
        raise NotImplementedError(
            "You are already within an autowrap context and we currently do not supported nested "
            "autowrap."
        )
    _Context.wrapper_cls, _Context.kwargs = wrapper_cls, wrapper_kwargs
    try:
        yield
    finally:
        _Context.wrapper_cls, _Context.kwargs = None, {}


def wrap(module: Module, **wrap_overrides: Any) -> Module:
    """The module wrapped, inside of enable_wrap(), with some arguments in place of those given
    there; elsewhere the module as it is."""
    if _Context.wrapper_cls is None:
        return module
    return _wrap(module, _Context.wrapper_cls, **{**_Context.kwargs, **wrap_overrides})


def _wrap(module: Module, wrapper_cls: Callable, **kwargs: Any) -> Module:
    return wrapper_cls(module, **{**kwargs, **getattr(module, "_wrap_overrides", {})})


def _recursive_wrap(
    module: Module,
    auto_wrap_policy: Callable,
    wrapper_cls: Any,
    ignored_modules: Set[Module],
    ignored_params: Set[Any],
    only_wrap_children: bool = False,
    **kwargs: Any,
) -> Tuple[Module, int]:
    """Wrap what a policy says, from the inside out. Returns the module, wrapped or not, and how
    many elements are in wrapped modules."""
    numel = sum(p.numel() for p in module.parameters() if p not in ignored_params)
    if not auto_wrap_policy(module=module, recurse=True, nonwrapped_numel=numel):
        return module, 0
    taken = 0
    for name, child in list(module.named_children()):
        if child in ignored_modules:
            continue
        wrapped, count = _recursive_wrap(
            child, auto_wrap_policy, wrapper_cls, ignored_modules, ignored_params, **kwargs
        )
        setattr(module, name, wrapped)
        taken += count
    wants = not only_wrap_children and auto_wrap_policy(
        module=module, recurse=False, nonwrapped_numel=numel - taken
    )
    return (_wrap(module, wrapper_cls, **kwargs), numel) if wants else (module, taken)


def _wrap_targets(
    module: Module, targets: Dict[Module, Dict[str, Any]], wrapper_cls: Callable
) -> None:
    """Wrap the children of a module that are keys of `targets`, with the arguments there, from the
    inside out; a module in several places once."""
    done: Dict[int, Module] = {}

    def visit(parent: Module) -> None:
        for name, child in list(parent._modules.items()):
            if child is None:
                continue
            if id(child) not in done:
                done[id(child)] = child
                visit(child)
                if child in targets:
                    done[id(child)] = _wrap(child, wrapper_cls, **targets[child])
            setattr(parent, name, done[id(child)])

    visit(module)


__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "enable_wrap",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
    "wrap",
]

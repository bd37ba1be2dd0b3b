"""Pruning: a layer's parameter becomes the product of what it was and a mask of zeros and ones.

    prune.l1_unstructured(layer, "weight", amount=0.3)    # the smallest 30% are zero
    layer.weight_orig, layer.weight_mask                   # the parameter and the buffer
    prune.remove(layer, "weight")                          # keeps the zeros, ends the mask

`amount` is a part from 0.0 to 1.0 or a number of entries (or channels). A parameter that is pruned
again gets the product of both masks: of a PruningContainer.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from typing import Any, Dict, Iterable, List, Optional, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.nn.modules.module import Module


def _check_amount(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"prune: expected amount to be a number, got {type(amount).__name__}")
    is_count = isinstance(amount, numbers.Integral)
    number: Any = amount
    if number < 0 or (not is_count and number > 1.0):
        raise ValueError(
            f"prune: expected amount to be a count or a part from 0.0 to 1.0, got {amount}"
        )


def _number_of(amount: Any, size: int) -> int:
    if isinstance(amount, numbers.Integral):
        if int(amount) > size:
            raise ValueError(f"prune: expected an amount of at most {size}, got {amount}")
        return int(amount)
    return round(amount * size)


def _channel_dim(what: str, t: Tensor, dim: int) -> int:
    if t.dim() < 2:
        raise ValueError(f"{what}: expected a tensor of at least two dimensions, got {t.dim()}")
    if not -t.dim() <= dim < t.dim():
        raise IndexError(f"{what}: expected a dimension of {t.dim()}, got {dim}")
    return dim % t.dim()


def _channels_mask(t: Tensor, default_mask: Tensor, dim: int, out: Tensor) -> Tensor:
    """The mask without the channels `out` along a dimension."""
    return default_mask.clone().index_fill_(dim, out, 0)


class BasePruningMethod(ABC):
    """A way to choose what becomes zero: `compute_mask(t, default_mask)` gives the mask.

    It is a hook before the layer's forward pass, which makes the pruned parameter anew.
    PRUNING_TYPE says which entries a container offers it when there are masks already:
    "unstructured" those not yet masked, "structured" the channels not yet masked whole, "global" as
    "unstructured".
    """

    _tensor_name: str
    PRUNING_TYPE = "global"

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for a tensor, where `default_mask` is the one that there is."""

    def apply_mask(self, module: Module) -> Tensor:
        """The product of a layer's parameter and its mask."""
        name = getattr(self, "_tensor_name", None)
        if name is None:
            raise AssertionError("prune: expected a method that was applied to a module")
        mask = getattr(module, name + "_mask")
        original = getattr(module, name + "_orig")
        return mask.to(original.dtype) * original

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> "BasePruningMethod":
        """Prune a layer's parameter; gives the method that stays with the layer."""
        before = [
            hook
            for hook in module._forward_pre_hooks.values()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
        ]
        if len(before) > 1:
            raise AssertionError(f"prune: expected one method for {name}, got {len(before)}")
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        parameter = getattr(module, name)
        if importance_scores is None:
            importance_scores = parameter
        elif importance_scores.shape != parameter.shape:
            raise AssertionError(
                f"prune: expected importance_scores of shape {tuple(parameter.shape)}, got "
                f"{tuple(importance_scores.shape)}"
            )
        if before:
            if isinstance(before[0], PruningContainer):
                before[0].add_pruning_method(method)
                method = before[0]
            else:
                method = PruningContainer(before[0], method)
            for key, hook in list(module._forward_pre_hooks.items()):
                if hook is before[0]:
                    del module._forward_pre_hooks[key]
            old_mask = getattr(module, name + "_mask")
        else:
            del module._parameters[name]
            module.register_parameter(name + "_orig", parameter)
            old_mask = _C.ones_like(parameter)
        try:
            mask = method.compute_mask(importance_scores, default_mask=old_mask)
        except Exception:
            if not before:
                del module._parameters[name + "_orig"]
                module.register_parameter(name, parameter)
            raise
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self, t: Tensor, default_mask: Optional[Tensor] = None, importance_scores: Any = None
    ) -> Tensor:
        """The tensor with zeros where the mask of `importance_scores` (by default itself) is."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError(
                f"prune: expected importance_scores of shape {tuple(t.shape)}, got "
                f"{tuple(scores.shape)}"
            )
        mask = _C.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module: Module) -> None:
        """Make the pruned values the parameter, and take away the mask."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = weight.data
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods for one parameter, each for what those before it left."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: Tuple[BasePruningMethod, ...] = ()
        methods: Iterable[Any] = args[0] if len(args) == 1 and _is_many(args[0]) else args
        for number, method in enumerate(methods):
            if number == 0:
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add one for the same parameter; None changes nothing."""
        if method is None:
            return
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"prune: expected a method of pruning, got {type(method).__name__}")
        if method._tensor_name != self._tensor_name:
            raise ValueError(
                f"prune: expected a method for {self._tensor_name}, got one for "
                f"{method._tensor_name}"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask with what the last method takes from what was left."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype).clone()
        if method.PRUNING_TYPE == "structured":
            dim = method.dim % t.dim()  # type: ignore[attr-defined]
            others = [d for d in range(t.dim()) if d != dim]
            chosen: Any = [slice(None)] * t.dim()
            chosen[dim] = mask.sum(dim=others) != 0
            chosen = tuple(chosen)
        elif method.PRUNING_TYPE == "global":
            chosen = tuple(slice(None) for _ in range(t.dim()))
        elif method.PRUNING_TYPE == "unstructured":
            chosen = mask == 1
        else:
            raise ValueError(
                f"prune: expected PRUNING_TYPE to be global, structured or unstructured, got "
                f"{method.PRUNING_TYPE}"
            )
        mask[chosen] = method.compute_mask(t[chosen], default_mask=mask[chosen])
        return mask


def _is_many(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, BasePruningMethod)


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the parameter one with a mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask that there is."""
        return default_mask


class _Amount(BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        _check_amount(amount)
        self.amount = amount


class RandomUnstructured(_Amount):
    """Entries by chance."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without as many entries more."""
        count = _number_of(self.amount, t.numel())
        mask = default_mask.clone(memory_format=_C.contiguous_format)
        if count:
            out = _C.rand_like(t).flatten().topk(count).indices
            mask.view(-1)[out] = 0
        return mask


class L1Unstructured(_Amount):
    """The entries with the smallest absolute values."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without as many entries more."""
        count = _number_of(self.amount, t.numel())
        mask = default_mask.clone(memory_format=_C.contiguous_format)
        if count:
            out = t.abs().flatten().topk(count, largest=False).indices
            mask.view(-1)[out] = 0
        return mask


class RandomStructured(BasePruningMethod):
    """Channels along a dimension, by chance."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount, self.dim = amount, dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without as many channels more."""
        dim = _channel_dim("RandomStructured", t, self.dim)
        count = _number_of(self.amount, t.shape[dim])
        out = _C.rand(t.shape[dim], device=t.device).topk(count).indices
        return _channels_mask(t, default_mask, dim, out)


class LnStructured(BasePruningMethod):
    """The channels along a dimension that have the smallest n-norm."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount, self.n, self.dim = amount, n, dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without as many channels more."""
        dim = _channel_dim("LnStructured", t, self.dim)
        count = _number_of(self.amount, t.shape[dim])
        others = [d for d in range(t.dim()) if d != dim]
        out = t.norm(p=self.n, dim=others).topk(count, largest=False).indices
        return _channels_mask(t, default_mask, dim, out)


class CustomFromMask(BasePruningMethod):
    """Pruning by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The product of both masks."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"prune: expected a mask of shape {tuple(default_mask.shape)}, got "
                f"{tuple(self.mask.shape)}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def identity(module: Module, name: str) -> Module:
    """Give a parameter a mask of ones."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: Any) -> Module:
    """Prune entries by chance."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: Any, importance_scores: Optional[Tensor] = None
) -> Module:
    """Prune the entries with the smallest absolute values, or scores."""
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: Any, dim: int) -> Module:
    """Prune channels along a dimension, by chance."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module,
    name: str,
    amount: Any,
    n: Any,
    dim: int,
    importance_scores: Optional[Tensor] = None,
) -> Module:
    """Prune the channels along a dimension with the smallest n-norm."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune by a mask."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[Tuple[Module, str]],
    pruning_method: Any,
    importance_scores: Optional[Dict[Tuple[Module, str], Tensor]] = None,
    **kwargs: Any,
) -> None:
    """Prune entries of several parameters, (layer, name) each, as if they were one vector, by a
    class of methods with the arguments `kwargs`. TypeError for one that is not unstructured."""
    pairs: List[Tuple[Module, str]] = list(parameters)
    scores = importance_scores or {}
    if not isinstance(scores, dict):
        raise TypeError(
            f"global_unstructured: expected importance_scores to be a dict, got "
            f"{type(scores).__name__}"
        )
    tensors = [getattr(module, name) for module, name in pairs]
    vector = _C.cat([scores.get(p, t).flatten() for p, t in zip(pairs, tensors)])
    masks = [
        getattr(module, name + "_mask", _C.ones_like(t))
        for (module, name), t in zip(pairs, tensors)
    ]
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    container = PruningContainer()
    container._tensor_name = "temp"
    container.add_pruning_method(method)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f"global_unstructured: expected an unstructured method, got {method.PRUNING_TYPE}"
        )
    whole = container.compute_mask(vector, _C.cat([m.flatten() for m in masks]))
    for (module, name), t, mask in zip(pairs, tensors, whole.split([t.numel() for t in tensors])):
        custom_from_mask(module, name, mask.view_as(t))


def is_pruned(module: Module) -> bool:
    """Whether a module, or one in it, has a pruned parameter."""
    return any(
        isinstance(hook, BasePruningMethod)
        for _, part in module.named_modules()
        for hook in part._forward_pre_hooks.values()
    )


def remove(module: Module, name: str) -> Module:
    """Make the pruned values the parameter. ValueError for one that is not pruned."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
    )


__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]

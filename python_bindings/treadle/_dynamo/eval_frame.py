"""What treadle.compile returns: the module or function itself, in the wrapper that programs know.

The wrapper of a module holds it as `_orig_mod`, so that the keys of its state_dict() are those that
checkpoints of compiled modules have.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Iterable

from treadle import nn


class OptimizedModule(nn.Module):
    """A module that passes everything on to the module `_orig_mod`."""

    _orig_mod: nn.Module

    def __init__(self, mod: nn.Module, dynamo_ctx: Any = None) -> None:
        super().__init__()
        self._modules["_orig_mod"] = mod

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module returns."""
        return self._orig_mod(*args, **kwargs)

    @property
    def training(self) -> bool:  # type: ignore[override]
        """Of the module."""
        return self._orig_mod.training

    @training.setter
    def training(self, value: bool) -> None:
        if "_orig_mod" in self.__dict__.get("_modules", ()):
            self._orig_mod.training = value

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self.__dict__["_modules"]["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        modules = self.__dict__.get("_modules", {})
        if "_orig_mod" in modules and name not in self.__dict__ and name != "training":
            setattr(modules["_orig_mod"], name, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __dir__(self) -> Iterable[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __reduce__(self) -> Any:
        return type(self), (self._orig_mod,)


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls `function`, with its name."""

    @functools.wraps(function)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    compiled._torchdynamo_orig_callable = function  # type: ignore[attr-defined]
    return compiled


def optimized(model: Any) -> Any:
    """A module in its wrapper; a class as it is; a function in a function of its name."""
    if isinstance(model, OptimizedModule):
        return model
    if isinstance(model, nn.Module):
        return OptimizedModule(model)
    return model if isinstance(model, type) else wrapped(model)

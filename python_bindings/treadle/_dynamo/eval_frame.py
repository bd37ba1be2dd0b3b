"""The result of treadle.compile: the module or function in the wrapper that programs know.

The wrapper of a module holds it as `_orig_mod`, so that the keys of its state_dict() are those that
checkpoints of compiled modules have.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
from typing import Any, Callable, Iterable, Optional, Tuple

from treadle import nn


class OptimizedModule(nn.Module):
    """A module that passes everything on to the module `_orig_mod`."""

    _orig_mod: nn.Module

    def __init__(self, mod: nn.Module, dynamo_ctx: Any = None) -> None:
        super().__init__()
        self._modules["_orig_mod"] = mod
        # How it is compiled: (backend, fullgraph), or None where it runs as written.
        self.__dict__["dynamo_ctx"] = dynamo_ctx
        self.__dict__["_captured"] = _captured(mod, dynamo_ctx, mod)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the module."""
        return self.__dict__["_captured"](*args, **kwargs)

    @property
    def training(self) -> bool:
        """The training mode of the module."""
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
        return type(self), (self._orig_mod, self.__dict__["dynamo_ctx"])


def _captured(
    program: Callable[..., Any], how: Optional[Tuple[Any, bool]], root: Optional[nn.Module] = None
) -> Callable[..., Any]:
    """The program, run by what a backend makes of its graph; as it is without a backend."""
    if how is None:
        return program
    from treadle._dynamo._capture import Captured

    backend, fullgraph = how
    return Captured(program, backend, fullgraph, root)


def wrapped(
    function: Callable[..., Any], how: Optional[Tuple[Any, bool]] = None
) -> Callable[..., Any]:
    """A function that calls `function`, with its name."""
    call = _captured(function, how)

    @functools.wraps(function)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    compiled._torchdynamo_orig_callable = function  # type: ignore[attr-defined]
    return compiled


def optimized(model: Any, how: Optional[Tuple[Any, bool]] = None) -> Any:
    """A module in its wrapper; a class as it is; a function in a function of its name. `how` is
    the function that is given the graph, and whether there has to be one graph."""
    if isinstance(model, OptimizedModule):
        return model
    if isinstance(model, nn.Module):
        return OptimizedModule(model, how)
    return model if isinstance(model, type) else wrapped(model, how)

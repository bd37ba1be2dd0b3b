"""dispatch: decorates the implementations of a function, and keeps its dispatcher by name."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import inspect
import sys
from typing import Any, Callable, Dict, Optional

from treadle.fx.experimental.unification.multipledispatch.dispatcher import (
    Dispatcher,
    MethodDispatcher,
)

global_namespace: Dict[str, Dispatcher] = {}


def dispatch(*types: Any, **kwargs: Any) -> Callable[[Callable], Dispatcher]:
    """A decorator that adds a function to the dispatcher of its name, for arguments of these types;
    without types, for those of its annotations. It returns the dispatcher.

    namespace: the dict in which dispatchers are found by name; one for the whole program if not
    given. Functions with `self` are methods, whose dispatcher is of their class."""
    namespace: Dict[str, Any] = kwargs.pop("namespace", global_namespace)
    if kwargs:
        raise TypeError(f"dispatch: expected no keyword but namespace, got {', '.join(kwargs)}")

    def decorate(function: Callable) -> Dispatcher:
        name = function.__name__
        dispatcher: Optional[Any]
        if ismethod(function):
            around = sys._getframe(1).f_locals
            dispatcher = around.get(name)
            if not isinstance(dispatcher, MethodDispatcher):
                dispatcher = MethodDispatcher(name)
        else:
            dispatcher = namespace.get(name)
            if dispatcher is None:
                dispatcher = namespace[name] = Dispatcher(name)
        dispatcher.add(types, function)
        return dispatcher

    return decorate


def ismethod(func: Callable) -> bool:
    """Whether a function has a parameter `self`, as one has that is about to be a method."""
    return "self" in inspect.signature(func).parameters


__all__ = ["dispatch", "ismethod"]

"""Functions whose implementations are chosen by patterns of their arguments.

Example:

    @match(0)
    def factorial(n):
        return 1

    @match(var("n"))
    def factorial(n):
        return n * factorial(n - 1)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Iterator, List, Tuple

from treadle.fx.experimental.unification.core import reify, unify
from treadle.fx.experimental.unification.multipledispatch.utils import _toposort
from treadle.fx.experimental.unification.unification_tools import first, groupby
from treadle.fx.experimental.unification.utils import freeze
from treadle.fx.experimental.unification.variable import isvar


class Dispatcher:
    """A function with an implementation for each of several patterns, which are asked from the most
    special to the most general. A call that no pattern fits raises NotImplementedError."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.funcs: Dict[Any, Callable] = {}
        self.ordering: List[Any] = []

    def add(self, signature: Any, func: Callable) -> None:
        """Let the function answer calls whose arguments fit the pattern."""
        self.funcs[freeze(signature)] = func
        self.ordering = ordering(self.funcs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function, _ = self.resolve(args)
        return function(*args, **kwargs)

    def resolve(self, args: Any) -> Tuple[Callable, Dict[Any, Any]]:
        """The implementation that arguments choose, and the values of its variables."""
        given = freeze(args)
        for signature in self.ordering:
            if len(signature) == len(given):
                found = unify(given, signature)
                if found is not False:
                    return self.funcs[signature], found
        known = ", ".join(map(str, self.ordering)) or "no pattern"
        raise NotImplementedError(f"{self.name}: expected arguments that fit {known}, got {given}")

    def register(self, *signature: Any) -> Callable[[Callable], Dispatcher]:
        """A decorator that adds a function for that pattern, and returns the dispatcher."""

        def decorate(func: Callable) -> Dispatcher:
            self.add(signature, func)
            return self

        return decorate


class VarDispatcher(Dispatcher):
    """A dispatcher that calls implementations with the values of variables, by their tokens.

    >>> d = VarDispatcher("d")
    >>> d.add((1, var("x")), lambda x: x + 10)
    >>> d(1, 5)
    15
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            names = ", ".join(kwargs)
            raise TypeError(f"{self.name}: expected arguments by position, got {names} by name")
        function, found = self.resolve(args)
        return function(**{variable.token: value for variable, value in found.items()})


global_namespace: Dict[str, Dispatcher] = {}


def match(*signature: Any, **kwargs: Any) -> Callable[[Callable], Dispatcher]:
    """A decorator that adds a function to the dispatcher of its name, for a pattern.

    namespace: the dict in which dispatchers are found by name, one for the whole program if not
    given; Dispatcher: the class of a new one."""
    namespace: Dict[str, Any] = kwargs.pop("namespace", global_namespace)
    kind = kwargs.pop("Dispatcher", Dispatcher)
    if kwargs:
        names = ", ".join(kwargs)
        raise TypeError(f"match: expected the keywords namespace and Dispatcher, got {names}")

    def decorate(func: Callable) -> Dispatcher:
        name = func.__name__
        if name not in namespace:
            namespace[name] = kind(name)
        dispatcher = namespace[name]
        dispatcher.add(signature, func)
        return dispatcher

    return decorate


def _variables(pattern: Any) -> Iterator[Any]:
    if isvar(pattern):
        yield pattern
    elif isinstance(pattern, (tuple, list)):
        for part in pattern:
            yield from _variables(part)


def supercedes(a: Any, b: Any) -> bool:
    """Whether pattern `a` is at least as special as `b`: what fits it also fits `b`."""
    # A value that is like no other stands for whatever fits a variable of `a`.
    fitting = reify(a, {variable: object() for variable in _variables(a)})
    return unify(fitting, b) is not False


def edge(a: Any, b: Any, tie_breaker: Callable[[Any], Any] = hash) -> bool:
    """Whether `a` is asked before `b`; of two that are as special, the tie breaker decides."""
    if not supercedes(a, b):
        return False
    return not supercedes(b, a) or tie_breaker(a) > tie_breaker(b)


def ordering(signatures: Iterable[Any]) -> List[Any]:
    """The patterns, the more special before the less."""
    known = [tuple(s) if isinstance(s, list) else s for s in signatures]
    pairs = groupby(first, [(a, b) for a in known for b in known if edge(a, b)])
    # Those before others come first, as the order of what is equal depends on it.
    later = {a: [b for _, b in found] for a, found in pairs.items()}
    return _toposort({**later, **{a: [] for a in known if a not in later}})

"""Dispatcher: a function that chooses among its implementations by the types of its arguments."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import inspect
import itertools
import warnings
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from treadle.fx.experimental.unification.multipledispatch.conflict import (
    AmbiguityWarning,
    ambiguities,
    ordering,
    super_signature,
)
from treadle.fx.experimental.unification.multipledispatch.utils import expand_tuples
from treadle.fx.experimental.unification.multipledispatch.variadic import Variadic, isvariadic


class MDNotImplementedError(NotImplementedError):
    """Raised by an implementation to leave the call to the next that fits."""


def ambiguity_warn(dispatcher: Dispatcher, ambiguities: Any) -> None:
    """Warn of signatures of which none is more specific."""
    text = warning_text(dispatcher.name, ambiguities)
    warnings.warn(text, AmbiguityWarning, stacklevel=2)


def _outdated(text: str) -> None:
    warnings.warn(text, FutureWarning, stacklevel=3)


def halt_ordering() -> None:
    """Does nothing: signatures are ordered when a call needs it."""
    _outdated("halt_ordering: the call has no effect and can be removed")


def restart_ordering(on_ambiguity: Any = ambiguity_warn) -> None:
    """Does nothing: `reorder()` of a dispatcher orders it at once."""
    _outdated("restart_ordering: the call has no effect; reorder() of a dispatcher orders it")


def variadic_signature_matches_iter(
    types: Iterable[type], full_signature: Tuple[Any, ...]
) -> Iterator[bool]:
    """For each type, whether it fits its place in a signature that ends with `Variadic[...]`; and
    at last, where the types end before the signature, whether only the variadic place is left."""
    left = iter(full_signature)
    place = next(left)
    for kind in types:
        yield issubclass(kind, place)
        place = next(left, place)
    yield isvariadic(place)


def variadic_signature_matches(types: Iterable[type], full_signature: Tuple[Any, ...]) -> bool:
    """Whether types of arguments fit a signature that ends with `Variadic[...]`."""
    if not full_signature:
        raise AssertionError("variadic_signature_matches: expected a signature, got an empty one")
    return all(variadic_signature_matches_iter(types, full_signature))


def _positional(function: Callable) -> Optional[List[inspect.Parameter]]:
    try:
        parameters = inspect.signature(function, eval_str=True).parameters.values()
    except (TypeError, ValueError, NameError):  # a builtin, or a name that is not there yet
        return None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p for p in parameters if p.kind in kinds]


class Dispatcher:
    """A function with an implementation for each of several signatures.

    >>> f = Dispatcher("f")
    >>> f.add((int,), lambda x: x + 1)
    >>> f.add((float,), lambda x: x - 1)
    >>> f(3), f(3.0)
    (4, 2.0)

    A call that no signature fits raises NotImplementedError.
    """

    __slots__ = "__name__", "_cache", "_ordering", "doc", "funcs", "name"

    def __init__(self, name: str, doc: Optional[str] = None) -> None:
        self.name = self.__name__ = name
        self.doc = doc
        self.funcs: Dict[Tuple[Any, ...], Callable] = {}
        self._cache: Dict[Tuple[type, ...], Any] = {}
        self._ordering: Optional[List[Tuple[Any, ...]]] = None

    def register(self, *types: Any, **kwargs: Any) -> Callable[[Callable], Callable]:
        """A decorator that adds a function for these types, or those of its annotations."""

        def decorate(function: Callable) -> Callable:
            self.add(types, function, **kwargs)
            return function

        return decorate

    @classmethod
    def get_func_params(cls, func: Callable) -> Any:
        """The parameters of a function; None where Python does not know them."""
        try:
            return inspect.signature(func).parameters.values()
        except (TypeError, ValueError):
            return None

    @classmethod
    def _annotated(cls, func: Callable) -> Optional[List[inspect.Parameter]]:
        return _positional(func)

    @classmethod
    def get_func_annotations(cls, func: Callable) -> Optional[Tuple[Any, ...]]:
        """The types of the positional parameters; None if one has no type."""
        places = cls._annotated(func)
        if places is None:
            return None
        empty = inspect.Parameter.empty
        found = tuple(p.annotation for p in places)
        return None if any(kind is empty for kind in found) else found

    def add(self, signature: Any, func: Callable) -> None:
        """Let the function answer calls with arguments of these types.

        A tuple in the signature stands for any of its types, a list of one type at the end for any
        number of arguments of it. An empty signature is read from the annotations. TypeError for
        what is not a type."""
        if not signature:
            signature = self.get_func_annotations(func) or ()
        if any(isinstance(place, tuple) for place in signature):
            for each in expand_tuples(signature):
                self.add(each, func)
            return
        self.funcs[tuple(self._checked(signature))] = func
        self._cache.clear()
        self._ordering = None

    def _checked(self, signature: Any) -> Iterator[Any]:
        for index, place in enumerate(signature, 1):
            if isinstance(place, list):
                if index != len(signature):
                    raise TypeError(
                        f"{self.name}: expected a list of types as the last place of a signature, "
                        f"got it at place {index} of {len(signature)}"
                    )
                if len(place) != 1:
                    raise TypeError(
                        f"{self.name}: expected one type or one tuple of types in the list, "
                        f"got {len(place)}"
                    )
                yield Variadic[place[0]]
            elif isinstance(place, type):
                yield place
            else:
                names = ", ".join(getattr(t, "__name__", repr(t)) for t in signature)
                raise TypeError(
                    f"{self.name}: expected types in a signature, got {place!r} in ({names})"
                )

    @property
    def ordering(self) -> List[Tuple[Any, ...]]:
        """The signatures in the order in which they are asked."""
        return self.reorder() if self._ordering is None else self._ordering

    def reorder(self, on_ambiguity: Callable[[Any, Any], Any] = ambiguity_warn) -> List[Any]:
        """Order the signatures now; `on_ambiguity` is called with this and the doubtful pairs."""
        self._ordering = found = ordering(self.funcs)
        doubtful = ambiguities(self.funcs)
        if doubtful:
            on_ambiguity(self, doubtful)
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        types = tuple(map(type, args))
        function = self._cache.get(types)
        if function is None:
            function = self.dispatch(*types)
            if function is None:
                raise NotImplementedError(
                    f"{self.name}: expected arguments of a known signature, "
                    f"got ({str_signature(types)})"
                )
            self._cache[types] = function
        try:
            return function(*args, **kwargs)
        except MDNotImplementedError:
            pass
        for function in itertools.islice(self.dispatch_iter(*types), 1, None):
            try:
                return function(*args, **kwargs)
            except MDNotImplementedError:
                continue
        raise NotImplementedError(
            f"{self.name}: expected an implementation that takes ({str_signature(types)}), "
            "got MDNotImplementedError from each"
        )

    def __str__(self) -> str:
        return f"<dispatched {self.name}>"

    __repr__ = __str__

    def dispatch(self, *types: type) -> Optional[Callable]:
        """The implementation for arguments of these types; None if there is none."""
        if types in self.funcs:
            return self.funcs[types]
        return next(self.dispatch_iter(*types), None)

    def dispatch_iter(self, *types: type) -> Iterator[Callable]:
        """The implementations that fit, the most specific first."""
        for signature in self.ordering:
            if signature and isvariadic(signature[-1]):
                fits = variadic_signature_matches(types, signature)
            else:
                fits = len(signature) == len(types) and all(map(issubclass, types, signature))
            if fits:
                yield self.funcs[signature]

    def resolve(self, types: Tuple[type, ...]) -> Optional[Callable]:
        """`dispatch(*types)`, by an older name."""
        _outdated("Dispatcher.resolve: the name is older; dispatch(*types) does the same")
        return self.dispatch(*types)

    def __getstate__(self) -> Dict[str, Any]:
        return {"name": self.name, "funcs": self.funcs}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__init__(state["name"])  # type: ignore[misc]
        self.funcs = state["funcs"]

    @property
    def __doc__(self) -> str:
        """The text of the function, and of the implementations that have one."""
        parts = [f"{self.name}: chosen by the types of its arguments"]
        if self.doc:
            parts.append(self.doc)
        rest = []
        for signature in self.ordering[::-1]:
            text = self.funcs[signature].__doc__
            if text:
                title = f"Arguments: <{str_signature(signature)}>"
                parts.append(f"{title}\n{'-' * len(title)}\n{text.strip()}")
            else:
                rest.append(str_signature(signature))
        if rest:
            parts.append("Without a text:\n    " + "\n    ".join(rest))
        return "\n\n".join(parts)

    def _chosen(self, args: Tuple[Any, ...]) -> Optional[Callable]:
        return self.dispatch(*map(type, args))

    def _help(self, *args: Any) -> Optional[str]:
        return getattr(self._chosen(args), "__doc__", None)

    def help(self, *args: Any, **kwargs: Any) -> None:
        """Print the text of the implementation that these arguments choose."""
        print(self._help(*args))

    def _source(self, *args: Any) -> str:
        function = self._chosen(args)
        if function is None:
            types = str_signature(tuple(map(type, args)))
            raise TypeError(f"{self.name}: expected arguments of a known signature, got ({types})")
        return source(function)

    def source(self, *args: Any, **kwargs: Any) -> None:
        """Print the source of the implementation that these arguments choose."""
        print(self._source(*args))


def source(func: Callable) -> str:
    """The file of a function, and its lines."""
    return f"File: {inspect.getsourcefile(func)}\n\n{inspect.getsource(func)}"


class MethodDispatcher(Dispatcher):
    """A dispatcher that is a method: signatures are those of the arguments after `self`."""

    __slots__ = ("cls", "obj")

    @classmethod
    def get_func_params(cls, func: Callable) -> Any:
        """The parameters of a method after `self`; None where Python does not know them."""
        found = super().get_func_params(func)
        return None if found is None else itertools.islice(found, 1, None)

    @classmethod
    def _annotated(cls, func: Callable) -> Optional[List[inspect.Parameter]]:
        places = _positional(func)
        return places and places[1:]

    def __get__(self, instance: Any, owner: Any) -> MethodDispatcher:
        self.obj, self.cls = instance, owner
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        types = tuple(map(type, args))
        function = self.dispatch(*types)
        if function is None:
            raise NotImplementedError(
                f"{self.name}: expected arguments of a known signature, "
                f"got ({str_signature(types)})"
            )
        return function(self.obj, *args, **kwargs)


def str_signature(sig: Iterable[type]) -> str:
    """The names of the types, with commas."""
    return ", ".join(kind.__name__ for kind in sig)


def warning_text(name: str, amb: Any) -> str:
    """A warning of pairs of signatures of which none is more specific, with their remedy."""
    pairs = "\n".join(f"    ({str_signature(a)}) and ({str_signature(b)})" for a, b in amb)
    remedies = "\n".join(f"    @dispatch({str_signature(super_signature(pair))})" for pair in amb)
    return (
        f"{name}: expected one signature that fits best, got several for the same call:\n"
        f"{pairs}\nAn implementation for each of these decides:\n{remedies}"
    )


__all__ = [
    "Dispatcher",
    "MDNotImplementedError",
    "MethodDispatcher",
    "ambiguity_warn",
    "halt_ordering",
    "restart_ordering",
    "source",
    "str_signature",
    "variadic_signature_matches",
    "variadic_signature_matches_iter",
    "warning_text",
]

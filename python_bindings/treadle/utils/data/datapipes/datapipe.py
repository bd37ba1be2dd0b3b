"""The bases of pipes: IterDataPipe, MapDataPipe, and what registers a pipe as a method of them."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Iterator, List, TypeVar

from treadle.utils.data.dataset import Dataset, IterableDataset

T_co = TypeVar("T_co", covariant=True)
UNTRACABLE_DATAFRAME_PIPES: List[str] = []

# A pipe's notes on the pass that it is in; a copy is in none.
_OF_A_PASS = ("_passes", "_begun")


def _no_method(pipe: object, name: str) -> AttributeError:
    return AttributeError(f"'{type(pipe).__name__}' object has no attribute '{name}'")


class _Registry:
    """A base whose methods are the pipes that functional_datapipe() registers for it."""

    functions: Dict[str, Callable[..., Any]]

    def __getattr__(self, name: str) -> Any:
        functions = type(self).functions
        if name not in functions:
            raise _no_method(self, name)
        made = functools.partial(functions[name], self)
        functools.update_wrapper(made, functions[name], assigned=("__doc__",), updated=())
        return made

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Make a function a method of all pipes of this kind."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: type, enable_df_api_tracing: bool = False
    ) -> None:
        """Make a class of pipes a method of all pipes of this kind. Raises ValueError where there
        is a method of that name."""
        if function_name in cls.functions:
            raise ValueError(
                f"functional_datapipe: expected a new name, got '{function_name}', which "
                f"{cls.functions[function_name].__name__} has"
            )
        cls.functions[function_name] = cls_to_register

    def __getstate__(self) -> Dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _OF_A_PASS}

    def __repr__(self) -> str:
        return str(type(self).__qualname__)

    __str__ = __repr__

    def __dir__(self) -> List[str]:
        return sorted({*super().__dir__(), *type(self).functions})


def _once_at_a_time(go_through: Callable[[Any], Iterator]) -> Callable[[Any], Iterator]:
    """An `__iter__` whose iterators are good until the next one of the same pipe is made."""

    def one_pass(self: "IterDataPipe") -> Iterator:
        number = self.__dict__["_passes"] = self.__dict__.get("_passes", 0) + 1
        self.__dict__["_number_of_samples_yielded"] = 0
        self.reset()
        source = iter(go_through(self))
        while True:
            if self.__dict__.get("_passes") != number:
                raise RuntimeError(
                    f"{type(self).__name__}: expected the iterator that was begun last, got an "
                    "earlier one: a pipe is gone through once at a time; fork() makes several of it"
                )
            try:
                sample = next(source)
            except StopIteration:
                return
            self.__dict__["_number_of_samples_yielded"] += 1
            yield sample

    @functools.wraps(go_through)
    def iterate(self: "IterDataPipe") -> Iterator:
        # One that was begun before: see utils.snapshot.
        return self.__dict__.pop("_begun", None) or one_pass(self)

    iterate._is_checked = True  # type: ignore[attr-defined]
    return iterate


class IterDataPipe(_Registry, IterableDataset[T_co]):
    """Base of pipes that are gone through: a subclass has an `__iter__`.

    A pipe is gone through once at a time: the first sample of an iterator calls reset() and makes
    iterators before it invalid, which raise RuntimeError. Other pipes are made by methods:
    `pipe.map(function)`.
    """

    functions: Dict[str, Callable[..., Any]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("__iter__")
        if own is not None and not getattr(own, "_is_checked", False):
            cls.__iter__ = _once_at_a_time(own)

    def reset(self) -> None:
        """Called before each new pass."""


class DFIterDataPipe(IterDataPipe):
    """Base of pipes over tables."""


class MapDataPipe(_Registry, Dataset[T_co]):
    """Base of pipes that are asked for a sample by its key: a subclass has `__getitem__`, and
    mostly `__len__`."""

    functions: Dict[str, Callable[..., Any]] = {}


class DataChunk(list):
    """A batch: a list whose samples can be gone through though batches are in it."""

    def __init__(self, items: Any) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """Its samples as text."""
        return indent + "[" + ", ".join(str(item) for item in iter(self)) + "]"

    def raw_iterator(self) -> Iterator[Any]:
        """Its samples."""
        yield from self.items


class functional_datapipe:  # noqa: N801  PyTorch's name
    """Decorates a class of pipes, which becomes a method of pipes: `pipe.NAME(...)`.

    Raises TypeError for another class, ValueError for a name that is taken.
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name
        self.enable_df_api_tracing = enable_df_api_tracing

    def __call__(self, cls: Any) -> Any:
        for base in (IterDataPipe, MapDataPipe):
            if isinstance(cls, type) and issubclass(cls, base):
                base.register_datapipe_as_function(self.name, cls)
                return cls
        raise TypeError(
            "functional_datapipe: expected a class derived from IterDataPipe or MapDataPipe, got "
            f"{getattr(cls, '__name__', cls)}"
        )


_is_determinism_guaranteed = False


class guaranteed_datapipes_determinism:  # noqa: N801  PyTorch's name
    """A block in which pipes of which two runs may differ are refused: those that are registered
    by non_deterministic()."""

    def __init__(self) -> None:
        global _is_determinism_guaranteed
        self.prev = _is_determinism_guaranteed
        _is_determinism_guaranteed = True

    def __enter__(self) -> None:
        """It began when it was made."""

    def __exit__(self, *error: Any) -> None:
        global _is_determinism_guaranteed
        _is_determinism_guaranteed = self.prev


def refuse_if_determinism_is_guaranteed(name: str) -> None:
    """Raise TypeError within guaranteed_datapipes_determinism."""
    if _is_determinism_guaranteed:
        raise TypeError(f"{name}: expected a deterministic pipe in this block, got one that is not")


__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"]

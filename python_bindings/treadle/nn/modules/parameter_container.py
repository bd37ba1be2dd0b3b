"""Modules that hold parameters: in a list, in a dictionary. Tensors that are put in become
parameters."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import operator
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, Union

from treadle._C import Tensor
from treadle.functional import typename

from ..parameter import Parameter
from .module import Module


def _as_parameter(value: Any) -> Any:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _describe(key: Any, value: Any, type_of: Callable[[Tensor], Any]) -> str:
    return f"  ({key}): {_contents(value, type_of)}"


def _contents(value: Any, type_of: Callable[[Tensor], Any]) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    sizes = "x".join(str(size) for size in value.shape)
    return f"{kind} containing: [{type_of(value)} of size {sizes}]"


class ParameterList(Module):
    """A list of parameters."""

    def __init__(self, values: Optional[Iterable[Any]] = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _name_at(self, index: int) -> str:
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range")
        return str(index % len(self))

    def __getitem__(self, index: Union[int, slice]) -> Any:
        if isinstance(index, slice):
            return type(self)([self[i] for i in range(*index.indices(len(self)))])
        return getattr(self, self._name_at(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._name_at(index), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __iadd__(self, values: Iterable[Any]) -> "ParameterList":
        return self.extend(values)

    def append(self, value: Any) -> "ParameterList":
        """Add a value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> "ParameterList":
        """Add values at the end."""
        if not hasattr(values, "__iter__") or isinstance(values, Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, but got "
                f"{type(values).__name__}"
            )
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(_describe(index, p, lambda t: t.dtype) for index, p in enumerate(self))


class ParameterDict(Module):
    """A dictionary of parameters, in the order in which they were put in."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type "
                f"is {type(key)!r})"
            )
        if key not in self._keys and hasattr(type(self), key):
            raise KeyError(f"attribute '{key}' already exists")
        self._keys[key] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def copy(self) -> "ParameterDict":
        """A dictionary of the same parameters."""
        return ParameterDict(self.items())

    def __or__(self, other: Any) -> "ParameterDict":
        if not isinstance(other, (Mapping, ParameterDict)):
            return NotImplemented
        joined = self.copy()
        joined.update(other)
        return joined

    def __ror__(self, other: Any) -> "ParameterDict":
        if not isinstance(other, (Mapping, ParameterDict)):
            return NotImplemented
        joined = ParameterDict(other)
        joined.update(self)
        return joined

    def __ior__(self, other: Any) -> "ParameterDict":
        self.update(other)
        return self

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter, which is put in where there is none."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def popitem(self) -> tuple[str, Any]:
        """Take the parameter that was put in last out; gives its key and it."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> "ParameterDict":
        """A dictionary with the same value for all keys."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Iterable[str]:
        """The keys."""
        return self._keys.keys()

    def values(self) -> Iterable[Any]:
        """The parameters."""
        return [self[key] for key in self._keys]

    def items(self) -> Iterable[tuple[str, Any]]:
        """Pairs of key and parameter."""
        return [(key, self[key]) for key in self._keys]

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter, or `default` where there is none."""
        return self[key] if key in self._keys else default

    def pop(self, key: str) -> Any:
        """Take a parameter out and return it."""
        value = self[key]
        del self[key]
        return value

    def clear(self) -> None:
        """Remove all parameters."""
        for key in list(self._keys):
            del self[key]

    def update(self, parameters: Any) -> None:
        """Add the parameters of a dictionary, or of pairs of key and parameter."""
        pairs = (
            parameters.items() if isinstance(parameters, (Mapping, ParameterDict)) else parameters
        )
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(_describe(key, p, typename) for key, p in self.items())

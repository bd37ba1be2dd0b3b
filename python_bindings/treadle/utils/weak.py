"""References and dictionaries that do not keep objects alive and go by which object it is, for
tensors, which `==` compares element by element.

    known = WeakTensorKeyDictionary()
    known[x] = "input"                  # gone when x is
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import weakref
from typing import Any, Callable, Dict, Iterator, List, MutableMapping, Optional, Tuple

from treadle._C import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref):
    """A reference that equals those to the same object, and no other after that is gone."""

    __slots__ = ("_id",)
    _id: int

    def __new__(cls, key: Any, callback: Optional[Callable] = None) -> "WeakIdRef":
        made = super().__new__(cls, key, callback)
        made._id = id(key)
        return made

    def __init__(self, key: Any, callback: Optional[Callable] = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, WeakIdRef):
            return NotImplemented
        mine, others = self(), other()
        if mine is not None and others is not None:
            return mine is others
        return self is other

    def __ne__(self, other: Any) -> bool:
        return not self == other


class TensorWeakRef:
    """A reference to a tensor: calling it gives the tensor, or None when that is gone."""

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"TensorWeakRef: expected a tensor, got {type(tensor).__name__}")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Optional[Tensor]:
        return self.ref()


class WeakIdKeyDictionary(MutableMapping):
    """A dictionary whose keys are not kept alive, and are the objects themselves."""

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef) -> None:
        self.data: Dict[Any, Any] = {}
        self.ref_type = ref_type
        reference = weakref.ref(self)

        def remove(key: Any) -> None:
            owner = reference()
            if owner is not None:
                owner.data.pop(key, None)

        self._remove = remove
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: Any) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # no reference to it can be made
            return False

    def _living(self) -> List[Tuple[Any, Any]]:
        pairs = ((reference(), value) for reference, value in list(self.data.items()))
        return [(key, value) for key, value in pairs if key is not None]

    def __iter__(self) -> Iterator[Any]:
        return iter([key for key, _ in self._living()])

    def __len__(self) -> int:
        return len(self._living())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def keyrefs(self) -> List[Any]:
        """The references to the keys."""
        return list(self.data)

    def copy(self) -> "WeakIdKeyDictionary":
        """Another with the same keys and values."""
        made = WeakIdKeyDictionary(ref_type=self.ref_type)
        for key, value in self._living():
            made[key] = value
        return made

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> "WeakIdKeyDictionary":
        from copy import deepcopy

        made = type(self)(ref_type=self.ref_type)
        for key, value in self._living():
            made[key] = deepcopy(value, memo)
        return made

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, MutableMapping):
            return NotImplemented
        return {id(k): v for k, v in self.items()} == {id(k): v for k, v in other.items()}

    __hash__ = None  # type: ignore[assignment]

    def __or__(self, other: Any) -> "WeakIdKeyDictionary":
        made = self.copy()
        made.update(other)
        return made

    def __ior__(self, other: Any) -> "WeakIdKeyDictionary":
        self.update(other)
        return self


WeakTensorKeyDictionary = WeakIdKeyDictionary

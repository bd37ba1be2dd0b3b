"""Objects with a state: models, optimisers, and whatever of a program has the two methods."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import abc
from typing import Any, Dict, Protocol, TypeVar, runtime_checkable


@runtime_checkable
class Stateful(Protocol):
    """An object that save() asks for its state, and to which load() gives it back."""

    @abc.abstractmethod
    def state_dict(self) -> Dict[str, Any]:
        """The state, whose tensors load() fills in place."""
        ...

    @abc.abstractmethod
    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Take a state."""
        ...


StatefulT = TypeVar("StatefulT", bound=Stateful)

__all__ = ["Stateful", "StatefulT"]

"""Arguments of layers: one number for all dimensions, or one for each."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from itertools import repeat
from typing import Any, Callable, Dict, Iterable, List, Sequence, Tuple


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], Tuple[Any, ...]]:
    """A function that makes a tuple of anything that can be gone through, and of another value the
    same one n times."""

    def parse(x: Any) -> Tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Sequence[Any], n: int) -> Tuple[Any, ...]:
    """The items from the last to the first, each n times: (1, 2) -> (2, 2, 1, 1) for n = 2."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size: List[Any], defaults: List[int]) -> List[int]:
    """The sizes, where None stands for the one of the same place from the end of `defaults`."""
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    last = defaults[-len(out_size) :]
    return [default if size is None else size for size, default in zip(out_size, last)]


def consume_prefix_in_state_dict_if_present(state_dict: Dict[str, Any], prefix: str) -> None:
    """Take the prefix off the keys that have it, in place, and off those of `_metadata`."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata: Any = getattr(state_dict, "_metadata", None)
    for key in list(metadata or ()):
        # The module itself has the prefix without its dot as its key.
        if key and (key.startswith(prefix) or key == prefix.rstrip(".")):
            metadata[key[len(prefix) :]] = metadata.pop(key)

"""Nested state dictionaries as flat ones: `{"model": {"weight": w}}` has the key `model.weight`,
and the mapping from it to the path `("model", "weight")`.

A list is opened only where a tensor or a dictionary is in it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, Mapping, Tuple, Union

from treadle._C import Tensor

OBJ_PATH = Tuple[Union[str, int], ...]
FLATTEN_MAPPING = Dict[str, OBJ_PATH]

# A path of a stranger's file may not ask for a longer list.
_LONGEST_LIST = 1_000_000


def _is_leaf(value: Any, opens_all: bool) -> bool:
    """Whether a value has one key. `opens_all` says whether a dictionary without tensors is opened,
    as since PyTorch 2.4."""
    if isinstance(value, Mapping):
        if opens_all:
            return False
        entries: Any = value.values()
    elif isinstance(value, list):
        entries = value
    else:
        return True
    return not any(
        isinstance(entry, Tensor)
        or hasattr(entry, "__create_write_items__")
        or isinstance(entry, (Mapping, list))
        and not _is_leaf(entry, opens_all)
        for entry in entries
    )


def _leaves(path: OBJ_PATH, value: Any, opens_all: bool) -> Iterator[Tuple[OBJ_PATH, Any]]:
    if _is_leaf(value, opens_all):
        yield path, value
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _leaves((*path, str(key)), entry, opens_all)
    else:
        for number, entry in enumerate(value):
            yield from _leaves((*path, number), entry, opens_all)


def traverse_state_dict(
    state_dict: Dict[str, Any], visitor: Callable[[OBJ_PATH, Any], None], opens_all: bool = True
) -> None:
    """Call `visitor` with the path and the value of each key of the flat dictionary."""
    for key, value in state_dict.items():
        for path, leaf in _leaves((str(key),), value, opens_all):
            visitor(path, leaf)


def flatten_state_dict(
    state_dict: Dict[str, Any], opens_all: bool = True
) -> Tuple[Dict[str, Any], FLATTEN_MAPPING]:
    """The flat dictionary, and the path of each of its keys. ValueError if two have the same."""
    flat: Dict[str, Any] = {}
    mapping: FLATTEN_MAPPING = {}

    def add(path: OBJ_PATH, value: Any) -> None:
        key = ".".join(map(str, path))
        if key in flat:
            raise ValueError(
                f"flatten_state_dict: expected one value for {key!r}, got those of the paths "
                f"{mapping[key]} and {path}"
            )
        flat[key] = value
        mapping[key] = path

    traverse_state_dict(state_dict, add, opens_all)
    return flat, mapping


def unflatten_state_dict(state_dict: Dict[str, Any], mapping: FLATTEN_MAPPING) -> Dict[str, Any]:
    """The nested dictionary of a flat one."""
    nested: Dict[str, Any] = {}
    for key, value in state_dict.items():
        set_element(nested, mapping[key], value)
    return nested


def _reach(values: list, place: int) -> None:
    if not 0 <= place < _LONGEST_LIST:
        raise ValueError(
            f"set_element: expected a place in [0, {_LONGEST_LIST}) in a list, got {place}"
        )
    values.extend([None] * (place + 1 - len(values)))


def set_element(root_dict: Dict[str, Any], path: OBJ_PATH, value: Any) -> None:
    """Put a value under a path. Dictionaries and lists on the way are made where there are none."""
    container: Any = root_dict
    for key, following in zip(path, path[1:]):
        if isinstance(container, list):
            _reach(container, key)  # type: ignore[arg-type]
            is_missing = container[key] is None  # type: ignore[index]
        else:
            is_missing = key not in container
        if is_missing:
            container[key] = {} if isinstance(following, str) else []
        container = container[key]
    if isinstance(container, list):
        _reach(container, path[-1])  # type: ignore[arg-type]
    container[path[-1]] = value


def get_element(root_dict: Dict[str, Any], path: OBJ_PATH, default_value: Any = None) -> Any:
    """The value under a path; the default where there is none."""
    value: Any = root_dict
    for key in path:
        if isinstance(key, int):
            if not isinstance(value, list) or not 0 <= key < len(value):
                return default_value
        elif not isinstance(value, Mapping) or key not in value:
            return default_value
        value = value[key]
    return value

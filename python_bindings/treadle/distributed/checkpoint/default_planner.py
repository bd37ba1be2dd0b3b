"""The planners that save() and load() use: nested dictionaries are flattened, tensors are saved box
by box, all else as save() of the package writes it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import io
import pickle
import warnings
from typing import Any, Dict, List, Optional, Set, Tuple, Union

from treadle import _C, serialization
from treadle._C import Tensor
from treadle.distributed.checkpoint._global_plan import (
    create_default_global_save_plan,
    dedup_save_plans,
    mistakes,
)
from treadle.distributed.checkpoint._nested_dict import (
    FLATTEN_MAPPING,
    flatten_state_dict,
    set_element,
)
from treadle.distributed.checkpoint.metadata import (
    STATE_DICT_TYPE,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorStorageMetadata,
)
from treadle.distributed.checkpoint.planner import (
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from treadle.distributed.checkpoint.planner_helpers import (
    _create_read_items,
    _create_write_items,
    find_state_dict_object,
    narrow,
)


def create_default_local_save_plan(state_dict: Dict[str, Any], is_coordinator: bool) -> SavePlan:
    """The values that this process could write, whether it is the coordinator or not."""
    return SavePlan([item for fqn, v in state_dict.items() for item in _create_write_items(fqn, v)])


def create_default_local_load_plan(
    state_dict: Dict[str, Any], metadata: Metadata, strict: bool = True
) -> LoadPlan:
    """The values that this process needs. RuntimeError for a key that the checkpoint lacks, if
    `strict`; ValueError for a tensor of another shape."""
    items: List[ReadItem] = []
    for fqn, value in state_dict.items():
        saved = metadata.state_dict_metadata.get(fqn)
        if saved is None:
            if strict:
                raise RuntimeError(f"load: expected the key {fqn!r} in the checkpoint, got none")
            continue
        if isinstance(saved, TensorStorageMetadata) and isinstance(value, Tensor):
            if tuple(saved.size) != tuple(value.shape):
                raise ValueError(
                    f"load: expected a tensor of shape {tuple(saved.size)} for {fqn!r}, as in the "
                    f"checkpoint, got shape {tuple(value.shape)}"
                )
        items += _create_read_items(fqn, saved, value)
    return LoadPlan(items)


def create_default_global_load_plan(all_plans: List[LoadPlan]) -> List[LoadPlan]:
    """The plans as they are: each process reads what it needs."""
    return all_plans


@dataclasses.dataclass
class _Cache:
    """The plans of the last save by planners of one class."""

    local: Optional[SavePlan] = None
    final: Optional[SavePlan] = None
    all_local: Optional[List[SavePlan]] = None
    metadata: Optional[Metadata] = None
    all_final: Optional[List[SavePlan]] = None


_UNCHANGED = SavePlan([], usable=False)


class DefaultSavePlanner(SavePlanner):
    """Saves a nested state dictionary.

    flatten_state_dict: whether the values of nested dictionaries have keys of their own.
    dedup_save_to_lowest_rank: whether the first process that has a piece writes it, not the one
        with the least work.
    enable_plan_caching: whether plans that are the same as in the last save are not sent again.
    """

    mappings: FLATTEN_MAPPING
    _caches: Dict[str, _Cache] = {}

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: Optional[bool] = None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:
        if dedup_replicated_tensors is not None:
            warnings.warn(
                "DefaultSavePlanner: dedup_replicated_tensors is deprecated; what all processes "
                "have is written once",
                FutureWarning,
                stacklevel=2,
            )
        self.flatten_state_dict = flatten_state_dict
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.mappings = {}
        self._enable_plan_caching = enable_plan_caching

    def _cache(self) -> _Cache:
        return self._caches.setdefault(type(self).__name__, _Cache())

    def set_up_planner(
        self,
        state_dict: STATE_DICT_TYPE,
        storage_meta: Optional[StorageMeta] = None,
        is_coordinator: bool = False,
    ) -> None:
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict = state_dict
        self.is_coordinator = is_coordinator

    def create_local_plan(self) -> SavePlan:
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            plan = dataclasses.replace(plan, planner_data=self.mappings)
        self.plan = self._local_plan = plan
        is_known = self._enable_plan_caching and self._cache().local == plan
        return _UNCHANGED if is_known else plan

    def create_global_plan(self, all_plans: List[SavePlan]) -> Tuple[List[SavePlan], Metadata]:
        cache = self._cache()
        if not self._enable_plan_caching or cache.all_local is None:
            previous: List[Any] = [None] * len(all_plans)
        else:
            previous = cache.all_final or []
            if not any(plan.usable for plan in all_plans):
                assert cache.metadata is not None
                self.global_plan, self.metadata = previous, cache.metadata
                return [_UNCHANGED] * len(all_plans), dataclasses.replace(cache.metadata)
            all_plans = [
                plan if plan.usable else old for plan, old in zip(all_plans, cache.all_local)
            ]
        plans, metadata = self._planned(all_plans)
        self.global_plan, self.metadata = plans, metadata
        if self._enable_plan_caching:
            cache.all_local, cache.all_final = all_plans, plans
            cache.metadata = dataclasses.replace(metadata)
            plans = [_UNCHANGED if new == old else new for new, old in zip(plans, previous)]
        return plans, metadata

    def _planned(self, all_plans: List[SavePlan]) -> Tuple[List[SavePlan], Metadata]:
        deduped = dedup_save_plans(all_plans, self.dedup_save_to_lowest_rank)
        plans, metadata = create_default_global_save_plan(deduped)
        if self.flatten_state_dict:
            merged: FLATTEN_MAPPING = {}
            for plan in reversed(plans):
                merged.update(plan.planner_data)
            metadata = dataclasses.replace(metadata, planner_data=merged)
        wrong = "; ".join(mistakes(metadata, is_shared=len(plans) > 1))
        if wrong:
            raise ValueError(f"save: expected boxes that fill each tensor once, got {wrong[:500]}")
        return plans, metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        if self._enable_plan_caching:
            cache = self._cache()
            if new_plan.usable:
                cache.final = new_plan
            assert cache.final is not None
            new_plan = cache.final
            cache.local = self._local_plan
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Union[Tensor, io.BytesIO]:
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: MetadataIndex) -> Any:
        """The value of the state dictionary that an index names; subclasses may give another."""
        return find_state_dict_object(self.state_dict, index)

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """The data that is written of a value; subclasses may change it."""
        if write_item.type != WriteItemType.BYTE_IO:
            return object
        content = io.BytesIO()
        serialization.save(object, content)
        return content


class DefaultLoadPlanner(LoadPlanner):
    """Loads into a nested state dictionary: tensors in place, other values by replacing them.

    flatten_state_dict: whether the values of nested dictionaries have keys of their own.
    allow_partial_load: whether keys that the checkpoint lacks are left as they are.
    """

    original_state_dict: STATE_DICT_TYPE
    mappings: FLATTEN_MAPPING

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ) -> None:
        self.flatten_state_dict = flatten_state_dict
        self.allow_partial_load = allow_partial_load
        self.original_state_dict = {}
        self.mappings = {}

    def set_up_planner(
        self,
        state_dict: STATE_DICT_TYPE,
        metadata: Optional[Metadata] = None,
        is_coordinator: bool = False,
    ) -> None:
        self.original_state_dict = state_dict
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict = state_dict
        self.metadata = metadata
        self.is_coordinator = is_coordinator

    def create_local_plan(self) -> LoadPlan:
        assert self.metadata is not None
        saved = self.metadata.state_dict_metadata
        if self.flatten_state_dict and not set(saved) <= set(self.state_dict):
            # Checkpoints before PyTorch 2.4 have one key for a dictionary without tensors.
            older, paths = flatten_state_dict(self.original_state_dict, opens_all=False)
            if any(key in saved and key not in self.state_dict for key in older):
                self.state_dict, self.mappings = older, paths
        return create_default_local_load_plan(
            self.state_dict, self.metadata, not self.allow_partial_load
        )

    def create_global_plan(self, global_plan: List[LoadPlan]) -> List[LoadPlan]:
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, new_plan: LoadPlan) -> LoadPlan:
        return new_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        fqn = read_item.dest_index.fqn
        try:
            loaded = serialization.load(value, map_location="cpu")
        except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
            raise type(error)(f"load: expected a value for the key {fqn!r}; {error}") from error
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[fqn], loaded)
        else:
            self.state_dict[fqn] = loaded

    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """Nothing is left to do: the place is in the state dictionary."""

    def lookup_tensor(self, index: MetadataIndex) -> Tensor:
        """The tensor of the state dictionary that an index names; subclasses may give another."""
        return find_state_dict_object(self.state_dict, index)

    def transform_tensor(self, read_item: ReadItem, tensor: Tensor) -> Tensor:
        """The place in a tensor for the elements of an item; subclasses may give another."""
        return narrow(tensor.detach(), read_item.dest_offsets, read_item.lengths)


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Fills an empty dictionary with all that the checkpoint has, or with some `keys` of it, with
    whole tensors."""

    def __init__(self, keys: Optional[Set[str]] = None, *args: Any, **kwargs: Any) -> None:
        self.keys = keys
        super().__init__(*args, **kwargs)

    def _is_wanted(self, key: str, path: Any) -> bool:
        if self.keys is None or key in self.keys:
            return True
        parents = (".".join(map(str, path[:n])) for n in range(1, len(path)))
        return any(parent in self.keys for parent in parents)

    def set_up_planner(
        self,
        state_dict: STATE_DICT_TYPE,
        metadata: Optional[Metadata] = None,
        is_coordinator: bool = False,
    ) -> None:
        if state_dict:
            raise ValueError(f"load: expected an empty dictionary, got {len(state_dict)} keys")
        assert metadata is not None
        paths = metadata.planner_data or {}
        for key, saved in metadata.state_dict_metadata.items():
            path = paths.get(key, (key,))
            if not self._is_wanted(key, path):
                continue
            value: Any = None
            if isinstance(saved, TensorStorageMetadata):
                value = _C.empty(tuple(saved.size), dtype=saved.properties.dtype)
            set_element(state_dict, path, value)
        super().set_up_planner(state_dict, metadata, is_coordinator)


__all__ = [
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "create_default_global_load_plan",
    "create_default_global_save_plan",
    "create_default_local_load_plan",
    "create_default_local_save_plan",
]

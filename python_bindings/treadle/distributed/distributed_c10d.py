"""The older place of the names in treadle.distributed."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle import distributed
from treadle.distributed import *  # noqa: F403
from treadle.distributed._world import _default as _get_default_group
from treadle.distributed._world import _world
from treadle.distributed._world import group_of as _group_or_default_group
from treadle.distributed.coalescing import CoalescingManager as _CoalescingManager
from treadle.distributed.coalescing import coalescing_manager as _coalescing_manager
from treadle.distributed.constants import default_pg_nccl_timeout, default_pg_timeout
from treadle.distributed.debug import DebugLevel, get_debug_level
from treadle.distributed.groups import resolve_process_group as _resolve_process_group
from treadle.distributed.groups import store_of
from treadle.distributed.process_group import ProcessGroup


def _rank_not_in_group(group: Any) -> bool:
    """Whether this process is no member of a group."""
    return group is not None and not isinstance(group, ProcessGroup)


def _get_default_store() -> Any:
    """The store of the group of all processes."""
    return store_of()


def _get_process_group_name(pg: ProcessGroup) -> str:
    """The name of a group."""
    return pg.group_name


def __getattr__(name: str) -> Any:
    return getattr(distributed, name)


__all__ = [
    *distributed.__all__,
    "DebugLevel",
    "_CoalescingManager",
    "_coalescing_manager",
    "_get_default_group",
    "_get_default_store",
    "_get_process_group_name",
    "_group_or_default_group",
    "_rank_not_in_group",
    "_resolve_process_group",
    "_world",
    "default_pg_nccl_timeout",
    "default_pg_timeout",
    "get_debug_level",
]

"""The older place of the names in treadle.distributed."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle import distributed
from treadle.distributed import *  # noqa: F403
from treadle.distributed._world import _default as _get_default_group
from treadle.distributed.constants import default_pg_nccl_timeout, default_pg_timeout
from treadle.distributed.debug import DebugLevel, get_debug_level
from treadle.distributed.process_group import ProcessGroup


def _rank_not_in_group(group: Any) -> bool:
    """Whether this process is no member of a group."""
    return group is not None and not isinstance(group, ProcessGroup)


def __getattr__(name: str) -> Any:
    return getattr(distributed, name)


__all__ = [
    *distributed.__all__,
    "DebugLevel",
    "_get_default_group",
    "_rank_not_in_group",
    "default_pg_nccl_timeout",
    "default_pg_timeout",
    "get_debug_level",
]

"""The options of the methods of ProcessGroup: which operation, which root, how long to wait.

group.allreduce([tensor], AllreduceOptions(ReduceOp.MAX)).wait()
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, List, Optional

from treadle.distributed.reduce_op import ReduceOp


@dataclass
class _Options:
    """The fields of all options. `timeout` is that of the group where it is None. With `asyncOp`
    False the call is done when the method returns."""

    timeout: Optional[timedelta] = field(default=None, kw_only=True)
    asyncOp: bool = field(default=True, kw_only=True)  # noqa: N815


@dataclass
class AllreduceOptions(_Options):
    """Of allreduce()."""

    reduceOp: Any = ReduceOp.SUM  # noqa: N815


@dataclass
class AllreduceCoalescedOptions(AllreduceOptions):
    """Of allreduce_coalesced()."""


@dataclass
class BroadcastOptions(_Options):
    """Of broadcast(): the rank of the group that has the tensor."""

    rootRank: int = 0  # noqa: N815
    rootTensor: int = 0  # noqa: N815


@dataclass
class ReduceOptions(_Options):
    """Of reduce(): the rank of the group that gets the result."""

    reduceOp: Any = ReduceOp.SUM  # noqa: N815
    rootRank: int = 0  # noqa: N815
    rootTensor: int = 0  # noqa: N815


@dataclass
class AllgatherOptions(_Options):
    """Of allgather() and its kin."""


@dataclass
class GatherOptions(_Options):
    """Of gather(): the rank of the group that gets the tensors."""

    rootRank: int = 0  # noqa: N815


@dataclass
class ScatterOptions(_Options):
    """Of scatter(): the rank of the group that has the tensors."""

    rootRank: int = 0  # noqa: N815


@dataclass
class ReduceScatterOptions(_Options):
    """Of reduce_scatter() and its kin."""

    reduceOp: Any = ReduceOp.SUM  # noqa: N815


@dataclass
class AllToAllOptions(_Options):
    """Of alltoall() and alltoall_base()."""


@dataclass
class BarrierOptions(_Options):
    """Of barrier()."""

    device_ids: List[int] = field(default_factory=list)
    device: Any = None


__all__ = [
    "AllToAllOptions",
    "AllgatherOptions",
    "AllreduceCoalescedOptions",
    "AllreduceOptions",
    "BarrierOptions",
    "BroadcastOptions",
    "GatherOptions",
    "ReduceOptions",
    "ReduceScatterOptions",
    "ScatterOptions",
]

"""Programs of several processes, on CPUs and GPUs: each has a rank, and all call together.

    dist.init_process_group("gloo")            # MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE
    dist.all_reduce(gradient, dist.ReduceOp.AVG)
    dist.destroy_process_group()

The results of all_reduce() have the same bits in all processes. Where a process is gone, calls that
wait for it raise DistNetworkError.
"""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names
from treadle.distributed._grad_bucket import BuiltinCommHookType, GradBucket
from treadle.distributed._world import (
    GroupMember,
    default_pg_timeout,
    destroy_process_group,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
    new_group,
)
from treadle.distributed.backend import Backend, BackendConfig
from treadle.distributed.coalescing import CoalescingManager as _CoalescingManager
from treadle.distributed.coalescing import coalescing_manager as _coalescing_manager
from treadle.distributed.collectives import (
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    gather_into_tensor,
    gather_single,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
)
from treadle.distributed.debug import (
    DebugLevel,
    get_debug_level,
    set_debug_level,
    set_debug_level_from_env,
)
from treadle.distributed.errors import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    QueueEmptyError,
)
from treadle.distributed.groups import (
    SHRINK_ABORT,
    SHRINK_DEFAULT,
    GroupName,
    get_backend_config,
    get_backend_impl,
    get_default_backend_for_device,
    get_pg_count,
    new_subgroups,
    new_subgroups_by_enumeration,
    record_comm,
    set_timeout,
    shrink_group,
    split_group,
    supports_complex,
)
from treadle.distributed.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from treadle.distributed.options import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)
from treadle.distributed.point_to_point import P2POp, batch_isend_irecv, irecv, isend, recv, send
from treadle.distributed.process_group import ProcessGroup
from treadle.distributed.reduce_op import ReduceOp
from treadle.distributed.reduce_op import make_premul_sum as _make_nccl_premul_sum
from treadle.distributed.rendezvous import register_rendezvous_handler, rendezvous
from treadle.distributed.store import FileStore, HashStore, PrefixStore, Store, TCPStore
from treadle.distributed.work import Work

# Imported when they are first used: they need more than a program of groups does.
__getattr__ = _names.attributes_of(
    __name__, {"DeviceMesh": "device_mesh", "init_device_mesh": "device_mesh"}
)

__all__ = [
    "AllToAllOptions",
    "AllgatherOptions",
    "AllreduceCoalescedOptions",
    "AllreduceOptions",
    "Backend",
    "BackendConfig",
    "BarrierOptions",
    "BroadcastOptions",
    "BuiltinCommHookType",
    "DebugLevel",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "GatherOptions",
    "GradBucket",
    "GroupMember",
    "GroupName",
    "HashStore",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "QueueEmptyError",
    "ReduceOp",
    "ReduceOptions",
    "ReduceScatterOptions",
    "SHRINK_ABORT",
    "SHRINK_DEFAULT",
    "ScatterOptions",
    "Store",
    "TCPStore",
    "Work",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "default_pg_timeout",
    "destroy_process_group",
    "gather",
    "gather_into_tensor",
    "gather_object",
    "gather_single",
    "get_backend",
    "get_backend_config",
    "get_backend_impl",
    "get_debug_level",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "record_comm",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "register_rendezvous_handler",
    "rendezvous",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "set_debug_level",
    "set_debug_level_from_env",
    "set_timeout",
    "shrink_group",
    "split_group",
    "supports_complex",
]

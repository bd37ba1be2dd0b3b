"""Parts of a graph for several devices: their sizes in memory, and the time that they take.

Sizes are those of `get_size_of_all_nodes`, times are given by the program.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from enum import Enum
from typing import Dict, Iterable, List, NamedTuple, Sequence, Set

from treadle.fx.node import Node, map_arg

_GIVEN = ("placeholder", "get_attr")


def inputs_of(node: Node) -> List[Node]:
    """The nodes whose results a node takes, each once."""
    found: Dict[Node, None] = {}
    map_arg((node.args, node.kwargs), found.setdefault)
    return list(found)


class Partition:
    """Some nodes of a graph, with the parameters that they read."""

    def __init__(self, partition_id: int) -> None:
        self.nodes: Set[Node] = set()
        self.partition_id = partition_id
        self.parents: Set[Partition] = set()
        self.children: Set[Partition] = set()
        self.bfs_level = -1
        self.used_mem_bytes = 0
        self.logical_device_ids: List[int] = []

    def __str__(self) -> str:
        return str(self.partition_id)

    def recalculate_mem_size(self) -> None:
        """Count the bytes of the nodes anew."""
        self.used_mem_bytes = sum(get_extra_size_of(node, self.nodes) for node in self.nodes)

    def add_node(self, node: Node) -> None:
        """Take a node in, with the inputs of the graph and the parameters that it reads."""
        self.nodes.update(n for n in inputs_of(node) if n.op in _GIVEN)
        self.nodes.add(node)
        self.recalculate_mem_size()

    def remove_node(self, node: Node) -> None:
        """Take a node out, with what only it reads. Nothing for a node that is elsewhere."""
        if node not in self.nodes:
            return
        self.nodes.remove(node)
        for given in inputs_of(node):
            if given.op in _GIVEN and not any(user in self.nodes for user in given.users):
                self.nodes.discard(given)
        self.recalculate_mem_size()


class Device(NamedTuple):
    """A device, with the memory that it has left."""

    name: str
    available_mem_bytes: int
    logical_id: int


class NodeLatency(NamedTuple):
    """How long a node takes, in seconds: for its memory, and to compute."""

    mem_latency_sec: float
    computer_latency_sec: float


class PartitionLatency(NamedTuple):
    """How long the slowest chain of nodes of a part takes, and the sums for memory and to compute
    along it."""

    mem_latency_sec: float
    computer_latency_sec: float
    overall_latency_sec: float


class PartitionMode(Enum):
    """How a graph is cut."""

    size_based = 0
    sparse_nn = 1
    cost_aware = 2
    kl_based = 3
    aot_based = 4


class PartitionerConfig(NamedTuple):
    """The devices, how the graph is cut, and what the mode asks for."""

    devices: List[Device]
    mode: PartitionMode = PartitionMode.size_based
    transfer_rate_bytes_per_sec: float = 0.0
    node_to_latency_mapping: Dict[Node, NodeLatency] = {}  # noqa: RUF012  never written
    node_to_partition_mapping: Dict[Node, int] = {}  # noqa: RUF012
    partition_to_logical_device_mapping: Dict[int, List[int]] = {}  # noqa: RUF012
    saturate_host: bool = False


def get_extra_size_of(node: Node, nodes: Set[Node]) -> int:
    """The bytes that a node and its inputs add to those nodes. RuntimeError for a node without a
    size."""
    outside = [n for n in inputs_of(node) if n not in nodes]
    for each in (*outside, node):
        if not getattr(each, "size_bytes", None):
            raise RuntimeError(f"expected nodes with a size_bytes, got {each} without")
    own, *given = (getattr(n, "size_bytes") for n in (node, *outside))  # noqa: B009
    return own.total_size + sum(size.output_size for size in given)


def _later(latency: PartitionLatency, node: NodeLatency) -> PartitionLatency:
    memory, compute, overall = latency
    return PartitionLatency(
        memory + node.mem_latency_sec,
        compute + node.computer_latency_sec,
        overall + max(node.mem_latency_sec, node.computer_latency_sec),
    )


def get_latency_of_one_partition(
    partition: Partition, node_to_latency_mapping: Dict[Node, NodeLatency]
) -> PartitionLatency:
    """The times of the slowest chain of nodes of a part."""
    inside = {n for n in partition.nodes if n.op not in (*_GIVEN, "output")}
    slowest: Dict[Node, PartitionLatency] = {}
    nothing = PartitionLatency(0.0, 0.0, 0.0)

    def until(node: Node) -> PartitionLatency:
        if node not in slowest:
            before = (until(n) for n in inputs_of(node) if n in inside)
            longest = max(before, key=lambda p: p.overall_latency_sec, default=nothing)
            slowest[node] = _later(longest, node_to_latency_mapping[node])
        return slowest[node]

    return max(map(until, inside), key=lambda p: p.overall_latency_sec, default=nothing)


def get_partition_to_latency_mapping(
    partitions: Iterable[Partition], node_to_latency_mapping: Dict[Node, NodeLatency]
) -> Dict[Partition, PartitionLatency]:
    """The times of each part."""
    return {p: get_latency_of_one_partition(p, node_to_latency_mapping) for p in partitions}


def get_comm_latency_between(
    parent_partition: Partition, child_partition: Partition, transfer_rate_bytes_per_sec: float
) -> float:
    """How long it takes to bring the results of a part to another; nothing on the same devices."""
    devices, others = parent_partition.logical_device_ids, child_partition.logical_device_ids
    if devices and devices == others:
        return 0.0
    moved = {n for node in child_partition.nodes for n in inputs_of(node)} & parent_partition.nodes
    sizes = (n.size_bytes.output_size for n in moved if hasattr(n, "size_bytes"))
    return sum(sizes) / transfer_rate_bytes_per_sec


def get_latency_of_partitioned_graph(
    partitions: Sequence[Partition],
    partition_to_latency_mapping: Dict[Partition, PartitionLatency],
    transfer_rate_bytes_per_sec: float,
) -> float:
    """How long the slowest chain of parts takes, with what is moved between them."""
    from_here: Dict[Partition, float] = {}

    def after(part: Partition) -> float:
        if part not in from_here:
            rest = (
                get_comm_latency_between(part, child, transfer_rate_bytes_per_sec) + after(child)
                for child in part.children
            )
            own = partition_to_latency_mapping[part].overall_latency_sec
            from_here[part] = own + max(rest, default=0.0)
        return from_here[part]

    return max((after(p) for p in partitions if not p.parents), default=0.0)

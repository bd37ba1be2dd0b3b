"""Partitioner: a traced module cut into parts that fit devices.

Example:

    get_size_of_all_nodes(traced, [x])
    devices = [Device("a", 1 << 20, 0), Device("b", 1 << 20, 1)]
    found = Partitioner().partition_graph(traced, module, PartitionerConfig(devices))
    found.module_with_submodules(x)      # a call of one submodule after the other
    found.dag.nodes                      # which of them is where, and takes what from whom
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
import operator
from collections import deque
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from treadle.fx.experimental.partitioner_utils import (
    Device,
    NodeLatency,
    Partition,
    PartitionerConfig,
    PartitionMode,
    get_extra_size_of,
    get_latency_of_partitioned_graph,
    get_partition_to_latency_mapping,
    inputs_of,
)
from treadle.fx.graph_module import GraphModule
from treadle.fx.node import Node, map_arg
from treadle.fx.passes.graph_manipulation import get_size_of_all_nodes
from treadle.fx.passes.split_module import split_module

_GIVEN = ("placeholder", "get_attr")
_CALLS = ("call_module", "call_method", "call_function")


class DAGNode:
    """A submodule, whose results it takes, who takes its, and on which devices it is."""

    def __init__(
        self,
        submodule_node: Node,
        input_nodes: List[Node],
        output_nodes: List[Node],
        logical_device_ids: List[int],
        size_bytes: int,
    ) -> None:
        self.submodule_node = submodule_node
        self.input_nodes, self.output_nodes = input_nodes, output_nodes
        self.logical_device_ids, self.size_bytes = logical_device_ids, size_bytes

    def __str__(self) -> str:
        return str(self.submodule_node)


class DAG:
    """The submodules of a cut graph."""

    def __init__(self) -> None:
        self.nodes: List[DAGNode] = []

    def create_node(
        self,
        submodule_node: Node,
        input_nodes: List[Node],
        output_nodes: List[Node],
        logical_devices: List[int],
        size_bytes: int,
    ) -> None:
        """Add a submodule."""
        made = DAGNode(submodule_node, input_nodes, output_nodes, logical_devices, size_bytes)
        self.nodes.append(made)


class PartitionResult(NamedTuple):
    """The submodules, and the module that calls them."""

    dag: DAG
    module_with_submodules: GraphModule


def reset_partition_device(partitions: Sequence[Partition]) -> None:
    """Let no part be on a device."""
    for partition in partitions:
        partition.logical_device_ids = []


def combine_two_partitions(
    partition_0: Partition, partition_1: Partition, partitions: List[Partition]
) -> None:
    """Put one part with the nodes of both in place of two in the list."""
    made = Partition(len(partitions))
    made.nodes = partition_0.nodes | partition_1.nodes
    made.recalculate_mem_size()
    partitions.append(made)
    partitions.remove(partition_0)
    partitions.remove(partition_1)
    reorganize_partitions(partitions)


def set_parents_and_children(partitions: Sequence[Partition]) -> None:
    """Tell each part whose results it takes, and who takes its."""
    for partition in partitions:
        partition.parents, partition.children = set(), set()
    for one, other in itertools.permutations(partitions, 2):
        users = (user for node in one.nodes if node.op not in _GIVEN for user in node.users)
        if any(user in other.nodes for user in users):
            one.children.add(other)
            other.parents.add(one)


def reorganize_partitions(partitions: Sequence[Partition]) -> None:
    """Number the parts by their place, and find parents and children anew."""
    for i, partition in enumerate(partitions):
        partition.partition_id = i
    set_parents_and_children(partitions)


def get_bfs_level_partition(partitions: Sequence[Partition]) -> None:
    """Set the level of each part: 0 where nothing is taken from another, and else how many steps
    of a search by breadth lead to it."""
    waiting = deque((partition, 0) for partition in partitions if not partition.parents)
    seen: Set[Partition] = set()
    while waiting:
        partition, level = waiting.popleft()
        if partition not in seen:
            seen.add(partition)
            partition.bfs_level = level
            waiting.extend((child, level + 1) for child in partition.children)


def get_node_to_partition_mapping(partitions: Sequence[Partition]) -> Dict[Node, int]:
    """The number of the part of each node."""
    return {node: p.partition_id for p in partitions for node in p.nodes}


def get_logical_id_to_device(devices: Sequence[Device]) -> Dict[int, Device]:
    """The devices by their numbers."""
    return {device.logical_id: device for device in devices}


def get_device_partition_stats(
    partitions: Sequence[Partition], devices: Sequence[Device]
) -> Tuple[Dict[Device, List[Partition]], Dict[Device, int], List[Partition]]:
    """The parts on each device, the bytes that each has left, and the parts on none."""
    by_number = get_logical_id_to_device(devices)
    on: Dict[Device, List[Partition]] = {device: [] for device in devices}
    left = {device: device.available_mem_bytes for device in devices}
    for partition in partitions:
        for number in partition.logical_device_ids:
            on[by_number[number]].append(partition)
            left[by_number[number]] -= partition.used_mem_bytes
    return on, left, [p for p in partitions if not p.logical_device_ids]


def _extra_bytes(partition: Partition, beside: Sequence[Partition]) -> int:
    """The bytes that a part needs beside others on a device, whose inputs it shares."""
    nodes: Set[Node] = set().union(*(p.nodes for p in beside))
    calls = [node for node in partition.nodes if node.op not in _GIVEN]
    needed = 0
    for node in calls:
        needed += get_extra_size_of(node, nodes)
        nodes |= {node, *(n for n in inputs_of(node) if n.op in _GIVEN)}
    return needed


def get_device_to_partitions_mapping(
    partitions: Sequence[Partition], devices: Sequence[Device]
) -> bool:
    """Give each part without a device the fullest that has room for it. False where one fits
    nowhere; the parts then are on no device at all."""
    on, left, waiting = get_device_partition_stats(partitions, devices)
    for partition in waiting:
        for device in sorted(left, key=left.__getitem__):
            needed = _extra_bytes(partition, on[device])
            if needed < left[device]:
                partition.logical_device_ids.append(device.logical_id)
                on[device].append(partition)
                left[device] -= needed
                break
        else:
            reset_partition_device(partitions)
            return False
    return True


def check_dependency(partition: Partition) -> bool:
    """Whether a part takes results of its own through others: a cycle."""
    waiting = deque(partition.children)
    seen: Set[Partition] = set()
    while waiting:
        found = waiting.popleft()
        if found is partition:
            return True
        if found not in seen:
            seen.add(found)
            waiting.extend(found.children)
    return False


class Partitioner:
    """Cuts a traced module into parts, of which each fits a device."""

    def __init__(self) -> None:
        self.partitions: List[Partition] = []
        self.node_to_partition: Dict[Node, int] = {}
        self.devices: List[Device] = []
        self.graph_module: Any = None
        self.torch_module: Any = None

    def partition_graph(
        self, fx_module: GraphModule, torch_module: Any, partitioner_config: PartitionerConfig
    ) -> PartitionResult:
        """Cut the module, whose nodes have sizes (`get_size_of_all_nodes`), as the settings say.

        RuntimeError where there is no device, a node has no size, or the parts do not fit."""
        self.graph_module, self.torch_module = fx_module, torch_module
        self.devices = list(partitioner_config.devices)
        if not self.devices:
            raise RuntimeError("partition_graph: expected at least one device, got none")
        self._check_nodes()
        if partitioner_config.mode == PartitionMode.aot_based:
            self.aot_based_partition(
                partitioner_config.node_to_partition_mapping,
                partitioner_config.partition_to_logical_device_mapping,
            )
        else:
            self._cut(partitioner_config)
        if partitioner_config.saturate_host:
            self.saturate_host()
        module = self.do_partition()
        return PartitionResult(self.dump_dag(module), module)

    def _check_nodes(self) -> None:
        for node in self.graph_module.graph.nodes:
            if node.op != "output" and not getattr(node, "size_bytes", None):
                text = f"expected nodes with sizes, got {node} without"
                raise RuntimeError(f"partition_graph: {text}")

    def _cut(self, config: PartitionerConfig) -> None:
        nodes = [n for n in self.graph_module.graph.nodes if n.op != "output"]
        total = sum(n.size_bytes.total_size for n in nodes)
        sizes = [device.available_mem_bytes for device in self.devices]
        roomy = [device for device in self.devices if device.available_mem_bytes >= total]
        if roomy:
            smallest = min(roomy, key=lambda device: device.available_mem_bytes)
            self.find_single_partition(total, smallest.logical_id)
        elif total > sum(sizes):
            raise RuntimeError(
                f"partition_graph: expected devices with at least {total} bytes, got {sum(sizes)}"
            )
        elif config.mode == PartitionMode.sparse_nn:
            if len(set(sizes)) != 1:
                raise RuntimeError(
                    f"partition_graph: expected devices of one size for sparse_nn, got {sizes}"
                )
            self.sparse_nn_partition(sizes[0])
        elif config.mode == PartitionMode.cost_aware:
            self.cost_aware_partition(
                config.transfer_rate_bytes_per_sec, config.node_to_latency_mapping
            )
        elif config.mode == PartitionMode.kl_based:
            self.kl_based_partition(
                config.transfer_rate_bytes_per_sec, config.node_to_latency_mapping
            )
        else:
            self.size_based_partition()

    def _calls(self) -> Iterator[Node]:
        return (node for node in self.graph_module.graph.nodes if node.op in _CALLS)

    def create_partition(self) -> Partition:
        """A new part at the end of the list."""
        made = Partition(len(self.partitions))
        self.partitions.append(made)
        return made

    def create_single_node_partition(self, node: Node) -> None:
        """A new part of one node."""
        self.create_partition().add_node(node)

    def find_single_partition(self, total_size_of_graph: int, logical_device_id: int = 0) -> None:
        """Put the whole graph on one device."""
        partition = self.create_partition()
        for node in self.graph_module.graph.nodes:
            if node.op != "output":
                partition.nodes.add(node)
        partition.used_mem_bytes = total_size_of_graph
        partition.logical_device_ids = [logical_device_id]
        self._settle()

    def _settle(self) -> None:
        reorganize_partitions(self.partitions)
        self.node_to_partition = get_node_to_partition_mapping(self.partitions)

    def size_based_partition(self) -> None:
        """Fill one device after the other in the order of the graph; nodes that are left then come
        where there is room. RuntimeError where a node or part fits nowhere."""
        free = list(self.devices)
        partition: Optional[Partition] = None
        room = 0
        for node in self._calls():
            if partition is not None and get_extra_size_of(node, partition.nodes) <= room:
                room -= get_extra_size_of(node, partition.nodes)
                partition.add_node(node)
            elif not free:
                self.create_single_node_partition(node)
            else:
                device = self._first_with_room(free, node)
                partition = self.create_partition()
                partition.logical_device_ids.append(device.logical_id)
                room = device.available_mem_bytes - get_extra_size_of(node, set())
                partition.add_node(node)
        reorganize_partitions(self.partitions)
        self._place()

    @staticmethod
    def _first_with_room(free: List[Device], node: Node) -> Device:
        needed = get_extra_size_of(node, set())
        for device in free:
            if device.available_mem_bytes >= needed:
                free.remove(device)
                return device
        raise RuntimeError(f"partition: expected a device with {needed} bytes for {node}, got none")

    def _place(self) -> None:
        if not get_device_to_partitions_mapping(self.partitions, self.devices):
            raise RuntimeError("partition: expected parts that fit the devices, got too large ones")
        self._settle()

    def saturate_host(self) -> None:
        """Put copies of all parts on devices that are free: for each that is used, the smallest
        free one that holds as much. Nothing where one has no such partner."""
        on, _, waiting = get_device_partition_stats(self.partitions, self.devices)
        if waiting:
            raise RuntimeError("saturate_host: expected parts on devices, got one on none")
        used = {
            device: sum(p.used_mem_bytes for p in parts) for device, parts in on.items() if parts
        }
        free = sorted(
            (device for device in self.devices if device not in used),
            key=lambda device: device.available_mem_bytes,
        )
        while True:
            partners: Dict[int, int] = {}
            for device, needed in used.items():
                found = next((d for d in free if d.available_mem_bytes >= needed), None)
                if found is None:
                    return
                free.remove(found)
                partners[device.logical_id] = found.logical_id
            for partition in self.partitions:
                first = [n for n in partition.logical_device_ids if n in partners]
                partition.logical_device_ids += [partners[n] for n in first]

    def do_partition(self) -> GraphModule:
        """The module that calls a submodule for each part."""
        return split_module(
            self.graph_module, self.torch_module, lambda node: self.node_to_partition[node]
        )

    def dump_dag(self, module_with_submodules: GraphModule) -> DAG:
        """The submodules, with the nodes whose results they take, and those that hold theirs: the
        items of several results, or the call itself."""
        dag = DAG()
        for node in module_with_submodules.graph.nodes:
            if node.op != "call_module":
                continue
            partition = self.partitions[int(node.name.rsplit("_", 1)[-1])]
            items = [user for user in node.users if user.target is operator.getitem]
            dag.create_node(
                node,
                inputs_of(node),
                items or [node],
                partition.logical_device_ids,
                partition.used_mem_bytes,
            )
        return dag

    def sparse_nn_partition(self, available_mem_bytes: int) -> None:
        """Cut between embeddings and other layers, and where a device of that size is full; then
        combine parts of the same kind as far as they fit. RuntimeError where parts do not fit."""
        partition: Optional[Partition] = None
        kind: Optional[bool] = None
        for node in self._calls():
            is_embedding = self._is_embedding(node)
            needed = get_extra_size_of(node, set())
            if needed > available_mem_bytes:
                raise RuntimeError(
                    f"partition: expected a device with {needed} bytes for {node}, got none"
                )
            full = partition is None or (
                partition.used_mem_bytes + get_extra_size_of(node, partition.nodes)
                > available_mem_bytes
            )
            if full or kind != is_embedding:
                partition, kind = self.create_partition(), is_embedding
            assert partition is not None
            partition.add_node(node)
        reorganize_partitions(self.partitions)
        for wanted in (True, False):
            self._combine_kind(wanted, available_mem_bytes)
        self._place()

    def _is_embedding(self, node: Node) -> bool:
        if node.op != "call_module":
            return False
        name = type(self.graph_module.get_submodule(str(node.target))).__name__
        return name in ("Embedding", "EmbeddingBag")

    def _combine_kind(self, embeddings: bool, available: int) -> None:
        def fits(one: Partition, other: Partition) -> bool:
            trial = Partition(-1)
            trial.nodes = one.nodes | other.nodes
            trial.recalculate_mem_size()
            return trial.used_mem_bytes <= available

        def of_kind() -> List[Partition]:
            parts = self.partitions
            return [p for p in parts if any(map(self._is_embedding, p.nodes)) == embeddings]

        while True:
            pairs = itertools.combinations(of_kind(), 2)
            found = next((p for p in pairs if fits(*p) and not self._makes_cycle(*p)), None)
            if found is None:
                return
            combine_two_partitions(*found, self.partitions)

    def _makes_cycle(self, one: Partition, other: Partition) -> bool:
        partitions = list(self.partitions)
        combine_two_partitions(one, other, partitions)
        cycle = check_dependency(partitions[-1])
        reorganize_partitions(self.partitions)
        return cycle

    def _cost(
        self,
        partitions: List[Partition],
        rate: float,
        latencies: Dict[Node, NodeLatency],
    ) -> float:
        """The time of the parts on the devices; infinite where they do not fit."""
        reset_partition_device(partitions)
        if not get_device_to_partitions_mapping(partitions, self.devices):
            return float("inf")
        mapping = get_partition_to_latency_mapping(partitions, latencies)
        return get_latency_of_partitioned_graph(partitions, mapping, rate)

    def cost_aware_partition(
        self, transfer_rate_bytes_per_sec: float, node_to_latency_mapping: Dict[Node, NodeLatency]
    ) -> None:
        """Begin with one part for each node, and combine those two that save the most time, as long
        as there are any; cut by size where that leads to parts that do not fit. RuntimeError where
        those do not fit either."""

        def cost(partitions: List[Partition]) -> Tuple[float, int]:
            time = self._cost(partitions, transfer_rate_bytes_per_sec, node_to_latency_mapping)
            # Among those that take as long, or do not fit yet, the smaller.
            return time, sum(p.used_mem_bytes for p in partitions)

        for node in self._calls():
            self.create_single_node_partition(node)
        reorganize_partitions(self.partitions)
        best = cost(self.partitions)
        while len(self.partitions) > 1:
            get_bfs_level_partition(self.partitions)
            trials = [self._combined(one, other) for one, other in self._neighbours()]
            costs = [cost(trial) for trial in trials if trial is not None]
            made = [trial for trial in trials if trial is not None]
            if not costs or min(costs) > best:
                break
            best = min(costs)
            self.partitions = made[costs.index(best)]
        if best[0] == float("inf"):
            self.partitions = []
            self.size_based_partition()
            return
        reorganize_partitions(self.partitions)
        reset_partition_device(self.partitions)
        self._place()

    def _neighbours(self) -> Iterator[Tuple[Partition, Partition]]:
        for one, other in itertools.combinations(self.partitions, 2):
            near = abs(one.bfs_level - other.bfs_level) <= 1
            if near or other in one.children or one in other.children:
                yield one, other

    def _combined(self, one: Partition, other: Partition) -> Optional[List[Partition]]:
        """The parts with those two as one; None where that makes a cycle."""
        copies: List[Partition] = []
        for partition in self.partitions:
            copied = Partition(partition.partition_id)
            copied.nodes, copied.used_mem_bytes = set(partition.nodes), partition.used_mem_bytes
            copies.append(copied)
        first, second = (copies[self.partitions.index(p)] for p in (one, other))
        combine_two_partitions(first, second, copies)
        return None if check_dependency(copies[-1]) else copies

    def kl_based_partition(
        self, transfer_rate_bytes_per_sec: float, node_to_latency_mapping: Dict[Node, NodeLatency]
    ) -> None:
        """Begin with parts by size, and exchange nodes between them, or move one, where that saves
        time."""
        self.size_based_partition()
        rate, latencies = transfer_rate_bytes_per_sec, node_to_latency_mapping
        mapping = get_partition_to_latency_mapping(self.partitions, latencies)
        best = get_latency_of_partitioned_graph(self.partitions, mapping, rate)
        devices = [list(p.logical_device_ids) for p in self.partitions]

        def cost() -> float:
            reorganize_partitions(self.partitions)
            cycle = any(map(check_dependency, self.partitions))
            return float("inf") if cycle else self._cost(self.partitions, rate, latencies)

        for node in self._calls():
            home = next(p for p in self.partitions if node in p.nodes)
            choices: List[Tuple[float, Partition, Optional[Node]]] = []
            for away in self.partitions:
                if away is home:
                    continue
                for other in [*(n for n in away.nodes if n.op not in _GIVEN), None]:
                    _exchange(home, node, away, other)
                    choices.append((cost(), away, other))
                    _exchange(away, node, home, other)
            cheapest = min(choices, key=lambda choice: choice[0], default=None)
            if cheapest is not None and cheapest[0] < best:
                best = cheapest[0]
                _exchange(home, node, *cheapest[1:])
                cost()
                devices = [list(p.logical_device_ids) for p in self.partitions]
        for partition, numbers in zip(self.partitions, devices):
            partition.logical_device_ids = numbers
        self.partitions = [p for p in self.partitions if p.nodes]
        self._settle()

    def aot_based_partition(
        self,
        node_to_partition_mapping: Dict[Node, int],
        partition_to_logical_device_mapping: Dict[int, List[int]],
    ) -> None:
        """Cut as the program says: the part of each node, and the devices of each part."""
        by_number: Dict[int, Partition] = {}
        self.node_to_partition = {}
        for node in self._calls():
            number = node_to_partition_mapping[node]
            if number not in by_number:
                made = Partition(number)
                made.logical_device_ids = list(partition_to_logical_device_mapping[number])
                by_number[number] = made
            by_number[number].add_node(node)
        self.partitions = [by_number[number] for number in sorted(by_number)]
        set_parents_and_children(self.partitions)
        self.node_to_partition = get_node_to_partition_mapping(self.partitions)


def _exchange(home: Partition, node: Node, away: Partition, other: Optional[Node]) -> None:
    """Move a node to another part, and one of that part back."""
    home.remove_node(node)
    if other is not None:
        away.remove_node(other)
        home.add_node(other)
    away.add_node(node)


__all__ = [
    "DAG",
    "DAGNode",
    "PartitionResult",
    "Partitioner",
    "check_dependency",
    "combine_two_partitions",
    "get_bfs_level_partition",
    "get_device_partition_stats",
    "get_device_to_partitions_mapping",
    "get_extra_size_of",
    "get_latency_of_partitioned_graph",
    "get_logical_id_to_device",
    "get_node_to_partition_mapping",
    "get_partition_to_latency_mapping",
    "get_size_of_all_nodes",
    "map_arg",
    "reorganize_partitions",
    "reset_partition_device",
    "set_parents_and_children",
    "split_module",
]

"""fx.experimental.accelerator_partitioner: a graph cut into parts that fit devices."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

import treadle
from treadle import fx, nn
from treadle.fx.experimental import accelerator_partitioner as partitioner
from treadle.fx.experimental import partitioner_utils as utils
from treadle.fx.experimental.partitioner_utils import (
    Device,
    NodeLatency,
    PartitionerConfig,
    PartitionLatency,
    PartitionMode,
)
from treadle.fx.passes.graph_manipulation import get_size_of_all_nodes
from treadle.testing import assert_close


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = (nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        a = self.first(x)
        b = self.second(a)
        return self.third(a + b).relu()


class Embeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList([nn.EmbeddingBag(10, 4) for _ in range(3)])
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x, i):
        found = [table(i) for table in self.tables]
        return self.second(self.first(x) + found[0]) + found[1] + found[2]


X = treadle.arange(8.0).reshape(2, 4)
INDICES = treadle.zeros(2, 3, dtype=treadle.int64)


def sized(module, *args):
    gm = fx.symbolic_trace(module)
    get_size_of_all_nodes(gm, list(args))
    return gm


def devices(*sizes):
    return [Device(f"d{i}", size, i) for i, size in enumerate(sizes)]


def cut(module, args, *sizes, mode=PartitionMode.size_based, **settings):
    gm = sized(module, *args)
    times = {node: NodeLatency(1.0, 2.0) for node in gm.graph.nodes}
    made = partitioner.Partitioner()
    config = PartitionerConfig(devices(*sizes), mode, 100.0, times, **settings)
    found = made.partition_graph(gm, module, config)
    assert_close(found.module_with_submodules(*args), module(*args))
    left = dict(enumerate(sizes))
    for part in made.partitions:
        assert part.logical_device_ids
        for number in part.logical_device_ids:
            left[number] -= part.used_mem_bytes
    return made, found


def names(partition):
    return sorted(node.name for node in partition.nodes)


def test_all_on_one_device():
    made, found = cut(Layers(), [X], 100, 2000, 1000)
    assert len(made.partitions) == 1 and made.partitions[0].logical_device_ids == [2]
    (node,) = found.dag.nodes
    assert [n.name for n in node.input_nodes] == ["x"] and str(node) == "submod_0"
    assert node.output_nodes == [node.submodule_node] and node.size_bytes == 432


def test_parts_by_size():
    made, found = cut(Layers(), [X], 200, 400)
    first, second = made.partitions
    assert names(first) == ["first", "x"] and names(second) == ["add", "relu", "second", "third"]
    assert [p.logical_device_ids for p in made.partitions] == [[0], [1]]
    assert [p.used_mem_bytes for p in made.partitions] == [144, 352]
    first, second = found.dag.nodes
    assert [n.name for n in second.input_nodes] == ["submod_0"]
    assert first.logical_device_ids == [0] and second.logical_device_ids == [1]


def test_parts_of_embeddings():
    made, _ = cut(Embeddings(), [X, INDICES], 600, 600, 600, mode=PartitionMode.sparse_nn)
    parts = [[name for name in names(p) if name not in "xi"] for p in made.partitions]
    kinds = [{name.startswith("tables") for name in part} for part in parts]
    assert all(len(kind) == 1 for kind in kinds)


@pytest.mark.parametrize("mode", [PartitionMode.cost_aware, PartitionMode.kl_based])
def test_parts_by_time(mode):
    made, found = cut(Layers(), [X], 300, 400, mode=mode)
    assert sum(len(names(p)) for p in made.partitions) >= 6
    sizes = {number: 0 for number in range(2)}
    for part in made.partitions:
        sizes[part.logical_device_ids[0]] += part.used_mem_bytes
    assert sizes[0] <= 300 and sizes[1] <= 400
    assert len(found.dag.nodes) == len(made.partitions)


def test_parts_that_a_program_says():
    module = Layers()
    gm = sized(module, X)
    parts = {node: int(node.name in ("third", "relu")) for node in gm.graph.nodes}
    made = partitioner.Partitioner()
    config = PartitionerConfig(
        devices(1, 1),
        PartitionMode.aot_based,
        node_to_partition_mapping=parts,
        partition_to_logical_device_mapping={0: [0], 1: [1]},
    )
    found = made.partition_graph(gm, module, config)
    first, second = made.partitions
    assert names(first) == ["add", "first", "second", "x"] and names(second) == ["relu", "third"]
    assert made.partitions[1].parents == {made.partitions[0]}
    assert_close(found.module_with_submodules(X), module(X))


def test_copies_on_free_devices():
    made, _ = cut(Layers(), [X], 200, 400, 410, 190, saturate_host=True)
    assert [p.logical_device_ids for p in made.partitions] == [[0, 3], [1, 2]]
    made, _ = cut(Layers(), [X], 500, 500, saturate_host=True)
    assert made.partitions[0].logical_device_ids == [0, 1]


def text_of(function, *args):
    with pytest.raises(RuntimeError) as caught:
        function(*args)
    return str(caught.value)


def test_what_does_not_fit():
    def run(sizes, mode=PartitionMode.size_based):
        return cut(Layers(), [X], *sizes, mode=mode)

    assert text_of(run, []) == "partition_graph: expected at least one device, got none"
    text = "partition_graph: expected devices with at least 432 bytes, got 120"
    assert text_of(run, [60, 60]) == text
    text = "partition: expected a device with 144 bytes for first, got none"
    assert text_of(run, [100] * 5) == text
    text = "partition_graph: expected devices of one size for sparse_nn, got [250, 300]"
    assert text_of(run, [250, 300], PartitionMode.sparse_nn) == text
    module = Layers()
    gm = fx.symbolic_trace(module)
    config = PartitionerConfig(devices(1))
    text = text_of(partitioner.Partitioner().partition_graph, gm, module, config)
    assert text == "partition_graph: expected nodes with sizes, got x without"


# ---- parts and their times ----


def parts_of(gm, *groups):
    found = []
    for i, group in enumerate(groups):
        part = utils.Partition(i)
        for node in gm.graph.nodes:
            if node.name in group.split():
                part.add_node(node)
        found.append(part)
    partitioner.reorganize_partitions(found)
    return found


def test_sizes_of_parts():
    gm = sized(Layers(), X)
    by_name = {node.name: node for node in gm.graph.nodes}
    one, other = parts_of(gm, "first second", "add third relu")
    assert names(one) == ["first", "second", "x"] and one.used_mem_bytes == 32 + 112 + 112
    assert utils.get_extra_size_of(by_name["add"], set()) == 96
    assert utils.get_extra_size_of(by_name["add"], one.nodes) == 32
    one.remove_node(by_name["first"])
    assert names(one) == ["second"] and one.used_mem_bytes == 32 + 112
    one.remove_node(by_name["relu"])
    assert names(one) == ["second"] and str(other) == "1"
    fresh = fx.symbolic_trace(Layers())
    text = text_of(utils.get_extra_size_of, list(fresh.graph.nodes)[1], set())
    assert text == "expected nodes with a size_bytes, got x without"


def test_times_of_parts():
    gm = sized(Layers(), X)
    one, other = parts_of(gm, "first second", "add third relu")
    times = {node: NodeLatency(1.0, 2.0) for node in gm.graph.nodes}
    assert utils.get_latency_of_one_partition(one, times) == PartitionLatency(2.0, 4.0, 4.0)
    found = utils.get_partition_to_latency_mapping([one, other], times)
    assert found[other] == PartitionLatency(3.0, 6.0, 6.0)
    assert utils.get_comm_latency_between(one, other, 32.0) == 2.0
    assert utils.get_latency_of_partitioned_graph([one, other], found, 32.0) == 12.0
    one.logical_device_ids = other.logical_device_ids = [0]
    assert utils.get_comm_latency_between(one, other, 32.0) == 0.0


def test_relations_of_parts():
    gm = sized(Layers(), X)
    parts = parts_of(gm, "first", "second", "add third", "relu")
    first, second, third, last = parts
    assert first.children == {second, third} and last.parents == {third} and not first.parents
    partitioner.get_bfs_level_partition(parts)
    assert [p.bfs_level for p in parts] == [0, 1, 1, 2]
    assert not any(map(partitioner.check_dependency, parts))
    partitioner.combine_two_partitions(first, third, parts)
    assert [p.partition_id for p in parts] == [0, 1, 2] and partitioner.check_dependency(parts[2])
    by_node = partitioner.get_node_to_partition_mapping(parts)
    assert {node.name: i for node, i in by_node.items()}["second"] == 0


def test_devices_of_parts():
    gm = sized(Layers(), X)
    parts = parts_of(gm, "first second", "add third relu")
    both = devices(300, 400)
    assert partitioner.get_logical_id_to_device(both) == {0: both[0], 1: both[1]}
    assert partitioner.get_device_to_partitions_mapping(parts, both)
    assert [p.logical_device_ids for p in parts] == [[0], [1]]
    on, left, waiting = partitioner.get_device_partition_stats(parts, both)
    assert on[both[0]] == [parts[0]] and left[both[0]] == 300 - 256 and waiting == []
    partitioner.reset_partition_device(parts)
    assert not partitioner.get_device_to_partitions_mapping(parts, devices(300))
    assert [p.logical_device_ids for p in parts] == [[], []]

"""Meshes of processes: their groups, slices and coordinates."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import treadle
import treadle.distributed as dist
from process_groups import together
from treadle.distributed.device_mesh import DeviceMesh, _mesh_resources, init_device_mesh
from treadle.distributed.tensor import Replicate, Shard, distribute_tensor


def refused(kind: Any, call: Any) -> str:
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


def _slices(rank: int, world: int) -> None:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    assert repr(mesh) == "DeviceMesh((dp=2, tp=2), 'cpu', stride=(2, 1))"
    assert mesh.mesh.tolist() == [[0, 1], [2, 3]] and mesh.mesh.dtype == treadle.int32
    assert (mesh.ndim, mesh.shape, mesh.size(), mesh.size(1)) == (2, (2, 2), 4, 2)
    row, column = divmod(rank, 2)
    assert mesh.get_coordinate() == (row, column) and mesh.get_rank() == rank
    assert mesh.get_local_rank("dp") == row and mesh.get_local_rank(1) == column

    tp, dp = mesh["tp"], mesh["dp"]
    assert tp.mesh.tolist() == [2 * row, 2 * row + 1] and tp.mesh_dim_names == ("tp",)
    assert dp.mesh.tolist() == [column, column + 2]
    assert dist.get_process_group_ranks(tp.get_group()) == tp.mesh.tolist()
    assert dist.get_process_group_ranks(mesh.get_group("dp")) == dp.mesh.tolist()
    assert mesh.get_all_groups() == [dp.get_group(), tp.get_group()]
    assert mesh["dp", "tp"] is mesh and tp.get_local_rank() == column
    total = treadle.tensor([rank])
    dist.all_reduce(total, group=tp.get_group())
    assert total.item() == sum(tp.mesh.tolist())
    assert [m.mesh.tolist() for m in mesh._get_all_submeshes("tp")] == [[0, 1], [2, 3]]

    flat = mesh._flatten("all")
    assert flat.mesh.tolist() == [0, 1, 2, 3] and mesh["all"] is flat
    assert mesh._flatten("all") is flat and flat.get_local_rank() == rank
    assert mesh.get_group("all") is flat.get_group()
    again = flat._unflatten(0, (2, 2), ("a", "b"))
    assert again["b"].mesh.tolist() == tp.mesh.tolist()
    assert dist.get_process_group_ranks(again["a"].get_group()) == dp.mesh.tolist()
    assert DeviceMesh._concatenate([dp, tp]) == mesh

    loaded = pickle.loads(pickle.dumps(mesh))
    assert loaded == mesh and hash(loaded) == hash(mesh) and copy.deepcopy(mesh) is mesh
    assert dist.get_process_group_ranks(loaded.get_group("tp")) == tp.mesh.tolist()
    sent = [mesh, distribute_tensor(treadle.arange(4.0), mesh, [Replicate(), Replicate()])]
    dist.broadcast_object_list(sent, src=0)  # the mesh of another process has this one's place
    assert sent[0].get_coordinate() == (row, column) and sent[0].get_rank() == rank
    assert sent[1].redistribute(placements=[Shard(0), Shard(0)]).to_local().tolist() == [rank]

    made = DeviceMesh.from_group(tp.get_group(), "cpu")
    assert made.mesh.tolist() == tp.mesh.tolist() and made.get_local_rank() == column
    groups = mesh.get_all_groups()
    both = DeviceMesh.from_group(groups, "cpu", mesh.mesh, mesh_dim_names=("dp", "tp"))
    assert both == mesh and both["tp"].get_group() is tp.get_group()
    with mesh:
        assert _mesh_resources.get_current_mesh() is mesh
    assert "No device mesh" in refused(RuntimeError, _mesh_resources.get_current_mesh)
    half = DeviceMesh("cpu", [0, 1])
    assert half.get_coordinate() == ((rank,) if rank < 2 else None)
    _errors(mesh, flat)


def _errors(mesh: DeviceMesh, flat: DeviceMesh) -> None:
    assert refused(RuntimeError, mesh.get_group) == (
        "get_group: expected mesh_dim for a mesh of 2 dimensions, got None"
    )
    assert refused(KeyError, lambda: mesh["pp"]).strip("\"'") == (
        "Invalid mesh_dim_names ('pp',) specified. Valid mesh_dim_names are ['dp', 'tp', 'all']."
    )
    assert "ascending order" in refused(KeyError, lambda: mesh["tp", "dp"])
    assert refused(IndexError, lambda: mesh.get_group(2)) == (
        "get_group: expected mesh_dim in [-2, 2), got 2"
    )
    assert "does not exist" not in refused(KeyError, lambda: mesh.get_local_rank("pp"))
    assert refused(ValueError, lambda: mesh._flatten("tp")) == (
        "_flatten: expected a name that the mesh has not, of ('dp', 'tp'), got 'tp'"
    )
    assert refused(ValueError, lambda: flat._unflatten(0, (3, 2), ("a", "b"))) == (
        "_unflatten: expected sizes whose product is 4, got (3, 2)"
    )
    assert refused(ValueError, lambda: DeviceMesh.from_group([], "cpu")) == (
        "Expects at least one ProcessGroup to be passed"
    )
    assert "Invalid mesh [5]" in refused(
        ValueError, lambda: DeviceMesh.from_group(flat.get_group(), "cpu", [5])
    )


def test_slices() -> None:
    together(4, _slices)


def test_arguments_that_are_refused() -> None:
    make = init_device_mesh
    assert "must be unique" in refused(
        RuntimeError, lambda: make("cpu", (1, 1), mesh_dim_names=("a", "a"))
    )
    assert "should have same length" in refused(
        RuntimeError, lambda: make("cpu", (1, 1), mesh_dim_names=("a",))
    )
    assert "Device type with index" in refused(RuntimeError, lambda: make("cpu:0", (1,)))
    assert refused(RuntimeError, lambda: make("cpu", (1,), backend_override={3: "gloo"})) == (
        "Found invalid keys in backend_override: got [3], expected integers in range [0, 1) or one "
        "of ()"
    )
    bare = {"_init_backend": False, "_rank": 0}
    assert refused(ValueError, lambda: DeviceMesh("cpu", [0, 0], **bare)) == (
        "DeviceMesh: expected different ranks, got [0, 0]"
    )
    assert refused(ValueError, lambda: DeviceMesh("cpu", [[1, 0]], **bare)) == (
        "DeviceMesh: expected ascending ranks along each dimension, got [[1, 0]]"
    )
    assert refused(
        ValueError, lambda: DeviceMesh("cpu", [0], preserve_rank_order=True, **bare)
    ) == (
        "DeviceMesh: expected preserve_rank_order = False, as groups list their ranks in ascending "
        "order, got True"
    )
    mesh = DeviceMesh("cpu", [[0, 1]], mesh_dim_names=("a", "b"), **bare)
    assert refused(RuntimeError, lambda: mesh.get_group(0)) == (
        "DeviceMesh process groups not initialized!"
    )

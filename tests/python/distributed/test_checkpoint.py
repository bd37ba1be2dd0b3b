"""Checkpoints of several processes: the format, damaged and hostile files, saves that are killed,
and errors that all processes get."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import io
import os
import pickle
import pickletools
import random
import signal
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

import treadle
import treadle.distributed as dist
from child_processes import Child
from process_groups import together
from treadle import nn
from treadle.distributed import checkpoint as dcp
from treadle.distributed.checkpoint import _metadata_file, format_utils
from treadle.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys

pytestmark = pytest.mark.filterwarnings("ignore:save. the checkpoint in")


def _state(value: float = 1.0) -> dict:
    return {
        "model": nn.Linear(3, 2).state_dict(),
        "values": [treadle.full((2, 3), value), {"half": treadle.ones(3).half()}],
        "scalar": treadle.tensor(value),
        "empty": treadle.empty(0, 4),
        "step": 7,
        "text": ["a", ("b", 1.5)],
        "column": treadle.arange(6.0).view(2, 3)[:, 1],
    }


def _zeros(state: Any) -> Any:
    if isinstance(state, treadle.Tensor):
        return treadle.zeros_like(state)
    if isinstance(state, dict):
        return {key: _zeros(value) for key, value in state.items()}
    return [_zeros(value) for value in state] if isinstance(state, list) else None


def _expect_same(found: Any, expected: Any) -> None:
    treadle.testing.assert_close(found, expected, rtol=0, atol=0)


def _causes(error: dcp.CheckpointException) -> list:
    return [str(cause) for cause, _ in error.failures.values()]


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    state = _state()
    writer = dcp.FileSystemWriter(tmp_path, thread_count=3)
    metadata = dcp.save(state, storage_writer=writer)
    assert sorted(os.listdir(tmp_path)) == [".metadata", *(f"__0_{n}.distcp" for n in range(3))]
    assert metadata.planner_data["values.1.half"] == ("values", 1, "half")
    state["model"] = dict(state["model"])
    found = _zeros(state)
    kept = found["scalar"]
    dcp.load(found, checkpoint_id=tmp_path)
    assert found["scalar"] is kept  # tensors are filled in place
    _expect_same(found, state)
    _expect_same(_load_state_dict_from_keys(checkpoint_id=tmp_path), state)
    some = _load_state_dict_from_keys({"model", "step"}, checkpoint_id=tmp_path)
    _expect_same(some, {"model": state["model"], "step": 7})
    # As one file, and from one; a file for each piece; another dtype.
    format_utils.dcp_to_torch_save(tmp_path, tmp_path / "whole.pt")
    _expect_same(treadle.load(tmp_path / "whole.pt"), state)
    format_utils.torch_save_to_dcp(tmp_path / "whole.pt", tmp_path / "again")
    _expect_same(_load_state_dict_from_keys(checkpoint_id=tmp_path / "again"), state)
    dcp.save(state, storage_writer=dcp.FileSystemWriter(tmp_path / "many", False, False))
    assert len(os.listdir(tmp_path / "many")) == len(metadata.storage_data) + 1
    wide = {"scalar": treadle.zeros((), dtype=treadle.float64)}
    dcp.load(wide, checkpoint_id=tmp_path / "many")
    assert wide["scalar"].dtype == treadle.float64 and wide["scalar"] == 1


def test_objects_with_a_state(tmp_path: Path) -> None:
    class Counter:
        count = 3

        def state_dict(self) -> dict:
            return {"count": self.count}

        def load_state_dict(self, state: dict) -> None:
            self.count = state["count"]

    model, counter = nn.Linear(2, 2), Counter()
    future = dcp.async_save({"model": model, "counter": counter}, checkpoint_id=tmp_path)
    weight = model.weight.detach().clone()
    with treadle.no_grad():
        model.weight.zero_()
    counter.count = 0
    assert future.result().version == "1.0.0"
    dcp.load({"model": model, "counter": counter}, checkpoint_id=tmp_path)
    assert counter.count == 3 and treadle.equal(model.weight, weight)
    # Keys that are not there may be passed by.
    more = {"model": model.state_dict(), "new": 5}
    dcp.load(more, checkpoint_id=tmp_path, planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert more["new"] == 5


def test_file_has_the_names_of_pytorch(tmp_path: Path) -> None:
    dcp.save({"w": treadle.ones(2)}, checkpoint_id=tmp_path)
    content = (tmp_path / ".metadata").read_bytes()
    names = {arg for op, arg, _ in pickletools.genops(content) if op.name == "GLOBAL"}
    module = "torch.distributed.checkpoint.metadata "
    assert names == {
        *(module + name for name in ("Metadata", "MetadataIndex", "StorageMeta")),
        *(module + name for name in ("TensorStorageMetadata", "ChunkStorageMetadata")),
        *(module + name for name in ("TensorProperties", "_MEM_FORMAT_ENCODING")),
        "torch.distributed.checkpoint.filesystem _StorageInfo",
        "torch Size",
        "torch float32",
        "torch.serialization _get_layout",
    }


def _expect_refused(path: Path, text: str, state: Any = None) -> None:
    with pytest.raises(dcp.CheckpointException) as raised:
        dcp.load({"w": treadle.zeros(4)} if state is None else state, checkpoint_id=path)
    (cause,) = _causes(raised.value)
    assert text in cause, cause


def _changed(path: Path, change: Callable[[Any], None]) -> None:
    """Write the metadata again, changed."""
    name = path / ".metadata"
    metadata = _metadata_file.load(name.read_bytes(), str(name))
    change(metadata)
    with open(name, "wb") as file:
        _metadata_file.dump(metadata, file)


def test_hostile_files(tmp_path: Path) -> None:
    dcp.save({"w": treadle.arange(4.0), "v": 3}, checkpoint_id=tmp_path)
    content, data = (tmp_path / ".metadata").read_bytes(), (tmp_path / "__0_0.distcp").read_bytes()
    marker = tmp_path / "ran"

    class Evil:
        def __reduce__(self) -> Any:
            return (os.mkdir, (str(marker),))

    def info_of(metadata: Any) -> Any:
        return next(v for k, v in metadata.storage_data.items() if k.fqn == "w")

    def with_info(**values: Any) -> Callable[[Any], None]:
        def change(metadata: Any) -> None:
            for name, value in values.items():
                setattr(info_of(metadata), name, value)

        return change

    def with_size(size: tuple, chunk: tuple) -> Callable[[Any], None]:
        def change(metadata: Any) -> None:
            saved = metadata.state_dict_metadata["w"]
            saved.size, saved.chunks[0].sizes = treadle.Size(size), treadle.Size(chunk)

        return change

    metadata = f"load: expected the metadata of a checkpoint in {tmp_path}/.metadata, got others ("
    changes = [
        (with_info(relative_path="../__0_0.distcp"), metadata),
        (with_info(relative_path="/etc/passwd"), metadata),
        (with_info(offset=-1), metadata),
        (with_info(length=True), metadata),
        (with_info(length=15), "expected at least 16 bytes for 'w' of shape (4,), got 15"),
        (
            with_info(length=10**12),
            f"expected {10**12} bytes from 445 on in {tmp_path}/__0_0.distcp",
        ),
        (with_info(offset=200), "expected a tensor in"),
        (with_info(transform_descriptors=["zstd"]), "transformed by ['zstd']"),
        (with_size((10**15,), (10**15,)), "expected at least 4000000000000000 bytes"),
        (with_size((4,), (5,)), "expected the boxes of 'w' in the shape (4,)"),
        (lambda m: m.state_dict_metadata.update(w=5), "expected what 'w' is"),
        (lambda m: setattr(m, "storage_data", {}), "expected where 'w' lies"),
        (lambda m: setattr(m, "planner_data", {"w": ()}), "expected paths of text"),
    ]
    for change, text in changes:
        _changed(tmp_path, change)
        _expect_refused(tmp_path, text)
        (tmp_path / ".metadata").write_bytes(content)
    for bad in (pickle.dumps(Evil()), content[:-9], b"", content.replace(b"Metadata", b"Metbdata")):
        (tmp_path / ".metadata").write_bytes(bad)
        _expect_refused(tmp_path, metadata)
    (tmp_path / ".metadata").write_bytes(content)
    assert not marker.exists()
    # Paths that ask for long lists.
    _changed(tmp_path, lambda m: m.planner_data.update(w=("l", 10**9)))
    with pytest.raises(dcp.CheckpointException, match="expected a place in"):
        _load_state_dict_from_keys(checkpoint_id=tmp_path)
    (tmp_path / ".metadata").write_bytes(content)
    # Data that is cut off, or has something else in it.
    (tmp_path / "__0_0.distcp").write_bytes(data[:-100])
    _expect_refused(tmp_path, "got a file of")
    (tmp_path / "__0_0.distcp").write_bytes(bytes(len(data)))
    _expect_refused(
        tmp_path, f"expected a tensor in {tmp_path}/__0_0.distcp for 'w', got something"
    )
    _expect_refused(tmp_path, "load: expected a value for the key 'v'; ", {"v": 0})
    shorter = io.BytesIO()
    treadle.save(treadle.ones(2), shorter)
    (tmp_path / "__0_0.distcp").write_bytes(shorter.getvalue().ljust(len(data), b"\0"))
    _changed(tmp_path, with_info(offset=0, length=len(shorter.getvalue())))
    _expect_refused(tmp_path, "expected a tensor of at least (4,)")
    os.remove(tmp_path / "__0_0.distcp")
    _expect_refused(tmp_path, "No such file")


def test_errors(tmp_path: Path) -> None:
    dcp.save({"w": treadle.ones(2, 3), "v": 3}, checkpoint_id=tmp_path)
    _expect_refused(tmp_path, "load: expected the key 'x' in the checkpoint, got none", {"x": 1})
    _expect_refused(
        tmp_path,
        "load: expected a tensor of shape (2, 3) for 'w', as in the checkpoint, got shape (3, 2)",
        {"w": treadle.ones(3, 2)},
    )
    _expect_refused(
        tmp_path, "load: expected a tensor for 'w', as in the checkpoint, got int", {"w": 1}
    )
    _expect_refused(tmp_path / "nowhere", "No such file or directory")
    for function, name in ((dcp.save, "storage_writer"), (dcp.load, "storage_reader")):
        with pytest.raises(RuntimeError, match=f"expected checkpoint_id or {name}, got neither"):
            function({})
        with pytest.raises(ValueError, match="that the package fsspec knows, got 'none://a/b'"):
            function({}, checkpoint_id="none://a/b")
    with pytest.raises(dcp.CheckpointException, match="where overwrite=False, got one"):
        dcp.save({}, storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False))
    with pytest.raises(dcp.CheckpointException, match="expected one value for 'a.b'"):
        dcp.save({"a": {"b": 1}, "a.b": 2}, checkpoint_id=tmp_path)
    with pytest.raises(ValueError, match="expected thread_count > 0, got 0"):
        dcp.FileSystemWriter(tmp_path, thread_count=0)
    with pytest.warns(FutureWarning, match="use save"):
        dcp.save_state_dict({"a": 1}, dcp.FileSystemWriter(tmp_path / "old"), no_dist=True)


def test_planners(tmp_path: Path) -> None:
    class Renaming(dcp.DefaultSavePlanner):
        def set_up_planner(self, state_dict: dict, storage_meta: Any, is_coordinator: bool) -> None:
            state_dict = {"new." + key: value for key, value in state_dict.items()}
            super().set_up_planner(state_dict, storage_meta, is_coordinator)

        def transform_object(self, write_item: Any, object: Any) -> Any:
            object = super().transform_object(write_item, object)
            return object * 2 if isinstance(object, treadle.Tensor) else object

    dcp.save({"w": treadle.ones(2)}, checkpoint_id=tmp_path, planner=Renaming())
    found = {"new.w": treadle.zeros(2)}
    dcp.load(found, checkpoint_id=tmp_path, planner=dcp.DefaultLoadPlanner())
    assert found["new.w"].tolist() == [2, 2]
    # Plans that are the same as before are not made again; those that changed are.
    for state in ({"a": 1, "b": treadle.ones(2)}, {"a": 2, "b": treadle.ones(2) * 5}, {"c": 4}):
        planner = dcp.DefaultSavePlanner(enable_plan_caching=True)
        dcp.save(state, checkpoint_id=tmp_path, planner=planner)
        _expect_same(_load_state_dict_from_keys(checkpoint_id=tmp_path), state)
    # Checkpoints before PyTorch 2.4 have dictionaries without tensors as one value.
    state = {"options": {"lr": 1, "names": {"x": 2}}, "w": treadle.ones(1)}
    flat = dcp.DefaultSavePlanner(flatten_state_dict=False)
    dcp.save(state, checkpoint_id=tmp_path, planner=flat)
    found = {"options": {"lr": 0, "names": {"x": 0}}, "w": treadle.zeros(1)}
    dcp.load(found, checkpoint_id=tmp_path)
    _expect_same(found, state)


def test_metadata_of_older_versions(tmp_path: Path) -> None:
    """Properties of five values, and classes that were elsewhere."""
    dcp.save({"w": treadle.ones(2)}, checkpoint_id=tmp_path)
    name = tmp_path / ".metadata"
    content = name.read_bytes()
    for old, new in (
        (b"TensorProperties", b"TensorProperties"),
        (b"_MEM_FORMAT_ENCODING", b"MEM_FORMAT_ENCODING"),
    ):
        place = b"ctorch.distributed.checkpoint.metadata\n" + old + b"\n"
        assert place in content
        moved = b"ctorch.distributed._shard.sharded_tensor.metadata\n" + new + b"\n"
        content = content.replace(place, moved)
    metadata = _metadata_file.load(content, "old")
    assert metadata.state_dict_metadata["w"].properties.dtype == treadle.float32
    properties = metadata.state_dict_metadata["w"].properties
    other = dataclasses.replace(properties)
    other.__setstate__(properties.__getstate__()[:5])
    assert other.strides is None and other.dtype == treadle.float32


# ---- saves that are killed ----


def _save(path: str, value: int) -> None:
    dcp.save({"a": treadle.full((64, 64), float(value)), "n": value}, checkpoint_id=path)


def _steps_of_a_save(path: str) -> int:
    """How many functions are called or return in a save."""
    count = [0]

    def step(*event: Any) -> None:
        count[0] += 1

    sys.setprofile(step)
    _save(path, 0)
    sys.setprofile(None)
    return count[0]


def _killed_at(path: str, value: int, place: int) -> None:
    """Save, until so many functions were called or returned."""
    left = [place]

    def step(*event: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(step)
    _save(path, value)


def test_a_killed_save_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    path, chance = str(tmp_path), random.Random(5)
    _save(path, 0)
    steps, before, outcomes = _steps_of_a_save(path), 0, set()
    for value, place in enumerate([1, steps - 5, *(chance.randrange(1, steps) for _ in range(12))]):
        process = Child(_killed_at, path, value + 1, place, method="fork")
        assert process.end() in (0, -signal.SIGKILL)
        found = {"a": treadle.zeros(64, 64), "n": -1}
        dcp.load(found, checkpoint_id=path)
        assert found["a"].unique().tolist() == [found["n"]]
        assert found["n"] in (before, value + 1)
        outcomes.add(found["n"] == before)
        before = found["n"]
    assert outcomes == {True, False}
    _save(path, 0)
    assert len(os.listdir(path)) == 2  # what the killed ones left is gone


# ---- several processes ----


class _Failing(dcp.DefaultSavePlanner):
    def transform_object(self, write_item: Any, object: Any) -> Any:
        if dist.get_rank() == 1 and write_item.index.fqn == "w":
            raise OSError("no space left")
        return super().transform_object(write_item, object)


class _Unsendable(Exception):
    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} {b}")


class _FailingToLoad(dcp.DefaultLoadPlanner):
    def create_local_plan(self) -> Any:
        if dist.get_rank() == 1:
            raise _Unsendable(1, 2)
        return super().create_local_plan()


def _several(rank: int, world: int, path: str) -> None:
    from treadle.distributed.device_mesh import init_device_mesh
    from treadle.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (world,))
    whole = treadle.arange(35.0).view(5, 7)
    state = {
        "w": distribute_tensor(whole, mesh, [Shard(0)]),
        "copies": [distribute_tensor(whole + n, mesh, [Replicate()]) for n in range(4)],
        "same": treadle.ones(100),
        "rank": rank,
    }
    metadata = dcp.save(state, checkpoint_id=path)
    files = [info.relative_path for info in metadata.storage_data.values()]
    # What all have is written once, and by turns.
    assert len(files) == 2 + 4 + 2 and {f[:4] for f in files} == {"__0_", "__1_"}
    found = {
        "w": distribute_tensor(treadle.zeros(5, 7), mesh, [Shard(1)]),
        "copies": [distribute_tensor(treadle.zeros(5, 7), mesh, [Shard(0)]) for _ in range(4)],
        "same": treadle.zeros(100),
        "rank": -1,
    }
    dcp.load(found, checkpoint_id=path)
    for tensor, expected in zip(
        [found["w"], *found["copies"]], [whole, *(whole + n for n in range(4))]
    ):
        _expect_same(tensor.full_tensor(), expected)
    assert found["same"].sum() == 100

    # One fails, all raise, and the old checkpoint is there.
    with pytest.raises(dcp.CheckpointException) as raised:
        dcp.save({"w": state["w"] + 1, "rank": -5}, checkpoint_id=path, planner=_Failing())
    assert list(raised.value.failures) == [1] and "OSError: no space left" in str(raised.value)
    assert "(RANK 1)" in str(raised.value) and "transform_object" in str(raised.value)
    with pytest.raises(dcp.CheckpointException, match="RuntimeError: _Unsendable: 1 2"):
        dcp.load(found, checkpoint_id=path, planner=_FailingToLoad())
    dcp.load(found, checkpoint_id=path)
    _expect_same(found["w"].full_tensor(), whole)

    # In a thread, beside other communication; each process for itself; from one file.
    future = dcp.async_save({"w": state["w"], "n": 1}, checkpoint_id=path + "/later")
    for _ in range(10):
        dist.all_reduce(treadle.ones(3))
    future.result()
    dcp.load(found, checkpoint_id=path)
    dcp.save({"mine": rank}, checkpoint_id=path + "/own", use_collectives=False)
    assert f"__{rank}.metadata" in os.listdir(path + "/own")
    mine = {"mine": -1}
    dcp.load(mine, checkpoint_id=path + "/own")
    assert mine == {"mine": rank}
    if rank == 0:
        treadle.save({"w": whole * 3}, path + "/whole.pt")
    dcp.load(
        found_w := {"w": found["w"]},
        checkpoint_id=path + "/whole.pt",
        storage_reader=format_utils.BroadcastingTorchSaveReader(),
        planner=format_utils.DynamicMetaLoadPlanner(),
    )
    _expect_same(found_w["w"].full_tensor(), whole * 3)
    partial = distribute_tensor(whole, mesh, [Replicate()]).to_local()
    with pytest.raises(dcp.CheckpointException, match="partial"):
        from treadle.distributed.tensor import DTensor, Partial

        dcp.save({"p": DTensor.from_local(partial, mesh, [Partial()])}, checkpoint_id=path + "/p")


def test_several_processes(tmp_path: Path) -> None:
    together(2, _several, str(tmp_path))
    found = {"w": treadle.zeros(5, 7)}
    dcp.load(found, checkpoint_id=tmp_path)
    _expect_same(found["w"], treadle.arange(35.0).view(5, 7))

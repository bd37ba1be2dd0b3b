"""Checkpoints elsewhere than in PyTorch's folders: Hugging Face's files, addresses of fsspec; and
saves that another process writes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from test_checkpoint import _causes, _expect_same

import treadle
import treadle.distributed as dist
from process_groups import together
from treadle.distributed import checkpoint as dcp
from treadle.distributed.checkpoint.staging import DefaultStager, StagingOptions
from treadle.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys
from treadle.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
from treadle.utils import safetensors

pytestmark = pytest.mark.filterwarnings("ignore:save. the checkpoint in")
Reader, Writer = dcp.HuggingFaceStorageReader, dcp.HuggingFaceStorageWriter


def _refused(text: str, function: Any, *args: Any, **options: Any) -> None:
    with pytest.raises(dcp.CheckpointException) as raised:
        function(*args, **options)
    (cause,) = _causes(raised.value)
    assert text in cause, cause


def test_whole_tensors_in_files_of_safetensors(tmp_path: Path) -> None:
    weight = treadle.arange(6.0).view(2, 3)
    state = {"model": {"a": weight, "b": weight, "c": treadle.ones(3).bfloat16()}}
    files = {"model.a": 1, "model.b": 2, "model.c": 2}
    dcp.save(state, storage_writer=Writer(tmp_path, files, thread_count=2))
    names = [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    assert sorted(os.listdir(tmp_path)) == [*names, "model.safetensors.index.json"]
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert index["metadata"] == {"total_size": 54}
    assert index["weight_map"] == {key: names[number - 1] for key, number in files.items()}
    _expect_same(safetensors.load_file(tmp_path / names[0]), {"model.a": weight})
    found = {"model": {"a": treadle.zeros(2, 3), "c": treadle.zeros(3)}}
    dcp.load(found, storage_reader=Reader(tmp_path, thread_count=2))
    _expect_same(found, {"model": {"a": weight, "c": treadle.ones(3)}})
    # Files that others wrote say nothing of boxes.
    safetensors.save_file({"x": treadle.ones(2)}, tmp_path / "other.safetensors")
    whole = _load_state_dict_from_keys("x", storage_reader=Reader(tmp_path))
    _expect_same(whole, {"x": treadle.ones(2)})


def test_errors_of_files_of_safetensors(tmp_path: Path) -> None:
    def load(header: Any) -> Any:
        said = {"DCP_SHARDING_INFO": header if isinstance(header, str) else json.dumps(header)}
        safetensors.save_file({"w": treadle.ones(2, 3)}, tmp_path / "w.safetensors", said)
        return lambda: _load_state_dict_from_keys(storage_reader=Reader(tmp_path))

    _refused("expected files of safetensors in", dcp.load, {}, storage_reader=Reader(tmp_path))
    begin = "load: expected where the box of 'w' begins in w.safetensors"
    for offsets in ([0], [0, -1], [0, True], [0, 1.5], "00", None):
        _refused(begin, load({"w": {"saved_offsets": offsets}}))
    _refused(begin, load([1]))
    _refused("load: expected JSON as DCP_SHARDING_INFO in w.safetensors, got", load("{nonsense"))
    # The rest of the tensor is nowhere: no memory is taken for it.
    filled = "expected boxes that fill each tensor once, got w: boxes of 6 elements for the shape"
    _refused(filled, load({"w": {"saved_offsets": [10**9, 10**9]}}))
    load({"w": {"saved_offsets": [0, 0]}})
    other = {"w": treadle.ones(6)}
    safetensors.save_file(other, tmp_path / "v.safetensors")
    _refused("expected boxes of one tensor for 'w' in", load({"w": {"saved_offsets": [0, 0]}}))
    _refused(
        "save: expected only tensors, got another value for 'n'",
        dcp.save,
        {"n": 3},
        storage_writer=Writer(tmp_path),
    )
    _refused(
        "save: expected a file for 'n' in fqn_to_index_mapping, got none",
        dcp.save,
        {"n": treadle.ones(1)},
        storage_writer=Writer(tmp_path, {"m": 1}),
    )
    with pytest.raises(ValueError, match="expected save_distributed=True with enable_consolidat"):
        Writer(tmp_path, enable_consolidation=True)
    with pytest.raises(ValueError, match="expected thread_count_consolidation > 0, got 0"):
        Writer(tmp_path, thread_count_consolidation=0)
    with pytest.raises(ValueError, match="Reader: expected thread_count > 0, got 0"):
        Reader(tmp_path, 0)


_FSSPEC = '''
"""As much of the package fsspec as a folder needs."""
import os, shutil
class Folder:
    def __init__(self, root): self.root = root
    def _at(self, path): return self.root + str(path).removeprefix("some://")
    def open(self, path, mode): return open(self._at(path), mode)
    def rename(self, old, new): os.replace(self._at(old), self._at(new))
    def makedirs(self, path, exist_ok): os.makedirs(self._at(path), exist_ok=exist_ok)
    def exists(self, path): return os.path.exists(self._at(path))
    def rm(self, path): os.unlink(self._at(path))
    def ls(self, path, detail): return [f"{path}/{name}" for name in os.listdir(self._at(path))]
def url_to_fs(path, root=None):
    if not path.startswith("some://"):
        raise ValueError("unknown protocol")
    return Folder(root or os.environ["FOLDER"]), path
'''


def test_addresses_of_fsspec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "packages" / "fsspec"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "core.py").write_text(_FSSPEC)
    for name in ("fsspec", "fsspec.core"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setenv("FOLDER", f"{tmp_path}/first_")
    state = {"w": treadle.arange(4.0), "n": {"step": 3}}
    for _ in range(2):
        dcp.save(state, checkpoint_id="some://a")
    assert sorted(os.listdir(tmp_path / "first_a")) == [".metadata", "__0_1.distcp"]
    found = {"w": treadle.zeros(4), "n": {"step": 0}}
    dcp.load(found, checkpoint_id="some://a")
    _expect_same(found, state)
    second = {"root": f"{tmp_path}/second_"}  # settings of the address
    dcp.save(state, storage_writer=dcp.FsspecWriter("some://a", thread_count=2, **second))
    _expect_same(
        _load_state_dict_from_keys(storage_reader=dcp.FsspecReader("some://a", **second)), state
    )
    assert dcp.FsspecReader.validate_checkpoint_id("some://b")
    assert not dcp.FsspecWriter.validate_checkpoint_id("other://b")
    assert not dcp.FsspecWriter.validate_checkpoint_id(tmp_path)
    with pytest.raises(ValueError) as raised:
        dcp.load({}, checkpoint_id="other://b")
    assert str(raised.value) == (
        "load: expected checkpoint_id to be a folder, or an address that the package fsspec knows, "
        "got 'other://b'; give a storage_reader for other places"
    )
    # Half a file does not stay.
    files = dcp.FsspecWriter("some://a").fs
    with pytest.raises(ZeroDivisionError), files.create_stream("some://a/half", "wb"):
        1 / 0  # noqa: B018
    assert not files.exists("some://a/half")


# ---- two processes ----


def _spread(value: float) -> dict:
    from treadle.distributed.device_mesh import init_device_mesh
    from treadle.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (2,))
    whole = treadle.arange(15.0).view(5, 3) * value
    return {
        "rows": distribute_tensor(whole.clone(), mesh, [Shard(0)]),
        "list": [distribute_tensor(whole.clone(), mesh, [Shard(1)])],
        "copies": distribute_tensor(whole.clone(), mesh, [Replicate()]),
    }


def _expect_spread(found: dict, value: float) -> None:
    whole = treadle.arange(15.0).view(5, 3) * value
    for tensor in (found["rows"], *found["list"], found["copies"]):
        _expect_same(tensor.full_tensor(), whole)


def _boxes(rank: int, path: str) -> None:
    shards, whole = f"{path}/shards", f"{path}/whole"
    dcp.save(_spread(1), storage_writer=Writer(shards, save_distributed=True))
    files = {"rows": 2, "list.0": 1, "copies": 1}
    dcp.save(_spread(1), storage_writer=Writer(whole, files, 1, True, True, 2))
    shard = "shard-0000{}-model-00001-of-00001.safetensors"
    assert sorted(os.listdir(shards)) == [shard.format(1), shard.format(2)]
    for place in (shards, whole, f"{whole}/sharded"):
        found = _spread(0)
        dcp.load(found, storage_reader=Reader(place))
        _expect_spread(found, 1)
    _refused(
        "save: expected one process to save where save_distributed=False, got tensors of 2",
        dcp.save,
        _spread(1),
        storage_writer=Writer(f"{path}/bad"),
    )


class _Unpicklable:
    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> Any:
        raise TypeError("stays here")


def _process(rank: int, path: str) -> None:
    """Saves of another process: the program may change what it saved; errors come back."""
    process = {"async_checkpointer_type": AsyncCheckpointerType.PROCESS}
    shared = DefaultStager(StagingOptions(use_shared_memory=True))
    saves = []
    for number in (1, 2):
        state = {**_spread(number), "number": number, "plain": treadle.full((3,), float(number))}
        options: dict = {"async_stager": shared} if number == 2 else {}
        place = f"{path}/process_{number}"
        saves.append(dcp.async_save(state, checkpoint_id=place, **process, **options))
        state["plain"].zero_()
        state["rows"].to_local().zero_()
    for number, save in enumerate(saves, 1):
        assert "list.0" in save.result(60).state_dict_metadata
        found = {**_spread(0), "number": 0, "plain": treadle.zeros(3)}
        dcp.load(found, checkpoint_id=f"{path}/process_{number}")
        _expect_spread(found, number)
        assert found["number"] == number and found["plain"].tolist() == [number] * 3
    for collectives in (True, False):
        state = {"bad": _Unpicklable() if rank else 1}
        failed = dcp.async_save(
            state, checkpoint_id=path, use_collectives=collectives, **process
        ).exception(60)
        assert isinstance(failed, dcp.CheckpointException)
        assert "a planner that can be pickled, got TypeError: stays here" in str(failed)
    with pytest.raises(ValueError, match="to be an AsyncCheckpointerType, got 'process'"):
        dcp.async_save({}, checkpoint_id=path, async_checkpointer_type="process")  # type: ignore
    # A process that has ended says so.
    from treadle.distributed.checkpoint import _background_process

    saver = _background_process._savers[dist.group.WORLD]
    saver._process.kill()
    failed = dcp.async_save({"n": 1}, checkpoint_id=path, **process).exception(60)
    assert str(failed) == (
        "async_save: expected an answer of the process that saves, but it has ended with exit code "
        "-9"
    )


def _two(rank: int, world: int, path: str) -> None:
    _boxes(rank, path)
    _process(rank, path)


def test_two_processes(tmp_path: Path) -> None:
    together(2, _two, str(tmp_path))

"""Names that programs mention and that do not work here: they import, and say what is missing."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import abc
import importlib
import pickle
import subprocess
import sys
from typing import Optional

import pytest

import treadle
import treadle.nn
from treadle._names.table import MISSING, MOVED_MODULES

PAGE = "see docs/coming-from-pytorch.md"


def test_a_module_of_names_imports_and_its_classes_are_refused_when_they_are_used() -> None:
    from treadle.distributed._shard.sharded_tensor import Shard, ShardedTensor
    from treadle.distributed.collective_utils import all_gather

    name = "treadle.distributed._shard.sharded_tensor"
    assert sys.modules[name].ShardedTensor is ShardedTensor
    with pytest.raises(NotImplementedError) as error:
        ShardedTensor(1, device=2)
    reason = "only the name exists: the parts of process groups are others"
    assert str(error.value) == f"{name}.ShardedTensor: {reason}; {PAGE}"
    with pytest.raises(NotImplementedError) as error:
        all_gather(treadle.zeros(2))
    called = "treadle.distributed.collective_utils.all_gather"
    assert str(error.value) == f"{called}: {reason}; {PAGE}"
    with pytest.raises(AttributeError) as missing:
        Shard.from_local(1)
    assert str(missing.value) == f"{name}.Shard: {reason}; {PAGE} (asked for its from_local)"


def test_such_a_class_serves_where_a_program_only_mentions_it() -> None:
    from treadle.distributed.algorithms._checkpoint.checkpoint_wrapper import (
        CheckpointImpl,
        CheckpointWrapper,
    )
    from treadle.distributed.fsdp import FlatParameter

    assert not isinstance(treadle.nn.Linear(2, 2), (FlatParameter, CheckpointWrapper))
    assert not hasattr(FlatParameter, "data")
    assert FlatParameter[int] is FlatParameter
    assert Optional[FlatParameter] == Optional[FlatParameter]
    assert CheckpointImpl.NO_REENTRANT.name == "NO_REENTRANT"

    class Both(treadle.nn.Module, FlatParameter): ...

    class Abstract(FlatParameter, abc.ABC): ...

    assert issubclass(Both, FlatParameter) and Both.__name__ == "Both"
    refused = r"^treadle\.distributed\.fsdp\.FlatParameter: only"
    with pytest.raises(NotImplementedError, match=refused):
        Abstract()


def test_modules_with_older_names_are_the_others() -> None:
    import treadle.nn.quantized
    import treadle.quantization.observer

    import treadle.distributed._tensor
    from treadle.distributed.tensor.placement_types import Shard

    assert treadle.quantization is treadle.ao.quantization
    assert treadle.quantization.observer is treadle.ao.quantization.observer
    assert treadle.nn.quantized is treadle.ao.nn.quantized
    assert treadle.distributed._tensor.Shard is treadle.distributed.tensor.Shard is Shard


def test_exceptions_can_be_caught() -> None:
    from treadle.package import PackagingError

    from treadle.jit import Error

    assert issubclass(Error, RuntimeError) and issubclass(PackagingError, RuntimeError)
    try:
        raise ValueError("another")
    except (Error, PackagingError, ValueError) as error:
        assert str(error) == "another"


def test_a_name_that_is_in_no_row_is_missing() -> None:
    with pytest.raises(ImportError):
        importlib.import_module("treadle.distributed.tensors")
    with pytest.raises(ImportError):
        from treadle.distributed.tensor import NoSuchName  # noqa: F401
    assert not hasattr(treadle.distributed, "no_such_name")
    assert not hasattr(treadle, "DTensor")


def _run(program: str) -> str:
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_every_row_imports_as_torch() -> None:
    program = """
import importlib
import treadle.run
treadle.run.install()
from treadle._names import mentioned
from treadle._names.table import MISSING, VALUES
for modules in MISSING.values():
    for path, names in modules.items():
        module = importlib.import_module(f"torch.{path}".rstrip("."))
        for name in names.split():
            value = getattr(module, name)
            assert value is getattr(module, name), (path, name)
            assert f"Only a name: {path}.{name}".replace(": .", ": ") in value.__doc__, (path, name)
for full in VALUES:
    path, _, name = full.rpartition(".")
    assert hasattr(importlib.import_module(f"torch.{path}"), name), full
"""
    assert _run(program) == ""


def test_no_row_is_there_twice_or_stands_for_something_that_works() -> None:
    seen = set()
    for reason, modules in MISSING.items():
        assert len(reason) > 10 and not reason.endswith(".")
        for path, names in modules.items():
            module = importlib.import_module(f"treadle.{path}".rstrip("."))
            for name in names.split():
                assert (path, name) not in seen, (path, name)
                seen.add((path, name))
                value = module.__dict__.get(name)
                full = f"{path}.{name}".lstrip(".")
                assert value is None or full in getattr(value, "__doc__", ""), full


def test_under_the_name_of_torch_messages_speak_of_it_and_nothing_is_loaded_early() -> None:
    program = """
import sys
import treadle.run
treadle.run.install()
import torch
assert "treadle._names.mentioned" not in sys.modules
import torch.distributed._shard.sharded_tensor as sharded
from torch.distributed._shard.sharded_tensor import ShardedTensor
import torch.ao.quantization
import torch.ao.nn.quantizable
from torch._C._distributed_rpc import _is_current_rpc_agent_set
assert _is_current_rpc_agent_set() is False
name = "distributed._shard.sharded_tensor"
assert sys.modules[f"torch.{name}"] is sys.modules[f"treadle.{name}"] is sharded
assert ShardedTensor.__module__ == f"torch.{name}"
try:
    torch.ao.nn.quantizable.LSTM()
except NotImplementedError as error:
    print(error)
"""
    assert _run(program) == (
        "torch.ao.nn.quantizable.LSTM: only the name exists: quantization has no such function, "
        f"layer or observer; {PAGE}\n"
    )


def test_placements_are_values() -> None:
    from treadle.distributed.tensor import Partial, Placement, Replicate, Shard, _StridedShard

    assert Shard(1) == Shard(1) != Shard(0) and len({Shard(1), Shard(1), Replicate()}) == 2
    assert Shard(1).is_shard() and Shard(1).is_shard(1) and not Shard(1).is_shard(0)
    assert Replicate().is_replicate() and not Shard(0).is_replicate()
    assert Partial().is_partial("sum") and not Partial("avg").is_partial("sum")
    assert isinstance(_StridedShard(0, split_factor=2), Placement)
    texts = [str(p) for p in (Shard(-1), Replicate(), Partial(), _StridedShard(0, split_factor=2))]
    assert texts == ["S(-1)", "R", "P(sum)", "_S(0, 2)"]
    with pytest.raises(TypeError, match="Shard: expected dim to be an int, got str"):
        Shard("rows")


def test_pickles_may_name_modules_that_were_moved() -> None:
    """Only the module differs in a pickle's text: `c` is the opcode of a name."""
    for module, name in (
        ("_dtypes", "finfo"),
        ("_facts", "qscheme"),
        ("_linear_algebra", "einsum"),
        ("_tags", "Tag"),
        ("backends._streams", "Stream"),
    ):
        found = pickle.loads(f"ctreadle.{module}\n{name}\n.".encode())
        assert found is getattr(treadle, name)
    for module in MOVED_MODULES:
        assert importlib.import_module(f"treadle.{module}").__name__ != f"treadle.{module}"


def test_pickles_name_the_public_place_of_values() -> None:
    for value in (treadle.finfo(treadle.float32), treadle.SUM):
        assert f"treadle\n{type(value).__name__}\n".encode() in pickle.dumps(value, 0)
    scheme = treadle.per_tensor_affine
    assert b"treadle\nper_tensor_affine\n" in pickle.dumps(scheme, 0)
    assert pickle.loads(pickle.dumps(scheme)) is scheme

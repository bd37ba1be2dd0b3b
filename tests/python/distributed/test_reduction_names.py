"""Functions of PyTorch's that take tensors apart for other processes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import tempfile
from typing import Any

import pytest

import treadle
from treadle.multiprocessing import reductions


def test_identities() -> None:
    with tempfile.TemporaryFile() as file, open(os.devnull) as other:
        again = os.dup(file.fileno())
        assert reductions.fd_id(again) == reductions.fd_id(file.fileno())
        assert reductions.fd_id(other.fileno()) != reductions.fd_id(again)
        os.close(again)
    x = treadle.zeros(3)
    one = reductions.StorageWeakRef(x.untyped_storage())
    assert one == reductions.StorageWeakRef(x[1:].storage()) and hash(one) == one.cdata
    assert one != reductions.StorageWeakRef(treadle.zeros(3).untyped_storage()) and one != 3
    with pytest.raises(NotImplementedError) as error:
        one.expired()
    assert str(error.value) == "StorageWeakRef.expired: a storage does not tell when it goes"
    cache = reductions.SharedCache()
    cache.free_dead_references()
    cache[1] = one
    with pytest.raises(NotImplementedError):
        cache.free_dead_references()
    assert reductions.storage_from_cache(treadle.UntypedStorage, 1) is None
    assert reductions.shared_cache == {}


def test_storages() -> None:
    x = treadle.arange(6.0)
    rebuild, arguments = reductions.reduce_typed_storage(x.storage())
    assert rebuild(*arguments).tolist() == x.tolist()
    child = treadle.FloatStorage
    made = reductions.rebuild_typed_storage_child(x.untyped_storage(), child)
    assert made.tolist() == x.tolist() and made.dtype == treadle.float32
    _, (memory, kind) = reductions.reduce_typed_storage_child(made)
    assert memory.nbytes() == 24 and kind is type(made)
    assert reductions.rebuild_storage_empty(treadle.UntypedStorage).nbytes() == 0

    class Handle:
        def detach(self) -> int:
            return os.dup(x.untyped_storage()._share_fd_cpu_()[0])

    found = reductions.rebuild_storage_fd(treadle.UntypedStorage, Handle(), 24)
    x[0] = 7.0
    assert reductions.rebuild_typed_storage(found, treadle.float32).tolist()[0] == 7.0


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="there is no folder of shared memory")
def test_memory_by_its_name() -> None:
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.write(bytes(range(8)))
        file.flush()
        name = f"/{os.path.basename(file.name)}".encode()
        arguments: Any = (treadle.UntypedStorage, b"", name, 8)
        assert reductions.rebuild_storage_filename(*arguments).tolist() == list(range(8))
        arguments = (treadle.UntypedStorage, b"", name, 2, treadle.int32)
        assert reductions.rebuild_storage_filename(*arguments).tolist() == [0x03020100, 0x07060504]


def test_tensors() -> None:
    x = treadle.arange(6.0)
    made = reductions.rebuild_tensor(treadle.nn.Parameter, x.storage(), (1, (2, 2), (3, 1), True))
    assert isinstance(made, treadle.nn.Parameter) and made.tolist() == [[1.0, 2.0], [4.0, 5.0]]
    meta = reductions.rebuild_meta_tensor(
        treadle.Tensor, (2, 3), (3, 1), 0, treadle.float32, 24, True
    )
    assert meta.is_meta and tuple(meta.shape) == (2, 3) and meta.requires_grad
    sparse = treadle.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2))
    rebuild, arguments = reductions.reduce_sparse_tensor(sparse)
    assert rebuild(*arguments).to_dense().tolist() == [[0.0, 1.0], [2.0, 0.0]]
    parts = [x.reshape(2, 3), x[:3].reshape(1, 3)]
    rebuild, arguments = reductions.reduce_nested_tensor(treadle.nested.nested_tensor(parts))
    assert [part.tolist() for part in rebuild(*arguments)] == [part.tolist() for part in parts]


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_sparse_tensors_are_rebuilt_from_their_parts(layout: str) -> None:
    sparse = treadle.eye(2).to_sparse(layout=getattr(treadle, layout))
    rebuild, arguments = reductions.reduce_sparse_tensor(sparse)
    made = rebuild(*arguments)
    assert made.layout is sparse.layout and made.to_dense().tolist() == [[1, 0], [0, 1]]


def test_what_is_refused() -> None:
    place: Any = (treadle.Tensor, (2,), (1,), 0, treadle.UntypedStorage, treadle.float32)
    rest: Any = (True, None, 0, None, False)
    with pytest.raises(NotImplementedError) as error:
        reductions.rebuild_cuda_tensor(*place, 0, b"handle", 8, 0, *rest)
    assert str(error.value) == (
        "rebuild_cuda_tensor: expected a tensor on the cpu, got one on 0, whose memory processes "
        "do not share; send tensor.cpu() instead"
    )
    with pytest.raises(NotImplementedError) as error:
        reductions.reduce_sparse_tensor(treadle.ones(2))
    assert str(error.value) == (
        "reduce_sparse_tensor: expected a sparse layout, got treadle.strided"
    )
    with pytest.raises(AttributeError):
        reductions.nothing  # noqa: B018

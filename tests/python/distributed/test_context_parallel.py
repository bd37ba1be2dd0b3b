"""context_parallel: attention over sequences in parts gives what one process gives."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from typing import Any, List

import pytest

import treadle
import treadle.nn.functional as F  # noqa: N812
from simulated_mesh import on_mesh
from treadle import nn
from treadle.distributed.device_mesh import DeviceMesh
from treadle.distributed.tensor.debug import CommDebugMode
from treadle.distributed.tensor.experimental import context_parallel
from treadle.distributed.tensor.experimental._attention import (
    _cp_options,
    context_parallel_unshard,
    set_rotate_method,
)
from treadle.utils.checkpoint import checkpoint

attention_itself = F.scaled_dot_product_attention


@pytest.fixture(params=["allgather", "alltoall"])
def rotation(request: Any) -> Any:
    set_rotate_method(request.param)
    yield request.param
    set_rotate_method("allgather")


def refused(kind: Any, call: Any) -> str:
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


def inputs(length: int, heads: int, dtype: Any) -> List[Any]:
    """Query, key and value of two sequences, and a gradient of the result."""
    treadle.manual_seed(length)
    shapes = [(2, 4, length, 6), (2, heads, length, 6), (2, heads, length, 5), (2, 4, length, 5)]
    return [treadle.randn(shape, dtype=treadle.float64).to(dtype) for shape in shapes]


@pytest.mark.parametrize("world", [1, 2, 3])
def test_results_and_gradients(world: int, rotation: str) -> None:
    """For lengths with and without two chunks for each process, and with shared heads."""
    cases = []
    for length in (4 * world, 3 * world):
        for causal in (True, False):
            for heads, dtype in ((4, treadle.float64), (2, treadle.float32), (4, treadle.bfloat16)):
                *leaves, weight = inputs(length, heads, dtype)
                options = {"is_causal": causal, "scale": 0.3, "enable_gqa": heads < 4}
                for leaf in leaves:
                    leaf.requires_grad_()
                wanted = F.scaled_dot_product_attention(*leaves, **options)
                gradients = treadle.autograd.grad(wanted, leaves, weight)
                start = [leaf.detach() for leaf in (*leaves, weight)]
                cases.append((start, options, (wanted.detach(), *gradients)))

    def run(mesh: DeviceMesh) -> None:
        for start, options, expected in cases:
            parts = [tensor.clone() for tensor in start]
            with context_parallel(mesh, buffers=parts, buffer_seq_dims=[2] * 4):
                assert parts[0].shape[2] == start[0].shape[2] // world
                mine = [part.clone().requires_grad_() for part in parts[:3]]
                found = F.scaled_dot_product_attention(*mine, **options)
                found.backward(parts[3])
            assert all(treadle.equal(part, tensor) for part, tensor in zip(parts, start))
            results = [found.detach(), *(leaf.grad for leaf in mine)]
            whole = context_parallel_unshard(mesh, results, [2] * 4)
            is_narrow = start[0].dtype == treadle.bfloat16
            bound = {"rtol": 0.02, "atol": 0.02} if is_narrow else {}
            for result, value in zip(whole, expected):
                assert result.dtype == start[0].dtype
                treadle.testing.assert_close(result, value, **bound)

    on_mesh(world, run)


class Model(nn.Module):
    """A layer of attention over tokens, with positions."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(9, 8)
        self.register_buffer("positions", treadle.linspace(-1, 1, 64).reshape(8, 8))
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 9)

    def forward(self, tokens: Any) -> Any:
        x = self.embedding(tokens) + self.positions
        q, k, v = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(x + mixed.transpose(1, 2).flatten(2))


class Encoder(Model):
    """The same with layers of the library, computed again in backward()."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, tokens: Any) -> Any:
        x = self.embedding(tokens) + self.positions

        def block(x: Any) -> Any:
            mixed, _ = self.layer(x, x, x, need_weights=False)
            return F.scaled_dot_product_attention(*([(x + mixed).unsqueeze(1)] * 3)).squeeze(1)

        return self.out(checkpoint(block, x, use_reentrant=False))


@pytest.mark.parametrize("kind", [Model, Encoder])
def test_a_model_trains_as_in_one_process(kind: Any, rotation: str) -> None:
    treadle.manual_seed(0)
    start = kind()
    tokens, targets = treadle.randint(0, 9, (2, 3, 8)).unbind()

    def loss_of(model: Any, tokens: Any, targets: Any) -> Any:
        return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten(), reduction="sum")

    alone = copy.deepcopy(start)
    loss_of(alone, tokens, targets).backward()

    def run(mesh: DeviceMesh) -> Any:
        model = copy.deepcopy(start)
        data = [tokens.clone(), targets.clone(), model.positions]
        with context_parallel(
            mesh, buffers=data, buffer_seq_dims=[1, 1, 0], no_restore_buffers={data[1]}
        ):
            with CommDebugMode() as comm:
                loss_of(model, data[0], data[1]).backward()
        name = "all_gather_into_tensor" if rotation == "allgather" else "all_to_all_single"
        assert comm.get_comm_counts()[name] > 0
        assert data[0].shape == (3, 8) and data[1].shape == (3, 4)
        place = mesh.get_local_rank()
        assert treadle.equal(data[1], treadle.cat([targets.chunk(4, 1)[i] for i in
                                                   (place, 3 - place)], 1))  # fmt: skip
        return [parameter.grad for parameter in model.parameters()]

    for *parts, wanted in zip(*on_mesh(2, run), alone.parameters()):
        if wanted.grad is None:
            assert parts == [None, None]
            continue
        treadle.testing.assert_close(sum(parts), wanted.grad, rtol=1e-4, atol=1e-5)


def test_blocks_without_buffers_and_without_balance() -> None:
    q = treadle.arange(8.0).reshape(1, 1, 8, 1)
    wanted = F.scaled_dot_product_attention(q, q, q, is_causal=True)

    def run(mesh: DeviceMesh) -> None:
        part = q.chunk(2, 2)[mesh.get_local_rank()]
        with context_parallel(mesh):
            found = F.scaled_dot_product_attention(part, part, part, is_causal=True)
        assert treadle.allclose(found, wanted.chunk(2, 2)[mesh.get_local_rank()])

    _cp_options.enable_load_balance = False
    try:
        on_mesh(2, run)
    finally:
        _cp_options.enable_load_balance = True


def test_what_is_refused() -> None:
    mesh = DeviceMesh("cpu", [0, 1], _init_backend=False, _rank=0)
    plane = DeviceMesh("cpu", [[0, 1]], _init_backend=False, _rank=0)
    x = treadle.ones(1, 1, 4, 2)

    def block(mesh: Any, call: Any = lambda: None, **options: Any) -> None:
        with context_parallel(mesh, **options):
            call()

    def attention(*args: Any, **options: Any) -> Any:
        return lambda: F.scaled_dot_product_attention(*args, **options)

    assert refused(ValueError, lambda: block(plane)) == (
        "context_parallel: expected a mesh of one dimension, got 2"
    )
    assert refused(ValueError, lambda: block(mesh, buffers=[x], buffer_seq_dims=[])) == (
        "`seq_dims` must have the same number of elements as `buffers`."
    )
    options = {"buffers": [x], "buffer_seq_dims": [2], "no_restore_buffers": {x + 1}}
    assert refused(ValueError, lambda: block(mesh, **options)) == (
        "`no_restore_buffers` must be a subset of `buffers`."
    )
    bad = {"buffers": [treadle.ones(2, 5)], "buffer_seq_dims": [1]}
    assert refused(ValueError, lambda: block(mesh, **bad)) == (
        "context_parallel: expected buffers whose sequences divide into 2 chunks, got dimension 1 "
        "of the shape (2, 5)"
    )
    assert refused(NotImplementedError, lambda: block(mesh, attention(x, x, x, dropout_p=0.5))) == (
        "scaled_dot_product_attention: expected attn_mask = None and dropout_p = 0 in "
        "context_parallel(), got None and 0.5"
    )
    assert refused(ValueError, lambda: block(mesh, attention(x[..., :3, :], x, x))) == (
        "scaled_dot_product_attention: expected query, key and value of one even length in "
        "context_parallel(), got [3, 4, 4]"
    )
    assert refused(NotImplementedError, lambda: set_rotate_method("ring")) == (
        "Context Parallel does not support using ring for kv shards rotation"
    )
    assert refused(ValueError, lambda: context_parallel_unshard(mesh, [x], [2], object())) == (
        "context_parallel_unshard: expected load_balancer = None, got object"
    )
    assert refused(ValueError, lambda: context_parallel_unshard(mesh, [x], [])) == (
        "context_parallel_unshard: expected a dimension for each of 1 buffers, got 0"
    )
    assert F.scaled_dot_product_attention is attention_itself  # blocks have ended

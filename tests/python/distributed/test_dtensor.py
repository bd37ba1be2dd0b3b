"""DTensor: how it is spread, where its gradients are, and what programs do with it."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import gc
import io
import itertools
import pickle
from typing import Any

import pytest

import treadle
from process_groups import together
from simulated_mesh import on_mesh
from treadle import nn
from treadle.distributed import tensor as spread
from treadle.distributed.device_mesh import DeviceMesh, init_device_mesh
from treadle.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    _StridedShard,
    distribute_module,
    distribute_tensor,
)
from treadle.distributed.tensor._utils import (
    compute_global_tensor_shape,
    compute_local_shape_and_global_offset,
)
from treadle.distributed.tensor.debug import CommDebugMode, explain, visualize_sharding
from treadle.distributed.tensor.experimental import (
    implicit_replication,
    local_map,
    register_sharding,
)

aten = treadle.ops.aten


def refused(kind: Any, call: Any) -> str:
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


# ---- placements ----


@pytest.mark.parametrize("shape", [(2,), (3,), (2, 2)])
def test_every_change_of_placements(shape: Any) -> None:
    cuts: list = [Shard(0), Shard(1), Replicate()]
    if len(shape) == 2:
        cuts.append(_StridedShard(0, split_factor=2))
    parts = [Partial(), Partial("max"), Partial("avg"), Partial("product")][: 4 // len(shape)]
    x = treadle.arange(5 * 3.0).reshape(5, 3)

    def run(mesh: DeviceMesh) -> None:
        for source in itertools.product([*cuts, *parts], repeat=mesh.ndim):
            if len({p.reduce_op for p in source if p.is_partial()}) > 1:
                continue
            first = distribute_tensor(x, mesh, source)
            assert treadle.equal(first.full_tensor(), x), source
            for target in itertools.product(cuts, repeat=mesh.ndim):
                second = first.redistribute(placements=target)
                assert second.placements == target and second.shape == (5, 3)
                assert second._local_tensor.shape == second._spec.local_shape()
                assert treadle.equal(second.full_tensor(), x), (source, target)
            if not first._spec.sums:
                third = (
                    first.redistribute(placements=[Partial()] * mesh.ndim)
                    if all(isinstance(p, (Shard, _StridedShard)) for p in source)
                    else first
                )
                assert treadle.equal(third.full_tensor(), x)

    on_mesh(shape, run)


def test_shapes_and_offsets() -> None:
    def at(rank: int, shape: Any, placements: Any, of: Any) -> Any:
        ranks = treadle.arange(of[0] * of[1]).reshape(of)
        mesh = DeviceMesh("cpu", ranks, _init_backend=False, _rank=rank)
        return compute_local_shape_and_global_offset(shape, mesh, placements)

    nested = [Shard(0), Shard(0)]
    found = [at(rank, (7, 2), nested, (2, 2)) for rank in range(4)]
    assert found == [((2, 2), (0, 0)), ((2, 2), (2, 0)), ((2, 2), (4, 0)), ((1, 2), (6, 0))]
    strided = [_StridedShard(0, split_factor=2), Shard(0)]
    found = [at(rank, (8,), strided, (2, 2)) for rank in range(4)]
    assert found == [((2,), (0,)), ((2,), (4,)), ((2,), (2,)), ((2,), (6,))]
    assert at(3, (2,), [Shard(0), Replicate()], (4, 1)) == ((0,), (2,))
    assert at(1, (2, 3), [Replicate(), Shard(1)], (2, 2)) == ((2, 1), (0, 2))
    mesh = DeviceMesh("cpu", [5, 6], _init_backend=False, _rank=0)
    assert compute_local_shape_and_global_offset((4,), mesh, [Shard(0)]) == ((0,), ())


def test_what_it_is() -> None:
    def run(mesh: DeviceMesh) -> None:
        x = treadle.arange(6.0).reshape(3, 2)
        d = distribute_tensor(x, mesh, [Shard(-2)])
        assert (d.shape, d.stride(), d.dtype, d.device.type) == ((3, 2), (2, 1), x.dtype, "cpu")
        assert d.placements == (Shard(0),) and d.device_mesh is mesh and not d.requires_grad
        if mesh.get_rank():
            assert repr(d) == (
                "DTensor(local_tensor=tensor([[4., 5.]]), device_mesh=DeviceMesh((2,), 'cpu', "
                "stride=(1,)), placements=(Shard(dim=0),))"
            )
        assert str(d._spec) == "Spec(f32[3, 2](S(0)))" and d._spec.num_shards_map == [2, 1]
        assert d._spec.dim_map == [0, -1] and d._spec.sums == [] and d._spec.num_shards == 2
        copied = copy.deepcopy(d)
        assert copied._local_tensor is not d._local_tensor
        for made in (pickle.loads(pickle.dumps(d)), copied, d.clone(), d.detach()):
            assert type(made) is DTensor and made._spec == d._spec
            assert treadle.equal(made._local_tensor, d._local_tensor)
        assert treadle.equal(DTensor.from_local(d.to_local(), mesh, [Replicate()]).to_local(),
                             d.to_local())  # fmt: skip
        assert compute_global_tensor_shape(d.to_local().shape, mesh, [Shard(0)]) == (3, 2)
        assert distribute_tensor(d, mesh, [Shard(0)]) is d

    on_mesh(2, run)


def test_decisions_about_calls_keep_neither_meshes_nor_tensors() -> None:
    from treadle.distributed import ProcessGroup
    from treadle.distributed.tensor import _decision

    def run(mesh: DeviceMesh) -> None:
        x = distribute_tensor(treadle.rand(4, 4), mesh, [Shard(0)])
        x + x, x.sum(0), x.t(), x @ x
        assert len(_decision._decisions) >= 4
        seen, left = set(), [*_decision._decisions.items()]
        while left:
            value = left.pop()
            assert not isinstance(value, (DeviceMesh, treadle.Tensor, ProcessGroup))
            if isinstance(value, (tuple, list, dict, frozenset, set, _decision.Decision)):
                left += [each for each in gc.get_referents(value) if id(each) not in seen]
                seen |= {id(each) for each in left}

    on_mesh(2, run)


def test_one_process_may_print() -> None:
    """Printing sends nothing."""

    def run(mesh: DeviceMesh) -> None:
        x = distribute_tensor(treadle.arange(4.0), mesh, [Shard(0)])
        row, total = x[1:], x.sum()
        whole = distribute_tensor(treadle.tensor(1.25), mesh, [Replicate()])
        x.add_(1)
        if mesh.get_local_rank():
            return
        text = "device_mesh=DeviceMesh((2,), 'cpu', stride=(1,)), placements=("
        part = f"DTensor(local_tensor=1.0, {text}Partial(sum),))"
        assert f"{total}" == str(total) == repr(total) == part
        assert f"{x}" == f"DTensor(local_tensor=tensor([1., 2.]), {text}Shard(dim=0),))"
        assert f"{row}" == f"DTensor(local_tensor=tensor([1., 2., 3.]), {text}Replicate(),))"
        assert f"{whole:.1f}" == "1.2"
        assert refused(TypeError, lambda: f"{total:.2f}") == (
            "DTensor: expected an empty format, as other processes have parts of the tensor, got "
            "'.2f'; full_tensor(), called in all processes, has the numbers"
        )

    on_mesh(2, run)


def test_parts_of_sums_and_of_means() -> None:
    def run(mesh: DeviceMesh) -> None:
        local = treadle.arange(4.0) + mesh.get_rank()
        parts = DTensor.from_local(local, mesh, [Partial("avg"), Partial("sum")])
        assert treadle.equal((2 * parts + 1).full_tensor(), 4 * treadle.arange(4.0) + 7)
        message = "from_local: expected parts that are reduced in one way, got ['max', 'sum']"
        mixed = [Partial("max"), Partial("sum")]
        assert refused(ValueError, lambda: DTensor.from_local(local, mesh, mixed)) == message

    on_mesh((2, 2), run)


def test_uneven_tensors_from_local() -> None:
    def run(mesh: DeviceMesh) -> None:
        local = treadle.full((1 + (mesh.get_rank() == 0), 2), float(mesh.get_rank()))
        d = DTensor.from_local(local, mesh, [Shard(0)], shape=(3, 2), stride=(2, 1))
        assert d.full_tensor().tolist() == [[0, 0], [0, 0], [1, 1]]
        same = DTensor.from_local(local[:1], mesh, [Replicate()], run_check=True)
        assert same.to_local().tolist() == [[0, 0]]

    on_mesh(2, run)


# ---- gradients ----


def test_gradients_through_both_worlds() -> None:
    def run(mesh: DeviceMesh) -> None:
        rank = mesh.get_rank()
        local = treadle.ones(2, 4, requires_grad=True)
        d = DTensor.from_local(local, mesh, [Shard(0)])
        assert d.requires_grad and d.shape == (4, 4) and not d.is_leaf
        columns = d.redistribute(placements=[Shard(1)]).to_local()
        (columns * (rank + 1)).sum().backward()
        assert local.grad.tolist() == [[1, 1, 2, 2]] * 2  # type: ignore[union-attr]

        parts = treadle.ones(2, requires_grad=True)
        whole = DTensor.from_local(parts, mesh, [Partial()]).redistribute(placements=[Replicate()])
        (whole.to_local() * 3).sum().backward()
        assert parts.grad.tolist() == [3, 3]  # type: ignore[union-attr]

        leaf = distribute_tensor(treadle.arange(3.0), mesh, [Shard(0)]).requires_grad_()
        full = leaf.full_tensor(grad_placements=[Partial()])
        (full * (rank + 1)).sum().backward()
        assert leaf.grad.placements == (Shard(0),)  # type: ignore[union-attr]
        assert leaf.grad.full_tensor().tolist() == [3, 3, 3]  # type: ignore[union-attr]

        x = distribute_tensor(treadle.arange(3.0), mesh, [Shard(0)]).requires_grad_()
        (first,) = treadle.autograd.grad((x**3).sum(), x, create_graph=True)
        (second,) = treadle.autograd.grad(first.sum(), x)
        assert second.full_tensor().tolist() == [0, 6, 12]

    on_mesh(2, run)


def test_dtypes_of_communication() -> None:
    def run(mesh: DeviceMesh) -> None:
        x = distribute_tensor(treadle.ones(4), mesh, [Shard(0)]).requires_grad_()
        y = x.redistribute(
            placements=[Replicate()], forward_dtype=treadle.bfloat16, backward_dtype=treadle.float64
        )
        assert y.dtype == treadle.bfloat16
        y.float().sum().backward()
        assert x.grad.dtype == treadle.float32  # type: ignore[union-attr]

    on_mesh(2, run)


# ---- operators ----


def test_placements_of_results() -> None:
    def run(mesh: DeviceMesh) -> None:
        x = treadle.arange(16.0).reshape(4, 4)
        rows, columns = (distribute_tensor(x, mesh, [Shard(d)]) for d in (0, 1))
        whole = distribute_tensor(x, mesh, [Replicate()])
        cases = {
            "pointwise": (rows + 1, Shard(0)),
            "broadcast": (rows + whole[0], Shard(0)),
            "sum": (rows.sum(), Partial()),
            "sum of rows": (rows.sum(1), Shard(0)),
            "mean": (rows.mean(0), Partial("avg")),
            "largest": (rows.amax(0), Partial("max")),
            "any": ((rows > 3).any(0), Partial("max")),
            "product of rows": (rows @ whole, Shard(0)),
            "product of columns": (whole @ columns, Shard(1)),
            "contraction": (columns @ rows, Partial()),
            "linear operator of parts": ((columns @ rows) * 2, Partial()),
            "other operator of parts": ((columns @ rows).relu(), Replicate()),
            "transposed": (rows.t(), Shard(1)),
            "flattened": (rows.flatten(), Shard(0)),
            "unflattened": (rows.view(2, 2, 4), Shard(0)),
            "new dimension": (rows.unsqueeze(0), Shard(1)),
            "softmax elsewhere": (rows.softmax(1), Shard(0)),
            "softmax along": (rows.softmax(0), Replicate()),
            "joined": (treadle.cat([rows, rows], 1), Shard(0)),
            "like": (treadle.zeros_like(rows), Shard(0)),
            "split": (rows.split(2, 1)[1], Shard(0)),
            "sorted": (rows.sort(1)[0], Shard(0)),
        }
        for name, (found, placement) in cases.items():
            assert found.placements == (placement,), (name, found.placements)
        with CommDebugMode() as comm:
            (rows @ whole).relu().sum(1)
        assert comm.get_total_counts() == 0

    on_mesh(2, run)


def test_explanations() -> None:
    def run(mesh: DeviceMesh) -> Any:
        x = distribute_tensor(treadle.ones(4, 4), mesh, [Shard(0)])
        return explain(lambda: x.transpose(0, 1).mm(x).relu())

    assert on_mesh(2, run)[0].splitlines() == [
        "aten.transpose.int: S(0) = S(1)",
        "aten.mm.default: S(1), S(0) = P(sum)",
        "aten.relu.default: P(sum) -> R = R, computed whole",
    ]


def test_writes() -> None:
    def run(mesh: DeviceMesh) -> None:
        def made(placement: Any) -> Any:
            return distribute_tensor(treadle.arange(12.0).reshape(3, 4), mesh, [placement])

        for placement in (Shard(0), Shard(1), Replicate()):
            d, plain = made(placement), treadle.arange(12.0).reshape(3, 4)
            for t in (d, plain):
                t.add_(1)
                t[1] = 7
                t[:, 2:] *= 2
                t[0, 0] = 9
                t.view(12)[5] = 3
                t.masked_fill_(t > 20, 0)
                t.t()[3].zero_()
            assert d.placements == (placement,)
            assert treadle.equal(d.full_tensor(), plain), (placement, d.full_tensor())
            out = made(Shard(1))
            assert treadle.mul(d, d, out=out) is out
            assert treadle.equal(out.full_tensor(), plain * plain)
            d.t_()
            assert d.shape == (4, 3) and treadle.equal(d.full_tensor(), plain.t())
        parts = distribute_tensor(treadle.ones(2), mesh, [Partial()])
        parts.add_(1)
        assert parts.full_tensor().tolist() == [2, 2] and parts.placements == (Partial(),)
        message = "mul: expected out to have the shape (3, 4), as a DTensor keeps its geometry, got"
        bad = distribute_tensor(treadle.ones(2), mesh, [Shard(0)])
        with pytest.raises(RuntimeError) as caught:
            treadle.mul(made(Shard(0)), 2, out=bad)
        assert str(caught.value) == message + " (2,)"

    on_mesh(2, run)


def test_fused_steps_of_parts_of_sums() -> None:
    """Parameters and gradients become whole for a step that is not linear in them."""
    alone = nn.Parameter(treadle.tensor([2.0, 4.0]))
    alone.grad = treadle.tensor([6.0, 1.0])
    treadle.optim.Adam([alone], lr=0.1, fused=True).step()

    def run(mesh: DeviceMesh) -> None:
        def in_parts(values: Any) -> Any:
            local = treadle.tensor(values) / mesh.size()
            return DTensor.from_local(local, mesh, [Partial()] * mesh.ndim)

        whole = distribute_tensor(treadle.tensor([2.0, 4.0]), mesh, [Replicate()] * mesh.ndim)
        cut = whole.redistribute(placements=[Shard(0)] * mesh.ndim)
        for start in (in_parts([2.0, 4.0]), whole, cut):
            parameter = nn.Parameter(start.clone())
            parameter.grad = in_parts([6.0, 1.0])
            treadle.optim.Adam([parameter], lr=0.1, fused=True).step()
            treadle.testing.assert_close(parameter.full_tensor(), alone.detach())
            assert parameter.placements == start.placements

    on_mesh(2, run)
    on_mesh((2, 2), run)


def test_views_along_a_cut_dimension() -> None:
    """They are copies, and yet a write to one of them and a write to the base reach all."""
    views = (
        lambda t: t[1],
        lambda t: t[1][1:3],
        lambda t: t[1:3],
        lambda t: t[::2],
        lambda t: t.split(2)[1],
        lambda t: t.unbind(0)[2],
        lambda t: t.view(2, 2, 4)[1],
        lambda t: t.view(16),
        lambda t: t[:, 2],
        lambda t: t.t()[0],
        lambda t: t.detach()[3],
    )

    def run(mesh: DeviceMesh) -> None:
        rest = [Replicate()] * (mesh.ndim - 1)
        for place in (Shard(0), Shard(1)):
            plain = treadle.arange(16.0).reshape(4, 4)
            base = distribute_tensor(plain.clone(), mesh, [place, *rest])
            pairs = [(view(base), view(plain)) for view in views]
            for number in range(len(views)):
                pairs[number][0].mul_(2)
                pairs[number][1].mul_(2)
                for t in (base, plain):
                    t.add_(1)
                treadle._foreach_mul_([base], 3), treadle._foreach_mul_([plain], 3)
                for found, wanted in [(base, plain), *pairs]:
                    assert treadle.equal(found.full_tensor(), wanted), (number, found, wanted)
            row = pairs[0][0]
            for same in (copy.deepcopy(row), pickle.loads(pickle.dumps(row))):
                assert "_origin" not in vars(same) and same.shape == row.shape

    on_mesh(2, run)
    on_mesh((2, 2), run)


def test_parts_from_a_piece_and_from_the_whole() -> None:
    def run(mesh: DeviceMesh) -> Any:
        x = distribute_tensor(treadle.arange(6.0).reshape(3, 2), mesh, [Shard(0)])
        with CommDebugMode() as comm:
            parts = x.redistribute(placements=[Partial()])
        assert comm.get_total_counts() == 0  # each process has its piece between zeros
        leaf = treadle.arange(4.0).requires_grad_()
        whole = DTensor.from_local(leaf, mesh, [Replicate()], grad_placements=[Partial()])
        (whole * 6).sum().full_tensor().backward()
        return parts.to_local().tolist(), leaf.grad.tolist()

    first, second = on_mesh(2, run)
    assert first == ([[0, 1], [2, 3], [0, 0]], [3.0] * 4)
    assert second == ([[0, 0], [0, 0], [4, 5]], [3.0] * 4)


@pytest.mark.parametrize("weights_only", [True, False])
def test_files(weights_only: bool) -> None:
    def run(mesh: DeviceMesh) -> None:
        d = distribute_tensor(treadle.arange(6.0).reshape(3, 2), mesh, [Shard(0)])
        file = io.BytesIO()
        treadle.save({"tensor": d, "row": d[1], "parameter": nn.Parameter(d)}, file)
        file.seek(0)
        found = treadle.load(file, weights_only=weights_only)
        for name, wanted in (("tensor", d), ("row", d[1]), ("parameter", d)):
            same = found[name]
            assert type(same) is DTensor and same.shape == wanted.shape
            assert same.placements == wanted.placements and same.device_mesh == mesh
            assert treadle.equal(same.to_local(), wanted.to_local())
        assert isinstance(found["parameter"], nn.Parameter) and found["parameter"].requires_grad

    on_mesh(2, run)


def test_tensors_that_are_refused() -> None:
    def run(mesh: DeviceMesh) -> None:
        x = treadle.ones(4)
        d = distribute_tensor(x, mesh, [Shard(0)])
        with pytest.raises(RuntimeError) as caught:
            d + x
        assert str(caught.value) == (
            "add: expected DTensors alone, got a Tensor of the shape (4,) beside a DTensor; "
            "distribute_tensor() makes one of it, and implicit_replication() is for tensors that "
            "are the same in all processes"
        )
        assert (d + treadle.tensor(1.0)).full_tensor().tolist() == [2] * 4
        with implicit_replication():
            assert (d + x).placements == (Shard(0),)
        other = DeviceMesh("cpu", [0], _init_backend=False, _rank=0)
        e = DTensor.from_local(x, other, [Replicate()])
        assert refused(RuntimeError, lambda: d + e).startswith(
            "add: expected tensors on one mesh, got DeviceMesh((2,), 'cpu', stride=(1,)) and"
        )
        make = distribute_tensor
        assert refused(ValueError, lambda: make(x, mesh, [Shard(1)])) == (
            "distribute_tensor: expected a dimension of a tensor of 1 dimensions, got Shard(dim=1)"
        )
        assert refused(ValueError, lambda: make(x, mesh, [Shard(0), Shard(0)])) == (
            "distribute_tensor: expected a placement for each of the 1 dimensions of the mesh, "
            "got 2"
        )
        assert refused(TypeError, lambda: make(x, mesh, ["S(0)"])) == (
            "distribute_tensor: expected a Placement, got str"
        )
        assert "non-leaf" in refused(RuntimeError, lambda: make(x.requires_grad_() * 1, mesh))
        assert refused(RuntimeError, lambda: DTensor.from_local(d, mesh)).startswith(
            "the local_tensor argument only accepts torch.Tensor"
        )
        assert refused(RuntimeError, lambda: DTensor.from_local(x, mesh, shape=(8,))) == (
            "from_local: expected shape and stride together, got shape = (8,) and stride = None"
        )
        assert refused(RuntimeError, d.redistribute) == "placements is needed for redistribute!"
        assert refused(RuntimeError, lambda: d.redistribute(placements=[Partial("max")])) == (
            "Can not redistribute from S(0) to P(max), only Shard to Partial(sum) redistribution "
            "is supported!"
        )
        assert refused(ValueError, lambda: spread.zeros(2, device_mesh=mesh, placements=[Partial()])
                       ).startswith("zeros: expected placements Shard or Replicate")  # fmt: skip
        parts = make(treadle.ones(2), mesh, [Partial()])
        assert "partial placements" in refused(ValueError, parts.__create_chunk_list__)

    on_mesh(2, run)


# ---- functions that make tensors, and functions of parts ----


def test_factories() -> None:
    def run(mesh: DeviceMesh) -> None:
        for name in ("zeros", "ones", "empty"):
            made = getattr(spread, name)(3, 2, device_mesh=mesh, placements=[Shard(0)])
            assert made.shape == (3, 2) and made._local_tensor.shape == made._spec.local_shape()
        whole = spread.ones((3,), device_mesh=mesh, dtype=treadle.int64)
        assert whole.to_local().tolist() == [1, 1, 1] and whole.sum().item() == 3
        full = spread.full((3,), 5.0, device_mesh=mesh, placements=[Shard(0)], requires_grad=True)
        assert full.requires_grad and full.full_tensor().tolist() == [5, 5, 5]
        line = spread.linspace(0, 4, 5, device_mesh=mesh, placements=[Shard(0)])
        assert line.full_tensor().tolist() == [0, 1, 2, 3, 4]
        assert spread.logspace(0, 2, 3, device_mesh=mesh).to_local().tolist() == [1, 10, 100]
        with mesh:
            assert spread.zeros(2).placements == (Replicate(),)
        assert visualize_sharding(full, "rows") == "rows\n[0:2]  cpu:0\n[2:3]  cpu:1"

    on_mesh(2, run)


def test_functions_of_parts() -> None:
    @local_map(out_placements=[Partial()], in_placements=([Shard(1)], [Shard(0)]))
    def product(a: Any, b: Any) -> Any:
        assert not isinstance(a, DTensor)
        return a @ b

    def run(mesh: DeviceMesh) -> None:
        x = treadle.arange(6.0).reshape(2, 3)
        a, b = distribute_tensor(x, mesh, [Shard(1)]), distribute_tensor(x.t(), mesh, [Shard(0)])
        assert treadle.equal(product(a, b).full_tensor(), x @ x.t())
        assert treadle.equal(product(x, x.t()), x @ x.t())
        assert refused(ValueError, lambda: product(b.t(), b.t())) == (
            "local_map: expected a DTensor with placements (Shard(dim=0),), got (Shard(dim=1),); "
            "redistribute_inputs = True changes them"
        )

    on_mesh(2, run)


def test_placements_that_a_program_registers() -> None:
    from treadle.distributed.tensor import _registered

    @register_sharding(aten.hypot.default)
    def only_columns(a: Any, b: Any) -> Any:
        return [([Shard(1)], [Shard(1), Shard(1)])]

    def run(mesh: DeviceMesh) -> None:
        a = distribute_tensor(treadle.full((2, 2), 3.0), mesh, [Shard(0)])
        result = treadle.hypot(a, a)
        assert result.placements == (Shard(1),) and result.shape == (2, 2)
        treadle.testing.assert_close(result.full_tensor(), treadle.full((2, 2), 18**0.5))

    try:
        on_mesh(2, run)
    finally:
        del _registered.functions[aten.hypot.default._name]


# ---- processes ----


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 5), nn.Linear(5, 2)
        self.register_buffer("scale", treadle.full((2,), 0.5))

    def forward(self, x: Any) -> Any:
        return self.second(treadle.tanh(self.first(x))) * self.scale


OPTIMISERS = {
    "foreach": lambda p: treadle.optim.AdamW(p, lr=0.05, foreach=True),
    "each": lambda p: treadle.optim.Adam(p, lr=0.05, foreach=False),
    "fused": lambda p: treadle.optim.Adam(p, lr=0.05, fused=True),
    "momentum": lambda p: treadle.optim.SGD(p, lr=0.05, momentum=0.9),
}


def _training(rank: int, world: int) -> None:
    mesh = init_device_mesh("cpu", (world,))

    def cut(name: str, module: nn.Module, mesh: DeviceMesh) -> None:
        for key, parameter in list(module.named_parameters(recurse=False)):
            made = distribute_tensor(parameter.detach(), mesh, [Shard(0)])
            module.register_parameter(key, nn.Parameter(made))

    for make in OPTIMISERS.values():
        treadle.manual_seed(0)
        plain = Net()
        net = distribute_module(copy.deepcopy(plain), mesh, cut)
        optimisers = [make(each.parameters()) for each in (net, plain)]
        x = treadle.randn(6, 3)
        batch = distribute_tensor(x, mesh, [Shard(0)])
        for _ in range(3):
            for model, data, optimiser in zip((net, plain), (batch, x), optimisers):
                optimiser.zero_grad()
                model(data).square().mean().backward()
                norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
                optimiser.step()
        assert isinstance(norm, treadle.Tensor)
        state = net.state_dict()
        assert state["first.weight"].placements == (Shard(0),)
        for name, value in plain.state_dict().items():
            treadle.testing.assert_close(state[name].full_tensor(), value, rtol=1e-5, atol=1e-6)
        net.load_state_dict(copy.deepcopy(state))
        moments = [v for v in optimisers[0].state[net.first.weight].values() if v.dim()]
        assert all(m.placements == (Shard(0),) for m in moments)
    with pytest.raises(RuntimeError, match="should only be called once"):
        distribute_module(net, mesh)


def _random_numbers(rank: int, world: int) -> None:
    mesh = init_device_mesh("cpu", (world,))
    x = treadle.ones(5, 4)
    d = distribute_tensor(x, mesh, [Shard(0)])
    for draw in (
        lambda t: nn.functional.dropout(t, 0.5),
        lambda t: treadle.rand_like(t),
        lambda t: t.clone().normal_(),
        lambda t: treadle.bernoulli(t * 0.5),
        lambda t: treadle.empty_like(t).uniform_(-1, 1) + treadle.randn_like(t),
    ):
        treadle.manual_seed(7)
        wanted = draw(x)
        treadle.manual_seed(7)
        found = draw(d)
        assert found.placements == (Shard(0),)
        assert treadle.equal(found.full_tensor(), wanted)
    treadle.manual_seed(7)
    wanted = treadle.randn(5, 4)
    treadle.manual_seed(7)
    made = spread.randn(5, 4, device_mesh=mesh, placements=[Shard(1)])
    assert treadle.equal(made.full_tensor(), wanted)


def _in_processes(rank: int, world: int) -> None:
    _training(rank, world)
    _random_numbers(rank, world)
    mesh = DeviceMesh("cpu", [0])  # a process that is not of the mesh has the geometry alone
    d = distribute_tensor(treadle.ones(2, 3), mesh, [Shard(0)])
    result = (d @ d.t()).sum(0)
    assert result.shape == (2,) and result.to_local().shape == ((2,) if rank == 0 else (0,))


def test_processes() -> None:
    together(2, _in_processes)

"""Every collective function x dtype x operation x memory layout x handle, at several numbers of
processes, over Gloo and over both families of MPI, against NumPy.

The values are small whole numbers, so that results are exact in every dtype and order. A world is
started once and goes through everything.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from typing import Any, Callable, List

import numpy as np
import pytest

import treadle
import treadle.distributed as dist

INTEGERS = "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64".split()
FRACTIONS = "float16 bfloat16 float32 float64 complex64 complex128".split()
MOVED = ["float8_e4m3fn", "complex32"]
STEPS: Any = {
    "SUM": np.add,
    "PRODUCT": np.multiply,
    "MIN": np.minimum,
    "MAX": np.maximum,
    "BAND": np.bitwise_and,
    "BOR": np.bitwise_or,
    "BXOR": np.bitwise_xor,
}
SHAPE = (3, 4)
LARGE = 300_001  # elements that go in several segments
device = "cpu"  # of the tensors


def wide(name: str) -> Any:
    """The NumPy dtype that has the values of a dtype."""
    return {"bfloat16": np.float32, "bool": np.uint8}.get(name) or np.dtype(name).type


def values(name: str, rank: int, shape: Any, low: int = 0, high: int = 7) -> np.ndarray:
    if name == "bool":
        low, high = 0, 1
    drawn = np.random.default_rng(rank + 100).integers(low, high + 1, shape)
    return drawn.astype(wide(name))


def tensor(name: str, data: np.ndarray, apart: bool) -> treadle.Tensor:
    """The values in a tensor; `apart` in one that is not contiguous."""
    made = treadle.from_numpy(np.array(data, order="C")).to(device, getattr(treadle, name))
    return made.t().contiguous().t() if apart and made.dim() == 2 else made


def numbers(t: treadle.Tensor) -> np.ndarray:
    t = t.cpu()
    if t.dtype == treadle.bfloat16:
        t = t.float()
    if t.dtype == treadle.bool:
        t = t.to(treadle.uint8)
    return t.numpy()


class Matrix:
    """All checks of one process; `digest` is the same in all of them."""

    reduced = INTEGERS + FRACTIONS
    steps = tuple(STEPS)
    of_complex = ("SUM", "PRODUCT")

    def __init__(self, rank: int, world: int) -> None:
        self.rank, self.world = rank, world
        self.hash = hashlib.sha256()

    def done(self, work: Any, later: bool) -> None:
        assert (work is not None) == later
        if later:
            assert work.wait() and work.is_completed() and work.exception() is None

    def equal(self, got: treadle.Tensor, expected: np.ndarray, everywhere: bool = True) -> None:
        found = numbers(got)
        np.testing.assert_array_equal(found, expected.astype(found.dtype))
        if everywhere:
            self.hash.update(np.ascontiguousarray(found).tobytes())

    def reductions(self, name: str, apart: bool, later: bool, ops: Any) -> None:
        world, rank = self.world, self.rank
        for op in ops:
            kind = getattr(dist.ReduceOp, op)
            high = 2 if op == "PRODUCT" else 7
            low = 1 if op == "PRODUCT" else 0
            every = [values(name, r, SHAPE, low, high) for r in range(world)]
            step = STEPS[op]
            if name == "bool":
                step = {"SUM": np.bitwise_or, "PRODUCT": np.bitwise_and}.get(op, step)
            total = every[0].copy()
            for other in every[1:]:
                total = step(total, other).astype(total.dtype)
            one = tensor(name, every[rank], apart)
            self.done(dist.all_reduce(one, kind, async_op=later), later)
            self.equal(one, total)
            root = world - 1
            one = tensor(name, every[rank], apart)
            self.done(dist.reduce(one, root, kind, async_op=later), later)
            self.equal(one, total if rank == root else every[rank], everywhere=False)
            stacked = [np.stack([e * (1 if name == "bool" else 1) for e in every])] * world
            inputs = [tensor(name, stacked[0][rank], apart) for _ in range(world)]
            output = tensor(name, np.zeros(SHAPE, wide(name)), apart)
            self.done(dist.reduce_scatter(output, inputs, kind, async_op=later), later)
            self.equal(output, total)
            whole = tensor(name, np.concatenate([every[rank]] * world), apart)
            self.done(dist.reduce_scatter_tensor(output, whole, kind, async_op=later), later)
            self.equal(output, total)

    def moves(self, name: str, apart: bool, later: bool) -> None:
        world, rank = self.world, self.rank
        every = [values(name, r, SHAPE) for r in range(world)]
        zeros = np.zeros(SHAPE, wide(name))

        def mine() -> treadle.Tensor:
            return tensor(name, every[rank], apart)

        def empty(n: int) -> List[treadle.Tensor]:
            return [tensor(name, zeros, apart) for _ in range(n)]

        for root in {0, world - 1}:
            one = mine()
            self.done(dist.broadcast(one, root, async_op=later), later)
            self.equal(one, every[root])
            places = empty(world) if rank == root else None
            self.done(dist.gather(mine(), places, root, async_op=later), later)
            for place, expected in zip(places or [], every):
                self.equal(place, expected, everywhere=False)
            given = [tensor(name, each, apart) for each in every] if rank == root else None
            (one,) = empty(1)
            self.done(dist.scatter(one, given, root, async_op=later), later)
            self.equal(one, every[rank], everywhere=False)
        places = empty(world)
        self.done(dist.all_gather(places, mine(), async_op=later), later)
        for place, expected in zip(places, every):
            self.equal(place, expected)
        joined = tensor(name, np.concatenate([zeros] * world), apart)
        self.done(dist.all_gather_into_tensor(joined, mine(), async_op=later), later)
        self.equal(joined, np.concatenate(every))
        places = empty(world)
        self.done(dist.all_to_all(places, [mine() for _ in every], async_op=later), later)
        for place, expected in zip(places, every):
            self.equal(place, expected)
        sent = tensor(name, np.concatenate([every[rank]] * world), apart)
        self.done(dist.all_to_all_single(joined, sent, async_op=later), later)
        self.equal(joined, np.concatenate(every))

    def in_place(self, rows: int) -> None:
        """The inputs of a call lie in its outputs."""
        world, rank = self.world, self.rank
        every = [values("int64", r, (world * rows, 2)) for r in range(world)]
        parts = [np.split(each, world) for each in every]
        for later in (False, True):
            one = tensor("int64", every[rank], False)
            self.done(dist.all_to_all_single(one, one, async_op=later), later)
            self.equal(one, np.concatenate([p[rank] for p in parts]), everywhere=False)
            for at in (lambda r: r, lambda r: 0):
                one = tensor("int64", every[rank], False)
                mine = one[at(rank) * rows :][:rows]
                self.done(dist.all_gather_into_tensor(one, mine, async_op=later), later)
                self.equal(one, np.concatenate([parts[r][at(r)] for r in range(world)]))
                one = tensor("int64", every[rank], False)
                mine = one[at(rank) * rows :][:rows]
                self.done(dist.reduce_scatter_tensor(mine, one, async_op=later), later)
                self.equal(mine, sum(p[rank] for p in parts), everywhere=False)
            pieces = [tensor("int64", p, False) for p in parts[rank]]
            root = world - 1
            given = pieces if rank == root else None
            self.done(dist.scatter(pieces[0], given, root, async_op=later), later)
            self.equal(pieces[0], parts[root][rank], everywhere=False)

    def uneven(self) -> None:
        """Row i of what a rank sends goes to rank i: rank r sends r + 1 rows to each."""
        world, rank = self.world, self.rank
        got = treadle.zeros(sum(range(1, world + 1)), 2)
        sent = treadle.full((world * (rank + 1), 2), float(rank))
        dist.all_to_all_single(got, sent, list(range(1, world + 1)), [rank + 1] * world)
        self.equal(got, np.repeat(np.arange(world), np.arange(1, world + 1))[:, None] * [1, 1])

    def large(self, count: int) -> None:
        world, rank = self.world, self.rank
        every = [values("float32", r, (count,)) for r in range(world)]
        for later in (False, True):
            one = tensor("float32", every[rank], False)
            self.done(dist.all_reduce(one, async_op=later), later)
            self.equal(one, sum(every))
            one = tensor("float32", every[rank], False)
            self.done(dist.reduce(one, 0, async_op=later), later)
            self.equal(one, sum(every) if rank == 0 else every[rank], everywhere=False)
            one = tensor("float32", every[rank], False)
            self.done(dist.broadcast(one, world - 1, async_op=later), later)
            self.equal(one, every[-1])
            whole, part = tensor("float32", np.tile(every[rank], world), False), one
            self.done(dist.reduce_scatter_tensor(part, whole, async_op=later), later)
            self.equal(part, sum(every))
            self.done(dist.all_gather_into_tensor(whole, one, async_op=later), later)
            self.equal(whole, np.tile(sum(every), world))

    def fractions(self) -> None:
        """Sums that are rounded have the same bits everywhere, and averages are right."""
        world, rank = self.world, self.rank
        for name in ("float16", "bfloat16", "float32", "float64", "complex64"):
            for count in (5, 9000):
                drawn = [
                    np.random.default_rng(r).standard_normal(count).astype(np.float32)
                    for r in range(world)
                ]
                for op, scale in (("AVG", 1 / world), ("SUM", 1.0), (2.0, 2.0)):
                    kind = (
                        getattr(dist.ReduceOp, op)
                        if isinstance(op, str)
                        else dist._make_nccl_premul_sum(op)
                    )
                    one = treadle.from_numpy(drawn[rank].copy())
                    one = one.to(device, getattr(treadle, name))
                    dist.all_reduce(one, kind)
                    one = one.cpu()
                    self.hash.update(one.reshape(-1).view(treadle.uint8).numpy().tobytes())
                    close = {"float16": 2e-2, "bfloat16": 1e-1}.get(name, 1e-4)
                    expected = sum(drawn).astype(np.float64) * scale
                    found = one.to(treadle.complex128).real.numpy()
                    np.testing.assert_allclose(found, expected, close, close * 2)

    def run(self, count: int, in_full: bool) -> str:
        """Everything; where not `in_full`, tensors that are not contiguous only with handles, and
        for fewer operations."""
        ordered = [op for op in self.steps if op[0] != "B"]
        both = (False, True)
        for later, apart in [
            (late, far) for late in both for far in both if in_full or late == far
        ]:
            for name in INTEGERS:
                few = [op for op in ("SUM", "BOR") if op in self.steps]
                if name in self.reduced:
                    ops = few if apart and not in_full else self.steps
                    self.reductions(name, apart, later, ops)
                self.moves(name, apart, later)
            for name in FRACTIONS:
                ops = self.of_complex if name.startswith("complex") else ordered
                self.reductions(name, apart, later, ops)
                self.moves(name, apart, later)
        for name in MOVED:
            data = treadle.arange(8, dtype=treadle.uint8).view(getattr(treadle, name)) + 0
            one = data.clone() if self.rank == 0 else treadle.empty_like(data)
            dist.broadcast(one, 0)
            self.equal(one.view(treadle.uint8), np.arange(8))
        self.uneven()
        self.in_place(3)
        self.in_place(20_000)
        self.large(count)
        self.fractions()
        dist.barrier()
        dist.barrier(async_op=True).wait()
        return self.hash.hexdigest()


def _matrix(rank: int, world: int) -> str:
    return Matrix(rank, world).run(LARGE, in_full=False)


def _matrix_in_full(rank: int, world: int) -> str:
    return Matrix(rank, world).run(LARGE if world < 5 else 30_000, in_full=True)


@pytest.mark.parametrize("world", [1, 2, 3])
def test_gloo(world: int) -> None:
    from process_groups import together

    assert len(set(together(world, _matrix))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("world", [1, 2, 3, 4, 7])
def test_gloo_in_full(world: int) -> None:
    from process_groups import together

    assert len(set(together(world, _matrix_in_full))) == 1


LAUNCHERS: Any = {
    "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"],
    "mpich": ["mpirun.mpich"],
}


@pytest.mark.slow
@pytest.mark.parametrize("world", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("family", LAUNCHERS)
def test_mpi(family: str, world: int) -> None:
    command = LAUNCHERS[family]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    program = [sys.executable, os.path.abspath(__file__)]
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    result = subprocess.run(
        [*command, "-n", str(world), *program],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        env=environment,
    )
    assert result.returncode == 0, result.stdout
    found = [line.split()[1] for line in result.stdout.splitlines() if line.startswith("digest ")]
    assert len(found) == world and len(set(found)) == 1, result.stdout


def _mpi_program() -> None:
    dist.init_process_group("mpi")
    rank, world = dist.get_rank(), dist.get_world_size()
    # Ranks that share processors take long, as MPI waits for each other without sleep: what the
    # engine does not see, layouts and handles, is gone through with fewer ranks and with Gloo.
    digest = Matrix(rank, world).run(LARGE if world < 5 else 30_000, in_full=world < 3)
    last: Callable[..., Any] = dist.new_group([world - 1], use_local_synchronization=False)
    if rank == world - 1:
        dist.all_reduce(treadle.ones(1), group=last)
    if world > 1:
        place = treadle.zeros(2)
        handle = dist.irecv(place, (rank - 1) % world, tag=5)
        dist.send(treadle.full((2,), float(rank)), (rank + 1) % world, tag=5)
        handle.wait()
        assert place.tolist() == [(rank - 1) % world] * 2
        with pytest.raises(dist.DistBackendError, match="expected the same call in all ranks"):
            dist.all_reduce(treadle.ones(2 + (rank == 0)))
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.write(f"digest {digest}\n")


if __name__ == "__main__":
    _mpi_program()

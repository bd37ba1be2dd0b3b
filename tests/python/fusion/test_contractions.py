"""Contractions written in meta-operators: as the library's own operators compute them, and without
the products in memory.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import gc
import json
import random
import subprocess
import sys
from typing import Any, Callable, List, Sequence

import numpy as np
import pytest

import treadle
from treadle import Tensor, meta
from treadle.fusion import Group, explain

F = treadle.nn.functional


def index(outer: str, inner: str, stride: int, dilation: int, padding: int) -> str:
    return f"{outer} * {stride} + {inner} * {dilation} - {padding}"


def conv2d(
    x: Tensor,
    w: Tensor,
    stride: Sequence[int] = (1, 1),
    padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1, 1),
) -> Tensor:
    (n, c, height, width), (o, _, kh, kw) = x.shape, w.shape
    rows = (height + 2 * padding[0] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    columns = (width + 2 * padding[1] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    shape = (n, o, rows, columns, c, kh, kw)
    xx = meta.reindex(
        x,
        shape,
        [
            "i0",
            "i4",
            index("i2", "i5", stride[0], dilation[0], padding[0]),
            index("i3", "i6", stride[1], dilation[1], padding[1]),
        ],
    )
    return (xx * meta.broadcast(w, shape, dims=(0, 2, 3))).sum((4, 5, 6))


def matmul(a: Tensor, b: Tensor) -> Tensor:
    (n, k), m = a.shape, b.shape[1]
    return (meta.reindex(a, (n, k, m), ["i0", "i1"]) * meta.broadcast(b, (n, k, m), (0,))).sum(1)


def test_a_product_by_broadcasting_alone_keeps_its_bits() -> None:
    a, b = treadle.randn(30, 20), treadle.randn(20, 25)
    results = []
    for mode in (treadle.fuse(enabled=False), treadle.fuse(least=0)):
        with mode:
            results.append([(a[:, :, None] * b).sum(1), (a[:, :, None] * b).sum((0, 1))])
    assert all(treadle.equal(x, y) for x, y in zip(*results))


def ways(t: Tensor) -> List[str]:
    return [group.way for group in explain(t).groups]


def close(a: Tensor, b: Tensor) -> None:
    assert a.shape == b.shape and a.dtype == b.dtype
    scale = max(1.0, float(b.abs().max()))
    assert treadle.allclose(a / scale, b / scale, rtol=1e-4, atol=1e-5)


SETTINGS = [
    ((1, 1), (0, 0), (1, 1), (3, 3)),
    ((1, 1), (1, 1), (1, 1), (3, 3)),
    ((2, 2), (1, 1), (1, 1), (3, 3)),
    ((2, 3), (0, 2), (1, 1), (2, 4)),
    ((1, 1), (2, 2), (2, 2), (3, 3)),
    ((2, 1), (3, 1), (3, 2), (3, 2)),
    ((4, 4), (0, 0), (1, 1), (4, 4)),
    ((1, 1), (0, 0), (1, 1), (1, 1)),
    ((5, 5), (2, 2), (1, 1), (3, 3)),
]


@pytest.mark.parametrize("setting", range(len(SETTINGS)))
def test_a_convolution(setting: int) -> None:
    stride, padding, dilation, kernel = SETTINGS[setting]
    x = treadle.randn(2, 3, 17, 14, requires_grad=True)
    w = treadle.randn(4, 3, *kernel, requires_grad=True)
    expected = F.conv2d(x, w, None, stride, padding, dilation)
    weights = treadle.randn(*expected.shape)
    expected_grads = treadle.autograd.grad(expected, (x, w), weights)
    with treadle.fuse(least=0):
        y = conv2d(x, w, stride, padding, dilation)
        assert ways(y) in (["as one convolution"], ["as one product of matrices"])
        gx, gw = treadle.autograd.grad(y, (x, w), weights)
        assert len(ways(gx)) == 1 and ways(gx)[0].startswith("as one ")
        assert len(ways(gw)) == 1 and ways(gw)[0].startswith("as one ")
        close(gx, expected_grads[0])
        close(gw, expected_grads[1])
        close(y, expected)


def _backward(inside: bool) -> List[Tensor]:
    """The gradients of a loss of a block, by backward in it or behind it."""
    generator = treadle.Generator().manual_seed(3)
    x = treadle.randn(2, 3, 17, 14, generator=generator).requires_grad_()
    w = treadle.randn(4, 3, 3, 3, generator=generator).requires_grad_()
    with treadle.fuse(least=0):
        loss = (conv2d(x, w).relu() * 2).sum()
        if inside:
            loss.backward()
    if not inside:
        loss.backward()
    return [x.grad, w.grad]


def test_backward_behind_the_block_fuses_as_in_it() -> None:
    inside, behind = _backward(True), _backward(False)
    for a, b in zip(inside, behind):
        assert ways(a)[-1] == ways(b)[-1] != "in one pass"
    assert not treadle.fusion.is_enabled()
    assert all(treadle.equal(a, b) for a, b in zip(inside, behind))


def test_backward_where_nothing_may_wait_computes_at_once() -> None:
    x = treadle.randn(2, 300, requires_grad=True)
    with treadle.fuse(least=0):
        loss = (x * x).sum()
        second = (x * x).sum()
    with treadle.fuse(enabled=False):
        loss.backward()
        assert not waits(x.grad)
    expected = x.grad.clone()
    second.backward()  # on top of the gradient that is there
    assert waits(x.grad)
    assert treadle.equal(x.grad, 2 * expected)


def test_the_kernel_gives_the_bits_of_conv2d() -> None:
    x, w = treadle.randn(2, 8, 32, 32), treadle.randn(16, 8, 3, 3)
    with treadle.fuse(least=0):
        assert treadle.equal(conv2d(x, w, padding=(1, 1)), F.conv2d(x, w, padding=1))


@pytest.mark.parametrize("dtype", ["float64", "complex64", "bfloat16", "float16"])
def test_other_dtypes(dtype: str) -> None:
    kind = getattr(treadle, dtype)
    x, w = treadle.randn(2, 3, 9, 9).to(kind), treadle.randn(4, 3, 3, 3).to(kind)
    with treadle.fuse(least=0):
        y = conv2d(x, w, padding=(1, 1))
        assert ways(y) == ["as one convolution"]
        assert treadle.allclose(y, F.conv2d(x, w, padding=1), rtol=1e-2, atol=1e-2)


def test_one_and_three_dimensions() -> None:
    with treadle.fuse(least=0):
        x, w = treadle.randn(2, 3, 20), treadle.randn(4, 3, 5)
        shape = (2, 4, 10, 3, 5)
        xx = meta.reindex(x, shape, ["i0", "i3", "i2 * 2 + i4 - 2"])
        y = (xx * meta.broadcast(w, shape, (0, 2))).sum((3, 4))
        assert ways(y) == ["as one convolution"]
        close(y, F.conv1d(x, w, stride=2, padding=2))
        x, w = treadle.randn(1, 2, 6, 7, 8), treadle.randn(3, 2, 2, 3, 2)
        shape = (1, 3, 5, 5, 7, 2, 2, 3, 2)
        xx = meta.reindex(x, shape, ["i0", "i5", "i2 + i6", "i3 + i7", "i4 + i8"])
        y = (xx * meta.broadcast(w, shape, (0, 2, 3, 4))).sum((5, 6, 7, 8))
        assert ways(y) == ["as one convolution"]
        close(y, F.conv3d(x, w))


def test_flipped_kernels_and_results() -> None:
    x, w = treadle.randn(2, 3, 8, 8), treadle.randn(4, 3, 3, 3)
    shape = (2, 4, 10, 10, 3, 3, 3)
    with treadle.fuse(least=0):
        ww = meta.broadcast(w, shape, (0, 2, 3))
        y = (meta.reindex(x, shape, ["i0", "i4", "i2 - i5", "i3 - i6"]) * ww).sum((4, 5, 6))
        assert ways(y) == ["as one convolution"]
        expected = F.conv2d(x, w.flip(2, 3), padding=2)
        close(y, expected)
        indices = ["1 - i0", "i4", "9 - i2 - i5", "i3 - i6"]
        z = (ww * meta.reindex(x, shape, indices)).sum((4, 5, 6))
        assert ways(z) == ["as one convolution"]
        close(z, expected.flip(0, 2))


def test_groups() -> None:
    x, w = treadle.randn(2, 6, 9, 9), treadle.randn(6, 1, 3, 3)
    with treadle.fuse(least=0):
        shape = (2, 6, 9, 9, 3, 3)
        xx = meta.reindex(x, shape, ["i0", "i1", "i2 + i4 - 1", "i3 + i5 - 1"])
        y = (xx * meta.broadcast(w.reshape(6, 3, 3), shape, (0, 2, 3))).sum((4, 5))
        assert ways(y) == ["as one convolution"]
        close(y, F.conv2d(x, w, padding=1, groups=6))
        # Three groups of two channels, each with four filters.
        w = treadle.randn(12, 2, 3, 3)
        shape = (2, 3, 4, 7, 7, 2, 3, 3)
        xx = meta.reindex(x, shape, ["i0", "i1 * 2 + i5", "i3 + i6", "i4 + i7"])
        y = (xx * meta.broadcast(w.reshape(3, 4, 2, 3, 3), shape, (0, 3, 4))).sum((5, 6, 7))
        assert ways(y) == ["as one convolution"]
        close(y.reshape(2, 12, 7, 7), F.conv2d(x, w, groups=3))


def test_products_of_matrices() -> None:
    a, b = treadle.randn(40, 50), treadle.randn(50, 60)
    shape = (40, 60, 50)
    with treadle.fuse(least=0):
        y = matmul(a, b)
        assert ways(y) == ["as one product of matrices"]
        close(y, a @ b)
        aa, bb = meta.reindex(a, shape, ["i0", "i2"]), meta.reindex(b, shape, ["i2", "i1"])
        y = (aa * bb).sum(-1)
        assert ways(y) == ["as one product of matrices"]
        close(y, a @ b)
        batch = treadle.randn(3, 5, 7), treadle.randn(3, 7, 6)
        shape = (3, 5, 6, 7)
        y = (
            meta.reindex(batch[0], shape, ["i0", "i1", "i3"])
            * meta.reindex(batch[1], shape, ["i0", "i3", "i2"])
        ).sum(3, keepdim=True)
        assert ways(y) == ["as one product of matrices"]
        close(y, (batch[0] @ batch[1]).unsqueeze(3))


EINSUMS = [
    "ij,jk->ik", "ji,jk->ki", "bij,bjk->bik", "bij,jk->bik", "abc,cde->dabe", "nchw,oc->nohw",
    "ijk,ilm->jlkm", "ab,ac->bc", "bhqd,bhkd->bhqk", "ij,ij->i", "ij,j->i", "ii,ij->j",
    "abcd,dcbe->ae",
    "ab,cd->abcd", "gab,gcb->gac",
]  # fmt: skip


@pytest.mark.parametrize("text", EINSUMS)
def test_products_of_any_dimensions(text: str) -> None:
    (first, second), result = text.split("->")[0].split(","), text.split("->")[1]
    names = sorted(set(first + second), key=lambda c: (c not in result, result.find(c), c))
    size = {name: 3 + k for k, name in enumerate(names)}
    a = treadle.randn(*(size[c] for c in first))
    b = treadle.randn(*(size[c] for c in second))
    shape = tuple(size[c] for c in names)
    with treadle.fuse(least=0):
        aa = meta.reindex(a, shape, [f"i{names.index(c)}" for c in first])
        bb = meta.reindex(b, shape, [f"i{names.index(c)}" for c in second])
        folded = tuple(range(len(result), len(names)))
        y = (aa * bb).sum(folded) if folded else aa * bb
        close(y, treadle.einsum(text, a, b))


def random_index(draw: random.Random, loops: Sequence[int]) -> str:
    kinds = [
        lambda: f"i{draw.randrange(len(loops))}",
        lambda: (
            f"i{draw.randrange(len(loops))} * {draw.choice([1, 2, -1, 3])} + "
            f"i{draw.randrange(len(loops))} * {draw.choice([1, 2, -1, -2])}"
            f" - {draw.randrange(-2, 4)}"
        ),
        lambda: f"i{draw.randrange(len(loops))} // {draw.randrange(1, 4)}",
        lambda: f"(i{draw.randrange(len(loops))} + i{draw.randrange(len(loops))}) % 3",
        lambda: str(draw.randrange(3)),
        lambda: f"i{draw.randrange(len(loops))} * i{draw.randrange(len(loops))}",
    ]
    return draw.choices(kinds, [4, 5, 1, 1, 1, 1])[0]()


@pytest.mark.parametrize("seed", range(60))
def test_random_contractions(seed: int) -> None:
    draw = random.Random(seed)
    treadle.manual_seed(seed)
    rank = draw.randrange(2, 6)
    loops = tuple(draw.randrange(1, 6) for _ in range(rank))
    factors, leaves = [], []
    for _ in range(draw.choice([1, 2, 2, 2, 2, 3])):
        dims = draw.randrange(1, 4)
        leaf = treadle.randn(*(draw.randrange(1, 6) for _ in range(dims)), dtype=treadle.float64)
        leaf.requires_grad_()
        indices = [random_index(draw, loops) for _ in range(dims)]
        overflow = draw.choice([0, 0, 0, 2])
        leaves.append(leaf)
        factors.append((indices, overflow))
    folded = tuple(sorted(draw.sample(range(rank), draw.randrange(1, rank + 1))))
    how = draw.choice(["sum", "sum", "sum", "amax", "mean", "prod"])

    def program() -> Tensor:
        values = [
            meta.reindex(leaf, loops, indices, overflow)
            for leaf, (indices, overflow) in zip(leaves, factors)
        ]
        product = values[0]
        for value in values[1:]:
            product = product * value
        if how == "prod":
            return product.prod(folded[0])
        return getattr(product, how)(folded)

    expected = program()
    weights = treadle.randn(expected.shape, dtype=treadle.float64)
    expected_grads = treadle.autograd.grad(expected, leaves, weights)
    with treadle.fuse(least=0):
        found = program()
        grads = treadle.autograd.grad(found, leaves, weights)
        close(found, expected)
        for a, b in zip(grads, expected_grads):
            close(a, b)


def test_what_no_kernel_computes_is_computed_piece_by_piece() -> None:
    x, c = treadle.rand(300, 16), treadle.rand(200, 16)
    shape = (300, 200, 16)
    distance = lambda: (  # noqa: E731
        (meta.reindex(x, shape, ["i0", "i2"]) - meta.reindex(c, shape, ["i1", "i2"])) ** 2
    ).sum(2)
    expected = distance()
    image = treadle.randn(2, 3, 40, 40)
    pooled = F.max_pool2d(image, 3, 2, 1)
    with treadle.fuse():
        y = distance()
        assert ways(y) == ["piece by piece"]
        close(y, expected)
        shape = (2, 3, 20, 20, 3, 3)
        indices = ["i0", "i1", "i2 * 2 + i4 - 1", "i3 * 2 + i5 - 1"]
    with treadle.fuse(least=0):
        z = meta.reindex(image, shape, indices, float("-inf")).amax((4, 5))
        assert ways(z) == ["piece by piece"] and treadle.equal(z, pooled)


def test_one_long_sum_is_cut() -> None:
    x = treadle.rand(1000)
    with treadle.fuse():
        for kind, tolerance in ((treadle.float32, 1e-5), (treadle.bfloat16, 1e-2)):
            narrow = x.to(kind)
            total = meta.reindex(narrow, (2000, 1000), ["(i0 + i1) % 1000"]).sum()
            assert ways(total) == ["piece by piece"] and total.dtype == kind
            assert abs(float(total) / (2000 * float(narrow.double().sum())) - 1) < tolerance
        y = meta.reindex(x, (7, 300, 1000), ["(i0 * 31 + i1 + i2) % 1000"]).sum((1, 2))
        assert y.shape == (7,)
        assert treadle.allclose(y, 300 * x.sum(), rtol=1e-4)
        counts = meta.reindex(treadle.ones(10, dtype=treadle.int32), (10, 1 << 18), ["i0"]).sum(1)
        assert counts.dtype == treadle.int64 and counts.tolist() == [1 << 18] * 10


PEAK = """
import json, sys
import treadle
from treadle import meta
from test_contractions import conv2d, matmul

def stats():
    return treadle._C._memory_stats()

def measure(program):
    before = stats()["current_bytes"]
    result = program()
    return stats()["peak_bytes"] - before

x, w = treadle.randn(2, 32, 40, 40), treadle.randn(32, 32, 3, 3)
x.requires_grad_(), w.requires_grad_()
tensors = x.nbytes + w.nbytes
products = 2 * 32 * 40 * 40 * 32 * 9 * 4
with treadle.fuse():
    def train():
        xx_held = conv2d(x, w, padding=(1, 1))
        xx_held.relu().mul(2).sum().backward()
        return x.grad.sum().item() + w.grad.sum().item()
    convolution = measure(train)
    a, b = treadle.randn(300, 300), treadle.randn(300, 300)
    product = measure(lambda: matmul(a, b).sum().item())
x.grad = w.grad = None
def train_behind():
    with treadle.fuse():
        loss = conv2d(x, w, padding=(1, 1)).relu().mul(2).sum()
    loss.backward()
    return x.grad.sum().item() + w.grad.sum().item()
behind = measure(train_behind)
with treadle.fuse():
    def distances():
        aa = meta.reindex(a, (300, 300, 300), ["i0", "i2"])
        return (aa - b).abs().sum(2)[0, 0].item()
    pieces = measure(distances)
print(json.dumps([tensors, products, convolution, behind, product, pieces]))
"""


def test_peak_memory() -> None:
    folder = str(__file__).rpartition("/")[0]
    program = f"import sys; sys.path.insert(0, {folder!r})\n{PEAK}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    tensors, products, convolution, behind, product, pieces = json.loads(done.stdout)
    assert products > 100 << 20
    assert convolution < 12 * tensors + (4 << 20), (convolution, tensors)
    assert behind < 12 * tensors + (4 << 20), (behind, tensors)
    assert product < 24 << 20 and pieces < 24 << 20, (product, pieces)


def test_products_larger_than_memory() -> None:
    with treadle.fuse():
        a, b = treadle.randn(1 << 14, 4), treadle.randn(1 << 14, 4)
        aa = meta.reindex(a, (1 << 14, 1 << 14, 1 << 14, 4), ["i0", "i3"])
        bb = meta.reindex(b, aa.shape, ["i1", "i3"])
        products = aa * bb
        assert waits(aa) and waits(products)
        with pytest.raises((RuntimeError, MemoryError)):
            products[0, 0, 0, 0].item()
        x, y = treadle.randn(1024, 2048), treadle.randn(2048, 4096)
        close(matmul(x, y), x @ y)  # of 32 GiB


def waits(t: Tensor) -> bool:
    return bool(explain(t).groups)


def test_a_look_at_a_reindex_computes_it() -> None:
    x = treadle.arange(6.0)
    expected = meta.reindex(x, (3, 8), ["i0 + i1 - 1"], 9)
    with treadle.fuse(least=0):
        xx = meta.reindex(x, (3, 8), ["i0 + i1 - 1"], 9)
        twice = xx * 2
        assert waits(xx) and ways(xx) == ["by its kernel"]
        y = twice.sum(1)
        assert y.tolist() == (expected * 2).sum(1).tolist()
        assert waits(xx) and waits(twice)  # nobody has looked at them
        assert treadle.equal(twice, expected * 2) and treadle.equal(xx, expected)
        z = meta.reindex(x, (3, 8), ["i0 + i1 - 1"], 9)[1:].sum()
        assert z.item() == expected[1:].sum().item()


WRITES: List[Callable[[Tensor], Any]] = [
    lambda x: x.add_(1),
    lambda x: x.zero_(),
    lambda x: x.__setitem__(0, 7),
    lambda x: x.numpy().__setitem__(0, 9),
    lambda x: x.resize_(0),
    lambda x: x.share_memory_().fill_(2),
    lambda x: treadle.mul(x, 3, out=x),
]


@pytest.mark.parametrize("write", range(len(WRITES)))
def test_writes_to_what_is_read(write: int) -> None:
    expected_read = meta.reindex(treadle.arange(4.0), (3, 6), ["i0 + i1 - 1"])
    with treadle.fuse(least=0):
        x, w = treadle.arange(4.0), treadle.tensor([1.0, 2, 3])
        xx = meta.reindex(x, (3, 6), ["i0 + i1 - 1"])
        y = (xx * meta.broadcast(w, (3, 6), (1,))).sum(0)
        WRITES[write](x)
        w.mul_(0)
        assert y.tolist() == (expected_read * treadle.tensor([[1.0], [2], [3]])).sum(0).tolist()
        assert treadle.equal(xx, expected_read)


def test_memory_that_others_write() -> None:
    array = np.ones((8, 8), np.float32)
    with treadle.fuse(least=0):
        x = treadle.from_numpy(array)
        xx = meta.reindex(x, (8, 8, 8), ["i0", "i2"])
        array[:] = 5
        y = xx * meta.reindex(x, (8, 8, 8), ["i2", "i1"])
        array[:] = 7
        assert y.sum(2).tolist() == [[40.0] * 8] * 8


def test_mixed_dtypes_and_integers() -> None:
    n = treadle.arange(12).reshape(3, 4)
    x = treadle.randn(4, 5)
    shape = (3, 5, 4)
    with treadle.fuse(least=0):
        nn, xx = meta.reindex(n, shape, ["i0", "i2"]), meta.reindex(x, shape, ["i2", "i1"])
        y = (nn * xx).sum(2)
        close(y, n.float() @ x)
        z = (nn * meta.reindex(n, shape, ["i0", "i2"])).sum(2)
        assert (
            z.dtype == treadle.int64
            and z.tolist() == ((n * n).sum(1, keepdim=True).expand(3, 5)).tolist()
        )
        wide = (nn * xx).sum(2, dtype=treadle.float64)
        assert wide.dtype == treadle.float64
        close(wide.float(), n.float() @ x)
        truth = meta.reindex(n > 5, shape, ["i0", "i2"]).sum(2)
        assert truth[:, 0].tolist() == [0, 2, 4]


def test_empty_dimensions_and_impossible_shapes() -> None:
    with treadle.fuse(least=0):
        x = treadle.ones(0, 3)
        assert meta.reindex(x, (4, 5), ["i0", "i1"]).sum((0, 1)).item() == 0
        assert meta.reindex(treadle.ones(3), (0, 5), ["i1"]).sum(0).tolist() == [0] * 5
        one = treadle.ones(2)
        with pytest.raises(RuntimeError):
            meta.reindex(one, (1 << 40, 1 << 40), ["i0"])
        with pytest.raises(ValueError, match="divisor other than 0"):
            meta.reindex(one, (3, 4), ["6 // (i1 - 1)"])
        with pytest.raises(RuntimeError, match="^reindex: "):
            meta.reindex(treadle.ones(2, dtype=treadle.uint8), (3, 4), ["i0"], 1000)
        huge = meta.reindex(one, (1 << 30, 1 << 30), ["i0 + i1"])
        doubled = huge * 2
        for _ in range(2):
            with pytest.raises((RuntimeError, MemoryError)):
                doubled[0, 0].item()
        assert one.tolist() == [1, 1]
        one.add_(1)
        assert one.tolist() == [2, 2]
        del huge, doubled
        gc.collect()
        assert not explain().groups


def test_many_that_wait_for_a_look_keep_the_rest_fast() -> None:
    x = treadle.randn(16)
    with treadle.fuse(least=0):
        held = [meta.reindex(x, (16, 16), [f"i0 + i1 - {k}"]) for k in range(600)]
        y = x + 1
        for _ in range(300):
            y = y + 1
        assert waits(held[0]) and waits(held[-1])
        assert treadle.allclose(y, x + 301)
        for k in (0, 5, 599):
            expected = [
                [float(x[i + j - k]) if 0 <= i + j - k < 16 else 0.0 for j in range(16)]
                for i in range(16)
            ]
            assert held[k].tolist() == expected


def test_in_place_on_what_waits() -> None:
    x = treadle.arange(4.0)
    expected = meta.reindex(x, (3, 8), ["i0 + i1"]) * 2 + 1
    with treadle.fuse(least=0):
        xx = meta.reindex(x, (3, 8), ["i0 + i1"])
        xx.mul_(2)
        xx += 1
        total = xx.sum(0)
        assert total.tolist() == expected.sum(0).tolist()
        assert treadle.equal(xx, expected)


def test_convolution_norm_and_activation_are_three_groups() -> None:
    x, w = treadle.randn(2, 8, 32, 32), treadle.randn(16, 8, 3, 3)

    @treadle.fuse(least=0)
    def block(x: Tensor) -> Tensor:
        y = conv2d(x, w, padding=(1, 1))
        centred = y - y.mean((2, 3), keepdim=True)
        normed = centred * treadle.rsqrt((centred * centred).mean((2, 3), keepdim=True) + 1e-5)
        return normed.relu()

    y = block(x)
    found = explain(y)
    assert len(found.groups) <= 3
    assert found.groups[0].way == "as one convolution"
    assert found.bytes_saved > 9 * 8 * 2 * 16 * 32 * 32 * 4
    text = str(found)
    assert "aten::reindex(%0, [2, 16, 32, 32, 8, 3, 3], 'i0;i4;i2 * 1 + i5 * 1 - 1;" in text
    assert "3 operators as one convolution: " in text
    first = found.groups[0].group
    assert str(Group.parse(str(first))) == str(first)
    values = first.run([x, meta.broadcast(w, first.shape, (0, 2, 3))])
    close(next(iter(values.values())), F.conv2d(x, w, padding=1))
    close(y, F.instance_norm(F.conv2d(x, w, padding=1)).relu())


def test_any_number_of_threads() -> None:
    a = treadle.rand(70, 3000)
    shape = (70, 50, 3000)
    program: Callable[[], Tensor] = lambda: (  # noqa: E731
        meta.reindex(a, shape, ["i0", "i2"]) - meta.reindex(a, shape, ["i1", "i2"])
    ).abs().sum(2)  # fmt: skip
    results = []
    threads = treadle.get_num_threads()
    try:
        for count in (1, 2, 3):
            treadle.set_num_threads(count)
            with treadle.fuse():
                results.append(program() + 0)
                results[-1][0, 0].item()
    finally:
        treadle.set_num_threads(threads)
    assert treadle.equal(results[0], results[1]) and treadle.equal(results[0], results[2])
    close(results[0], program())


def test_modes_of_python_see_no_call_below() -> None:
    from treadle.utils._python_dispatch import TorchDispatchMode

    seen: List[str] = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x, w = treadle.randn(2, 3, 9, 9), treadle.randn(4, 3, 3, 3)
    with treadle.fuse(least=0):
        y = conv2d(x, w)
        with Log():
            total = y + 1
    assert all("convolution" not in name for name in seen)
    close(total, F.conv2d(x, w) + 1)

"""Nested tensors: what they compute is what each part gives by itself, and gradients reach the
parts."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import pickle
from typing import Any, Callable, List

import pytest

import treadle
import treadle.nn.functional as F
from treadle import nn
from treadle.nested import (
    as_nested_tensor,
    masked_select,
    narrow,
    nested_tensor,
    nested_tensor_from_jagged,
    to_padded_tensor,
)


def numbers(*size: int) -> Any:
    return treadle.randn(*size, generator=treadle.Generator().manual_seed(sum(size)))


def parts_of(*lengths: int, width: int = 4) -> List[Any]:
    return [numbers(n, width) for n in lengths]


def same(found: Any, wanted: List[Any]) -> None:
    assert found.is_nested and len(found) == len(wanted)
    for part, other in zip(found.unbind(), wanted):
        assert part.shape == other.shape
        treadle.testing.assert_close(part, other)


def fails(kind: type, message: str, function: Callable, *args: Any, **kwargs: Any) -> None:
    with pytest.raises(kind) as error:
        function(*args, **kwargs)
    assert str(error.value) == message


def jagged(parts: List[Any]) -> Any:
    return as_nested_tensor(parts, layout=treadle.jagged)


def test_what_it_is() -> None:
    parts = parts_of(2, 3)
    x = nested_tensor(parts, layout=treadle.jagged)
    assert isinstance(x, treadle.Tensor) and treadle.is_tensor(x) and x.is_nested
    assert x.layout == treadle.jagged and x.dim() == x.ndim == 3 and len(x) == 2
    assert x.offsets().tolist() == [0, 2, 5] and x.lengths() is None and x.numel() == 20
    assert tuple(x.values().shape) == (5, 4) and x.is_contiguous()
    assert x.size(0) == 2 and x.size(-1) == 4 and x.shape[1] == (x * 2).shape[1]
    assert x.shape != nested_tensor(parts, layout=treadle.jagged).shape
    name = repr(x.size(1))
    assert name[0] == "j" and repr(x.shape) == f"Size([2, {name}, 4])"
    text = f"NestedTensor(size=(2, {name}, 4), offsets=tensor([0, 2, 5]), contiguous=True)"
    assert repr(x) == text
    assert repr(x.requires_grad_()).endswith("contiguous=True, requires_grad=True)")
    assert (x._min_seqlen, x._max_seqlen) == (2, 3)
    same(x.detach(), parts)
    same(copy.deepcopy(x), parts)
    same(pickle.loads(pickle.dumps(x.detach())), parts)
    assert x.double().dtype == x.to(treadle.float64).dtype == treadle.float64
    with pytest.raises(IndexError, match="^size: expected a dimension from -3 to 2, got 3$"):
        x.size(3)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.relu(),
        lambda x: treadle.sin(x) + 1,
        lambda x: 2 - x / 3,
        lambda x: x**2 - x,
        lambda x: F.gelu(x) * F.silu(x),
        lambda x: x * treadle.arange(4.0),
        lambda x: treadle.arange(4.0) - x,
        lambda x: treadle.where(x > 0, x, -x),
        lambda x: x.masked_fill(x > 0, 0.0),
        lambda x: (x > 0) & (x < 1),
        lambda x: x.clamp(-1, 1).abs().sqrt(),
        lambda x: treadle.maximum(x, -x),
        lambda x: x.clone().mul_(2).add_(1),
        lambda x: F.dropout(x, 0.0),
        lambda x: treadle.zeros_like(x) + treadle.full_like(x, 2.0),
        lambda x: x.softmax(-1),
        lambda x: treadle.log_softmax(x, -1),
        lambda x: F.softmax(x, 1 if x.is_nested else 0),
        lambda x: x.cumsum(1 if x.is_nested else 0),
        lambda x: F.linear(x, treadle.ones(3, 4), treadle.arange(3.0)),
        lambda x: F.layer_norm(x, (4,)),
        lambda x: F.rms_norm(x, (4,)),
        lambda x: x @ treadle.ones(4, 2),
        lambda x: x.sum(-1),
        lambda x: x.mean(-1, keepdim=True),
        lambda x: x.amax(-1),
        lambda x: x.argmax(-1),
        lambda x: x.transpose(-1, -2),
        lambda x: x.unsqueeze(-1),
        lambda x: x.unsqueeze(-1).squeeze(-1),
        lambda x: x.unflatten(-1, [2, 2]),
        lambda x: x.unflatten(-1, [2, 2]).flatten(-2),
        lambda x: x.narrow(-1, 1, 2),
        lambda x: treadle.cat([x, x], -1),
        lambda x: x[..., 0],
        lambda x: x[..., 1:3],
        lambda x: x.chunk(2, -1)[1],
        lambda x: x.split([1, 3], -1)[1],
        lambda x: x.contiguous(),
    ],
)
def test_a_function_of_it_is_that_of_each_part(function: Callable) -> None:
    parts = parts_of(2, 1, 3)
    same(function(jagged(parts)), [function(part) for part in parts])


def test_what_is_one_for_each_part() -> None:
    parts = parts_of(2, 3)
    x = jagged(parts)
    by_part, by_place = numbers(2, 1, 4), numbers(2, 3, 1)
    same(x + by_part, [part + b for part, b in zip(parts, by_part)])
    same(x * by_place, [part * b[: len(part)] for part, b in zip(parts, by_place)])
    fails(RuntimeError, f"__add__: expected a tensor that is broadcast to (2, {x.size(1)}, 4), got "
          "shape (2, 2, 4)", lambda: x + numbers(2, 2, 4))  # fmt: skip
    other = jagged(parts)
    fails(RuntimeError, "__add__: expected nested tensors with the same offsets, got (2, "
          f"{x.size(1)}, 4) and (2, {other.size(1)}, 4)", lambda: x + other)  # fmt: skip
    again = nested_tensor_from_jagged(x.values() * 2, x.offsets())
    same(x + again, [3 * part for part in parts])


def test_sums_over_parts() -> None:
    parts = parts_of(2, 3)
    x = jagged(parts)
    close = treadle.testing.assert_close
    for name in "sum mean amax amin logsumexp prod".split():
        found = getattr(x, name)(1)
        close(found, treadle.stack([getattr(part, name)(0) for part in parts]))
    close(x.sum(1, keepdim=True), treadle.stack([part.sum(0, keepdim=True) for part in parts]))
    close(x.max(1).indices, treadle.stack([part.max(0).indices for part in parts]))
    close(x.sum(), sum(part.sum() for part in parts))
    close(x.sum((0, 1)), treadle.cat(parts).sum(0))
    close(x.sum((1, 2)), treadle.stack([part.sum() for part in parts]))
    assert bool((x == x).all()) and x.max().item() == max(part.max().item() for part in parts)
    fails(RuntimeError, "sum: expected the ragged dimension 1 beside that of the parts, got dim = "
          "0", x.sum, 0)  # fmt: skip
    fails(RuntimeError, "softmax: expected another dimension than that of the parts, got 0",
          x.softmax, 0)  # fmt: skip


def test_indices() -> None:
    parts = parts_of(2, 3, 1)
    x = jagged(parts)
    assert x[0].equal(parts[0]) and x[-1].equal(parts[2]) and x[1, 2].equal(parts[1][2])
    same(x[1:], parts[1:])
    same(x[[2, 0]], [parts[2], parts[0]])
    same(x[:, :1], [part[:1] for part in parts])
    assert x[:, 0].equal(treadle.stack([part[0] for part in parts]))
    same(x[:, :, 1], [part[:, 1] for part in parts])
    assert x.select(0, 1).equal(parts[1]) and [p.shape for p in x] == [p.shape for p in parts]
    same(x.chunk(2, 0)[0], parts[:2])
    fails(IndexError, "index: expected a part from 0 to 2, got 3", lambda: x[3])
    fails(IndexError, "index: expected at most 3 places, got None", lambda: x[None])


def test_padded() -> None:
    parts = parts_of(2, 3)
    x = jagged(parts)
    padded = to_padded_tensor(x, -1.0)
    assert tuple(padded.shape) == (2, 3, 4) and padded[0, 2].tolist() == [-1.0] * 4
    assert padded[0, :2].equal(parts[0]) and padded[1].equal(parts[1])
    assert tuple(x.to_padded_tensor(0.0, (2, 5, 4)).shape) == (2, 5, 4)
    assert x.to_padded_tensor(0.0, (2, 2, 4))[1].equal(parts[1][:2])
    turned = x.transpose(1, 2).to_padded_tensor(-1.0)
    assert turned.equal(padded.transpose(1, 2))
    fails(RuntimeError, "to_padded_tensor: expected 3 sizes, got (2, 3)",
          x.to_padded_tensor, 0.0, (2, 3))  # fmt: skip
    fails(RuntimeError, "to_padded_tensor: expected a nested tensor, got a dense one",
          parts[0].to_padded_tensor, 0.0)  # fmt: skip


def test_views() -> None:
    parts = [numbers(2, 8), numbers(3, 8)]
    x = jagged(parts)
    heads = [part.view(len(part), 2, 4).transpose(0, 1) for part in parts]
    same(x.view(2, -1, 2, 4).transpose(1, 2), heads)
    same(x.reshape(2, x.size(1), 2, -1).permute(0, 2, 1, 3), heads)
    wide = x.unsqueeze(-1).expand(2, x.size(1), 8, 3)
    same(wide, [part.unsqueeze(-1).expand(-1, 8, 3) for part in parts])
    turned = x.transpose(1, 2)
    assert not turned.is_contiguous() and turned.contiguous().is_contiguous()
    name = x.size(1)
    fails(RuntimeError, "view: expected 2 parts and a ragged size (or -1 for it), got (3, -1, 8)",
          x.view, 3, -1, 8)  # fmt: skip
    fails(RuntimeError, "view: expected sizes with 1 elements before the ragged one and 8 behind "
          "it, got (2, -1, 7)", x.view, 2, -1, 7)  # fmt: skip
    fails(RuntimeError, "flatten: expected dimensions on one side of the ragged one, got 1 to 2",
          x.flatten, 1)  # fmt: skip
    fails(ValueError, "transpose: expected each dimension once, that of the parts first, got (1, "
          "0, 2)", x.transpose, 0, 1)  # fmt: skip
    fails(ValueError, "transpose: expected each dimension once, that of the parts first, got (1, "
          "0, 2)", x.transpose, 0, 1)  # fmt: skip
    fails(RuntimeError, "unsqueeze: expected a place behind that of the parts, got 0",
          x.unsqueeze, 0)  # fmt: skip
    fails(RuntimeError, "squeeze: expected a dimension for a nested tensor, got none", x.squeeze)
    fails(RuntimeError, "narrow: expected a dimension that all parts have in common, got 1 of (2, "
          f"{name}, 8)", x.narrow, 1, 0, 1)  # fmt: skip
    fails(RuntimeError, "unbind: expected dim = 0 for a nested tensor, got 1", x.unbind, 1)
    fails(RuntimeError, f"expand: expected sizes that fit (2, {name}, 8), got (2, 3, 8)",
          x.expand, 2, 3, 8)  # fmt: skip


def test_products() -> None:
    parts = parts_of(2, 3)
    x = jagged(parts)
    close = treadle.testing.assert_close
    weights = numbers(2, 4, 3)
    same(treadle.bmm(x, weights), [part @ w for part, w in zip(parts, weights)])
    close(treadle.bmm(x.transpose(1, 2), x), treadle.stack([part.T @ part for part in parts]))
    with pytest.raises(RuntimeError, match="^nested_tensor: expected parts that differ in one"):
        treadle.matmul(x, x.transpose(1, 2))
    fails(RuntimeError, "matmul: expected a matrix or one for each part, got shape (3, 4, 2)",
          treadle.matmul, x, numbers(3, 4, 2))  # fmt: skip
    name = x.size(1)
    fails(RuntimeError, f"linear: expected a last dimension that is not ragged, got (2, 4, {name})",
          F.linear, x.transpose(1, 2), treadle.ones(2, 4))  # fmt: skip
    fails(RuntimeError, "layer_norm: expected normalized_shape within the dimensions behind the "
          f"ragged one, got (3, 4) for (2, {name}, 4)", F.layer_norm, x, (3, 4))  # fmt: skip


@pytest.mark.parametrize("is_causal", [False, True])
def test_attention(is_causal: bool) -> None:
    queries, keys = [numbers(2, n, 4) for n in (2, 3)], [numbers(2, n, 4) for n in (4, 1)]
    if is_causal:
        keys = queries
    q = as_nested_tensor([p.transpose(0, 1) for p in queries], layout=treadle.jagged)
    k = as_nested_tensor([p.transpose(0, 1) for p in keys], layout=treadle.jagged)
    q, k = q.transpose(1, 2), k.transpose(1, 2)
    found = F.scaled_dot_product_attention(q, k, k * 2, is_causal=is_causal)
    same(found, [F.scaled_dot_product_attention(a, b, 2 * b, is_causal=is_causal)
                 for a, b in zip(queries, keys)])  # fmt: skip
    name = "scaled_dot_product_attention"
    fails(NotImplementedError, f"{name}: expected no attn_mask for nested tensors, got one",
          F.scaled_dot_product_attention, q, k, k, treadle.ones(1))  # fmt: skip
    fails(RuntimeError, f"{name}: expected as many parts in all, got 2, 2, 1",
          F.scaled_dot_product_attention, q, k, k[:1])  # fmt: skip
    with pytest.raises(RuntimeError, match=f"^{name}: expected nested query, key and value"):
        F.scaled_dot_product_attention(q, k, treadle.ones(2, 2, 4, 4))


def test_gradients_reach_the_parts() -> None:
    leaves = [part.requires_grad_() for part in parts_of(2, 3)]
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2))
    x = jagged(leaves)
    assert x.requires_grad and not x.is_leaf and x.grad_fn is not None
    model(x).softmax(-1).mean(1).pow(2).sum().backward()
    found = [leaf.grad for leaf in leaves] + [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    again = [leaf.detach().requires_grad_() for leaf in leaves]
    losses: Any = [model(leaf).softmax(-1).mean(0).pow(2).sum() for leaf in again]
    sum(losses).backward()  # type: ignore[union-attr]
    wanted = [leaf.grad for leaf in again] + [p.grad for p in model.parameters()]
    for grad, other in zip(found, wanted):
        treadle.testing.assert_close(grad, other)


def test_leaves() -> None:
    parts = parts_of(2, 3)
    x = nested_tensor(parts, layout=treadle.jagged, requires_grad=True)
    assert x.is_leaf and x.grad is None and not parts[0].requires_grad
    (x * x).sum().backward()
    same(x.grad, [2 * part for part in parts])
    x.grad = None
    y = x * 3
    y.backward(treadle.ones_like(y))
    same(x.grad, [treadle.full_like(part, 3.0) for part in parts])


def test_from_jagged() -> None:
    values, offsets = numbers(6, 4), treadle.tensor([0, 2, 2, 6])
    x = nested_tensor_from_jagged(values, offsets)
    same(x, [values[:2], values[2:2], values[2:]])
    assert x.values() is values and x.offsets() is offsets
    assert (x._min_seqlen, x._max_seqlen) == (0, 4)
    spaced = nested_tensor_from_jagged(values, offsets, treadle.tensor([1, 0, 3]))
    wanted = [values[:1], values[2:2], values[2:5]]
    same(spaced, wanted)
    same(spaced * 2, [2 * part for part in wanted])
    assert not spaced.is_contiguous() and spaced.contiguous().is_contiguous()
    assert spaced.numel() == 16 and spaced.sum(1)[2].allclose(wanted[2].sum(0))
    by_lengths = nested_tensor_from_jagged(values, lengths=treadle.tensor([1, 2, 3]))
    assert by_lengths.offsets().tolist() == [0, 1, 3, 6]
    last = nested_tensor_from_jagged(values, treadle.tensor([0, 1, 4]), jagged_dim=2)
    same(last, [values[:, :1], values[:, 1:]])
    name = "nested_tensor_from_jagged"
    fails(RuntimeError, f"{name}: expected offsets or lengths, got neither",
          nested_tensor_from_jagged, values)  # fmt: skip
    fails(RuntimeError, f"{name}: expected offsets to be a vector of integers, got treadle.float32 "
          "of shape (2,)", nested_tensor_from_jagged, values, treadle.zeros(2))  # fmt: skip
    fails(RuntimeError, f"{name}: expected jagged_dim from 1 to 2, got 3",
          nested_tensor_from_jagged, values, offsets, jagged_dim=3)  # fmt: skip
    with pytest.raises(TypeError, match=f"^{name}: expected values to be a dense tensor, got "):
        nested_tensor_from_jagged(x, offsets)


def test_narrow_and_masked_select() -> None:
    x = numbers(2, 5, 3)
    found = narrow(x, 1, treadle.tensor([0, 1]), treadle.tensor([2, 3]), layout=treadle.jagged)
    same(found, [x[0, :2], x[1, 1:4]])
    found.values()[0] = 7.0
    assert x[0, 0].tolist() == [7.0] * 3
    same(narrow(x, 1, 1, 2), [x[0, 1:3], x[1, 1:3]])
    fails(RuntimeError, "narrow: expected dim = 1, got 2", narrow, x, 2, 0, 1)
    fails(RuntimeError, "narrow: expected places within 5, got others", narrow, x, 1, 4, 2)
    fails(RuntimeError, "narrow: expected start to be a number or 2 of them, got shape (3,)",
          narrow, x, 1, treadle.zeros(3, dtype=treadle.int64), 1)  # fmt: skip
    fails(RuntimeError, "narrow: expected layout strided or jagged, got treadle.sparse_coo",
          narrow, x, 1, 0, 1, layout=treadle.sparse_coo)  # fmt: skip
    rows = x[:, :, 0]
    same(masked_select(rows, rows > 0), [row[row > 0] for row in rows])
    fails(RuntimeError, "masked_select: expected a matrix and a mask of bools, got shape (2, 5, 3) "
          "and treadle.bool", masked_select, x, x > 0)  # fmt: skip


def test_other_ways_to_make_one() -> None:
    x = numbers(2, 5, 3)
    same(as_nested_tensor(x, layout=treadle.jagged), list(x))
    same(nested_tensor([[1.0, 2.0], [3.0]]), [treadle.tensor([1.0, 2.0]), treadle.tensor([3.0])])
    wide = [numbers(3, 2), numbers(3, 1)]
    same(nested_tensor(wide, layout=treadle.jagged), wide)
    assert nested_tensor(wide, layout=treadle.jagged).size(1) == 3
    assert as_nested_tensor(nested_tensor(wide), dtype=treadle.float64).dtype == treadle.float64
    words = nested_tensor([treadle.tensor([0, 1]), treadle.tensor([2])], layout=treadle.jagged)
    rows = treadle.eye(3)
    same(nn.Embedding.from_pretrained(rows)(words), [rows[:2], rows[2:]])
    strided = nested_tensor([treadle.ones(1, 2), treadle.zeros(2, 2)])
    assert strided.layout == treadle.strided and repr(strided) == (
        "nested_tensor([\n  tensor([[1., 1.]]),\n  tensor([[0., 0.],\n          [0., 0.]])\n])"
    )
    fails(RuntimeError, "nested_tensor: expected at least one part, got none", nested_tensor, [])
    fails(RuntimeError, "nested_tensor: expected parts of one number of dimensions, 1 at least, "
          "got [()]", nested_tensor, [treadle.tensor(1.0)])  # fmt: skip
    fails(RuntimeError, "nested_tensor: expected parts that differ in one size alone, got [(2, 3),"
          " (3, 4)]", nested_tensor, [numbers(2, 3), numbers(3, 4)])  # fmt: skip
    fails(RuntimeError, "as_nested_tensor: expected two dimensions at least, got (3,)",
          as_nested_tensor, numbers(3))  # fmt: skip
    fails(TypeError, "as_nested_tensor: expected a tensor or a list of tensors, got int",
          as_nested_tensor, 3)  # fmt: skip


def test_what_is_refused() -> None:
    x = jagged(parts_of(2, 3))
    rest = (
        "expected dense tensors, got a nested one; unbind() and to_padded_tensor() give dense ones"
    )
    fails(NotImplementedError, f"stack: {rest}", treadle.stack, [x, x])
    fails(NotImplementedError, f"flip: {rest}", treadle.flip, x, (1,))
    fails(NotImplementedError, "add: expected no out= for nested tensors, got one",
          lambda: treadle.add(x, x, out=treadle.ones(1)))  # fmt: skip
    fails(RuntimeError, "bool: expected a tensor of one element, got a nested one of 20", bool, x)
    for name in ("tolist", "numpy"):
        fails(RuntimeError, f"{name}: expected a dense tensor, got a nested one; unbind() it first",
              getattr(x, name))  # fmt: skip
    with pytest.raises(AttributeError, match="^'NestedTensor' object has no attribute 'nothing'$"):
        x.nothing  # noqa: B018


def test_where_programs_find_the_class() -> None:
    from treadle.nested._internal.nested_tensor import NestedTensor, buffer_from_jagged

    x = jagged(parts_of(2, 3))
    assert type(x) is NestedTensor and buffer_from_jagged(x) is x.values()

"""Linear, bilinear, dropout, flattening and embedding layers, against NumPy in float64, and that
gradients of simple layers are right."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import numpy as np
import pytest
from nn_arrays import array, check, to_numpy

import treadle
import treadle.nn.functional as F
from treadle import nn, tensor


def test_linear():
    layer = nn.Linear(3, 4).double()
    x = array(2, 5, 3)
    check(layer(tensor(x)), x @ layer.weight.detach().numpy().T + layer.bias.detach().numpy())
    assert nn.Linear(3, 4, bias=False).bias is None


def test_bilinear():
    layer = nn.Bilinear(3, 4, 5).double()
    a, b = array(2, 6, 3), array(2, 6, 4)
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    check(layer(tensor(a), tensor(b)), np.einsum("xyi,kij,xyj->xyk", a, weight, b) + bias)


def test_dropout():
    treadle.manual_seed(0)
    layer, x = nn.Dropout(0.25), treadle.ones((100, 100))
    y = layer(x)
    kept = (y != 0).to(treadle.float32).mean().item()
    assert abs(kept - 0.75) < 0.02
    assert set(np.unique(y.numpy().round(4))) == {0.0, np.float32(1 / 0.75).round(4)}
    assert treadle.equal(layer.eval()(x), x)
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.Dropout(1.5)


def test_dropout_of_channels() -> None:
    treadle.manual_seed(0)
    x = treadle.ones(40, 50, 3)
    y = nn.Dropout1d(0.3)(x)
    assert bool(((y == y[..., :1]).all(-1)).all())
    assert set(y.unique().tolist()) == {0.0, treadle.tensor(1 / 0.7).item()}
    assert abs((y == 0).to(treadle.float32).mean().item() - 0.3) < 0.05
    one = F.dropout1d(x[0], 0.5)
    assert one.shape == x[0].shape and bool((one == one[:, :1]).all())
    assert nn.Dropout2d(0.5)(treadle.ones(2, 3, 4, 5)).shape == (2, 3, 4, 5)
    assert nn.Dropout3d(0.5)(treadle.ones(3, 4, 5, 2)).shape == (3, 4, 5, 2)
    assert treadle.equal(nn.Dropout2d(0.5).eval()(x), x)
    assert repr(nn.FeatureAlphaDropout(0.2)) == "FeatureAlphaDropout(p=0.2, inplace=False)"
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.AlphaDropout(1.5)


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    treadle.manual_seed(0)
    x = treadle.randn(400, 500)
    for layer in (nn.AlphaDropout(0.4), nn.FeatureAlphaDropout(0.4)):
        y = layer(x)
        assert abs(y.mean().item()) < 0.02 and abs(y.var().item() - 1) < 0.02
        z = x.clone()
        layer.inplace = True
        assert layer(z) is z


def test_flatten_and_unflatten():
    x = treadle.arange(24).reshape((2, 3, 4))
    assert nn.Flatten()(x).shape == (2, 12)
    assert nn.Flatten(0, 1)(x).shape == (6, 4)
    assert nn.Unflatten(1, (3, 4))(nn.Flatten()(x)).tolist() == x.tolist()
    assert nn.Unflatten(-1, (2, 2))(x).shape == (2, 3, 2, 2)


def test_embedding():
    layer = nn.Embedding(5, 3, padding_idx=-1).double()
    assert layer.padding_idx == 4 and layer.weight[4].tolist() == [0, 0, 0]
    index = treadle.tensor([[0, 4], [2, 0]])
    y = layer(index)
    check(y, layer.weight.detach().numpy()[index.numpy()])
    y.sum().backward()
    assert layer.weight.grad[:, 0].tolist() == [2, 0, 1, 0, 0]
    frozen = nn.Embedding.from_pretrained(treadle.ones((2, 3)))
    assert not frozen.weight.requires_grad and frozen(treadle.tensor([1])).tolist() == [[1, 1, 1]]


def test_embedding_max_norm():
    layer = nn.Embedding.from_pretrained(treadle.tensor([[3.0, 4.0], [0.3, 0.4]]), max_norm=1.0)
    assert layer(treadle.tensor([0, 1])).numpy() == pytest.approx(
        np.array([[0.6, 0.8], [0.3, 0.4]])
    )


def test_embedding_bag() -> None:
    index = treadle.tensor([1, 2, 4, 5, 4, 3])
    offsets = treadle.tensor([0, 2, 2])
    for mode, combine in (("sum", np.sum), ("mean", np.mean), ("max", np.max)):
        bag = nn.EmbeddingBag(6, 3, mode=mode, dtype=treadle.float64)
        w = to_numpy(bag.weight)
        want = np.stack([combine(w[[1, 2]], 0), np.zeros(3), combine(w[[4, 5, 4, 3]], 0)])
        np.testing.assert_allclose(to_numpy(bag(index, offsets)), want, rtol=1e-12)
        two = bag(index.reshape(2, 3))
        want = np.stack([combine(w[[1, 2, 4]], 0), combine(w[[5, 4, 3]], 0)])
        np.testing.assert_allclose(to_numpy(two), want, rtol=1e-12)
        assert repr(bag) == f"EmbeddingBag(6, 3, mode='{mode}')"
    bag = nn.EmbeddingBag(6, 3, mode="sum", padding_idx=-2)
    assert bag.padding_idx == 4 and bool((bag.weight[4] == 0).all())
    bag(index, offsets, treadle.ones(6)).sum().backward()
    assert bool((bag.weight.grad[4] == 0).all()) and bag.weight.grad[5].sum().item() == 3
    last = nn.EmbeddingBag.from_pretrained(treadle.eye(6), mode="sum", include_last_offset=True)
    assert not last.weight.requires_grad
    assert last(index, treadle.tensor([0, 2, 6])).sum(1).tolist() == [2, 4]
    with pytest.raises(ValueError, match="offsets has to be a 1D Tensor"):
        bag(index)
    with pytest.raises(NotImplementedError, match="mode='sum'"):
        F.embedding_bag(index, bag.weight, offsets, per_sample_weights=treadle.ones(6))
    for wrong in ([1, 2], [0, 7], [0, 3, 2], [0, -1]):
        with pytest.raises(RuntimeError, match="embedding_bag: expected offsets"):
            bag(index, treadle.tensor(wrong))
    with pytest.raises(RuntimeError, match="embedding_bag: expected index"):
        bag(treadle.tensor([6]), treadle.tensor([0]))
    small = nn.EmbeddingBag(6, 3, max_norm=0.5)
    small(index, offsets)
    assert bool((small.weight[index].norm(dim=1) <= 0.5001).all())


@pytest.mark.parametrize(
    "layer, shape",
    [
        (nn.Linear(3, 2), (4, 3)),
        (nn.Conv2d(2, 3, 2, padding=1), (2, 2, 3, 3)),
        (nn.BatchNorm1d(3), (4, 3)),
        (nn.LayerNorm(3), (4, 3)),
        (nn.GELU(), (5,)),
        (nn.SiLU(), (5,)),
        (nn.LogSoftmax(-1), (3, 4)),
        (nn.MaxPool2d(2), (1, 2, 4, 4)),
        (nn.AvgPool2d(2), (1, 2, 4, 4)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_gradients(layer, shape):
    treadle.manual_seed(0)
    layer = layer.double()
    x = treadle.randn(shape, dtype=treadle.float64, requires_grad=True)
    assert treadle.autograd.gradcheck(layer, (x,))


def test_embedding_takes_a_table_of_two_dimensions():
    for weight in (treadle.tensor(1.0), treadle.ones(1, 1, 1)):
        with pytest.raises(RuntimeError) as error:
            treadle.nn.functional.embedding(treadle.tensor([0]), weight)
        assert str(error.value) == (
            f"embedding: expected a weight of two dimensions, got shape {tuple(weight.shape)}"
        )


def test_bags_end_with_the_indices_whatever_the_last_offset_says():
    bags = treadle.nn.EmbeddingBag(5, 2, include_last_offset=True)
    indices = treadle.arange(4)
    whole = bags(indices, treadle.tensor([0, 3, 4]))
    assert treadle.equal(bags(indices, treadle.tensor([0, 3, 3])), whole)
    assert treadle.equal(whole[1], bags.weight[3])
    with pytest.raises(RuntimeError) as error:
        bags(treadle.tensor([7]), treadle.tensor([0, 1]))
    assert str(error.value) == "embedding_bag: expected index in [0, 5), got index = 7"


def test_sparse_bags_train_the_rows_that_are_named() -> None:
    bag = nn.EmbeddingBag(5, 2, mode="sum", sparse=True)
    before = bag.weight.detach().clone()
    optimizer = treadle.optim.SparseAdam(bag.parameters(), lr=0.1)
    bag(treadle.tensor([[1, 3], [3, 4]])).sum().backward()
    assert bag.weight.grad.is_sparse
    assert bag.weight.grad.to_dense().tolist() == [[0, 0], [1, 1], [0, 0], [2, 2], [1, 1]]
    optimizer.step()
    changed = bag.weight.detach().ne(before).all(dim=1)
    assert changed.tolist() == [False, True, False, True, True]

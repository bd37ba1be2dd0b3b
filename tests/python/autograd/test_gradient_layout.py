"""A gradient lies in memory as its parameter does: `p.grad.view(-1)` works if `p.view(-1)` does."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable

import pytest

import treadle
from treadle import nn


def randn(*sizes: int) -> treadle.Tensor:
    return treadle.randn(*sizes)


def indices(*sizes: int) -> treadle.Tensor:
    return treadle.randint(0, 5, sizes)


# A layer with parameters, and arguments to call it with.
LAYERS: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple]]] = {
    "Linear": (lambda: nn.Linear(4, 8), lambda: (randn(6, 4),)),
    "Bilinear": (lambda: nn.Bilinear(3, 4, 5), lambda: (randn(6, 3), randn(6, 4))),
    "Embedding": (lambda: nn.Embedding(5, 3), lambda: (indices(4),)),
    "EmbeddingBag": (lambda: nn.EmbeddingBag(5, 3), lambda: (indices(4, 2),)),
    "Conv1d": (lambda: nn.Conv1d(4, 6, 3), lambda: (randn(2, 4, 9),)),
    "Conv2d": (lambda: nn.Conv2d(4, 6, 3), lambda: (randn(2, 4, 9, 9),)),
    "Conv3d": (lambda: nn.Conv3d(4, 6, 3), lambda: (randn(2, 4, 5, 5, 5),)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(4, 6, 3), lambda: (randn(2, 4, 9),)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(4, 6, 3), lambda: (randn(2, 4, 9, 9),)),
    "ConvTranspose3d": (lambda: nn.ConvTranspose3d(4, 6, 3), lambda: (randn(2, 4, 5, 5, 5),)),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(4), lambda: (randn(6, 4),)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(4), lambda: (randn(6, 4, 3, 3),)),
    "BatchNorm3d": (lambda: nn.BatchNorm3d(4), lambda: (randn(6, 4, 3, 3, 3),)),
    "InstanceNorm1d": (lambda: nn.InstanceNorm1d(4, affine=True), lambda: (randn(6, 4, 5),)),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(4, affine=True), lambda: (randn(6, 4, 3, 3),)),
    "InstanceNorm3d": (lambda: nn.InstanceNorm3d(4, affine=True), lambda: (randn(6, 4, 3, 3, 3),)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), lambda: (randn(6, 4, 3),)),
    "LayerNorm": (lambda: nn.LayerNorm((3, 4)), lambda: (randn(6, 3, 4),)),
    "RMSNorm": (lambda: nn.RMSNorm((3, 4)), lambda: (randn(6, 3, 4),)),
    "PReLU": (lambda: nn.PReLU(4), lambda: (randn(6, 4, 3),)),
    "RNN": (lambda: nn.RNN(3, 5, 2), lambda: (randn(4, 2, 3),)),
    "LSTM": (lambda: nn.LSTM(3, 5, 2, proj_size=2), lambda: (randn(4, 2, 3),)),
    "GRU": (lambda: nn.GRU(3, 5, 2, bidirectional=True), lambda: (randn(4, 2, 3),)),
    "RNNCell": (lambda: nn.RNNCell(3, 5), lambda: (randn(4, 3),)),
    "LSTMCell": (lambda: nn.LSTMCell(3, 5), lambda: (randn(4, 3),)),
    "GRUCell": (lambda: nn.GRUCell(3, 5), lambda: (randn(4, 3),)),
    "MultiheadAttention": (lambda: nn.MultiheadAttention(4, 2), lambda: (randn(3, 2, 4),) * 3),
    "TransformerEncoderLayer": (
        lambda: nn.TransformerEncoderLayer(4, 2, 8),
        lambda: (randn(3, 2, 4),),
    ),
    "TransformerDecoderLayer": (
        lambda: nn.TransformerDecoderLayer(4, 2, 8),
        lambda: (randn(3, 2, 4),) * 2,
    ),
    "Transformer": (
        lambda: nn.Transformer(4, 2, 1, 1, 8),
        lambda: (randn(3, 2, 4),) * 2,
    ),
    "AdaptiveLogSoftmaxWithLoss": (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 12, [4, 8]),
        lambda: (randn(12, 8), treadle.arange(12)),
    ),
}  # fmt: skip


def total(result: Any) -> treadle.Tensor:
    if isinstance(result, treadle.Tensor):
        return result.square().sum() if result.requires_grad else treadle.zeros(())
    return sum((total(r) for r in result if r is not None), treadle.zeros(()))


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_of_layers_lie_as_their_parameters(name: str, create_graph: bool) -> None:
    make, arguments = LAYERS[name]
    layer = make()
    for _ in range(2):
        total(layer(*arguments())).backward(create_graph=create_graph)
        for key, p in layer.named_parameters():
            assert p.grad is not None, key
            assert p.grad.stride() == p.stride(), key
            p.grad.view(-1)


def test_layers_that_are_not_tried_have_no_parameters() -> None:
    """A new layer with parameters must come into the table."""
    for name in dir(nn):
        layer = getattr(nn, name)
        if not isinstance(layer, type) or not issubclass(layer, nn.Module) or name in LAYERS:
            continue
        if name.startswith("Lazy"):  # becomes one of those that are tried
            continue
        try:
            made = layer()
        except TypeError:
            continue
        assert not list(made.parameters()), name


@pytest.mark.parametrize(
    "make",
    [
        lambda: treadle.randn(3, 4),
        lambda: treadle.randn(4, 3).t(),
        lambda: treadle.randn(2, 3, 4).permute(2, 0, 1),
        lambda: treadle.randn(2, 3, 4, 5).to(memory_format=treadle.channels_last),
        lambda: treadle.randn(1, 3, 1, 5).to(memory_format=treadle.channels_last),
    ],
    ids=["contiguous", "transposed", "permuted", "channels last", "with ones"],
)
@pytest.mark.parametrize("create_graph", [False, True])
def test_a_gradient_has_the_strides_of_a_dense_leaf(make: Callable, create_graph: bool) -> None:
    for use in (
        lambda x: (x * 2).sum(),
        lambda x: x.sum(),  # an expanded gradient
        lambda x: (x.movedim(0, -1) * 2).square().sum(),
        lambda x: (x.flip(0).contiguous() * x).sum(),
        lambda x: x.reshape(-1).cumsum(0).sum(),
        lambda x: x.exp().mean(0).sum(),
    ):
        x = make().requires_grad_()
        use(x).backward(create_graph=create_graph)
        wide = [d for d in range(x.dim()) if x.shape[d] != 1]
        assert [x.grad.stride(d) for d in wide] == [x.stride(d) for d in wide]


def test_a_leaf_with_gaps_gets_a_contiguous_gradient() -> None:
    x = treadle.randn(4, 6)[:, ::2].detach().requires_grad_()
    (x.t() * 2).sum().backward()
    assert x.grad.is_contiguous()


def test_the_gradient_of_a_weight_is_not_copied() -> None:
    """The product of matrices is taken over as it is."""
    layer = nn.Linear(4, 8, bias=False)
    seen = []
    layer.weight.register_hook(lambda g: seen.append((g.stride(), g.data_ptr())))
    layer(randn(6, 4)).sum().backward()
    ((stride, _),) = seen
    assert stride == layer.weight.stride()


def test_gradients_of_a_transposed_weight_are_added_up_in_place() -> None:
    weight = treadle.randn(64, 32, requires_grad=True)
    x, wide = treadle.randn(4, 32), weight.t()
    loss = sum(treadle.addmm(treadle.zeros(64), x, wide).sum() for _ in range(5))
    with treadle.autograd.profiler.profile() as prof:
        loss.backward()
    names = [event.name for event in prof.function_events]
    assert names.count("aten::add_") == 4 and "aten::add" not in names
    treadle.testing.assert_close(weight.grad, 5 * x.sum(0).expand(64, 32))

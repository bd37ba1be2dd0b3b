"""fx.experimental.meta_tracer: sizes and dtypes that are known while a program is traced."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings

import pytest

import treadle
from treadle import fx, nn
from treadle.fx.experimental import meta_tracer
from treadle.testing import assert_close

X = treadle.arange(6.0).reshape(2, 3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm, self.act = nn.Linear(3, 4), nn.LayerNorm(4), nn.ReLU()
        self.batch = nn.BatchNorm1d(4)
        self.w = nn.Parameter(treadle.ones(4))

    def forward(self, x, scale=2.0):
        y = self.batch(self.norm(self.act(self.linear(x)))) * self.w
        if y.shape[1] > 2 and y.dim() == 2 and y.dtype == treadle.float32:
            y = y + 1
        for i in range(y.size(0)):
            y = y * (i + 1)
        more = treadle.zeros(y.shape[0], 4, device=y.device)
        first, second = treadle.split(y + more, 2, dim=1)
        return treadle.where(first > 0, first, second).relu() * scale


def test_sizes_decide_branches_and_loops():
    net = Net().eval()
    example = {"x": treadle.ones(2, 3, device="meta")}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gm = meta_tracer.symbolic_trace(net, meta_args=example, concrete_args={"scale": 3.0})
    assert isinstance(gm, fx.GraphModule) and type(gm).__name__ == "Net"
    assert_close(gm(X, 3.0), net(X, 3.0))
    targets = [n.target for n in gm.graph.nodes if n.op == "call_function"]
    assert getattr in targets and treadle.zeros in targets
    assert not any(n.target in ("size", "dim") for n in gm.graph.nodes)
    with pytest.raises(fx.proxy.TraceError):
        meta_tracer.symbolic_trace(net)
    assert treadle.equal(treadle.zeros(2), treadle.tensor([0.0, 0.0]))
    assert net.training is False and net(X).shape == (2, 2)


def test_what_has_no_example():
    gm = meta_tracer.symbolic_trace(lambda x: x.size(0) + x.dim())
    assert [n.target for n in gm.graph.nodes if n.op == "call_method"] == ["size", "dim"]
    assert gm(X) == 4
    with pytest.warns(UserWarning, match="fx: no example of call_method no_such_method"):
        meta_tracer.symbolic_trace(lambda x: x.no_such_method(), meta_args={"x": X})


def test_attributes():
    gm = meta_tracer.symbolic_trace(lambda x: x.T + x.mT.sum(), meta_args={"x": X})
    assert treadle.equal(gm(X), X.T + X.sum())
    seen = []

    def function(x):
        seen.extend([type(x.T), type(x.device), x.device.attr, x.dtype])
        return x

    meta_tracer.symbolic_trace(function, meta_args={"x": X})
    assert seen[:3] == [meta_tracer.MetaAttribute, meta_tracer.MetaDeviceAttribute, "device"]
    assert seen[3] is treadle.float32


def test_forms_on_the_meta_device():
    x = X.to("meta")
    assert meta_tracer.torch_relu_override(x) is x
    assert meta_tracer.torch_abs_override(x) is x
    assert meta_tracer.functional_relu_override(x) is x
    assert meta_tracer.nn_layernorm_override(nn.LayerNorm(3), x) is x
    assert meta_tracer.torch_nn_relu_override(nn.ReLU(), x) is x
    indices = treadle.zeros(2, 5, dtype=treadle.int64, device="meta")
    assert meta_tracer.embedding_override(nn.Embedding(4, 3), indices).shape == (2, 5, 3)
    assert meta_tracer.torch_where_override(x > 0, x, x[0]).shape == (2, 3)
    assert meta_tracer.manual_meta_overrides[nn.ReLU] is meta_tracer.torch_nn_relu_override
    with pytest.raises(AssertionError) as caught:
        meta_tracer.functional_relu_override(x, inplace=True)
    assert str(caught.value) == "relu: expected inplace=False, got True: it writes a traced value"
    with pytest.raises(AssertionError) as caught:
        meta_tracer.torch_abs_override(x, out=x)
    assert str(caught.value) == "abs: expected no out, got one: it writes a traced value"
    made, target = meta_tracer.gen_constructor_wrapper(treadle.zeros)
    assert target is treadle.zeros and made(2).shape == (2,)
    assert meta_tracer.proxys_to_metas(3) == 3

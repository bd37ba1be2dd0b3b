"""Tensors of layout mkldnn: images in the order in which convolutions compute."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import io
import os
import pickle
import subprocess
import sys
from typing import Any, Callable

import pytest

import treadle
import treadle.nn.functional as F
from treadle import nn
from treadle.fx.experimental.optimization import optimize_for_inference
from treadle.nn.utils.blocked import MkldnnConvolution
from treadle.utils.mkldnn import to_mkldnn


def fails(kind: type, message: str, function: Callable[..., Any], *args: Any) -> None:
    with pytest.raises(kind) as error:
        function(*args)
    assert str(error.value) == message


class Block(nn.Module):
    """Convolutions with a sum over a path beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, 2, 1)
        self.norm = nn.BatchNorm2d(16)
        self.second = nn.Conv2d(16, 16, 3, 1, 1, bias=False)
        self.third = nn.Conv2d(16, 24, 1)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(24, 4)

    def forward(self, x: treadle.Tensor) -> treadle.Tensor:
        x = F.relu(self.norm(self.first(x)))
        x = self.third(F.relu(self.second(x) + x))
        return self.head(F.adaptive_avg_pool2d(self.pool(x), 1).flatten(1))


def block() -> Block:
    treadle.manual_seed(0)
    made = Block().eval()
    made.norm.running_mean.normal_()
    made.norm.running_var.uniform_(0.5, 2)
    return made


@pytest.mark.parametrize(
    "shape", [(2, 16, 5, 6), (1, 3, 7), (2, 24, 2, 3, 4), (4, 8), (3,), (0, 8, 2)]
)
def test_there_and_back(shape: tuple[int, ...]) -> None:
    x = treadle.randn(shape)
    y = x.to_mkldnn()
    assert y.is_mkldnn and not x.is_mkldnn and y.shape == x.shape and y.dtype is treadle.float32
    assert y.to_mkldnn() is y
    assert treadle.equal(y.to_dense(), x)
    assert treadle.equal(copy.deepcopy(y).to_dense(), x)
    assert (
        treadle.equal(y.clone().to_dense(), x)
        and y.to_dense(treadle.float64).dtype is treadle.float64
    )


def test_files_and_state() -> None:
    layer = MkldnnConvolution(nn.Conv2d(3, 8, 3))
    file = io.BytesIO()
    treadle.save(layer.state_dict(), file)
    file.seek(0)
    other = MkldnnConvolution(nn.Conv2d(3, 8, 3))
    other.load_state_dict(treadle.load(file))
    x = treadle.randn(1, 3, 5, 5)
    assert treadle.equal(other(x).to_dense(), layer(x).to_dense())
    assert treadle.equal(pickle.loads(pickle.dumps(layer))(x).to_dense(), layer(x).to_dense())
    assert repr(treadle.zeros(1, 1).to_mkldnn()).endswith("layout=treadle.mkldnn)")


def test_operators() -> None:
    x, z = treadle.randn(2, 16, 8, 8), treadle.randn(2, 16, 8, 8)
    y, w = x.to_mkldnn(), z.to_mkldnn()
    for f in (
        F.relu,
        treadle.sigmoid,
        lambda t: t * 2,
        lambda t: t.clamp(-1, 1),
        lambda t: F.max_pool2d(t, 3, 2, 1),
        lambda t: F.avg_pool2d(t, 2),
        lambda t: F.adaptive_avg_pool2d(t, (3, 2)),
        lambda t: F.interpolate(t, scale_factor=2),
    ):
        assert f(y).is_mkldnn
        treadle.testing.assert_close(f(y).to_dense(), f(x))
    assert (y + w).is_mkldnn and treadle.equal((y + w).to_dense(), x + z)
    assert treadle.equal(treadle.cat([y, w], 1).to_dense(), treadle.cat([x, z], 1))
    assert treadle.equal(treadle.cat([y, w], 0).to_dense(), treadle.cat([x, z], 0))
    assert treadle.equal(y.flatten(1), x.flatten(1)) and treadle.equal(y > 0, x > 0)
    y.relu_()
    assert treadle.equal(y.to_dense(), x.relu())


@pytest.mark.parametrize("groups", [1, 2, 16])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_convolution(dims: int, groups: int) -> None:
    layer = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[dims - 1](16, 32, 3, 2, 1, groups=groups)
    x = treadle.randn(5, 16, *(9,) * dims)
    with treadle.no_grad():
        expected = layer(x)
        for given in (x, x.to_mkldnn()):
            for relu in (False, True):
                result = MkldnnConvolution(layer, relu)(given)
                assert result.is_mkldnn
                wanted = expected.relu() if relu else expected
                treadle.testing.assert_close(result.to_dense(), wanted, atol=1e-5, rtol=1e-4)


def test_a_model_keeps_its_order() -> None:
    model = block()
    x = treadle.randn(3, 3, 12, 12)
    with treadle.no_grad():
        expected = model(x)
        converted = to_mkldnn(model)
        given = x.to_mkldnn()
        converted(given)  # packs the weights
        before = treadle._C._mkldnn_reorders()
        got = converted(given)
        assert treadle._C._mkldnn_reorders() - before == 1  # of what flatten() takes
        treadle.testing.assert_close(got.to_dense(), expected, atol=1e-5, rtol=1e-4)
        again = converted(x)
        assert treadle.equal(again, got)


def test_optimize_for_inference() -> None:
    model = block()
    x = treadle.randn(3, 3, 12, 12)
    with treadle.no_grad():
        fast = optimize_for_inference(model)
        kinds = [type(m) for m in fast.modules()]
        assert kinds.count(MkldnnConvolution) == 3 and nn.BatchNorm2d not in kinds
        treadle.testing.assert_close(fast(x), model(x), atol=1e-5, rtol=1e-4)
        plain = optimize_for_inference(model, {"mkldnn_layout_optimize": False})
        assert MkldnnConvolution not in [type(m) for m in plain.modules()]
        tail = optimize_for_inference(nn.Sequential(nn.Conv2d(3, 8, 1), nn.Softmax(1)).eval())
        assert tail(x).layout == treadle.strided
    fails(
        RuntimeError,
        "optimize_for_inference: expected the keys conv_bn_fuse, remove_dropout, "
        "mkldnn_layout_optimize, got fast",
        optimize_for_inference,
        model,
        {"fast": True},
    )


@pytest.mark.parametrize("isa", ["AVX2", "SSE41"])
def test_on_older_processors(isa: str) -> None:
    """Blocks are those of the registers that a processor has."""
    program = (
        "import sys, treadle; sys.path.insert(0, sys.argv[1]); import test_blocked as t\n"
        "t.test_operators(); t.test_a_model_keeps_its_order()\n"
        "t.test_convolution(2, 1); t.test_convolution(2, 2); t.test_convolution(3, 16)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, os.path.dirname(__file__)],
        env={**os.environ, "ONEDNN_MAX_CPU_ISA": isa},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_what_does_not_fit_is_refused() -> None:
    x = treadle.randn(1, 4, 5, 5)
    fails(
        RuntimeError,
        "to_mkldnn: expected a strided tensor of float32 on the cpu, got a strided "
        "one of treadle.float64 on cpu",
        x.double().to_mkldnn,
    )
    fails(
        NotImplementedError,
        "to_mkldnn: expected the dtype float32, got treadle.float16",
        x.to_mkldnn,
        treadle.float16,
    )
    fails(
        RuntimeError,
        "to_mkldnn: expected a module in eval mode, got one in training mode",
        to_mkldnn,
        nn.Conv2d(1, 1, 1),
    )
    fails(
        NotImplementedError,
        "to_mkldnn: expected the dtype float32, got treadle.bfloat16",
        to_mkldnn,
        nn.Conv2d(1, 1, 1).eval(),
        treadle.bfloat16,
    )
    fails(
        ValueError,
        "MkldnnConvolution: expected a padding of zeros in numbers, got (1, 1) of reflect",
        MkldnnConvolution,
        nn.Conv2d(1, 1, 1, padding=1, padding_mode="reflect"),
    )
    y = x.to_mkldnn()
    convolve = treadle._C._mkldnn_convolution
    fails(
        RuntimeError,
        "_mkldnn_convolution: expected groups > 0, got groups = 0",
        convolve,
        y,
        treadle.randn(4, 4, 3, 3),
        None,
        [1],
        [0],
        [1],
        0,
    )
    with pytest.raises(RuntimeError):
        convolve(y, treadle.randn(4, 3, 3, 3), None, [1], [0], [1], 1)
    with pytest.raises(RuntimeError):
        convolve(y, treadle.randn(4, 4, 9, 9), None, [1], [0], [1], 1)
    fails(
        NotImplementedError,
        "_mkldnn_convolution: expected no gradients with a tensor of layout "
        "mkldnn; use no_grad() or to_dense()",
        convolve,
        y,
        treadle.randn(4, 4, 3, 3, requires_grad=True),
        None,
        [1],
        [0],
        [1],
        1,
    )
    fails(
        NotImplementedError,
        "sort: expected strided tensors, got one of layout mkldnn; call to_dense()",
        y.sort,
    )

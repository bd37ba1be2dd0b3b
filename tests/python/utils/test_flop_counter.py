"""Counting floating-point operations: totals worked out by hand, which are PyTorch's, too."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import subprocess
import sys
import warnings
from typing import Any, Callable

import pytest

import treadle
from treadle import nn
from treadle.nn import functional as F  # noqa: N812
from treadle.testing import assert_close
from treadle.utils import flop_counter
from treadle.utils.flop_counter import FlopCounterMode, flop_registry, register_flop_formula

aten = treadle.ops.aten
FORWARD = aten._scaled_dot_product_flash_attention_for_cpu
BACKWARD = aten._scaled_dot_product_flash_attention_for_cpu_backward


def count(function: Callable[[], Any], **options: Any) -> FlopCounterMode:
    with FlopCounterMode(display=False, **options) as counter:
        function()
    return counter


def test_linear_layers_forward_and_backward() -> None:
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    counter = count(lambda: net(treadle.randn(5, 8)).sum().backward())
    first, last = 2 * 5 * 8 * 16, 2 * 5 * 16 * 4
    assert counter.get_flop_counts() == {
        "Global": {aten.addmm: first + last, aten.mm: first + 2 * last},
        "Sequential": {aten.addmm: first + last, aten.mm: first + 2 * last},
        "Sequential.0": {aten.addmm: first, aten.mm: first},
        "Sequential.2": {aten.addmm: last, aten.mm: 2 * last},
    }
    assert counter.get_total_flops() == 4480
    x = treadle.randn(5, 3, 8, requires_grad=True)
    assert count(lambda: net(x).sum().backward()).get_total_flops() == 9 * (first + last)


def test_convolutions() -> None:
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, groups=4),
        nn.ConvTranspose2d(8, 4, 3, stride=2),
        nn.Flatten(),
        nn.Linear(4 * 169, 10),
    )
    counter = count(lambda: net(treadle.randn(2, 3, 16, 16)).sum().backward())
    counts = counter.get_flop_counts()
    forward = {"0": 2 * 2 * 64 * 216, "2": 2 * 2 * 36 * 144, "3": 2 * 2 * 36 * 288}
    for name, flops in forward.items():
        assert counts[f"Sequential.{name}"][aten.convolution] == flops
    # The input needs no gradient; that for a weight is not less with groups, as in PyTorch.
    backward = {"0": forward["0"], "2": 5 * forward["2"], "3": 2 * forward["3"]}
    for name, flops in backward.items():
        assert counts[f"Sequential.{name}"][aten.convolution_backward] == flops
    assert counter.get_total_flops() == 440544
    lines = nn.Sequential(nn.Conv1d(3, 8, 3), nn.ConvTranspose1d(8, 4, 3, groups=2))
    run = count(lambda: lines(treadle.randn(2, 3, 16)).sum().backward())
    assert run.get_total_flops() == 18816


def test_attention() -> None:
    q = treadle.randn(2, 4, 7, 8, requires_grad=True)
    product = 2 * 8 * 7 * 7 * 8
    mask = treadle.ones(7, 7, dtype=treadle.bool)
    for options in ({}, {"is_causal": True}, {"attn_mask": mask}):
        attend = functools.partial(F.scaled_dot_product_attention, q, q, q, **options)
        counter = count(lambda: attend().sum().backward())
        assert counter.get_flop_counts() == {
            "Global": {FORWARD: 2 * product, BACKWARD: 5 * product}
        }
    direct = count(lambda: FORWARD(q, q, q))
    assert direct.get_flop_counts() == {"Global": {FORWARD: 2 * product}}


def test_transformer_layers() -> None:
    encoder = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    x = treadle.randn(2, 7, 16)
    counter = count(lambda: encoder(x).sum().backward())
    assert counter.get_total_flops() == 172480
    assert sum(counter.get_flop_counts()["TransformerEncoderLayer.linear1"].values()) == 43008
    assert count(lambda: encoder.eval()(x)).get_total_flops() == 63616
    decoder = nn.TransformerDecoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    counter = count(lambda: decoder(x, treadle.randn(2, 5, 16)).sum().backward())
    assert counter.get_total_flops() == 251648


def test_products() -> None:
    a, b = (treadle.randn(*shape, requires_grad=True) for shape in ((2, 3, 4), (2, 4, 5)))
    bias = treadle.randn(2, 3, 5, requires_grad=True)
    counter = count(lambda: treadle.baddbmm(bias, a, b).sum().backward())
    assert counter.get_flop_counts()["Global"] == {aten.baddbmm: 240, aten.bmm: 480}
    counter = count(lambda: treadle.einsum("bij,bkj->bik", a, a))
    assert counter.get_flop_counts()["Global"] == {aten.bmm: 2 * 2 * 3 * 4 * 3}
    counter = count(lambda: a @ treadle.randn(4, 6))
    assert counter.get_flop_counts()["Global"] == {aten.mm: 2 * 6 * 4 * 6}
    assert count(lambda: (a + 1).exp().sum().backward()).get_total_flops() == 0


def test_gradients_of_convolutions_and_attention_as_operators() -> None:
    for transposed in (False, True):
        weight = treadle.randn(4, 3 if transposed else 2, 3, 2, dtype=treadle.float64)
        channels = 6 if transposed else 4
        inputs = [treadle.randn(2, 4, 9, 10, dtype=treadle.float64), weight]
        inputs = [t.requires_grad_() for t in (*inputs, treadle.randn(channels).double())]
        rest = [1, 1] if transposed else [0, 0]
        settings = ([2, 3], [1, 0], [2, 1], transposed, rest, 2)
        result = treadle.convolution(*inputs, *settings)
        grad = treadle.randn_like(result)
        expected = treadle.autograd.grad(result, inputs, grad)
        found = aten.convolution_backward(grad, *inputs[:2], [channels], *settings, [True] * 3)
        assert_close(found, expected)
        only = aten.convolution_backward(grad, *inputs[:2], None, *settings, [False, True, False])
        assert only[0].numel() == only[2].numel() == 0
        assert_close(only[1], expected[1])
        arguments = (grad, *inputs[:2], None, *settings, [True, False, False])
        counter = count(lambda: aten.convolution_backward(*arguments))
        places = (inputs[0] if transposed else grad)[0, 0].numel()
        expected_flops = 2 * 2 * places * weight.numel()
        assert counter.get_flop_counts()["Global"] == {aten.convolution_backward: expected_flops}
    q, k, v = (treadle.randn(2, 3, n, 4, requires_grad=True) for n in (5, 6, 6))
    for mask in (None, treadle.randn(5, 6), treadle.arange(30).view(5, 6) % 3 > 0):
        out, logsumexp = FORWARD(q, k, v, attn_mask=mask)
        grad = treadle.randn_like(out)
        expected = treadle.autograd.grad(
            F.scaled_dot_product_attention(q, k, v, mask), (q, k, v), grad
        )
        found = BACKWARD(grad, q, k, v, out, logsumexp, 0.0, False, attn_mask=mask)
        assert_close(found, expected)
    with pytest.raises(ValueError) as error:
        BACKWARD(grad, q, k, v, out, logsumexp, 0.5, False)
    assert str(error.value) == (
        "_scaled_dot_product_flash_attention_for_cpu_backward: expected dropout_p = 0, got 0.5"
    )


def test_counts_can_be_asked_for_inside_and_start_again_with_the_block() -> None:
    x = treadle.randn(3, 4)
    layer = nn.Linear(4, 5)
    with FlopCounterMode(display=False) as counter:
        x @ treadle.randn(4, 2)
        assert counter.get_total_flops() == 48
        for _ in range(3):
            layer(x)
        assert counter.get_total_flops() == 48 + 3 * 120
        assert counter.flop_counts["Linear"][aten.addmm] == 360
    x @ treadle.randn(4, 2)
    assert counter.get_total_flops() == 408
    with counter:
        pass
    assert counter.get_total_flops() == 0


def test_blocks_in_each_other() -> None:
    x = treadle.randn(3, 4)
    layer = nn.Linear(4, 5)
    with FlopCounterMode(display=False) as outer:
        layer(x)
        with FlopCounterMode(display=False) as inner:
            layer(x)
        assert inner.get_total_flops() == 120
        layer(x)
    assert outer.get_total_flops() == 360 and inner.get_total_flops() == 120
    assert inner.get_flop_counts()["Linear"] == {aten.addmm: 120}


def test_tensors_without_data_are_counted() -> None:
    with treadle.device("meta"):
        net = nn.Linear(1000, 1000)
        counter = count(lambda: net(treadle.randn(1000, 1000)).sum().backward())
    assert counter.get_total_flops() == 4 * 1000**3


def test_formulas_of_the_program() -> None:
    library = treadle.library.Library("flop_test", "DEF")
    library.define("scale(Tensor x, float by, *, int times=2) -> Tensor")
    library.define("squared(Tensor x) -> Tensor")
    library.impl("scale", lambda x, by, times=2: x * by**times, "CompositeImplicitAutograd")
    library.impl("squared", lambda x: x @ x, "CompositeImplicitAutograd")
    seen = []

    @register_flop_formula(treadle.ops.flop_test.scale)
    def scale_flops(x_shape: Any, by: float, *, times: int, out_shape: Any) -> int:
        seen.append((tuple(x_shape), by, times, tuple(out_shape)))
        return x_shape[0] * times

    @register_flop_formula([treadle.ops.flop_test.squared], get_raw=True)
    def squared_flops(x: treadle.Tensor, out_val: treadle.Tensor) -> int:
        assert x.device.type == "meta" and out_val.shape == x.shape
        return 7

    try:
        x = treadle.ones(3, 3)
        counter = count(lambda: treadle.ops.flop_test.scale(x, 0.5, times=4))
        assert seen == [((3, 3), 0.5, 4, (3, 3))] and counter.get_total_flops() == 12
        # The product inside is not counted.
        counter = count(lambda: treadle.ops.flop_test.squared(x))
        assert counter.get_flop_counts()["Global"] == {treadle.ops.flop_test.squared: 7}
        with pytest.raises(RuntimeError) as taken:
            register_flop_formula(treadle.ops.flop_test.scale)(lambda *a: 1)
        assert str(taken.value) == (
            "register_flop_formula: expected an operator without a formula, got flop_test.scale"
        )
    finally:
        del flop_registry[treadle.ops.flop_test.scale], flop_registry[treadle.ops.flop_test.squared]
    mapping = {aten.mul: lambda *args, out_shape=None: out_shape.numel()}
    assert count(lambda: x * treadle.ones(2, 3, 3), custom_mapping=mapping).get_total_flops() == 18


def test_table(capsys: Any) -> None:
    layer, net = nn.Linear(3, 4), nn.Sequential(nn.Linear(3, 4))
    with FlopCounterMode() as counter:
        layer(treadle.randn(2, 3))
        net(treadle.randn(3, 3))
        treadle.randn(3, 4) @ treadle.randn(4, 5)
    expected = """\
Module          FLOP    % Total
------------  ------  ---------
Global           240    100.00%
- aten.addmm     120     50.00%
- aten.mm        120     50.00%
Linear            48     20.00%
- aten.addmm      48     20.00%
Sequential        72     30.00%
- aten.addmm      72     30.00%
Sequential.0      72     30.00%
- aten.addmm      72     30.00%
"""
    assert capsys.readouterr().out == expected
    assert counter.get_table(1) + "\n" == expected.split("Sequential.0")[0]
    assert count(lambda: None).get_table() == (
        "Module      FLOP    % Total\n--------  ------  ---------\nGlobal         0         0%"
    )
    large = count(lambda: treadle.ones(20, 30) @ treadle.ones(30, 40)).get_table()
    assert large.splitlines()[-1] == "- aten.mm  48.000K    100.00%"


def test_numbers_as_text() -> None:
    for number, text in ((0, ""), (9999, ""), (10**4, "K"), (10**12, "B"), (10**20, "T")):
        assert flop_counter.get_suffix_str(number) == text
    assert flop_counter.convert_num_with_suffix(123456789, "K") == "123456.789K"
    assert flop_counter.convert_to_percent_str(1, 3) == "33.33%"
    assert flop_counter.convert_to_percent_str(1, 0) == "0%"


def test_refused() -> None:
    with pytest.raises(ValueError) as error:
        register_flop_formula(aten.mm.default)(lambda *args: 1)
    assert str(error.value) == (
        "register_flop_formula: expected operators such as torch.ops.my_ns.name, "
        "got aten.mm.default of type OpOverload"
    )
    with pytest.raises(AssertionError) as shapes:
        flop_counter.mm_flop((2, 3), (4, 5))
    assert str(shapes.value) == "mm_flop: expected shapes that multiply, got (2, 3) and (4, 5)"
    with treadle.profiler.profile():
        with pytest.raises(RuntimeError) as running:
            FlopCounterMode().__enter__()
    assert str(running.value) == (
        "FlopCounterMode: expected no profiler around it, got a recording that runs"
    )
    with pytest.warns(UserWarning) as warned:
        FlopCounterMode(nn.Linear(1, 1))
    assert str(warned[0].message) == (
        "FlopCounterMode: expected no mods, which are found as they run"
    )


def test_an_error_ends_the_recording() -> None:
    with pytest.raises(ZeroDivisionError), FlopCounterMode():
        treadle.ones(2, 2) @ treadle.ones(2, 2) / (1 // 0)
    with treadle.profiler.profile() as profiler, warnings.catch_warnings():
        treadle.ones(2) + 1
    assert any(event.name == "aten::add" for event in profiler.events())


def test_tracker_follows_the_backward_pass() -> None:
    from treadle.utils.module_tracker import ModuleTracker

    seen = []
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    with ModuleTracker() as tracker:
        x = treadle.ones(1, 2)
        net[0].weight.register_hook(lambda g: seen.append((set(tracker.parents), tracker.is_bw)))
        net[2].weight.register_hook(lambda g: seen.append((set(tracker.parents), tracker.is_bw)))
        result = net(x).sum()
        assert tracker.parents == {"Global"} and not tracker.is_bw
        result.backward()
        assert tracker.parents == {"Global"} and not tracker.is_bw
    around = {"Global", "Sequential"}
    assert seen == [(around | {"Sequential.2"}, True), (around | {"Sequential.0"}, True)]


def test_module_loads_when_it_is_asked_for() -> None:
    program = "import sys, treadle; print('treadle.utils.flop_counter' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout == "False\n", found.stderr

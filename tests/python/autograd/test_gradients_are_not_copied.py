"""The first gradient of a parameter is the tensor that backward made, without a copy."""

# SPDX-License-Identifier: Apache-2.0

import treadle
from treadle.profiler import profile


def _calls(function):
    with profile() as records:
        function()
    return {event.key for event in records.key_averages()}


def test_a_linear_layer_keeps_its_gradients():
    layer, x = treadle.nn.Linear(7, 5), treadle.randn(3, 7)
    calls = _calls(lambda: layer(x).sum().backward())
    assert "aten::mm" in calls
    assert not calls & {"aten::clone", "aten::copy_"}
    assert layer.weight.grad.is_contiguous()
    assert layer.weight.grad._base is None
    assert treadle.equal(layer.weight.grad, x.sum(0).expand(5, 7))


def test_a_gradient_that_a_hook_keeps_is_copied():
    weight, kept = treadle.randn(5, 7, requires_grad=True), []
    weight.register_hook(lambda grad: kept.append(grad))
    (treadle.randn(3, 7) @ weight.t()).sum().backward()
    before = kept[0].clone()
    weight.grad.zero_()
    assert treadle.equal(kept[0], before)


def test_a_part_of_a_gradient_is_copied():
    # The memory of the whole would stay for as long as the part.
    part = treadle.randn(2, 7, requires_grad=True)
    treadle.cat([part, treadle.randn(1000, 7)]).square().sum().backward()
    assert part.grad.untyped_storage().nbytes() == 2 * 7 * 4


def test_a_gradient_that_two_tensors_share_is_copied():
    a, b = (treadle.randn(4, 4, requires_grad=True) for _ in range(2))
    (a.t() + b.t()).mul(2).sum().backward()
    a.grad.zero_()
    assert treadle.equal(b.grad, treadle.full((4, 4), 2.0))

"""Views that may not be changed in place, and why: those of functions with several results, those
made where nothing is recorded, those of leaves, those of custom functions; inference tensors."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable

import pytest

import treadle

SEVERAL = (
    "mul_: This view is the output of a function that returns multiple views; such functions do "
    "not allow the output views to be modified inplace; replace the inplace operation by an "
    "out-of-place one"
)
NO_GRAD = (
    "mul_: A view was created in no_grad mode and is being modified inplace with grad mode "
    "enabled; do both inside the no_grad block or both outside"
)
INFERENCE = (
    "mul_: A view was created in inference mode and is being modified inplace in normal mode; do "
    "both inside the inference_mode block or both outside"
)
OF_A_LEAF = (
    "mul_: a view of a leaf Variable that requires grad is being used in an in-place operation"
)
CUSTOM = (
    "mul_: This view was created inside a custom Function (or because an input was returned "
    "as-is), where its gradient may be custom; replace the inplace operation by an out-of-place "
    "one, or return a clone"
)
OUTSIDE = (
    ": inplace update to an inference tensor outside inference mode is not allowed; make a normal "
    "tensor with clone() first"
)


def leaf() -> treadle.Tensor:
    return treadle.ones(4, requires_grad=True)


def computed() -> treadle.Tensor:
    return leaf() * 1


def refused(message: str, call: Callable[[], Any]) -> None:
    with pytest.raises(RuntimeError) as error:
        call()
    assert str(error.value) == message


@pytest.mark.parametrize("views", ["split", "unbind", "chunk", "tensor_split"])
def test_views_of_a_function_with_several_results(views: str) -> None:
    def of(t: treadle.Tensor) -> treadle.Tensor:
        return getattr(t, views)(*(() if views == "unbind" else (2,)))[0]

    refused(SEVERAL, lambda: of(computed()).mul_(2))
    # As soon as something is to be recorded, whether the base required grad before or not.
    plain = treadle.ones(4)
    first = of(plain)
    first.mul_(2)
    refused(SEVERAL, lambda: first.mul_(of(computed()).detach().requires_grad_() * 1))
    assert plain[0].item() == 2.0


def test_views_made_where_nothing_is_recorded() -> None:
    for base in (computed(), leaf()):
        with treadle.no_grad():
            view, part = base.view(2, 2), base.split(2)[0]
            view.mul_(1)
        refused(NO_GRAD, lambda: view.mul_(2))
        refused(NO_GRAD, lambda: part.mul_(2))
    plain = treadle.ones(4)
    with treadle.no_grad():
        view = plain.view(2, 2)
    assert view.mul_(2).sum().item() == 8.0


def test_views_of_a_leaf_that_came_to_require_grad() -> None:
    base = treadle.ones(4)
    view = base.view(2, 2)
    base.requires_grad_()
    refused(OF_A_LEAF, lambda: view.mul_(2))
    assert base.tolist() == [1.0] * 4
    assert base.detach().view(2, 2).mul_(2).sum().item() == 8.0


class View(treadle.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: treadle.Tensor) -> treadle.Tensor:
        return x.view(2, 2)

    @staticmethod
    def backward(ctx: Any, grad: treadle.Tensor) -> treadle.Tensor:
        return grad.view(4)


class Views(View):
    @staticmethod
    def forward(ctx: Any, x: treadle.Tensor) -> Any:
        return x.view(2, 2), x.view(4)


class AsItIs(View):
    @staticmethod
    def forward(ctx: Any, x: treadle.Tensor) -> treadle.Tensor:
        return x


def test_views_of_custom_functions() -> None:
    refused(CUSTOM, lambda: View.apply(computed()).mul_(2))
    refused(CUSTOM, lambda: AsItIs.apply(computed()).mul_(2))
    refused(SEVERAL, lambda: Views.apply(computed())[0].mul_(2))


def test_a_custom_function_may_return_one_tensor_twice() -> None:
    class Twice(treadle.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: treadle.Tensor) -> Any:
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx: Any, first: treadle.Tensor, second: treadle.Tensor) -> treadle.Tensor:
            return first * 2 + second * 3

    x = leaf()
    a, b = Twice.apply(x)
    assert a is b
    (a.sum() + b.sum() * 10).backward()
    assert x.grad.tolist() == [33.0] * 4


def test_views_made_in_inference_mode() -> None:
    base = computed()
    with treadle.inference_mode():
        view = base.view(2, 2)
        assert not view.is_inference()
        view.mul_(1)
    refused(INFERENCE, lambda: view.mul_(2))


def test_inference_tensors() -> None:
    with treadle.inference_mode():
        x = treadle.ones(4)
        x.view(2, 2).mul_(1)
        assert x.is_inference() and x.view(2, 2).is_inference() and x.clone().is_inference()
    assert not x.clone().is_inference() and not (x * 1).is_inference()
    assert x.view(2, 2).is_inference()
    refused("mul_" + OUTSIDE, lambda: x.mul_(2))
    refused("mul_" + OUTSIDE, lambda: x.view(2, 2).mul_(2))
    refused("add" + OUTSIDE, lambda: treadle.add(x, x, out=x))
    refused(
        "_version: expected a tensor that counts its versions, got an inference tensor",
        lambda: x._version,
    )
    assert x.tolist() == [1.0] * 4
    y = computed()
    y.copy_(x)
    y[0] = x[1]
    assert y.requires_grad


def test_inference_tensors_seen_as_another_dtype() -> None:
    with treadle.inference_mode():
        x, z = treadle.ones(4), treadle.ones(2, dtype=treadle.complex64)
    views = (
        x.view(treadle.int32), x.view(treadle.int8), treadle.view_as_complex(x.view(2, 2)),
        treadle.view_as_real(z), z.real, z.imag, z.conj(),
    )  # fmt: skip
    for view in views:
        assert view.is_inference()
        refused("mul_" + OUTSIDE, lambda: view.mul_(2))
    assert x.tolist() == [1.0] * 4 and z.tolist() == [1.0] * 2
    with treadle.inference_mode():
        x.view(treadle.int32).zero_()
    assert x.tolist() == [0.0] * 4

"""In-place forms: they have the gradients of the functional forms wherever the tensor lies; each
name that ends in an underscore counts what it changes.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Callable

import pytest

import treadle
from treadle_testing import checks
from treadle_testing.cases import in_suite, samples_of
from treadle_testing.catalogue import Operator, operators
from treadle_testing.sample import map_arrays, to_tensor

NUMBERS = [
    pytest.param(op, dtype, id=f"{op.id}-{dtype}")
    for op in operators()
    for dtype in ("float64", "complex128")
    if op.has_form("inplace") and not op.name.endswith("_") and in_suite(op) and dtype in op.dtypes
]


@pytest.mark.parametrize("op, dtype", NUMBERS)
def test_in_place_forms_have_the_gradients_of_the_functional_form(op: Operator, dtype: str) -> None:
    checks.in_place_gradients(op, dtype)


@pytest.mark.parametrize(
    "layer",
    [
        treadle.nn.SELU, treadle.nn.CELU, treadle.nn.Mish, treadle.nn.ReLU6, treadle.nn.ELU,
        treadle.nn.SiLU, treadle.nn.ReLU, treadle.nn.Hardtanh, treadle.nn.Hardswish,
        treadle.nn.Hardsigmoid, treadle.nn.LeakyReLU,
    ],
)  # fmt: skip
def test_layers_that_work_in_place(layer: Callable) -> None:
    x = treadle.linspace(-2, 2, 7, dtype=treadle.float64, requires_grad=True)
    (want,) = treadle.autograd.grad(layer()(x * 2).sum(), x)
    (got,) = treadle.autograd.grad(layer(inplace=True)(x * 2).sum(), x)
    treadle.testing.assert_close(got, want)


def test_a_gradient_penalty_through_in_place_operators_on_views() -> None:
    """The result that an operator saves is part of two graphs: that of the view and that of the
    base."""
    for name in ("exp_", "sigmoid_", "tanh_", "sqrt_", "relu_"):
        found = []
        for in_place in (False, True):
            x = treadle.tensor([0.5, 1.0, 2.0, 3.0], dtype=treadle.float64, requires_grad=True)
            y = (x * x).view(2, 2)
            y = getattr(y, name)() if in_place else getattr(y, name[:-1])()
            (g,) = treadle.autograd.grad((y * y).sum(), x, create_graph=True)
            (g * g).sum().backward()
            found.append(x.grad)
        treadle.testing.assert_close(found[1], found[0])


# ---- versions ----

# In-place names that change neither values nor geometry of a tensor that can be saved.
UNCHANGED = {
    "requires_grad_": "says what is recorded from now on",
    "detach_": "cuts the history; double backward through what was saved raises",
    "share_memory_": "moves the bytes as they are",
    "rename_": "names are no part of the values",
    "resize_as_sparse_": "of sparse tensors, which must not require grad",
    "sparse_resize_": "of sparse tensors, which must not require grad",
    "sparse_resize_and_clear_": "of sparse tensors, which must not require grad",
}


def in_place_names() -> list[str]:
    return sorted(
        n
        for n in dir(treadle.Tensor)
        if n.endswith("_") and not n.startswith("_") and n not in UNCHANGED
    )


GEOMETRY: dict[str, Callable] = {
    "t_": lambda x: x.t_(),
    "transpose_": lambda x: x.transpose_(0, 1),
    "swapaxes_": lambda x: x.swapaxes_(0, 1),
    "swapdims_": lambda x: x.swapdims_(0, 1),
    "squeeze_": lambda x: x.squeeze_(),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
    "as_strided_": lambda x: x.as_strided_((2,), (1,)),
    "set_": lambda x: x.set_(treadle.ones(3, 3)),
    "resize_": lambda x: x.resize_(2, 2),
    "resize_as_": lambda x: x.resize_as_(treadle.ones(5)),
}


@pytest.mark.parametrize("name", GEOMETRY)
def test_a_saved_tensor_of_another_geometry_is_an_error(name: str) -> None:
    w = treadle.ones(3, 3, requires_grad=True)
    x = treadle.arange(9.0).view(3, 3).clone()
    y = (w @ x).sum()
    before = x._version
    GEOMETRY[name](x)
    assert x._version > before
    with pytest.raises(RuntimeError, match="at version 0, got version"):
        y.backward()


def test_the_count_never_goes_back_when_the_storage_changes() -> None:
    w = treadle.ones(3, requires_grad=True)
    fresh, old = treadle.ones(3), treadle.arange(3.0)
    for _ in range(3):
        old.add_(1)
    product = (w * old).sum()
    old.set_(fresh)
    assert old._version > 3
    with pytest.raises(RuntimeError, match="at version 3, got version 4"):
        product.backward()


# Methods that are no operators.
WITHOUT_SAMPLES: dict[str, Callable] = {
    "apply_": lambda x: x.apply_(lambda v: v + 1),
    "map_": lambda x: x.map_(treadle.ones(3), lambda a, b: a + b),
    "map2_": lambda x: x.map2_(treadle.ones(3), treadle.ones(3), lambda a, b, c: a + b + c),
    "polygamma_": lambda x: x.polygamma_(1),
}


@pytest.mark.parametrize("name", in_place_names())
def test_every_in_place_name_counts_what_it_changes(name: str) -> None:
    if name in GEOMETRY:
        x = treadle.ones(3, 3)
        before = x._version
        GEOMETRY[name](x)
        assert x._version > before
        return
    counted = 0
    for op in operators():
        if op.name not in (name, name[:-1]) or not in_suite(op):
            continue
        for dtype in [d for d in ("float64", "int64", "bool") if d in op.dtypes]:
            for sample in samples_of(op, dtype):
                args = map_arrays(sample.args, lambda a: to_tensor(a, dtype))
                kwargs = {
                    k: map_arrays(v, lambda a: to_tensor(a, dtype))
                    for k, v in sample.kwargs.items()
                }
                if not isinstance(args[0], treadle.Tensor) or args[0].numel() == 0:
                    continue
                before = args[0]._version
                try:
                    getattr(treadle.Tensor, name)(*args, **kwargs)
                except (RuntimeError, TypeError, ValueError, NotImplementedError):
                    continue  # a form that does not take these arguments, or does not fit
                assert args[0]._version > before, f"{op.id} {dtype}"
                counted += 1
    assert counted or name in WITHOUT_SAMPLES, name
    if name in WITHOUT_SAMPLES:
        x = treadle.ones(3)
        before = x._version
        WITHOUT_SAMPLES[name](x)
        assert x._version > before


def test_a_change_that_is_refused_writes_nothing() -> None:
    z = treadle.ones(2, dtype=treadle.complex64).conj().detach()  # conjugated lazily
    before = z.tolist()
    with pytest.raises(NotImplementedError, match="^mul_: a view of another dtype than its base"):
        z.real.mul_(treadle.ones(2, requires_grad=True))
    assert z.tolist() == before and z._version == 0


def test_detach_of_a_saved_tensor_is_no_missing_gradient() -> None:
    a = treadle.tensor([2.0, 3.0], requires_grad=True)
    y = a * 3
    z = (y * y * a).sum()
    y.detach_()
    (g,) = treadle.autograd.grad(z, a, retain_graph=True)
    assert g.tolist() == [108.0, 243.0]  # the values are what they were
    with pytest.raises(
        RuntimeError,
        match=r"^MulBackward0: expected argument 'other' of mul with the history that it was saved "
        r"with, got a tensor that detach_\(\) cut off from it; use detach\(\), which leaves the "
        r"tensor as it is$",
    ):
        treadle.autograd.grad(z, a, create_graph=True)


class ScaleSecond(treadle.autograd.Function):
    """Doubles its second argument in place, and adds ten times the first."""

    @staticmethod
    def forward(ctx, other, changed):  # type: ignore[no-untyped-def]
        ctx.mark_dirty(changed)
        changed.mul_(2).add_(other, alpha=10)
        return changed

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        return grad * 10, grad * 2


def test_a_function_may_change_a_view_that_is_not_its_first_argument() -> None:
    a = treadle.tensor([1.0, 2.0], requires_grad=True)
    w = treadle.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    base = w * 1
    ScaleSecond.apply(a, base[:2])
    (base * treadle.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert a.grad.tolist() == [10.0, 20.0]
    assert w.grad.tolist() == [2.0, 4.0, 3.0, 4.0]


def test_a_view_without_a_gradient_may_be_changed_by_a_function() -> None:
    a = treadle.tensor([1.0, 2.0], requires_grad=True)
    base = treadle.ones(4)
    ScaleSecond.apply(a, base[:2])
    base.sum().backward()
    assert a.grad.tolist() == [10.0, 10.0]


def test_a_leaf_that_became_a_result_gets_no_gradient() -> None:
    x = treadle.ones(2, requires_grad=True)
    y = (x * 2).sum()
    x.requires_grad_(False)
    w = treadle.ones(2, requires_grad=True)
    x.mul_(w)
    with pytest.raises(
        RuntimeError,
        match="^AccumulateGrad: expected a leaf, got a tensor that was made the result of "
        "MulBackward0 by an in-place operation after it was used$",
    ):
        y.backward()


def test_cat_gives_an_empty_tensor_an_empty_gradient() -> None:
    empty = treadle.ones(0, requires_grad=True)
    x = treadle.ones(2, 3, requires_grad=True)
    for dim in (0, 1):
        ge, gx = treadle.autograd.grad(treadle.cat([empty, x], dim).sum(), [empty, x])
        assert ge.shape == (0,) and gx.shape == (2, 3)
    (ge,) = treadle.autograd.grad(treadle.cat([empty, empty]).sum(), [empty])
    assert ge.shape == (0,)


def test_a_pack_hook_that_raises_after_the_change_leaves_a_clear_message() -> None:
    def pack(t: treadle.Tensor) -> treadle.Tensor:
        raise KeyError("full")

    x = treadle.ones(2, requires_grad=True)
    y = x * 1
    with pytest.raises(KeyError), treadle.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y.exp_()
    with pytest.raises(
        RuntimeError,
        match="^ExpBackward0: expected result 'result' of exp to be saved for backward, but a pack "
        "hook of saved tensors raised when it was given it$",
    ):
        y.sum().backward()

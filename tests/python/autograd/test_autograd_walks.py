"""Walks from edges to edges, calls of nodes, leaves whose memory or geometry changed since."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import pytest

import treadle
from treadle.autograd import SavedTensor, grad
from treadle.autograd.graph import get_gradient_edge


def leaf(*values: float) -> treadle.Tensor:
    return treadle.tensor(values, dtype=treadle.float32, requires_grad=True)


def message_of(kind: type, function: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(kind) as error:
        function(*args, **kwargs)
    return str(error.value)


def test_zeros_for_tensors_beside_edges() -> None:
    x, y = leaf(1, 2).clone(), leaf(3, 4).clone()
    out = x.clone().sum()
    found = grad(out, (get_gradient_edge(x), y), materialize_grads=True, retain_graph=True)
    assert [g.tolist() for g in found] == [[1, 1], [0, 0]]
    found = grad(out, (x, get_gradient_edge(y)), allow_unused=True, retain_graph=True)
    assert found[0].tolist() == [1, 1] and found[1] is None
    assert message_of(
        RuntimeError, grad, out, (x, get_gradient_edge(y)), materialize_grads=True
    ) == (
        "grad: expected tensors among the inputs that are not used, as materialize_grads makes "
        "zeros of their shapes, got an edge"
    )


def test_gradients_of_an_edge_are_checked_as_those_of_a_tensor() -> None:
    x = leaf(1, 2)
    edge = get_gradient_edge(x.sin())
    for given, message in (
        (None, "grad: grad can be implicitly created only for scalar outputs, got shape (2,)"),
        (treadle.ones(4), "grad: expected a gradient of shape (2,) for output 0, got (4,)"),
        (
            treadle.ones(2, dtype=treadle.complex64),
            f"grad: expected a gradient of dtype {treadle.float32} for output 0, got "
            f"{treadle.complex64}",
        ),
    ):
        assert message_of(RuntimeError, grad, edge, x, given) == message
    complex_edge = get_gradient_edge((x * 1j).sum())
    assert message_of(RuntimeError, grad, complex_edge, x) == (
        "grad: grad can be implicitly created only for real scalar outputs, got "
        f"{treadle.complex64}"
    )


def test_a_node_is_called_with_as_many_gradients_as_it_has_outputs() -> None:
    x = leaf(1, 2)
    node = (x**2).grad_fn
    one = treadle.ones(2)
    assert message_of(TypeError, node, one, one) == (
        "PowBackward0: expected 1 gradients as arguments, got 2 instead"
    )
    assert message_of(TypeError, node) == (
        "PowBackward0: expected 1 gradients as arguments, got 0 instead"
    )
    assert node(one).tolist() == [2, 4]


def test_what_every_tensor_has_cannot_be_deleted() -> None:
    x = leaf(1)
    x.grad = treadle.ones(1)
    del x.grad
    assert x.grad is None
    for name in ("data", "requires_grad"):
        assert message_of(RuntimeError, delattr, x, name) == (
            f"{name}: expected a value, got a deletion"
        )
    assert message_of(TypeError, setattr, x, "data", None) == ("data: expected a tensor, got None")


def test_no_saved_tensor_is_made_by_a_call() -> None:
    assert message_of(RuntimeError, SavedTensor) == (
        "SavedTensor: expected to be made by an operator that saves for backward, got a call"
    )


def test_a_leaf_of_another_shape_is_used_beside_its_older_graph() -> None:
    p = treadle.nn.Parameter(treadle.ones(4))
    kept = []
    for size in (3, 2):
        with treadle.no_grad():
            p.set_(p[1:])
            p.grad = None
        kept.append(treadle.cat((p, p)))
        kept[-1].sum().backward()
        assert p.grad.tolist() == [2.0] * size
    p.data = treadle.ones(5)
    p.grad = None
    (p * 3).sum().backward()
    assert p.grad.tolist() == [3.0] * 5


def test_a_leaf_over_other_memory_is_no_part_of_its_older_graph() -> None:
    x = leaf(1, 2)
    edge = get_gradient_edge(x)
    loss = x.clone().sum()
    with treadle.no_grad():
        x.set_(treadle.zeros(2))
    assert "not have been used in the graph: input 0" in message_of(
        RuntimeError, grad, loss, x, retain_graph=True
    )
    assert grad(loss, edge, retain_graph=True)[0].tolist() == [1, 1]
    loss.backward()
    assert x.grad.tolist() == [1, 1]


def test_different_values_have_no_derivative_of_zero() -> None:
    x = leaf(2, 1, 2)
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert values.requires_grad and not inverse.requires_grad and not counts.requires_grad
    assert message_of(NotImplementedError, values.sum().backward) == (
        "Unique2Backward0: derivative is not implemented: the different values; "
        "unique_consecutive of sorted ones has a derivative"
    )
    x.sort().values.unique_consecutive().sum().backward()
    assert x.grad.sum().item() == 2 and x.grad[1].item() == 1


# ---- changes of a tensor's own geometry ----


@pytest.mark.parametrize(
    "change, apart",
    [
        (lambda t: t.t_(), lambda t: t.t()),
        (lambda t: t.transpose_(0, 1), lambda t: t.transpose(0, 1)),
        (lambda t: t.swapaxes_(0, -1), lambda t: t.swapaxes(0, -1)),
        (lambda t: t.swapdims_(0, 1), lambda t: t.swapdims(0, 1)),
        (lambda t: t.unsqueeze_(1), lambda t: t.unsqueeze(1)),
        (lambda t: t.unsqueeze_(1).squeeze_(1), lambda t: t),
        (lambda t: t.unsqueeze_(1).squeeze_(), lambda t: t),
        (lambda t: t.unsqueeze_(1).squeeze_((1,)), lambda t: t),
        (lambda t: t.as_strided_((2,), (2,), 1), lambda t: t.as_strided((2,), (2,), 1)),
    ],
)
@pytest.mark.parametrize("of_view", [False, True])
def test_history_goes_on_from_the_tensor_as_it_was(change: Any, apart: Any, of_view: bool) -> None:
    found = []
    for in_place in (False, True):
        x = treadle.arange(6.0, dtype=treadle.float64).reshape(2, 3).requires_grad_()
        y = x * 2
        part = y.view_as(y) if of_view else y
        part = change(part) if in_place else apart(part)
        assert in_place is False or of_view or part is y
        weights = treadle.arange(part.numel(), dtype=treadle.float64).reshape(part.shape)
        (part.exp() * weights).sum().backward()
        found.append((part.tolist(), x.grad.tolist()))
    assert found[0] == found[1]


def test_a_change_of_values_after_one_of_geometry() -> None:
    x = treadle.ones(2, 3, requires_grad=True)
    y = x.clone()
    view = y.view(3, 2)
    view.t_()
    view.mul_(treadle.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    y.sum().backward()
    assert x.grad.tolist() == [[1, 4, 2], [5, 3, 6]]


def test_what_was_saved_before_a_change_of_geometry_is_stale() -> None:
    x = treadle.ones(2, 3, requires_grad=True)
    y = x * 2
    loss = y.sin().sum()
    y.t_()
    assert "modified by an inplace operation" in message_of(RuntimeError, loss.backward)


def test_geometry_of_leaves() -> None:
    w = treadle.ones(2, 3, requires_grad=True)
    assert message_of(RuntimeError, w.t_) == (
        "t_: a leaf Variable that requires grad is being used in an in-place operation"
    )
    with treadle.no_grad():
        w.t_()
    (w * 2).sum().backward()
    assert w.shape == (3, 2) and w.grad.tolist() == [[2, 2]] * 3


def test_geometry_of_a_result_stays_where_nothing_is_recorded() -> None:
    y = treadle.ones(2, 3, requires_grad=True) * 2
    with treadle.no_grad():
        assert message_of(RuntimeError, y.t_) == (
            "t_: expected a tensor that does not require grad, got one that does"
        )
    assert message_of(IndexError, y.transpose_, 0, 7).startswith("transpose_: ")


@pytest.mark.parametrize("made", ["no_grad", "several", "function"])
def test_views_that_may_not_be_changed_keep_their_geometry_too(made: str) -> None:
    class AsView(treadle.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: treadle.Tensor) -> treadle.Tensor:
            return x.view_as(x)

        @staticmethod
        def backward(ctx: Any, grad: treadle.Tensor) -> treadle.Tensor:
            return grad

    base = treadle.rand(2, 3, requires_grad=True).clone()
    if made == "no_grad":
        with treadle.no_grad():
            view, words = base.view_as(base), "A view was created in no_grad mode"
    elif made == "several":
        view, words = base.unbind()[0], "function that returns multiple views"
    else:
        view, words = AsView.apply(base), "view was created inside a custom Function"
    assert words in message_of(RuntimeError, view.transpose_, 0, 0)
    with treadle.no_grad():
        view.transpose_(0, 0)
    assert words in message_of(RuntimeError, view.add_, 1)


def test_inference_tensors_keep_their_geometry_outside_the_mode() -> None:
    with treadle.inference_mode():
        c = treadle.ones(2, 3)
        c.t_()
        d = treadle.ones(2, 3, requires_grad=True)
        d.t_()
        d.resize_(4, 2)
        assert d.is_inference() and d.requires_grad and d.shape == (4, 2)
        d.resize_as_(treadle.ones(1, 2))
        assert d.is_inference() and d.requires_grad and d.shape == (1, 2)
    assert message_of(RuntimeError, c.t_) == (
        "t_: inplace update to an inference tensor outside inference mode is not allowed; make a "
        "normal tensor with clone() first"
    )
    assert message_of(RuntimeError, c.resize_, 1) == (
        "resize_: inplace update to an inference tensor outside inference mode is not allowed; "
        "make a normal tensor with clone() first"
    )
    flat = d.view(-1)
    assert flat.is_inference() and flat.is_leaf and not flat.requires_grad and not flat._is_view()
    a = treadle.ones(2, 3, requires_grad=True).clone()
    with treadle.inference_mode():
        view = a.view(-1)
    a.t_()
    assert "A view was created in inference mode" in message_of(RuntimeError, lambda: view.grad_fn)


def test_a_view_that_cannot_be_used_any_more_is_printed() -> None:
    base = treadle.ones(2, requires_grad=True).clone()
    with treadle.no_grad():
        view = base[:]
    base.add_(1)
    assert "A view was created in no_grad mode" in message_of(RuntimeError, lambda: view.grad_fn)
    assert repr(view) == "tensor([2., 2.], grad_fn=<Invalid>)"
    assert view.tolist() == [2, 2]


# ---- pieces that are no views ----


@pytest.mark.parametrize(
    "split",
    [
        lambda t: t.unsafe_split(1),
        lambda t: t.unsafe_split_with_sizes((1, 2)),
        lambda t: t.unsafe_chunk(3),
        lambda t: t.unsafe_split(2, 1),
    ],
)
def test_unsafe_pieces_are_written_in_place(split: Any) -> None:
    x = treadle.arange(9.0, dtype=treadle.float64).reshape(3, 3).requires_grad_()
    pieces = split(x * 2)
    assert all(not p._is_view() for p in pieces)
    assert pieces[0].grad_fn.name() == "UnsafeSplitBackward0"
    expected = [p.detach().clone() for p in pieces]
    pieces[0].mul_(pieces[0].detach().clone())
    pieces[0].sum().backward()
    outside = expected[1]
    assert treadle.equal(pieces[1], outside)  # the other pieces are as they were
    total = treadle.zeros(3, 3, dtype=treadle.float64)
    whole = (x.detach() * 2).clone()
    split(whole)[0].fill_(-1)
    total[whole == -1] = (2 * (x.detach() * 2))[whole == -1]
    assert treadle.equal(x.grad, total)


def test_unsafe_pieces_are_tensors_of_their_own() -> None:
    for shape, count in (((0, 3), 2), ((4, 3), 1)):
        x = treadle.ones(shape, requires_grad=True)
        pieces = (x * 1).unsafe_chunk(count)
        assert [p.output_nr for p in pieces] == list(range(count))
        sum(p.sum() for p in pieces).backward()
        assert treadle.equal(x.grad, treadle.ones(shape))
        assert len(x.unsafe_chunk(count)) == count  # a leaf's, too


# ---- views of another dtype ----


def complex_leaf() -> treadle.Tensor:
    values = treadle.arange(18.0, dtype=treadle.float64)
    return treadle.view_as_complex(values.view(3, 3, 2)).requires_grad_()


@pytest.mark.parametrize(
    "view, away",
    [
        (treadle.view_as_real, lambda z, w: treadle.view_as_complex(treadle.view_as_real(z) * w)),
        (lambda z: z.real, lambda z, w: treadle.complex(z.real * w[..., 0], z.imag)),
        (lambda z: z.imag, lambda z, w: treadle.complex(z.real, z.imag * w[..., 0])),
        (lambda z: z.conj().imag, lambda z, w: treadle.complex(z.real, z.imag * w[..., 0])),
    ],
)
def test_a_view_of_the_numbers_in_complex_ones_is_written_in_place(view: Any, away: Any) -> None:
    weights = treadle.arange(1.0, 19.0, dtype=treadle.float64).view(3, 3, 2)
    found = []
    for in_place in (True, False):
        leaf_ = complex_leaf()
        w = weights.clone().requires_grad_()
        z = leaf_ * (1 + 2j)
        if in_place:
            numbers = view(z)
            numbers.mul_(w if numbers.dim() == 3 else w[..., 0])
        else:
            z = away(z, w)
        treadle.view_as_real(z * z).sum().backward()
        found.append((leaf_.grad, w.grad))
    assert all(treadle.allclose(one, other) for one, other in zip(*found))


def test_a_view_of_real_numbers_as_complex_ones_is_written_in_place() -> None:
    found = []
    for in_place in (True, False):
        x = treadle.arange(1.0, 9.0, dtype=treadle.float64).view(4, 2).requires_grad_()
        y = x * 3
        z = treadle.view_as_complex(y)
        if in_place:
            z.mul_(2 + 1j)
        else:
            y = treadle.view_as_real(z * (2 + 1j))
        (y**2).sum().backward()
        found.append(x.grad)
    assert treadle.allclose(*found)


def test_a_view_of_another_dtype_is_used_after_its_base_was_changed() -> None:
    leaf_ = complex_leaf()
    z = leaf_ * 1
    numbers = treadle.view_as_real(z)
    z.mul_(2j)
    assert numbers.grad_fn.name() == "AsStridedBackward0"
    numbers[..., 0].sum().backward()  # of 2i z the real part is -2 y
    assert leaf_.grad.real.unique().tolist() == [0] and leaf_.grad.imag.unique().tolist() == [-2]


def test_gradients_of_a_change_through_another_dtype_are_differentiable() -> None:
    def function(z: treadle.Tensor) -> treadle.Tensor:
        y = z * z
        treadle.view_as_real(y).mul_(treadle.view_as_real(z))
        return y

    z = treadle.randn(2, 2, dtype=treadle.complex128, requires_grad=True)
    assert treadle.autograd.gradcheck(function, (z,))
    assert treadle.autograd.gradgradcheck(function, (z,))

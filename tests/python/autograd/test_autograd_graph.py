"""autograd.graph: nodes and edges as Python sees them, hooks on what is saved, on nodes and on
several tensors at once; Variable.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import treadle
from treadle.autograd import Function, Variable, backward, grad, graph
from treadle.autograd.function import InplaceFunction, once_differentiable


def leaf(*values: float) -> treadle.Tensor:
    return treadle.tensor(values, dtype=treadle.float64, requires_grad=True)


class Twice(Function):
    @staticmethod
    def forward(ctx: Any, x: treadle.Tensor) -> treadle.Tensor:
        ctx.factor = 2
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: treadle.Tensor) -> treadle.Tensor:
        return g * ctx.factor


# ---- nodes ----


def test_a_node_has_one_object_of_a_type_of_its_name() -> None:
    x = leaf(1, 2)
    y = x.exp()
    node = y.grad_fn
    assert node is y.grad_fn and node is (y * 1).grad_fn.next_functions[0][0]
    assert type(node).__name__ == "ExpBackward0" and isinstance(node, graph.Node)
    assert repr(node).startswith("<ExpBackward0 object at 0x")
    assert repr(type(node)) == "<class 'ExpBackward0'>"
    assert type(node) is type(x.exp().grad_fn)
    assert node != x.exp().grad_fn and len({node, y.grad_fn, x.exp().grad_fn}) == 2
    with pytest.raises(TypeError):
        type(node)()
    with pytest.raises(AttributeError, match="nothing"):
        node.nothing


def test_metadata_stays_with_the_node() -> None:
    y = leaf(1).exp()
    assert y.grad_fn.metadata == {}
    y.grad_fn.metadata["seen"] = 3
    gc.collect()
    assert y.grad_fn.metadata == {"seen": 3}


def test_a_node_can_be_called() -> None:
    y = leaf(1, 2) * leaf(3, 4)
    first, second = y.grad_fn(treadle.tensor([1.0, 10.0], dtype=treadle.float64))
    assert first.tolist() == [3, 40] and second.tolist() == [1, 20]
    assert y.sum().grad_fn(treadle.tensor(2.0, dtype=treadle.float64)).tolist() == [2, 2]
    with pytest.raises(TypeError, match="expected 1 gradients as arguments, got 2 instead"):
        y.grad_fn(treadle.ones(2), treadle.ones(2))


def test_the_node_of_a_custom_function_shows_its_context() -> None:
    x = leaf(1)
    node = Twice.apply(x).grad_fn
    assert node.factor == 2 and node.saved_tensors[0] is x and node.needs_input_grad == (True,)
    assert type(node).__name__ == "TwiceBackward" and node.name() == "TwiceBackward"
    assert "function.TwiceBackward object" in repr(node)


def test_what_a_node_has_saved() -> None:
    x, w = leaf(1, 2), treadle.tensor([3.0, 4.0], dtype=treadle.float64)
    y = x * w
    assert y.grad_fn._saved_other is w and y.grad_fn._saved_self is None, "x has no use for it"
    e = y.exp()
    assert treadle.equal(e.grad_fn._saved_result, e) and e.grad_fn._saved_result.grad_fn
    assert [name for name in dir(e.grad_fn) if name.startswith("_saved")] == ["_saved_result"]
    assert x.pow(3).grad_fn._saved_exponent == 3 and x.sum().grad_fn._saved_self_sizes == (2,)
    total = x.sum(0, keepdim=True).grad_fn
    assert total._saved_dim == (0,) and total._saved_keepdim is True
    e.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        e.grad_fn._saved_result
    with pytest.raises(AttributeError, match="'MulBackward0' object has no attribute '_saved_x'"):
        y.grad_fn._saved_x


def test_order_of_hooks() -> None:
    x, seen = leaf(1, 2), []
    y = x * 3
    y.retain_grad()

    def hook(name: str, result: Any = None) -> Any:
        return lambda *args: seen.append((name, args[0])) or result

    y.register_hook(hook("tensor", treadle.tensor([2.0, 2.0], dtype=treadle.float64)))
    y.grad_fn.register_hook(hook("after"))
    y.grad_fn.register_prehook(hook("before", (treadle.ones(2, dtype=treadle.float64) * 5,)))
    x.register_hook(hook("leaf"))
    x.register_post_accumulate_grad_hook(hook("accumulated"))
    y.sum().backward()
    assert [name for name, _ in seen] == ["tensor", "before", "after", "leaf", "accumulated"]
    values = dict(seen)
    assert values["tensor"].tolist() == [1, 1] and values["before"][0].tolist() == [2, 2]
    assert values["after"][0].tolist() == [15, 15] and values["leaf"].tolist() == [15, 15]
    assert values["accumulated"] is x and x.grad.tolist() == [15, 15] and y.grad.tolist() == [2, 2]


# ---- edges ----


def test_edges_stand_for_tensors() -> None:
    x = leaf(1, 2)
    y = x * 3
    edge = graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn and edge.output_nr == 0
    assert grad((y * y).sum(), edge)[0].tolist() == [6, 12]
    ones = treadle.ones(2, dtype=treadle.float64)
    assert grad(edge, x, ones)[0].tolist() == [3, 3]
    backward(graph.get_gradient_edge(x * 4), ones)
    assert x.grad.tolist() == [4, 4]
    x.grad = None
    (x * 5).sum().backward(inputs=[graph.get_gradient_edge(x)])
    assert x.grad.tolist() == [5, 5]
    (g,) = grad((x**3).sum(), graph.get_gradient_edge(x), create_graph=True)
    assert g.requires_grad
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        grad(graph.get_gradient_edge(x * 2), x)
    with pytest.raises(RuntimeError, match="allow_unused"):
        grad((x * 2).sum(), graph.get_gradient_edge(y))
    assert grad((x * 2).sum(), edge, allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="requires gradients"):
        graph.get_gradient_edge(treadle.ones(1))


def test_an_edge_keeps_no_values() -> None:
    x = leaf(1, 2)
    y = x.view(2) * 2
    edge, alive = graph.get_gradient_edge(y), weakref.ref(y)
    z = y.sum()
    del y
    assert alive() is None and grad(z, edge)[0].tolist() == [1, 1]


def test_increment_version() -> None:
    x, w = leaf(1), leaf(1)
    y = x * w
    graph.increment_version(w)
    assert w._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    graph.increment_version([x, w])
    assert (x._version, w._version) == (1, 2)


# ---- saved tensors ----


def test_hooks_see_what_is_saved() -> None:
    x, log = leaf(1, 2), []

    def pack(t: treadle.Tensor) -> int:
        log.append(("pack", t, treadle.is_grad_enabled()))
        return 7

    def unpack(packed: int) -> treadle.Tensor:
        log.append(("unpack", packed))
        return treadle.full((2,), 3.0, dtype=treadle.float64)

    with graph.saved_tensors_hooks(pack, unpack):
        y = x * x
        z = y.exp()
    assert [entry[0] for entry in log] == ["pack"] * 3
    assert log[0][1] is x and log[1][1] is x and not log[2][1].requires_grad
    assert not any(entry[2] for entry in log)
    log.clear()
    z.sum().backward()
    assert log == [("unpack", 7)] * 3 and x.grad.tolist() == [18, 18]
    x.exp().sum().backward()
    assert len(log) == 3, "the hooks are in force in the block only"


def test_hooks_do_not_change_gradients_of_any_order() -> None:
    x = leaf(0.5, 2)
    with graph.saved_tensors_hooks(lambda t: t.numpy(force=True).copy(), treadle.tensor):
        y = (x.exp() * x.sin()).sum()
        (g,) = grad(y, x, create_graph=True)
        (h,) = grad(g.sum(), x)
    assert treadle.allclose(h, 2 * x.exp() * x.cos())


def test_the_innermost_hooks_count() -> None:
    x, log = leaf(1), []

    def hooks(name: str) -> graph.saved_tensors_hooks:
        return graph.saved_tensors_hooks(lambda t: log.append(name) or t, lambda t: t)

    with hooks("outer"):
        with hooks("inner"):
            x.sin()
        x.cos()
    assert log == ["inner", "outer"]


def test_saved_tensors_of_custom_functions_go_through_the_hooks() -> None:
    x, log = leaf(1), []
    with graph.saved_tensors_hooks(lambda t: log.append(t) or 0, lambda _: x.detach() * 9):
        node = Twice.apply(x).grad_fn
    assert len(log) == 1 and node.saved_tensors[0].tolist() == [9]


def test_hooks_that_are_wrong() -> None:
    x = leaf(1)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = x * x
    with pytest.raises(TypeError, match="expected to return a Tensor, got int"):
        y.backward(treadle.ones_like(y))
    with graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t):
        with pytest.raises(RuntimeError, match="modifying it in place"):
            treadle.ones(1, dtype=treadle.float64) * x
    with graph.saved_tensors_hooks(lambda t: 1 // 0, lambda t: t):
        with pytest.raises(ZeroDivisionError):
            x * x
    with graph.saved_tensors_hooks(lambda t: t, lambda t: 1 // 0):
        y = x * x
    with pytest.raises(ZeroDivisionError):
        y.backward(treadle.ones_like(y))
    with pytest.raises(TypeError, match="expected two functions, got int"):
        with graph.saved_tensors_hooks(1, 2):
            pass
    assert x.exp().requires_grad


def test_hooks_can_be_forbidden() -> None:
    def hooks() -> graph.saved_tensors_hooks:
        return graph.saved_tensors_hooks(lambda t: t, lambda t: t)

    with graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"):
            hooks().__enter__()
        with graph.disable_saved_tensors_hooks("nor here"):
            pass
        with pytest.raises(RuntimeError, match="not here"):
            hooks().__enter__()
    with hooks():
        with pytest.raises(RuntimeError, match="too late"):
            with graph.disable_saved_tensors_hooks("too late"):
                pass

    @graph.disable_saved_tensors_hooks("inside")
    def function() -> None:
        hooks().__enter__()

    with pytest.raises(RuntimeError, match="inside"):
        function()


def test_save_on_cpu() -> None:
    x = leaf(1, 2)
    for pinned in (False, True):
        x.grad = None
        with graph.save_on_cpu(pin_memory=pinned):
            y = (x * x).exp()
        y.sum().backward()
        assert treadle.allclose(x.grad, 2 * x * (x * x).exp())


def test_a_graph_saved_by_hooks_is_freed() -> None:
    x = leaf(1, 2)
    with graph.save_on_cpu():
        y = x.exp()
    alive = weakref.ref(y)
    del y
    assert alive() is None


def test_saved_tensors_may_be_changed_where_that_is_allowed() -> None:
    x, w = leaf(1, 2), leaf(3, 4)
    scale = treadle.tensor([5.0, 6.0], dtype=treadle.float64)
    with graph.allow_mutation_on_saved_tensors() as held:
        y = (x * scale).exp() * w
        scale.zero_()
        y.sum().backward()
        expected = (x * treadle.tensor([5.0, 6.0])).exp().detach()
        assert treadle.allclose(w.grad, expected)
        z = x * scale
        held.clear()
        with pytest.raises(AssertionError, match="clear"):
            z.sum().backward()
        with pytest.raises(RuntimeError, match="entered once"):
            graph.allow_mutation_on_saved_tensors().__enter__()
    with graph.allow_mutation_on_saved_tensors():
        pass


# ---- hooks on several tensors ----


def test_multi_grad_hooks() -> None:
    xs = [leaf(1), leaf(2), leaf(3)]
    every, first = [], []
    handle = graph.register_multi_grad_hook(xs, every.append)
    graph.register_multi_grad_hook(xs, first.append, mode="any")
    (xs[0] * 2 + xs[1] * 3).sum().backward()
    ((a, b, c),) = every
    assert a.tolist() == [2] and b.tolist() == [3] and c is None
    assert len(first) == 1
    (xs[2] * 4).sum().backward()
    assert every[1][0] is None and every[1][2].tolist() == [4] and len(first) == 2
    handle.remove()
    xs[0].sum().backward()
    assert len(every) == 2 and len(first) == 3
    y = xs[0] * 2
    with graph.register_multi_grad_hook([y, xs[1]], every.append):
        grad((y * xs[1]).sum(), y)
    assert every[2][0].tolist() == [2] and every[2][1] is None


def test_multi_grad_hooks_hold_neither_tensors_nor_graph() -> None:
    x = leaf(1)
    y = x * 2
    graph.register_multi_grad_hook([x, y], lambda gradients: None)
    alive = [weakref.ref(x), weakref.ref(y)]
    del x, y
    gc.collect()
    assert [ref() for ref in alive] == [None, None]


def test_multi_grad_hooks_that_are_wrong() -> None:
    with pytest.raises(ValueError, match="'some'"):
        graph.register_multi_grad_hook([leaf(1)], print, mode="some")
    with pytest.raises(AssertionError, match="require grad"):
        graph.register_multi_grad_hook([treadle.ones(1)], print)


# ---- custom functions, old names ----


def test_gradients_of_outputs_without_one_are_zeros() -> None:
    class Sorted(Function):
        seen: Any = None

        @staticmethod
        def forward(ctx: Any, x: treadle.Tensor) -> tuple:
            order = x.argsort()
            ctx.mark_non_differentiable(order)
            return x[order], order, "text"

        @staticmethod
        def backward(ctx: Any, g: Any, order: Any, text: Any) -> Any:
            Sorted.seen = (order, text)
            return g

    Sorted.apply(leaf(2, 1))[0].sum().backward()
    order, text = Sorted.seen
    assert order.dtype == treadle.int64 and order.tolist() == [0, 0] and text is None


def test_vjp_is_another_name_for_backward() -> None:
    class Old(Function):
        @staticmethod
        def forward(ctx: Any, x: treadle.Tensor) -> treadle.Tensor:
            return x * 2

        @staticmethod
        def vjp(ctx: Any, g: treadle.Tensor) -> treadle.Tensor:
            return g * 7

    class Child(Old):
        pass

    class Both(Old):
        @staticmethod
        def backward(ctx: Any, g: treadle.Tensor) -> treadle.Tensor:
            return g

    x = leaf(1)
    assert grad(Old.apply(x), x)[0].tolist() == [7]
    assert grad(Child.apply(x), x)[0].tolist() == [7]
    with pytest.raises(RuntimeError, match="one of backward and vjp"):
        grad(Both.apply(x), x)


def test_once_differentiable_result_is_plain_without_a_graph() -> None:
    class Square(InplaceFunction):
        @staticmethod
        def forward(ctx: Any, x: treadle.Tensor) -> treadle.Tensor:
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, g: treadle.Tensor) -> treadle.Tensor:
            return 2 * g * ctx.saved_tensors[0]

    x = leaf(3)
    (g,) = grad(Square.apply(x).sum(), x, create_graph=True)
    assert g.tolist() == [6] and not g.requires_grad


def test_variable_is_a_name_for_tensors() -> None:
    x = leaf(1, 2)
    v = Variable(x * 2, requires_grad=True)
    assert type(v) is treadle.Tensor and v.is_leaf and v.requires_grad
    assert isinstance(x, Variable) and not isinstance(1.0, Variable)
    y = x.detach()
    Variable(y)[0] = 5
    assert y[0] == 5 and not Variable(x).requires_grad
    order: list = []
    y = leaf(1) * 2
    y.register_hook(
        lambda g: Variable._execution_engine.queue_callback(lambda: order.append("after"))
    )
    y.sum().backward()
    assert order == ["after"]
    with pytest.raises(RuntimeError, match="during a backward"):
        Variable._execution_engine.queue_callback(print)
    with pytest.warns(UserWarning, match="volatile"):
        Variable(x, volatile=True)
    with pytest.raises(TypeError, match="got int"):
        Variable(2)


def test_saved_values_are_gone_after_backward() -> None:
    x = treadle.ones(3, requires_grad=True)
    y = x.exp()
    assert y.grad_fn._saved_result.tolist() == y.tolist()
    y.sum().backward()
    with pytest.raises(RuntimeError, match="freed"):
        _ = y.grad_fn._saved_result
    with pytest.raises(RuntimeError, match="freed"):
        y.sum().backward()


def test_hooks_of_a_node_see_what_it_saved_before_and_after_it_runs() -> None:
    x = treadle.ones(3, requires_grad=True)
    y = x.exp()
    seen = []
    y.grad_fn.register_prehook(lambda grads: seen.append(y.grad_fn._saved_result.tolist()))
    y.grad_fn.register_hook(lambda *grads: seen.append(y.grad_fn._saved_result.tolist()))
    y.sum().backward()
    assert seen == [y.tolist()] * 2


def test_what_an_operator_saved_serves_a_view_and_the_result_that_was_used_before() -> None:
    apart = treadle.full((4,), 2.0, requires_grad=True)
    changed = treadle.cat([apart[:2].exp(), apart[2:]])
    (changed.sum() + (changed[:2] * changed[:2]).sum()).backward()
    x = treadle.ones(4, requires_grad=True)
    y = x * 2
    z = y[:2].exp_()
    (y.sum() + (z * z).sum()).backward()
    assert treadle.allclose(x.grad, 2 * apart.grad)


@pytest.mark.parametrize(
    "cut, node",
    [
        (lambda t: t.unbind(1), "UnbindBackward0"),
        (lambda t: t.split(2, 1), "SplitBackward0"),
        (lambda t: t.chunk(2, -1), "SplitBackward0"),
        (lambda t: t.split([1, 0, 2], 1), "SplitWithSizesBackward0"),
        (lambda t: t.tensor_split(2, 1), "SplitWithSizesBackward0"),
    ],
    ids=["unbind", "split", "chunk", "split sizes", "tensor_split"],
)
def test_pieces_have_one_node(cut: Any, node: str) -> None:
    """One node joins the gradients of the pieces, with zeros for those that had none."""
    x = treadle.randn(4, 3, dtype=treadle.float64, requires_grad=True)
    pieces = cut(x * 1)
    assert {piece.grad_fn for piece in pieces} == {pieces[0].grad_fn}
    assert pieces[0].grad_fn.name() == node
    for used in range(len(pieces)):
        expected = treadle.zeros(4, 3, dtype=treadle.float64)
        cut(expected)[used].fill_(2)
        (got,) = treadle.autograd.grad(2 * cut(x * 1)[used].sum(), x)
        treadle.testing.assert_close(got, expected, rtol=0, atol=0)
    assert treadle.autograd.gradgradcheck(lambda t: [p.exp() for p in cut(t)], [x])

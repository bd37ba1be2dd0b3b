"""Modes over operators: which calls they see and as what, in which order they are asked, what they
may return, and how long they live.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections import Counter
from typing import Any, Callable, List, Optional, Tuple

import pytest

import treadle
import treadle.nn.functional as F
from treadle import nn
from treadle.utils import _python_dispatch as modes
from treadle.utils._mode_utils import all_same_mode, no_dispatch
from treadle.utils._python_dispatch import TorchDispatchMode

aten = treadle.ops.aten


class Recording(TorchDispatchMode):
    """Keeps the calls, and lets them through."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: List[Tuple[Any, tuple, dict]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert type(types) is type(args) is tuple and type(kwargs) is dict
        self.calls.append((func, args, kwargs))
        return func(*args, **kwargs)

    @property
    def names(self) -> List[str]:
        return [str(func) for func, _, _ in self.calls]


class Answering(TorchDispatchMode):
    """Answers every call by a function of it."""

    def __init__(self, answer: Callable) -> None:
        super().__init__()
        self.answer = answer

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.answer(func, *args, **kwargs)


def seen(function: Callable) -> List[str]:
    with Recording() as mode:
        function()
    return mode.names


# ---- what is seen, and as what ----

NAMES = {
    "a * 2": ["aten.mul.Tensor"],
    "a + 1.5": ["aten.add.Tensor"],
    "2 ** a": ["aten.pow.Scalar"],
    "a ** 2": ["aten.pow.Tensor_Scalar"],
    "-a": ["aten.neg.default"],
    "a > 0": ["aten.gt.Scalar"],
    "a.add_(1)": ["aten.add_.Tensor"],
    "a.zero_()": ["aten.zero_.default"],
    "a.fill_(1)": ["aten.fill_.Scalar"],
    "treadle.cat([a, a])": ["aten.cat.default"],
    "treadle.stack([a, a])": ["aten.stack.default"],
    "a @ a": ["aten.mm.default"],
    "F.linear(a, a)": ["aten.t.default", "aten.mm.default"],
    "a[0]": ["aten.select.int"],
    "a[:, 1:]": ["aten.slice.Tensor"],
    "a // 2": ["aten.floor_divide.default"],
    "2 - a": ["aten.sub.Tensor"],
    "a.t()": ["aten.t.default"],
    "a.view(4)": ["aten.view.default"],
    "a.reshape(4)": ["aten.view.default"],
    "a.expand(2, 2, 2)": ["aten.expand.default"],
    "a.detach()": ["aten.detach.default"],
    "a.unbind()": ["aten.unbind.int"],
    "a.split(1)": ["aten.split.Tensor"],
    "a.clone()": ["aten.clone.default"],
    "a.double()": ["aten._to_copy.default"],
    "a.sum()": ["aten.sum.default"],
    "a.mean()": ["aten.mean.default"],
    "a.max(0)": ["aten.max.dim"],
    "treadle.softmax(a, -1)": ["aten._softmax.default"],
    "treadle.zeros(2)": ["aten.zeros.default"],
    "treadle.ones_like(a)": ["aten.ones_like.default"],
    "treadle.arange(3)": ["aten.arange.default"],
    "treadle.randn(2)": ["aten.randn.default"],
    "treadle._foreach_add([a, a], 1)": ["aten._foreach_add.Scalar"],
    "treadle.equal(a, a)": ["aten.equal.default"],
    "a.sum().item()": ["aten.sum.default", "aten._local_scalar_dense.default"],
    "float(a.sum())": ["aten.sum.default", "aten._local_scalar_dense.default"],
    "bool(a.sum() > 0)": [
        "aten.sum.default",
        "aten.gt.Scalar",
        "aten._local_scalar_dense.default",
    ],
}


@pytest.mark.parametrize("program", NAMES)
def test_operators_go_by_the_names_that_programs_know(program: str) -> None:
    names = {"a": treadle.ones(2, 2), "treadle": treadle, "F": F}
    assert seen(lambda: eval(program, names)) == NAMES[program]


def test_a_handler_is_given_the_call_as_programs_write_it() -> None:
    a, b = treadle.ones(2), treadle.ones(2)
    out = treadle.empty(2)
    with Recording() as mode:
        a * 2
        a + 1.5
        treadle.add(a, b, alpha=3)
        treadle.add(a, b, alpha=1, out=out)
        a.sum(0)
        treadle.cat((a, b))
    (mul, add, scaled, to, sums, cat) = mode.calls
    assert mul == (aten.mul.Tensor, (a, 2), {}) and type(mul[1][1]) is int
    assert mul[1][0] is a
    assert add[1][1] == 1.5 and type(add[1][1]) is float
    assert scaled[0] is aten.add.Tensor and scaled[1][1] is b and scaled[2] == {"alpha": 3}
    assert to[0] is aten.add.out and len(to[1]) == 2 and list(to[2]) == ["out"]
    assert to[2]["out"] is out
    assert sums[0] is aten.sum.dim_IntList and sums[1][1:] == ([0],) and sums[2] == {}
    assert type(cat[1][0]) is list and cat[1][0][0] is a and cat[1][0][1] is b


def test_what_func_is() -> None:
    with Recording() as mode:
        treadle.ones(2).mul(2)
    func = mode.calls[-1][0]
    assert func is aten.mul.Tensor and func.overloadpacket is aten.mul
    assert func._schema.name == "aten::mul" and func.namespace == "aten"
    assert [a.name for a in func._schema.arguments] == ["self", "other"]


def test_decompose() -> None:
    a = treadle.ones(2, 2)
    assert aten.mm.default.decompose(a, a) is NotImplemented
    assert treadle.equal(aten.linear.default.decompose(a, a), a @ a.t())


def test_recorded_calls_are_seen_by_what_has_a_derivative() -> None:
    """Autograd is above modes: what is made of others, whose derivatives it has, is these."""
    a = treadle.ones(2, 2, requires_grad=True)
    assert "aten.exp.default" in seen(lambda: a.exp())
    assert "aten.cat.default" not in seen(lambda: treadle.cat([a, a]))
    with treadle.no_grad():
        assert seen(lambda: treadle.cat([a, a])) == ["aten.cat.default"]
        assert seen(lambda: treadle.ones_like(a)) == ["aten.ones_like.default"]
    assert seen(lambda: treadle.ones_like(a)) == ["aten.ones_like.default"]


def test_backward_is_seen() -> None:
    x = treadle.ones(3, requires_grad=True)
    y = (x.exp() * 2).sum()
    with Recording() as mode:
        y.backward()
    assert mode.names[:2] == ["aten.ones_like.default", "aten.expand.default"]
    assert mode.names.count("aten.mul.Tensor") == 2
    treadle.testing.assert_close(x.grad, x.detach().exp() * 2)


def test_gradients_are_those_without_a_mode() -> None:
    treadle.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3))
    x, target = treadle.randn(5, 4), treadle.tensor([0, 1, 2, 1, 0])
    F.cross_entropy(net(x), target).backward()
    expected = [p.grad.clone() for p in net.parameters()]
    for times in (1, 2):
        with Recording(), Recording():
            F.cross_entropy(net(x), target).backward()
        for p, grad in zip(net.parameters(), expected):
            assert treadle.equal(p.grad, grad * (times + 1))


def test_training_is_what_it_is_without_a_mode() -> None:
    def trained(mode: Any) -> List[treadle.Tensor]:
        treadle.manual_seed(0)
        net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten())
        adam = treadle.optim.Adam(net.parameters(), lr=0.1)
        x = treadle.randn(2, 1, 5, 5)
        with mode:
            for _ in range(3):
                adam.zero_grad()
                net(x).square().mean().backward()
                adam.step()
        return list(net.parameters())

    with no_dispatch():
        plain = trained(Recording())
    for a, b in zip(plain, trained(Recording())):
        assert treadle.equal(a, b)


def test_a_handler_is_below_autograd() -> None:
    found = {}

    def answer(func: Any, *args: Any, **kwargs: Any) -> Any:
        leaf = treadle.ones(2, requires_grad=True)
        found[func] = (leaf * 2).requires_grad, treadle.is_grad_enabled()
        with treadle.enable_grad():
            assert not (leaf * 2).requires_grad
        result = func(*args, **kwargs)
        assert not result.requires_grad
        return result

    a = treadle.ones(2, requires_grad=True)
    with Answering(answer):
        assert (a * 2).requires_grad and not (a.detach() * 2).requires_grad
        treadle.zeros(2)
    assert set(found.values()) == {(False, True)}
    assert (a * 2).requires_grad


def test_custom_operators_and_functions_are_seen() -> None:
    @treadle.library.custom_op("modes::twice", mutates_args=())
    def twice(x: treadle.Tensor) -> treadle.Tensor:
        return x * 2

    twice.register_autograd(lambda ctx, grad: grad * 2)

    class Thrice(treadle.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 3

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 3

    for grad in (False, True):
        x = treadle.ones(2, requires_grad=grad)
        with Recording() as mode:
            y = twice(x)
            z = Thrice.apply(x)
        assert mode.names == ["modes.twice.default", "aten.mul.Tensor"]
        assert mode.calls[0][0] is treadle.ops.modes.twice.default
        assert y.tolist() == [2, 2] and z.tolist() == [3, 3] and y.requires_grad is grad
    with Recording() as mode:
        y.sum().backward()
    assert x.grad.tolist() == [2, 2] and "aten.mul.Tensor" in mode.names
    with Answering(lambda func, x: x + 1):
        y = twice(x)
    assert y.tolist() == [2, 2] and y.requires_grad


def test_autocast_is_above() -> None:
    a = treadle.ones(2, 2)
    with Recording() as mode, treadle.autocast("cpu", dtype=treadle.bfloat16):
        assert (a @ a).dtype == treadle.bfloat16
    assert mode.names[-1] == "aten.mm.default"
    assert mode.calls[-1][1][0].dtype == treadle.bfloat16


def test_views_made_under_a_mode_are_views() -> None:
    for make in (lambda x: x.t(), lambda x: x[0], lambda x: x.view(4)):
        base, w = treadle.ones(2, 2), treadle.ones((), requires_grad=True)
        with Recording():
            view = make(base)
            assert view._base is base
            view.mul_(w)
        assert base.requires_grad
        base.sum().backward()
        assert w.grad.item() == view.numel()
    with Recording():
        assert all(part._base is w for w in [treadle.ones(2)] for part in w.unbind())


def test_storages_of_views_are_shared() -> None:
    base = treadle.zeros(4)
    with Recording():
        base[1:].fill_(1)
        base.split(2)[0].add_(1)
    assert base.tolist() == [1, 2, 1, 1] and base._version == 2


# ---- order ----


class Named(Recording):
    log: List[Tuple[str, str, List[str]]] = []

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        inner: Any = modes._get_current_dispatch_mode()
        stack: Any = modes._get_current_dispatch_mode_stack()
        assert inner is (stack[-1] if stack else None)
        self.log.append((self.name, str(func), [m.name for m in stack]))
        return func(*args, **(kwargs or {}))


def test_the_innermost_mode_is_asked_first_and_is_closed_meanwhile() -> None:
    Named.log.clear()
    with Named("out") as out:
        with Named("in") as inner:
            assert modes._get_current_dispatch_mode_stack() == [out, inner]
            treadle.ones(1)
            with inner:
                assert modes._get_current_dispatch_mode_stack() == [out, inner, inner]
                treadle.zeros(1)
        assert modes._get_current_dispatch_mode() is out
    assert modes._get_current_dispatch_mode() is None
    assert Named.log == [
        ("in", "aten.ones.default", ["out"]),
        ("out", "aten.ones.default", []),
        ("in", "aten.zeros.default", ["out", "in"]),
        ("in", "aten.zeros.default", ["out"]),
        ("out", "aten.zeros.default", []),
    ]


def test_a_mode_may_open_itself_in_its_handler() -> None:
    class Again(TorchDispatchMode):
        depth = 0
        seen: List[Tuple[str, int]] = []

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.seen.append((str(func), self.depth))
            if self.depth == 2:
                return func(*args, **(kwargs or {}))
            self.depth += 1
            with self:
                result = args[0] + 1
            self.depth -= 1
            return result

    x = treadle.ones(1)
    with Again() as mode:
        assert (x * 3).tolist() == [2]
    assert mode.seen == [("aten.mul.Tensor", 0), ("aten.add.Tensor", 1), ("aten.add.Tensor", 2)]


def test_a_mode_is_of_its_thread() -> None:
    other: List[Any] = []

    def work() -> None:
        other.append(modes._len_torch_dispatch_stack())
        treadle.ones(1)
        with Recording() as mine:
            treadle.zeros(1)
        other.append(mine.names)

    with Recording() as mode:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        treadle.full((1,), 2)
    assert other == [0, ["aten.zeros.default"]]
    assert mode.names == ["aten.full.default"]


def test_modes_of_many_threads() -> None:
    results: List[bool] = []

    def work() -> None:
        x = treadle.ones(100, 100, requires_grad=True)
        for _ in range(20):
            with Recording() as mode:
                (x @ x).sum().backward()
            assert mode.names.count("aten.mm.default") == 3
        results.append(x.grad[0, 0].item() == 20 * 200)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4


def test_threads_that_add_to_one_gradient_under_modes_end() -> None:
    """Nobody holds a lock while a handler runs."""
    x = treadle.zeros(200, 200, requires_grad=True)

    def work(with_mode: bool) -> None:
        for _ in range(20):
            if with_mode:
                with Recording():
                    (x * 1).sum().backward()
            else:
                (x * 1).sum().backward()

    threads = [threading.Thread(target=work, args=(i % 2 == 0,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def test_blocks_without_modes() -> None:
    with Recording() as outer, Recording() as inner:
        with modes._disable_current_modes() as disabled:
            assert disabled == [outer, inner] and not modes.any_torch_dispatch_mode_on_stack()
            treadle.ones(1)
        with modes._pop_mode_temporarily() as popped:
            assert popped is inner
            treadle.zeros(1)
        with no_dispatch():
            assert modes._len_torch_dispatch_stack() == 2
            treadle.full((1,), 1)
        guard = treadle._C._DisableTorchDispatch()
        treadle.full((1,), 1)
        del guard
        treadle.eye(1)
        assert modes.is_in_torch_dispatch_mode() and modes.any_torch_dispatch_mode_on_stack()
    assert outer.names == ["aten.zeros.default", "aten.eye.default"]
    assert inner.names == ["aten.eye.default"]
    assert not modes.is_in_torch_dispatch_mode()
    with modes._disable_current_modes() as disabled:
        assert disabled == []
    assert all_same_mode([1, 1]) and not all_same_mode([1, 2])


def test_no_dispatch_holds_for_a_backward_too() -> None:
    x = treadle.ones(2, requires_grad=True)
    with Recording() as mode:
        y = (x * 2).sum()
        count = len(mode.calls)
        with no_dispatch():
            y.backward()
    assert len(mode.calls) == count and x.grad.tolist() == [2, 2]


def test_an_error_closes_the_mode() -> None:
    with pytest.raises(ZeroDivisionError):
        with Answering(lambda func, *args, **kwargs: 1 / 0):
            treadle.ones(1)
    assert modes._len_torch_dispatch_stack() == 0
    assert treadle.ones(1).tolist() == [1]


def test_the_old_way_to_open_a_mode() -> None:
    with pytest.warns(UserWarning, match=r"^Recording.push\(\) is no longer needed"):
        with Recording.push() as mode:
            treadle.ones(1)
    assert mode.names == ["aten.ones.default"]


# ---- errors ----


def test_errors_of_handlers_are_theirs() -> None:
    class Own(Exception):
        pass

    error = Own("why")

    def fail(func: Any, *args: Any, **kwargs: Any) -> Any:
        raise error

    x = treadle.ones(2, requires_grad=True)
    y = x.exp().sum()
    for call in (lambda: treadle.ones(1), lambda: x * 2, lambda: y.backward()):
        with pytest.raises(Own) as caught:
            with Answering(fail):
                call()
        assert caught.value is error
    assert "fail" in [entry.name for entry in caught.traceback]


WRONG = {
    "mul": (
        3,
        "mul: expected __torch_dispatch__ of Answering to return Tensor, got int\n"
        "  mul.Tensor(Tensor self, Tensor other) -> Tensor",
    ),
    "none": (
        None,
        "mul: expected __torch_dispatch__ of Answering to return Tensor, got None\n"
        "  mul.Tensor(Tensor self, Tensor other) -> Tensor",
    ),
    "max": (
        treadle.ones(2),
        "max: expected __torch_dispatch__ of Answering to return a tuple of 2 results, got Tensor\n"
        "  max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    ),
    "max3": (
        (treadle.ones(2),) * 3,
        "max: expected __torch_dispatch__ of Answering to return a tuple of 2 results, got 3\n"
        "  max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    ),
    "max_item": (
        (treadle.ones(2), "x"),
        "max: expected __torch_dispatch__ of Answering to return Tensor, got str as result 1\n"
        "  max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    ),
    "split": (
        treadle.ones(2),
        "split: expected __torch_dispatch__ of Answering to return Tensor(a)[], got Tensor\n"
        "  split.Tensor(Tensor(a -> *) self, int split_size, int dim=0) -> Tensor(a)[]",
    ),
    "equal": (
        "no",
        "equal: expected __torch_dispatch__ of Answering to return bool, got str\n"
        "  equal(Tensor self, Tensor other) -> bool",
    ),
}
CALLS: dict = {
    "mul": lambda x: x * 2,
    "none": lambda x: x * 2,
    "max": lambda x: x.max(0),
    "max3": lambda x: x.max(0),
    "max_item": lambda x: x.max(0),
    "split": lambda x: x.split(1),
    "equal": lambda x: treadle.equal(x, x),
}


@pytest.mark.parametrize("case", WRONG)
def test_results_that_the_schema_does_not_have(case: str) -> None:
    answer, message = WRONG[case]
    x = treadle.ones(2)
    with pytest.raises(RuntimeError) as caught:
        with Answering(lambda func, *args, **kwargs: answer):
            CALLS[case](x)
    assert str(caught.value) == message


def test_nobody_handles_a_call() -> None:
    with pytest.raises(TypeError) as caught:
        with Answering(lambda func, *args, **kwargs: NotImplemented):
            treadle.ones(2)
    assert str(caught.value) == (
        "ones: expected one of the modes and classes that implement __torch_dispatch__ to handle "
        "it, got NotImplemented from all of them: Answering"
    )


def test_a_mode_without_a_handler() -> None:
    with pytest.raises(NotImplementedError) as caught:
        with TorchDispatchMode():
            treadle.ones(2)
    assert str(caught.value) == ("TorchDispatchMode: expected __torch_dispatch__ to be defined")


def test_what_is_no_mode() -> None:
    with pytest.raises(TypeError) as caught:
        treadle._C._push_on_torch_dispatch_stack(3)
    assert str(caught.value) == (
        "_push_on_torch_dispatch_stack: expected an object with __torch_dispatch__, got int"
    )
    with pytest.raises(RuntimeError, match="^_pop_torch_dispatch_stack: expected an open mode"):
        modes._pop_mode()
    with pytest.raises(IndexError, match="^_get_dispatch_stack_at: expected 0 <= index < 0, got 0"):
        treadle._C._get_dispatch_stack_at(0)
    with pytest.raises(NotImplementedError, match="^_pop_torch_dispatch_stack: expected mode_key"):
        modes._pop_mode("fake")
    with pytest.raises(NotImplementedError) as refused:
        TorchDispatchMode("FAKE")
    assert str(refused.value) == (
        "TorchDispatchMode: expected _dispatch_key = None, as all modes have one place, below "
        "autograd, got FAKE"
    )


def test_a_handler_that_calls_itself_without_end() -> None:
    class Endless(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            with self:
                return func(*args, **(kwargs or {}))

    with pytest.raises(RecursionError):
        with Endless():
            treadle.ones(2)
    assert treadle.ones(1).tolist() == [1]


# ---- what handlers return ----


def test_operators_that_write_return_what_they_wrote() -> None:
    """Whatever the handler returns, as autograd has it in its hands."""
    x = treadle.ones(2)
    for answer in (None, treadle.zeros(2), 3):
        with Answering(lambda func, *args, **kwargs: answer):
            assert x.add_(1) is x
            assert treadle.add(x, x, out=x) is x
    assert x.tolist() == [1, 1]


def test_a_write_counts_also_where_the_handler_does_nothing() -> None:
    x = treadle.ones(2)
    with Answering(lambda func, *args, **kwargs: None):
        x.add_(1)
    assert x._version == 1
    with Recording():
        x.add_(1)
    assert x._version == 2


def test_a_handler_may_return_other_tensors() -> None:
    x = treadle.ones(3, requires_grad=True)
    other = treadle.full((3,), 7.0)
    with Answering(lambda func, *args, **kwargs: other):
        y = x * 2
        assert (x.detach() * 2) is other
    assert y is other and y.grad_fn is not None and y.tolist() == [7, 7, 7]
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_an_argument_as_result_is_another_tensor_where_it_is_recorded() -> None:
    x, plain = treadle.ones(2, requires_grad=True), treadle.ones(2)
    with Answering(lambda func, *args, **kwargs: args[0]):
        y = x.clone()
        assert plain.clone() is plain
        assert (plain * x) is not plain
    assert y is not x and x.is_leaf and not plain.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_a_leaf_of_somewhere_else_as_result() -> None:
    x, other = treadle.ones(2, requires_grad=True), treadle.ones(2, requires_grad=True)
    with Answering(lambda func, *args, **kwargs: other):
        y = x * 3
    assert y is not other and other.is_leaf and other.grad_fn is None
    y.sum().backward()
    assert x.grad.tolist() == [3, 3] and other.grad is None


def test_gradients_that_are_not_there() -> None:
    """Some of several results may be None."""
    x = treadle.randn(2, 3, requires_grad=True)
    w = treadle.ones(3)
    y = F.layer_norm(x, (3,), w, w)

    def without(func: Any, *args: Any, **kwargs: Any) -> Any:
        result = func(*args, **kwargs)
        return tuple(result) if isinstance(result, tuple) else result

    with Answering(without):
        y.sum().backward()
    assert x.grad.shape == (2, 3)


def test_numbers_as_results() -> None:
    x = treadle.ones(())

    def seven(func: Any, *args: Any, **kwargs: Any) -> Any:
        return 7 if func is aten._local_scalar_dense.default else func(*args, **kwargs)

    with Answering(seven):
        assert x.item() == 7 and float(x) == 7.0 and int(x) == 7


# ---- life ----


def test_modes_do_not_outlive_their_block() -> None:
    mode: Optional[Recording] = Recording()
    found = weakref.ref(mode)
    with mode:  # type: ignore[union-attr]
        tensor = treadle.ones(2)
        alive = weakref.ref(tensor * 2)
    count = sys.getrefcount(mode)
    for _ in range(10):
        with mode:  # type: ignore[union-attr]
            treadle.ones(2)
    assert sys.getrefcount(mode) == count
    mode = None
    gc.collect()
    assert found() is None and alive() is None


def test_calls_leak_nothing() -> None:
    class Passing(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*args, **(kwargs or {}))

    x = treadle.ones(4, requires_grad=True)

    def work() -> None:
        with Passing():
            y = treadle.cat([x.exp(), x * 2]).split(2)
            sum(t.sum() for t in y).backward()
            treadle.add(x.detach(), 1, alpha=2)
        x.grad = None

    def objects() -> Counter:
        gc.collect()
        return Counter(type(o).__name__ for o in gc.get_objects())

    work()
    before, bytes_before = objects(), treadle._C._memory_stats()["current_bytes"]
    for _ in range(20):
        work()
    after = objects()
    assert {k: after[k] - before[k] for k in ("Tensor", "tuple", "dict", "list")}.keys()
    assert after["Tensor"] == before["Tensor"] and after["Passing"] == before["Passing"]
    assert abs(after["tuple"] - before["tuple"]) < 20 and abs(after["dict"] - before["dict"]) < 20
    assert treadle._C._memory_stats()["current_bytes"] == bytes_before


def test_a_cycle_of_a_mode_and_its_tensors_is_collected() -> None:
    mode = Recording()
    with mode:
        x = treadle.ones(2, requires_grad=True) * 2
    x.mode = mode  # type: ignore[attr-defined]
    found = weakref.ref(mode)
    del mode, x
    gc.collect()
    assert found() is None


def test_without_a_mode_calls_do_not_go_through_the_layer() -> None:
    x = treadle.ones(2)
    assert treadle._C._active_layers("aten::mul.Tensor", x) == []
    with Recording():
        assert treadle._C._active_layers("aten::mul.Tensor", x) == ["dispatch"]
        assert treadle._C._active_layers("aten::linear", x) == []
    assert treadle._C._active_layers("aten::mul.Tensor", x) == []
    assert treadle._C._dispatch_check_invariants() == []

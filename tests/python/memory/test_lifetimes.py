"""Objects that nobody can reach go: cycles through hooks, `ctx`, attributes and graphs."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import gc
import os
import pickle
import threading
import weakref
from collections import OrderedDict
from typing import Any, Callable, Iterator

import pytest

import treadle
import treadle.utils.checkpoint
from treadle import nn
from treadle.autograd import Function
from treadle.utils.hooks import RemovableHandle


class Witness:
    """Dies with what refers to it."""


@pytest.fixture(autouse=True)
def _quick_collections() -> Iterator[None]:
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class Exp(Function):
    @staticmethod
    def forward(ctx: Any, x: treadle.Tensor, keep: Any = None) -> treadle.Tensor:
        result = x.exp()
        ctx.save_for_backward(result)
        ctx.keep = keep
        return result

    @staticmethod
    def backward(ctx: Any, grad: treadle.Tensor) -> tuple:
        return grad * ctx.saved_tensors[0], None


class Layer(nn.Module):
    """A module whose hooks refer to it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(treadle.ones(3))
        self.seen = 0

    def hook(self, *arguments: Any) -> None:
        self.seen += 1

    def forward(self, x: treadle.Tensor) -> treadle.Tensor:
        return x * self.weight


def leaf() -> treadle.Tensor:
    return treadle.ones(3, requires_grad=True)


def cycle_dict(witness: Witness) -> None:
    t = treadle.ones(3)
    t.__dict__["me"] = (t, witness)


def cycle_vars(witness: Witness) -> None:
    t = treadle.ones(3)
    vars(t).update(me=t, witness=witness)


def cycle_replaced_dict(witness: Witness) -> None:
    t = treadle.ones(3)
    t.__dict__ = {"me": t, "witness": witness}


def cycle_attribute(witness: Witness) -> None:
    t = treadle.ones(3)
    t.me, t.witness = t, witness


def cycle_two_tensors(witness: Witness) -> None:
    a, b = treadle.ones(3), treadle.ones(3)
    a.__dict__["b"], b.__dict__["a"] = b, (a, witness)


def cycle_leaf_hook(witness: Witness) -> None:
    t = leaf()
    t.register_hook(lambda grad: (t, witness) and None)


def cycle_post_accumulate_hook(witness: Witness) -> None:
    t = leaf()
    t.register_post_accumulate_grad_hook(lambda p: (t, witness) and None)


def cycle_hook_after_backward(witness: Witness) -> None:
    t = leaf()
    t.register_hook(lambda grad: (t, witness) and None)
    (t * 2).sum().backward()


def cycle_module_hook(witness: Witness) -> None:
    m = Layer()
    m.witness = witness
    m.weight.register_hook(m.hook)
    m.weight.register_post_accumulate_grad_hook(m.hook)
    m(treadle.ones(3)).sum().backward()


def cycle_stored_handle(witness: Witness) -> None:
    m = Layer()
    m.witness = witness
    m.handle = m.weight.register_hook(m.hook)


def cycle_hook_object(witness: Witness) -> None:
    class Hook:
        def __call__(self, grad: treadle.Tensor) -> None:
            pass

    t, hook = leaf(), Hook()
    hook.tensor, hook.witness = t, witness
    t.register_hook(hook)


def cycle_builtin_hook(witness: Witness) -> None:
    t = leaf()
    t.witness = witness
    t.register_hook(t.dot)


def cycle_own_result(witness: Witness) -> None:
    y = leaf() * 2
    y.register_hook(lambda grad: (y, witness) and None)


def cycle_node_hook(witness: Witness) -> None:
    y = leaf() * 2
    y.grad_fn.register_hook(lambda *grads: (y, witness) and None)


def cycle_node_prehook(witness: Witness) -> None:
    y = leaf() * 2
    y.grad_fn.register_prehook(lambda grads: (y, witness) and None)


def cycle_node_handle(witness: Witness) -> None:
    y = leaf() * 2
    handles: list = []
    handles.append(y.grad_fn.register_hook(lambda *grads: (handles, witness) and None))


def cycle_node_alone(witness: Witness) -> None:
    node = (leaf() * 2).grad_fn
    node.register_hook(lambda *grads: (node, witness) and None)


def cycle_node_metadata(witness: Witness) -> None:
    y = leaf() * 2
    y.grad_fn.metadata["y"] = (y, witness)


def cycle_ctx(witness: Witness) -> None:
    box: list = [witness]
    y = Exp.apply(leaf(), box)
    box.append(y)


def cycle_ctx_behind(witness: Witness) -> None:
    box: list = [witness]
    y = Exp.apply(leaf(), box)
    box.append((y + 1) * 3)


def cycle_ctx_after_backward(witness: Witness) -> None:
    box: list = [witness]
    y = Exp.apply(leaf(), box)
    box.append(y)
    y.sum().backward(retain_graph=True)


def cycle_ctx_with_module(witness: Witness) -> None:
    m = Layer()
    m.witness = witness
    m.out = Exp.apply(m(treadle.ones(3)), m)


def cycle_retained_gradient(witness: Witness) -> None:
    t = leaf()
    (t * 2).sum().backward()
    t.grad.owner = (t, witness)


def cycle_gradient_with_graph(witness: Witness) -> None:
    t = leaf()
    (t * Exp.apply(t, witness)).sum().backward(create_graph=True)
    t.grad.register_hook(lambda grad: t and None)
    t.grad = None


def cycle_custom_operator(witness: Witness) -> None:
    box: list = [witness]
    y = _twice(leaf(), box)
    box.append(y)


def _twice(x: treadle.Tensor, box: list) -> treadle.Tensor:
    if not hasattr(_twice, "op"):
        op = treadle.library.custom_op("lifetimes::twice", lambda x: x * 2, mutates_args=(),
                                       schema="(Tensor x) -> Tensor")  # fmt: skip

        def set_up(ctx: Any, inputs: tuple, output: Any) -> None:
            ctx.box = _twice.box

        op.register_autograd(lambda ctx, grad: grad * 2, setup_context=set_up)
        _twice.op = op
    _twice.box = box
    result = _twice.op(x)
    del _twice.box
    return result


def cycle_subclass(witness: Witness) -> None:
    class Named(treadle.Tensor):
        pass

    t = treadle.ones(3).as_subclass(Named)
    t.me, t.witness = t, witness


CYCLES = {name: f for name, f in list(globals().items()) if name.startswith("cycle_")}


@pytest.mark.parametrize("name", CYCLES)
def test_a_cycle_is_collected(name: str) -> None:
    CYCLES[name](Witness())  # what is made at a first use
    gc.collect()
    witness = Witness()
    gone = weakref.ref(witness)
    CYCLES[name](witness)
    del witness
    gc.collect()
    gc.collect()
    assert gone() is None, f"{name} is never collected"


@pytest.mark.parametrize("name", CYCLES)
def test_collected_while_others_work(name: str) -> None:
    """The objects that the collector sees do not change under it."""
    stop = threading.Event()
    x = treadle.ones(60_000, requires_grad=True)

    def work() -> None:
        while not stop.is_set():
            (x * x).sum().backward()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(20):
            CYCLES[name](Witness())
            gc.collect()
    finally:
        stop.set()
        thread.join()


# ---- what is not a cycle goes at once ------------------------------------------------------------


def goes_at_once(make: Callable[[], Any]) -> None:
    make()
    gc.disable()
    try:
        gone = weakref.ref(make())
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("which", ["full_backward_hook", "full_backward_pre_hook"])
@pytest.mark.parametrize("many", [False, True])
def test_outputs_of_a_module_with_backward_hooks(which: str, many: bool) -> None:
    class Several(nn.Module):
        def forward(self, x: treadle.Tensor) -> Any:
            return (x * 2, x * 3, "text") if many else x * 2

    m = Several()
    getattr(m, f"register_{which}")(lambda *arguments: None)

    def forward() -> treadle.Tensor:
        result = m(leaf())
        return result[0] if many else result

    def forward_and_backward() -> treadle.Tensor:
        result = forward()
        result.sum().backward()
        return result

    goes_at_once(forward)
    goes_at_once(forward_and_backward)


def test_outputs_of_functions_and_hooks() -> None:
    goes_at_once(lambda: Exp.apply(leaf()))

    def hooked() -> treadle.Tensor:
        y = leaf() * 2
        y.register_hook(lambda grad: grad)
        y.grad_fn.register_hook(lambda *grads: None)
        y.sum().backward()
        return y

    goes_at_once(hooked)

    def several() -> treadle.Tensor:
        a, b = leaf() * 2, leaf() * 3
        treadle.autograd.graph.register_multi_grad_hook((a, b), lambda grads: None)
        (a + b).sum().backward()
        return a

    goes_at_once(several)

    def saved() -> treadle.Tensor:
        with treadle.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            return leaf() ** 2

    goes_at_once(saved)

    def checkpointed() -> treadle.Tensor:
        y = treadle.utils.checkpoint.checkpoint(treadle.exp, leaf(), use_reentrant=False)
        y.sum().backward()
        return y

    goes_at_once(checkpointed)


# ---- what is still held stays --------------------------------------------------------------------


def test_what_the_graph_needs_is_not_collected() -> None:
    calls: list = []
    m = Layer()
    m.weight.register_hook(lambda grad: calls.append("leaf"))
    box: list = ["kept"]
    y = Exp.apply(m(treadle.ones(3)), box)
    y.register_hook(lambda grad: calls.append("result"))
    y.grad_fn.register_prehook(lambda grads: calls.append("before"))
    y.grad_fn.register_hook(lambda *grads: calls.append("after"))
    y.grad_fn.metadata["a"] = 1
    loss = (y * 2).sum()
    weight = weakref.ref(m.weight)
    del m, y
    gc.collect()
    assert weight() is not None
    assert loss.grad_fn.next_functions[0][0].next_functions[0][0].keep is box
    assert loss.grad_fn.next_functions[0][0].next_functions[0][0].metadata == {"a": 1}
    loss.backward()
    assert calls == ["result", "before", "after", "leaf"]


def test_a_handle_knows_where_its_hook_is() -> None:
    layer = treadle.nn.Linear(2, 2)
    handle = layer.register_forward_hook(lambda *args: None)
    assert handle.hooks_dict_ref() is layer._forward_hooks and handle.id in layer._forward_hooks
    assert all(extra() is not None for extra in handle.extra_dict_ref)
    copied = pickle.loads(pickle.dumps(RemovableHandle(OrderedDict())))
    assert copied.hooks_dict_ref() is None
    copied.remove()
    handle.remove()
    assert not layer._forward_hooks


def test_a_handle_keeps_nothing_and_removes() -> None:
    t = leaf()
    calls: list = []
    handle = t.register_hook(lambda grad: calls.append(1))
    (t * 2).sum().backward()
    handle.remove()
    handle.remove()
    (t * 2).sum().backward()
    assert calls == [1]
    gone = weakref.ref(t)
    handle = t.register_hook(lambda grad: None)
    del t
    assert gone() is None
    handle.remove()

    # The graph goes on with a tensor and a node whose objects are gone.
    y = leaf() * 2
    first = y.register_hook(lambda grad: calls.append(2))
    second = y.grad_fn.register_hook(lambda *grads: calls.append(3))
    third = y.grad_fn.register_prehook(lambda grads: calls.append(4))
    loss = y.sum()
    del y
    for handle in (first, second, third):
        handle.remove()
    loss.backward()
    assert calls == [1]


def test_a_class_with_del_keeps_its_class_and_attributes() -> None:
    """Where only the graph holds the tensor, its object is not over."""
    told: list = []

    class Told(treadle.Tensor):
        def __del__(self) -> None:
            told.append((type(self), getattr(self, "name", None), self.tolist()))

    def make() -> treadle.Tensor:
        t = treadle.ones(2).as_subclass(Told).requires_grad_()
        t.name = "kept"
        return (treadle.Tensor.mul(t, t)).sum()

    loss = make()
    gc.collect()
    loss = loss.as_subclass(treadle.Tensor)
    told.clear()
    node = loss.grad_fn
    while node.name() != "MulBackward0":
        node = node.next_functions[0][0]
    again = node._saved_self
    assert type(again) is Told and again.name == "kept" and told == []
    del again
    again = node._saved_self
    assert type(again) is Told and again.name == "kept" and told == []
    del again, node
    del loss
    gc.collect()
    assert [entry for entry in told if entry[1] == "kept"] == [(Told, "kept", [1.0, 1.0])]


def test_many_tensors_with_attributes_and_a_long_graph() -> None:
    """The collector's walk ends soon, and does not recurse."""
    t = Exp.apply(leaf(), Witness())
    for _ in range(200_000):
        t = t + 1
    t.name = "end"
    gc.collect()
    t.sum().backward()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_collects() -> None:
    """Threads that were at work are not in the child."""
    stop = threading.Event()
    x = treadle.ones(200_000)

    def work() -> None:
        while not stop.is_set():
            x.exp()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    witness = Witness()
                    gone = weakref.ref(witness)
                    cycle_leaf_hook(witness)
                    del witness
                    gc.collect()
                    code = 0 if gone() is None else 2
                finally:
                    os._exit(code)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()

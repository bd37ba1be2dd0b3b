"""__torch_function__: subclasses of Tensor, classes that stand for tensors, and modes; what each is
told of a call, in which order they are asked, and how they are switched off.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
import threading
from typing import Any

import pytest

import treadle
import treadle.nn.functional as F
from treadle import nn, overrides
from treadle.overrides import (
    TorchFunctionMode,
    handle_torch_function,
    has_torch_function,
    is_tensor_like,
    wrap_torch_function,
)


class Plain(treadle.Tensor):
    """A subclass with nothing of its own."""


class Logged(treadle.Tensor):
    """Keeps the calls that it was part of."""

    log: list = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        Logged.log.append((func, args, kwargs, tuple(types)))
        return super().__torch_function__(func, types, args, kwargs)


class Duck:
    """Stands for a tensor without being one."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        return ("duck", func, args, kwargs)


class Refusing:
    @classmethod
    def __torch_function__(cls, *args: Any) -> Any:
        return NotImplemented


def plain(*values: float) -> Plain:
    return treadle.tensor(values, dtype=treadle.float32).as_subclass(Plain)


def calls(function: Any) -> list:
    """The functions that Logged tensors are told of while `function` runs."""
    Logged.log.clear()
    function()
    return [entry[0] for entry in Logged.log]


# ---- subclasses ----


def test_results_are_of_the_class() -> None:
    p = plain(1, 2)
    assert type(p) is Plain and not p.requires_grad
    for result in (
        p + 1, 1 + p, 2 - p, p @ p, p.sum(), p.T, p.data, p[0], -p, ~(p > 0), p == p, p.view(2, 1),
        p.to(treadle.float64), p.double(), p.detach(), p.clone(), p.new_zeros(3), p.max(0).values,
        treadle.add(treadle.ones(2), p), treadle.stack([p, p]), treadle.zeros_like(p), F.relu(p),
        F.softmax(p, 0), treadle.norm(p), p.split(1)[0], next(iter(p)), p.requires_grad_(),
    ):  # fmt: skip
        assert type(result) is Plain
    assert type(p.max(0)) is type(treadle.ones(1).max(0)) and type(p.split(1)) is tuple
    assert type(p.shape) is treadle.Size and p.tolist() == [1, 2] and p.dim() == 1 and len(p) == 2
    assert type(p.as_subclass(treadle.Tensor)) is treadle.Tensor
    assert float(p[0]) == 1.0 and int(p[1]) == 2 and bool(p[0]) and 2 in p
    assert repr(p.detach()) == "Plain([1., 2.])"
    p.data[0] = 7
    assert p[0] == 7


def test_gradients_go_through_subclasses() -> None:
    x = treadle.ones(2, requires_grad=True)
    p = x.as_subclass(Plain)
    assert type(p) is Plain and p.grad_fn.name() == "AliasBackward0"
    y = p * 3
    assert type(y) is Plain and y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [3, 3] and type(x.grad) is treadle.Tensor
    q = plain(1, 2).requires_grad_()
    (q * q).sum().backward()
    assert type(q.grad) is treadle.Tensor, "a gradient is handed out as it is"


def test_making_subclasses() -> None:
    assert type(Plain([1.0, 2.0])) is Plain and Plain(2, 3).shape == (2, 3)
    made = treadle.Tensor._make_subclass(Plain, treadle.ones(2), True)
    assert type(made) is Plain and made.requires_grad and made.is_leaf
    with pytest.raises(RuntimeError, match="subclass of Tensor, got int"):
        treadle.ones(1).as_subclass(int)
    with pytest.raises(TypeError, match="expected a class"):
        treadle.ones(1).as_subclass(3)
    p = plain(1, 2)
    assert type(copy.deepcopy(p)) is Plain and type(pickle.loads(pickle.dumps(p))) is Plain


def test_attributes_that_a_subclass_hands_on() -> None:
    class Tagged(treadle.Tensor):
        @staticmethod
        def __new__(cls: type, data: Any, tag: str) -> Any:
            return super().__new__(cls, data)

        def __init__(self, data: Any, tag: str) -> None:
            self.tag = tag

        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: tuple = (), kwargs: Any = None
        ) -> Any:
            result = super().__torch_function__(func, types, args, kwargs)
            if isinstance(result, Tagged):
                result.tag = next(a.tag for a in args if isinstance(a, Tagged))
            return result

    t = Tagged([1.0, 2.0], "mine")
    assert (t * 2).tag == "mine" and t.sum().tag == "mine" and t[0].tag == "mine"


def test_what_a_class_is_told() -> None:
    x = treadle.ones(2, 3).as_subclass(Logged)
    T = treadle.Tensor
    for function, told in (
        (lambda: x + 1, T.add),
        (lambda: 1 + x, T.add),
        (lambda: x - 1, T.sub),
        (lambda: 1 - x, T.__rsub__),
        (lambda: 2**x, T.__rpow__),
        (lambda: x // 2, T.__floordiv__),
        (lambda: x == 1, T.__eq__),
        (lambda: -x, T.neg),
        (lambda: treadle.add(x, 1), treadle.add),
        (lambda: treadle.add(1, x), treadle.add),
        (lambda: x.add(1), T.add),
        (lambda: x.shape, T.shape.__get__),
        (lambda: x.size(), T.size),
        (lambda: x.dim(), T.dim),
        (lambda: len(x), T.__len__),
        (lambda: x[0], T.__getitem__),
        (lambda: x.__setitem__(0, 1.0), T.__setitem__),
        (lambda: 1 in x, T.__contains__),
        (lambda: repr(x), T.__repr__),
        (lambda: x.tolist(), T.tolist),
        (lambda: x.numpy(), T.numpy),
        (lambda: x.float(), T.float),
        (lambda: x.to(treadle.float64), T.to),
        (lambda: x.type(treadle.float64), T.type),
        (lambda: x.backward, None),
        (lambda: treadle.cat([x, x]), treadle.cat),
        (lambda: F.linear(x, x), F.linear),
        (lambda: F.relu(x), F.relu),
        (lambda: F.mse_loss(x, x), F.mse_loss),
        (lambda: treadle.norm(x), treadle.norm),
        (lambda: treadle.unique(x), treadle.unique),
        (lambda: treadle.einsum("ij->i", x), treadle.einsum),
        (lambda: treadle.meshgrid(x[0], x[0], indexing="ij"), treadle.meshgrid),
        (lambda: nn.Linear(3, 2)(x), F.linear),
        (lambda: setattr(x, "grad", None), T.grad.__set__),
        (lambda: delattr(x, "grad"), T.grad.__delete__),
        (lambda: x.is_contiguous(), T.is_contiguous),
        (lambda: hash(x), None),
        (lambda: treadle.is_tensor(x), None),
    ):
        seen = calls(function)
        assert (seen[-1] if seen else None) == told
    calls(lambda: x.sum(dim=0))
    assert Logged.log[0][1:] == ((x,), {"dim": 0}, (Logged,))
    calls(lambda: x.mul(2))
    assert Logged.log[0][2] is None


def test_order_of_classes() -> None:
    def named(name: str, *bases: type) -> Any:
        def override(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return name, [t.__name__ for t in types]

        space = {"__torch_function__": classmethod(override)}
        return treadle.ones(1).as_subclass(type(name, bases or (treadle.Tensor,), space))

    a = named("A")
    b = named("B", type(a))
    c = named("C")
    assert treadle.add(a, b) == treadle.add(b, a) == ("B", ["B", "A"]) == a + b == b + a
    assert treadle.add(a, c) == ("A", ["A", "C"]) and treadle.add(c, a)[0] == "C"
    assert treadle.cat([a, b]) == ("B", ["B", "A"])
    assert treadle.add(a, nn.Parameter(treadle.ones(1))) == ("A", ["A"])
    with pytest.raises(TypeError, match="NotImplemented from all of them: Plain, Logged"):
        treadle.add(plain(1), treadle.ones(1).as_subclass(Logged))


def test_errors_of_calls_are_those_without() -> None:
    p = plain(1, 2)
    with pytest.raises(RuntimeError, match="add"):
        p + treadle.ones(3)
    with pytest.raises(TypeError, match=r"sum\(\): expected"):
        p.sum("a", "b")
    with pytest.raises(IndexError):
        p[5]
    with pytest.raises(AttributeError):
        p.nothing


# ---- objects that stand for tensors ----


def test_objects_that_stand_for_tensors() -> None:
    d, one, T = Duck(), treadle.ones(1), treadle.Tensor
    assert treadle.add(d, 1) == ("duck", treadle.add, (d, 1), None)
    assert treadle.mean(d, dim=0) == ("duck", treadle.mean, (d,), {"dim": 0})
    assert treadle.add(one, d)[:2] == ("duck", treadle.add)
    assert treadle.cat([d, one])[1] is treadle.cat and treadle.stack((d,))[1] is treadle.stack
    assert F.relu(d)[1] is F.relu and F.softmax(d, dim=0)[3] == {"dim": 0}
    assert (one + d)[1] is T.add and (d + one)[1] is T.add and (one - d)[1] is T.sub
    assert (d - one)[1] == T.__rsub__ and (d - one)[2] == (one, d)
    assert (one == d)[1] == T.__eq__ and one.add(d)[1] is T.add
    with pytest.raises(TypeError, match="NotImplemented from all of them: Refusing"):
        treadle.add(Refusing(), 1)
    with pytest.raises(TypeError):
        one + object()
    assert is_tensor_like(one) and is_tensor_like(d) and not is_tensor_like(1)


def test_functions_of_the_user() -> None:
    def user(a: Any, b: int = 1) -> Any:
        if has_torch_function((a,)):
            return handle_torch_function(user, (a,), a, b=b)
        return "itself"

    @wrap_torch_function(lambda a, b=1: (a,))
    def wrapped(a: Any, b: int = 1) -> Any:
        return "itself"

    d = Duck()
    assert user(treadle.ones(1)) == "itself" == wrapped(treadle.ones(1))
    assert user(d) == ("duck", user, (d,), {"b": 1})
    assert wrapped(d, 2) == ("duck", wrapped, (d, 2), {})
    with pytest.raises(TypeError, match="no implementation found for .*user"):
        user(Refusing())
    one, p = treadle.ones(1), plain(1)
    assert not has_torch_function((one, 1, None)) and has_torch_function([one, d])
    assert overrides.has_torch_function_unary(p) and not overrides.has_torch_function_unary(one)
    assert overrides.has_torch_function_variadic(one, p)
    assert not has_torch_function((nn.Parameter(one), nn.Buffer(one)))
    assert overrides._get_overloaded_args((one, p, d, plain(2))) == [p, d]


# ---- modes ----


class Mode(TorchFunctionMode):
    def __init__(self, name: str, log: list) -> None:
        self.name, self.log = name, log

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: Any = None
    ) -> Any:
        self.log.append((self.name, func))
        return func(*args, **(kwargs or {}))


def test_modes_are_given_every_call() -> None:
    log: list = []
    with Mode("m", log):
        x = treadle.zeros(2) + 1
        x.shape
        treadle.tensor(1.0)
        F.relu(x)
        x[0] = 2
        -x
    T = treadle.Tensor
    assert [func for _, func in log] == [
        treadle.zeros, T.add, T.shape.__get__, treadle.tensor, F.relu, T.__setitem__, T.neg,
    ]  # fmt: skip
    log.clear()
    treadle.zeros(2)
    assert log == []


def test_modes_nest() -> None:
    log: list = []
    outer, inner = Mode("outer", log), Mode("inner", log)
    with outer:
        with inner:
            assert overrides._get_current_function_mode() is inner
            assert overrides._get_current_function_mode_stack() == [outer, inner]
            treadle.zeros(1)
        assert overrides._len_torch_function_stack() == 1
    assert [name for name, _ in log] == ["inner", "outer"]
    assert overrides._get_current_function_mode() is None
    with pytest.raises(RuntimeError, match="got none"):
        treadle._C._pop_torch_function_mode()


def test_modes_come_before_classes_and_go_with_exceptions() -> None:
    log: list = []
    x = treadle.ones(1).as_subclass(Logged)
    with Mode("m", log):
        assert calls(lambda: treadle.add(x, 1)) == [treadle.add]
    assert log == [("m", treadle.add)]

    class Broken(TorchFunctionMode):
        def __torch_function__(self, *args: Any, **kwargs: Any) -> Any:
            raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        with Broken():
            treadle.zeros(1)
    assert treadle.zeros(1).tolist() == [0]
    with pytest.raises(NotImplementedError, match="__torch_function__"):
        with TorchFunctionMode():
            treadle.zeros(1)
    with overrides.BaseTorchFunctionMode():
        assert treadle.zeros(1).tolist() == [0]

    class Declining(TorchFunctionMode):
        def __torch_function__(self, *args: Any, **kwargs: Any) -> Any:
            return NotImplemented

    with Declining():
        assert treadle.add(Duck(), 1)[0] == "duck", "then classes are asked"
        with pytest.raises(TypeError, match="the mode .*Declining"):
            treadle.zeros(1)


def test_modes_are_of_a_thread() -> None:
    log: list = []
    with Mode("m", log):
        thread = threading.Thread(target=lambda: treadle.zeros(1))
        thread.start()
        thread.join()
    assert log == []


# ---- switching off ----


def test_switching_overrides_off() -> None:
    log: list = []
    x, p = treadle.ones(1).as_subclass(Logged), plain(1)
    with treadle._C.DisableTorchFunctionSubclass():
        assert type(p + 1) is treadle.Tensor and not has_torch_function((p,))
        assert calls(lambda: x + 1) == [] and calls(lambda: F.relu(x)) == []
        with Mode("m", log):
            treadle.add(x, 1)
    assert log == [("m", treadle.add)] and type(p + 1) is Plain
    log.clear()
    with Mode("m", log):
        with treadle._C.DisableTorchFunction():
            assert calls(lambda: treadle.add(x, 1)) == []
            with treadle._C.DisableTorchFunctionSubclass():
                treadle.add(x, 1)
        assert log == []
        treadle.zeros(1)
    assert log == [("m", treadle.zeros)]


def test_a_class_may_want_none() -> None:
    class Without(treadle.Tensor):
        __torch_function__ = treadle._C._disabled_torch_function_impl

    w = treadle.ones(2).as_subclass(Without)
    assert type(w + 1) is treadle.Tensor and not has_torch_function((w,))
    called = Without.__torch_function__(treadle.add, (Without,), (w, 1))
    assert type(called) is treadle.Tensor and called.tolist() == [2, 2]
    assert nn.Parameter.__torch_function__ is treadle._C._disabled_torch_function_impl
    assert type(nn.Parameter(treadle.ones(1)) + 1) is treadle.Tensor


def test_a_class_that_is_changed_later() -> None:
    class Late(treadle.Tensor):
        pass

    x = treadle.ones(1).as_subclass(Late)
    assert type(x + 1) is Late
    Late.__torch_function__ = treadle._C._disabled_torch_function_impl
    assert type(x + 1) is treadle.Tensor
    Late.__torch_function__ = classmethod(lambda cls, *args: "late")
    assert x + 1 == "late"


def test_the_default_itself() -> None:
    p, default = plain(1, 2), treadle.Tensor.__torch_function__
    assert type(default(treadle.add, (), (p, 1))) is treadle.Tensor
    assert default(treadle.add, (Plain,), (p, 1)) is NotImplemented
    assert type(Plain.__torch_function__(treadle.add, (Plain,), (treadle.ones(1), 1))) is Plain
    assert Plain.__torch_function__(treadle.add, (Logged,), (p, 1)) is NotImplemented
    nested = Plain.__torch_function__(lambda: [(treadle.ones(1), 3)], ())
    assert type(nested[0][0]) is Plain and nested[0][1] == 3
    with pytest.raises(TypeError, match="__torch_function__"):
        default(treadle.add)


# ---- parameters ----


def test_parameters_of_a_subclass() -> None:
    parameter = nn.Parameter(plain(1, 2))
    assert type(parameter) is Plain and isinstance(parameter, nn.Parameter)
    assert parameter.requires_grad and not isinstance(plain(1), nn.Parameter)
    layer = nn.Linear(2, 2)
    layer.weight = nn.Parameter(treadle.ones(2, 2).as_subclass(Plain))
    assert [type(p).__name__ for p in layer.parameters()] == ["Plain", "Parameter"]
    assert type(layer(treadle.ones(2))) is Plain
    layer(treadle.ones(2)).sum().backward()
    assert layer.weight.grad.tolist() == [[1, 1], [1, 1]]


# ---- what can be overridden ----


def test_the_functions_that_can_be_overridden() -> None:
    functions = overrides.get_overridable_functions()
    assert treadle.add in functions[treadle] and F.relu in functions[F]
    assert treadle.Tensor.add in functions[treadle.Tensor]
    assert functions[treadle.Tensor.shape] == [treadle.Tensor.shape.__get__]
    assert treadle.is_tensor in overrides.get_ignored_functions()
    assert treadle.is_tensor not in functions[treadle]
    assert overrides.is_tensor_method_or_property(treadle.Tensor.add)
    assert overrides.is_tensor_method_or_property(treadle.Tensor.shape.__get__)
    assert not overrides.is_tensor_method_or_property(treadle.add)
    assert overrides.resolve_name(treadle.add) == "treadle.add"
    assert overrides.resolve_name(treadle.Tensor.add) == "treadle.Tensor.add"
    assert overrides.resolve_name(F.relu) == "treadle.nn.functional.relu"
    assert overrides.resolve_name(print) is None
    assert treadle.Tensor.grad.__get__ in overrides.get_default_nowrap_functions()


def test_every_operator_can_be_overridden() -> None:
    """Each function of the namespaces that takes a tensor first is told of itself."""
    d = Duck()
    missed = []
    for place in (treadle, F, treadle.linalg, treadle.fft, treadle.special):
        for function in overrides.get_overridable_functions()[place]:
            try:
                told = function(d)
            except (TypeError, AttributeError):
                continue  # it needs more, or other, arguments, or is about other things
            if not (isinstance(told, tuple) and told and told[0] == "duck"):
                continue
            if told[1] is not function:
                missed.append(overrides.resolve_name(function))
    assert missed == []


def test_overridable_functions_are_functions_otherwise() -> None:
    relu = F.relu
    assert relu.__name__ == "relu" and relu.__module__.startswith("treadle.nn.functional")
    assert list(inspect.signature(relu).parameters) == ["input", "inplace"]
    assert pickle.loads(pickle.dumps(relu)) is relu and copy.deepcopy(relu) is relu
    assert repr(relu).startswith("<function relu at") and relu.__doc__

    class Holder:
        function = relu

        def __neg__(self) -> str:
            return "negated"

    with pytest.raises(TypeError, match="relu"):
        Holder().function()  # the holder is its first argument, as with any function
    with pytest.raises(TypeError, match="expected a function, got int"):
        treadle._C._overridable(3)
    relu.note = 1
    assert relu.note == 1
    del relu.note
    with pytest.raises(AttributeError):
        relu.note


def test_at_the_end_of_the_process() -> None:
    """Classes, modes and tensors that are alive when the interpreter ends do no harm."""
    code = (
        "import treadle\n"
        "from treadle.overrides import BaseTorchFunctionMode\n"
        "class S(treadle.Tensor): pass\n"
        "s = treadle.ones(2).as_subclass(S)\n"
        "m = BaseTorchFunctionMode(); m.__enter__()\n"
        "print((s + 1).tolist())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "[2.0, 2.0]\n" and done.stderr == ""

"""Classes of tensors with __torch_dispatch__: which calls they are given, how they stand for other
tensors without memory of their own, and what of that is refused.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import gc
import io
import pickle
import re
import weakref
from typing import Any, List

import pytest

import treadle
import treadle.nn.functional as F
from treadle import nn
from treadle.utils import _python_dispatch as modes
from treadle.utils._mode_utils import no_dispatch
from treadle.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from treadle.utils._pytree import tree_map_only

aten = treadle.ops.aten
make_wrapper = treadle.Tensor._make_wrapper_subclass


class Standing(treadle.Tensor):
    """Stands for a tensor, which does the work."""

    log: List[str] = []
    inner: treadle.Tensor

    @staticmethod
    def __new__(cls, inner: treadle.Tensor, requires_grad: bool = False) -> Any:
        made = make_wrapper(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=inner.device,
            requires_grad=requires_grad,
        )
        made.inner = inner
        return made

    def __init__(self, inner: treadle.Tensor, requires_grad: bool = False) -> None:
        pass

    def __tensor_flatten__(self) -> Any:
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner: Any, meta: Any, size: Any, stride: Any) -> Any:
        return Standing(inner["inner"])

    def __repr__(self) -> str:
        return f"Standing({self.inner!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.log.append(str(func))
        plain, named = tree_map_only(Standing, lambda t: t.inner, (args, kwargs or {}))
        out = tree_map_only(treadle.Tensor, Standing, func(*plain, **named))
        return return_and_correct_aliasing(func, args, kwargs, out)


@pytest.fixture(autouse=True)
def _fresh() -> None:
    Standing.log.clear()


class Scaled(treadle.Tensor):
    """A class with memory, whose operators are those of tensors."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_dispatch__(func, types, args, kwargs)


class Refusing(treadle.Tensor):
    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return NotImplemented


# ---- what is called ----


def test_operators_go_to_the_class() -> None:
    w = Standing(treadle.ones(2, 3))
    y = treadle.exp(w) * 2 + treadle.ones(3)
    assert type(y) is Standing
    assert Standing.log == ["aten.exp.default", "aten.mul.Tensor", "aten.add.Tensor"]
    treadle.testing.assert_close(y.inner, treadle.ones(2, 3).exp() * 2 + 1)
    z = treadle.cat([treadle.zeros(1, 3), w])
    assert type(z) is Standing and z.inner.tolist() == [[0.0] * 3, [1.0] * 3, [1.0] * 3]
    assert w.sum().item() == 6 and bool((w > 0).all())
    assert [type(t) for t in w.unbind()] == [Standing, Standing]


def test_a_function_is_seen_by_its_operators() -> None:
    w = Standing(treadle.ones(2, 3))
    assert type(F.linear(treadle.ones(1, 3), w)) is Standing
    assert Standing.log == ["aten.t.default", "aten.mm.default"]


def test_functions_are_not_asked_of_the_class() -> None:
    """A class that takes over operators says of which class results are."""
    assert Standing.__torch_function__ is treadle._C._disabled_torch_function_impl
    assert type(treadle.exp(treadle.ones(2).as_subclass(Scaled))) is treadle.Tensor

    class Both(Scaled):
        @classmethod
        def __torch_function__(cls, *args: Any) -> Any:
            return "function"

    assert treadle.exp(treadle.ones(2).as_subclass(Both)) == "function"


def test_tensor_has_the_handler_that_takes_nothing_over() -> None:
    disabled = treadle._C._disabled_torch_dispatch_impl
    assert treadle.Tensor.__torch_dispatch__ is disabled
    assert nn.Parameter.__torch_dispatch__ is disabled

    class Plain(treadle.Tensor):
        __torch_dispatch__ = disabled

    x = treadle.ones(2).as_subclass(Plain)
    assert "dispatch" not in treadle._C._active_layers("aten::mul.Tensor", x)
    assert disabled(aten.add.Tensor, (), (treadle.ones(1), 2), {"alpha": 3}).tolist() == [7]


def test_the_class_is_found_when_the_tensor_is_made() -> None:
    x = treadle.ones(2).as_subclass(Scaled)
    assert "dispatch" in treadle._C._active_layers("aten::mul.Tensor", x)
    y = treadle.Tensor._make_subclass(Scaled, treadle.ones(2))
    assert treadle._C._active_layers("aten::mul.Tensor", y) == ["dispatch"]
    assert (y * 2).tolist() == [2, 2]


class Base(treadle.Tensor):
    log: List[Any] = []

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Base.log.append((cls, types))
        return NotImplemented


class Derived(Base):
    pass


def test_subclasses_are_asked_before_their_bases() -> None:
    a, b = treadle.ones(2).as_subclass(Base), treadle.ones(2).as_subclass(Derived)
    with pytest.raises(TypeError) as caught:
        treadle.add(a, b)
    assert Base.log == [(Derived, (Derived, Base)), (Base, (Derived, Base))]
    assert str(caught.value) == (
        "add: expected one of the modes and classes that implement __torch_dispatch__ to handle "
        "it, got NotImplemented from all of them: Derived, Base"
    )


def test_modes_are_asked_before_classes() -> None:
    order: List[str] = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            order.append(f"mode {[t.__name__ for t in types]}")
            return func(*args, **(kwargs or {}))

    class Leaving(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if not types:
                return func(*args, **(kwargs or {}))
            order.append("left")
            return NotImplemented

    w = Standing(treadle.ones(2))
    with Mode():
        y = w * 2
    assert order == ["mode ['Standing']"] and Standing.log == ["aten.mul.Tensor"]
    assert y.inner.tolist() == [2, 2]
    with Leaving():
        assert type(w + 1) is Standing
    assert order[1:] == ["left"]


def test_a_class_without_end() -> None:
    class Endless(treadle.Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*args, **(kwargs or {}))

    with pytest.raises(RecursionError):
        treadle.exp(treadle.ones(2).as_subclass(Endless))


# ---- gradients ----


def test_gradients_are_of_the_class() -> None:
    x = treadle.randn(3)
    leaf = x.clone().requires_grad_()
    (leaf.exp() * leaf).sum().backward()
    w = Standing(x, requires_grad=True)
    for times in (1, 2):
        y = (w.exp() * w).sum()
        assert type(y) is Standing and y.requires_grad and not w.inner.requires_grad
        y.backward()
        assert type(w.grad) is Standing
        treadle.testing.assert_close(w.grad.inner, leaf.grad * times)


def test_second_gradients() -> None:
    x = treadle.randn(3, dtype=treadle.float64)
    leaf, w = x.clone().requires_grad_(), Standing(x, requires_grad=True)
    found = []
    for t in (leaf, w):
        (first,) = treadle.autograd.grad((t.exp() * t).sum(), t, create_graph=True)
        found.append(treadle.autograd.grad((first * first).sum(), t)[0])
    treadle.testing.assert_close(found[1].inner, found[0])


def test_a_module_with_such_a_weight() -> None:
    treadle.manual_seed(0)
    layer = nn.Linear(3, 2)
    plain = copy.deepcopy(layer)
    layer.weight = nn.Parameter(Standing(layer.weight.detach().clone()))
    assert type(layer.weight) is Standing and isinstance(layer.weight, nn.Parameter)
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]
    x = treadle.randn(4, 3)
    for module in (plain, layer):
        module(x).square().sum().backward()
    treadle.testing.assert_close(layer.weight.grad.inner, plain.weight.grad)
    treadle.testing.assert_close(layer.bias.grad.inner, plain.bias.grad)
    assert type(layer.state_dict()["weight"]) is Standing
    with treadle.no_grad():
        for p, q in zip(layer.parameters(), plain.parameters()):
            p.sub_(p.grad, alpha=0.1)
            q.sub_(q.grad, alpha=0.1)
    treadle.testing.assert_close(layer.weight.inner, plain.weight.detach())


@pytest.mark.parametrize("make", [
    lambda p: treadle.optim.SGD(p, lr=0.1, momentum=0.9),
    lambda p: treadle.optim.Adam(p, lr=0.1),
    lambda p: treadle.optim.AdamW(p, lr=0.1),
])  # fmt: skip
def test_optimisers(make: Any) -> None:
    start = treadle.arange(3.0)
    plain, standing = nn.Parameter(start.clone()), nn.Parameter(Standing(start.clone()))
    for p in (plain, standing):
        optimiser = make([p])
        for _ in range(3):
            optimiser.zero_grad()
            (p * p).sum().backward()
            optimiser.step()
    treadle.testing.assert_close(standing.inner, plain.detach())


def test_buffers() -> None:
    module = nn.Module()
    module.state = nn.Buffer(Standing(treadle.ones(2)))
    assert type(module.state) is Standing and isinstance(module.state, nn.Buffer)
    assert [name for name, _ in module.named_buffers()] == ["state"]
    assert not isinstance(module.state, nn.Parameter)


def test_a_class_whose_detach_is_of_another() -> None:
    class Losing(treadle.Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return treadle.ones(2)

    x = make_wrapper(Losing, (2,))
    with pytest.raises(RuntimeError) as caught:
        nn.Parameter(x)
    assert str(caught.value) == (
        "Parameter: expected detach() of a Losing to return one, got Tensor"
    )
    with pytest.raises(RuntimeError) as made:
        treadle.Tensor._make_subclass(Losing, Standing(treadle.ones(2)))
    assert str(made.value) == (
        "_make_subclass: expected data that can be a Losing, got one whose class answers for it "
        "with a Standing"
    )


def test_a_class_that_returns_what_it_was_given() -> None:
    class Same(treadle.Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return args[0]

    x = make_wrapper(Same, (2,), requires_grad=True)
    with pytest.raises(RuntimeError) as caught:
        x * 2
    assert str(caught.value) == (
        "detach: expected __torch_dispatch__ of Same to return a new tensor, got one that it was "
        "given, or that has a history, and whose detach() is not another one"
    )
    with treadle.no_grad():
        assert (x * 2) is x


# ---- writing and views ----


def test_writes_are_counted_on_both() -> None:
    w = Standing(treadle.ones(2, 2))
    assert w.add_(1) is w and w.inner.tolist() == [[2, 2], [2, 2]] and w._version == 1
    w[0] = 5
    assert w.inner.tolist() == [[5, 5], [2, 2]] and w._version == 2


def test_views_share_the_storage_of_what_they_are_views_of() -> None:
    w = Standing(treadle.ones(2, 2))
    view = w.view(4)
    assert type(view) is Standing and view._base is w
    assert view.untyped_storage() == w.untyped_storage()
    view.add_(1)
    assert w._version == view._version == 1 and w.inner.tolist() == [[2, 2], [2, 2]]


def test_a_changed_tensor_that_backward_needs() -> None:
    w = Standing(treadle.ones(2), requires_grad=True)
    x = Standing(treadle.ones(2))
    y = (w * x).sum()
    x.add_(1)
    with pytest.raises(RuntimeError, match="at version 0, got version 1"):
        y.backward()


def test_operators_that_change_the_geometry() -> None:
    w = Standing(treadle.ones(2, 3))
    assert w.t_() is w and w.shape == (3, 2) and w.inner.shape == (3, 2)


def test_out_is_what_it_was() -> None:
    out = treadle.zeros(2)
    assert treadle.add(Standing(treadle.ones(2)), 1, out=out) is out and out.tolist() == [2, 2]
    values, indices = treadle.zeros(()), treadle.zeros((), dtype=treadle.int64)
    treadle.max(Standing(treadle.ones(2)), 0, out=(values, indices))
    assert values.item() == 1


def test_a_view_of_another_class() -> None:
    class Mixed(treadle.Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return return_and_correct_aliasing(func, args, kwargs, treadle.ones(4))

    with pytest.raises(RuntimeError) as caught:
        make_wrapper(Mixed, (2, 2)).view(4)
    assert str(caught.value) == (
        "return_and_correct_aliasing: expected aten.view.default of a Mixed to return a view of "
        "the same class, got Tensor"
    )


def test_tools_of_wrappers() -> None:
    w = Standing(treadle.ones(2))
    assert modes.is_traceable_wrapper_subclass(w)
    assert not modes.is_traceable_wrapper_subclass(treadle.ones(2))
    doubled = modes.transform_subclass(w, lambda name, t: t * 2)
    assert doubled.inner.tolist() == [2, 2]


# ---- the tensor without memory ----


def test_geometry() -> None:
    w = make_wrapper(Standing, (2, 3))
    assert (w.shape, w.stride(), w.storage_offset()) == ((2, 3), (3, 1), 0)
    assert (w.dtype, w.device.type, w.layout) == (treadle.float32, "cpu", treadle.strided)
    assert not w.requires_grad and w.is_leaf and w.is_contiguous() and w.numel() == 6
    w = make_wrapper(
        Standing, (2, 3), strides=(1, 2), storage_offset=4, dtype=treadle.float64,
        requires_grad=True,
    )  # fmt: skip
    assert (w.stride(), w.storage_offset(), w.dtype) == ((1, 2), 4, treadle.float64)
    assert w.requires_grad and w.untyped_storage().nbytes() == (4 + 6) * 8
    assert make_wrapper(Standing, (2,), storage_size=100).untyped_storage().nbytes() == 100
    image = make_wrapper(Standing, (1, 2, 3, 4), memory_format=treadle.channels_last)
    assert image.stride() == (24, 1, 8, 2)
    assert make_wrapper(Standing, (2,), device="meta").is_meta
    assert make_wrapper(Standing, ()).numel() == 1
    assert make_wrapper(Standing, (0, 3)).untyped_storage().nbytes() == 0


NO_MEMORY = "of sizes = (2,) that stands for others and has none: its class answers operators by"


def test_its_memory_is_not_there() -> None:
    w = make_wrapper(Standing, (2,))
    storage = w.untyped_storage()
    assert w.data_ptr() == 0
    for access in (w.numpy, w.tolist, lambda: treadle.Tensor.__dlpack__(w)):
        with pytest.raises(RuntimeError, match="expected a tensor with elements in memory, got"):
            access()
    with no_dispatch():
        for call in (lambda: w + 1, lambda: w.clone(), lambda: treadle.ones(2).copy_(w),
                     lambda: w.fill_(1), lambda: w.sum().item()):  # fmt: skip
            with pytest.raises(RuntimeError, match=re.escape(NO_MEMORY)):
                call()
        assert w.view(1, 2).shape == (1, 2)
    for access in (storage.data_ptr, lambda: memoryview(storage), lambda: storage.tolist(),
                   lambda: storage.clone()):  # fmt: skip
        with pytest.raises(RuntimeError, match="memory"):
            access()
    with pytest.raises(RuntimeError, match="got one without memory, of a tensor that stands for"):
        storage.resize_(100)
    with pytest.raises(RuntimeError, match="to share, got a storage without memory"):
        storage.share_memory_()


REFUSED = {
    "layout": (
        {"layout": "sparse_coo"},
        NotImplementedError,
        "expected layout = strided, as sparse tensors are no tensors of one memory, got "
        "treadle.sparse_coo",
    ),
    "pin_memory": (
        {"pin_memory": True},
        RuntimeError,
        "expected pin_memory = False, as there is no memory, got True",
    ),
    "policy": (
        {"dispatch_sizes_strides_policy": "sizes"},
        NotImplementedError,
        "expected dispatch_sizes_strides_policy = None, as sizes and strides are those that are "
        "given here, got sizes",
    ),
    "device": (
        {"dispatch_device": True},
        NotImplementedError,
        "expected dispatch_device = False, as device and layout are those that are given here, "
        "got True",
    ),
    "dispatch_layout": (
        {"dispatch_layout": True},
        NotImplementedError,
        "expected dispatch_layout = False, as device and layout are those that are given here, "
        "got True",
    ),
    "keys": (
        {"_extra_dispatch_keys": "keys"},
        NotImplementedError,
        "expected _extra_dispatch_keys = None, as layers of a tensor follow from what it is, got "
        "str",
    ),
    "strides": (
        {"strides": (1,)},
        RuntimeError,
        "expected as many strides as sizes, got size = (2, 3) and strides = (1,)",
    ),
    "negative": (
        {"strides": (-1, 1)},
        RuntimeError,
        "expected strides >= 0, got strides = (-1, 1)",
    ),
    "both": (
        {"strides": (3, 1), "memory_format": "contiguous_format"},
        ValueError,
        "expected strides or memory_format, got both",
    ),
    "offset": (
        {"storage_offset": -1},
        RuntimeError,
        "expected storage_offset >= 0, got -1",
    ),
    "size": (
        {"storage_size": -1},
        RuntimeError,
        "expected storage_size >= 0, got -1",
    ),
    "bytes": (
        {"strides": (2**62, 1)},
        RuntimeError,
        "expected a geometry whose bytes can be counted in 63 bits, got size = (2, 3), strides = "
        "(4611686018427387904, 1), storage_offset = 0",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_arguments_that_are_refused(case: str) -> None:
    options, kind, message = REFUSED[case]
    words = ("layout", "memory_format")
    given = {k: getattr(treadle, v) if k in words else v for k, v in options.items()}
    with pytest.raises(kind) as caught:
        make_wrapper(Standing, (2, 3), **given)
    assert str(caught.value) == f"_make_wrapper_subclass: {message}"


def test_classes_that_are_refused() -> None:
    class Plain(treadle.Tensor):
        pass

    answers = "expected a class with __torch_dispatch__, which answers for its tensors"
    for cls, message in (
        (Plain, f"{answers}, got Plain"),
        (int, "expected cls to be a subclass of Tensor, got int"),
        (3, "expected cls to be a subclass of Tensor, got int"),
    ):
        with pytest.raises(TypeError) as caught:
            make_wrapper(cls, (2,))
        assert str(caught.value) == f"_make_wrapper_subclass: {message}"
    with pytest.raises(RuntimeError, match="only Tensors of floating point and complex dtype"):
        make_wrapper(Standing, (2,), dtype=treadle.int64, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"expected sizes >= 0, got sizes = \(-2,\)"):
        make_wrapper(Standing, (-2,))


# ---- copies, files, life ----


def test_copies() -> None:
    w = Standing(treadle.arange(3.0), requires_grad=True)
    for made in (copy.deepcopy(w), pickle.loads(pickle.dumps(w)), w.detach().clone()):
        assert type(made) is Standing and made.inner.tolist() == [0, 1, 2]
        assert made.inner is not w.inner
    assert copy.deepcopy(w).requires_grad
    file = io.BytesIO()
    treadle.save({"w": w}, file)
    file.seek(0)
    with treadle.serialization.safe_globals([Standing]):
        loaded = treadle.load(file)["w"]
    assert type(loaded) is Standing and loaded.inner.tolist() == [0, 1, 2]
    assert loaded.requires_grad and loaded.shape == (3,)


def test_data_and_detach_are_of_the_class() -> None:
    w = Standing(treadle.ones(2), requires_grad=True)
    for other in (w.data, w.detach()):
        assert type(other) is Standing and not other.requires_grad
    plain = treadle.zeros(2)
    plain.data = w.detach()
    with pytest.raises(RuntimeError, match="expected a tensor with elements in memory"):
        plain.tolist()


def test_what_it_looks_like_without_a_repr() -> None:
    text = treadle.Tensor.__repr__(make_wrapper(Standing, (2, 3), requires_grad=True))
    assert text == "Standing(..., size=(2, 3), requires_grad=True)"


def test_objects_go_when_nobody_needs_them() -> None:
    w = Standing(treadle.ones(2), requires_grad=True)
    inner, outer = weakref.ref(w.inner), weakref.ref(w)
    y = (w.exp() * w).sum()
    y.backward()
    del w, y
    gc.collect()
    assert outer() is None and inner() is None


def test_a_tensor_keeps_its_object() -> None:
    """While the graph holds the tensor, what it stands for is held as well."""
    w = Standing(treadle.full((2,), 3.0), requires_grad=True)
    x = Standing(treadle.full((2,), 5.0))
    y = (w * x).sum()
    del x
    gc.collect()
    y.backward()
    assert w.grad.inner.tolist() == [5, 5]


def test_instances_and_static_handlers() -> None:
    class OfInstances(treadle.Tensor):
        def __torch_dispatch__(  # type: ignore[override]
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return treadle.zeros(1)

    assert (treadle.ones(2).as_subclass(OfInstances) + 1).tolist() == [0]

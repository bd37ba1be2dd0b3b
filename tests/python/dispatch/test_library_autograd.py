"""Derivatives of operators that a program defines, and opcheck."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import gc
import warnings
import weakref
from typing import Any, Iterator, List, Sequence, Tuple

import pytest

import treadle
from treadle import Tensor
from treadle.library import Library, OpCheckError, custom_op, opcheck


@pytest.fixture
def lib() -> Iterator[Library]:
    """A library whose operators are gone after the test."""
    with treadle.library._scoped_library("tla", "FRAGMENT") as library:
        yield library


def message(kind: type, function: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(kind) as caught:
        function(*args, **kwargs)
    assert type(caught.value) is kind
    return str(caught.value)


def leaf(*values: float) -> Tensor:
    return treadle.tensor([float(v) for v in values], requires_grad=True)


@custom_op("tla_c::scale", mutates_args=())
def scale(x: Tensor, by: float = 2.0) -> Tensor:
    return treadle.from_numpy(x.detach().numpy() * by)


def keep_factor(ctx: Any, inputs: Tuple[Any, ...], output: Tensor) -> None:
    ctx.by = inputs[1]


def scaled(ctx: Any, grad: Tensor) -> Any:
    return grad * ctx.by, None


scale.register_autograd(scaled, setup_context=keep_factor)


def test_forward_and_backward() -> None:
    x = leaf(1, 2)
    y = scale(x, 3.0)
    assert y.grad_fn.name() == "GeneratedBackwardFor_tla_c_scale_defaultBackward"
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]
    (grad,) = treadle.autograd.grad(scale(x).sum(), x)  # the default is among the inputs
    assert grad.tolist() == [2, 2]
    assert not scale(treadle.ones(2)).requires_grad
    with treadle.no_grad():
        assert not scale(x).requires_grad
    double = treadle.ones(2, dtype=treadle.float64, requires_grad=True)
    assert treadle.autograd.gradcheck(scale, (double, 1.5))


def test_saved_tensors_and_second_derivatives() -> None:
    @custom_op("tla_c::square", mutates_args=())
    def square(x: Tensor) -> Tensor:
        return treadle.from_numpy(x.detach().numpy() ** 2)

    square.register_autograd(
        lambda ctx, grad: grad * 2 * ctx.saved_tensors[0],
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )
    x = leaf(3)
    (first,) = treadle.autograd.grad(square(x).sum(), x, create_graph=True)
    assert first.item() == 6
    assert treadle.autograd.grad(first.sum(), x)[0].item() == 2
    y = square(x)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="a second time"):
        y.sum().backward()


def test_what_ctx_has() -> None:
    seen: dict = {}

    @custom_op("tla_c::pair", mutates_args=())
    def pair(x: Tensor, n: int, y: Tensor, *, k: str = "a") -> Tuple[Tensor, int, Tensor]:
        seen["grad mode"] = treadle.is_grad_enabled()
        return x * n, n, y + 1

    def setup(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
        ctx.set_materialize_grads(False)
        seen.update(inputs=inputs, keywords=keyword_only_inputs, output=output)

    def backward(ctx: Any, *grads: Any) -> Any:
        seen.update(grads=grads, needs=ctx.needs_input_grad)
        return grads[0], None, None

    pair.register_autograd(backward, setup_context=setup)
    x, y = leaf(1), treadle.ones(1)
    a, n, b = pair(x, 2, y)
    assert n == 2 and a.requires_grad and b.requires_grad
    assert seen["grad mode"] is False
    assert seen["inputs"][0] is x and seen["inputs"][1:] == (2, y)
    assert seen["keywords"] == {"k": "a"} and seen["output"][1] == 2
    a.sum().backward()
    assert seen["needs"] == (True, False, False)
    assert seen["grads"][0].item() == 1 and seen["grads"][1:] == (None, None)


def test_lists_of_tensors() -> None:
    needs: list = []

    @custom_op("tla_c::scale_all", mutates_args=())
    def scale_all(xs: Sequence[Tensor], by: float) -> List[Tensor]:
        return [x * by for x in xs]

    def backward(ctx: Any, grads: List[Tensor]) -> Any:
        needs[:] = ctx.needs_input_grad
        assert isinstance(grads, list)
        return [g * ctx.by for g in grads], None

    scale_all.register_autograd(backward, setup_context=keep_factor)
    x, y = leaf(1), treadle.ones(1)
    results = scale_all([x, y], 3.0)
    assert isinstance(results, list) and all(r.requires_grad for r in results)
    results[0].sum().backward()
    assert x.grad.item() == 3 and needs == [[True, False], False]
    assert scale_all((y,), 2.0)[0].item() == 2


def test_gradients_that_never_came_are_zeros() -> None:
    @custom_op("tla_c::two", mutates_args=())
    def two(x: Tensor) -> Tuple[Tensor, Tensor]:
        return x * 2, x * 3

    two.register_autograd(lambda ctx, a, b: a * 2 + b * 3)
    x = leaf(1)
    two(x)[1].sum().backward()
    assert x.grad.item() == 3


def test_layers_in_between() -> None:
    """By way of a boxed call, as with the profiler, the derivative is the same."""
    x = leaf(1, 2)
    with treadle.profiler.profile():
        scale(x, 3.0).sum().backward()
        scale(x).sum().backward()
    assert x.grad.tolist() == [5, 5]
    dtypes: list = []

    @custom_op("tla_c::cast", mutates_args=())
    def cast(x: Tensor) -> Tensor:
        dtypes.append(x.dtype)
        return x * 2

    cast.register_autograd(lambda ctx, grad: grad * 2)
    cast.register_autocast("cpu", treadle.bfloat16)
    with treadle.autocast("cpu"):
        cast(x).sum().backward()
    assert dtypes == [treadle.bfloat16] and x.grad.tolist() == [7, 7]
    assert x.grad.dtype == treadle.float32


def test_a_cast_lives_as_long_as_its_library() -> None:
    dtypes = []

    @custom_op("tla_b::cast_for_a_while", mutates_args=())
    def cast(x: Tensor) -> Tensor:
        dtypes.append(x.dtype)
        return x * 2

    def call() -> treadle.dtype:
        with treadle.autocast("cpu"):
            cast(treadle.ones(1))
        return dtypes.pop()

    library = treadle.library.Library("tla_b", "FRAGMENT")
    name = "tla_b::cast_for_a_while"
    treadle.library.register_autocast(name, "cpu", treadle.bfloat16, lib=library)
    assert call() == treadle.bfloat16
    treadle.library.register_autocast(name, "cpu", treadle.float16)
    library._destroy()
    assert call() == treadle.float16  # that of another stays
    library = treadle.library.Library("tla_b", "FRAGMENT")
    treadle.library.register_autocast(name, "cpu", treadle.bfloat16, lib=library)
    library._destroy()
    assert call() == treadle.float32


def test_functional_transforms() -> None:
    grad = treadle.func.grad(lambda x: scale(x, 3.0).sum())(treadle.ones(2))
    assert grad.tolist() == [3, 3]
    rows = treadle.func.jacrev(lambda x: scale(x, 3.0))(treadle.ones(2))
    assert rows.tolist() == [[3, 0], [0, 3]]


def test_nothing_is_kept_alive() -> None:
    class Kept:
        pass

    @custom_op("tla_c::keeps", mutates_args=())
    def keeps(x: Tensor) -> Tensor:
        return x * 2

    kept: list = []

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.kept = Kept()
        ctx.save_for_backward(inputs[0], output)
        kept[:] = [weakref.ref(ctx.kept)]

    keeps.register_autograd(lambda ctx, grad: grad, setup_context=setup)
    y = keeps(leaf(1))
    assert kept[0]() is not None
    del y
    assert kept[0]() is None

    def make() -> Any:
        big = treadle.ones(3)

        def function(x: Tensor) -> Tensor:
            return x + big

        with treadle.library._scoped_library("tla_gone", "DEF") as library:
            library.define("f(Tensor x) -> Tensor")
            library.impl("f", function, "CPU")
            treadle.ops.tla_gone.f(treadle.ones(3))
        return weakref.ref(function)

    found = make()
    gc.collect()
    assert found() is None


# ---- without a derivative of their own


def test_custom_operators_without_a_derivative() -> None:
    @custom_op("tla_c::none", mutates_args=())
    def none(x: Tensor) -> Tensor:
        return x * 2

    y = none(leaf(1))
    assert y.requires_grad
    assert message(RuntimeError, y.sum().backward) == (
        "tla_c::none: expected a derivative to go backward through, got an operator without one\n"
        "use register_autograd to give it one"
    )


WARNING = (
    "expected a derivative for backward to go through, got an operator without one; gradients may "
    "be missing or wrong. Give it one with treadle.library.register_autograd, or register "
    "treadle.library.fallthrough_kernel for 'Autograd' where it has none"
)


@pytest.mark.parametrize("detached", [False, True])
def test_a_warning_where_nothing_is_said(lib: Library, detached: bool) -> None:
    lib.define("silent(Tensor x) -> Tensor")
    lib.impl("silent", lambda x: (x.detach() if detached else x) * 2, "CPU")
    x = leaf(1)
    y = treadle.ops.tla.silent(x)
    assert y.grad_fn.name() == ("WarnNotImplemented" if detached else "MulBackward0")
    with pytest.warns(UserWarning) as caught:
        y.sum().backward()
    assert [str(w.message) for w in caught] == [f"tla::silent: {WARNING}"]
    assert x.grad is None if detached else x.grad.item() == 2
    with treadle.no_grad():
        assert not treadle.ops.tla.silent(x).requires_grad


def test_a_composite_kernel_is_looked_into(lib: Library) -> None:
    lib.define("composite(Tensor x) -> Tensor")
    lib.impl("composite", lambda x: x * 2)
    x = leaf(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        treadle.ops.tla.composite(x).sum().backward()
        with treadle.profiler.profile():
            treadle.ops.tla.composite(x).sum().backward()
    assert x.grad.item() == 4


def test_fallthrough_says_that_there_is_none(lib: Library) -> None:
    lib.define("count(Tensor x) -> Tensor")
    lib.impl("count", lambda x: x.detach() * 2, "CPU")
    lib.impl("count", treadle.library.fallthrough_kernel, "Autograd")
    assert not treadle.ops.tla.count(leaf(1)).requires_grad


def test_a_function_on_the_autograd_key(lib: Library) -> None:
    class Double(treadle.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return treadle.ops.tla.keyed(x)

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            return grad * 7

    lib.define("keyed(Tensor x) -> Tensor")
    calls: list = []

    def kernel(x: Tensor) -> Tensor:
        calls.append(x)
        return x.detach() * 2

    def autograd(x: Tensor) -> Tensor:
        with treadle._C._AutoDispatchBelowAutograd():
            return Double.apply(x)

    lib.impl("keyed", kernel, "CPU")
    lib.impl("keyed", autograd, "AutogradCPU")
    x = leaf(1)
    treadle.ops.tla.keyed(x).sum().backward()
    assert x.grad.item() == 7 and len(calls) == 1
    assert treadle.ops.tla.keyed(treadle.ones(1)).item() == 2
    assert message(RuntimeError, lib.impl, "keyed", autograd, "AutogradCPU") == (
        "tla::keyed: expected one function for autograd on cpu, got a second"
    )


def test_derivatives_of_operators_defined_by_schema(lib: Library) -> None:
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: x.detach() * 2, "CPU")
    treadle.library.register_autograd("tla::twice", lambda ctx, grad: grad * 2, lib=lib)
    x = leaf(1)
    treadle.ops.tla.twice(x).sum().backward()
    assert x.grad.item() == 2
    got = message(
        RuntimeError, treadle.library.register_autograd, "tla::twice", lambda ctx, g: g, lib=lib
    )
    first, second = got.split("\n")
    assert first.startswith(
        f"tla::twice: expected one function for the layer autograd, got a second at {__file__}:"
    )
    assert second.startswith(f"the first is at {__file__}:")


# ---- mistakes


def test_mistakes_of_registration(lib: Library) -> None:
    lib.define("write(Tensor(a!) x) -> ()")
    assert message(RuntimeError, treadle.library.register_autograd, "tla::write", len) == (
        "register_autograd: expected an operator that makes new tensors, got one that writes to "
        "its arguments or returns them\n  tla::write(Tensor(a!) x) -> ()"
    )
    lib.define("named(*, Tensor x) -> Tensor")
    assert message(NotImplementedError, treadle.library.register_autograd, "tla::named", len) == (
        "register_autograd: expected tensors that are given by position, got some that are given "
        "by name only\n  tla::named(*, Tensor x) -> Tensor"
    )
    assert message(TypeError, scale.register_autograd, 3) == (
        "register_autograd: expected backward to be a function, got int"
    )
    assert message(RuntimeError, treadle.library.register_autograd, "tla::gone", len).startswith(
        "expected the name of an operator, got 'tla::gone'"
    )


COUNT = "expected backward to return 2 gradients, one for each argument"


@pytest.mark.parametrize(
    "value, kind, text",
    [
        ((1, 2, 3), RuntimeError, f"{COUNT}, got 3"),
        ((None,), RuntimeError, f"{COUNT}, got 1"),
        (
            ("x", None),
            TypeError,
            "expected backward to return tensors or None, got str for argument 'x'",
        ),
    ],
)
def test_gradients_of_another_form(value: Any, kind: type, text: str) -> None:
    @custom_op("tla_c::bad_gradients", mutates_args=())
    def function(x: Tensor, by: float) -> Tensor:
        return x * by

    function.register_autograd(lambda ctx, grad: value)
    assert message(kind, function(leaf(1), 2.0).sum().backward) == f"tla_c::bad_gradients: {text}"


def test_gradients_of_a_list_of_another_length() -> None:
    @custom_op("tla_c::bad_list", mutates_args=())
    def function(xs: Sequence[Tensor]) -> Tensor:
        return xs[0] * 2

    function.register_autograd(lambda ctx, grad: [grad])
    assert message(RuntimeError, function([leaf(1), leaf(2)]).sum().backward) == (
        "tla_c::bad_list: expected backward to return None or a list of 2 gradients for argument "
        "'xs', got list of [Tensor]"
    )


# ---- opcheck


def test_opcheck() -> None:
    names = (
        "test_schema",
        "test_autograd_registration",
        "test_faketensor",
        "test_aot_dispatch_dynamic",
    )
    assert message(OpCheckError, opcheck, scale, (treadle.ones(2), 2.0)) == (
        "opcheck: test_faketensor failed: tla_c::scale: expected a kernel for meta tensors, got "
        "none\nregister one by scale.register_fake"
    )

    @custom_op("tla_c::good", mutates_args=())
    def good(x: Tensor) -> Tensor:
        return x * 2

    good.register_fake(lambda x: treadle.empty_like(x))
    good.register_autograd(lambda ctx, grad: grad * 2)
    assert opcheck(good, (leaf(1, 2),)) == dict.fromkeys(names, "SUCCESS")
    assert opcheck(treadle.ops.aten.mul.Tensor, (leaf(1), leaf(2))) == dict.fromkeys(
        names, "SUCCESS"
    )
    good.register_fake(lambda x: x.new_empty(5))
    outcome = opcheck(good, (leaf(1, 2),), raise_exception=False)
    assert str(outcome["test_faketensor"]) == (
        "expected result 0 for meta tensors to have shape treadle.Size([2]), as the kernel's has, "
        "got treadle.Size([5])"
    )
    assert outcome["test_schema"] == "SUCCESS"


def test_opcheck_finds_undeclared_writing_and_sharing(lib: Library) -> None:
    @custom_op("tla_c::sly", mutates_args=())
    def sly(x: Tensor) -> Tensor:
        x.add_(1)
        return x.clone()

    x = treadle.zeros(1)
    assert message(OpCheckError, opcheck, sly, (x,), test_utils="test_schema") == (
        "opcheck: test_schema failed: expected argument 'x' to stay as it is, as the schema says, "
        "got it changed\n  tla_c::sly(Tensor x) -> Tensor"
    )
    assert x.item() == 0
    lib.define("shares(Tensor x) -> Tensor")
    lib.impl("shares", lambda x: x[:1], "CPU")
    assert message(
        OpCheckError, opcheck, treadle.ops.tla.shares, (x,), test_utils="test_schema"
    ) == (
        "opcheck: test_schema failed: expected results in memory of their own, as the schema says, "
        "got one that shares the memory of argument 'x'\n  tla::shares(Tensor x) -> Tensor"
    )
    assert message(
        OpCheckError,
        opcheck,
        treadle.ops.tla.shares.default,
        (leaf(1),),
        test_utils="test_autograd_registration",
    ) == (
        "opcheck: test_autograd_registration failed: expected a derivative, as some arguments "
        "require grad, got none for tla::shares; register_autograd gives it one"
    )
    assert message(RuntimeError, opcheck, sly, (x,), test_utils="test_odd") == (
        "opcheck: expected tests of test_schema, test_autograd_registration, test_faketensor, "
        "test_aot_dispatch_dynamic, got test_odd"
    )
    assert message(ValueError, opcheck, len, (x,)) == (
        "opcheck: expected an OpOverload, a packet or a custom operator, got "
        "builtin_function_or_method"
    )


def test_opcheck_finds_gradients_of_another_shape() -> None:
    @custom_op("tla_c::shapeless", mutates_args=())
    def function(x: Tensor) -> Tensor:
        return x * 2

    function.register_fake(lambda x: treadle.empty_like(x))
    function.register_autograd(lambda ctx, grad: grad.sum().expand(5))
    got = message(OpCheckError, opcheck, function, (leaf(1, 2),))
    assert got.startswith("opcheck: test_aot_dispatch_dynamic failed: ")


def test_a_custom_operator_that_nobody_holds_is_known_by_its_name() -> None:
    treadle.library.custom_op(
        "unheld::twice", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    gc.collect()
    treadle.library.register_fake("unheld::twice", lambda x: treadle.empty_like(x))
    treadle.library.register_autograd("unheld::twice", lambda ctx, grad: grad * 2)
    x = treadle.ones(3, requires_grad=True)
    treadle.ops.unheld.twice(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    assert treadle.ops.unheld.twice(treadle.ones(3, device="meta")).shape == (3,)

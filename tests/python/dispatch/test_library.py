"""treadle.library: operators of Python functions and by schema, their kernels, names and mistakes.

Derivatives are in test_library_autograd.py.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import gc
import pickle
from typing import Any, Iterator, List, Optional, Sequence, Tuple

import numpy as np
import pytest

import treadle
from treadle import Tensor
from treadle.library import Library, custom_op, fallthrough_kernel, infer_schema


@pytest.fixture
def lib() -> Iterator[Library]:
    """A library whose operators are gone after the test."""
    with treadle.library._scoped_library("tl", "FRAGMENT") as library:
        yield library


def message(kind: type, function: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(kind) as caught:
        function(*args, **kwargs)
    assert type(caught.value) is kind
    return str(caught.value)


def lines(text: str) -> List[str]:
    return text.split("\n")


@custom_op("tl_c::scale", mutates_args=())
def scale(x: Tensor, by: float = 2.0, *, shift: int = 0) -> Tensor:
    """Scales."""
    return x * by + shift


@custom_op("tl_c::add_to", mutates_args=("x",))
def add_to(x: Tensor, y: Tensor) -> None:
    x.numpy()[:] += y.numpy()


# ---- custom_op


def test_a_function_is_an_operator() -> None:
    x = treadle.tensor([1.0, 2.0])
    assert scale(x, 3.0).tolist() == [3, 6]
    assert scale(x).tolist() == [2, 4]
    assert scale(x=x, by=1.0, shift=5).tolist() == [6, 7]
    assert treadle.ops.tl_c.scale(x, 3.0).tolist() == [3, 6]
    assert treadle.ops.tl_c.scale.default(x, 3).tolist() == [3, 6]
    assert scale.__name__ == "scale" and scale.__doc__ == "Scales."
    assert repr(scale) == "<CustomOpDef(tl_c::scale)>"
    schema = "tl_c::scale(Tensor x, float by=2.0, *, SymInt shift=0) -> Tensor"
    assert str(scale._opoverload._schema) == schema
    assert "tl_c::scale" in treadle._C._operator_names()
    assert treadle._C._dispatch_check_invariants() == []


def test_the_function_is_given_what_the_schema_says() -> None:
    given: list = []

    @custom_op("tl_c::given", mutates_args=())
    def function(
        x: Tensor,
        i: int,
        f: float,
        b: bool,
        s: str,
        d: treadle.dtype,
        e: treadle.device,
        n: List[int],
        t: Sequence[Tensor],
        o: Optional[int] = None,
    ) -> Tensor:
        given[:] = [i, f, b, s, d, e, n, t, o]
        return x.clone()

    x = treadle.ones(1)
    function(x, np.int64(1), 2, True, "s", treadle.float32, "cpu", (1, 2), (x, x))
    i, f, b, s, d, e, n, t, o = given
    assert type(i) is int and type(f) is float and f == 2.0 and b is True
    assert d is treadle.float32 and e == treadle.device("cpu") and isinstance(e, treadle.device)
    assert n == [1, 2] and isinstance(n, list) and o is None
    assert isinstance(t, list) and t[0] is x
    function(x, treadle.tensor(3), 2.5, False, "s", treadle.int8, "cpu", [], [], 4)
    assert given[0] == 3 and given[8] == 4


def test_results_of_every_type() -> None:
    @custom_op("tl_c::results", mutates_args=())
    def function(x: Tensor) -> Tuple[Tensor, int, float, bool, List[Tensor]]:
        return x + 1, 2, 3.0, True, [x + 2, x + 3]

    a, b, c, d, e = function(treadle.zeros(1))
    assert (a.item(), b, c, d, [t.item() for t in e]) == (1, 2, 3.0, True, [2, 3])

    @custom_op("tl_c::nothing", mutates_args=())
    def nothing(x: Tensor) -> None:
        return None

    assert nothing(treadle.zeros(1)) is None


def test_what_is_written_has_a_new_version() -> None:
    x, y = treadle.zeros(2), treadle.ones(2)
    before, other = x._version, y._version
    assert add_to(x, y) is None
    assert x.tolist() == [1, 1] and x._version == before + 1 and y._version == other
    assert str(add_to._opoverload._schema) == "tl_c::add_to(Tensor(a0!) x, Tensor y) -> ()"
    assert add_to._opoverload._schema.is_mutable
    # So that a value saved for backward is known to have changed.
    w = treadle.ones(2, requires_grad=True)
    z = w * x
    add_to(x, y)
    with pytest.raises(RuntimeError, match="changed in place"):
        z.sum().backward()


def test_defining_again_replaces() -> None:
    def one(x: Tensor) -> Tensor:
        return x + 1

    def two(x: Tensor) -> Tensor:
        return x + 2

    custom_op("tl_c::again", one, mutates_args=())
    x = treadle.zeros(1)
    assert treadle.ops.tl_c.again(x).item() == 1
    custom_op("tl_c::again", two, mutates_args=())
    assert treadle.ops.tl_c.again(x).item() == 2


def test_kernels_by_device() -> None:
    @custom_op("tl_c::by_device", mutates_args=())
    def function(x: Tensor) -> Tensor:
        return x + 1

    x = treadle.zeros(1)
    assert message(RuntimeError, function, x.to("meta")) == (
        "tl_c::by_device: expected a kernel for meta tensors, got none\n"
        "register one by by_device.register_fake"
    )

    @function.register_fake
    def _(x: Tensor) -> Tensor:
        return treadle.empty_like(x)

    assert function(treadle.ones(3, 2, device="meta")).shape == (3, 2)

    @function.register_kernel("cpu")
    def _(x: Tensor) -> Tensor:
        return x + 5

    assert function(x).item() == 5
    with function.set_kernel_enabled("cpu", False):
        assert function(x).item() == 1
    assert function(x).item() == 5
    assert "expected the name of a device, one of cpu, meta" in message(
        RuntimeError, function.register_kernel, "nowhere", lambda x: x
    )
    assert message(ValueError, function.set_kernel_enabled("meta", False).__enter__) == (
        "set_kernel_enabled: expected a device with a kernel of tl_c::by_device, got 'meta'"
    )


def test_results_are_in_memory_of_their_own() -> None:
    @custom_op("tl_c::same", mutates_args=())
    def same(x: Tensor) -> Tensor:
        return x

    @custom_op("tl_c::part", mutates_args=())
    def part(x: Tensor) -> Tensor:
        return x[:1]

    @custom_op("tl_c::twice", mutates_args=())
    def twice(x: Tensor) -> Tuple[Tensor, Tensor]:
        y = x + 1
        return y, y

    x = treadle.ones(2)
    for op in (same, part):
        assert message(RuntimeError, op, x) == (
            f"{op._qualname}: expected results in memory of their own, got one that shares its "
            "memory with an argument\nreturn a clone of it"
        )
    assert "shares its memory with another" in message(RuntimeError, twice, x)


def test_exceptions_come_through() -> None:
    @custom_op("tl_c::fails", mutates_args=())
    def fails(x: Tensor) -> Tensor:
        raise LookupError("in the kernel")

    assert message(LookupError, fails, treadle.ones(1)) == "in the kernel"
    with treadle.profiler.profile():  # by way of a boxed call
        assert message(LookupError, fails, treadle.ones(1)) == "in the kernel"


def test_the_profiler_sees_the_operator_and_what_it_calls() -> None:
    with treadle.profiler.profile() as profile:
        scale(treadle.ones(3), 2.0)
    names = [event.name for event in profile.events()]
    assert "tl_c::scale" in names and "aten::mul" in names


def test_autocast() -> None:
    dtypes: list = []

    @custom_op("tl_c::cast", mutates_args=())
    def function(x: Tensor, y: Tensor) -> Tensor:
        dtypes[:] = [x.dtype, y.dtype]
        return x.clone()

    x, y = treadle.ones(2), treadle.ones(2, dtype=treadle.float64)
    with treadle.autocast("cpu"):
        function(x, y)
    assert dtypes == [treadle.float32, treadle.float64]
    treadle.library.register_autocast(function, "cpu", treadle.bfloat16)
    function(x, y)
    assert dtypes == [treadle.float32, treadle.float64]
    with treadle.autocast("cpu"):
        assert function(x, y).dtype == treadle.bfloat16
        assert dtypes == [treadle.bfloat16, treadle.float64]
    assert message(ValueError, function.register_autocast, "nowhere", treadle.float16) == (
        "register_autocast: expected a device, got 'nowhere'"
    )


def test_overrides_are_told_of_the_operator() -> None:
    seen: list = []

    class Logged(Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    result = treadle.ops.tl_c.scale.default(treadle.ones(1).as_subclass(Logged), 2.0)
    assert seen[0] is treadle.ops.tl_c.scale.default and result.item() == 2


def test_vmap_and_functional_transforms() -> None:
    @custom_op("tl_c::double", mutates_args=())
    def double(x: Tensor) -> Tensor:
        return treadle.from_numpy(x.numpy() * 2)

    assert treadle.vmap(double)(treadle.ones(3, 2)).tolist() == [[2, 2]] * 3


# ---- Library


def test_schema_and_kernels_apart(lib: Library) -> None:
    assert lib.define("twice(Tensor x, int n=2) -> Tensor") == "twice"
    assert message(NotImplementedError, treadle.ops.tl.twice, treadle.ones(1)) == (
        "tl::twice: expected a kernel for the device cpu, got none\nkernels exist for: no device"
    )
    lib.impl("twice", lambda x, n=2: x * n, "CPU")
    x = treadle.ones(2)
    assert treadle.ops.tl.twice(x).tolist() == [2, 2]
    assert treadle.ops.tl.twice(x, n=5).tolist() == [5, 5]
    assert message(NotImplementedError, treadle.ops.tl.twice, x.to("meta")) == (
        "tl::twice: expected a kernel for the device meta, got none\nkernels exist for: cpu"
    )
    treadle.library.register_fake("tl::twice", lambda x, n=2: treadle.empty_like(x), lib=lib)
    assert treadle.ops.tl.twice(x.to("meta")).shape == (2,)
    assert treadle.ops.tl.twice.default.has_kernel_for_dispatch_key("CPU")
    assert not treadle.ops.tl.twice.default.has_kernel_for_dispatch_key("CUDA")


def test_a_kernel_for_all_devices(lib: Library) -> None:
    lib.define("all(Tensor x) -> Tensor")
    lib.impl("all", lambda x: x + 1, "CompositeExplicitAutograd")
    assert treadle.ops.tl.all(treadle.zeros(2)).tolist() == [1, 1]
    assert treadle.ops.tl.all(treadle.zeros(2, device="meta")).shape == (2,)
    lib.impl("all", lambda x: x + 2, "CPU")
    assert treadle.ops.tl.all(treadle.zeros(1)).item() == 2


def test_overloads(lib: Library) -> None:
    lib.define("over.Tensor(Tensor x, Tensor y) -> Tensor")
    lib.define("over.int(Tensor x, int y) -> Tensor")
    lib.impl("over.Tensor", lambda x, y: x + y, "CPU")
    lib.impl("over.int", lambda x, y: x - y, "CPU")
    packet = treadle.ops.tl.over
    one = treadle.ones(1)
    assert packet(one, one).item() == 2 and packet(one, 5).item() == -4
    assert packet.Tensor(one, one).item() == 2
    assert packet.overloads() == ["Tensor", "int"]
    lib.define("over(Tensor x) -> Tensor")
    lib.impl("over", lambda x: x * 9, "CPU")
    assert packet(one).item() == 9 and treadle.ops.tl.over.default(one).item() == 9
    assert message(AttributeError, getattr, packet, "nope") == (
        "tl::over: expected one of its overloads (default, Tensor, int), got 'nope'"
    )


def test_libraries_take_back_what_they_registered() -> None:
    definitions = Library("tl_gone", "DEF")
    definitions.define("f(Tensor x) -> Tensor")
    kernels = Library("tl_gone", "IMPL")
    kernels.impl("f", lambda x: x + 1, "CPU")
    x = treadle.zeros(1)
    assert treadle.ops.tl_gone.f(x).item() == 1
    del kernels
    gc.collect()
    assert "expected a kernel for the device cpu" in message(
        NotImplementedError, treadle.ops.tl_gone.f, x
    )
    kernels = Library("tl_gone", "IMPL", "CPU")
    kernels.impl("f", lambda x: x + 2)
    assert treadle.ops.tl_gone.f(x).item() == 2
    del definitions
    gc.collect()
    assert message(AttributeError, getattr, treadle.ops.tl_gone, "f") == (
        "'_OpNamespace' 'tl_gone' object has no attribute 'f'"
    )
    del kernels
    again = Library("tl_gone", "DEF")
    again.define("f(Tensor x) -> Tensor")
    assert treadle._C._dispatch_check_invariants() == []


def test_writing_and_returning_an_argument(lib: Library) -> None:
    lib.define("fill_(Tensor(a!) x, float v) -> Tensor(a!)")

    def fill(x: Tensor, v: float) -> Tensor:
        x.numpy()[:] = v
        return x

    lib.impl("fill_", fill, "CPU")
    x = treadle.zeros(2)
    before = x._version
    assert treadle.ops.tl.fill_(x, 3) is x
    assert x.tolist() == [3, 3] and x._version == before + 1


def test_define_and_impl_by_full_name() -> None:
    treadle.library.define("tl_fn::f", "(Tensor x) -> Tensor")

    @treadle.library.impl("tl_fn::f", "cpu")
    def _(x: Tensor) -> Tensor:
        return x + 1

    @treadle.library.register_kernel("tl_fn::f", "meta")
    def _(x: Tensor) -> Tensor:
        return treadle.empty_like(x)

    assert treadle.ops.tl_fn.f(treadle.zeros(1)).item() == 1
    assert treadle.ops.tl_fn.f(treadle.zeros(1, device="meta")).is_meta
    with treadle.library._scoped_library("tl_fn", "FRAGMENT") as fragment:

        @treadle.library.define(fragment, "old(Tensor x) -> Tensor")
        def _(x: Tensor) -> Tensor:
            return x + 2

        @treadle.library.impl(fragment, "old", "Meta")
        def _(x: Tensor) -> Tensor:
            return treadle.empty_like(x)

        assert treadle.ops.tl_fn.old(treadle.zeros(1)).item() == 2


def test_dynamic_operators_need_no_tensors(lib: Library) -> None:
    lib.define("make(int n, *, Device? device=None) -> Tensor")
    lib.impl("make", lambda n, device=None: treadle.full((n,), 1.0), "CPU")
    lib.impl("make", lambda n, device=None: treadle.empty(n, device=device), "Meta")
    assert treadle.ops.tl.make(2).tolist() == [1, 1]
    assert treadle.ops.tl.make(2, device="meta").is_meta


# ---- treadle.ops


def test_outs_have_the_names_that_programs_call() -> None:
    aten, x = treadle.ops.aten, treadle.tensor([[1.0, 3.0], [0.0, 2.0]])
    mean, truth = treadle.empty(2), treadle.empty(2, dtype=treadle.bool)
    assert aten.mean.out(x, [1], out=mean).tolist() == [2, 1]
    assert aten.mean.dtype_out(x, out=treadle.empty(())).item() == 1.5
    assert aten.all.out(x, 1, out=truth).tolist() == [True, False]
    assert aten.any.out(x, 1, out=truth).tolist() == [True, True]
    assert aten.all.all_out(x, out=treadle.empty((), dtype=treadle.bool)).item() is False
    assert aten.arange.start_step(1, 3).tolist() == [1, 2]


def test_operators_of_the_library_by_their_full_names() -> None:
    x, y = treadle.ones(2), treadle.ones(2)
    add = treadle.ops.aten.add
    assert add.Tensor(x, y).tolist() == [2, 2]
    assert add.Tensor(x, 1, alpha=3).tolist() == [4, 4]
    assert add(x, y).tolist() == [2, 2]
    out = treadle.empty(2)
    assert add.out(x, y, out=out) is out and out.tolist() == [2, 2]
    assert treadle.ops.aten.add_.Tensor(x, y) is x and x.tolist() == [2, 2]
    values, indices = treadle.ops.aten.max.dim(treadle.eye(2), 1)
    assert values.tolist() == [1, 1] and indices.tolist() == [0, 1]
    assert [t.tolist() for t in treadle.ops.aten.split.Tensor(treadle.arange(3), 2)] == [
        [0, 1],
        [2],
    ]
    w = treadle.ones(2, requires_grad=True)
    treadle.ops.aten.mul.Tensor(w, w).sum().backward()
    assert w.grad.tolist() == [2, 2]


def test_what_an_operator_says_of_itself() -> None:
    op = treadle.ops.aten.add.Tensor
    assert (op.namespace, op.name(), op.__name__, str(op)) == (
        "aten",
        "aten::add.Tensor",
        "add.Tensor",
        "aten.add.Tensor",
    )
    assert repr(op) == "<OpOverload(op='aten.add', overload='Tensor')>"
    assert op.overloadpacket is treadle.ops.aten.add and op.op is op
    assert treadle.Tag.pointwise in op.tags
    schema = op._schema
    assert (schema.name, schema.overload_name, schema.is_mutable) == ("aten::add", "Tensor", False)
    assert str(schema) == (
        "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    )
    alpha = schema.arguments[2]
    assert (alpha.name, alpha.type, alpha.default_value, alpha.kwarg_only) == (
        "alpha",
        "Scalar",
        1,
        True,
    )
    assert treadle.ops.aten.add.out is treadle.ops.aten.add.Tensor_out
    out = treadle.ops.aten.add.out._schema.arguments[-1]
    assert out.is_write and out.is_out and out.alias_info.before_set == {"a"}
    assert pickle.loads(pickle.dumps(op)) is op and copy.deepcopy(op) is op
    assert treadle.ops.tl_c.scale.default.overloadpacket.overloads() == ["default"]


def test_missing_names_and_libraries(tmp_path: Any) -> None:
    assert message(AttributeError, getattr, treadle.ops.aten, "no_such") == (
        "'_OpNamespace' 'aten' object has no attribute 'no_such'"
    )
    assert not hasattr(treadle.ops.no_such_ns, "f")
    path = tmp_path / "nothing.so"
    with pytest.raises(OSError):
        treadle.ops.load_library(path)
    assert str(path) not in treadle.ops.loaded_libraries


def test_the_answers_of_the_dispatcher(lib: Library) -> None:
    lib.define("asked(Tensor x) -> Tensor")
    lib.impl("asked", lambda x: x + 1, "CPU")
    dump = treadle._C._dispatch_dump("tl::asked")
    assert "tl::asked  cpu strided float32  device" in dump and "test_library.py" in dump
    facts = treadle._C._describe_operator("tl::asked")
    assert facts["schema"] == "tl::asked(Tensor x) -> Tensor"
    assert facts["file"].endswith("test_library.py")


# ---- infer_schema


def test_schemas_of_functions() -> None:
    def everything(
        x: Tensor,
        xs: Sequence[Tensor],
        maybe: Optional[Tensor],
        holes: List[Optional[Tensor]],
        n: int,
        ns: "Sequence[int]",
        b: bool = True,
        s: str = "hi",
        f: float = 1e-5,
        d: treadle.dtype = treadle.float32,
        e: treadle.device = treadle.device("cpu"),
        *,
        number: treadle.types.Number = 2,
        o: Optional[List[float]] = None,
    ) -> Tuple[Tensor, List[Tensor], int]: ...

    assert infer_schema(everything, mutates_args=()) == (
        "(Tensor x, Tensor[] xs, Tensor? maybe, Tensor?[] holes, SymInt n, SymInt[] ns, "
        'bool b=True, str s="hi", float f=1e-05, ScalarType d=float32, Device e="cpu", *, '
        "Scalar number=2, float[]? o=None) -> (Tensor, Tensor[], SymInt)"
    )
    assert infer_schema(everything, mutates_args={"x", "xs"}).startswith(
        "(Tensor(a0!) x, Tensor(a1!)[] xs, Tensor? maybe,"
    )

    def nothing(x: Tensor) -> None: ...

    assert infer_schema(nothing, mutates_args="unknown", op_name="f") == "f(Tensor(a0!) x) -> ()"


def no_type(x) -> Tensor: ...  # noqa: ANN001
def no_result(x: Tensor): ...  # noqa: ANN201
def odd_type(x: dict) -> Tensor: ...
def odd_result(x: Tensor) -> dict: ...
def odd_default(x: Tensor, n: int = object()) -> Tensor: ...
def many(*x: Tensor) -> Tensor: ...
def number(x: Tensor, n: int) -> None: ...


@pytest.mark.parametrize(
    "function, mutates, text",
    [
        (no_type, (), "expected a type for every argument, got none for 'x'"),
        (
            no_result,
            (),
            "expected a type for the result, got none; write '-> None' for no result",
        ),
        (
            odd_type,
            (),
            "expected argument 'x' to be a Tensor, int, float, bool, str, Number, dtype or device, "
            "or an Optional or a Sequence of one, got dict",
        ),
        (
            odd_result,
            (),
            "expected results that are Tensor, List[Tensor], int, float, bool or Number, got dict",
        ),
        (
            odd_default,
            (),
            "expected the default of 'n' to be a number, str, dtype, device or None, got object",
        ),
        (
            many,
            (),
            "expected arguments that can be given by name, got 'x', which is variadic positional",
        ),
        (number, ("q",), "expected mutates_args to name arguments, got 'q'"),
        (
            number,
            ("n",),
            "expected mutates_args to name tensors or lists of tensors, got 'n', which is SymInt",
        ),
        (
            number,
            "x",
            "expected mutates_args to be names of arguments or 'unknown', got 'x'; one name is "
            "given as ('x',)",
        ),
    ],
)
def test_functions_without_a_schema(function: Any, mutates: Any, text: str) -> None:
    got = message(ValueError, infer_schema, function, mutates_args=mutates)
    assert lines(got)[0] == f"infer_schema: {text}"
    assert lines(got)[1].startswith("the function is (")


# ---- mistakes


def test_mistakes_of_definitions(lib: Library) -> None:
    here = __file__
    lib.define("f(Tensor x) -> Tensor")
    got = lines(message(RuntimeError, lib.define, "f(Tensor x, int n) -> Tensor"))
    assert got[0].startswith(f"define: expected a new name of an operator, got tl::f at {here}:")
    assert got[1].startswith(f"it is defined already at {here}:")
    assert message(RuntimeError, lib.define, "bad(Tensor x -> Tensor") == (
        "define: expected the schema of an operator, got one with an error:\n"
        "<string>:1:17: error: expected ',' or ')' after argument 'x', got '->'; close the "
        "arguments with ')'\n"
        "tl::bad(Tensor x -> Tensor\n"
        "                ^"
    )
    assert message(RuntimeError, lib.define, "other::f(Tensor x) -> Tensor") == (
        "define: expected an operator of the namespace 'tl', got other::f"
    )
    assert message(RuntimeError, Library("tl", "IMPL").define, "g(Tensor x) -> Tensor") == (
        "define: expected a library of kind DEF or FRAGMENT, got the IMPL library of 'tl' for "
        "g(Tensor x) -> Tensor"
    )
    assert message(RuntimeError, lib.define, "g() -> ()", "ODD") == (
        "define: expected alias_analysis to be '', 'FROM_SCHEMA' or 'CONSERVATIVE', got 'ODD'"
    )
    assert message(ValueError, Library, "tl", "ODD") == (
        "Library: expected kind to be DEF, FRAGMENT or IMPL, got 'ODD'"
    )
    assert message(ValueError, Library, "prim", "DEF") == (
        "Library: expected a namespace that is not reserved, got 'prim'"
    )
    whole = Library("tl_whole", "DEF")
    got = lines(message(RuntimeError, Library, "tl_whole", "DEF"))
    assert got[0].startswith(
        f"Library: expected one DEF of the namespace 'tl_whole', got a second at {here}:"
    )
    assert got[1].startswith(f"it is defined already at {here}:") and "FRAGMENT" in got[1]
    whole._destroy()
    Library("tl_whole", "DEF")._destroy()
    assert "it is defined already at native_functions.yaml:" in message(
        RuntimeError, Library, "aten", "DEF"
    )
    assert message(ValueError, treadle.library.define, "f", "(Tensor x) -> Tensor") == (
        "define: expected a name with its namespace, as my_ns::f, got 'f'"
    )
    assert message(ValueError, treadle.library.define, "tl::h", "h(Tensor x) -> Tensor") == (
        "define: expected a schema without a name, as '(Tensor x) -> Tensor', got "
        "'h(Tensor x) -> Tensor'"
    )
    assert message(ValueError, custom_op, "f", scale.__wrapped__, mutates_args=()) == (
        "custom_op: expected a name with its namespace, as my_ns::f, got 'f'"
    )
    assert message(ValueError, custom_op, "tl::f.g", scale.__wrapped__, mutates_args=()) == (
        "custom_op: expected a name without an overload, as operators of one overload have, got "
        "'tl::f.g'"
    )


def test_mutation_that_is_not_declared() -> None:
    def function(x: Tensor) -> Tensor:
        return x.clone()

    got = message(
        ValueError,
        custom_op,
        "tl_c::undeclared",
        function,
        mutates_args=("x",),
        schema="(Tensor x) -> Tensor",
    )
    assert got == (
        "custom_op: expected a schema that writes to what mutates_args names, (x), got one that "
        "writes to ()\n  (Tensor x) -> Tensor"
    )
    assert not hasattr(treadle.ops.tl_c, "undeclared")


def test_mistakes_of_kernels(lib: Library) -> None:
    here = __file__
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x + 1, "CPU")
    got = lines(message(RuntimeError, lib.impl, "f", lambda x: x, "CPU"))
    assert got[0].startswith(
        f"tl::f: expected one kernel for the device cpu, got a second at {here}:"
    )
    assert got[1].startswith(f"the first is at {here}:")
    lib.impl("f", lambda x: x + 2, "CPU", allow_override=True)
    assert treadle.ops.tl.f(treadle.zeros(1)).item() == 2
    lib.impl("f", lambda x: x + 3)
    assert "expected one kernel for all devices, got a second at" in message(
        RuntimeError, lib.impl, "f", lambda x: x
    )
    assert message(RuntimeError, lib.impl, "nope", lambda x: x, "CPU").startswith(
        "expected the name of an operator, got 'tl::nope'"
    )
    assert message(RuntimeError, lib.impl, "f", lambda x: x, "XPUU").startswith(
        "impl: expected a dispatch key or a device, one of CompositeImplicitAutograd, "
        "CompositeExplicitAutograd, CompositeExplicitAutogradNonFunctional, Autograd, Autocast, "
        "cpu, meta, cuda"
    )
    assert message(RuntimeError, lib.impl, "f", lambda x: x, "XPUU").endswith(", got 'XPUU'")
    assert message(TypeError, lib.impl, "f", 3, "CPU") == "impl: expected a function, got int"
    assert message(RuntimeError, lib.impl, "aten::add", lambda x: x, "CPU") == (
        "impl: expected an operator of the namespace 'tl', got aten::add"
    )
    with treadle.library._scoped_library("aten", "IMPL") as kernels:
        assert message(RuntimeError, kernels.impl, "exp", lambda x: x, "CPU") == (
            "aten::exp: expected a device of a backend, for which Python can give kernels, got cpu"
        )
        assert message(RuntimeError, kernels.impl, "exp", lambda x: x) == (
            "aten::exp: expected an operator that was defined at run time, got one of the "
            "library's own"
        )
    assert message(RuntimeError, lib.impl, 3, lambda x: x, "CPU") == (
        "impl: expected the name of an operator or an OpOverload, got int"
    )
    assert message(RuntimeError, lib.impl, "f", fallthrough_kernel, "Meta") == (
        "impl: expected a kernel for tl::f, got fallthrough_kernel, which is for Autograd"
    )
    assert message(NotImplementedError, lib.impl, "f", len, "CPU", with_keyset=True) == (
        "impl: expected with_keyset=False: kernels are chosen by device, there are no sets of keys "
        "to give to them"
    )
    assert message(NotImplementedError, fallthrough_kernel) == (
        "fallthrough_kernel: expected to be given to Library.impl, not called"
    )
    assert message(ValueError, treadle.library.register_fake, 3, len) == (
        "register_fake: expected the name of an operator, an OpOverload or a custom operator, got "
        "int"
    )
    assert message(RuntimeError, lib.fallback, len, "CPU") == (
        "fallback: expected a library of the namespace '_', which is all of them, got one of 'tl'"
    )


@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize(
    "returns, value, text",
    [
        ("Tensor", 3, "Tensor, got int"),
        ("Tensor", None, "Tensor, got None"),
        ("(Tensor, Tensor)", "x", "a tuple of 2 results, got str"),
        ("(Tensor, int)", (1, 2, 3), "a tuple of 2 results, got 3"),
        ("(int, Tensor)", (1, 2), "Tensor as result 1, got int"),
        ("Tensor[]", [1], "Tensor[], got list of [int]"),
        ("()", 1, "None, got int"),
        ("int", 1.5, "int, got float"),
    ],
)
def test_results_of_another_type(
    lib: Library, returns: str, value: Any, text: str, boxed: bool
) -> None:
    lib.define(f"wrong(Tensor x) -> {returns}")
    lib.impl("wrong", lambda x: value, "CPU")
    expected = (
        f"tl::wrong: expected the kernel to return {text}\n  tl::wrong(Tensor x) -> {returns}"
    )
    if boxed:
        with treadle.profiler.profile():
            assert message(RuntimeError, treadle.ops.tl.wrong, treadle.ones(1)) == expected
    else:
        assert message(RuntimeError, treadle.ops.tl.wrong, treadle.ones(1)) == expected


def test_calls_that_do_not_fit() -> None:
    x = treadle.ones(1)
    signature = "tl_c::scale(): expected tl_c::scale(Tensor x, float by=2.0, *, int shift=0)\ngot "
    assert message(RuntimeError, scale, 3) == (
        signature + "(int): argument 'x' must be Tensor, not int"
    )
    assert message(RuntimeError, scale) == signature + "(): argument 'x' missing"
    assert message(RuntimeError, scale, x, 1.0, 2) == (
        signature + "(Tensor, float, int): too many arguments by position"
    )
    assert message(RuntimeError, scale, x, odd=1) == (
        signature + "(Tensor, odd=int): unexpected argument 'odd'"
    )


def test_fake_kernels_know_no_data() -> None:
    @custom_op("tl_c::unknown_size", mutates_args=())
    def function(x: Tensor) -> Tensor:
        return x.nonzero()

    @function.register_fake
    def _(x: Tensor) -> Tensor:
        return x.new_empty(treadle.library.get_ctx().new_dynamic_size())

    assert treadle.library.get_ctx() is None
    assert message(RuntimeError, function, treadle.ones(1, device="meta")) == (
        "tl_c::unknown_size: expected sizes that depend on sizes only, as meta tensors have no "
        "data, got a call of get_ctx().new_dynamic_size()"
    )


def test_tags(lib: Library) -> None:
    lib.define("tagged(Tensor x) -> Tensor", tags=(treadle.Tag.pt2_compliant_tag,))
    assert treadle.ops.tl.tagged.default.tags == [treadle.Tag.pt2_compliant_tag]
    assert str(treadle.Tag.pointwise) == "Tag.pointwise"

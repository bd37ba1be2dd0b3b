"""Operators defined by a program: their schema, kernels, derivative and more.

    @treadle.library.custom_op("my_ns::scale", mutates_args=())
    def scale(x: Tensor, by: float) -> Tensor:
        return x * by

    @scale.register_fake
    def _(x, by):
        return treadle.empty_like(x)

    scale.register_autograd(lambda ctx, grad: (grad * ctx.by, None),
                            setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]))

    scale(x, 2.0)                         # or treadle.ops.my_ns.scale(x, 2.0)

custom_op() makes an operator of a function. With Library, define() and impl() schema and kernels
are given separately, one kernel for each device. The guide is docs/library.md.

register_layout() and register_dtype() are for layouts and dtypes of a program's own; their guide is
docs/layouts-and-dtypes-from-outside.md.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re
from typing import Any, Callable, Iterable, List, Optional, Sequence, Union

from treadle import _C
from treadle._library.autograd import Casts, set_formula
from treadle._library.checks import OpCheckError, opcheck
from treadle._library.custom_ops import CustomOpDef, Devices, custom_op, find_definition
from treadle._library.dtypes import register_dtype, registered_dtype
from treadle._library.fake import FakeImplCtx, get_ctx
from treadle._library.infer import infer_schema
from treadle._library.layouts import (
    RegisteredLayout,
    TensorLayout,
    register_layout,
    registered_layout,
)
from treadle._library.registration import Library, caller, fallthrough_kernel
from treadle._library.registration import scoped_library as _scoped_library  # noqa: F401
from treadle._ops import OpOverload, find_overload

__all__ = [
    "CustomOpDef",
    "FakeImplCtx",
    "Library",
    "OpCheckError",
    "RegisteredLayout",
    "TensorLayout",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "impl",
    "impl_abstract",
    "impl_tvm_ffi",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_dtype",
    "register_fake",
    "register_kernel",
    "register_layout",
    "register_meta",
    "registered_dtype",
    "registered_layout",
    "triton_op",
    "wrap_triton",
]

Operator = Union[str, OpOverload, CustomOpDef]

# Registrations without a Library stay for as long as the program.
_kept: List[Library] = []


def _library_of(qualname: str, kind: str, lib: Optional[Library]) -> Library:
    if lib is not None:
        return lib
    made = Library(qualname.split("::")[0], kind)
    _kept.append(made)
    return made


def _qualname(what: str, op: Any) -> str:
    name = find_overload(op)
    if name is None:
        raise ValueError(
            f"{what}: expected the name of an operator, an OpOverload or a custom operator, got "
            f"{type(op).__name__}"
        )
    if "::" not in name:
        raise ValueError(
            f"{what}: expected a name with its namespace, as my_ns::{name}, got '{name}'"
        )
    return name


def define(
    qualname: Any, schema: str, *args: Any, lib: Optional[Library] = None, tags: Any = ()
) -> Any:
    """Define the operator "my_ns::name" with a schema, "(Tensor x, float by) -> Tensor".

    It stays for as long as `lib` does, or the program where there is none. ValueError for a name
    without a namespace and for a schema of another form; RuntimeError for a schema with an error
    and for a name that is taken.

    The older form define(lib, "name(Tensor x) -> Tensor") is a decorator of its kernel.
    """
    if isinstance(qualname, Library):
        library: Library = qualname
        name = library.define(schema, *args, tags=tags)

        def decorate(function: Callable) -> Callable:
            library.impl(schema.split("(")[0].strip() or name, function)
            return function

        return decorate
    if not isinstance(qualname, str):
        raise ValueError(f"define: expected the name of an operator, got {type(qualname).__name__}")
    full = _qualname("define", qualname)
    if not re.fullmatch(r"\(.*\) -> .*", schema):
        raise ValueError(
            f"define: expected a schema without a name, as '(Tensor x) -> Tensor', got '{schema}'"
        )
    _library_of(full, "FRAGMENT", lib).define(full.split("::")[1] + schema, tags=tags)
    return None


def impl(
    qualname: Any,
    types: Union[str, Sequence[str]],
    func: Any = None,
    *,
    lib: Optional[Library] = None,
) -> Any:
    """Register a kernel of "my_ns::name" for devices: `types` is a device, a list of them, or
    "default" for all without a kernel of their own. A decorator where `func` is not given.

    RuntimeError for an unknown operator or device, and where there is a kernel already.

    The older form impl(lib, "name", dispatch_key) is a decorator.
    """
    if isinstance(qualname, Library):
        library, name, key = qualname, types, func or ""

        def decorate(function: Callable) -> Callable:
            library.impl(name, function, key)  # type: ignore[arg-type]
            return function

        return decorate
    full = _qualname("impl", qualname)
    keys = [types] if isinstance(types, str) else list(types)

    def register(function: Callable) -> Callable:
        library = _library_of(full, "IMPL", lib)
        for key in keys:
            library.impl(full, function, "CompositeExplicitAutograd" if key == "default" else key)
        return function

    return register if func is None else register(func)


def impl_tvm_ffi(
    qualname: str,
    kernel: str,
    *,
    device: str = "CPU",
    dtypes: Sequence[_C.dtype] = (),
    lib: Optional[Library] = None,
) -> None:
    """Register a function of the tvm-ffi interface as the kernel of "my_ns::name": `kernel` is its
    library and its name, "libmine.so:relu_cpu", the symbol __tvm_ffi_relu_cpu.

    The function is given the operator's arguments in the order of its schema, then a contiguous
    tensor for each result, which it fills. One without `dtypes` is for all. An operator that a
    program defines needs register_fake for the shapes of its results.

    ValueError for another text, a device other than the CPU and a library without the function;
    RuntimeError for an unknown operator, one whose kernel does not fill its results, and a library
    that cannot be loaded.
    """
    from treadle._library import tvm_ffi

    full = _qualname("impl_tvm_ffi", qualname)
    library = _library_of(full, "IMPL", lib)
    tvm_ffi.register(library, full, kernel, device, caller(), dtypes)


def register_kernel(
    op: Operator,
    device_types: Devices,
    func: Optional[Callable] = None,
    /,
    *,
    lib: Optional[Library] = None,
) -> Any:
    """Register a kernel of an operator for devices, None for all without one of their own. A
    decorator where `func` is not given. RuntimeError for an unknown operator or device."""
    definition = find_definition(op)
    if definition is not None:
        return definition.register_kernel(device_types, func)
    return impl(
        _qualname("register_kernel", op),
        "default" if device_types is None else device_types,
        func,
        lib=lib,
    )


def register_fake(
    op: Operator,
    func: Optional[Callable] = None,
    /,
    *,
    lib: Optional[Library] = None,
    _stacklevel: int = 1,
    allow_override: bool = False,
) -> Any:
    """Register what an operator's results look like: a function that is given meta tensors and
    returns such. A decorator where `func` is not given. RuntimeError where there is one already."""
    definition = find_definition(op)
    full = _qualname("register_fake", op)

    def register(function: Callable) -> Callable:
        if definition is not None:
            return definition.register_fake(function)
        library = _library_of(full, "IMPL", lib)
        library._register_fake(full, function, allow_override=allow_override)
        return function

    return register if func is None else register(func)


register_meta = register_fake


def impl_abstract(
    qualname: str,
    func: Optional[Callable] = None,
    *,
    lib: Optional[Library] = None,
    _stacklevel: int = 1,
) -> Any:
    """The older name of register_fake."""
    return register_fake(qualname, func, lib=lib)


def register_autograd(
    op: Operator,
    backward: Callable,
    /,
    *,
    setup_context: Optional[Callable] = None,
    lib: Optional[Library] = None,
) -> None:
    """Register the derivative of an operator.

    `backward(ctx, *grads)` is given the gradient of each result and returns one, or None, for each
    argument. `setup_context(ctx, inputs, output)` runs after the operator and keeps in `ctx` what
    backward needs: by ctx.save_for_backward() for tensors, as attributes for the rest. Where some
    arguments are given by name only it has a parameter keyword_only_inputs as well.

    RuntimeError for an operator that writes to its arguments, and where there is a derivative.
    """
    definition = find_definition(op)
    if definition is not None:
        definition.register_autograd(backward, setup_context=setup_context)
        return
    full = _qualname("register_autograd", op)
    set_formula(full, backward, setup_context, caller())
    if lib is not None:
        lib._undo.append(lambda: _clear_formula(full))


def _clear_formula(name: str) -> None:
    if name in _C._library_overloads(name.split(".")[0]):
        _C._library_clear_layer_function(name, "autograd")


def register_autocast(
    op: Operator, device_type: str, cast_inputs: _C.dtype, /, *, lib: Optional[Library] = None
) -> None:
    """Within autocast on the device the operator is given its floating tensors, but float64 ones,
    in `cast_inputs`, for as long as `lib` lives. ValueError for an unknown device."""
    name = _qualname("register_autocast", op)
    casts = Casts.of(name)
    casts.add(device_type, cast_inputs)
    if lib is not None:
        lib._undo.append(lambda: casts.remove(device_type, cast_inputs))


def triton_op(
    name: str,
    fn: Optional[Callable] = None,
    /,
    *,
    mutates_args: Union[str, Iterable[str]],
    schema: Optional[str] = None,
) -> Any:
    """custom_op(), for a function that may call kernels of Triton: no compiler looks into it."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: Callable, /) -> Callable:
    """The kernel itself: it is called as it is."""
    return triton_kernel

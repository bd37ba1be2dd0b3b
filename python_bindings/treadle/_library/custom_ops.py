"""custom_op: a Python function as an operator."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Union

from treadle import _C
from treadle._introspection.schema import FunctionSchema
from treadle._library.autograd import Casts, set_formula
from treadle._library.fake import as_meta_kernel
from treadle._library.infer import infer_schema
from treadle._library.keys import device_of_key
from treadle._library.registration import Library, caller
from treadle._ops import OpOverload, overload_named

Devices = Union[str, Sequence[str], None]

# The library of each custom operator, so that defining one again replaces it; and the operator,
# which programs then know by its name alone, for as long as the library defines it.
_libraries: Dict[str, Library] = {}
_definitions: "Dict[str, CustomOpDef]" = {}


def split_name(qualname: str) -> List[str]:
    """["my_ns", "name"] of "my_ns::name"; ValueError for anything else."""
    parts = qualname.split("::")
    if len(parts) != 2 or not all(parts):
        raise ValueError(
            f"custom_op: expected a name with its namespace, as my_ns::{qualname}, got '{qualname}'"
        )
    if "." in parts[1]:
        raise ValueError(
            f"custom_op: expected a name without an overload, as operators of one overload have, "
            f"got '{qualname}'"
        )
    return parts


class CustomOpDef(_C._OperatorCall):
    """An operator made of a Python function; custom_op() makes it. It is called as the function
    is; layers (autograd, autocast, the profiler) apply to it."""

    def __new__(
        cls, namespace: str, name: str, schema: str, fn: Callable, tags: Any = None
    ) -> "CustomOpDef":
        qualname = f"{namespace}::{name}"
        before = _libraries.pop(qualname, None)
        if before is not None:
            before._destroy()
        library = Library(namespace, "FRAGMENT")
        library.define(name + schema, tags=tags or ())
        _libraries[qualname] = library
        return super().__new__(cls, qualname)

    def __init__(
        self, namespace: str, name: str, schema: str, fn: Callable, tags: Any = None
    ) -> None:
        self._namespace, self._name, self._schema = namespace, name, schema
        self._init_fn = fn
        self._qualname = f"{namespace}::{name}"
        self._lib = _libraries[self._qualname]
        self._opoverload: OpOverload = overload_named(self._qualname)
        self._backend_fns: Dict[Optional[str], Callable] = {}
        self._abstract_fn: Optional[Callable] = None
        self._disabled_kernel: set = set()
        for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(self, attribute, getattr(fn, attribute, None))
        self.__wrapped__ = fn
        _definitions[self._qualname] = self
        self._lib._undo.append(functools.partial(_definitions.pop, self._qualname, None))
        _C._library_set_results_apart(self._qualname)
        set_formula(self._qualname, None, None, caller())
        self._set("meta", self._refuse_meta)

    def _set(self, device: Optional[str], fn: Callable) -> None:
        """Put a kernel in place of the one for the device, or for all."""
        if device is None:
            _C._library_clear_default_kernel(self._qualname)
            _C._library_set_default_kernel(self._qualname, fn, False, *caller())
        else:
            _C._library_clear_kernel(self._qualname, device)
            _C._library_set_kernel(self._qualname, device, fn, *caller())

    def _refuse_meta(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"{self._qualname}: expected a kernel for meta tensors, got none\n"
            f"register one by {self._name}.register_fake"
        )

    def register_kernel(self, device_types: Devices, fn: Optional[Callable] = None, /) -> Callable:
        """Register another function for tensors on the devices (None: all without one of their
        own); also a decorator. RuntimeError for an unknown device."""

        def register(function: Callable) -> Callable:
            names = (
                [device_types]
                if device_types is None or isinstance(device_types, str)
                else (device_types)
            )
            for name in names:
                device = None if name is None else known_device(name)
                self._backend_fns[device] = function
                self._set(device, function)
            return function

        return register if fn is None else register(fn)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """Within it the kernel registered for the device is used or, where `enabled` is False, the
        function the operator was made of in its place. ValueError where none is registered."""
        device = known_device(device_type)
        if device not in self._backend_fns:
            raise ValueError(
                f"set_kernel_enabled: expected a device with a kernel of {self._qualname}, got "
                f"'{device_type}'"
            )
        was_enabled = device not in self._disabled_kernel
        self._enable(device, enabled)
        try:
            yield
        finally:
            self._enable(device, was_enabled)

    def _enable(self, device: str, enabled: bool) -> None:
        (self._disabled_kernel.discard if enabled else self._disabled_kernel.add)(device)
        self._set(device, self._backend_fns[device] if enabled else self._init_fn)

    def register_fake(self, fn: Callable, /) -> Callable:
        """Register what the results look like: a function of meta tensors. A decorator."""
        self._abstract_fn = fn
        self._set("meta", as_meta_kernel(self._qualname, fn))
        return fn

    register_meta = register_fake

    def register_autograd(
        self, backward: Callable, /, *, setup_context: Optional[Callable] = None
    ) -> None:
        """Register the derivative: see treadle.library.register_autograd."""
        set_formula(self._qualname, backward, setup_context, caller(), replace=True)

    def register_autocast(self, device_type: str, cast_inputs: _C.dtype) -> None:
        """Register the dtype that floating tensors have within autocast: see
        treadle.library.register_autocast."""
        Casts.of(self._qualname).add(device_type, cast_inputs)

    @property
    def _schema_object(self) -> FunctionSchema:
        return self._opoverload._schema

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __reduce__(self) -> Any:
        return definition_of, (self._qualname,)


def known_device(name: str) -> str:
    """The name of a device; RuntimeError for an unknown one."""
    device = device_of_key(name)
    if device is None:
        known = ", ".join(_C._library_devices())
        raise RuntimeError(f"expected the name of a device, one of {known}, got '{name}'")
    return device


def definition_of(qualname: str) -> CustomOpDef:
    """The custom operator of the name; RuntimeError for an unknown one."""
    found = find_definition(qualname)
    if found is None:
        raise RuntimeError(f"expected the name of a custom operator, got '{qualname}'")
    return found


def find_definition(op: Any) -> Optional[CustomOpDef]:
    """The custom operator that a program means: itself, its name or its overload."""
    if isinstance(op, CustomOpDef):
        return op
    name = op._name if isinstance(op, OpOverload) else op
    return _definitions.get(name) if isinstance(name, str) else None


def custom_op(
    name: str,
    fn: Optional[Callable] = None,
    /,
    *,
    mutates_args: Union[str, Iterable[str]],
    device_types: Devices = None,
    schema: Optional[str] = None,
    tags: Optional[Sequence[Any]] = None,
) -> Any:
    """Make a function an operator, "my_ns::name"; a decorator where `fn` is not given.

    The schema is inferred from the function's annotations unless it is given
    ("(Tensor x, float by) -> Tensor"). `mutates_args` names the tensors that the function writes
    to. `device_types` says on which devices it works; None: on all. The function must return
    tensors in memory of their own. Defining a name again replaces the operator.

    ValueError for annotations without a schema type, and for a schema that does not write to what
    `mutates_args` names.

    >>> @custom_op("my_ns::scale", mutates_args=())
    ... def scale(x: Tensor, by: float) -> Tensor:
    ...     return x * by
    """

    def define(function: Callable) -> CustomOpDef:
        namespace, base = split_name(name)
        text = schema or infer_schema(function, mutates_args=mutates_args)
        made = CustomOpDef(namespace, base, text, function, tags)
        if schema is not None:
            _check_written(made, mutates_args)
        made.register_kernel(device_types)(function)
        return made

    return define if fn is None else define(fn)


def _check_written(made: CustomOpDef, mutates_args: Union[str, Iterable[str]]) -> None:
    written = {a.name for a in made._schema_object.arguments if a.is_write}
    if isinstance(mutates_args, str) or written == set(mutates_args):
        return
    made._lib._destroy()
    named = ", ".join(sorted(mutates_args))
    raise ValueError(
        f"custom_op: expected a schema that writes to what mutates_args names, ({named}), got one "
        f"that writes to ({', '.join(sorted(written))})"
        f"\n  {made._schema}"
    )

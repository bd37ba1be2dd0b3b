"""Library: a handle on the operators that a program defines, and on the kernels it gives to them.

Registrations through a Library are taken back when the Library is no longer there.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import functools
import os
import sys
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from treadle import _C
from treadle._library.keys import device_of_key, read_key
from treadle._ops import OpOverload, ops, tags_of

_PACKAGE_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_RESERVED = ("prim",)
_defined_whole: Dict[str, str] = {}  # namespaces of DEF libraries, and where they were made

# Functions on Layer autograd or autocast for some devices only, by operator and layer.
_by_device: Dict[Tuple[str, str], Dict[str, Callable]] = {}


def fallthrough_kernel() -> None:
    """For Library.impl: says that an operator has nothing to do for a key. Not to be called."""
    raise NotImplementedError(
        "fallthrough_kernel: expected to be given to Library.impl, not called"
    )


def caller() -> Tuple[str, int]:
    """The file and line in the program that called into the package."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE_FOLDER):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _take_back(undo: List[Callable[[], None]]) -> None:
    while undo:
        undo.pop()()


def _device_of(args: Sequence[Any]) -> str:
    """The device whose kernel a call with these arguments takes."""
    for arg in args:
        for value in arg if isinstance(arg, (list, tuple)) else (arg,):
            if isinstance(value, _C.Tensor) and value.device.type != "cpu":
                return value.device.type
    return "cpu"


def _choose(name: str, layer: str) -> Callable:
    """The function of a layer that has functions for some devices only."""
    from treadle._ops import overload_named

    functions = _by_device[name, layer]

    def choose(*args: Any, **kwargs: Any) -> Any:
        function = functions.get(_device_of((*args, *kwargs.values())))
        if function is not None:
            return function(*args, **kwargs)
        with below(layer):
            return overload_named(name)(*args, **kwargs)

    return choose


@contextlib.contextmanager
def below(layer: str) -> Iterator[None]:
    """Within it this thread's calls skip the layer."""
    before = _C._library_exclude_layer(layer, True)
    try:
        yield
    finally:
        _C._library_exclude_layer(layer, before)


class Library:
    """Operators of the namespace `ns`, or kernels for them.

    `kind` is "DEF" (the one place that defines the namespace), "FRAGMENT" (one of several) or
    "IMPL" (kernels only; `dispatch_key` is then what they are for where impl() does not say).
    ValueError for another kind and for a namespace that is reserved; RuntimeError for a second
    "DEF" of a namespace.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Library: expected kind to be DEF, FRAGMENT or IMPL, got '{kind}'")
        if ns in _RESERVED and kind != "IMPL":
            raise ValueError(f"Library: expected a namespace that is not reserved, got '{ns}'")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._undo: List[Callable[[], Any]] = []
        if kind == "DEF":
            self._define_namespace()
        self._finalizer = weakref.finalize(self, _take_back, self._undo)
        self._finalizer.atexit = False

    def _define_namespace(self) -> None:
        ns, (file, line) = self.ns, caller()
        there = _defined_whole.get(ns)
        if there is None:
            own = next((n for n in _C._operator_names() if n.startswith(ns + "::")), None)
            there = own and _C._library_place(own)
        if there is not None:
            raise RuntimeError(
                f"Library: expected one DEF of the namespace '{ns}', got a second at "
                f"{file}:{line}\nit is defined already at {there}; FRAGMENT adds to it"
            )
        _defined_whole[ns] = f"{file}:{line}"
        self._undo.append(functools.partial(_defined_whole.pop, ns, None))

    def define(
        self,
        schema: str,
        alias_analysis: str = "",
        *,
        tags: Any = (),
    ) -> str:
        """Define the operator of a schema, "name.overload(Tensor x, int n=3) -> Tensor"; gives its
        name. RuntimeError for an IMPL library, for a schema with an error, and for a name that is
        taken."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(
                "define: expected alias_analysis to be '', 'FROM_SCHEMA' or 'CONSERVATIVE', got "
                f"'{alias_analysis}'"
            )
        if self.kind == "IMPL":
            raise RuntimeError(
                f"define: expected a library of kind DEF or FRAGMENT, got the IMPL library of "
                f"'{self.ns}' for {schema}"
            )
        written = schema.split("(")[0]
        if "::" in written and written.split("::")[0].strip() != self.ns:
            raise RuntimeError(
                f"define: expected an operator of the namespace '{self.ns}', got {written}"
            )
        whole = schema if "::" in written else f"{self.ns}::{schema}"
        full = _C._library_define(whole, *caller())
        base = full.split("::")[1].split(".")[0]
        given = tags if isinstance(tags, (tuple, list)) else (tags,)
        if given:
            tags_of[full] = list(given)
        namespace = getattr(ops, self.ns)
        namespace._changed(base)

        def undefine() -> None:
            tags_of.pop(full, None)
            for layer in ("autograd", "autocast"):
                _by_device.pop((full, layer), None)
            _C._library_undefine(full)
            namespace._changed(base)

        self._undo.append(undefine)
        return base

    def full_name(self, op_name: Union[str, OpOverload]) -> str:
        """The full name of an operator of this namespace; RuntimeError for one of another."""
        if isinstance(op_name, OpOverload):
            return op_name._name
        if not isinstance(op_name, str):
            raise RuntimeError(
                "impl: expected the name of an operator or an OpOverload, got "
                f"{type(op_name).__name__}"
            )
        if "::" in op_name and op_name.split("::")[0] != self.ns:
            raise RuntimeError(
                f"impl: expected an operator of the namespace '{self.ns}', got {op_name}"
            )
        name = op_name if "::" in op_name else f"{self.ns}::{op_name}"
        return name.removesuffix(".default")

    def impl(
        self,
        op_name: Union[str, OpOverload],
        fn: Callable,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Register `fn` as what `op_name` does for a dispatch key or a device ("CPU", "Meta",
        "Autograd", "CompositeExplicitAutograd", "my_device"); without a key for all devices, made
        of operators that have derivatives. A kernel for a device of PyTorch's that is not here
        ("XPU", "AutocastXPU") is passed over. A kernel takes the operator's arguments and returns
        its results.

        TypeError where `fn` cannot be called; RuntimeError for an unknown operator or key, and for
        a second registration unless `allow_override`.
        """
        if not callable(fn):
            raise TypeError(f"impl: expected a function, got {type(fn).__name__}")
        if with_keyset:
            raise NotImplementedError(
                "impl: expected with_keyset=False: kernels are chosen by device, there are no sets "
                "of keys to give to them"
            )
        name = self.full_name(op_name)
        kind, device = read_key(str(dispatch_key or self.dispatch_key))
        if kind == "elsewhere":
            return
        if kind in ("autograd", "autocast"):
            self._impl_layer(name, kind, device, fn, allow_override)
            return
        if fn is fallthrough_kernel:
            raise RuntimeError(
                f"impl: expected a kernel for {name}, got fallthrough_kernel, which is for Autograd"
            )
        if device is not None:
            if allow_override:
                _C._library_clear_kernel(name, device)
            _C._library_set_kernel(name, device, fn, *caller())
            undo = lambda: _C._library_clear_kernel(name, device)  # noqa: E731
        else:
            if allow_override:
                _C._library_clear_default_kernel(name)
            _C._library_set_default_kernel(name, fn, kind == "composite", *caller())
            undo = lambda: _C._library_clear_default_kernel(name)  # noqa: E731
        self._undo.append(_if_there(name, undo))

    def _impl_layer(
        self, name: str, layer: str, device: Optional[str], fn: Callable, override: bool
    ) -> None:
        if device is None:
            if override:
                _C._library_clear_layer_function(name, layer)
            function = None if fn is fallthrough_kernel else fn
            _C._library_set_layer_function(name, layer, function, *caller())
            self._undo.append(
                _if_there(name, lambda: _C._library_clear_layer_function(name, layer))
            )
            return
        functions = _by_device.get((name, layer))
        if functions is None:
            functions = _by_device[name, layer] = {}
            try:
                _C._library_set_layer_function(name, layer, _choose(name, layer), *caller())
            except RuntimeError:
                del _by_device[name, layer]
                raise
        if device in functions and not override:
            raise RuntimeError(
                f"{name}: expected one function for {layer} on {device}, got a second"
            )
        functions[device] = fn

        def undo() -> None:
            functions.pop(device, None)
            if not functions and _by_device.pop((name, layer), None) is not None:
                _C._library_clear_layer_function(name, layer)

        self._undo.append(_if_there(name, undo))

    def fallback(self, fn: Callable, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Register `fn(op, *args, **kwargs)` for every operator without a kernel for a device, the
        one of `dispatch_key`. For the namespace "_" only, which is all of them."""
        key = dispatch_key or self.dispatch_key
        if self.ns != "_":
            raise RuntimeError(
                f"fallback: expected a library of the namespace '_', which is all of them, got one "
                f"of '{self.ns}'"
            )
        device = device_of_key(key)
        if device is None or with_keyset:
            raise RuntimeError(f"fallback: expected a device, got '{key}'")
        _C._library_set_fallback(device, fn, *caller())
        self._undo.append(lambda: _C._library_clear_fallback(device))

    def _register_fake(
        self, op_name: Union[str, OpOverload], fn: Callable, *, allow_override: bool = False
    ) -> None:
        from treadle._library.fake import as_meta_kernel

        name = self.full_name(op_name)
        self.impl(name, as_meta_kernel(name, fn), "Meta", allow_override=allow_override)

    def _destroy(self) -> None:
        """Take back everything now."""
        _take_back(self._undo)

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"


def _if_there(name: str, undo: Callable[[], None]) -> Callable[[], None]:
    """The library that defined the operator may be gone before this one."""

    def checked() -> None:
        if name in _C._library_overloads(name.split(".")[0]):
            undo()

    return checked


@contextlib.contextmanager
def scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """A Library for as long as a `with` lasts."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()

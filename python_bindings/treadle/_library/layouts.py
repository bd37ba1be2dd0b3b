"""Layouts of tensors that a program registers: what such a tensor is made of, and who answers the
calls that have one.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import keyword
import threading
import types
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle._library.registration import caller
from treadle._ops import OpOverload, find_overload
from treadle._rebuild import is_registered, layout_named

_FALLBACKS = ("error", "to_dense")
# The kinds of entries, for which there are rules.
_KINDS = ("pointwise", "reduce", "kernel", "view", "composite")


def _of_layout(value: Any) -> bool:
    return isinstance(value, Tensor) and value.layout != _C.strided


def _strided(value: Any) -> Any:
    """The value with strided tensors in place of those of other layouts."""
    if isinstance(value, (list, tuple)):
        return [_strided(one) for one in value]
    return value.to_dense() if _of_layout(value) else value


def _writes_layout(op: OpOverload, args: Sequence[Any], kwargs: Dict[str, Any]) -> bool:
    given = dict(zip((a.name for a in op._schema.arguments), args))
    given.update(kwargs)
    return any(
        a.alias_info is not None and a.alias_info.is_write and _of_layout(given.get(a.name))
        for a in op._schema.arguments
    )


class TensorLayout:
    """A layout that a library outside of the tree registered: its tensors, and its kernels in
    Python. `layout` is the object that `tensor.layout` is."""

    def __init__(self, name: str, parts: Tuple[str, ...], fields: Tuple[str, ...]) -> None:
        self.name, self.part_names, self.field_names = name, parts, fields
        self.layout: Any = None

    # ---- tensors ----

    def tensor(self, size: Sequence[int], **contents: Any) -> Tensor:
        """A tensor of this layout and of the shape `size`, made of parts, which are strided tensors
        on one device, and of fields, which are whole numbers, each by its name. The part of values
        has the tensor's dtype. TypeError for other names; errors of the layout's check."""
        wanted = (*self.part_names, *self.field_names)
        if set(contents) != set(wanted):
            raise TypeError(
                f"{self.name}: expected {', '.join(wanted)}, got {', '.join(contents) or 'nothing'}"
            )
        for name in self.part_names:
            if not isinstance(contents[name], Tensor):
                raise TypeError(
                    f"{self.name}: expected a tensor for {name}, got "
                    f"{type(contents[name]).__name__}"
                )
        parts = [contents[name] for name in self.part_names]
        fields = [contents[name] for name in self.field_names]
        return _C._layout_tensor(self.layout, size, parts, fields)

    def contents(self, tensor: Tensor) -> types.SimpleNamespace:
        """The parts and fields of a tensor of this layout, as attributes. TypeError for another
        value."""
        if not isinstance(tensor, Tensor) or tensor.layout != self.layout:
            got = tensor.layout if isinstance(tensor, Tensor) else type(tensor).__name__
            raise TypeError(f"{self.name}: expected a tensor of {self.layout}, got {got}")
        parts, fields = _C._layout_contents(tensor)
        return types.SimpleNamespace(**parts, **fields)

    # ---- who answers calls ----

    def kernel(self, op: Any, function: Optional[Callable] = None) -> Any:
        """Register the operator's kernel for this layout: a function of the operator's arguments,
        for its functional form; in place, the result replaces the contents of the first argument.
        A decorator if `function` is not given.

        RuntimeError for an unknown operator, for another form, and if there is a kernel already.
        """
        name = find_overload(op)
        if name is None or "::" not in name:
            raise ValueError(
                "kernel: expected an operator or its full name, as aten::mm, got "
                f"{op if isinstance(op, str) else type(op).__name__}"
            )

        def register(function: Callable) -> Callable:
            if not callable(function):
                raise TypeError(f"kernel: expected a function, got {type(function).__name__}")
            self._set_kernel(name, function)
            return function

        return register if function is None else register(function)

    def _set_kernel(self, name: str, function: Callable) -> None:
        _C._library_set_layout_kernel(name, self.layout, function, *caller())

    def __repr__(self) -> str:
        return f"<layout {self.name} of {', '.join((*self.part_names, *self.field_names))}>"

    def __reduce__(self) -> Any:
        return registered_layout, (self.name,)


class RegisteredLayout(TensorLayout):
    """A layout that a program registered: what register_layout() returns."""

    def __init__(
        self,
        name: str,
        parts: Tuple[str, ...],
        fields: Tuple[str, ...],
        values: str,
        check: Optional[Callable],
        to_dense: Optional[Callable],
        fallback: str,
    ) -> None:
        super().__init__(name, parts, fields)
        self._check_contents, self._to_dense = check, to_dense
        self._rules: List[Tuple[Optional[str], Callable]] = []
        self._counts: Dict[str, int] = {}
        self._lock = threading.Lock()
        self.fallback = fallback
        number = parts.index(values)
        self.layout = _C._library_new_layout(name, parts, fields, number, self._check)
        _C._library_set_layout_rule(self.layout, self._answer)
        _C._library_set_layout_fallback(self.layout, self._by_strided)
        if to_dense is not None:
            self._set_kernel("aten::to_dense", self._dense)

    def _check(self, size: _C.Size, parts: List[Tensor], fields: List[int]) -> None:
        for name, part in zip(self.part_names, parts):
            if part.layout != _C.strided:
                raise ValueError(
                    f"{self.name}: expected strided parts, got {name} of {part.layout}"
                )
        devices = {str(part.device) for part in parts}
        if len(devices) > 1:
            raise ValueError(
                f"{self.name}: expected parts on one device, got {' and '.join(sorted(devices))}"
            )
        if self._check_contents is not None:
            named = dict(zip((*self.part_names, *self.field_names), (*parts, *fields)))
            self._check_contents(size, **named)

    def rule(self, kind: Optional[str] = None) -> Callable[[Callable], Callable]:
        """A decorator that registers a rule for operators without a kernel: a function
        `rule(op, args, kwargs)` that returns the results of the operator, or NotImplemented. It is
        asked for operators of a kind: "pointwise", "reduce", "kernel", "view" or "composite"; None
        for all. Rules are asked in the order of registration. ValueError for another kind."""
        if kind is not None and kind not in _KINDS:
            raise ValueError(f"rule: expected one of {', '.join(_KINDS)} or None, got {kind!r}")

        def register(function: Callable) -> Callable:
            if not callable(function):
                raise TypeError(f"rule: expected a function, got {type(function).__name__}")
            self._rules = [*self._rules, (kind, function)]
            return function

        return register

    def _answer(self, op: OpOverload, args: tuple, kwargs: Dict[str, Any]) -> Any:
        if not self._rules:
            return NotImplemented
        of = _C._describe_operator(op._name)["kind"]
        for kind, rule in self._rules:
            if kind is None or kind == of:
                results = rule(op, args, kwargs)
                if results is not NotImplemented:
                    return results
        return NotImplemented

    # ---- strided tensors in their place ----

    def _dense(self, tensor: Tensor, dtype: Any = None, **ignored: Any) -> Tensor:
        assert self._to_dense is not None
        result = self._to_dense(tensor)
        if not isinstance(result, Tensor) or result.layout != _C.strided:
            got = result.layout if isinstance(result, Tensor) else type(result).__name__
            raise RuntimeError(
                f"to_dense: expected to_dense of the layout {self.name} to return a strided "
                f"tensor, got {got}"
            )
        if result.shape != tensor.shape:
            raise RuntimeError(
                f"to_dense: expected to_dense of the layout {self.name} to return a tensor of "
                f"shape {tuple(tensor.shape)}, got {tuple(result.shape)}"
            )
        return result if dtype is None else result.to(dtype)

    @property
    def fallback(self) -> str:
        """The answer to a call without a kernel, a rule or a decomposition: "error", or "to_dense",
        which computes with strided tensors. ValueError for another value, and for "to_dense" if the
        layout has no such function."""
        return self._fallback

    @fallback.setter
    def fallback(self, value: str) -> None:
        if value not in _FALLBACKS:
            raise ValueError(f"fallback: expected one of {', '.join(_FALLBACKS)}, got {value!r}")
        if value == "to_dense" and self._to_dense is None:
            raise ValueError(f"fallback: expected a layout with to_dense, got {self.name}")
        self._fallback = value

    def fallback_calls(self) -> Dict[str, int]:
        """How many calls of each operator were computed with strided tensors."""
        with self._lock:
            return dict(self._counts)

    def _by_strided(self, op: OpOverload, args: tuple, kwargs: Dict[str, Any]) -> Any:
        # Its own conversion is what the fallback needs, and what it writes stays of its layout.
        is_own = op._name == "aten::to_dense"
        if self._fallback == "error" or is_own or _writes_layout(op, args, kwargs):
            return NotImplemented
        with self._lock:
            self._counts[op._name] = self._counts.get(op._name, 0) + 1
        named = {key: _strided(value) for key, value in kwargs.items()}
        return op(*(_strided(value) for value in args), **named)


_registered: Dict[str, RegisteredLayout] = {}


def _require_names(name: str, parts: Sequence[str], fields: Sequence[str], values: str) -> None:
    names = [*parts, *fields]
    for one in [name, *names]:
        if not isinstance(one, str) or not one.isidentifier() or keyword.iskeyword(one):
            raise ValueError(f"register_layout: expected names that are identifiers, got {one!r}")
    repeated = [one for one in names if names.count(one) > 1 or one == "size"]
    if repeated:
        raise ValueError(
            f"register_layout: expected names of parts and fields that differ and are not 'size', "
            f"got '{repeated[0]}'"
        )
    if not parts:
        raise ValueError("register_layout: expected at least one part, got none")
    if values not in parts:
        raise ValueError(f"register_layout: expected values to be one of the parts, got {values!r}")


def register_layout(
    name: str,
    *,
    parts: Sequence[str],
    fields: Sequence[str] = (),
    values: str,
    check: Optional[Callable] = None,
    to_dense: Optional[Callable] = None,
    fallback: str = "error",
) -> RegisteredLayout:
    """Register a layout of tensors for as long as the program.

    A tensor of it is made of `parts`, strided tensors, and `fields`, whole numbers. The part
    `values` has the tensor's dtype, and `.grad` and `requires_grad` of the tensor are those of this
    part.
    `check(size, **parts_and_fields)` raises an error for contents that are none of a tensor of this
    size; contents of files and of other processes come to it, too. `to_dense(tensor)` returns the
    tensor as a strided one, of the same shape. `fallback`: see RegisteredLayout.fallback.

    ValueError for names that are no identifiers or not distinct, for a name that is taken, and if
    `values` is none of the parts; RuntimeError if too many layouts are registered.
    """
    parts, fields = tuple(parts), tuple(fields)
    _require_names(name, parts, fields, values)
    if fallback not in _FALLBACKS or (fallback == "to_dense" and to_dense is None):
        wanted = "a function to_dense for this fallback" if fallback in _FALLBACKS else _FALLBACKS
        raise ValueError(f"register_layout: expected {wanted}, got fallback={fallback!r}")
    made = RegisteredLayout(name, parts, fields, values, check, to_dense, fallback)
    _registered[name] = made
    return made


def registered_layout(name: str) -> TensorLayout:
    """The layout of this name that register_layout() or a library in C++ registered. RuntimeError
    if there is none."""
    if name in _registered:
        return _registered[name]
    layout = layout_named(name)
    if not is_registered(layout):
        raise RuntimeError(f"expected a layout from outside of the library, got {layout}")
    parts, fields, _ = _C._library_layout_names(layout)
    made = TensorLayout(name, tuple(parts), tuple(fields))
    made.layout = layout
    return made


__all__ = ["RegisteredLayout", "TensorLayout", "register_layout", "registered_layout"]
